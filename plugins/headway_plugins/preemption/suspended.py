"""Jobs that were suspended to make room: whose they are, and when they run again.

The plugin resumes only the jobs that it has suspended. A suspension is a promise to the job: it is saved
before the job is suspended, so a daemon that was killed finds it again. The batch system tells since when a
job is suspended. If that time has changed over a restart, a user or an operator has resumed and suspended the
job, and the plugin leaves the job to them.

Decisions:

- A suspended job runs again on its own nodes as soon as all its processors are free there at once, the nodes
  can be used, and nothing is reserved there before its end. Batch systems do not look at that: they let the
  job run beside any other job that is there.
- From the moment at which that is expected its processors are kept for it, before all waiting jobs. So its
  return may delay jobs that were booked without it. A job that may take its place may do so again while it is
  suspended, as long as it is not suspended for longer than ``longest`` in all.
- A suspended job keeps its memory all the time, also in what is reckoned for later.
- The plugin leaves alone a job that a user or an operator has resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from headway.decisions import Resume
from headway.model import Placement, Request
from headway.state import Job, State, Status
from headway.view import View

_INF = float("inf")

#: By so much two tellings of one moment may differ, seconds: batch systems tell whole seconds.
_SAME = 1.5
#: So long after it was decided a suspension may still come, seconds.
_LATE = 600.0
#: And so long after it was told to run again it is told once more, seconds.
_AGAIN = 60.0


@dataclass
class Held:
    """A job that was told to stand aside. Times are absolute seconds."""

    #: When it had started: this run of it.
    started: float | None
    #: The id of the job that it makes room for.
    job: str
    #: When that was decided.
    told: float
    #: Seconds that it may be suspended in all.
    longest: float
    #: Since when it is suspended; None: no event said that it is.
    since: float | None = None
    #: When it was told to run again; None: it was not.
    resumed: float | None = None
    #: It is not told again before.
    not_before: float = 0.0
    #: That it is suspended for longer than it should be was said.
    said: bool = False


class Suspended:
    """The jobs that were suspended, and the jobs that run again, since when."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        #: By id of a job that runs again: its start, and since when.
        self._again: dict[str, tuple[float | None, float]] = {}
        #: The places that are kept for them, by job.
        self._kept: dict[str, list[Job]] = {}
        #: How often this has changed, for the journal.
        self.changes = 0

    # ------------------------------------------------------------------ over a restart

    def saved(self) -> dict[str, Any]:
        """All that a restart must not lose, as JSON values."""
        held = {name: asdict(held) for name, held in self._held.items()}
        return {"held": held, "again": {name: list(again) for name, again in self._again.items()}}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take up what :meth:`saved` gave."""
        self._held = {name: Held(**held) for name, held in saved["held"].items()}
        self._again = {name: (again[0], again[1]) for name, again in saved["again"].items()}

    # ------------------------------------------------------------------ what happens to them

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def get(self, name: str) -> Held | None:
        """What is known of a job that was told to stand aside."""
        return self._held.get(name)

    def told(self, job: Job, held: Held) -> None:
        """A job is told to stand aside."""
        self._held[job.id] = held
        self.changes += 1

    def forget(self, name: str) -> Held | None:
        """It is not ours any more; what was known of it."""
        self._kept.pop(name, None)
        held = self._held.pop(name, None)
        self.changes += held is not None
        return held

    def stands(self, job: Job, time: float, state: State) -> str:
        """The job is suspended, since ``time``. If this plugin suspended it, other jobs may have its
        processors. Return what an operator should know; "" for nothing."""
        held = self._held.get(job.id)
        if held is None:
            return ""
        if held.started != job.start_time or (held.since is not None and abs(time - held.since) > _SAME):
            self.forget(job.id)
            return f"job {job.id} was suspended by another program or user, which has to resume it"
        held.since, held.resumed = time, None
        self.changes += 1
        state.lend(job)
        return ""

    def runs(self, job: Job, time: float) -> str:
        """A job runs again since ``time``. What an operator should know of that; "" if it is as decided."""
        held = self.forget(job.id)
        if held is None:
            return ""
        self._again[job.id] = (job.start_time, time)
        if held.resumed is None:
            return (
                f"job {job.id}, suspended for job {held.job}, was resumed or cancelled by another program "
                "or user"
            )
        return ""

    def ran_since(self, job: Job) -> float:
        """Since when a running job runs without having been suspended (absolute seconds)."""
        started, since = self._again.get(job.id, (None, 0.0))
        begin = job.start_time or 0.0
        return since if started == job.start_time and since > begin else begin

    def look_after(self, state: State) -> list[str]:
        """Forget the jobs that time has settled; return what an operator should know."""
        said = []
        for name, held in list(self._held.items()):
            job = state.jobs.get(name)
            if job is None or job.start_time != held.started:
                self.forget(name)
            elif job.status is not Status.SUSPENDED:
                if held.since is not None:
                    said.append(self.runs(job, state.now))
                elif state.now > held.told + _LATE:
                    self.forget(name)
            elif held.resumed is not None and job.lends:
                # A veto stopped the resume, so the job was not told.
                self.not_resumed(name)
            elif held.resumed is not None and state.now >= held.not_before:
                said.append(f"job {name} was resumed and does not run; it is resumed again")
                state.take_back(Resume(name))
                self.not_resumed(name)
        for name in [name for name in self._again if name not in state.jobs]:
            del self._again[name]
        return [line for line in said if line]

    def too_long(self, state: State) -> Iterator[str]:
        """Notices of jobs that are suspended for too long and were not told to run again, once each."""
        for name, held in self._held.items():
            job = state.jobs.get(name)
            if job is None or job.status is not Status.SUSPENDED or job.start_time != held.started:
                continue
            told = held.said or held.since is None or held.resumed is not None
            if not told and self.over(job, held, state.now) > 0:
                held.said = True
                self.changes += 1
                why = state.why_not_resumed(job) or "other jobs are booked before it"
                yield (
                    f"job {name} is suspended for longer than {held.longest:g} s (longest), "
                    f"for job {held.job}: {why}"
                )

    def over(self, job: Job, held: Held, now: float) -> float:
        """By how much it is suspended for longer than it should be, seconds."""
        return job.paused + now - (job.suspended_since or now) - held.longest

    # ------------------------------------------------------------------ when they run again

    def waiting(self, state: State) -> Iterator[tuple[Job, Held]]:
        """The jobs that lend their processors, first the job that has lent them longest."""
        for name, held in self._held.items():
            job = state.jobs.get(name)
            if job is not None and job.lends:
                yield job, held

    def keep_places(self, view: View, state: State) -> None:
        """Book what they need to run again."""
        for job, _ in self.waiting(state):
            if job.domain is not view.domain:
                continue
            left = max(state.remaining(job), 1.0)
            kept = self._kept[job.id] = list(_stand_ins(job, left))
            start = max((view.book(one).start for one in kept), default=view.now)
            # Until then it has its memory, and licences.
            job.expected_end = start + left
            if view.now < start < _INF:
                state.wake_at(start, job.pool)

    def stand_in_of(self, job: Job) -> str:
        """The suspended job for which a place is kept under this name; "" if it is none such."""
        held = self._kept.get(job.id)
        return job.id if held and any(one is job for one in held) else ""

    def why(self, job: Job, state: State, clock: Callable[[float], str]) -> str:
        """For which job a job was suspended and when it runs again; "" if this plugin did not suspend it."""
        held, view = self._held.get(job.id), job.domain.view
        if held is None:
            return ""
        line = f"It was suspended for job {held.job}"
        if held.resumed is not None and not job.lends:
            return f"{line} and was resumed at {clock(held.resumed)}"
        at = self.comes_at(job, view) if isinstance(view, View) else _INF
        if at == _INF or at <= state.now:
            why_not = state.why_not_resumed(job) or "other jobs are booked before it"
            return f"{line} and does not run again yet: {why_not}"
        return f"{line}; its place is kept for it from {clock(at)} on"

    def comes_at(self, job: Job, view: View) -> float:
        """When the job is expected to run again (absolute seconds); infinity: not known."""
        bookings = [view.booked(one) for one in self._kept.get(job.id, ())]
        return max((b.start if b is not None else _INF for b in bookings), default=_INF)

    def resume(self, state: State, domains: Collection[str], nodes: Collection[str]) -> Iterator[Resume]:
        """Let the jobs run again that can, but no job in these domains and on these nodes."""
        for job, held in list(self.waiting(state)):
            view = job.domain.view
            if job.domain.name in domains or state.now < held.not_before or not isinstance(view, View):
                continue
            if any(name in nodes for name, _ in job.placement):
                continue
            if self.comes_at(job, view) > state.now or state.why_not_resumed(job):
                continue
            held.resumed = state.now
            held.not_before = state.now + _AGAIN
            state.wake_at(held.not_before, job.pool)
            self.changes += 1
            yield Resume(job.id, f"was suspended for job {held.job}; its processors are free again")

    def not_resumed(self, name: str) -> None:
        """The cluster refused to let it run again."""
        held = self._held.get(name)
        if held is not None:
            held.resumed = None
            self.changes += 1


def _stand_ins(job: Job, left: float) -> Iterator[Job]:
    """What stands for a suspended job in what is booked: its processors on its own nodes, for ``left``
    seconds; a job for each set of nodes on which it has equally many."""
    if not job.placement:
        yield _stand_in(job, Request(processors=job.processors, walltime=left), left)
        return
    shares: dict[int, list[tuple[str, int]]] = {}
    for name, count in job.placement:
        shares.setdefault(count, []).append((name, count))
    exclusive = (job.taken or job.request).exclusive
    for count, nodes in shares.items():
        yield _stand_in(job, _on_nodes(nodes, count, exclusive, left), left)


def _on_nodes(nodes: Placement | list[tuple[str, int]], count: int, exclusive: bool, left: float) -> Request:
    return Request(
        processors=count * len(nodes), walltime=left, nodes=len(nodes), processors_per_node=count,
        required_nodes=tuple(name for name, _ in nodes), exclusive=exclusive,
    )  # fmt: skip


def _stand_in(job: Job, request: Request, left: float) -> Job:
    description = msgspec.structs.replace(job.description, request=request, dependencies=())
    made = Job.arrived(description, job.pool, job.seq)
    made.status = Status.PENDING
    made.estimate = made.expected_runtime = left
    return made
