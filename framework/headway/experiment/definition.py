"""A campaign from its YAML file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from headway.config import (
    CycleSeconds,
    EmulationConfig,
    EnergyConfig,
    NodesConfig,
    PoolConfig,
    TracePoolsConfig,
)
from headway.emulation import emulate
from headway.energy.profiles import load_profile, with_energy
from headway.errors import UserError, nearest
from headway.experiment.campaign import Campaign, Scenario, Variant
from headway.experiment.estimates import chosen_model
from headway.experiment.method import Method, trim_of
from headway.experiment.planned_starts import RealCluster, read_real_cluster
from headway.inputs.strict_yaml import read_mapping
from headway.inputs.validation import explain_validation
from headway.journal.latencies import LONGEST, Latencies
from headway.model import ClusterDescription
from headway.partitions.description import TorusConfig
from headway.plugins import Catalogue, PluginConfig
from headway.workload.samples import located

PluginEntry = str | dict[str, dict[str, Any] | None]


class _Section(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")


class VariantConfig(_Section):
    """One policy of the comparison."""

    label: str
    plugins: list[PluginEntry] = pydantic.Field(min_length=1)
    cycle: CycleSeconds | None = pydantic.Field(
        default=None, description="machine of this workload, instead of the campaign's"
    )


#: In a campaign: the workload's estimates as they are.
OWN_ESTIMATES = "own"


#: How long starts take in a workload's runs: so many seconds each, or as long as the measured starts.
Latency = Annotated[float, pydantic.Field(ge=0, le=LONGEST)] | Literal["measured"]


class EstimatesConfig(_Section):
    """An estimate model with options."""

    model: str
    options: dict[str, Any] = pydantic.Field(default_factory=dict)
    label: str = ""


#: How a trace's load is changed: key -> field of a scenario.
WAYS = {
    "arrival_factors": "arrival_factor",
    "target_loads": "target_load",
    "runtime_factors": "runtime_factor",
    "size_factors": "size_factor",
}


class WorkloadConfig(_Section):
    """A model or a trace, and how its load is varied."""

    label: str = ""
    model: str = ""
    options: dict[str, Any] = pydantic.Field(default_factory=dict)
    loads: list[float] = pydantic.Field(
        default_factory=list, description="values of the model's option `load`"
    )
    trace: str = ""
    arrival_factors: list[float] = pydantic.Field(
        default_factory=list, description="factors on the trace's times between submissions"
    )
    target_loads: list[float] = pydantic.Field(
        default_factory=list,
        description="offered loads of the trace, reached by the times between submissions",
    )
    runtime_factors: list[float] = pydantic.Field(
        default_factory=list, description="factors on the trace's runtimes and estimates"
    )
    size_factors: list[float] = pydantic.Field(
        default_factory=list, description="factors on the trace's sizes"
    )
    resample: Literal["", "weeks", "users"] = pydantic.Field(
        default="", description="draw another trace from this trace for each seed, by weeks or by users"
    )
    feedback: Literal["", "chains"] = pydantic.Field(
        default="",
        description="chains: a second run, in which a user's job is submitted after the user's earlier jobs "
        "have ended",
    )
    limit: int | None = pydantic.Field(default=None, ge=1)
    estimates: list[str | EstimatesConfig] = pydantic.Field(
        default_factory=list,
        description="estimate models (a name, a model file, or {model, options, label}) in turn; `own` "
        "stands for the workload's own estimates",
    )
    latencies: list[Latency] = pydantic.Field(
        default_factory=list,
        description="latencies in turn: seconds that a start takes (0: none), or `measured` (see "
        "method.measured)",
    )

    @pydantic.model_validator(mode="after")
    def _one_source(self) -> WorkloadConfig:
        if bool(self.model) == bool(self.trace):
            raise ValueError("either model or trace")
        ways = [name for name in WAYS if getattr(self, name)]
        if len(ways) > 1:
            raise ValueError(f"a single way of changing the load, found {', '.join(ways)}")
        for name in ways:
            if any(not value > 0 for value in getattr(self, name)):
                raise ValueError(f"{name}: numbers above 0, found {getattr(self, name)}")
        if self.model and self.feedback:
            raise ValueError("feedback: a trace, which says when jobs ended; found a model")
        if self.model and (ways or self.resample):
            raise ValueError(f"a model's load is changed by loads, found {(*ways, 'resample')[0]}")
        return self


class MethodConfig(_Section):
    """What the campaign says of its own method; see the page on the rules."""

    system: Literal["open", "static", "closed"] = "open"
    warmup: str = pydantic.Field(default="auto", description="auto, none, such as 500 jobs, or 2d")
    cooldown: str = pydantic.Field(default="auto", description="auto, none, such as 500 jobs, or 2d")
    precision: float = pydantic.Field(
        default=0.1, gt=0, description="wanted half width of the interval over the mean"
    )
    estimates: str = ""
    interactive: str = ""
    usage: str = ""
    applications: str = ""
    overhead: str = ""
    measured: str = pydantic.Field(
        default="", description="measurements of a real cluster: a file of `headway starts --out`"
    )
    accept: dict[str | int, str] = pydantic.Field(
        default_factory=dict, description="rule -> reason why it is not kept here"
    )

    @pydantic.field_validator("accept")
    @classmethod
    def _with_reasons(cls, value: dict[str | int, str]) -> dict[str | int, str]:
        for name, reason in value.items():
            if not reason.strip():
                raise ValueError(f"a reason for rule {name}")
        return value


class CampaignConfig(_Section):
    """A whole campaign file."""

    processors: int | None = pydantic.Field(
        default=None, ge=1, description="processors of a machine without nodes"
    )
    nodes: list[NodesConfig] = pydantic.Field(
        default_factory=list, description="nodes, instead of processors"
    )
    torus: TorusConfig | None = pydantic.Field(
        default=None, description="midplanes in wired partitions, instead of processors"
    )
    trace_pools: TracePoolsConfig | None = pydantic.Field(
        default=None,
        description="pools to which the traces' jobs are sent, where nodes belong to several pools",
    )
    pools: dict[str, PoolConfig] = pydantic.Field(
        default_factory=dict, description="properties of pools, by name: {debug: {tier: 5}}"
    )
    energy: EnergyConfig | None = pydantic.Field(
        default=None, description="an energy profile (a name or a file), or {profile, classes}"
    )
    policies: list[str | VariantConfig] = pydantic.Field(min_length=1)
    workloads: list[WorkloadConfig] = pydantic.Field(min_length=1)
    seeds: int = pydantic.Field(default=10, ge=1, description="number of seeds, from first_seed on")
    first_seed: int = pydantic.Field(default=1, ge=0)
    cycle: CycleSeconds | None = pydantic.Field(
        default=None, description="batch mode: jobs start only at multiples of this time (10s, 1m)"
    )
    method: MethodConfig = pydantic.Field(
        default_factory=MethodConfig,
        description="measurements, assumptions, and rules that are not kept",
    )

    @pydantic.field_validator("energy", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"profile": value} if isinstance(value, str) else value

    @pydantic.model_validator(mode="after")
    def _one_machine(self) -> CampaignConfig:
        if (self.processors is not None) + bool(self.nodes) + (self.torus is not None) != 1:
            raise ValueError("either processors (a flat machine) or nodes or a torus")
        pools = {name for kind in self.nodes for name in kind.pools}
        if len(pools) > 1 and (self.trace_pools is None or any(work.model for work in self.workloads)):
            raise ValueError(
                f"nodes of one pool, or traces alone and trace_pools; found {', '.join(sorted(pools))}"
            )
        return self


def plugin_configs(
    entries: list[PluginEntry], where: str, beside: Path | None = None
) -> tuple[PluginConfig, ...]:
    """Plugins as a configuration file names them, which lies in the folder ``beside``."""
    found = []
    for at, entry in enumerate(entries):
        if isinstance(entry, str):
            found.append(PluginConfig(entry, {}, f"{where}[{at}]", beside))
        elif len(entry) == 1:
            ((name, options),) = entry.items()
            found.append(PluginConfig(name, options or {}, f"{where}[{at}]", beside))
        else:
            raise UserError(
                f"{where}[{at}]: expected a plugin's name, or a name with its options, found {entry}"
            )
    return tuple(found)


def load_campaign(path: Path, beside: Path | None = None, plugin_files: Iterable[Path] = ()) -> Campaign:
    """Read a campaign file; :class:`UserError` names file, key, what was expected and found.

    Files that it names lie in the folder ``beside``; None: in its own. ``plugin_files``: Python files whose
    plugins its policies and workloads may name.
    """
    data = read_mapping(path, "the campaign", "processors (or nodes, or torus), policies, workloads")
    return campaign_of(data, str(path), beside or path.parent, plugin_files)


def campaign_of(
    data: Mapping[str, Any],
    path: str,
    beside: Path,
    plugin_files: Iterable[Path] = (),
    plugin_classes: Iterable[type] = (),
) -> Campaign:
    """A campaign from the keys of its file; ``path``: where they were said, which leads each message. The
    rest as for :func:`load_campaign`; ``plugin_classes``: plugins of the program that asks."""
    plugins = tuple(str(file.resolve()) for file in plugin_files)
    classes = tuple(plugin_classes)
    catalogue = Catalogue(plugins, classes)
    try:
        config = CampaignConfig.model_validate(data)
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, path, CampaignConfig)) from error
    variants = tuple(
        Variant(p, (PluginConfig(p, {}, f"{path}: policies[{at}]"),), config.cycle)
        if isinstance(p, str)
        else Variant(
            p.label,
            plugin_configs(p.plugins, f"{path}: policies[{at}].plugins", beside),
            p.cycle if p.cycle is not None else config.cycle,
        )
        for at, p in enumerate(config.policies)
    )
    _refuse_twins(variants, path)
    scenarios: list[Scenario] = []
    cluster = _machine(config, path, beside)
    for name in config.pools:
        if name not in (there := cluster.pool_sizes()):
            raise UserError(f"{path}: pools: no pool is called {name!r}.{nearest(name, there)}")
    for variant in variants:
        catalogue.check_energy(variant.plugins, cluster, "energy: PROFILE in the campaign")
    method = _method(config.method, path, beside)
    for at, work in enumerate(config.workloads):
        found = _with_estimates(_scenarios(work, config, cluster, beside), work, path, beside, catalogue)
        scenarios += _with_latencies(found, work, method.real, f"{path}: workloads[{at}].latencies")
    seeds = tuple(range(config.first_seed, config.first_seed + config.seeds))
    return Campaign(variants, tuple(scenarios), seeds, method, plugins, classes)


def _refuse_twins(variants: Sequence[Variant], path: str) -> None:
    """Raise :class:`UserError` for two policies of one label, whose rows would be the same policy's."""
    labels = [variant.label for variant in variants]
    for at, label in enumerate(labels):
        if label in labels[:at]:
            raise UserError(f"{path}: policies: two policies are called {label!r}; give one another label")


