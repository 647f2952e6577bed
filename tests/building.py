"""Small builders for tests: jobs, clusters, and whole runs in emulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from headway import events as ev
from headway.adapter import ClusterAdapter
from headway.decisions import Checkpoint, Decision, Migrate
from headway.engine import Engine
from headway.hookspecs import hookimpl
from headway.model import (
    ClusterDescription,
    Dataset,
    JobDescription,
    Link,
    NodeDescription,
    PoolDescription,
    Request,
    Site,
    Sites,
)
from headway.plugins import Plugins
from headway.results import JobResult
from headway.scheduler import Scheduler
from headway.state import Barrier, Job, State
from headway.workload.jobs import TraceJob
from headway_adapters.emulated import EmulatedAdapter, Faults
from headway_adapters.federation.emulated import EmulatedFederation
from headway_plugins.placement.best_fit import BestFit
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

POLICIES: dict[str, Callable[[], Any]] = {"fcfs": Fcfs, "easy": Easy, "conservative": Conservative}
PLACES: dict[str, Callable[[], Any]] = {"first-fit": FirstFit, "best-fit": BestFit}

_REQUEST = set(Request.__struct_fields__)


def described(
    job_id: str, processors: int = 1, estimate: float = 100, submit: float = 0, **more: Any
) -> JobDescription:
    """A job's description; ``more`` goes to the request or to the description."""
    request = {key: more.pop(key) for key in list(more) if key in _REQUEST}
    return JobDescription(job_id, submit, Request(processors, estimate, **request), **more)


def traced(
    job_id: str,
    processors: int = 1,
    estimate: float = 100,
    submit: float = 0,
    *,
    runtime: float | None = None,
    outcome: str = "completed",
    **more: Any,
) -> TraceJob:
    """A workload's job; it runs as long as estimated unless ``runtime`` says otherwise."""
    job = described(job_id, processors, estimate, submit, **more)
    return TraceJob(job, estimate if runtime is None else runtime, outcome)


def node_cluster(
    *nodes: NodeDescription, pools: Sequence[str] = ("pool",), **more: Any
) -> ClusterDescription:
    """A cluster of nodes; nodes that name no pool belong to the first one."""
    placed = tuple(
        node if node.pools else NodeDescription(**{**_fields(node), "pools": (pools[0],)}) for node in nodes
    )
    return ClusterDescription("cluster", tuple(PoolDescription(name) for name in pools), placed, **more)


def federated(
    *sites: Site, links: Iterable[Link] = (), datasets: Iterable[Dataset] = (), size: int = 4
) -> ClusterDescription:
    """Sites with a flat pool ``SITE:q`` each."""
    placed = tuple(msgspec.structs.replace(site, pools=(f"{site.name}:q",)) for site in sites)
    pools = tuple(PoolDescription(f"{site.name}:q", size) for site in sites)
    return ClusterDescription("all", pools, sites=Sites(placed, tuple(links), tuple(datasets)))


def traced_at_home(
    name: str, processors: int = 1, seconds: float = 100, submit: float = 0, **more: Any
) -> TraceJob:
    """A job ``SITE:NUMBER`` of the pool of its site."""
    return traced(name, processors, seconds, submit, pool=f"{name.partition(':')[0]}:q", **more)


def alike(count: int, processors: int, **more: Any) -> tuple[NodeDescription, ...]:
    """``count`` equal nodes n0, n1, ..."""
    return tuple(NodeDescription(f"n{at}", processors, **more) for at in range(count))


def _fields(node: NodeDescription) -> dict[str, Any]:
    return {name: getattr(node, name) for name in node.__struct_fields__}


def plugged(*plugins: Any) -> Plugins:
    """Plugin instances, enabled in this order under the names of their classes."""
    enabled = Plugins()
    for plugin in plugins:
        enabled.add(type(plugin).__name__.lower(), plugin)
    return enabled


