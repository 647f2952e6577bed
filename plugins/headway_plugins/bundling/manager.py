"""Elastic job bundling over any policy: wide jobs run early on subjobs that fit what the policy leaves idle.

F. Liu, J. B. Weissman: Elastic Job Bundling: An Adaptive Resource Request Strategy for Large-Scale Parallel
Applications. SC 2015, section 3. The policy is the paper's unmodified batch scheduler; J_0, the original
request, stays in its queue. What is asked for is in :mod:`.cases`, by the plans of :mod:`.planning`.

A step of an instant: the policy's own pass, then the J_0 of running bundles that it has started; if that
frees processors the policy passes again. Then the elastic jobs are asked in order of submission, each with
the slots that the jobs before it have left. Their subjobs arrive in a further round of the same instant,
behind the queue. A subjob that does not start then is taken back, and the job is asked again at the next
event.

Decisions on what the paper leaves open:

- A job is elastic from the instant of its submission if it has not started in it.
- A job whose application is being moved is asked when it has arrived.
- ``activation``: waiting jobs are asked only while more than so many jobs are queued; running jobs always.
- After a move to J_0, or a restart there, a job is asked no more; if J_0 is to be dropped it is held, and
  ends with its application.
- If a member is lost with processes on it, the application goes on from its last move on the other members if
  that completes in time. Else it waits again, with what was done at that move, and asks for the rest only.
  Its own request keeps its limit. A launch from a checkpoint takes no longer than any other launch.
- If a member was lost because it reached its limit, less was done than planned: a job that waits again after
  that asks for the whole.
- A subjob that has not arrived within a minute is not waited for. What cannot be taken back is tried again
  after 15 s.
- Jobs that ask for more than processors, time, features and nodes to avoid are not elastic: what their
  subjobs would have to ask for is not known.
- All times are rounded to 2^-20 s, so that sums of them are exact.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from headway.decisions import Cancel, Decision, Hold, Kill, Migrate, Release, Requeue, Start, SubmitSubjob
from headway.events import DecisionFailed, Event, JobEnded, JobRequeued, JobStarted, JobSubmitted
from headway.hookspecs import hookimpl
from headway.model import JobDescription, Request
from headway.model.bundles import BUNDLE, Oversubscription, on_tick
from headway.plugins import Traits
from headway.state import Domain, Job, State
from headway.state.records import ON_NODES
from headway_plugins.bundling.bundling_options import BundlingOptions
from headway_plugins.bundling.cases import Choice, first_subjobs, further_subjobs, when_placeholder_starts
from headway_plugins.bundling.elastic import Elastic
from headway_plugins.bundling.figures import bundling_figures
from headway_plugins.bundling.known_jobs import PENDING, STARTING, WAITING, ElasticJobs, subjobs_request
from headway_plugins.bundling.model import EQUAL, Interval, Member
from headway_plugins.bundling.planning import plan
from headway_plugins.bundling.room import Room
from headway_plugins.bundling.slots import Slots, backfillable

_INF = float("inf")
#: Seconds for which a subjob that was asked for may be on its way.
_PATIENCE = 60.0


class Bundling(ElasticJobs):
    """Elastic job bundling: wide jobs run early, on several small subjobs."""

    Options = BundlingOptions
    traits = Traits(
        needs=(SubmitSubjob, Migrate, Kill, Cancel, Requeue, Hold, Release),
        observes=(JobSubmitted, JobStarted, JobEnded, JobRequeued, DecisionFailed),
        paper="F. Liu, J. B. Weissman: Elastic Job Bundling, SC 2015, section 3",
    )

    @hookimpl
    def register_physics(self) -> Oversubscription:
        return self._costs

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"bundling": bundling_figures}

    @hookimpl
    def checkpoint(self) -> Any:
        if not (self._elastic or self._orphans or self._cancelled or self._killed):
            return None
        return {
            "elastic": [job.saved() for job in self._elastic.values()],
            "active": list(self._active),
            "arrived": self._arrived,
            "orphans": self._orphans,
            "cancelled": sorted(self._cancelled),
            "killed": sorted(self._killed),
            "broken": list(self._broken),
            "late": sorted(self._late),
            "asked at": self._asked_at,
        }

    @hookimpl
    def restore(self, saved: Any) -> None:
        self._arrived, self._orphans = saved["arrived"], saved["orphans"]
        self._cancelled, self._killed = set(saved["cancelled"]), set(saved["killed"])
        self._broken = dict.fromkeys(saved["broken"])
        self._late = set(saved.get("late", ()))
        self._asked_at = saved["asked at"]
        for each in saved["elastic"]:
            job = Elastic.restored(each, self._model(1, 0.0))
            self._elastic[job.job_id] = job
        self._active = {job_id: self._elastic[job_id] for job_id in saved["active"]}
        self._restored = True

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        kind = type(event)
        if kind is JobSubmitted:
            self._submitted(event.job)  # type: ignore[attr-defined]
        elif kind is JobEnded or kind is JobRequeued:
            job_id: str = event.job_id  # type: ignore[attr-defined]
            if job_id in self._cancelled:
                # It had nothing, so there is nothing more to ask for.
                self._cancelled.discard(job_id)
                return
            self._asked_at = None
            self._killed.discard(job_id)
            if kind is JobEnded and job_id in self._elastic:
                self._forget(job_id)
            else:
                late = kind is JobEnded and event.outcome == "timed out"  # type: ignore[attr-defined]
                self._lost(job_id, late=late)
        elif kind is JobStarted:
            job_id = event.job_id  # type: ignore[attr-defined]
            if job_id in self._cancelled:
                # It was faster.
                self._cancelled.discard(job_id)
                self._killed.add(job_id)
            job = self._elastic.get(job_id)
            if job is not None and not job.running:
                self._runs_alone(job, event.time)
        elif kind is DecisionFailed:
            self._failed(event.decision, event.time)  # type: ignore[attr-defined]

    @hookimpl
    def control(self, state: State) -> Iterable[Decision] | None:
        if not (self._elastic or self._arrived or self._orphans):
            return None
        return self._decide(state)

    @hookimpl
    def revise(self, decisions: list[Decision]) -> list[Decision] | None:
        if not self._dropped:
            return None
        dropped, self._dropped = self._dropped, {}
        kept: list[Decision] = []
        for decision in decisions:
            why = dropped.get(decision.job_id) if isinstance(decision, Start) else None
            if why is None:
                kept.append(decision)
            elif why:
                kept.append(Hold(decision.job_id, why))  # type: ignore[attr-defined]
        return kept

    def _decide(self, state: State) -> Iterator[Decision]:
        jobs, now = state.jobs, state.now
        if self._restored:
            self._compare(state)
        if self._orphans:
            yield from self._take_back(state)
        for job_id in self._arrived:
            arrived = jobs.get(job_id)
            if arrived is not None and arrived.status in (PENDING, WAITING):
                self._elastic[job_id] = self._made(arrived)
        self._arrived = []
        if self._active and (yield from self._go_on(state)):
            # The policy passes first.
            self._asked_at = None
            return
        if self._asked_at != now:
            self._asked_at = now
            for domain in state.domains.values():
                if domain.free:
                    yield from self._ask_all(domain, state)
        if self.options.release_reservation:
            yield from self._give_up_places(state)

    def _go_on(self, state: State) -> Generator[Decision, None, bool]:
        """What becomes of bundles that asked, lost a member, or whose original request has started; whether
        the policy is to pass before anything is asked for."""
        for job in list(self._active.values()):
            if job.asked:
                yield from self._settle(job, state)
        again = False
        for job_id in list(self._broken):
            if job_id in self._active and self._active[job_id].running:
                given_back = list(self._mend(self._active[job_id], state))
                yield from given_back
                # What it still has is to be free before it asks.
                again = again or (job_id not in self._active and bool(given_back))
        self._broken.clear()
        self._late.clear()
        for job in self._active.values():
            if not job.running or job.job_id in self._dropped:
                continue
            if state.jobs[job.job_id].status in ON_NODES and job.job_id not in job.members:
                turned = self._turn(job, state)
                again = again or turned is None or turned.restart
                if turned is not None:
                    yield turned
            else:
                yield from self._depart(job, state.now)
        return again

    def _give_up_places(self, state: State) -> Iterator[Hold]:
        """J_0 at the head of a queue reserves nothing if its bundle completes before it could start."""
        for domain in state.domains.values():
            first = domain.queue[0] if domain.queue else None
            job = self._active.get(first.id) if first is not None else None
            if first is None or job is None or not job.running or job.held or first.status is not PENDING:
                continue
            ends = [(end, processors) for end, _, processors, _ in state.entries_in(first.pool)]
            shadow = backfillable(state.now, state.free_in(first.pool), first.processors, ends).shadow
            if job.completion <= shadow + EQUAL:
                job.held, self._asked_at = True, None
                yield Hold(first.id, f"its subjobs complete it by {job.completion:.0f}, before it can start")

    def _ask_all(self, domain: Domain, state: State) -> Iterator[Decision]:
        now, omax = state.now, self.options.omax
        quiet = len(domain.queue) <= self.options.activation
        rooms: dict[str, Room] = {}
        for job in self._elastic.values():
            own = state.jobs[job.job_id]
            if own.domain is not domain or not _may_ask(job, own, now, quiet):
                continue
            room = rooms.get(own.pool.name)
            if room is None:
                room = rooms[own.pool.name] = Room(own.pool, state)
            if not room.free or (not job.running and room.free * omax < job.model.processors):
                continue
            slots = room.slots()
            choice = self._choice(job, now, slots)
            if choice is None:
                continue
            for subjob in self._submit(job, choice, slots, state):
                yield subjob
                for other in domain.pools:
                    if other.name not in rooms:
                        rooms[other.name] = Room(other, state)
                    rooms[other.name].give(own, subjob.job.request)
            if not any(room.free for room in rooms.values()):
                return

    def _choice(self, job: Elastic, now: float, slots: Slots) -> Choice | None:
        if not job.running:
            return first_subjobs(job.rest(), now, slots)
        return further_subjobs(
            job.model, now, job.progress(now), list(job.members.values()), job.intervals, slots,
            min_gain=self.options.min_gain, slack=self.options.slack,
        )  # fmt: skip

    def _submit(self, job: Elastic, choice: Choice, slots: Slots, state: State) -> Iterator[SubmitSubjob]:
        own = state.jobs[job.job_id]
        now, parent = state.now, own.description
        job.choice, job.asked_at = choice, now
        self._active[job.job_id] = job
        when = "never" if choice.completion == _INF else f"{choice.completion:.0f}"
        for processors, seconds in choice.subjobs:
            walltime = on_tick(seconds)
            if processors > slots.lasting:
                walltime = min(walltime, slots.shadow - now)
            job.numbered += 1
            while (name := f"{job.job_id}.{job.numbered}") in state.jobs:
                job.numbered += 1
            request = subjobs_request(parent.request, Request(processors, walltime))
            job.asked[name] = Member(processors, now + walltime)
            description = JobDescription(
                name, now, request, own.pool.name, parent.name, parent.user, parent.group, parent.account,
                parent.qos, attributes={BUNDLE: job.job_id},
            )  # fmt: skip
            doing = "runs on more processors" if job.running else "starts early"
            yield SubmitSubjob(
                job.job_id,
                description,
                f"job {job.job_id} {doing} and completes by {when} (case {choice.case})",
            )

    def _settle(self, job: Elastic, state: State) -> Iterator[Decision]:
        """The subjobs that were asked for have started, or are taken back."""
        jobs, now = state.jobs, state.now
        late = job.asked_at + _PATIENCE
        if now < late and any(name not in jobs for name in job.asked):
            state.wake_at(late, state.pools[job.pool])
            return
        own = jobs[job.job_id]
        if not job.running and own.status in ON_NODES:
            if not _ordered_now(own, now):
                # It was ordered before they came.
                self._runs_alone(job, now)
                yield from self._take_back(state)
                return
            # Its subjobs come first; the policy may start it next.
            self._dropped[job.job_id] = ""
        started = _started(job, jobs)
        for name in job.asked:
            if name in jobs and name not in started:
                self._cancelled.add(name)
                yield Cancel(name, "the subjob could not start at once")
        choice, asked, job.asked, job.choice = job.choice, len(job.asked), {}, None
        together = job.model.migration
        intervals: Sequence[Interval] | None = None
        # What was planned then is not what is ahead later.
        in_time = job.asked_at >= now - EQUAL
        if choice is not None and in_time and len(started) == asked == len(choice.subjobs):
            intervals = choice.intervals
            if not job.running:
                together = 0.0
        elif started:
            intervals = _of_use(job, now, started)
            for name in started if intervals is None else ():
                self._killed.add(name)
                yield Kill(name, "the subjob alone is of no use to its bundle")
        if intervals is None:
            if not job.running:
                self._active.pop(job.job_id, None)
            return
        yield from self._go_on_with(job, started, intervals, together, state)

    def _go_on_with(
        self, job: Elastic, started: Mapping[str, Member], intervals: Sequence[Interval], together: float,
        state: State,
    ) -> Iterator[Decision]:  # fmt: skip
        """The bundle runs by this plan, on the subjobs that have started as well."""
        now, grows = state.now, job.running
        job.adopt(now, tuple(intervals), together=together)
        job.members.update(started)
        self._wake(job, state)
        if grows:
            yield job.sent(now, job.members, "spreads over further processors")
        else:
            job.using = list(job.members)

    def _depart(self, job: Elastic, now: float) -> Iterator[Decision]:
        """Have processes leave the subjobs whose time ends."""
        present = job.present(now)
        if present is not None and present.migrating and job.must_leave(present):
            yield job.sent(now, job.staying(present.end), "leaves processors whose time limit ends")

    def _turn(self, job: Elastic, state: State) -> Migrate | None:
        """J_0 has been started: what becomes of the bundle. None: J_0 is not needed."""
        now, model, job_id = state.now, job.model, job.job_id
        # What runs already, since headway did not start it, is used.
        own = state.jobs[job_id]
        otherwise = job.completion if _ordered_now(own, now) else _INF
        option, completion = when_placeholder_starts(model, now, job.progress(now), otherwise)
        if option == "continue":
            job.held = True
            self._dropped[job_id] = (
                f"its subjobs complete it by {completion:.0f}, sooner than on its own request"
            )
            return None
        restart = option == "restart"
        if restart:
            job.done, job.intervals = 0.0, []
        run = Interval(now + (0.0 if restart else model.migration), completion, model.processors)
        moved = [run] if restart else [Interval(now, run.start, 0, True), run]
        job.adopt(now, moved, together=model.migration)
        job.settled = True
        start = now if own.start_time is None else own.start_time
        job.members[job_id] = member = Member(model.processors, start + model.walltime)
        what = "begins again" if restart else "goes on"
        return job.sent(now, {job_id: member}, f"{what} on its own request", restart=restart)

    def _mend(self, job: Elastic, state: State) -> Iterator[Decision]:
        """Processes were lost with a member: go on from the last move on the other members, or wait again."""
        now, model = state.now, job.model
        job.done, job.intervals, job.settled = job.safe, [], False
        intervals = plan(model, now, job.safe, job.members.values(), model.migration) if job.members else None
        if intervals is not None:
            job.adopt(now, intervals, together=model.migration)
            self._wake(job, state)
            yield job.sent(now, job.members, "goes on from its last checkpoint on the remaining processors")
            return
        own = job.members.get(job.job_id)
        if own is not None and now + model.walltime <= own.end + EQUAL:
            job.adopt(now, [Interval(now, now + model.walltime, model.processors)], together=model.migration)
            job.settled = True
            yield job.sent(now, {job.job_id: own}, "begins again on its own request", restart=True)
            return
        for name in job.members:
            if name == job.job_id:
                yield Requeue(name, "the processes of the bundle cannot be moved here in time")
            else:
                self._killed.add(name)
                yield Kill(name, "the rest of its bundle does not suffice")
        if job.held:
            yield Release(job.job_id, "its bundle is lost")
        job.reset(late=job.job_id in self._late)
        self._active.pop(job.job_id, None)


def _ordered_now(job: Job, now: float) -> bool:
    """Whether it was this step that decided its start, so that it can be dropped."""
    return job.status is STARTING and job.start_time is not None and job.start_time >= now - EQUAL


def _may_ask(job: Elastic, own: Job, now: float, quiet: bool) -> bool:
    """Whether the bundle may ask for subjobs now; ``quiet``: too few jobs are queued for that."""
    if job.asked:
        return False
    if not job.running:
        return not quiet and own.status is PENDING
    return not job.settled and job.may_grow(now)


def _started(job: Elastic, jobs: Mapping[str, Job]) -> dict[str, Member]:
    """The subjobs that were asked for and have started, by name."""
    started = {}
    for name, member in job.asked.items():
        found = jobs.get(name)
        if found is not None and found.start_time is not None and found.status in ON_NODES:
            started[name] = Member(member.processors, found.start_time + found.request.walltime)
    return started


def _of_use(job: Elastic, now: float, started: Mapping[str, Member]) -> Sequence[Interval] | None:
    """The plan with these subjobs as well; None if with them the bundle completes no sooner."""
    lead = job.model.migration if job.running else 0.0
    both = [*job.members.values(), *started.values()]
    intervals = plan(job.model, now, job.progress(now), both, lead)
    if intervals is None or (job.running and intervals[-1].end >= job.completion - EQUAL):
        return None
    return intervals
