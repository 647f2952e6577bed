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
- The paper has the user told by mail. The scheduler has no I/O: a loss goes to the log and into
  ``headway metajob status``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from random import Random
from typing import Annotated, Any, Literal

import msgspec
import pydantic

from headway.decisions import Answer, Bind, Decision, Reserve, Unreserve
from headway.errors import UserError
from headway.events import (
    DecisionFailed,
    ElasticCommandReceived,
    Event,
    JobPaceChanged,
    JobUsageMeasured,
    PluginAsked,
    ReservationEnded,
    ReservationMade,
    Tick,
)
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits
from headway.state import Barrier, Job, State
from headway_plugins.coscheduling import watching
from headway_plugins.coscheduling.calls import Call, Carried, metajob_of
from headway_plugins.coscheduling.live_metajob import Kept, LiveMetajob, on_marks
from headway_plugins.coscheduling.machines import MachineOptions
from headway_plugins.coscheduling.metajob_requests import checked, read
from headway_plugins.coscheduling.metajob_status import brief, full, rule_in_words
from headway_plugins.coscheduling.options import SearchOptions
from headway_plugins.coscheduling.quotas import QuotaOptions
from headway_plugins.coscheduling.recovery import promised
from headway_plugins.coscheduling.rounds import TRIES
from headway_plugins.coscheduling.search import Done, Search
from headway_plugins.coscheduling.site_calls import SiteCalls, shown

#: Calls that are carried out in a step, of all metajobs together.
_CALLS = 16
#: Seconds until the next step, if there were more.
_PACE = 1.0
#: Seconds until a stray reservation is removed again.
_AGAIN = 60.0
#: Metajobs that are at rest and without waiting jobs: how many are remembered, and for how long.
_REMEMBERED, _FOR = 200, 7 * 86400.0
#: Events that change nothing in a plan.
_NO_MATTER = (Tick, PluginAsked, JobPaceChanged, JobUsageMeasured, ElasticCommandReceived)

MachineName = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")]


class MetajobOptions(QuotaOptions):
    """Options of metajobs; `limits`, `accounts` and `window` as those of `reservations`."""

    machines: dict[MachineName, MachineOptions] = pydantic.Field(
        min_length=1, description="what the machines in users' metajobs stand for"
    )
    budget: float = pydantic.Field(
        default=0.1,
        gt=0,
        le=1,
        description="largest share of a pool's node-seconds in the window that users' reservations may have",
    )
    lead: float = pydantic.Field(
        default=300.0,
        ge=0,
        le=86400,
        description="seconds from now in which no metajob starts; longer than a round of the search takes",
    )
    answer_timeout: float = pydantic.Field(
        default=120.0, gt=0, description="seconds that a site may take to answer, more than its poll_interval"
    )
    on_loss: Literal["keep", "cancel_all", "replan"] = pydantic.Field(
        default="keep",
        description="what becomes of the other parts when a site loses one, unless the user says it",
    )
    max_metajobs: int = pydantic.Field(
        default=10, ge=0, description="most metajobs of a user that are not over"
    )
    max_searches: int = pydantic.Field(default=100, ge=1, description="most metajobs that are searched for")
    search: SearchOptions = pydantic.Field(
        default_factory=lambda: SearchOptions(go_on=True, repeat=True), description="how a place is searched"
    )
    seed: int = pydantic.Field(default=0, ge=0, description="of the random wait between two searches")


