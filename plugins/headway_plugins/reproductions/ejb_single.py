"""One elastic job at a time: each run is forked from the single run of all other jobs.

The policy alone replays the trace once. When a target has arrived and does not start, the process is forked:
the child goes on with this one job elastic, to its completion, and tells what became of it; the parent goes
on without. So a run costs only what the target lives through, and several settings of one target cost no more
replays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.decisions import Decision
from headway.emulation import emulate
from headway.events import Event, JobEnded, JobStarted, JobSubmitted
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.model.bundles import parent_of
from headway.plugins import Catalogue, PluginConfig
from headway.state import State, Status
from headway.workload.jobs import TraceJob
from headway_plugins.bundling.elastic import Elastic
from headway_plugins.bundling.manager import Bundling, BundlingOptions
from headway_plugins.bundling.model import Interval

#: What the plugin is called in its runs.
_NAME = "single"


@dataclass(frozen=True)
class Single:
    """What became of a target. Times are absolute seconds."""

    job_id: str
    setting: str
    submit: float
    start: float
    end: float
    subjobs: int
    migrations: int
    #: Seconds in which it was being moved, and processor-seconds that it had.
    moving: float
    area: float


class OneElastic(Bundling):
    """Bundling for a single job, in a forked process for each job and setting."""

    def __init__(
        self,
        targets: Sequence[str],
        settings: Mapping[str, Mapping[str, Any]],
        workers: int,
        on_single: Callable[[Single], None] | None = None,
    ) -> None:
        super().__init__(BundlingOptions())
        self._on_single = on_single
        self.found: list[Single] = []
        self._targets = frozenset(targets)
        self._settings = settings
        self._workers = workers
        self._children: list[tuple[int, int]] = []
        #: In a child: the pipe to the parent, and what the target did.
        self._pipe = -1
        self._setting = ""
        self._begun = 0.0
        self._start: float | None = None
        self._sizes: dict[str, int] = {}
        self._held: dict[str, tuple[float, int]] = {}
        self._area = 0.0
        self._subjobs = 0
        self._plans: list[tuple[float, list[Interval]]] = []

    @property
    def child(self) -> bool:
        """This process runs a target."""
        return self._pipe >= 0

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if self._pipe < 0:
            if isinstance(event, JobSubmitted) and event.job.id in self._targets:
                self._arrived.append(event.job.id)
            return
        target = next(iter(self._only))
        if isinstance(event, JobSubmitted) and parent_of(event.job) == target:
            self._sizes[event.job.id] = event.job.request.processors
        elif isinstance(event, JobStarted) and event.job_id in self._sizes:
            self._start = event.time if self._start is None else self._start
            self._held[event.job_id] = event.time, self._sizes[event.job_id]
            self._subjobs += 1
        elif isinstance(event, JobEnded) and event.job_id in self._held:
            since, processors = self._held.pop(event.job_id)
            self._area += (event.time - since) * processors
        if isinstance(event, JobEnded) and event.job_id == target:
            # Its members' ends may come behind it.
            for since, processors in self._held.values():
                self._area += (event.time - since) * processors
            self._tell(target, event.time)
        super().observe(event, state)

    @hookimpl
    def control(self, state: State) -> Iterator[Decision] | None:
        if self._pipe < 0:
            arrived, self._arrived = self._arrived, []
            waiting = [state.jobs[job_id] for job_id in arrived if job_id in state.jobs]
            runs = [
                (job, setting)
                for job in waiting if job.status in (Status.PENDING, Status.WAITING)
                for setting in self._settings
            ]  # fmt: skip
            if not any(self._fork(job.id, job.processors, setting, job.submit_time) for job, setting in runs):
                return None
        answer = super().control(state)
        return iter(answer) if answer is not None else None

    def _fork(self, job_id: str, processors: int, setting: str, submit: float) -> bool:
        """Begin the run of a target in another process. True: this is it."""
        if len(self._children) >= self._workers:
            self._collect(len(self._children) - self._workers + 1)
        reading, writing = os.pipe()
        child = os.fork()
        if child:
            os.close(writing)
            self._children.append((child, reading))
            return False
        os.close(reading)
        self._pipe, self._setting, self._begun = writing, setting, submit
        options = BundlingOptions.model_validate(dict(self._settings[setting]))
        self.options, self._only = options, frozenset([job_id])
        self._costs.penalty, self._costs.migration_cost = options.penalty, options.migration
        self._costs.cost_per_process = options.migration_per_process
        self._arrived, self._sizes = [job_id], {job_id: processors}
        return True

    def _settle(self, job: Elastic, state: State) -> Iterator[Decision]:
        yield from super()._settle(job, state)
        self._plans.append((state.now, list(job.intervals)))

    def _turn(self, job: Elastic, state: State) -> Any:
        turned = super()._turn(job, state)
        self._plans.append((state.now, list(job.intervals)))
        return turned

    def _tell(self, target: str, end: float) -> None:
        """In a child: what became of the target; the child's end."""
        moving, migrations = 0.0, 0
        for at, (since, intervals) in enumerate(self._plans):
            until = self._plans[at + 1][0] if at + 1 < len(self._plans) else end
            for interval in intervals:
                seconds = min(interval.end, until) - max(interval.start, since)
                if interval.migrating and seconds > 0:
                    moving += seconds
                    migrations += 1
        start = self._start if self._start is not None else end
        told = (
            target,
            self._setting,
            self._begun,
            start,
            end,
            self._subjobs,
            migrations,
            moving,
            self._area,
        )
        os.write(self._pipe, json.dumps(told).encode())
        os._exit(0)

    def _collect(self, count: int) -> None:
        """Wait for the first children, and keep what they tell."""
        first, self._children = self._children[:count], self._children[count:]
        for child, reading in first:
            with os.fdopen(reading, "rb") as stream:
                told = stream.read()
            _, status = os.waitpid(child, 0)
            if status or not told:
                raise RuntimeError(f"a run of a single elastic job failed (status {status})")
            self.found.append(Single(*json.loads(told)))
            if self._on_single is not None:
                self._on_single(self.found[-1])

    def finish(self) -> list[Single]:
        """All that became of the targets."""
        self._collect(len(self._children))
        return self.found


def run_singles(
    processors: int,
    jobs: Sequence[TraceJob],
    targets: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    workers: int,
    on_single: Callable[[Single], None] | None = None,
) -> list[Single]:
    """Each target under each setting (name -> options), the only elastic job among ``jobs``; ``workers`` at a
    time. ``on_single`` is told of each when it ends."""
    plugin = OneElastic(targets, settings, workers, on_single)
    catalogue = _Given(plugin)
    configs = [PluginConfig(_NAME, {}), *catalogue.enabled([PluginConfig("easy", {})])]
    try:
        emulate(ClusterDescription.flat(processors), jobs, configs, catalogue, label=_NAME)
        return plugin.finish()
    finally:
        if plugin.child:
            # Its target never ended, or something went wrong: the parent is to say so.
            os._exit(1)


class _Given(Catalogue):
    """Every plugin that is installed, and one that is made already."""

    def __init__(self, plugin: OneElastic) -> None:
        super().__init__()
        self._plugin = plugin

    def get(self, name: str, where: str = "plugins") -> Any:
        return (lambda options=None: self._plugin) if name == _NAME else super().get(name, where)