def _method(said: MethodConfig, path: str, beside: Path) -> Method:
    measured = beside / said.measured if said.measured else None
    return Method(
        measured=str(measured or ""),
        real=read_real_cluster(measured, f"{path}: method.measured") if measured is not None else None,
        system=said.system,
        warmup=trim_of(said.warmup, f"{path}: method.warmup"),
        cooldown=trim_of(said.cooldown, f"{path}: method.cooldown"),
        precision=said.precision,
        estimates=said.estimates,
        interactive=said.interactive,
        usage=said.usage,
        applications=said.applications,
        overhead=said.overhead,
        accept={str(name): reason for name, reason in said.accept.items()},
    )


def _machine(config: CampaignConfig, path: str, beside: Path) -> ClusterDescription:
    """The machine, with its energy profile."""
    cluster = EmulationConfig(
        processors=config.processors, nodes=config.nodes, torus=config.torus
    ).description()
    assert cluster is not None
    if config.energy is None or config.energy.profile is None:
        return cluster
    profile = load_profile(config.energy.profile, f"{path}: energy", beside)
    return with_energy(cluster, profile, config.energy.classes, f"{path}: energy.classes")


def _with_estimates(
    scenarios: list[Scenario], work: WorkloadConfig, path: str, beside: Path, catalogue: Catalogue
) -> list[Scenario]:
    """Each scenario with each of the estimate models, and the models checked."""
    if not work.estimates:
        return scenarios
    found = []
    for entry in work.estimates:
        said = entry if isinstance(entry, EstimatesConfig) else EstimatesConfig(model=entry)
        if said.model == OWN_ESTIMATES:
            found += [replace(s, label=f"{s.label}, {said.label or OWN_ESTIMATES}") for s in scenarios]
            continue
        # A file lies beside the campaign.
        file = beside / said.model
        model = str(file) if file.is_file() else said.model
        chosen_model(catalogue, model, said.options, f"{path}: estimates")
        found += [
            replace(
                s,
                label=f"{s.label}, {said.label or said.model}",
                estimates=model,
                estimate_options=said.options,
            )
            for s in scenarios
        ]
    return found


