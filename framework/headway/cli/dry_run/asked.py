"""What a dry run was asked for: the options of the command, in groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import click


@dataclass(frozen=True)
class _Group:
    """Some of the command's options. A field has the name of its option's parameter."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The group's part of all options by name."""
        return cls(**{field.name: given[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class Workload(_Group):
    """Which jobs run, and what a file or a model adds to them."""

    trace_path: Path | None
    workload: str | None
    settings: tuple[str, ...]
    from_cluster: bool
    strict: bool
    limit: int | None
    feedback: str
    estimates: str | None
    estimate_settings: tuple[str, ...]
    cpu_path: Path | None
    data_path: Path | None
    licences_path: Path | None
    switches_path: Path | None

    @property
    def in_chains(self) -> bool:
        """Whether users submit their next job after their last job ended."""
        return self.feedback == "chains"


@dataclass(frozen=True)
class Filters(_Group):
    """What is left of a trace, and how its times and sizes are scaled."""

    first: int | None
    last: int | None
    window: tuple[float, float] | None
    scale_arrivals: float | None
    scale_runtimes: float | None
    scale_sizes: float | None


@dataclass(frozen=True)
class Machine(_Group):
    """What the jobs run on, and when it may start them."""

    processors: int | None
    energy: str | None
    cycle: float | None


@dataclass(frozen=True)
class Plugins(_Group):
    """The configuration, and the plugins and adapters that are in files of their own."""

    config_path: Path | None
    policy: str | None
    further: tuple[str, ...]
    plugin_files: tuple[Path, ...]
    adapter_files: tuple[Path, ...]


@dataclass(frozen=True)
class Chance(_Group):
    """What is drawn at random, and how often."""

    seed: int | None
    draws: int


@dataclass(frozen=True)
class Method(_Group):
    """How the rules of the evaluation of schedulers are answered."""

    accept: tuple[str, ...]
    strict_method: bool


@dataclass(frozen=True)
class Outputs(_Group):
    """What is written and said beside the summary."""

    out: Path | None
    journal_path: str | None
    verbose: bool


@dataclass(frozen=True)
class Asked:
    """All options of a dry run."""

    work: Workload
    filters: Filters
    machine: Machine
    plugins: Plugins
    chance: Chance
    method: Method
    outputs: Outputs

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Asked:
        """From the command's parameters by name; :class:`click.UsageError` for options that exclude each
        other."""
        asked = cls(
            Workload.of(given),
            Filters.of(given),
            Machine.of(given),
            Plugins.of(given),
            Chance.of(given),
            Method.of(given),
            Outputs.of(given),
        )
        asked._refuse_contradictions()
        return asked

    def _refuse_contradictions(self) -> None:
        work, chance, method = self.work, self.chance, self.method
        sources = (work.from_cluster, work.trace_path is not None, work.workload is not None)
        if sum(sources) > 1 or (not any(sources) and self.plugins.config_path is None):
            raise click.UsageError("expected --trace FILE, --workload MODEL or -c CONFIG --from-cluster")
        if work.settings and work.workload is None:
            raise click.UsageError("--set goes with --workload")
        if work.from_cluster and self.plugins.config_path is None:
            raise click.UsageError("--from-cluster needs -c CONFIG, which names the cluster")
        if work.from_cluster or work.workload is not None:
            _refuse_trace_options(
                "--workload" if work.workload is not None else "--from-cluster",
                **{field.name: getattr(self.filters, field.name) for field in fields(self.filters)},
                strict=work.strict or None,
                feedback=None if work.feedback == "none" else work.feedback,
            )
        if work.from_cluster:
            _refuse_trace_options(
                "--from-cluster", processors=self.machine.processors, journal=self.outputs.journal_path,
                cpu=work.cpu_path, data=work.data_path, licences=work.licences_path,
                switches=work.switches_path,
                draws=chance.draws if chance.draws > 1 else None, estimates=work.estimates,
                strict_method=method.strict_method or None, accept=method.accept or None,
            )  # fmt: skip
        if work.feedback != "none" and chance.draws > 1:
            raise click.UsageError("--feedback goes with one run, not with --draws")


def _refuse_trace_options(with_: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} goes with --trace, not with {with_}")