class Recording(ClusterAdapter):
    """Keeps all events that it told."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.told: list[ev.Event] = []
        self.rounds: list[tuple[float, list[ev.Event]]] = []

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        moment = super().wait(deadline)
        if moment is not None:
            self.told.extend(moment[1])
            self.rounds.append((moment[0], list(moment[1])))
        return moment


class RecordingAdapter(Recording, EmulatedAdapter):
    """An emulated cluster."""


class RecordingFederation(Recording, EmulatedFederation):
    """Several, for a cluster with sites."""


@dataclass
class Run:
    """A finished emulation."""

    adapter: Any
    scheduler: Scheduler
    problems: list[str]
    decisions: list[tuple[float, Decision]] = field(default_factory=list)

    @property
    def results(self) -> dict[str, JobResult]:
        return {result.job.id: result for result in self.adapter.results()}

    @property
    def starts(self) -> dict[str, float | None]:
        return {result.job.id: result.start_time for result in self.adapter.results()}

    @property
    def states(self) -> dict[str, str]:
        return {result.job.id: result.state for result in self.adapter.results()}


def told(run: Run, *kinds: type[ev.Event]) -> list[Any]:
    """The events of these kinds that the cluster told."""
    return [event for event in run.adapter.told if isinstance(event, kinds)]


class _Quiet:
    def info(self, *args: Any, **more: Any) -> None: ...

    def error(self, *args: Any, **more: Any) -> None: ...


def emulate(
    cluster: ClusterDescription,
    jobs: Iterable[TraceJob],
    *plugins: Any,
    faults: Faults | None = None,
    physics: Sequence[Any] = (),
    seed: int = 0,
    cycle: float | None = None,
    max_rounds: int = 100_000,
    handlers: Sequence[Any] = (),
    **more: Any,
) -> Run:
    """Run jobs through the emulated cluster under these plugins until nothing can happen."""
    kind = RecordingAdapter if cluster.sites is None else RecordingFederation
    adapter = kind(
        cluster, list(jobs), faults=faults, physics=physics, rng=np.random.default_rng(seed), **more
    )
    if handlers:
        adapter.use_handlers(handlers, frozenset({Checkpoint, Migrate}))
    scheduler = Scheduler(
        adapter.describe(), plugged(*plugins), seed=seed, capabilities=adapter.capabilities, cycle=cycle
    )
    run = Run(adapter, scheduler, [])

    def on_decisions(now: float, decisions: Sequence[Decision], outcomes: object) -> None:
        run.decisions.extend((now, decision) for decision in decisions)

    def on_cycle(now: float) -> None:
        if len(adapter.rounds) > max_rounds:
            raise AssertionError(f"the run does not end: {len(adapter.rounds)} rounds, now {now}")

    class Keeping(_Quiet):
        def error(self, what: str, **more: Any) -> None:
            run.problems.append(f"{more.get('plugin')}: {more.get('message')}")

    Engine(adapter, scheduler, on_decisions=on_decisions, on_cycle=on_cycle, log=Keeping()).run()
    return run


class OneOfEachUser:
    """Bars all but one job of each user at a time; says nothing of those who wait."""

    def __init__(self) -> None:
        self.running: set[str] = set()

    @hookimpl
    def startup(self, state: State) -> None:
        state.watch(self)

    def took(self, job: Job) -> None:
        self.running.add(job.user)

    def gave(self, job: Job) -> None:
        self.running.discard(job.user)

    @hookimpl
    def bar_job(self, job: Job) -> Barrier | None:
        return Barrier("another one runs", job.user) if job.user in self.running else None


class InItsPool:
    """Looks, whenever something was decided, whether each job is on nodes of a pool of its own."""

    @hookimpl
    def decided(self, state: State) -> None:
        for job in state.running_jobs():
            assert job.pool.name in job.description.pools
            for name, _ in job.placement:
                assert job.pool.name in state.nodes.descriptions[name].pools
