"""Whole runs in the emulated cluster: a workload, a configuration, a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import msgspec
import numpy as np
import pydantic

from headway.adapter import Outcome
from headway.config import INSTALLED, emulated_adapter
from headway.decisions import Decision, PowerUp
from headway.emulation.collector import quiet_collector
from headway.emulation.delays import Delays, MeasuredDelays
from headway.emulation.direct import Direct
from headway.emulation.left_waiting import left_waiting
from headway.engine import Engine
from headway.errors import UserError
from headway.events import Event
from headway.inputs.validation import explain_validation
from headway.journal import JournalWriter, RunInfo
from headway.journal.latencies import Latencies
from headway.model import ClusterDescription
from headway.model.bundles import Oversubscription
from headway.model.modes import Mode
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.results import DecisionRecord, JobResult, Refused, RunResult
from headway.results.decision_log import DecisionLog
from headway.scheduler import Scheduler, plain_clock
from headway.state import State
from headway.version import __version__
from headway.workload.jobs import Begun, Follows, TraceCommand, TraceJob
from headway.workload.sharing import Sharing, with_cpu_use


def emulate(
    cluster: ClusterDescription,
    jobs: Sequence[TraceJob],
    plugin_configs: Sequence[PluginConfig],
    catalogue: Catalogue,
    *,
    label: str,
    commands: Sequence[TraceCommand] = (),
    chains: Mapping[str, Follows] | None = None,
    seed: int = 0,
    faults: dict[str, Any] | None = None,
    refused: Sequence[Refused] = (),
    keep_decisions: bool = False,
    journal: JournalWriter | None = None,
    config_text: str = "",
    on_cycle: Callable[[float], None] | None = None,
    clock: Callable[[float], str] = plain_clock,
    start: float | None = None,
    running: Sequence[Begun] = (),
    power: Mapping[str, str] | None = None,
    epoch: float = 0.0,
    cycle: float | None = None,
    wait_for_down_nodes: bool = False,
    tiers: Mapping[str, int] | None = None,
    latencies: Latencies | Delays | None = None,
    about: dict[str, str] | None = None,
    fair_links: bool = False,
    happens: Sequence[Event] = (),
    saved: Mapping[str, Any] | None = None,
    direct: bool = True,
) -> RunResult:
    """Run ``jobs`` (in order of submission) on ``cluster`` under the given plugins.

    ``commands`` are the elastic commands that the jobs' users will give. ``chains``: the job that each job
    follows, by id: it is submitted so long after the preceding job has ended. A job whose preceding job never
    ends is among the result's refused jobs.

    ``faults`` are options of the emulated cluster's faults; ``start`` and ``running`` begin with jobs
    that run already, and ``power`` with nodes that are not on (see the emulated adapter); nodes are on
    if no plugin is there that could wake them. ``keep_decisions`` keeps every decision in the result.
    ``cycle``: batch mode, jobs start only at multiples of so many seconds. ``wait_for_down_nodes``: jobs
    that fit only with nodes that are down keep their place in the queue. ``tiers``: of pools by name, as with
    :class:`headway.scheduler.Scheduler`. ``latencies``: how long a real
    cluster was measured to take, or something that knows it start by start. ``fair_links``: where the cluster
    has sites, copies of datasets on one link share its bandwidth. ``happens``: what was recorded of a real
    cluster and happens here, too, at the same times, whatever is decided. ``saved``: what plugins know at
    the beginning, by name. ``direct``: what is plain of the run needs no second account
    (:mod:`headway.emulation.direct`); the result is the same without it.

    The same arguments and seed give the same result.
    """
    return _Emulation(
        given=cluster, jobs=jobs, plugin_configs=plugin_configs, catalogue=catalogue, label=label,
        commands=commands, chains=chains, seed=seed, faults=faults, refused=refused,
        keep_decisions=keep_decisions, journal=journal, config_text=config_text, on_cycle=on_cycle,
        clock=clock, start=start, running=running, power=power, epoch=epoch, cycle=cycle,
        wait_for_down_nodes=wait_for_down_nodes, tiers=tiers, latencies=latencies, about=about,
        fair_links=fair_links, happens=happens, saved=saved, direct=direct,
    ).run()  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Emulation:
    """What :func:`emulate` was asked for."""

    given: ClusterDescription
    jobs: Sequence[TraceJob]
    plugin_configs: Sequence[PluginConfig]
    catalogue: Catalogue
    label: str
    commands: Sequence[TraceCommand]
    chains: Mapping[str, Follows] | None
    seed: int
    faults: dict[str, Any] | None
    refused: Sequence[Refused]
    keep_decisions: bool
    journal: JournalWriter | None
    config_text: str
    on_cycle: Callable[[float], None] | None
    clock: Callable[[float], str]
    start: float | None
    running: Sequence[Begun]
    power: Mapping[str, str] | None
    epoch: float
    cycle: float | None
    wait_for_down_nodes: bool
    tiers: Mapping[str, int] | None
    latencies: Latencies | Delays | None
    about: dict[str, str] | None
    fair_links: bool
    happens: Sequence[Event]
    saved: Mapping[str, Any] | None
    direct: bool

    def run(self) -> RunResult:
        """Set the run up, run it, and say what became of the jobs."""
        parts = self._made()
        return self._result(parts, self._driven(parts))

    def _made(self) -> _Parts:
        plugins = self._plugins()
        physics = _Physics.of(plugins)
        cluster = self.given
        if plugins.requiring("nodes"):
            cluster = cluster.in_nodes()
        adapter = self._adapter(cluster, plugins, physics)
        return _Parts(plugins, physics, cluster, adapter, self._scheduler(adapter, plugins))

    def _plugins(self) -> Plugins:
        kind, configs = emulated_adapter(self.given), self.plugin_configs
        self.catalogue.check_energy(configs, self.given)
        plugins = Plugins.load(configs, self.catalogue, kind.capable_of(self.given))
        if not plugins.implementations("schedule"):
            raise UserError(
                f"{configs[0].where if configs else 'plugins'}: no policy is enabled "
                "(a plugin with the hook schedule, such as fcfs, easy, conservative)"
            )
        return plugins

    def _adapter(self, cluster: ClusterDescription, plugins: Plugins, physics: _Physics) -> Any:
        """The emulated cluster with its jobs. Faults and latencies have generators of their own."""
        seeds = np.random.SeedSequence(self.seed).spawn(3)
        jobs = self.jobs if physics.sharing is None else with_cpu_use(self.jobs, physics.sharing, self.seed)
        adapter = emulated_adapter(cluster)(
            cluster,
            jobs,
            commands=self.commands,
            chains=self.chains,
            physics=physics.others,
            faults=validated_faults(self.faults or {}),
            rng=np.random.default_rng(seeds[0]),
            start=self.start,
            running=self.running,
            power=self.power if plugins.using(PowerUp) else None,
            delays=_delays(self.latencies, np.random.default_rng(seeds[2])),
            sharing=physics.sharing,
            sharing_seed=self.seed,
            oversubscription=physics.oversubscription,
            **self._beside(cluster),
        )
        adapter.use_handlers(plugins.handlers(), self.catalogue.gives(self.plugin_configs))
        if plugins.requiring("policy"):
            adapter.tell_policy()
        return adapter

    def _beside(self, cluster: ClusterDescription) -> dict[str, Any]:
        """What one cluster alone can be told, or several together."""
        if cluster.sites is None:
            return {"happens": self.happens}
        if self.happens:
            raise UserError(
                "expected one cluster where recorded changes are to happen again, found several clusters"
            )
        return {"epoch": self.epoch, "fair_links": self.fair_links}

    def _scheduler(self, adapter: Any, plugins: Plugins) -> Scheduler:
        return Scheduler(
            adapter.describe(),
            plugins,
            seed=self.seed,
            capabilities=adapter.capabilities,
            clock=self.clock,
            saved=dict(self.saved or {}),
            cycle=self.cycle,
            epoch=self.epoch,
            wait_for_down_nodes=self.wait_for_down_nodes,
            tiers=self.tiers,
        )

    def _driven(self, parts: _Parts) -> Engine:
        """The engine, when the run is over; the journal has what it decided."""
        journal = self.journal
        if journal is not None and journal.enabled:
            states = parts.plugins.recorded()
            # With what the emulation can do.
            described = parts.scheduler.state.cluster
            journal.begin_run(
                RunInfo(Mode.DRY_RUN, self.epoch, __version__, self.config_text, self.seed, described, states)
            )
        engine = Engine(
            parts.adapter,
            parts.scheduler,
            journal,
            mode=Mode.DRY_RUN,
            on_cycle=self.on_cycle,
            on_decisions=parts.keep if self.keep_decisions else None,
        )
        with quiet_collector(len(self.jobs)):
            if self._may_begin_directly(parts):
                self._begin_directly(parts, engine)
            reason = engine.run()
        if journal is not None and journal.enabled:
            journal.end_run(str(reason))
        return engine

    def _may_begin_directly(self, parts: _Parts) -> bool:
        """Whether nothing but jobs and starts was asked of the emulated cluster."""
        asked = (
            self.commands, self.chains, self.faults, self.running, self.power, self.latencies,
            self.happens, parts.physics.sharing, parts.physics.oversubscription, parts.physics.others,
            parts.plugins.requiring("policy"), self.journal is not None and self.journal.enabled,
        )  # fmt: skip
        return self.direct and self.start is None and not any(asked) and Direct.applies(parts.scheduler)

    def _begin_directly(self, parts: _Parts, engine: Engine) -> None:
        """Run without the emulated cluster's account as far as that goes; it takes over what is left."""
        keep, on_cycle, scheduler = (
            parts.keep if self.keep_decisions else None,
            self.on_cycle,
            parts.scheduler,
        )
        began = perf_counter()
        plain = Direct(self.jobs, scheduler, report=engine.report, decided=keep, stepped=on_cycle)
        plain.run()
        parts.adapter.take_over(plain.course)
        if plain.left:
            now = plain.course.now
            outcomes = parts.adapter.apply(now, plain.left)
            if keep is not None:
                keep(now, plain.left, outcomes)
            engine.report()
            if on_cycle is not None:
                on_cycle(now)
        engine.wall_seconds += perf_counter() - began

    def _result(self, parts: _Parts, engine: Engine) -> RunResult:
        adapter, scheduler = parts.adapter, parts.scheduler
        results = adapter.results()
        in_vain = _in_vain(results, scheduler.state)
        held_back = _held_back(adapter.unsubmitted) if self.chains else ()
        plugins = self.catalogue.expanded(self.plugin_configs)
        batches = {"cycle": f"{self.cycle:g} s"} if self.cycle is not None else {}
        return RunResult(
            label=self.label,
            plugins=tuple((config.name, dict(config.options)) for config in plugins),
            again=self._again(parts.physics),
            contributed=_contributed(parts.plugins),
            cluster=parts.cluster,
            jobs=[_judged(job, in_vain) for job in results] if in_vain else results,
            left_waiting=left_waiting(scheduler, _pending(results, in_vain), self.clock),
            failures=engine.failures.of_plugins(scheduler.answered),
            refused=[*self.refused, *held_back, *in_vain.values()],
            decisions=parts.records,
            capacity=adapter.capacity,
            activities=adapter.activities,
            power=adapter.power,
            partitions=adapter.partitions,
            epoch=self.epoch,
            begin=self.start,
            seed=self.seed,
            cycles=scheduler.cycles,
            wall_seconds=engine.wall_seconds,
            about={**(self.about or {}), **batches, "version": __version__},
        )

    def _again(self, physics: _Physics) -> Callable[[Sequence[JobResult]], RunResult] | str:
        """Runs jobs again as they ran in this run; or why that is not possible."""
        once = _only_once(self.commands, self.faults, self.running, self.latencies, self.happens)
        if once or physics.sharing is not None:
            return once or "the jobs' losses to their neighbours are drawn"
        return partial(
            _run_again,
            self.given,
            list(self.plugin_configs),
            self.catalogue,
            label=self.label,
            seed=self.seed,
            cycle=self.cycle,
            wait_for_down_nodes=self.wait_for_down_nodes,
            tiers=self.tiers,
        )


