"""Data first: a job waits until the store of its site has its datasets, which are copied there meanwhile.

A job names its datasets (attribute ``data``). While one of them is missing at its site the job is in no
queue, behind a barrier that names it. T. Phan, K. Ranganathan, R. Sion (JSSPP 2005) let a node wait while
data arrive; here the job waits and its node serves other jobs. Decisions:

- Copies are ordered in the order of the queues, each from the site from which it comes soonest, at most
  ``parallel`` at a time and as many to a store as its description allows.
- A copy that failed is tried again after ``retry`` seconds, doubled with each failure, from another site if
  another one has the dataset.
- A store that is full loses the replica that was used least recently, never what a job that runs, a copy on
  its way, or an earlier job of the queue needs (:mod:`.stores`).
- A job with a dataset that is not configured, that no site has, that no link brings, or whose data its store
  can never hold is refused; so is a job with data in whose comment nothing reads a word.
- Jobs that cannot start for other reasons (held, a limit, a dependency) have no data copied for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from headway.decisions import Copy, Decision, Drop
from headway.errors import UserError
from headway.events import (
    CopyFailed,
    DatasetCopied,
    DatasetLost,
    DecisionFailed,
    Event,
    JobChanged,
    JobEnded,
    JobHeld,
    JobReleased,
    JobRequeued,
    JobRouted,
)
from headway.hookspecs import Plugin, hookimpl
from headway.model.sites import DATA, datasets_of
from headway.plugins import Traits
from headway.results import RunResult
from headway.state import Barrier, Job, State, Status
from headway.state.catalogue import Catalogue
from headway.state.records import ON_NODES
from headway_plugins.data.copies import Copies
from headway_plugins.data.reading import Reading
from headway_plugins.data.staging_options import StagingOptions
from headway_plugins.data.stores import Need, fill, why_never

_INF = float("inf")
#: The first part of the keys of barriers: ``(KEY, site, dataset)``.
KEY = "data"
OBSERVED: tuple[type[Event], ...] = (
    CopyFailed, DatasetCopied, DatasetLost, DecisionFailed, JobChanged, JobEnded, JobHeld, JobReleased,
    JobRequeued, JobRouted,
)  # fmt: skip


class Staging(Plugin):
    """Copy the datasets of waiting jobs to their sites; a job waits until its data are there."""

    Options: type[StagingOptions] = StagingOptions
    traits = Traits(needs=(Copy,), uses=(Drop,), words=frozenset({DATA}), observes=OBSERVED)

    def __init__(self, options: StagingOptions | None = None) -> None:
        super().__init__(options or self.Options())
        #: Jobs that read data -> what they read.
        self._needs: dict[str, tuple[str, ...]] = {}
        #: Sites that lost a dataset in this step.
        self._lost: set[str] = set()
        #: Something changed that copies follow from; and the catalogue's version that was looked at last.
        self._changed = True
        self._version = -1
        #: When a copy that failed may be tried again (absolute seconds).
        self._retry_at = _INF
        self._made: tuple[Copies, Reading] | None = None

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        if state.catalogue is None:
            raise UserError("staging: expected sites with stores (clusters.NAME.site.store), found none")
        reading = Reading(state, state.catalogue, self._needs)
        self._made = Copies(state.catalogue, self.options, drops=Drop in capabilities), reading
        state.watch(reading)

    @property
    def copies(self) -> Copies:
        """The copies that were ordered."""
        assert self._made is not None
        return self._made[0]

    @property
    def reading(self) -> Reading:
        """Which dataset was read where."""
        assert self._made is not None
        return self._made[1]

    @property
    def catalogue(self) -> Catalogue:
        """The sites and what they have."""
        return self.copies.catalogue

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return self.kept()

    def kept(self) -> dict[str, Any]:
        """What is kept over a restart, as JSON values."""
        used = [[*key, at] for key, at in self.reading.used.items()]
        return {"rates": self.copies.measured.saved(), "used": used}

    @hookimpl
    def restore(self, saved: Mapping[str, Any]) -> None:
        self.take_up(saved)

    def take_up(self, saved: Mapping[str, Any]) -> None:
        """What :meth:`kept` gave in an earlier run."""
        self.copies.measured.take_up(saved["rates"])
        self.reading.used.update({(dataset, site): at for dataset, site, at in saved["used"]})

    # ------------------------------------------------------------------ what happens

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        self.note(event, state)

    def note(self, event: Event, state: State) -> None:
        """Take up an event."""
        if isinstance(event, DatasetCopied | CopyFailed | DatasetLost):
            if event.dataset in self.catalogue.datasets:
                self._changed = True
                self.copies.note(event, state)
                if isinstance(event, DatasetLost):
                    self._lost.add(event.site)
        elif isinstance(event, DecisionFailed):
            decision = event.decision
            if isinstance(decision, Copy):
                self._changed = True
                self.copies.failed(decision.dataset, decision.site, decision.source, event.message, state)
            elif isinstance(decision, Drop):
                self.copies.not_dropped(decision.dataset, decision.site)
                # The cluster knows of a use of it that is unknown here.
                self.reading.used[decision.dataset, decision.site] = state.now
                self._changed = True
        else:
            name = event.job.id if isinstance(event, JobChanged) else getattr(event, "job_id", "")
            needs = self._needs.get(name)
            if needs is not None:
                self._changed = True
                if isinstance(event, JobEnded):
                    del self._needs[name]
                    self.reading.over(name)

    # ------------------------------------------------------------------ jobs

    @hookimpl
    def admit_job(self, job: Job, state: State) -> str | None:
        return self.admitted(job)

    def admitted(self, job: Job) -> str | None:
        """Why the job is refused, or None; from now on it is known what it reads."""
        needs = datasets_of(job.description.attributes)
        if not needs:
            self._needs.pop(job.id, None)
            return None
        self._needs[job.id] = needs
        self._changed = True
        if why := _unread(job) or self.why_never(job, needs):
            if job.status not in ON_NODES:
                del self._needs[job.id]
            return why
        return None

    def why_never(self, job: Job, needs: tuple[str, ...]) -> str:
        """Why the job can never have its data; "" if it can."""
        return why_never(self.catalogue, needs, self.catalogue.site_of(job.pool.name))

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        needs = self._needs.get(job.id)
        if needs is None:
            return None
        catalogue = self.catalogue
        site = catalogue.site_of(job.pool.name)
        for dataset in needs:
            if not catalogue.has(dataset, site):
                self._changed = True
                return Barrier(partial(self._why, job.id, site, state), (KEY, site, dataset))
        return None

    def _why(self, job: str, site: str, state: State) -> str:
        missing = self.catalogue.missing(self._needs.get(job, ()), site)
        said = [self.copies.said(dataset, site, state.now) for dataset in missing]
        return f"it waits for dataset{'s' if len(said) > 1 else ''} {' and '.join(said)}"

    @hookimpl
    def react(self, state: State) -> Iterable[Decision] | None:
        self.let_in(state)
        return None

    def let_in(self, state: State) -> None:
        """Jobs whose dataset has arrived are asked about again; jobs in queues whose dataset is gone, too."""
        catalogue = self.catalogue
        if self._lost:
            lost, self._lost = self._lost, set()
            for pool in state.pools.values():
                if catalogue.site_of(pool.name) in lost:
                    state.bar_queued(pool)
        if catalogue.version == self._version:
            return
        for key in [key for key in state.barred if isinstance(key, tuple) and key[0] == KEY]:
            if catalogue.has(key[2], key[1]):
                state.lifted(key)

    # ------------------------------------------------------------------ copies

    @hookimpl
    def control(self, state: State) -> Iterable[Decision] | None:
        catalogue = self.catalogue
        now = state.now
        if not (self._changed or self._retry_at <= now or catalogue.version != self._version):
            return None
        self._changed, self._version = False, catalogue.version
        self._retry_at = self.copies.retry_at(now)
        waiting, reading = self._wishes(state)
        if not waiting:
            self.copies.delays.clear()
            return None
        filling = fill(catalogue, waiting, reading)
        return self.copies.orders(filling, self._needs, self.reading.used, now)

    def _wishes(self, state: State) -> tuple[list[Need], dict[str, set[str]]]:
        """What waiting jobs need, the first job first; and what is read at each site."""
        waiting: list[Job] = []
        reading: dict[str, set[str]] = {}
        for name in list(self._needs):
            job = state.jobs.get(name)
            if job is None:
                del self._needs[name]
            elif job.status in ON_NODES:
                reading.setdefault(self.catalogue.site_of(job.pool.name), set()).update(self._needs[name])
            elif job.bound_for or job.status is Status.PENDING or waits_for_data(job):
                waiting.append(job)
        return [
            Need(job.id, self.catalogue.site_of(job.bound_for or job.pool.name), self._needs[job.id])
            for job in self.in_turn(waiting)
        ], reading

    def in_turn(self, jobs: list[Job]) -> Sequence[Job]:
        """The jobs for which data are copied, in the order in which they will need them."""
        return sorted(jobs, key=lambda job: job.order)

    # ------------------------------------------------------------------ figures

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"staging": self.told}

    def told(self, result: RunResult) -> dict[str, float]:
        """Copies, drops, jobs' datasets that were there when the jobs came, and seconds that jobs waited for
        data."""
        copies, reading = self.copies, self.reading
        return {
            "copies": copies.copies,
            "bytes_copied": copies.bytes_copied,
            "failed_copies": copies.failed_copies,
            "drops": copies.drops,
            "replica_hits": reading.replica_hits,
            "replica_misses": reading.replica_misses,
            "seconds_waited": reading.seconds_waited,
        }


def _unread(job: Job) -> str:
    """A word for headway in the job's comment that nothing reads, if there is one: it may be a dataset."""
    unread = job.attribute("unread")
    return f"its comment: expected such as data=NAME,NAME and movable, found {unread[0]!r}" if unread else ""


def waits_for_data(job: Job) -> bool:
    """Whether data alone keep a waiting job out of its queue."""
    barrier = job.barrier
    key = None if barrier is None else barrier.key
    return isinstance(key, tuple) and key[0] == KEY
