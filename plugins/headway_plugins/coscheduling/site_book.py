"""A site's book: users' reservations beside running jobs and the queue.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 3: the interface that the paper's scheduler Catalina offers users. What
is free is :mod:`.queue_plan`, what is allowed :mod:`.site_policy`.

Decisions on what the paper leaves open:

- A reservation starts at a whole grain of the site and occupies whole grains; its own end is what must be
  before the latest end.
- A site with fixed starts denies with `place` what has no room at the start that it is given.
- With ``exact`` false the start is the earliest with a node free throughout; granted is what is free
  throughout, at most the nodes asked for.
- HELD becomes BOUND by ``bind``, ACTIVE after its start if it was bound, ENDED at its end; lost nodes make it
  DEGRADED.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headway.resources.profile import Profile
from headway_plugins.coscheduling.calls import (
    Answer,
    Call,
    Carried,
    Denied,
    Failed,
    Found,
    Granted,
    Shown,
)
from headway_plugins.coscheduling.queue_plan import (
    Busy,
    Queued,
    free_throughout,
    in_order,
    on_grain,
    place,
    plan,
)
from headway_plugins.coscheduling.site_policy import SitePolicy, at_the_place, before_the_place, cut


class _Kept(msgspec.Struct):
    """A reservation in the book."""

    name: str
    account: str
    nodes: int
    start: float
    end: float
    #: The job that it is bound to.
    job: str = ""
    degraded: bool = False


class _Plan(msgspec.Struct):
    """What is left beside the queue."""

    now: float
    profile: Profile
    starts: dict[str, float]
    #: Reservations that were placed into it after it was made.
    added: set[str]


class SiteBook:
    """One site; the caller says what time it is."""

    def __init__(
        self,
        nodes: int,
        busy: Iterable[Busy] = (),
        queue: Iterable[Queued] = (),
        *,
        grain: float = 0,
        min_duration: float = 0,
        fixed: bool = False,
        policy: SitePolicy | None = None,
        refuse_after: int | None = None,
    ) -> None:
        """``busy``: running jobs to their limits, and system reservations.

        ``grain``, ``min_duration``: seconds. ``refuse_after``: after so many answered sets all are denied.
        """
        self.nodes = nodes
        self.busy = list(busy)
        self.queue = list(queue)
        self.grain, self.min_duration, self.fixed = grain, min_duration, fixed
        self.policy = policy or SitePolicy()
        self._refuse_after = refuse_after
        self._sets = 0
        self._kept: dict[str, _Kept] = {}
        self._plan: _Plan | None = None
        #: How often the book was changed.
        self.version = 0

    # ------------------------------------------------------------------ requests

    def answer(self, call: Call, now: float) -> Answer:
        """Carry out one call of a search."""
        if call.kind == "set":
            return self.set(call, now)
        if call.kind == "cancel":
            self.cancel(call.name)
            return Carried()
        if call.kind == "bind":
            return self.bind(call.name, call.job, now)
        return Shown(tuple(self.show(now)))

    def set(self, call: Call, now: float) -> Granted | Denied:
        """Reserve at the earliest place."""
        self._forget(now)
        self._sets += 1
        if self._refuse_after is not None and self._sets > self._refuse_after:
            return Denied("refused")
        known = self._kept.get(call.name)
        if known is not None:
            return Granted(known.start, known.nodes)
        answer = self._earliest(call, now)
        if isinstance(answer, Granted):
            kept = _Kept(call.name, call.account, answer.nodes, answer.start, answer.start + call.duration)
            self._kept[call.name] = kept
            self.version += 1
            if self._plan is not None:
                self._plan.added.add(call.name)
                self._plan.profile.reserve(*self._span(kept))
        return answer

    def cancel(self, name: str) -> None:
        """Give the reservation back; a name that is not there is no error."""
        kept = self._kept.pop(name, None)
        if kept is None:
            return
        self.version += 1
        if self._plan is not None and name in self._plan.added:
            # It was placed into what was left, so it has moved no queued job.
            self._plan.added.remove(name)
            self._plan.profile.release(*self._span(kept))
        else:
            self._plan = None

    def bind(self, name: str, job: str, now: float) -> Carried | Failed:
        """Only this job may run in the reservation; the same again is no error."""
        self._forget(now)
        kept = self._kept.get(name)
        if kept is None:
            return Failed(f"there is no reservation {name!r}")
        if kept.job not in ("", job):
            return Failed(f"reservation {name!r} is bound to job {kept.job!r}")
        kept.job = job
        return Carried()

    def show(self, now: float) -> list[Found]:
        """All reservations that are not over, in the order of making."""
        self._forget(now)
        return [
            Found(kept.name, kept.nodes, kept.start, kept.end, _state(kept, now), kept.account)
            for kept in self._kept.values()
        ]

    # ------------------------------------------------------------------ the site's own doing

    def enqueue(self, job: Queued) -> None:
        """A job arrives; :meth:`starts` tells its planned start."""
        self.queue.append(job)
        self._change()

    def start(self, job: Queued, now: float) -> Busy:
        """A queued job starts; what it keeps busy to its limit."""
        self.queue.remove(job)
        busy = Busy(now, now + job.limit, job.nodes)
        self.busy.append(busy)
        self._change()
        return busy

    def release(self, busy: Busy) -> None:
        """A running job ends, maybe before its limit."""
        self.busy.remove(busy)
        self._change()

    def _change(self) -> None:
        self._plan = None
        self.version += 1

    def starts(self, now: float) -> dict[str, float]:
        """The planned start of each queued job."""
        return self._planned(now).starts

    def profile(self, now: float) -> list[tuple[float, int]]:
        """``(time, nodes used)`` by running jobs, reservations and planned jobs, a row for each change."""
        left = self._planned(now).profile
        rows: list[tuple[float, int]] = []
        for time, free in zip(left.times, left.free, strict=True):
            if not rows or rows[-1][1] != self.nodes - free:
                rows.append((time, self.nodes - free))
        return rows

    def lose(self, name: str, nodes: int = 0) -> None:
        """Nodes of a reservation fail; without nodes the site forgets it."""
        self._change()
        if nodes:
            self._kept[name].nodes, self._kept[name].degraded = nodes, True
        else:
            del self._kept[name]

    # ------------------------------------------------------------------ places

    def _earliest(self, call: Call, now: float) -> Granted | Denied:
        if call.nodes < 1 or call.duration <= 0 or call.duration < self.min_duration:
            return Denied("request")
        policy = self.policy
        held = sum(kept.account == call.account for kept in self._kept.values())
        rule = before_the_place(policy, call.nodes, call.exact, call.duration, held)
        if rule is not None:
            return Denied(rule)
        most = call.nodes if call.exact else cut(policy, call.nodes)
        profile = self._planned(now).profile
        start = self._place(profile, most if call.exact else min(most, 1), call, now)
        if start is None or most < 1:
            return Denied("place")
        granted = most
        if not call.exact:
            granted = min(most, free_throughout(profile, start, call.duration, self.grain))
        others = [(kept.start, kept.end, kept.nodes) for kept in self._kept.values()]
        rule = at_the_place(policy, (start, start + call.duration, granted), others, now)
        return Granted(start, granted) if rule is None else Denied(rule)

    def _place(self, profile: Profile, nodes: int, call: Call, now: float) -> float | None:
        earliest = max(call.earliest, now)
        start = place(profile, nodes, call.duration, earliest, call.latest, self.grain)
        return None if self.fixed and start != on_grain(earliest, self.grain) else start

    def _planned(self, now: float) -> _Plan:
        """The plan, made anew only where something changed."""
        if self._plan is None or self._plan.now != now:
            self._forget(now)
            kept = [Busy(*self._span(one)) for one in self._kept.values()]
            queue = in_order(self.queue, now, self.policy.xf_weight)
            profile, starts = plan(self.nodes, now, [*self.busy, *kept], queue)
            self._plan = _Plan(now, profile, starts, set())
        return self._plan

    def _span(self, kept: _Kept) -> tuple[float, float, int]:
        """What the reservation occupies."""
        return kept.start, on_grain(kept.end, self.grain), kept.nodes

    def _forget(self, now: float) -> None:
        """Drop what is over."""
        for name in [name for name, kept in self._kept.items() if kept.end <= now]:
            del self._kept[name]


def _state(kept: _Kept, now: float) -> str:
    if kept.degraded:
        return "DEGRADED"
    if not kept.job:
        return "HELD"
    return "ACTIVE" if kept.start < now else "BOUND"
