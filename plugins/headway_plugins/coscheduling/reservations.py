"""Advance reservations that users make themselves, within limits that their operator sets.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling
Strategies for Parallel Processing, 2005: the local part, which the paper's scheduler Catalina has.
(`headway reserve`, `headway unreserve`.)

A reservation is granted if its account stays within its limits (number, nodes, duration, and
node-seconds within a window from now on) and if there is room: nodes that no running job keeps
beyond the start and that no other reservation takes, with enough left for dedicated jobs (jobs with
the attribute ``requested_start``). Operators are not limited.

Decisions on what the paper leaves open:

- Running jobs are reckoned with until their limits, which is what batch systems do, not until their
  predicted ends. Waiting batch jobs yield to a reservation; the limits bound how much.
- A user's account is the first account in ``accounts`` that lists the user. A user without an account is an
  account with the default limits. Only operators reserve for other users.
- The paper gives no values. By default an account has 5 reservations, each of at most a quarter of the
  pool and 12 hours, and together a tenth of the pool's node-seconds in the next 7 days. A
  reservation must end within that window, so that nothing escapes the budget.
- On a flat pool, processors are the nodes that limits count. On nodes, whole nodes are reserved, as few
  as hold the processors asked for.
- Reservations of metajobs (plugin `metajobs`) count for the accounts of their users.
- A reservation that the batch system lost before its end is made again, on its nodes or on others, and
  nodes of it that go down are replaced; if that is impossible the log says so, and it is tried again
  every five minutes. A reservation that the batch system changed is taken as changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from headway.decisions import Answer, Decision, Reserve, Unreserve
from headway.events import (
    DecisionFailed,
    Event,
    ReservationEnded,
    ReservationMade,
    ReservationRequested,
    ReservationReturned,
)
from headway.hookspecs import Plugin, hookimpl
from headway.model import Reservation
from headway.plugins import Traits
from headway.state import PoolState, State, Status
from headway_plugins.coscheduling.quotas import QuotaOptions, of_users, size_of

_RETRY = 300.0
#: A start that is past by no more than this is taken as "now", seconds.
_GRACE = 60.0


#: What users ask for, and what becomes of it.
_OBSERVED: tuple[type[Event], ...] = (
    ReservationRequested, ReservationReturned, ReservationMade, ReservationEnded, DecisionFailed,
)  # fmt: skip


class ReservationOptions(QuotaOptions):
    """Options of users' reservations."""


class _Kept(msgspec.Struct):
    """A reservation that a user has."""

    reservation: Reservation
    user: str
    account: str
    pool: str
    #: What the user asked for; one of them is 0.
    nodes: int
    processors: int
    #: The cluster has confirmed it once.
    confirmed: bool = False
    returned: bool = False
    #: After it was lost and could not be made again: not to be tried before.
    retry: float = 0.0