class Metajobs(Plugin):
    """Users reserve nodes of several sites at once, and their jobs start there together."""

    Options = MetajobOptions
    traits = Traits(
        needs=(Reserve, Unreserve),
        uses=(Bind,),
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
        self._number = 0
        self._promises = 0
        self._asked: list[PluginAsked] = []
        self._answers: dict[str, Answer] = {}
        self._binds = True
        #: Counts what may have taken a part from a metajob.
        self._happened = 0
        #: Reservations may be there that no metajob has; how often it was tried to remove each of them, and
        #: when it is tried again.
        self._sweep = True
        self._strays: dict[str, tuple[int, float]] = {}

    # ------------------------------------------------------------------ news

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._binds = Bind in capabilities
        for name, machine in self._machines.items():
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
                self._happened += 1
                self._sweep = True
                return
        if isinstance(event, DecisionFailed):
            self._refused(event)
        if not isinstance(event, _NO_MATTER):
            self._calls.plans.edition += 1
            self._happened += 1

    def _refused(self, event: DecisionFailed) -> None:
        decision, refusals = event.decision, self._calls.refusals
        said = f"the site refused it: {event.message}"
        if isinstance(decision, Reserve) and self._owner(decision.reservation.id) is not None:
            refusals[Reserve, decision.reservation.id] = said
        elif isinstance(decision, Unreserve) and self._owner(decision.reservation_id) is not None:
            refusals[Unreserve, decision.reservation_id] = said
            self._sweep = True
        elif isinstance(decision, Bind) and decision.job_id in self._by_job:
            refusals[Bind, decision.job_id] = said

    @hookimpl
    def decided(self, decisions: list[Decision]) -> None:
        if any(not isinstance(one, Reserve | Unreserve | Bind) for one in decisions):
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
        if any(part.name == job.description.reservation for part in live.kept.parts):
            return None
        return Barrier(partial(_why_not, live.kept), ("metajob", live.kept.id))

    # ------------------------------------------------------------------ a step

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        self._answers.clear()
        asked, self._asked = self._asked, []
        for event in asked:
            self._answers[event.request] = self._serve(event, state)
        if self._sweep:
            yield from self._remove_strays(state)
        left = _CALLS
        for live in [live for live in self._lives.values() if not live.resting]:
            while left > 0 and self._can_go_on(live, state):
                left -= 1
                yield from self._one_call(live, state)
            if left <= 0:
                self._wake(state, state.now + _PACE)
                break
        if left < _CALLS or asked:
            self._forget(state)

    @hookimpl
    def answer(self, request: str) -> Answer | None:
        return self._answers.pop(request, None)

    def _can_go_on(self, live: LiveMetajob, state: State) -> bool:
        """Whether a call of the metajob can be issued or answered now; wakes the scheduler when it can."""
        if live.resting or not self._known(live, state):
            return False
        if live.errand is None:
            call = self._next(live, state)
            if call is None:
                return False
            live.errand = self._calls.errand(call, state.now)
        errand = live.errand
        if not errand.issued:
            if errand.since <= state.now:
                return True
        elif self._peek(live, state):
            return True
        self._wake(state, self._calls.due(errand))
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
            self._went(live, call, carried=isinstance(answer, Carried))
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
            self._promises += 1
            if isinstance(decision, Unreserve) and kept_before is not None:
                self._calls.gone(kept_before, self._machines[live.machine_of(decision.reservation_id)])
            yield decision
        self._peek(live, state)

    # ------------------------------------------------------------------ what comes next

    def _next(self, live: LiveMetajob, state: State) -> Call | None:
        """The next call for a metajob; its phase changes where there is none in the old."""
        kept = live.kept
        while True:
            if kept.phase == "searching":
                call = self._search(live, state)
                if call is not None:
                    return call
            elif kept.phase == "giving back":
                for name in live.reserved(state):
                    failed = live.failures.get(name, 0)
                    if failed <= TRIES:
                        return Call("cancel", live.machine_of(name), name, attempt=failed + 1)
                self._gave_back(live, state)
            elif kept.phase == "reserved":
                return self._keep(live, state)
            else:
                return None

    def _search(self, live: LiveMetajob, state: State) -> Call | None:
        kept = live.kept
        if live.search is None:
            metajob = kept.metajob
            if kept.searches:
                metajob = watching.anew(metajob, state.now + self.options.lead, len(kept.searches))
                if metajob.earliest + metajob.span > metajob.latest:
                    live.give_back("refused", "no time is left before the latest end")
                    return None
            draw = Random(f"{self.options.seed}:{metajob.id}").random()
            live.begin(Search(metajob, self.options.search, draw=draw))
        assert live.search is not None
        call = live.search.next()
        if isinstance(call, Call) and call.kind != "bind":
            return call
        if isinstance(call, Call):
            # SUCCESS: the jobs are bound in the phase that follows, now or after a restart.
            names = promised(live.search.journal)
            live.reserve([part for part in live.search.made if part.name in names])
            self._sweep = True
            self._promises += 1
            return None
        self._ended(live, call, state)
        return None

    def _ended(self, live: LiveMetajob, done: Done, state: State) -> None:
        """The search has found nothing."""
        said = "; ".join(f"{site}: {rule_in_words(rule)}" for site, rule in live.denials.items())
        live.kept.leaks = list(done.leaks)
        live.give_back("refused", f"{done.why} ({said})" if said else f"{done.why}")

    def _gave_back(self, live: LiveMetajob, state: State) -> None:
        kept = live.kept
        kept.leaks = [(live.machine_of(name), name) for name in live.reserved(state)]
        for site, name in kept.leaks:
            state.anomalies.append(f"metajob {kept.id}: {site} does not give reservation {name} back")
        self._promises += 1
        if kept.after == "searching":
            kept.phase = "searching"
        else:
            live.rest(kept.after, state.now)
            self._free_jobs(live, state)

    def _keep(self, live: LiveMetajob, state: State) -> Call | None:
        """Losses, parts that are over, jobs that are to be bound."""
        kept = live.kept
        if live.looked != self._happened or min((part.end for part in kept.parts), default=0) <= state.now:
            live.looked = self._happened
            self._look(live, state)
            if kept.phase != "reserved":
                return self._next(live, state)
        if not kept.parts:
            live.rest("over", state.now)
            self._free_jobs(live, state)
            return None
        for part in kept.parts:
            job_id = live.job_of(part.name)
            failed = live.failures.get(part.name, 0)
            if job_id and job_id not in state.jobs:
                if failed <= TRIES and part.name in state.reservations:
                    return Call("cancel", part.site, part.name, attempt=failed + 1)
            elif job_id and part.name not in kept.bound and failed < TRIES:
                return Call("bind", part.site, part.name, job=kept.id, attempt=failed + 1)
        self._wake(state, min(part.end for part in kept.parts))
        return None

    def _look(self, live: LiveMetajob, state: State) -> None:
        """Drop what is over, and react to what was lost."""
        kept, now = live.kept, state.now
        kept.parts = [part for part in kept.parts if part.end > now and not _over(live, part.name, state)]
        sites: dict[str, list[watching.Found] | None] = {part.site: [] for part in kept.parts}
        for name, found in shown(live, state).items():
            several = sites.get(live.machine_of(name))
            if several is not None:
                several.append(found)
        told = {loss.partition(": ")[0] for loss in kept.losses}
        lost = [
            loss
            for loss in watching.losses(kept.parts, sites, {}, now)
            if loss.name not in told
            and loss.name not in state.foreseen
            and not live.runs_in(loss.name, state)
        ]
        if not lost:
            return
        self._promises += 1
        for loss in lost:
            kept.losses.append(f"{loss.name}: {loss.what}")
            state.anomalies.append(f"metajob {kept.id} of {kept.user}: {loss.site}: {loss.name}: {loss.what}")
        reaction = watching.react(kept.parts, lost, kept.on_loss, now)
        if reaction.replan or reaction.calls:
            live.give_back("searching" if reaction.replan else "lost", f"{lost[0].name}: {lost[0].what}")

    def _went(self, live: LiveMetajob, call: Call, *, carried: bool) -> None:
        """A call without a search was carried out, or not."""
        kept = live.kept
        if call.kind == "set":
            # Its search was given up meanwhile.
            return
        if not carried:
            live.failures[call.name] = live.failures.get(call.name, 0) + 1
        elif call.kind == "bind":
            kept.bound.append(call.name)
        elif kept.phase == "reserved":
            kept.parts = [part for part in kept.parts if part.name != call.name]
        self._promises += 1

    def _remove_strays(self, state: State) -> Iterator[Decision]:
        """Reservations of metajobs that no search has and that belong to no success: they came late."""
        self._sweep = False
        for name, one in list(state.reservations.items()):
            live = self._owner(name) if one.ours else None
            if live is None or live.kept.phase == "giving back" or name in live.expected():
                continue
            tries, again = self._strays.get(name, (0, 0.0))
            if tries > TRIES or live.runs_in(name, state):
                continue
            if again > state.now:
                self._sweep = True
                self._wake(state, again)
                continue
            self._strays[name] = tries + 1, state.now + _AGAIN
            yield Unreserve(name, f"metajob {live.kept.id} does not have it any more")
            if tries == TRIES:
                state.anomalies.append(f"metajob {live.kept.id}: reservation {name} is not given back")
        self._strays = {name: tries for name, tries in self._strays.items() if name in state.reservations}

    def _known(self, live: LiveMetajob, state: State) -> bool:
        """Whether the sites of a metajob have been heard of in this run."""
        return all(self._machines[name].pool in state.pools for name in live.kept.metajob.machines)

    def _wake(self, state: State, time: float) -> None:
        pool = next((one.pool for one in self._machines.values() if one.pool in state.pools), None)
        if pool is not None and state.now < time < float("inf"):
            state.wake_at(time, state.pools[pool])

    def _free_jobs(self, live: LiveMetajob, state: State) -> None:
        if live.kept.phase in ("cancelled", "over"):
            for job in live.kept.pools:
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

    # ------------------------------------------------------------------ requests

    def _serve(self, event: PluginAsked, state: State) -> Answer:
        try:
            if event.verb == "submit":
                return self._submit(event, state)
            if event.verb == "status":
                return self._status(event)
            if event.verb == "cancel":
                return self._cancel(event, state)
        except UserError as error:
            return Answer("refused", str(error))
        return Answer("refused", f"expected submit, status or cancel, found {event.verb!r}")

    def _submit(self, event: PluginAsked, state: State) -> Answer:
        wanted = read(event.text)
        active = [live for live in self._lives.values() if live.kept.phase not in ("cancelled", "over")]
        mine = sum(live.kept.user == event.user for live in active)
        if not event.operator and mine >= self.options.max_metajobs:
            return Answer("refused", f"you have {mine} metajobs, {self.options.max_metajobs} are allowed")
        searching = sum(live.kept.phase in ("searching", "giving back") for live in active)
        if searching >= self.options.max_searches:
            return Answer("refused", f"{searching} metajobs are searched for; try again later")
        if wanted.jobs and not self._binds:
            return Answer("refused", "this cluster cannot bind jobs to reservations; submit without jobs")
        asked = (f"m{self._number + 1}", event.user, event.operator)
        kept = checked(
            wanted, asked, state, self._machines, self.options, lead=self.options.lead,
            on_loss=self.options.on_loss,
        )  # fmt: skip
        for job in kept.pools:
            if job in self._by_job:
                return Answer("refused", f"job {job} belongs to metajob {self._by_job[job].kept.id}")
        while any(metajob_of(name) == f"m{self._number + 1}" for name in state.reservations):
            # An earlier run without a journal has used it.
            self._number += 1
        self._number += 1
        kept.id = f"m{self._number}"
        kept.metajob = msgspec.structs.replace(kept.metajob, id=kept.id)
        live = self._lives[kept.id] = LiveMetajob(kept)
        for job in kept.pools:
            self._by_job[job] = live
            state.bar_queued(state.pools[kept.pools[job]])
        self._promises += 1
        return Answer(
            "accepted", f"metajob {kept.id}: a place is looked for: headway metajob status {kept.id}"
        )

    def _named(self, event: PluginAsked) -> LiveMetajob:
        live = self._lives.get(event.text)
        if live is None or not (event.operator or live.kept.user == event.user):
            raise UserError("there is no metajob of yours with this id")
        return live

    def _status(self, event: PluginAsked) -> Answer:
        if event.text:
            told: Any = full(self._named(event))
        else:
            told = [
                brief(live) for live in self._lives.values() if event.operator or live.kept.user == event.user
            ]
        return Answer("accepted", msgspec.json.encode(told).decode())

    def _cancel(self, event: PluginAsked, state: State) -> Answer:
        live = self._named(event)
        if live.kept.phase in ("cancelled", "over"):
            return Answer("accepted", f"metajob {live.kept.id} is {live.kept.phase} already")
        running = [part.name for part in live.kept.parts if live.runs_in(part.name, state)]
        live.give_back("cancelled", f"cancelled by {event.user}")
        if running:
            live.kept.why += f"; jobs run in {', '.join(running)}, which end with their time"
        return Answer("accepted", f"metajob {live.kept.id} is given back")

    # ------------------------------------------------------------------ over a restart

    @hookimpl
    def promised(self) -> int:
        return self._promises

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "number": self._number,
            "metajobs": [live.saved() for live in self._lives.values()],
        }

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._number = saved["number"]
        for one in saved["metajobs"]:
            live = LiveMetajob(msgspec.convert(one, Kept))
            if not {*live.kept.metajob.machines} <= {*self._machines}:
                # The operator took a machine out of the configuration.
                continue
            self._lives[live.kept.id] = live
            if live.kept.phase == "searching":
                live.give_back("searching")
            if live.kept.phase not in ("cancelled", "over"):
                self._by_job.update(dict.fromkeys(live.kept.pools, live))


def _over(live: LiveMetajob, reservation: str, state: State) -> bool:
    """Whether a part was given back because its job has ended."""
    job = live.job_of(reservation)
    return bool(job) and job not in state.jobs and reservation not in state.reservations


def _why_not(kept: Kept) -> str:
    """Why a job of a metajob does not start."""
    why = "a place is looked for"
    if kept.phase in ("refused", "lost"):
        why = f"{kept.why or kept.phase}; `headway metajob cancel {kept.id}` lets the job run alone"
    return f"it belongs to metajob {kept.id}: {why}"