@dataclass(frozen=True)
class _Physics:
    """What plugins say of the emulated cluster (hook ``register_physics``)."""

    sharing: Sharing | None
    oversubscription: Oversubscription | None
    others: list[Any]

    @classmethod
    def of(cls, plugins: Plugins) -> _Physics:
        found = [module for module in plugins.manager.hook.register_physics() if module is not None]
        return cls(
            next((module for module in found if isinstance(module, Sharing)), None),
            next((module for module in found if isinstance(module, Oversubscription)), None),
            [module for module in found if not isinstance(module, Sharing | Oversubscription)],
        )


@dataclass(frozen=True)
class _Parts:
    """What a run is made of."""

    plugins: Plugins
    physics: _Physics
    #: As the adapter has it: in nodes, if a plugin needs them.
    cluster: ClusterDescription
    adapter: Any
    scheduler: Scheduler
    records: DecisionLog = field(default_factory=DecisionLog)

    def keep(self, now: float, decisions: Sequence[Decision], outcomes: Sequence[Outcome]) -> None:
        """Record what was decided and what became of it."""
        for decision, outcome in zip(decisions, outcomes, strict=True):
            self.records.append(DecisionRecord(now, decision, outcome.accepted, outcome.message))


def _contributed(plugins: Plugins) -> dict[str, Any]:
    """The metrics of the run that plugins contribute."""
    contributed: dict[str, Any] = {}
    for _, register in plugins.implementations("register_metrics"):
        contributed.update(register() or {})
    return contributed


