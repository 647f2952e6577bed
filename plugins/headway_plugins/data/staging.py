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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from headway.report.quantities import duration
from headway.results import RunResult
from headway.state import Barrier, Job, State, Status
from headway.state.catalogue import Catalogue
from headway.state.records import ON_NODES
from headway_plugins.data.measured import Measured
from headway_plugins.data.staging_options import StagingOptions
from headway_plugins.data.stores import Filling, Need, droppable, fill, why_never

_INF = float("inf")
#: The first part of the keys of barriers: ``(KEY, site, dataset)``.
KEY = "data"
Place = tuple[str, str]
OBSERVED: tuple[type[Event], ...] = (
    CopyFailed, DatasetCopied, DatasetLost, DecisionFailed, JobChanged, JobEnded, JobHeld, JobReleased,
    JobRequeued, JobRouted,
)  # fmt: skip


@dataclass
class _Failures:
    """Copies of a dataset to a site that failed, one after the other."""

    count: int = 0
    #: When the next one may begin (absolute seconds).
    until: float = 0.0
    #: Sites from which it failed.
    sources: set[str] = field(default_factory=set)
    reason: str = ""


@dataclass
class _Figures:
    """What is counted."""

    copies: int = 0
    bytes_copied: int = 0
    failed_copies: int = 0
    drops: int = 0
    replica_hits: int = 0
    replica_misses: int = 0
    seconds_waited: float = 0.0