def _with_latencies(
    scenarios: list[Scenario], work: WorkloadConfig, real: RealCluster | None, where: str
) -> list[Scenario]:
    """Each scenario with each of the latencies; without any they take no time, under the same label."""
    found = []
    for entry in dict.fromkeys(work.latencies or [0.0]):
        if entry == "measured" and (real is None or not real.latencies):
            there = "none" if real is None else f"one without any ({real.cluster})"
            raise UserError(
                f"{where}: expected a file with latencies under method.measured (`headway starts --out`, of "
                f"a daemon that drives), found {there}"
            )
        if entry == 0:
            found += scenarios
        elif entry == "measured":
            assert real is not None
            found += [
                replace(one, label=f"{one.label}, measured latencies", latencies=real.latencies)
                for one in scenarios
            ]
        else:
            taken = Latencies(start=(float(entry),))
            found += [
                replace(one, label=f"{one.label}, starts of {entry:g} s", latencies=taken)
                for one in scenarios
            ]
    return found


def _scenarios(
    work: WorkloadConfig, config: CampaignConfig, cluster: ClusterDescription, beside: Path
) -> list[Scenario]:
    pool = cluster.pools[0]
    processors = pool.processors or sum(node.processors for node in cluster.nodes)
    tiers = {name: one.tier for name, one in config.pools.items() if one.tier is not None}
    chosen = config.trace_pools.chosen("trace_pools") if config.trace_pools is not None else None
    if work.trace:
        trace = located(beside / work.trace)
        label = work.label or Path(work.trace).name
        way = next((name for name in WAYS if getattr(work, name)), "arrival_factors")
        # Never alone: what reacts is read beside the open replay.
        kinds = [("", label), *([(work.feedback, f"{label}, {work.feedback}")] if work.feedback else [])]
        return [
            Scenario(
                shown,
                value,
                processors,
                trace=str(trace),
                resample=work.resample,
                feedback=feedback,
                limit=work.limit,
                cluster=cluster,
                trace_pools=chosen,
                tiers=tiers,
                **{WAYS[way]: value},
            )
            for feedback, shown in kinds
            for value in getattr(work, way) or [1.0]
        ]
    label = work.label or work.model
    options = {**work.options, "processors": processors}
    if not work.loads:
        return [Scenario(label, 0.0, processors, model=work.model, options=options, cluster=cluster)]
    return [
        Scenario(
            label, load, processors, model=work.model, options={**options, "load": load}, cluster=cluster
        )
        for load in work.loads
    ]


def check_policies(campaign: Campaign) -> None:
    """Raise :class:`UserError` for the first policy that refuses to begin on a machine of the campaign:
    what its plugins find wrong with each other, or with the machine."""
    catalogue = campaign.catalogue()
    machines = [one.machine for one in campaign.scenarios]
    for at, machine in enumerate(machines):
        if machine in machines[:at]:
            continue
        for variant in campaign.variants:
            try:
                emulate(machine, [], variant.plugins, catalogue, label=variant.label, cycle=variant.cycle)
            except UserError as error:
                raise UserError(f"policy {variant.label!r}: {error}") from error
            except Exception:  # the run will be named with its place
                continue
