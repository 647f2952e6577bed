"""The gate: what each kind of decision does to the state once it is decided, and how that is undone.

Every decision passes it before it leaves the scheduler, whichever hook made it: ``react``, ``schedule``,
``control`` and ``revise`` mean the same by it. A decision that the state does not allow is left out, and told
as a problem of the plugin that made it.

A decision that a later hook takes away is undone. What was decided about the same thing before it stands.
What was decided about the same thing after it is undone first and carried in again: a stack for each thing.
After a move that is undone, that holds for all that takes or gives processors: its room may be theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from headway.decisions import (
    Annotate,
    Bind,
    Cancel,
    Checkpoint,
    Copy,
    Decision,
    Drop,
    Hold,
    Kill,
    Migrate,
    PowerDown,
    PowerUp,
    Release,
    Requeue,
    Reserve,
    Resize,
    Resume,
    Route,
    SetFrequency,
    SetTimeLimit,
    Signal,
    Start,
    SubmitSubjob,
    Suspend,
    SwapTiers,
    Tell,
    Unreserve,
)
from headway.errors import StateError
from headway.plugins import Problem
from headway.state import Job, State, foresight
from headway.state.binding import bind
from headway.state.choices import face_start
from headway.state.copies import begin_copy
from headway.state.moves import StaysForNow, Undo, nothing
from headway.state.routes import route


def _begin(state: State, start: Start) -> Undo:
    """The job has its processors."""
    job = state.jobs.get(start.job_id)
    if job is None:
        raise StateError(f"job {start.job_id} is not known")
    if job.choices:
        face_start(state, job, start.placement, start.pool)
    state.begin(job, start.placement, start.tier, start.frequency)
    state.sweep(job.domain, [job])
    # What the policy booked in this domain did not reckon with it.
    job.domain.touch()
    return partial(state.undo, job)


def _move(state: State, move: SwapTiers | Migrate) -> Undo:
    """The jobs are where it sends them."""
    undo = state.carry(move)
    state.jobs[move.job_id].domain.touch()
    return undo


def _submit(state: State, decision: SubmitSubjob) -> Undo:
    """The job arrives when the cluster says so; here it is only looked at."""
    state.guard_subjob(decision)
    return nothing


def _later(state: State, decision: Decision) -> Undo:
    """Nothing, until the cluster tells that it happened."""
    return nothing


@dataclass(frozen=True, slots=True)
class Effect:
    """What decisions of one kind do."""

    #: Carries a decision into the state; returns what undoes that. Raises :class:`StateError`, and changes
    #: nothing, if it cannot be.
    carry: Callable[[State, Any], Undo] = _later
    #: What was not done if it cannot be, for the problem that is told.
    otherwise: str = "not done"
    #: What it changes: decisions about the same are undone last first.
    about: Callable[[Any], tuple[Hashable, ...]] = lambda decision: ()
    #: It takes or gives processors.
    of_room: bool = False


def _job(aspect: str) -> Callable[[Any], tuple[Hashable, ...]]:
    """What a decision changes of its job."""
    return lambda decision: ((aspect, decision.job_id),)


def _both(swap: SwapTiers) -> tuple[Hashable, ...]:
    return tuple(("place", name) for name in (swap.job_id, swap.other_job_id) if name)


_LATER = Effect()
_GOES = Effect(foresight.go, about=_job("going"))

#: All kinds of decisions.
EFFECTS: dict[type[Decision], Effect] = {
    Start: Effect(_begin, "not started", _job("place"), of_room=True),
    Migrate: Effect(_move, "not moved", _job("place"), of_room=True),
    SwapTiers: Effect(_move, "not moved", _both, of_room=True),
    Resume: Effect(foresight.resume, "not resumed", _job("place"), of_room=True),
    Resize: Effect(foresight.resize, "not resized", _job("place"), of_room=True),
    SetTimeLimit: Effect(foresight.limit, about=_job("limit")),
    Kill: _GOES,
    Requeue: _GOES,
    Signal: _GOES,
    Suspend: _GOES,
    Reserve: Effect(foresight.reserve, about=lambda reserve: (("reservation", reserve.reservation.id),)),
    SubmitSubjob: Effect(_submit, "not submitted"),
    Bind: Effect(bind, "not bound", _job("place")),
    Route: Effect(route, "not sent on", _job("place")),
    Copy: Effect(begin_copy, "not copied", lambda copy: (("dataset", copy.dataset, copy.site),)),
    Hold: _LATER,
    Release: _LATER,
    Cancel: _LATER,
    Checkpoint: _LATER,
    Annotate: _LATER,
    SetFrequency: _LATER,
    PowerDown: _LATER,
    PowerUp: _LATER,
    Unreserve: _LATER,
    Drop: _LATER,
    Tell: _LATER,
}


def take_effect(state: State, decision: Decision) -> Undo:
    """A decision counts from now on. Returns what undoes it, and nothing else. Raises :class:`StateError`,
    and changes nothing, if the state does not allow it."""
    return EFFECTS[type(decision)].carry(state, decision)


@dataclass(slots=True, eq=False)
class _Passed:
    """A decision of this step that counts."""

    decision: Decision
    undo: Undo
    plugin: str
    hook: str

    @property
    def effect(self) -> Effect:
        return EFFECTS[type(self.decision)]

    @property
    def started(self) -> str:
        """The job that it starts; "": it is no start."""
        return self.decision.job_id if isinstance(self.decision, Start) else ""


class Gate:
    """What every decision of a scheduler passes."""

    def __init__(self, state: State, problems: list[Problem], *, final: bool) -> None:
        """``problems``: tells what is left out. ``final``: nothing that has passed is undone later."""
        self._state = state
        self._problems = problems
        #: Nothing that has passed is undone later, so it need not be noted.
        self.final = final
        #: This step's decisions, in the order in which they count.
        self._passed: list[_Passed] = []

    def open(self) -> None:
        """A step begins."""
        self._passed = []

    def leave_out(self, plugin: str, hook: str, message: str) -> None:
        """Tell that a plugin's decision was left out."""
        self._problems.append(Problem(plugin, hook, message, ""))

    def carry(self, plugin: str, hook: str, decision: Decision) -> Undo | None:
        """Have a decision count from now on; what undoes it. None, and a problem, if the state forbids it."""
        try:
            return take_effect(self._state, decision)
        except StaysForNow:
            # That its move failed was told.
            return None
        except StateError as error:
            self.leave_out(plugin, hook, f"{error}; {EFFECTS[type(decision)].otherwise}")
            return None

    def let_through(self, plugin: str, hook: str, decision: Decision) -> bool:
        """As :meth:`carry`, of a decision that is to leave the scheduler."""
        undo = self.carry(plugin, hook, decision)
        if undo is None:
            return False
        self.note(plugin, hook, decision, undo)
        return True

    def note(self, plugin: str, hook: str, decision: Decision, undo: Undo) -> None:
        """A decision counts already, and is to leave the scheduler."""
        if not self.final:
            self._passed.append(_Passed(decision, undo, plugin, hook))

    def adopt(self, decided: Sequence[Decision]) -> list[Decision]:
        """Plugins have revised this step's decisions into these: undo what is not among them any more, and
        have count what was added. Returns the decisions that the state allows, in their order."""
        starts: dict[str, Start] = {}
        wanted: list[Decision] = []
        for decision in decided:
            if isinstance(decision, Start):
                if decision.job_id in starts:
                    self.leave_out(
                        "revise",
                        "revise",
                        f"job {decision.job_id} is started already; the second start is dropped",
                    )
                    continue
                starts[decision.job_id] = decision
            wanted.append(decision)
        lost = self._undo(self._gone(starts, wanted))
        wanted = [decision for decision in wanted if not any(decision is one for one in lost)]
        stands = {passed.started: passed for passed in self._passed if passed.started}
        others = [passed.decision for passed in self._passed if not passed.started]
        known = set(map(id, others))
        adopted: list[Decision] = []
        for decision in wanted:
            if isinstance(decision, Start) and decision.job_id in stands:
                self._amend(stands[decision.job_id], decision)
                adopted.append(decision)
            elif (
                id(decision) in known or decision in others or self.let_through("revise", "revise", decision)
            ):
                adopted.append(decision)
        return adopted

    def _gone(self, starts: dict[str, Start], wanted: Sequence[Decision]) -> list[_Passed]:
        """What has passed and is wanted no longer; a start that is to be elsewhere begins anew."""
        known = set(map(id, wanted))
        return [
            passed
            for passed in self._passed
            if (
                _elsewhere(passed.decision, starts.get(passed.decision.job_id))
                if isinstance(passed.decision, Start)
                else id(passed.decision) not in known and passed.decision not in wanted
            )
        ]

    def _amend(self, passed: _Passed, start: Start) -> None:
        """The same start has another reason or frequency."""
        if passed.decision is not start:
            self._state.jobs[start.job_id].frequency = start.frequency
            passed.decision = start

    def undo_all(self) -> None:
        """This step's decisions are not carried out."""
        for passed in reversed(self._passed):
            passed.undo()
        self._passed = []

    def _undo(self, gone: Sequence[_Passed]) -> list[Decision]:
        """Undo these decisions, and nothing else. Returns other decisions that cannot be without them."""
        if not gone:
            return []
        going = set(gone)
        over = self._hang_on(going)
        runtimes = {passed: self._runtime(passed) for passed in over}
        for passed in reversed(over):
            passed.undo()
        lost: list[Decision] = []
        for passed in over:
            if passed not in going:
                undo = self.carry(passed.plugin, passed.hook, passed.decision)
                if undo is None:
                    going.add(passed)
                    lost.append(passed.decision)
                else:
                    passed.undo = undo
                    self._expect(passed, runtimes[passed])
        self._passed = [passed for passed in self._passed if passed not in going]
        return lost

    def _hang_on(self, going: Collection[_Passed]) -> list[_Passed]:
        """These decisions, and later decisions about the same job or node; in the order in which they were
        decided."""
        changed, moved, over = set[Hashable](), False, list[_Passed]()
        for passed in self._passed:
            about = passed.effect.about(passed.decision)
            if passed in going or not changed.isdisjoint(about) or (moved and passed.effect.of_room):
                over.append(passed)
                changed.update(about)
                moved = moved or (passed.effect.of_room and not passed.started)
        return over

    def _runtime(self, passed: _Passed) -> float | None:
        """How long a job that was started is expected to run, if its policy said so itself."""
        job = self._started(passed)
        return None if job is None else job.expected_runtime

    def _expect(self, passed: _Passed, runtime: float | None) -> None:
        job = self._started(passed)
        if job is not None and runtime is not None and job.expected_runtime != runtime:
            self._state.expect(job, runtime)

    def _started(self, passed: _Passed) -> Job | None:
        return self._state.jobs.get(passed.started) if passed.started else None


def _elsewhere(one: Start, other: Start | None) -> bool:
    """Whether a start of the same job is gone, or takes other processors, or is in another tier."""
    return other is None or one.placement != other.placement or one.tier != other.tier
