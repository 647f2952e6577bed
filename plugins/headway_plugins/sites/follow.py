"""Follow: jobs go to the site of a federation that is best for them now.

A practical form of the Wave Scheduler (D. Zhou, V. Lo: Wave Scheduler: Scheduling for Faster Turnaround Time
in Peer-Based Desktop Grid Systems, JSSPP 2005) for sites with batch systems. The scheduler knows all
calendars, so there is no search in an overlay: a job goes where the longest idle time is left. Load, data,
price and carbon are compared in the same way.

- A waiting job that may be moved is compared with what it could expect at each other site (:mod:`.prospects`,
  :mod:`.comparing`), when it arrives and then every ``every`` seconds at most; at once when a site opens or
  closes, or a price changes.
- It goes only for the least gain, goes at most ``most_routes`` times, and never returns to a site that it has
  left, unless it has run meanwhile, or its site has closed or cannot run it.
- Running jobs leave a site that closes, or has become too dear, by one of the paper's three ways
  (:mod:`.leaving`).
- The datasets that a job lacks where it waits are copied there, and until they have come the job is barred
  (option ``copies``), as by ``staging`` (:mod:`headway_plugins.data.supply`).

What ran where, what that cost and what it emitted: :mod:`.ledger`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from headway.decisions import Checkpoint, Copy, Decision, Drop, Requeue, Route, Signal
from headway.errors import UserError, nearest
from headway.events import (
    ClusterAnswers,
    CopyFailed,
    DatasetCopied,
    DatasetLost,
    DecisionFailed,
    Event,
    JobChanged,
    JobCheckpointed,
    JobEnded,
    JobReleased,
    JobRequeued,
    JobRouted,
    JobStarted,
    JobSubmitted,
    PoolChanged,
)
from headway.hookspecs import hookimpl
from headway.model.sites import DATA, GOES_ON, MOVABLE
from headway.plugins import Traits
from headway.results import RunResult
from headway.state import Job, State
from headway.state.records import ON_NODES, PoolState
from headway_plugins.data.supply import Supplied, Supply
from headway_plugins.sites.comparing import Judgement, best, deciding, in_words, no_gain_possible
from headway_plugins.sites.leaving import Leaving
from headway_plugins.sites.ledger import Ledger
from headway_plugins.sites.options import FollowOptions
from headway_plugins.sites.prospects import Prospect, Prospects, says

_INF = float("inf")
#: Seconds after which a job that the cluster did not send on is looked at again.
_AFTER_FAILURE = 600.0


@dataclass(slots=True)
class _Trip:
    """Where a job has been."""

    routes: int = 0
    #: The sites that it has left since it ran last; and the site that it leaves, while it is on its way.
    left: set[str] = field(default_factory=set)
    leaves: str = ""
    #: Seconds of its work that it has saved when it left sites.
    kept: float = 0.0
    #: After a route that failed: when it is looked at again, and why it failed.
    not_before: float = -_INF
    failed: str = ""


class Follow(Supplied):
    """Send jobs to the site that is best now: by calendar, load, data, price or carbon."""

    Options = FollowOptions
    traits = Traits(
        needs=(Route,), uses=(Requeue, Signal, Copy, Drop, Checkpoint),
        words=frozenset({DATA, MOVABLE, *GOES_ON}), checkpoint="promises",
        paper="D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005",
    )  # fmt: skip

    options: FollowOptions

    def __init__(self, options: FollowOptions) -> None:
        super().__init__(options)
        self._state: State
        self._leaving: Leaving
        self._ledger: Ledger
        self._trips: dict[str, _Trip] = {}
        self._judged: dict[str, Judgement] = {}
        #: Jobs to look at in the next step, as they came.
        self._fresh: dict[str, None] = {}
        #: When all waiting jobs are looked at next; and until when a step is planned for that.
        self._due = -_INF
        self._planned = -_INF
        #: Something has happened since then.
        self._news = False
        self._counts = {
            "routes": 0,
            "requeues": 0,
            "processor_hours_lost": 0.0,
            "copies": 0,
            "bytes_copied": 0,
        }

    # ------------------------------------------------------------------ a run's beginning and end

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type[Decision]]) -> None:
        options = self.options
        if state.catalogue is None:
            raise UserError(
                "plugin 'follow': expected a federation with sites (clusters.NAME.site), found none"
            )
        sites = state.catalogue.sites
        for name, tariffs in (("price", options.prices), ("carbon", options.carbons)):
            for site in tariffs:
                if site not in sites:
                    raise UserError(
                        f"plugin 'follow': {name}: no site is called {site!r}.{nearest(site, sites)}"
                    )
            missing = [site for site in sites if site not in tariffs]
            if name in options.by and missing:
                raise UserError(
                    f"plugin 'follow': {name}: expected that of each site, found none of {missing[0]}"
                )
        if options.when is not None and Requeue not in capabilities:
            raise UserError(
                "plugin 'follow': when: expected a cluster that requeues jobs, found that it cannot"
            )
        if options.copies and Copy in capabilities and state.catalogue.datasets:
            self._supply = Supply(state, options, capabilities, "follow", roams=self._may_move)
        self._state = state
        self._leaving = Leaving(options, state, handlers=Checkpoint in capabilities)
        self._ledger = Ledger(state, sites, options.prices, options.carbons)
        state.watch(self._ledger)

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        trips = {job: [trip.routes, sorted(trip.left)] for job, trip in self._trips.items()}
        bound = {job: list(where) for job, where in self._leaving.bound.items()}
        return {
            "trips": trips, "bound": bound,
            "supply": self._supply.kept() if self._supply is not None else None,
        }  # fmt: skip

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._trips = {job: _Trip(routes, set(left)) for job, (routes, left) in saved["trips"].items()}
        self._leaving.bound = {job: (where[0], where[1]) for job, where in saved["bound"].items()}
        if self._supply is not None and saved["supply"] is not None:
            self._supply.take_up(saved["supply"])

    @hookimpl
    def promised(self) -> int | None:
        # A job that was requeued to go elsewhere goes there, whichever daemon comes next.
        return int(self._counts["requeues"])

    # ------------------------------------------------------------------ events

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        self._news = True
        if self._supply is not None:
            self._supply.note(event, state)
        if isinstance(event, JobStarted):
            self._started(event)
        elif isinstance(event, JobEnded | JobRequeued):
            self._gone(event)
        elif isinstance(event, JobSubmitted | JobChanged):
            self._fresh[event.job.id] = None
        elif isinstance(event, JobReleased):
            self._fresh[event.job_id] = None
        elif isinstance(event, JobRouted):
            self._arrived(event, state)
        elif isinstance(event, PoolChanged | ClusterAnswers):
            self._due = -_INF
        elif isinstance(event, DatasetCopied | DatasetLost | CopyFailed):
            self._data(event, state)
        elif isinstance(event, JobCheckpointed):
            self._leaving.is_saved(event.job_id, event.time)
        elif isinstance(event, DecisionFailed):
            self._failed(event)

    def _failed(self, event: DecisionFailed) -> None:
        if isinstance(event.decision, Route):
            trip = self._trip(event.decision.job_id)
            trip.not_before, trip.failed = event.time + _AFTER_FAILURE, event.message
        elif isinstance(event.decision, Requeue):
            self._leaving.bound.pop(event.decision.job_id, None)
        elif isinstance(event.decision, Checkpoint):
            self._leaving.is_not_saved(event.decision.job_id, event.message, event.time)

    def _arrived(self, event: JobRouted, state: State) -> None:
        self._counts["routes"] += 1
        job = state.jobs.get(event.job_id)
        if job is not None and job.refusal:
            # It was compared when it left. Only what was not known then counts at once.
            self._fresh[event.job_id] = None
        trip = self._trip(event.job_id)
        trip.routes += 1
        if trip.leaves:
            trip.left.add(trip.leaves)
            trip.leaves = ""

    def _started(self, event: JobStarted) -> None:
        self._fresh.pop(event.job_id, None)
        self._judged.pop(event.job_id, None)
        self._leaving.bound.pop(event.job_id, None)
        if (trip := self._trips.get(event.job_id)) is not None:
            trip.left.clear()

    def _gone(self, event: JobEnded | JobRequeued) -> None:
        job_id = event.job_id
        self._leaving.forget(job_id)
        if isinstance(event, JobRequeued):
            self._fresh[job_id] = None
            return
        self._trips.pop(job_id, None)
        self._judged.pop(job_id, None)
        self._fresh.pop(job_id, None)
        self._leaving.bound.pop(job_id, None)

    def _data(self, event: DatasetCopied | DatasetLost | CopyFailed, state: State) -> None:
        self._due = -_INF
        if isinstance(event, DatasetCopied):
            assert state.catalogue is not None
            if event.source and event.dataset in state.catalogue.datasets:
                self._counts["copies"] += 1
                self._counts["bytes_copied"] += state.catalogue.datasets[event.dataset].size

    # ------------------------------------------------------------------ decisions

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        if self._supply is not None:
            self._supply.let_in(state)
        prospects = Prospects(state, self.options.prices, self.options.carbons, self.options.depth)
        yield from self._leave(state, prospects)
        swept = state.now >= self._due
        jobs = self._to_look_at(state, swept)
        for job in jobs:
            yield from self._look(job, prospects)
        self._plan(state, swept)

    def _to_look_at(self, state: State, swept: bool) -> list[Job]:
        """The waiting jobs that may be moved and are to be looked at in this step."""
        jobs = state.jobs
        if swept:
            found = list(jobs.values())
            self._due, self._news = state.now + self.options.every, False
        else:
            found = [job for name in self._fresh if (job := jobs.get(name)) is not None]
        self._fresh.clear()
        return [job for job in found if self._leaving.waits(job) and self._may_move(job)]

    def _plan(self, state: State, swept: bool) -> None:
        """Have a step come when all waiting jobs are due to be looked at again, or a price changes."""
        now, due = state.now, _INF
        waiting = any(self._leaving.waits(job) and self._may_move(job) for job in state.jobs.values())
        if waiting and self._news and not swept:
            due = self._due
        dear = self.options.leave_above is not None and any(one.running for one in state.domains.values())
        if waiting or dear:
            tariffs = (*self.options.prices.values(), *self.options.carbons.values())
            change = min((one.next_change(now + state.epoch) for one in tariffs), default=_INF) - state.epoch
            self._due, due = min(self._due, change), min(due, change)
        if now < due < _INF and not now < self._planned <= due:
            self._planned = due
            state.wake_at(due, next(iter(state.pools.values())))

    def _may_move(self, job: Job) -> bool:
        return self.options.movable == "all" or says(job, MOVABLE)

    def _trip(self, job_id: str) -> _Trip:
        trip = self._trips.get(job_id)
        if trip is None:
            trip = self._trips[job_id] = _Trip()
        return trip

    # ------------------------------------------------------------------ waiting jobs

    def _look(self, job: Job, prospects: Prospects) -> Iterator[Decision]:
        """Compare the sites for a waiting job, and send it on if that pays."""
        judgement = self._judged[job.id] = self._judge(job, prospects)
        chosen = judgement.chosen
        if chosen is None or judgement.stays:
            return
        state = self._state
        under_way = sum(1 for other in state.jobs.values() if other.bound_for)
        if under_way >= self.options.at_a_time:
            judgement.stays = f"{under_way} jobs are on their way already, as many as may be"
            self._due = min(self._due, state.now + self.options.every)
            return
        self._leaving.bound.pop(job.id, None)
        reason = f"{chosen.site} is better now: {judgement.reason(self.options)}"
        yield Route(job.id, chosen.pool.name, reason)
        if job.bound_for:
            self._trip(job.id).leaves = judgement.here.site
            prospects.sent(job, chosen.pool)

    def _judge(self, job: Job, prospects: Prospects) -> Judgement:
        """Where a waiting job should be."""
        options, now = self.options, self._state.now
        trip = self._trip_of(job)
        here = prospects.of(job, job.pool, trip.kept)
        judgement = Judgement(now, here)
        bound, why = self._leaving.bound.get(job.id, ("", ""))
        if trip.routes >= options.most_routes:
            judgement.stays = f"it was sent on {trip.routes} times, as often as it may be"
        elif trip.not_before > now:
            judgement.stays = f"the last attempt to send it on failed ({trip.failed})"
        elif self._state.silent_since(job.pool.name) is not None:
            judgement.stays = "its cluster does not answer"
        elif not bound and no_gain_possible(here, now, options):
            judgement.stays = f"no site can be better by {' and '.join(options.by)}"
        if judgement.stays:
            return judgement
        found = self._places(job, prospects, judgement, trip)
        if bound and (place := next((one for one in found if one.pool.name == bound), None)) is not None:
            # It was requeued to go there.
            judgement.chosen, judgement.why = place, why
            return judgement
        judgement.seen = found
        judgement.chosen = best([one for one in found if deciding(here, one, options)[1] > 0], options)
        return judgement

    def _places(self, job: Job, prospects: Prospects, judgement: Judgement, trip: _Trip) -> list[Prospect]:
        """The pools of other sites that could take the job."""
        here, found = judgement.here, []
        for pool, site in _elsewhere(job, self._state):
            if site in trip.left and here.opens_in <= 0 and here.start < _INF:
                judgement.barred[site] = "it has come from there"
                continue
            why = prospects.why_not(job, pool) or self._too_dear(site)
            if not why:
                one = prospects.of(job, pool, trip.kept)
                if one.copying == _INF:
                    why = "its data cannot come there"
                elif one.start > here.start + self.options.later:
                    why = in_words("load", here, one, self._state.now)
                else:
                    found.append(one)
            if why:
                judgement.barred.setdefault(site, why)
        return found

    def _too_dear(self, site: str) -> str:
        """Why no work is to be at a site for its price; "" if it may."""
        most, tariff = self.options.leave_above, self.options.prices.get(site)
        if most is None or tariff is None:
            return ""
        price = tariff.at(self._state.now + self._state.epoch)
        return f"its price is {price:g}, above {most:g}" if price > most else ""

    # ------------------------------------------------------------------ running jobs

    def _leave(self, state: State, prospects: Prospects) -> Iterator[Decision]:
        catalogue = state.catalogue
        assert catalogue is not None

        def to_leave(pool: PoolState) -> str:
            if not pool.domain.running:
                return ""
            site = catalogue.site_of(pool.name)
            if not prospects.has_hours(site):
                return f"{site} is closed"
            why = self._too_dear(site)
            return f"{site} is too dear: {why}" if why else ""

        def allowed(job: Job) -> bool:
            trip = self._trip_of(job)
            # A job that could not be sent on would be requeued in vain.
            return self._may_move(job) and trip.routes < self.options.most_routes and not trip.failed

        def find(job: Job) -> Prospect | None:
            kept = self._trip_of(job).kept + (job.done(state.now) if self._leaving.saves(job) else 0.0)
            places = [
                prospects.of(job, pool, kept)
                for pool, site in _elsewhere(job, self._state)
                if not prospects.why_not(job, pool) and not self._too_dear(site)
            ]
            soon = [one for one in places if one.start <= state.now + self.options.later]
            return best(soon, self.options)

        for decision in self._leaving.decide(state, to_leave, allowed, find):
            if isinstance(decision, Requeue):
                job = state.jobs[decision.job_id]
                losing, kept = self._leaving.work.pop(job.id)
                if kept:
                    self._trip(job.id).kept += kept
                self._counts["requeues"] += 1
                self._counts["processor_hours_lost"] += losing * job.processors / 3600.0
            yield decision

    def _trip_of(self, job: Job) -> _Trip:
        return self._trips.get(job.id) or _Trip()

    # ------------------------------------------------------------------ what is told

    @hookimpl
    def explain(self, job: Job, question: str) -> str | None:
        if question != "site":
            return None
        if job.status in ON_NODES:
            why = self._leaving.said.get(job.id)
            return f"It does not leave its site: {why}" if why else None
        if job.bound_for:
            known = self._judged.get(job.id)
            return known.sentence(self.options) if known is not None else None
        if not self._may_move(job):
            return f"It stays at its site: it does not have the attribute {MOVABLE!r}"
        if not self._leaving.waits(job):
            return "It stays at its site: it waits for more than a place to run"
        known = self._judged.get(job.id)
        return known.sentence(self.options) if known is not None else None

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"follow": lambda result: {**self._counts, **self._ledger.figures()}}


def _elsewhere(job: Job, state: State) -> Iterator[tuple[PoolState, str]]:
    """The pools of other sites than the job's, each with its site."""
    catalogue = state.catalogue
    assert catalogue is not None
    home = catalogue.site_of(job.pool.name)
    for pool in state.pools.values():
        if (site := catalogue.site_of(pool.name)) != home:
            yield pool, site
