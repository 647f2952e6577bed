"""The data that waiting jobs lack at their sites: which jobs wait for which, and the copies that bring them.

Every plugin that has data copied does so by a supply: ``staging``, ``data-greedy``, ``data-ga`` and
``follow``. So the order of copies, their retries, and what a full store loses are the same whichever plugin
it is. Decisions:

- One supply serves a run. A second plugin that would order copies is refused when the run begins: each would
  count the other's copies against its own limits, and one would drop what the other has copied.
- Copies are ordered in the order of the queues, each from the site from which it comes soonest, at most
  ``parallel`` at a time and as many to a store as its description allows.
- A copy that failed is tried again after ``retry`` seconds, doubled with each failure, from another site if
  another one has the dataset (:mod:`.copies`).
- A store that is full loses the replica that was used least recently, never what a job that runs, a copy on
  its way, or an earlier job of the queue needs (:mod:`.stores`).
- A job with a dataset that is not configured, that no site has, that no link brings, or whose data its store
  can never hold is refused; so is a job with data in whose comment nothing reads a word. A job that may go to
  other sites is refused only where none of them can have its data.
- Jobs that cannot start for other reasons (held, a limit, a dependency) have no data copied for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from headway.decisions import Copy, Decision, Drop
from headway.errors import UserError
from headway.events import (
    CopyFailed,
    DatasetCopied,
    DatasetLost,
    DecisionFailed,
    Event,
    JobChanged,
    JobEnded,
    JobHeld,
    JobReleased,
    JobRequeued,
    JobRouted,
)
from headway.hookspecs import Plugin, hookimpl
from headway.model.sites import datasets_of
from headway.state import Barrier, Job, State, Status
from headway.state.catalogue import Catalogue
from headway.state.records import ON_NODES
from headway_plugins.data.copies import Copies
from headway_plugins.data.reading import Reading
from headway_plugins.data.stores import Need, fill, why_never
from headway_plugins.data.supply_options import SupplyOptions

_INF = float("inf")
#: The first part of the keys of barriers: ``(KEY, site, dataset)``.
KEY = "data"
#: So many datasets that a job waits for are named.
_NAMED = 5
#: The events that a supply takes up.
OBSERVED: tuple[type[Event], ...] = (
    CopyFailed, DatasetCopied, DatasetLost, DecisionFailed, JobChanged, JobEnded, JobHeld, JobReleased,
    JobRequeued, JobRouted,
)  # fmt: skip


def _in_queue_order(jobs: list[Job]) -> Sequence[Job]:
    return sorted(jobs, key=lambda job: job.order)


def _stays(job: Job) -> bool:
    return False


class Supply:
    """What jobs read, what they wait for, and the copies that are made for them."""

    def __init__(
        self, state: State, options: SupplyOptions, capabilities: frozenset[type], plugin: str, *,
        in_turn: Callable[[list[Job]], Sequence[Job]] = _in_queue_order,
        roams: Callable[[Job], bool] = _stays,
    ) -> None:  # fmt: skip
        """``plugin``: the name of the plugin that orders its copies. ``in_turn``: the waiting jobs for which
        data are copied, in the order in which they will need them. ``roams``: whether a job may go to other
        sites.

        Raises :class:`UserError` if no sites are configured, or if another plugin orders copies.
        """
        catalogue = state.catalogue
        if catalogue is None:
            raise UserError(f"{plugin}: expected sites with stores (clusters.NAME.site.store), found none")
        if catalogue.supplier:
            raise UserError(_two_suppliers(catalogue.supplier, plugin))
        catalogue.supplier = plugin
        self.catalogue: Catalogue = catalogue
        self._in_turn, self._roams = in_turn, roams
        #: Jobs that read data -> what they read.
        self.needs: dict[str, tuple[str, ...]] = {}
        #: Something changed that copies follow from; and the catalogue's version that was looked at last.
        self.changed = True
        self._version = -1
        #: When a copy that failed may be tried again (absolute seconds).
        self._retry_at = _INF
        #: Sites that lost a dataset in this step.
        self._lost: set[str] = set()
        self.copies = Copies(catalogue, options, drops=Drop in capabilities)
        self.reading = Reading(state, catalogue, self.needs)
        state.watch(self.reading)

    def kept(self) -> dict[str, Any]:
        """What is kept over a restart, as JSON values."""
        used = [[*key, at] for key, at in self.reading.used.items()]
        return {"rates": self.copies.measured.saved(), "used": used}

    def take_up(self, saved: Mapping[str, Any]) -> None:
        """What :meth:`kept` gave in an earlier run."""
        self.copies.measured.take_up(saved["rates"])
        self.reading.used.update({(dataset, site): at for dataset, site, at in saved["used"]})

    # ------------------------------------------------------------------ what happens

    def note(self, event: Event, state: State) -> None:
        """Take up an event."""
        if isinstance(event, DatasetCopied | CopyFailed | DatasetLost):
            if event.dataset in self.catalogue.datasets:
                self.changed = True
                self.copies.note(event, state)
                if isinstance(event, DatasetLost):
                    self._lost.add(event.site)
        elif isinstance(event, DecisionFailed):
            self._refused(event, state)
        elif isinstance(event, OBSERVED):
            name = event.job.id if isinstance(event, JobChanged) else getattr(event, "job_id", "")
            needs = self.needs.get(name)
            if needs is not None:
                self.changed = True
                if isinstance(event, JobEnded):
                    del self.needs[name]
                    self.reading.over(name)

    def _refused(self, event: DecisionFailed, state: State) -> None:
        """The cluster has not carried out a decision."""
        decision = event.decision
        if isinstance(decision, Copy):
            self.changed = True
            self.copies.failed(decision.dataset, decision.site, decision.source, event.message, state)
        elif isinstance(decision, Drop):
            self.copies.not_dropped(decision.dataset, decision.site)
            # The cluster knows of a use of it that is unknown here.
            self.reading.used[decision.dataset, decision.site] = state.now
            self.changed = True

    # ------------------------------------------------------------------ jobs

    def admitted(self, job: Job) -> str | None:
        """Why a job is refused, or None; from now on it is known what it reads."""
        needs = datasets_of(job.description.attributes)
        if not needs:
            self.needs.pop(job.id, None)
            return None
        self.needs[job.id] = needs
        self.changed = True
        if why := _unread(job) or self._why_never(job, needs):
            if job.status not in ON_NODES:
                del self.needs[job.id]
            return why
        return None

    def _why_never(self, job: Job, needs: tuple[str, ...]) -> str:
        """Why the job can never have its data; "" if it can."""
        here = why_never(self.catalogue, needs, self.catalogue.site_of(job.pool.name))
        if not here or not self._roams(job):
            return here
        if any(not why_never(self.catalogue, needs, site) for site in self.catalogue.sites):
            return ""
        return f"{here}; no other site can have its data"

    def barrier(self, job: Job, state: State) -> Barrier | None:
        """What keeps a job out of its queue until its data are there."""
        needs = self.needs.get(job.id)
        if needs is None:
            return None
        site = self.catalogue.site_of(job.pool.name)
        for dataset in needs:
            if not self.catalogue.has(dataset, site):
                self.changed = True
                return Barrier(partial(self._why, job.id, site, state), (KEY, site, dataset))
        return None

    def _why(self, job: str, site: str, state: State) -> str:
        needs = self.needs.get(job, ())
        if why := why_never(self.catalogue, needs, site):
            return f"it waits to go to another site: {why}"
        missing = self.catalogue.missing(needs, site)
        said = [self.copies.said(dataset, site, state.now) for dataset in missing[:_NAMED]]
        more = len(missing) - len(said)
        said += [f"{more} more"] if more else []
        return f"it waits for dataset{'s' if len(said) > 1 else ''} {' and '.join(said)}"

    def let_in(self, state: State) -> None:
        """Jobs whose dataset has arrived are asked about again; jobs in queues whose dataset is gone, too."""
        catalogue = self.catalogue
        if self._lost:
            lost, self._lost = self._lost, set()
            for pool in state.pools.values():
                if catalogue.site_of(pool.name) in lost:
                    state.bar_queued(pool)
        if catalogue.version == self._version:
            return
        for key in [key for key in state.barred if isinstance(key, tuple) and key[0] == KEY]:
            if catalogue.has(key[2], key[1]):
                state.lifted(key)

    # ------------------------------------------------------------------ copies

    def orders(self, state: State) -> Iterable[Decision] | None:
        """The copies that can begin now, and the removals that make room for them."""
        catalogue = self.catalogue
        now = state.now
        if not (self.changed or self._retry_at <= now or catalogue.version != self._version):
            return None
        self.changed, self._version = False, catalogue.version
        self._retry_at = self.copies.retry_at(now)
        waiting, reading = self._wishes(state)
        if not waiting:
            self.copies.delays.clear()
            return None
        filling = fill(catalogue, waiting, reading)
        return self.copies.orders(filling, self.needs, self.reading.used, now)

    def _wishes(self, state: State) -> tuple[list[Need], dict[str, set[str]]]:
        """What waiting jobs need, the first job first; and what is read at each site."""
        waiting: list[Job] = []
        reading: dict[str, set[str]] = {}
        for name in list(self.needs):
            job = state.jobs.get(name)
            if job is None:
                del self.needs[name]
            elif job.status in ON_NODES:
                reading.setdefault(self.catalogue.site_of(job.pool.name), set()).update(self.needs[name])
            elif job.bound_for or job.status is Status.PENDING or waits_for_data(job):
                waiting.append(job)
        return [
            Need(job.id, self.catalogue.site_of(job.bound_for or job.pool.name), self.needs[job.id])
            for job in self._in_turn(waiting)
        ], reading

    # ------------------------------------------------------------------ figures

    def figures(self) -> dict[str, float]:
        """Copies, drops, jobs' datasets that were there when the jobs came, and seconds that jobs waited for
        data."""
        copies, reading = self.copies, self.reading
        return {
            "copies": copies.copies,
            "bytes_copied": copies.bytes_copied,
            "failed_copies": copies.failed_copies,
            "drops": copies.drops,
            "replica_hits": reading.replica_hits,
            "replica_misses": reading.replica_misses,
            "seconds_waited": reading.seconds_waited,
        }


class Supplied(Plugin):
    """A plugin that may have a supply: the hooks by which the supply answers."""

    #: None: data are another plugin's matter, or the run has not begun.
    _supply: Supply | None = None

    @hookimpl
    def admit_job(self, job: Job) -> str | None:
        return self._supply.admitted(job) if self._supply is not None else None

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        return self._supply.barrier(job, state) if self._supply is not None else None

    @hookimpl
    def control(self, state: State) -> Iterable[Decision] | None:
        return self._supply.orders(state) if self._supply is not None else None


def _two_suppliers(first: str, second: str) -> str:
    instead = " (or set `copies: false` of follow)" if "follow" in (first, second) else ""
    return (
        f"plugins: expected one plugin that has datasets copied, found {first} and {second}; "
        f"leave one of them out{instead}"
    )


def _unread(job: Job) -> str:
    """A word for headway in the job's comment that nothing reads, if there is one: it may be a dataset."""
    unread = job.attribute("unread")
    return f"its comment: expected such as data=NAME,NAME and movable, found {unread[0]!r}" if unread else ""


def waits_for_data(job: Job) -> bool:
    """Whether data alone keep a waiting job out of its queue."""
    barrier = job.barrier
    key = None if barrier is None else barrier.key
    return isinstance(key, tuple) and key[0] == KEY