class Reservations(Plugin):
    """Users reserve nodes or processors for a time, within limits per account."""

    Options = ReservationOptions
    traits = Traits(
        needs=(Reserve, Unreserve),
        observes=_OBSERVED,
        paper=(
            "K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations, Job "
            "Scheduling Strategies for Parallel Processing, 2005"
        ),
    )

    def __init__(self, options: ReservationOptions) -> None:
        super().__init__(options)
        self._kept: dict[str, _Kept] = {}
        #: Names of reservations that an earlier run knew and that were not looked at yet.
        self._restored: set[str] = set()
        self._number = 0
        self._asked: list[ReservationRequested | ReservationReturned] = []
        self._answers: dict[str, Answer] = {}

    # ------------------------------------------------------------------ news

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, ReservationRequested | ReservationReturned):
            self._asked.append(event)
        elif isinstance(event, ReservationMade):
            kept = self._kept.get(event.reservation.id)
            if kept is not None:
                kept.reservation, kept.confirmed = event.reservation, True
        elif isinstance(event, ReservationEnded):
            if event.reservation_id in self._kept:
                self._kept[event.reservation_id].retry = 0.0
        elif isinstance(event, DecisionFailed):
            self._failed(event, state)

    def _failed(self, event: DecisionFailed, state: State) -> None:
        decision = event.decision
        if isinstance(decision, Unreserve) and decision.reservation_id in self._kept:
            self._kept[decision.reservation_id].returned = False
        elif isinstance(decision, Reserve):
            kept = self._kept.get(decision.reservation.id)
            if kept is None:
                return
            if kept.confirmed:
                self._cannot(kept, event.message, state)
                known = state.reservations.get(decision.reservation.id)
                kept.reservation = known if known is not None else kept.reservation
            else:
                # Its user was told.
                del self._kept[decision.reservation.id]

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        self._answers.clear()
        yield from self._keep(state)
        asked, self._asked = self._asked, []
        for request in asked:
            answer = (
                self._reserve(request, state)
                if isinstance(request, ReservationRequested)
                else self._unreserve(request, state)
            )
            self._answers[request.request] = answer
            # One by one: the next request of this step sees what is reserved.
            yield from answer.decisions

    @hookimpl
    def answer(self, request: str) -> Answer | None:
        return self._answers.pop(request, None)

    # ------------------------------------------------------------------ keeping

    def _keep(self, state: State) -> Iterator[Decision]:
        """Make again what the batch system lost; forget what is over."""
        for name in self._restored & self._kept.keys() & state.reservations.keys():
            self._kept[name].reservation, self._kept[name].confirmed = state.reservations[name], True
        for name in self._restored & self._kept.keys():
            # The clock may have been set back since it was written down.
            self._kept[name].retry = min(self._kept[name].retry, state.now + _RETRY)
        self._restored.clear()
        for name, kept in list(self._kept.items()):
            if name in state.reservations and kept.reservation.end > state.now:
                mended = self._mended(kept, state) if kept.retry <= state.now else None
                if mended is not None:
                    yield mended
                continue
            if kept.reservation.end <= state.now or kept.returned or not kept.confirmed:
                # Over; or it never was: forbidden by a plugin, or decided just before a crash.
                del self._kept[name]
            elif kept.retry <= state.now:
                decision = self._again(kept, state)
                if decision is not None:
                    yield decision

    def _again(self, kept: _Kept, state: State) -> Decision | None:
        lost = kept.reservation
        pool = state.pools.get(kept.pool)
        if pool is None:
            return None
        # Not at every step, in case it is not carried out.
        kept.retry = state.now + _RETRY
        start = max(lost.start, state.now)
        found, why = _room(state, pool, start, lost.end, kept.nodes, kept.processors, prefer=lost.nodes)
        if found is None:
            self._cannot(kept, why, state)
            return None
        processors, nodes = found
        kept.reservation = msgspec.structs.replace(lost, start=start, processors=processors, nodes=nodes)
        return Reserve(kept.reservation, f"the batch system lost reservation {lost.id} of {kept.user}")

    def _mended(self, kept: _Kept, state: State) -> Decision | None:
        """The reservation with other nodes in the place of nodes that are down; None if all is well."""
        table, ours = state.nodes, kept.reservation
        down = [n for n in ours.nodes if n in table.index and not table.available[table.index[n]]]
        pool = state.pools.get(kept.pool)
        if not down or pool is None or kept.returned:
            return None
        kept.retry = state.now + _RETRY
        processors = sum(table.descriptions[name].processors for name in down) if kept.processors else 0
        start = max(ours.start, state.now)
        found, why = _room(state, pool, start, ours.end, 0 if processors else len(down), processors)
        if found is None:
            self._cannot(kept, why, state)
            return None
        nodes = tuple(sorted({*ours.nodes, *found[1]} - {*down}, key=table.index.__getitem__))
        kept.reservation = msgspec.structs.replace(ours, nodes=nodes)
        return Reserve(kept.reservation, f"nodes {', '.join(down)} of reservation {ours.id} cannot be used")

    def _cannot(self, kept: _Kept, why: str, state: State) -> None:
        """Report a reservation that could not be made whole again, and come back to it."""
        kept.retry = state.now + _RETRY
        name = kept.reservation.id
        what = "has unusable nodes" if name in state.reservations else "was lost and cannot be made again"
        state.anomalies.append(
            f"reservation {name} of {kept.user} {what}: {why}; it is tried again in {_RETRY:.0f} s"
        )
        if kept.pool in state.pools:
            state.wake_at(kept.retry, state.pools[kept.pool])

    # ------------------------------------------------------------------ requests

    def _reserve(self, request: ReservationRequested, state: State) -> Answer:
        user = request.beneficiary or request.user
        if user != request.user and not request.operator:
            return _refused(f"only an operator may reserve for {user}")
        if (request.nodes > 0) == (request.processors > 0):
            return _refused("expected either nodes or processors")
        pool = state.pools.get(request.pool) if request.pool else None
        # A closed pool, such as a queue whose jobs headway does not start, must be named to be meant.
        ours = [name for name, one in state.pools.items() if one.description.open] or list(state.pools)
        if pool is None and not request.pool and len(ours) == 1:
            pool = state.pools[ours[0]]
        if pool is None:
            known = ", ".join(sorted(ours))
            what = (
                f"there is no pool {request.pool!r}"
                if request.pool
                else ("the request names no pool, and there are several")
            )
            return _refused(f"{what}; expected one of {known}")
        if request.start < state.now - _GRACE:
            return _refused(f"the requested start is {state.now - request.start:.0f} s in the past")
        start = max(request.start, state.now)
        end = start + request.duration
        try:
            account = self.options.account_of(user, request.account, operator=request.operator)
        except LookupError as error:
            return _refused(str(error.args[0]))
        found, why = _room(state, pool, start, end, request.nodes, request.processors)
        if not request.operator:
            wanted = _units(pool, found, request)
            excess = self._excess(account, pool, state, start, end, wanted)
            if excess:
                return _refused(excess)
        if found is None:
            return _refused(why)
        processors, nodes = found
        name = self._name(state)
        reservation = Reservation(
            id=name, start=start, end=end, pool=pool.name, processors=processors, nodes=nodes,
            users=(user,), ours=True, reason=f"asked for by {request.user}",
        )  # fmt: skip
        self._kept[name] = _Kept(reservation, user, account, pool.name, request.nodes, request.processors)
        what = ", ".join(nodes) if nodes else f"{processors} processors"
        return Answer(
            "accepted",
            f"reservation {name}: {what} for {end - start:.0f} s",
            (Reserve(reservation, f"{user} reserves"),),
        )

    def _unreserve(self, request: ReservationReturned, state: State) -> Answer:
        name = request.reservation_id
        kept = self._kept.get(name)
        reservation = state.reservations.get(name)
        if kept is None and (reservation is None or not reservation.ours):
            return _refused(f"there is no reservation {name!r} of headway's")
        if kept is None and reservation is not None and reservation.job_id:
            return _refused(
                f"reservation {name} is kept for dedicated job {reservation.job_id}; cancel the job"
            )
        owner = kept.user if kept is not None else ""
        if not request.operator and owner != request.user:
            return _refused(f"reservation {name} belongs to another user")
        if kept is not None:
            kept.returned = True
            if reservation is None:
                del self._kept[name]
                return Answer("accepted", f"reservation {name} is given back; the batch system had lost it")
        decision = Unreserve(name, f"{request.user} gives it back")
        return Answer("accepted", f"reservation {name} is given back", (decision,))

    def _excess(
        self, account: str, pool: PoolState, state: State, start: float, end: float, wanted: int
    ) -> str:
        """Which limit of the account would be exceeded; "" if none."""
        limits = self.options.limits_of(account)
        window = self.options.window
        size = _size(pool, state)
        mine = [
            kept.reservation for kept in self._kept.values() if kept.account == account and not kept.returned
        ]
        # Of metajobs, for example.
        mine += [one for owner, one in of_users(state, self.options, self._kept) if owner == account]
        if len(mine) >= limits.max_reservations:
            return f"account {account} has {len(mine)} reservations, {limits.max_reservations} are allowed"
        most = limits.max_nodes if limits.max_nodes is not None else max(1, size // 4)
        things = "processors" if pool.flat else "nodes"
        if wanted > most:
            return f"{wanted} {things} asked for, account {account} may have {most} in a reservation"
        if end - start > limits.max_duration:
            return f"{end - start:.0f} s asked for, account {account} may have {limits.max_duration:.0f} s"
        horizon = state.now + window
        if end > horizon:
            return (
                f"the reservation ends more than {window:.0f} s from now, the longest time ahead for "
                "reservations"
            )
        budget = limits.max_node_seconds if limits.max_node_seconds is not None else size * window / 10
        used = sum(size_of(one) * max(0.0, min(one.end, horizon) - max(one.start, state.now)) for one in mine)
        more = wanted * (end - start)
        if used + more > budget:
            return (
                f"{more:.0f} node-seconds asked for, account {account} has {max(budget - used, 0):.0f} of "
                f"{budget:.0f} left in the next {window:.0f} s"
            )
        return ""

    def _name(self, state: State) -> str:
        while True:
            self._number += 1
            name = f"r{self._number}"
            if name not in state.reservations and name not in self._kept:
                return name

    # ------------------------------------------------------------------ over a restart

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {"number": self._number, "kept": [msgspec.to_builtins(kept) for kept in self._kept.values()]}

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._number = saved["number"]
        kept = (msgspec.convert(one, _Kept) for one in saved["kept"])
        self._kept = {one.reservation.id: one for one in kept}
        self._restored = set(self._kept)


def _refused(reason: str) -> Answer:
    return Answer("refused", reason)


def _units(pool: PoolState, found: tuple[int, tuple[str, ...]] | None, request: ReservationRequested) -> int:
    """What a request counts for in limits, which are looked at whether there is room or not."""
    if pool.flat:
        return request.processors or request.nodes
    if found is not None:
        return len(found[1])
    return request.nodes or 1


def _size(pool: PoolState, state: State) -> int:
    """A pool's size in the unit of the limits."""
    return pool.total if pool.flat else int((state.nodes.pool_mask(pool.name) & state.nodes.available).sum())


def _room(
    state: State,
    pool: PoolState,
    start: float,
    end: float,
    nodes: int,
    processors: int,
    prefer: tuple[str, ...] = (),
) -> tuple[tuple[int, tuple[str, ...]] | None, str]:
    """Processors (flat pool) or nodes for [start, end), or None and why not."""
    left = _left_beside_dedicated(state, pool, start, end)
    if pool.flat:
        need = processors or nodes
        if left < need:
            return None, f"{need} processors asked for, {max(left, 0)} are free for the whole time"
        return (need, ()), ""
    free = _free_nodes(state, pool, start, end)
    if len(pool.domain.pools) > 1:
        free = _sparing_others(state, pool, start, end, sorted(free, key=lambda name: name not in prefer))
    sizes = {name: state.nodes.descriptions[name].processors for name in free}
    if nodes:
        chosen = sorted(free, key=lambda name: name not in prefer)[:nodes]
        if len(chosen) < nodes:
            return None, f"{nodes} nodes asked for, {len(free)} are free for the whole time"
    else:
        chosen = []
        for name in sorted(free, key=lambda name: (name not in prefer, -sizes[name])):
            if sum(sizes[one] for one in chosen) >= processors:
                break
            chosen.append(name)
        found = sum(sizes[one] for one in chosen)
        if found < processors:
            return None, (
                f"{processors} processors asked for, whole nodes with {found} are free for the whole time"
            )
    if sum(sizes[name] for name in chosen) > left:
        return None, "the reservation would take processors that dedicated jobs need at that time"
    return (0, tuple(sorted(chosen, key=state.nodes.index.__getitem__))), ""


def _left_beside_dedicated(state: State, pool: PoolState, start: float, end: float) -> int:
    """The pool's processors that neither jobs, nor reservations, nor dedicated jobs need in [start, end)."""
    profile = state.pool_profile(pool)
    for job in state.jobs.values():
        wanted = job.attribute("requested_start") if job.status is Status.WAITING else None
        if wanted is None or job.domain is not pool.domain:
            continue
        if not job.barred and state.kept_for(job) is None:
            begin = max(float(wanted), state.now)
            profile.reserve(begin, begin + job.expected_runtime, state.most_in(pool, job))
    return profile.minimum(start, end)


def _sparing_others(state: State, pool: PoolState, start: float, end: float, free: list[str]) -> list[str]:
    """The nodes that can be taken in turn while each pool that shares nodes with ``pool`` keeps what its own
    dedicated jobs need."""
    left = {other.name: _left_beside_dedicated(state, other, start, end) for other in pool.domain.pools}
    found = []
    known = state.nodes.descriptions
    for name in free:
        others = [other for other in known[name].pools if other in left and other != pool.name]
        size = known[name].processors
        if all(left[other] >= size for other in others):
            found.append(name)
            for other in others:
                left[other] -= size
    return found


def _free_nodes(state: State, pool: PoolState, start: float, end: float) -> list[str]:
    """Nodes that no job has at any moment of [start, end), in the table's order."""
    taken: set[str] = set()
    for job in state.running_jobs():
        limit = (job.start_time if job.start_time is not None else state.now) + job.paused + job.estimate
        if limit > start or start <= state.now:
            taken.update(name for name, _ in job.placement)
    for other in state.reservations.values():
        if other.start < end and start < other.end:
            taken.update(other.nodes)
    usable = state.nodes.pool_mask(pool.name) & state.nodes.available
    return [name for at, name in enumerate(state.nodes.names) if usable[at] and name not in taken]