def _held_back(unsubmitted: Mapping[str, Follows]) -> list[Refused]:
    return [
        Refused(job_id, f"follows a job that never ended (job {link.job_id})")
        for job_id, link in unsubmitted.items()
    ]


def _only_once(
    commands: Sequence[TraceCommand],
    faults: dict[str, Any] | None,
    running: Sequence[Begun],
    latencies: Latencies | Delays | None,
    happens: Sequence[Event],
) -> str:
    """Why jobs of such a run cannot be run again as they were; empty if they can."""
    if commands:
        return "users changed jobs while they waited or ran (elastic commands)"
    if faults:
        return "the emulated cluster had faults, which are drawn anew in each run"
    if running:
        return "the run began with jobs that ran already"
    if happens:
        return "the run had changes of a recorded cluster"
    if latencies:
        return "the run had latencies, which are drawn anew in each run"
    return ""


def _run_again(
    cluster: ClusterDescription,
    plugin_configs: Sequence[PluginConfig],
    catalogue: Catalogue,
    jobs: Sequence[JobResult],
    **options: Any,
) -> RunResult:
    """A run of these jobs, each for as long as it ran before."""
    work = [TraceJob(job.job, job.runtime, row=job.row) for job in jobs]
    return emulate(cluster, work, plugin_configs, catalogue, **options)


