"""Leads the copies of a job that waits at several sites: one is started, and the others are removed.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 2. Which copy is the job is :mod:`.everywhere`'s.

Ours, so that no copy runs to its end beside another:

- Once a start of a copy is decided, no other copy starts until the site has refused that start. The decision
  is saved before the start is sent, so it holds over a crash, and while the site does not answer.
- After a restart no copy starts until each site that answers has told of its copy. A copy that its site does
  not list any more may have run, so the others wait until their user cancels the metajob.
- An order to go is repeated until the site tells that the copy is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from headway.decisions import Cancel, Decision, Kill, Start
from headway.events import (
    DecisionFailed,
    Event,
    JobEnded,
    JobRequeued,
    JobStarted,
    JobSubmitted,
)
from headway.state import Barrier, Job, State
from headway_plugins.coscheduling.everywhere import UNKNOWN, Copy, in_vain, the_job
from headway_plugins.coscheduling.live_metajob import Kept, LiveMetajob, Phase
from headway_plugins.coscheduling.machines import MachineOptions
from headway_plugins.coscheduling.metajob_course import Course, wake

#: Seconds until an order to go is repeated: at first, and at most.
_AGAIN, _LONGEST = 60.0, 600.0
#: Seconds until the start of a copy may be seen.
_SOON = 1.0


class EverywhereCourse:
    """Leads metajobs whose job has a copy at each site."""

    def __init__(
        self,
        course: Course,
        machines: Mapping[str, MachineOptions],
        by_job: Mapping[str, LiveMetajob],
        free: Callable[[LiveMetajob, State], None],
        *,
        patience: float,
    ) -> None:
        """``by_job``: metajobs by the jobs that wait for them. ``free``: lets the job of a metajob at rest go
        on by itself. ``patience``: seconds in which a site tells of its jobs after a restart."""
        self._course, self._machines, self._by_job, self._free = course, machines, by_job, free
        self._patience = patience
        #: Since when each pool is known in this run.
        self._known: dict[str, float] = {}
        #: Jobs that their sites have told of in this run.
        self._seen: set[str] = set()
        #: Of each copy that was ordered to go: how often, and when it is ordered again.
        self._orders: dict[str, tuple[int, float]] = {}
        #: Of each metajob the copy that may start; "": none, None: any.
        self._may: dict[str, str | None] = {}
        #: When the scheduler wakes for a metajob.
        self._alarms: dict[str, set[float]] = {}

    # ------------------------------------------------------------------ news

    def observe(self, event: Event) -> None:
        """Something happened to a job, perhaps to a copy."""
        if isinstance(event, DecisionFailed):
            self._refused(event.decision)
            return
        if not isinstance(event, JobSubmitted | JobStarted | JobRequeued | JobEnded):
            return
        job_id = event.job.id if isinstance(event, JobSubmitted) else event.job_id
        if isinstance(event, JobSubmitted):
            self._found_again(job_id)
        live, copy = self._copy(job_id)
        if live is None or copy is None:
            return
        self._seen.add(job_id)
        if isinstance(event, JobSubmitted):
            copy.appeared()
        elif isinstance(event, JobStarted):
            copy.began(event.time)
            # It was waiting when it was ordered to go.
            self._orders.pop(job_id, None)
        elif isinstance(event, JobRequeued):
            copy.went_back()
        else:
            lost = event.outcome == "vanished" and copy.start is None and live.kept.chosen == job_id
            copy.over(UNKNOWN if lost else event.outcome)
            self._orders.pop(job_id, None)
        self._course.promises += 1

    def _found_again(self, job_id: str) -> None:
        """A copy is listed again after its metajob had come to rest without it: it is removed."""
        live = self._by_job.get(job_id)
        if live is not None and live.resting and live.kept.everywhere:
            kept = live.kept
            kept.phase, kept.after = "giving back", kept.phase

    def _refused(self, decision: Decision) -> None:
        if isinstance(decision, Cancel | Kill):
            _, copy = self._copy(decision.job_id)
            if copy is not None:
                copy.orders = max(copy.orders - 1, 0)
                self._course.promises += 1

    def decided(self, decisions: Iterable[Decision], state: State) -> None:
        """A copy whose start is sent to its site is the only copy that may start."""
        for one in decisions:
            if isinstance(one, Start):
                live, copy = self._copy(one.job_id)
                if live is not None and copy is not None and live.kept.phase == "queued":
                    live.kept.chosen = copy.job
                    self._course.promises += 1
                    # The others go as soon as it runs, also where nothing else happens.
                    self._wake(live, state.now + _SOON, state)

    def revise(self, decisions: list[Decision]) -> list[Decision] | None:
        """Of copies that were to start in one step the copy of the first site does; None: no change."""
        starts: dict[str, list[tuple[int, Start]]] = {}
        for one in decisions:
            if isinstance(one, Start):
                live, copy = self._copy(one.job_id)
                if live is not None and copy is not None:
                    place = live.kept.copies.index(copy)
                    starts.setdefault(live.kept.id, []).append((place, one))
        out = {
            id(one)
            for several in starts.values()
            for place, one in several
            if place > min(others for others, _ in several)
        }
        return [one for one in decisions if id(one) not in out] if out else None

    def _copy(self, job_id: str) -> tuple[LiveMetajob | None, Copy | None]:
        live = self._by_job.get(job_id)
        if live is None or live.resting or not live.kept.everywhere:
            return None, None
        return live, next(copy for copy in live.kept.copies if copy.job == job_id)

    # ------------------------------------------------------------------ a step

    def barrier(self, live: LiveMetajob, job: Job) -> Barrier | None:
        """Why a copy may not start now."""
        may = self._may.get(live.kept.id, "")
        if live.resting or may is None or may == job.id:
            return None
        return Barrier(partial(_why_not, live.kept), ("metajob", live.kept.id))

    def lead(self, live: LiveMetajob, state: State) -> Iterator[Decision]:
        """What is to be done now."""
        kept = live.kept
        self._miss(live, state)
        self._choose(live, state)
        if kept.phase in ("started", "giving back"):
            yield from self._remove(live, state)
            others = [copy for copy in kept.copies if copy.job != kept.chosen]
            if all(copy.ended for copy in others):
                self._rest(live, state)
        self._open(live, state)

    def give_up(self, live: LiveMetajob, after: Phase, why: str) -> None:
        """All copies go but the one that runs; then ``after`` comes."""
        kept = live.kept
        running = the_job(kept.copies, "")
        live.give_back(after, why)
        kept.chosen = running.job if running is not None else ""
        if running is not None and not running.ended:
            kept.why += f"; job {running.job} runs, which ends with its time"
        self._course.promises += 1

    def _miss(self, live: LiveMetajob, state: State) -> None:
        """Copies that their sites should have told of, and have not."""
        for copy in live.kept.copies:
            if copy.job in state.jobs:
                self._seen.add(copy.job)
            if copy.ended or copy.job in self._seen or copy.pool not in state.pools:
                continue
            until = self._known.setdefault(copy.pool, state.now) + self._patience
            if until > state.now:
                self._wake(live, until, state)
            else:
                copy.over("cancelled" if copy.orders else UNKNOWN)
                self._course.promises += 1

    def _choose(self, live: LiveMetajob, state: State) -> None:
        """Which copy is the job, and what follows for the metajob."""
        kept = live.kept
        if kept.phase == "giving back":
            return
        before = kept.phase, kept.chosen
        if kept.phase == "queued" and kept.chosen and _waits(state.jobs.get(kept.chosen)):
            # It was not started after all.
            kept.chosen = ""
        found = the_job(kept.copies, kept.chosen)
        unknown = [copy for copy in kept.copies if copy.ended == UNKNOWN]
        if found is not None and (found.start is not None or kept.phase == "started"):
            kept.phase, kept.chosen, kept.why = "started", found.job, ""
        else:
            kept.chosen = found.job if found is not None and not found.ended else ""
            kept.phase, kept.why = "queued", ""
            if unknown:
                kept.phase = "undecided"
                kept.why = f"{unknown[0].machine} has no job {unknown[0].job} any more, which may have run"
            elif all(copy.ended for copy in kept.copies):
                live.rest("over", state.now)
                kept.why = "no copy is left: each was cancelled or refused before it ran"
                self._free(live, state)
            elif not kept.chosen:
                self._in_time(live, state)
        if before != (kept.phase, kept.chosen):
            self._course.promises += 1

    def _in_time(self, live: LiveMetajob, state: State) -> None:
        """Give up when no copy can end before the latest end."""
        metajob = live.kept.metajob
        last = metajob.latest - metajob.duration
        if state.now > last:
            self.give_up(live, "refused", "no copy had started early enough for the latest end")
            return
        # A start at the last moment is in time.
        self._wake(live, metajob.earliest if state.now < metajob.earliest else last + 1.0, state)

    def _wake(self, live: LiveMetajob, time: float, state: State) -> None:
        """Have a step at that time, once."""
        alarms = {one for one in self._alarms.get(live.kept.id, ()) if one > state.now}
        if time not in alarms:
            wake(state, self._machines, time)
        self._alarms[live.kept.id] = {*alarms, time}

    def _remove(self, live: LiveMetajob, state: State) -> Iterator[Decision]:
        """Order the other copies to go, and order it again."""
        kept = live.kept
        for copy in kept.copies:
            job = state.jobs.get(copy.job)
            if copy.job == kept.chosen or copy.ended or job is None:
                # A copy that is not there goes when its site tells of it.
                continue
            tries, again = self._orders.get(copy.job, (0, state.now))
            if again <= state.now:
                again = state.now + min(_AGAIN * 2**tries, _LONGEST)
                self._orders[copy.job] = tries + 1, again
                copy.orders += 1
                self._course.promises += 1
                why = f"copy {kept.chosen} is the job" if kept.chosen else f"metajob {kept.id} is given up"
                yield Kill(copy.job, why) if job.entries is not None else Cancel(copy.job, why)
            self._wake(live, again, state)

    def _rest(self, live: LiveMetajob, state: State) -> None:
        """No copy is left beside the job."""
        kept = live.kept
        chosen = next((copy for copy in kept.copies if copy.job == kept.chosen), None)
        if kept.phase == "giving back":
            live.rest(kept.after, state.now)
        elif chosen is None or chosen.ended:
            live.rest("over", state.now)
        else:
            return
        for copy in in_vain(kept.copies):
            kept.why = f"job {copy.job} of {copy.machine} came to its end as well, before it was seen"
            state.anomalies.append(f"metajob {kept.id} of {kept.user}: {kept.why}")
        self._course.promises += 1
        self._free(live, state)

    def _open(self, live: LiveMetajob, state: State) -> None:
        """Let the copies know which of them may start."""
        kept = live.kept
        if live.resting:
            self._may.pop(kept.id, None)
            self._alarms.pop(kept.id, None)
            for copy in kept.copies:
                self._orders.pop(copy.job, None)
                self._seen.discard(copy.job)
            return
        may: str | None = None
        if kept.phase != "queued" or kept.chosen:
            may = kept.chosen
        elif state.now < kept.metajob.earliest or any(self._unheard(copy, state) for copy in kept.copies):
            may = ""
        if self._may.get(kept.id, "") != may or kept.id not in self._may:
            self._may[kept.id] = may
            state.lifted(("metajob", kept.id))
            for pool in dict.fromkeys(copy.pool for copy in kept.copies):
                if pool in state.pools:
                    state.bar_queued(state.pools[pool])

    def _unheard(self, copy: Copy, state: State) -> bool:
        """Whether a site that answers is still to tell of its copy."""
        return not copy.ended and copy.job not in self._seen and copy.pool in state.pools


def _why_not(kept: Kept) -> str:
    if kept.phase == "undecided":
        why = f"{kept.why}; `headway metajob cancel {kept.id}` removes its copies"
    elif kept.phase == "giving back":
        why = "it is being removed"
    elif kept.chosen:
        why = f"its copy {kept.chosen} was started"
    else:
        why = "its earliest start has not come, or a site has not told yet what became of its copy"
    return f"it is a copy of metajob {kept.id}: {why}"


def _waits(job: Job | None) -> bool:
    return job is not None and job.entries is None


def rows(live: LiveMetajob, state: State) -> list[dict[str, Any]]:
    """All copies of a metajob in JSON values, in the order of the sites."""
    kept = live.kept
    found = []
    for copy in kept.copies:
        job = state.jobs.get(copy.job)
        found.append({
            "machine": copy.machine,
            "job": copy.job,
            "state": _state_of(copy, kept.chosen, job),
            "is_the_job": copy.job == kept.chosen and copy.start is not None,
            "start": copy.start,
            "ended": copy.ended,
            "why": state.why_waiting(job) if job is not None and copy.start is None else "",
        })  # fmt: skip
    return found


def _state_of(copy: Copy, chosen: str, job: Job | None) -> str:
    if copy.ended:
        return "unknown" if copy.ended == UNKNOWN else "ended"
    if job is None:
        return "away"
    if copy.orders:
        return "going"
    if copy.start is not None:
        return "running"
    return "starting" if copy.job == chosen and job.entries is not None else "waiting"
