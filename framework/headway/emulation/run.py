"""Whole runs in the emulated cluster: a workload, a configuration, a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pydantic

from headway import __version__, inputs
from headway.adapter import Outcome
from headway.config import adapter_class
from headway.decisions import Decision, PowerUp
from headway.emulation.collector import quiet_collector
from headway.emulation.delays import Delays, MeasuredDelays
from headway.emulation.left_waiting import left_waiting
from headway.engine import Engine
from headway.errors import UserError
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
) -> RunResult:
    """Run ``jobs`` (in order of submission) on ``cluster`` under the given plugins.

    ``commands`` are the elastic commands that the jobs' users will give. ``chains``: whom jobs follow, by id:
    they are submitted so long after the others have ended; of those that follow one that never ends the
    result says so among the refused.

    ``faults`` are options of the emulated cluster's faults; ``start`` and ``running`` begin with jobs
    that run already, and ``power`` with nodes that are not on (see the emulated adapter); nodes are on
    if no plugin is there that could wake them. ``keep_decisions`` keeps every decision in the result.
    ``cycle``: batch mode, jobs start only at multiples of so many seconds. ``wait_for_down_nodes``: jobs
    that fit only with nodes that are down keep their place in the queue. ``tiers``: of pools by name, as with
    :class:`headway.scheduler.Scheduler`. ``latencies``: how long a real
    cluster was measured to take, or something that knows it start by start.

    The same arguments and seed give the same result.
    """
    kind = adapter_class("emulated")
    catalogue.check_energy(plugin_configs, cluster)
    plugins = Plugins.load(plugin_configs, catalogue, kind.capable_of(cluster))
    if not plugins.implementations("schedule"):
        raise UserError(
            f"{plugin_configs[0].where if plugin_configs else 'plugins'}: no policy is enabled "
            "(a plugin with the hook schedule, such as fcfs, easy, conservative)"
        )
    if not plugins.using(PowerUp):
        power = None
    seeds = np.random.SeedSequence(seed).spawn(3)
    physics = [module for module in plugins.manager.hook.register_physics() if module is not None]
    sharing = next((module for module in physics if isinstance(module, Sharing)), None)
    bundled = next((module for module in physics if isinstance(module, Oversubscription)), None)
    physics = [module for module in physics if not isinstance(module, Sharing | Oversubscription)]
    if sharing is not None:
        jobs = with_cpu_use(jobs, sharing, seed)
    given = cluster
    if plugins.requiring("nodes"):
        cluster = cluster.in_nodes()
    adapter = kind(
        cluster,
        jobs,
        commands=commands,
        chains=chains,
        physics=physics,
        faults=validated_faults(faults or {}),
        rng=np.random.default_rng(seeds[0]),
        start=start,
        running=running,
        power=power,
        delays=_delays(latencies, np.random.default_rng(seeds[2])),
        sharing=sharing,
        sharing_seed=seed,
        oversubscription=bundled,
    )
    if plugins.requiring("policy"):
        adapter.tell_policy()
    described = adapter.describe()
    scheduler = Scheduler(
        described,
        plugins,
        seed=seed,
        capabilities=adapter.capabilities,
        clock=clock,
        cycle=cycle,
        epoch=epoch,
        wait_for_down_nodes=wait_for_down_nodes,
        tiers=tiers,
    )
    records = DecisionLog()

    def keep(now: float, decisions: Sequence[Decision], outcomes: Sequence[Outcome]) -> None:
        for decision, outcome in zip(decisions, outcomes, strict=True):
            records.append(DecisionRecord(now, decision, outcome.accepted, outcome.message))

    if journal is not None and journal.enabled:
        states = {inputs.SAVED_AS: plugins.files.texts} if plugins.files.texts else {}
        journal.begin_run(RunInfo(Mode.DRY_RUN, epoch, __version__, config_text, seed, described, states))
    engine = Engine(
        adapter,
        scheduler,
        journal,
        mode=Mode.DRY_RUN,
        on_cycle=on_cycle,
        on_decisions=keep if keep_decisions else None,
    )
    with quiet_collector(len(jobs)):
        reason = engine.run()
    if journal is not None and journal.enabled:
        journal.end_run(str(reason))
    contributed: dict[str, Any] = {}
    for _, register in plugins.implementations("register_metrics"):
        contributed.update(register() or {})
    drawn = "" if sharing is None else "what jobs lose to their neighbours is drawn"
    again: Callable[[Sequence[JobResult]], RunResult] | str = (
        _only_once(commands, faults, running, latencies) or drawn
    )
    if not again:
        again = partial(
            _run_again,
            given,
            list(plugin_configs),
            catalogue,
            label=label,
            seed=seed,
            cycle=cycle,
            wait_for_down_nodes=wait_for_down_nodes,
            tiers=tiers,
        )
    results = adapter.results()
    in_vain = _in_vain(results, scheduler.state)
    return RunResult(
        label=label,
        plugins=tuple((config.name, dict(config.options)) for config in catalogue.expanded(plugin_configs)),
        again=again,
        contributed=contributed,
        cluster=cluster,
        jobs=[_judged(job, in_vain) for job in results],
        left_waiting=left_waiting(scheduler, _pending(results, in_vain), clock),
        failures=engine.failures.of_plugins(scheduler.answered),
        refused=[*refused, *(_held_back(adapter.unsubmitted) if chains else ()), *in_vain.values()],
        decisions=records,
        capacity=adapter.capacity,
        activities=adapter.activities,
        power=adapter.power,
        partitions=adapter.partitions,
        epoch=epoch,
        begin=start,
        seed=seed,
        cycles=scheduler.cycles,
        wall_seconds=engine.wall_seconds,
        about={
            **(about or {}),
            **({"cycle": f"{cycle:g} s"} if cycle is not None else {}),
            "version": __version__,
        },
    )


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
) -> str:
    """Why jobs of such a run cannot be run again as they were; empty if they can."""
    if commands:
        return "users changed jobs while they waited or ran (elastic commands)"
    if faults:
        return "the emulated cluster had faults, which are drawn anew in each run"
    if running:
        return "the run began with jobs that ran already"
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
    """Who waited in vain to the end, and why: a plugin refused the job, or its pool could never hold it."""
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
    """A job's course; of one that waits in vain the state says so."""
    return msgspec.structs.replace(result, state="refused") if result.job.id in in_vain else result


def validated_faults(options: dict[str, Any], where: str = "emulation.faults") -> Any:
    """The emulated cluster's faults from their options; :class:`UserError`, led by ``where``, if wrong."""
    model = adapter_class("emulated").Faults
    try:
        return model.model_validate(options)
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, where, model)) from error
