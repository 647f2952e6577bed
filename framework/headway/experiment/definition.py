"""A campaign from its YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import yaml

from headway.config import CycleSeconds
from headway.errors import UserError
from headway.experiment.campaign import Campaign, Scenario, Variant
from headway.plugins import PluginConfig, explain_validation

PluginEntry = str | dict[str, dict[str, Any] | None]


class _Section(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")


class VariantConfig(_Section):
    """One policy of the comparison."""

    label: str
    plugins: list[PluginEntry] = pydantic.Field(min_length=1)
    cycle: CycleSeconds | None = pydantic.Field(default=None, description="instead of the campaign's")


class WorkloadConfig(_Section):
    """A model or a trace, and how its load is varied."""

    label: str = ""
    model: str = ""
    options: dict[str, Any] = pydantic.Field(default_factory=dict)
    loads: list[float] = pydantic.Field(default_factory=list, description="values of the model's option load")
    trace: str = ""
    arrival_factors: list[float] = pydantic.Field(default_factory=lambda: [1.0])
    limit: int | None = pydantic.Field(default=None, ge=1)

    @pydantic.model_validator(mode="after")
    def _one_source(self) -> WorkloadConfig:
        if bool(self.model) == bool(self.trace):
            raise ValueError("either model or trace")
        return self


class CampaignConfig(_Section):
    """A whole campaign file."""

    processors: int = pydantic.Field(ge=1)
    policies: list[str | VariantConfig] = pydantic.Field(min_length=1)
    workloads: list[WorkloadConfig] = pydantic.Field(min_length=1)
    seeds: int = pydantic.Field(default=10, ge=1, description="how many seeds, from first_seed on")
    first_seed: int = pydantic.Field(default=1, ge=0)
    cycle: CycleSeconds | None = pydantic.Field(
        default=None, description="batch mode: jobs start only at multiples of this time (10s, 1m)"
    )


def plugin_configs(entries: list[PluginEntry], where: str) -> tuple[PluginConfig, ...]:
    """Plugins as a configuration file names them."""
    found = []
    for at, entry in enumerate(entries):
        if isinstance(entry, str):
            found.append(PluginConfig(entry, {}, f"{where}[{at}]"))
        elif len(entry) == 1:
            ((name, options),) = entry.items()
            found.append(PluginConfig(name, options or {}, f"{where}[{at}]"))
        else:
            raise UserError(
                f"{where}[{at}]: expected a plugin's name, or one name with its options, found {entry}"
            )
    return tuple(found)


def load_campaign(path: Path) -> Campaign:
    """Read a campaign file; :class:`UserError` names file, key, what was expected and found."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: the campaign cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise UserError(f"{path}: expected keys processors, policies, workloads; found {type(data).__name__}")
    try:
        config = CampaignConfig.model_validate(data)
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, str(path), CampaignConfig)) from error
    variants = tuple(
        Variant(p, (PluginConfig(p, {}, f"{path}: policies[{at}]"),), config.cycle)
        if isinstance(p, str)
        else Variant(
            p.label,
            plugin_configs(p.plugins, f"{path}: policies[{at}].plugins"),
            p.cycle if p.cycle is not None else config.cycle,
        )
        for at, p in enumerate(config.policies)
    )
    scenarios: list[Scenario] = []
    for work in config.workloads:
        scenarios += _scenarios(work, config.processors, path)
    seeds = tuple(range(config.first_seed, config.first_seed + config.seeds))
    return Campaign(variants, tuple(scenarios), seeds)


def _scenarios(work: WorkloadConfig, processors: int, path: Path) -> list[Scenario]:
    if work.trace:
        trace = path.parent / work.trace
        label = work.label or trace.name
        return [
            Scenario(label, factor, processors, trace=str(trace), arrival_factor=factor, limit=work.limit)
            for factor in work.arrival_factors
        ]
    label = work.label or work.model
    options = {**work.options, "processors": processors}
    if not work.loads:
        return [Scenario(label, 0.0, processors, model=work.model, options=options)]
    return [
        Scenario(label, load, processors, model=work.model, options={**options, "load": load})
        for load in work.loads
    ]
