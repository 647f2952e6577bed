"""Migration handlers in a federation: each cluster has its own.

A handler knows jobs by their ids alone, keeps their images under these, and removes images of jobs that are
gone. So each cluster's adapter is given handlers for that cluster
(:meth:`headway.adapter.migration.MigrationHandler.for_cluster`) and drives them under its own names; what
they come to are its events, which are renamed like all others.

A move that an earlier run began is given up by the cluster that has the job. It is taken to be at the cluster
that its name begins with; that it came to another is known only once that cluster has told the job, and then
the cluster is told of its move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec

from headway import decisions as d
from headway import events as ev
from headway.adapter import Check
from headway.adapter.migration import MigrationHandler, Move
from headway.errors import UserError
from headway_adapters.federation.member import Member
from headway_adapters.federation.names import JOB, Direction, Elsewhere, Names
from headway_adapters.federation.route_pairs import Place


class Handlers:
    """The handlers of all clusters. Called on the engine's thread but for :meth:`carry`."""

    def __init__(self, members: Mapping[str, Member], names: Names) -> None:
        self._members = members
        self._names = names
        self._of: dict[str, tuple[MigrationHandler, ...]] = {}
        #: Clusters whose batch system cannot be driven by handlers.
        self._without: list[str] = []
        #: Open moves of an earlier run, by the job's name for all.
        self._before: dict[str, d.Decision] = {}
        self._pool: ThreadPoolExecutor | None = None

    # ------------------------------------------------------------------ before the first look

    def use(self, handlers: Iterable[Any], gives: frozenset[type[d.Decision]]) -> None:
        """Give each cluster its handlers. Raises :class:`UserError` for a handler that cannot serve one of
        several clusters."""
        handlers = tuple(handlers)
        for name, member in self._members.items():
            if not member.adapter.moves:
                self._without += [name] if handlers else []
                continue
            own = self._of[name] = tuple(for_cluster(handler, name) for handler in handlers)
            member.adapter.use_handlers(own, gives)

    def remember(self, decisions: Mapping[str, d.Decision]) -> None:
        """Moves that an earlier run began and did not end."""
        self._before = dict(decisions)
        for name, member in self._members.items():
            begin, inward = f"{name}:", self._names.inward(name)
            own = {job.removeprefix(begin): one for job, one in decisions.items() if job.startswith(begin)}
            member.adapter.moving_before({job: _renamed(one, inward) for job, one in own.items()})

    def told(self, member: Member, events: Iterable[ev.Event]) -> None:
        """A cluster has told this, in the names for all: it is told of the open moves of jobs that have come
        to it."""
        if not self._before:
            return
        inward, own = self._names.inward(member.name), dict[str, d.Decision]()
        for event in events:
            if isinstance(event, ev.JobSubmitted) and (job := event.job.id) in self._before:
                move, local = self._before.pop(job), self._names.job_place(job)[1]
                if (member.name, local) != tuple(job.split(":", 1)):
                    own[local] = _renamed(move, inward)
        if own:
            member.run(lambda: member.adapter.moving_before(own))

    # ------------------------------------------------------------------ what is kept of a job that goes

    def carry(self, source: Place, target: Place, user: str, done: Callable[[], None]) -> Future[str]:
        """Have what is kept of a waiting job taken to another cluster: what was taken, in words. On any
        thread. ``done`` is called at the end."""
        pairs = list(zip(self._of.get(source[0], ()), self._of.get(target[0], ()), strict=False))
        if not pairs:
            future = Future[str]()
            future.set_result("")
            return future
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="images")
        future = self._pool.submit(_carried, pairs, source[1], target[1], user)
        future.add_done_callback(lambda _: done())
        return future

    def close(self) -> None:
        """End what is under way. The handlers are stopped by their clusters' adapters."""
        for handlers in self._of.values():
            for handler in handlers:
                handler.stop()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    # ------------------------------------------------------------------ what is told

    def check(self) -> list[Check]:
        """Which handlers serve which cluster, and whether what they need is there."""
        found = [
            msgspec.structs.replace(one, subject=f"{name}: {one.subject}")
            for name, handlers in self._of.items()
            for handler in handlers
            for one in handler.check()
        ]
        for name in self._without:
            lacks = "none: the adapter of this cluster drives no migration handlers, so no running job moves"
            found.append(Check(f"{name}: migration", True, lacks, known=False))
        return found


def _renamed(decision: d.Decision, inward: Direction) -> d.Decision:
    """A move in a cluster's names; of a job that was moved at another cluster only which job it is."""
    try:
        return inward.renamed(decision)
    except Elsewhere:
        return d.Checkpoint(inward.rename(JOB, getattr(decision, "job_id", "")))


class Inward:
    """A handler of an emulated cluster, whose jobs have the federation's ids: the handler is asked about a
    job of its own cluster."""

    def __init__(self, handler: MigrationHandler) -> None:
        self._handler = handler
        self.name = handler.name

    def suits(self, move: Move) -> str:
        """As :meth:`MigrationHandler.suits`."""
        local = move.job.id.partition(":")[2] or move.job.id
        job = msgspec.structs.replace(move.job, id=local)
        return self._handler.suits(msgspec.structs.replace(move, job=job))


def for_cluster(handler: Any, cluster: str) -> MigrationHandler:
    """The handler for one of several clusters. Raises :class:`UserError` if it cannot serve one."""
    own: Callable[[str], MigrationHandler] | None = getattr(handler, "for_cluster", None)
    if own is None:
        raise UserError(
            f"plugins: {handler.name} moves jobs of one cluster only; with several in `clusters` expected a "
            "handler with the method for_cluster, found none"
        )
    return own(cluster)


def _carried(
    pairs: Sequence[tuple[MigrationHandler, MigrationHandler]], job: str, job_there: str, user: str
) -> str:
    said = [carry(job, there, job_there, user)
            for here, there in pairs if (carry := getattr(here, "carry", None)) is not None]  # fmt: skip
    return "; ".join(filter(None, said))