def _delays(latencies: Latencies | Delays | None, rng: np.random.Generator) -> Delays | None:
    if not isinstance(latencies, Latencies):
        return latencies
    return MeasuredDelays(latencies, rng) if latencies else None


def _in_vain(results: Iterable[JobResult], state: State) -> dict[str, Refused]:
    """Jobs that waited in vain to the end, and why: a plugin refused the job, or its pool never fitted it."""
    found = {}
    for result in results:
        job = state.jobs.get(result.job.id) if result.state == "pending" else None
        if job is not None and job.refusal:
            found[job.id] = Refused(job.id, job.refusal)
        elif job is not None and job.obstacle is not None and not job.obstacle.passing:
            found[job.id] = Refused(job.id, job.obstacle.why)
    return found


def _pending(results: Iterable[JobResult], in_vain: Mapping[str, Refused]) -> Iterator[str]:
    """The jobs that wait and may still start, by id."""
    return (one.job.id for one in results if one.state == "pending" and one.job.id not in in_vain)


def _judged(result: JobResult, in_vain: Mapping[str, Refused]) -> JobResult:
    """A job's course; for a job that waits in vain the state says so."""
    return msgspec.structs.replace(result, state="refused") if result.job.id in in_vain else result


def validated_faults(options: dict[str, Any], where: str = "emulation.faults") -> Any:
    """The emulated cluster's faults from their options; :class:`UserError`, led by ``where``, if wrong."""
    model = INSTALLED.get("emulated").Faults
    try:
        return model.model_validate(options)
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, where, model)) from error
