"""The sizes of moldable jobs from predictions: the smallest with which a job ends within its limit.

B. J. Lafreniere, A. C. Sodan: ScoPred - Scalable User-Directed Performance Prediction Using Complexity
Modeling and Historical Data. JSSPP 2005, sections 1 and 4: an adaptation controller asks how long an
application takes on several numbers of nodes. This is the plugin ``scopred`` and the rule on top of it: a job
that says that it is moldable (attribute ``moldable``: the least processors that it bears; True: 1) and is a
run of an application whose formula has its processors, or on a pool without nodes its nodes, gets when it is
to start the smallest size whose prediction's upper end is within its limit. With ``efficiency: e`` it gets
the largest size that is e times as efficient as its least: T(least) least / (T(p) p) >= e; the smallest, if
no size is.

Decisions on what the paper leaves open:

- No size is beyond what the job asked for, and its limit stays as it is: it is the deadline.
- Sizes whose prediction must not be used do not count. Without a prediction for the size that it asked for
  the job stays as it is.
- A job that is to start is resized instead, and starts once the cluster shows it so. That size stays,
  whatever is learned while it waits. A user that changes a job's size has changed what the job asks for.
- A change that the cluster refuses is not tried again.
- In emulation a resized job takes as much longer as was predicted (``emulated: predicted``), unless something
  else tells how long it takes (``emulated: as-told``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field

from headway.decisions import Decision, Resize, Start
from headway.events import DecisionFailed, Event, JobChanged, JobEnded
from headway.hookspecs import hookimpl
from headway.state import Job, State, Status
from headway_plugins.moldable.policy import least_of
from headway_plugins.prediction.models import Prediction
from headway_plugins.prediction.scopred import Scopred, ScopredOptions

#: Seconds after which a change that the cluster took and does not show is asked for again.
PATIENCE = 60.0
#: Sizes of a job that are looked at: all, if there are no more than so many, or so many between the ends.
MOST = 256


class SizingOptions(ScopredOptions):
    """The options of :class:`Sizing`."""

    efficiency: float | None = Field(
        None,
        gt=0,
        le=1,
        description="choose the largest size with at least this efficiency relative to the smallest size; "
        "default: the smallest size that ends in time",
    )
    emulated: Literal["predicted", "as-told"] = Field(
        "predicted", description="in emulation: whether a resized job takes as long as predicted"
    )


@dataclass
class _Sized:
    """A job that was resized."""

    #: What it asked for, what it gets, and when that was decided (absolute seconds).
    asked: int
    size: int
    decided: float
    #: How many times as long it is predicted to take.
    factor: float


@dataclass(frozen=True)
class Choice:
    """A size, and what is predicted for it."""

    size: int
    found: Prediction
    #: Of a processor's work, against that with the least size.
    efficiency: float


def choose(
    found: Sequence[tuple[int, Prediction]], deadline: float, efficiency: float | None = None
) -> Choice | None:
    """The size that the rule takes of these (ascending, seconds of ``deadline`` from the start); None if
    none is predicted to end by then."""
    usable = [(size, one) for size, one in found if one.valid and math.isfinite(one.upper)]
    if not usable:
        return None
    least, alone = usable[0]
    work = alone.mean * least
    in_time = [Choice(size, one, work / (one.mean * size)) for size, one in usable if one.upper <= deadline]
    if not in_time:
        return None
    if efficiency is not None:
        efficient = [one for one in in_time if one.efficiency >= efficiency * (1 - 1e-12)]
        if efficient:
            return efficient[-1]
    return in_time[0]


class Sizing(Scopred):
    """Predicts like ``scopred``, and gives moldable jobs the size that their predictions ask for."""

    Options = SizingOptions
    traits = replace(
        Scopred.traits, needs=(Resize,), observes=(*(Scopred.traits.observes or ()), DecisionFailed)
    )

    def __init__(self, options: SizingOptions) -> None:
        super().__init__(options)
        self._rule = options
        self._sized: dict[str, _Sized] = {}
        #: Jobs that the cluster would not resize.
        self._rigid: set[str] = set()

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        super().restore(saved)
        self._sized.clear()
        self._sized.update({job_id: _Sized(**one) for job_id, one in saved["sized"].items()})
        self._rigid = set(saved["rigid"])

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            **super().checkpoint(),
            "sized": {job_id: dict(vars(one)) for job_id, one in self._sized.items()},
            "rigid": sorted(self._rigid),
        }

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        super().observe(event, state)
        if isinstance(event, JobEnded):
            self._sized.pop(event.job_id, None)
            self._rigid.discard(event.job_id)
        elif isinstance(event, JobChanged):
            sized = self._sized.get(event.job.id)
            if sized is not None and event.job.request.processors not in (sized.asked, sized.size):
                del self._sized[event.job.id]
        elif (
            isinstance(event, DecisionFailed)
            and isinstance(event.decision, Resize)
            and self._sized.pop(event.decision.job_id, None) is not None
        ):
            self._rigid.add(event.decision.job_id)

    @hookimpl
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        """Resize a job first that is to start at another size than the rule's."""
        changed: list[Decision] = []
        for decision in decisions:
            if type(decision) is Start and decision.job_id in self._jobs:
                change = self._change(state.jobs[decision.job_id], state)
                if change is not None:
                    changed.extend(change)
                    continue
            changed.append(decision)
        return changed if len(changed) != len(decisions) or changed != decisions else None

    @hookimpl
    def register_physics(self) -> _AsPredicted | None:
        return _AsPredicted(self._sized) if self._rule.emulated == "predicted" else None

    # ------------------------------------------------------------ inside

    def _change(self, job: Job, state: State) -> list[Decision] | None:
        """What comes instead of the job's start; None: it may start as it is."""
        sized, now = self._sized.get(job.id), state.now
        if sized is not None:
            if job.request.processors == sized.size:
                return None
            if now < sized.decided + PATIENCE:
                return []
            sized.decided = now
            state.wake_at(now + PATIENCE, job.pool)
            return [Resize(job.id, sized.size, (), "the cluster does not show its new size yet")]
        asked = job.request.processors
        points = self._points(job, asked)
        choice = choose(points, job.estimate, self._rule.efficiency) if points else None
        if choice is None or choice.size >= asked or not points[-1][1].valid:
            return None
        factor = choice.found.mean / points[-1][1].mean
        self._sized[job.id] = _Sized(asked, choice.size, now, factor)
        state.wake_at(now + PATIENCE, job.pool)
        reason = (
            f"{choice.size} processors instead of {asked}: it is predicted to end within "
            f"{choice.found.upper:.4g} s there, of the {job.estimate:.4g} s of its limit"
        )
        return [Resize(job.id, choice.size, (), reason)]

    def _points(self, job: Job, asked: int) -> list[tuple[int, Prediction]]:
        """What is predicted for each size that the job may have, ascending; [] if it has a single size."""
        known, least = self._jobs[job.id], least_of(job, False)
        application = self.applications[known.application]
        names = [name for name, kind in application.sizes.items() if kind == "processors" or job.pool.flat]
        if (
            not 0 < least < asked
            or not names
            or len(names) != len(application.sizes)
            or known.problem
            or job.id in self._rigid
            or job.status is Status.RUNNING
        ):
            return []
        model = self.model(known.application, known.pool)
        if any(name not in known.given and name not in names for name in model.parameters):
            return []
        every = list(sizes(least, asked))
        rows = [{**known.given, **dict.fromkeys(names, float(size))} for size in every]
        return list(zip(every, model.predict_all(rows), strict=True))


def sizes(least: int, most: int) -> list[int]:
    """The sizes between these that are looked at, ascending, with both."""
    if most - least < MOST:
        return list(range(least, most + 1))
    steps = (least * (most / least) ** (at / (MOST - 1)) for at in range(MOST))
    return sorted({least, most, *(min(max(round(size), least), most) for size in steps)})


class _AsPredicted:
    """In emulation: a resized job takes as many times as long as was predicted."""

    def __init__(self, sized: dict[str, _Sized]) -> None:
        self._sized = sized

    def rate(self, execution: Any, now: float) -> float:
        """A factor on the job's speed."""
        sized = self._sized.get(execution.job.id)
        return 1.0 if sized is None or execution.job.request.processors != sized.size else 1 / sized.factor