class Staging(Plugin):
    """Copy the datasets of waiting jobs to their sites; a job waits until its data are there."""

    Options: type[StagingOptions] = StagingOptions
    traits = Traits(needs=(Copy,), uses=(Drop,), words=frozenset({DATA}), observes=OBSERVED)

    def __init__(self, options: StagingOptions | None = None) -> None:
        super().__init__(options or self.Options())
        self.measured = Measured(learning=self.options.learning)
        #: Jobs that read data -> what they read.
        self._needs: dict[str, tuple[str, ...]] = {}
        #: By dataset and site: when a job read it there last (absolute seconds), copies that failed, replicas
        #: that are to be dropped, and why a copy has not begun.
        self._used: dict[Place, float] = {}
        self._failures: dict[Place, _Failures] = {}
        self._dropping: set[Place] = set()
        self._delays: dict[Place, str] = {}
        #: Sites that lost a dataset in this step.
        self._lost: set[str] = set()
        #: Something changed that copies follow from; and the catalogue's version that was looked at last.
        self._changed = True
        self._version = -1
        #: When a copy that failed may be tried again (absolute seconds).
        self._retry_at = _INF
        self._drops = False
        self._figures = _Figures()
        #: Jobs that have started -> datasets that were there when they came, that were not, and seconds that
        #: they waited for these.
        self._started: dict[str, tuple[int, int, float]] = {}
        self._sites: Catalogue | None = None
        self._state: State | None = None

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        if state.catalogue is None:
            raise UserError("staging: expected sites with stores (clusters.NAME.site.store), found none")
        self._sites, self._state = state.catalogue, state
        self._drops = Drop in capabilities
        state.watch(self)

    @property
    def catalogue(self) -> Catalogue:
        """The sites and what they have."""
        assert self._sites is not None
        return self._sites

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return self.kept()

    def kept(self) -> dict[str, Any]:
        """What is kept over a restart, as JSON values."""
        return {"rates": self.measured.saved(), "used": [[*key, at] for key, at in self._used.items()]}

    @hookimpl
    def restore(self, saved: Mapping[str, Any]) -> None:
        self.take_up(saved)

    def take_up(self, saved: Mapping[str, Any]) -> None:
        """What :meth:`kept` gave in an earlier run."""
        self.measured.take_up(saved["rates"])
        self._used = {(dataset, site): at for dataset, site, at in saved["used"]}

    # ------------------------------------------------------------------ what happens

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        self.note(event, state)

    def note(self, event: Event, state: State) -> None:
        """Take up an event."""
        if isinstance(event, DatasetCopied | CopyFailed | DatasetLost):
            if event.dataset in self.catalogue.datasets:
                self._changed = True
                self._note_data(event, state)
        elif isinstance(event, DecisionFailed):
            decision = event.decision
            if isinstance(decision, Copy):
                self._failed(decision.dataset, decision.site, decision.source, event.message, state)
            elif isinstance(decision, Drop):
                self._dropping.discard((decision.dataset, decision.site))
                # The cluster knows of a use of it that is unknown here.
                self._used[decision.dataset, decision.site] = state.now
                self._changed = True
        else:
            name = event.job.id if isinstance(event, JobChanged) else getattr(event, "job_id", "")
            needs = self._needs.get(name)
            if needs is not None:
                self._changed = True
                if isinstance(event, JobEnded):
                    del self._needs[name]
                    self._count(name)

    def _note_data(self, event: DatasetCopied | CopyFailed | DatasetLost, state: State) -> None:
        place = event.dataset, event.site
        if isinstance(event, DatasetCopied):
            self.measured.took(self.catalogue, event)
            self._failures.pop(place, None)
            if event.source:
                self._figures.copies += 1
                self._figures.bytes_copied += self.catalogue.datasets[event.dataset].size
        elif isinstance(event, CopyFailed):
            self._failed(event.dataset, event.site, event.source, event.reason, state)
        else:
            self._figures.drops += place in self._dropping
            self._dropping.discard(place)
            self._lost.add(event.site)

    def _failed(self, dataset: str, site: str, source: str, reason: str, state: State) -> None:
        self._changed = True
        self._figures.failed_copies += 1
        self.measured.breaks(dataset, site)
        failures = self._failures.setdefault((dataset, site), _Failures())
        wait = min(self.options.longest_retry, self.options.retry * 2.0 ** min(failures.count, 60))
        failures.count += 1
        failures.until, failures.reason = state.now + wait, reason
        failures.sources.add(source)
        for pool in state.pools.values():
            if self.catalogue.site_of(pool.name) == site:
                state.wake_at(failures.until, pool)
                break

    def took(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        if needs := self._needs.get(job.id):
            site, came = self.catalogue.site_of(job.pool.name), job.submit_time
            if job.independent is not None:
                came = max(came, job.independent)
            arrivals = [self.catalogue.replicas[dataset].get(site, -_INF) for dataset in needs]
            hits = sum(arrival <= came for arrival in arrivals)
            self._started[job.id] = hits, len(arrivals) - hits, max(0.0, max(arrivals) - came)
            self._reads(needs, site)

    def gave(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        if needs := self._needs.get(job.id):
            self._reads(needs, self.catalogue.site_of(job.pool.name))

    def _reads(self, needs: tuple[str, ...], site: str) -> None:
        assert self._state is not None
        for dataset in needs:
            self._used[dataset, site] = self._state.now

    def _count(self, job: str) -> None:
        """A job is over."""
        if job in self._started:
            hits, misses, waited = self._started.pop(job)
            self._figures.replica_hits += hits
            self._figures.replica_misses += misses
            self._figures.seconds_waited += waited

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
        said = [self._said(dataset, site, state) for dataset in missing]
        return f"it waits for dataset{'s' if len(said) > 1 else ''} {' and '.join(said)}"

    def _said(self, dataset: str, site: str, state: State) -> str:
        """A dataset that is missing, and when it is expected."""
        copy = self.catalogue.copies.get((dataset, site))
        if copy is None:
            return f"{dataset} ({self._delays.get((dataset, site), 'its copy has not begun')})"
        size = self.catalogue.datasets[dataset].size
        share = copy.done / size if size else 1.0
        left = self.left(dataset, site, state.now)
        when = "at any moment" if left <= 0 else f"in {duration(left)}"
        arrived = f"{100 * share:.0f} % of it has arrived from {copy.source}"
        return f"{dataset} ({arrived}, the rest is expected {when})"

    def left(self, dataset: str, site: str, now: float) -> float:
        """Seconds until a copy on its way is expected to arrive."""
        copy = self.catalogue.copies[dataset, site]
        seconds = self.measured.seconds(self.catalogue, dataset, copy.source, site)
        return max(0.0, copy.since + seconds - now)

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
        self._retry_at = min(
            (failed.until for failed in self._failures.values() if failed.until > now), default=_INF
        )
        waiting, reading = self._wishes(state)
        if not waiting:
            self._delays.clear()
            return None
        return self._orders(fill(catalogue, waiting, reading), state)

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

    def _orders(self, filling: Filling, state: State) -> Iterator[Decision]:
        """The copies that can begin, and replicas that make room for them."""
        catalogue, options = self.catalogue, self.options
        self._delays = {}
        to: dict[str, int] = {}
        for copy in catalogue.copies.values():
            to[copy.site] = to.get(copy.site, 0) + 1
        total = len(catalogue.copies)
        room: dict[str, float] = {}
        for (dataset, site), job in filling.wanted.items():
            store = catalogue.store(site)
            most = store.most_copies if store is not None else 0
            free = room.setdefault(site, catalogue.room(site))
            if why := self._not_yet(dataset, site, state.now):
                self._delays[dataset, site] = why
            elif total >= options.parallel or (most and to.get(site, 0) >= most):
                self._delays[dataset, site] = "its copy waits for other copies to end"
            elif (source := self._source(dataset, site)) is None:
                self._delays[dataset, site] = "no site from which it could come has it"
            elif (size := catalogue.datasets[dataset].size) > free:
                self._delays[dataset, site] = f"room is made for it at {site}"
                room[site] = free - size
                yield from self._make_room(size - max(0.0, free), site, filling, dataset)
            else:
                room[site] = free - size
                total += 1
                to[site] = to.get(site, 0) + 1
                self.measured.begins(catalogue, dataset, source, site)
                yield Copy(dataset, site, source, f"job {job} waits for it")
        for site, job in filling.full.items():
            for name in self._needs.get(job, ()):
                self._delays.setdefault(
                    (name, site), f"the store of {site} is full of datasets of the jobs before it"
                )

    def _not_yet(self, dataset: str, site: str, now: float) -> str:
        """Why a copy that failed is not tried now; "" if it may be."""
        failed = self._failures.get((dataset, site))
        if failed is None or failed.until <= now:
            return ""
        times = "once" if failed.count == 1 else f"{failed.count} times"
        again = duration(failed.until - now)
        return f"its copy failed {times}: {failed.reason}; it is tried again in {again}"

    def _source(self, dataset: str, site: str) -> str | None:
        """Where a copy comes from: a site from which it has not failed, if there is one."""
        failed = self._failures.get((dataset, site))
        without = failed.sources if failed is not None else set()
        found = self.measured.nearest(self.catalogue, dataset, site, without)
        if found is None and failed is not None:
            failed.sources.clear()
            found = self.measured.nearest(self.catalogue, dataset, site)
        return found

    def _make_room(self, size: float, site: str, filling: Filling, for_: str) -> Iterator[Drop]:
        """Drop replicas until so many bytes more are free."""
        if not self._drops:
            self._delays[for_, site] = f"the store of {site} is full, and this cluster removes no datasets"
            return
        sizes = self.catalogue.datasets
        for name in droppable(self.catalogue, site, filling.kept.get(site, set()), self._used):
            if size <= 0:
                return
            size -= sizes[name].size
            if (name, site) not in self._dropping:
                self._dropping.add((name, site))
                yield Drop(name, site, f"room for dataset {for_}; not read for the longest time")

    # ------------------------------------------------------------------ figures

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"staging": self.told}

    def told(self, result: RunResult) -> dict[str, float]:
        """Copies, drops, jobs' datasets that were there when the jobs came, and seconds that jobs waited for
        data."""
        return dict(vars(self._figures))


def _unread(job: Job) -> str:
    """A word for headway in the job's comment that nothing reads, if there is one: it may be a dataset."""
    unread = job.attribute("unread")
    return f"its comment: expected such as data=NAME,NAME and movable, found {unread[0]!r}" if unread else ""


def waits_for_data(job: Job) -> bool:
    """Whether data alone keep a waiting job out of its queue."""
    barrier = job.barrier
    key = None if barrier is None else barrier.key
    return isinstance(key, tuple) and key[0] == KEY
