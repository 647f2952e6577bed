"""The elastic jobs that there are, and what becomes of them and their subjobs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from headway.decisions import Cancel, Decision, Kill, Migrate, Start, SubmitSubjob
from headway.hookspecs import Plugin
from headway.model import JobDescription, Request
from headway.model.bundles import Oversubscription, on_tick, parent_of
from headway.state import Job, State, Status
from headway.state.records import ON_NODES
from headway_plugins.bundling.bundling_options import BundlingOptions
from headway_plugins.bundling.elastic import Elastic
from headway_plugins.bundling.model import EQUAL, Model

PENDING, WAITING, STARTING = Status.PENDING, Status.WAITING, Status.STARTING
#: Seconds after which a subjob that no job uses is taken back again.
_AGAIN = 15.0


class ElasticJobs(Plugin):
    """The elastic jobs of the plugin, as events tell of them."""

    options: BundlingOptions

    def __init__(self, options: BundlingOptions | None = None) -> None:
        self.options: BundlingOptions = options or BundlingOptions()
        self._costs = Oversubscription(
            self.options.penalty, on_tick(self.options.migration), self.options.migration_per_process
        )
        self._only = frozenset(self.options.only)
        #: In order of submission; and the jobs among them that run as bundles or have asked for subjobs.
        self._elastic: dict[str, Elastic] = {}
        self._active: dict[str, Elastic] = {}
        #: Jobs that were submitted in this step and may be elastic; subjobs that no job uses, and from when
        #: on they are to be taken back.
        self._arrived: list[str] = []
        self._orphans: dict[str, float] = {}
        #: Subjobs that were taken back before they ran, whose end is no news; and running subjobs.
        self._cancelled: set[str] = set()
        self._killed: set[str] = set()
        #: Bundles that lost a member with processes on it.
        self._broken: dict[str, None] = {}
        #: The bundles among them whose member reached its limit.
        self._late: set[str] = set()
        #: J_0 that are to be held instead of started, and why; "": only not now.
        self._dropped: dict[str, str] = {}
        #: A predecessor's state was taken up and is to be compared with what is there.
        self._restored = False
        #: When all were asked last; None: something has happened since.
        self._asked_at: float | None = None

    def _failed(self, decision: Decision, now: float) -> None:
        """The cluster did not do what this plugin, or the policy with its jobs, decided."""
        if isinstance(decision, Migrate):
            job = self._active.get(decision.job_id)
            if job is not None:
                job.refused = True
                self._broken[decision.job_id] = None
        elif isinstance(decision, SubmitSubjob):
            self._lost(decision.job.id)
        elif isinstance(decision, Start):
            # It may have been counted as running already.
            if self._lost(decision.job_id) and decision.job_id not in self._elastic:
                self._orphans[decision.job_id] = now
        elif isinstance(decision, Cancel | Kill):
            job_id = decision.job_id
            if job_id in self._cancelled or job_id in self._killed:
                self._cancelled.discard(job_id)
                self._killed.discard(job_id)
                self._orphans[job_id] = now + _AGAIN

    def _submitted(self, description: JobDescription) -> None:
        parent = parent_of(description)
        if parent:
            owner = self._elastic.get(parent)
            if owner is None or not (description.id in owner.asked or description.id in owner.members):
                self._orphans[description.id] = description.submit_time
            return
        self._asked_at = None
        if description.id not in self._elastic and self._may_be_elastic(description):
            self._arrived.append(description.id)

    def _may_be_elastic(self, job: JobDescription) -> bool:
        request = job.request
        if request.processors < self.options.min_processors or (self._only and job.id not in self._only):
            return False
        plain = Request(request.processors, request.walltime)
        return not job.reservation and subjobs_request(request, plain) == request

    def _lost(self, job_id: str, *, late: bool = False) -> bool:
        """A member is gone, or back in the queue; whether it was a member. ``late``: it reached its limit."""
        for job in self._active.values():
            asked = job.asked.pop(job_id, None) is not None
            if job.members.pop(job_id, None) is not None:
                if job_id in job.using:
                    self._broken[job.job_id] = None
                    if late:
                        self._late.add(job.job_id)
                return True
            if asked:
                return True
        return False

    def _runs_alone(self, job: Elastic, now: float) -> None:
        """The job runs on its own request, as other jobs do; no job waits for what it asked for."""
        self._orphans.update(dict.fromkeys(job.asked, now))
        self._forget(job.job_id)

    def _forget(self, job_id: str) -> None:
        self._elastic.pop(job_id, None)
        self._active.pop(job_id, None)

    def _compare(self, state: State) -> None:
        """What has ended since a predecessor's state was saved is gone."""
        self._restored = False
        jobs = state.jobs
        for gone in [job for job in self._elastic.values() if job.job_id not in jobs]:
            left = [name for name in (*gone.members, *gone.asked) if name in jobs]
            self._orphans.update(dict.fromkeys(left, state.now))
            self._forget(gone.job_id)
        for job in list(self._active.values()):
            for name in [n for n in job.members if n not in jobs or jobs[n].status not in ON_NODES]:
                self._lost(name)
            if job.running:
                self._wake(job, state)

    def _take_back(self, state: State) -> Iterator[Decision]:
        """Subjobs of no bundle are removed."""
        for job_id, due in list(self._orphans.items()):
            job = state.jobs.get(job_id)
            if job is not None and due > state.now + EQUAL:
                state.wake_at(due, job.pool)
                continue
            del self._orphans[job_id]
            if job is None:
                continue
            if job.status in (PENDING, WAITING):
                self._cancelled.add(job_id)
                yield Cancel(job_id, "no bundle waits for this subjob any more")
            else:
                self._killed.add(job_id)
                yield Kill(job_id, "no bundle uses this subjob")

    def _made(self, job: Job) -> Elastic:
        return Elastic(job.id, job.pool.name, self._model(job.processors, job.estimate))

    def _model(self, processors: int, walltime: float) -> Model:
        options = self.options
        return Model(processors, walltime, options.omax, options.penalty, self._costs.moving(processors))

    def _wake(self, job: Elastic, state: State) -> None:
        """Have a step when processes must leave."""
        pool = state.pools[job.pool]
        for interval in job.intervals:
            if interval.migrating and interval.start > state.now + EQUAL:
                state.wake_at(interval.start, pool)


def subjobs_request(request: Request, plain: Request) -> Request:
    """What a subjob asks for beside processors and time."""
    return msgspec.structs.replace(plain, features=request.features, excluded_nodes=request.excluded_nodes)
