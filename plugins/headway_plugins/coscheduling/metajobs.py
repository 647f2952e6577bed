"""Metajobs: reservations at several sites at once, found by probing, without any central queue.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005: the program GUR. (`headway metajob`.)

The search is :class:`.search.Search`. Its calls are carried out by decisions (:mod:`.site_calls`): one call
of a metajob at a time, and a bounded number of all metajobs in a step. When all parts are reserved, the
user's jobs are bound to them, each to its part.

Decisions on what the paper leaves open:

- A job of a metajob starts nowhere else: it waits until it is bound, and if the metajob is refused or lost,
  until its user cancels the metajob.
- After a restart a search begins anew under another name, when what it had is given back. What was reserved
  with SUCCESS stays, because that is saved before any job is bound.
- A part is given back when its job has ended. A part in which a job runs is not taken from under the job.
- A reservation at a site that does not answer is given back when the site answers again; nothing else waits
  for that.
- The user is told by mail when a reservation cannot be fulfilled, as in the paper: :mod:`.metajob_letters`. A
  loss goes to the log and into ``headway metajob status`` as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from headway.decisions import Answer, Bind, Cancel, Decision, Kill, Reserve, Tell, Unreserve
from headway.errors import UserError
from headway.events import (
    ClusterAnswers,
    DecisionFailed,
    ElasticCommandReceived,
    Event,
    JobPaceChanged,
    JobUsageMeasured,
    PluginAsked,
    ReservationEnded,
    ReservationMade,
    Tick,
    all_but,
)
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits
from headway.state import Barrier, Job, State
from headway_plugins.coscheduling.calls import Carried, metajob_of
from headway_plugins.coscheduling.everywhere_course import EverywhereCourse
from headway_plugins.coscheduling.live_metajob import Kept, LiveMetajob, on_marks
from headway_plugins.coscheduling.machines import MachineOptions, cannot
from headway_plugins.coscheduling.metajob_course import Course, wake
from headway_plugins.coscheduling.metajob_desk import Desk
from headway_plugins.coscheduling.metajob_options import MetajobOptions
from headway_plugins.coscheduling.rounds import TRIES
from headway_plugins.coscheduling.site_calls import SiteCalls, given_back

#: Calls that are carried out in a step, of all metajobs together.
_CALLS = 16
#: Seconds until the next step, if there were more.
_PACE = 1.0
#: Seconds until a stray reservation is removed again.
_AGAIN = 60.0
#: Metajobs that are at rest and without waiting jobs: how many are remembered, and for how long.
_REMEMBERED, _FOR = 200, 7 * 86400.0
#: Events that change nothing in a plan.
_NO_MATTER = (Tick, JobPaceChanged, JobUsageMeasured, ElasticCommandReceived)


class Metajobs(Plugin):
    """Users reserve nodes of several sites at once, and their jobs start there together."""

    Options = MetajobOptions
    traits = Traits(
        needs=(Reserve, Unreserve),
        uses=(Bind, Cancel, Kill),
        observes=all_but(*_NO_MATTER),
        checkpoint="promises",
        paper=(
            "K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations, Job "
            "Scheduling Strategies for Parallel Processing, 2005"
        ),
    )

    def __init__(self, options: MetajobOptions) -> None:
        super().__init__(options)
        self._machines: Mapping[str, MachineOptions] = options.machines
        self._calls = SiteCalls(
            options.machines, options, budget=options.budget, lead=options.lead,
            patience=options.answer_timeout,
        )  # fmt: skip
        self._lives: dict[str, LiveMetajob] = {}
        self._by_job: dict[str, LiveMetajob] = {}
        self._asked: list[PluginAsked] = []
        self._answers: dict[str, Answer] = {}
        self._course = Course(options, self._free_jobs)
        self._everywhere = EverywhereCourse(
            self._course, options.machines, self._by_job, self._free_jobs, patience=options.answer_timeout
        )
        self._desk = Desk(options, self._course, self._lives, self._by_job, self._everywhere)
        #: Of each reservation that no metajob has: how often it was tried to remove it, and when it is tried
        #: again.
        self._strays: dict[str, tuple[int, float]] = {}

    # ------------------------------------------------------------------ news

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._desk.binds = Bind in capabilities
        self._desk.removes = {Cancel, Kill} <= capabilities
        for name, machine in self._machines.items():
            if cannot(state, machine, Reserve):
                raise UserError(
                    f"machines.{name}.pool: expected a pool whose cluster makes reservations, found "
                    f"{machine.pool!r}; take the machine out, or let its cluster reserve: the page Metajobs "
                    "says what each batch system needs"
                )
            if machine.pool not in state.pools:
                state.notices.append(f"machines.{name}.pool: no pool is called {machine.pool!r} yet")

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, PluginAsked):
            if event.plugin == "metajobs":
                self._asked.append(event)
            return
        if isinstance(event, ReservationMade | ReservationEnded):
            name = event.reservation.id if isinstance(event, ReservationMade) else event.reservation_id
            if self._owner(name) is not None:
                self._course.happened += 1
                self._course.sweep = True
                return
        self._everywhere.observe(event)
        if isinstance(event, ClusterAnswers):
            self._course.answers(event)
        if isinstance(event, DecisionFailed):
            self._refused(event)
        if not isinstance(event, _NO_MATTER):
            self._calls.plans.edition += 1
            self._course.happened += 1

    def _refused(self, event: DecisionFailed) -> None:
        decision, refusals = event.decision, self._calls.refusals
        said = f"the site refused it: {event.message}"
        if isinstance(decision, Reserve) and self._owner(decision.reservation.id) is not None:
            refusals[Reserve, decision.reservation.id] = said
        elif isinstance(decision, Unreserve) and self._owner(decision.reservation_id) is not None:
            refusals[Unreserve, decision.reservation_id] = said
            self._course.sweep = True
        elif isinstance(decision, Bind) and decision.job_id in self._by_job:
            refusals[Bind, decision.job_id] = said

    @hookimpl
    def decided(self, decisions: list[Decision], state: State) -> None:
        self._everywhere.decided(decisions, state)
        if any(not isinstance(one, Reserve | Unreserve | Bind | Tell) for one in decisions):
            self._calls.plans.edition += 1

    def _owner(self, reservation: str) -> LiveMetajob | None:
        # An id has no r but before the number of its search.
        live = self._lives.get(metajob_of(reservation).partition("r")[0])
        return live if live is not None and live.owns(reservation) else None

    # ------------------------------------------------------------------ jobs

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        live = self._by_job.get(job.id)
        if live is None or live.kept.phase in ("cancelled", "over"):
            return None
        if live.kept.everywhere:
            return self._everywhere.barrier(live, job)
        if any(part.name == job.description.reservation for part in live.kept.parts):
            return None
        return Barrier(partial(_why_not, live.kept), ("metajob", live.kept.id))

    # ------------------------------------------------------------------ a step

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        self._answers.clear()
        asked, self._asked = self._asked, []
        for event in asked:
            self._answers[event.request] = self._desk.serve(event, state)
        if self._course.sweep:
            yield from self._remove_strays(state)
        left = _CALLS
        active = [live for live in self._lives.values() if not live.resting]
        for live in [live for live in active if live.kept.everywhere]:
            yield from self._everywhere.lead(live, state)
        for live in [live for live in active if not live.kept.everywhere]:
            while left > 0 and self._can_go_on(live, state):
                left -= 1
                yield from self._one_call(live, state)
            if left <= 0:
                wake(state, self._machines, state.now + _PACE)
                break
        letters, self._course.letters = self._course.letters, []
        yield from letters
        if left < _CALLS or asked:
            self._forget(state)

    @hookimpl
    def revise(self, decisions: list[Decision]) -> list[Decision] | None:
        return self._everywhere.revise(decisions)

    @hookimpl
    def answer(self, request: str) -> Answer | None:
        return self._answers.pop(request, None)

    def _can_go_on(self, live: LiveMetajob, state: State) -> bool:
        """Whether a call of the metajob can be issued or answered now; wakes the scheduler when it can."""
        if live.resting or not self._known(live, state):
            return False
        late = live.errand if live.search is None else None
        if late is not None and not late.issued and self._course.is_silent(late.call.site, state):
            live.errand = None
        if live.errand is None:
            call = self._course.next(live, state)
            if call is None:
                return False
            live.errand = self._calls.errand(call, state.now)
        errand = live.errand
        if not errand.issued:
            if errand.since <= state.now:
                return True
        elif self._peek(live, state):
            return True
        wake(state, self._machines, self._calls.due(errand))
        return False

    def _peek(self, live: LiveMetajob, state: State) -> bool:
        """Whether the answer to the call under way is there: it is taken."""
        assert live.errand is not None
        answer = self._calls.answer(live, live.errand, state)
        if answer is None:
            return False
        call = live.errand.call
        if live.search is not None:
            reason = getattr(answer, "reason", "")
            if reason:
                live.denials[call.site] = reason
            live.take(answer)
        else:
            live.errand = None
            self._course.went(live, call, carried=isinstance(answer, Carried))
        return True

    def _one_call(self, live: LiveMetajob, state: State) -> Iterator[Decision]:
        """Issue the call that is next; what needs no site is answered at once."""
        errand = live.errand
        if errand is None or errand.issued:
            return
        kept = live.kept
        kept_before = state.reservations.get(errand.call.name)
        grains = {name: machine.grain for name, machine in self._machines.items()}
        _, grain = on_marks(kept.metajob, grains)
        for decision in self._calls.issue(live, errand, grain, state):
            self._course.promises += 1
            if isinstance(decision, Unreserve) and kept_before is not None:
                self._calls.gone(kept_before, self._machines[live.machine_of(decision.reservation_id)])
            yield decision
        self._peek(live, state)

    def _remove_strays(self, state: State) -> Iterator[Decision]:
        """Reservations of metajobs that no search has and that belong to no success: they came late."""
        self._course.sweep = False
        for name, one in list(state.reservations.items()):
            live = self._owner(name) if one.ours else None
            if live is None or live.kept.phase == "giving back" or name in live.expected():
                continue
            tries, again = self._strays.get(name, (0, 0.0))
            silent = self._course.is_silent(live.machine_of(name), state)
            if tries > TRIES or silent or live.runs_in(name, state):
                continue
            if again > state.now:
                self._course.sweep = True
                wake(state, self._machines, again)
                continue
            self._strays[name] = tries + 1, state.now + _AGAIN
            yield from given_back(live, name, "does not have it any more", state)
            if tries == TRIES:
                state.anomalies.append(f"metajob {live.kept.id}: reservation {name} is not given back")
        self._strays = {name: tries for name, tries in self._strays.items() if name in state.reservations}

    def _known(self, live: LiveMetajob, state: State) -> bool:
        """Whether the sites of a metajob have been heard of in this run. What a metajob has is watched, and
        given back, although a site is silent from the beginning; a search waits for all sites."""
        pools = [self._machines[name].pool for name in live.kept.metajob.machines]
        if live.kept.phase == "searching":
            return all(pool in state.pools for pool in pools)
        return all(pool in state.pools or state.silent_since(pool) is not None for pool in pools)

    def _free_jobs(self, live: LiveMetajob, state: State) -> None:
        if live.kept.phase in ("cancelled", "over"):
            for job in live.kept.pools:
                if job not in live.kept.forgotten:
                    self._by_job.pop(job, None)
            state.lifted(("metajob", live.kept.id))

    def _forget(self, state: State) -> None:
        """Metajobs at rest are not remembered for ever."""
        resting = [
            live
            for live in self._lives.values()
            if live.resting and not any(job in state.jobs and job in self._by_job for job in live.kept.pools)
        ]
        old = [live for live in resting if state.now - (live.kept.rested or 0.0) > _FOR]
        for live in {id(one): one for one in [*resting[:-_REMEMBERED], *old]}.values():
            del self._lives[live.kept.id]
            for job in live.kept.pools:
                self._by_job.pop(job, None)

    # ------------------------------------------------------------------ over a restart

    @hookimpl
    def promised(self) -> int:
        return self._course.promises

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "number": self._desk.number,
            "metajobs": [live.saved() for live in self._lives.values()],
        }

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._desk.number = saved["number"]
        for one in saved["metajobs"]:
            live = LiveMetajob(msgspec.convert(one, Kept))
            if not live.kept.everywhere and not {*live.kept.metajob.machines} <= {*self._machines}:
                # The operator took a machine out of the configuration.
                continue
            self._lives[live.kept.id] = live
            if live.kept.phase == "searching":
                live.give_back("searching")
            over = live.kept.phase in ("cancelled", "over")
            self._by_job.update(dict.fromkeys(live.kept.forgotten if over else live.kept.pools, live))


def _why_not(kept: Kept) -> str:
    """Why a job of a metajob does not start."""
    why = "a place is looked for"
    if kept.phase in ("refused", "lost"):
        why = f"{kept.why or kept.phase}; `headway metajob cancel {kept.id}` lets the job run alone"
    return f"it belongs to metajob {kept.id}: {why}"
