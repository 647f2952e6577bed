"""What a dry run is asked for, in groups: the options of ``headway dry-run``, and the arguments of
:func:`headway.run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headway.errors import UserError

if TYPE_CHECKING:
    from headway.workload import Trace


@dataclass(frozen=True)
class _Group:
    """Some of the options. A field has the name of its option's parameter."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The group's part of all options by name; an option that is not there has its default."""
        return cls(**{field.name: given[field.name] for field in fields(cls) if field.name in given})


@dataclass(frozen=True)
class Workload(_Group):
    """Which jobs run, and what a file or a model adds to them."""

    trace_path: Path | None = None
    #: Instead of a file: a trace that has been read.
    trace: Trace | None = None
    workload: str | None = None
    settings: tuple[str, ...] = ()
    from_cluster: bool = False
    strict: bool = False
    limit: int | None = None
    feedback: str = "none"
    estimates: str | None = None
    estimate_settings: tuple[str, ...] = ()
    cpu_path: Path | None = None
    data_path: Path | None = None
    licences_path: Path | None = None
    switches_path: Path | None = None

    @property
    def in_chains(self) -> bool:
        """Whether users submit their next job after their last job ended."""
        return self.feedback == "chains"


@dataclass(frozen=True)
class Filters(_Group):
    """What is left of a trace, and how its times and sizes are scaled."""

    first: int | None = None
    last: int | None = None
    window: tuple[float, float] | None = None
    scale_arrivals: float | None = None
    scale_runtimes: float | None = None
    scale_sizes: float | None = None


@dataclass(frozen=True)
class Machine(_Group):
    """What the jobs run on, and when it may start them."""

    processors: int | None = None
    energy: str | None = None
    cycle: float | None = None


@dataclass(frozen=True)
class Plugins(_Group):
    """The configuration, and the plugins and adapters that come from elsewhere."""

    config_path: Path | None = None
    policy: str | None = None
    further: tuple[str, ...] = ()
    plugin_files: tuple[Path, ...] = ()
    adapter_files: tuple[Path, ...] = ()
    #: Plugin classes of the program that asks; ``policy`` and ``further`` can name them.
    plugin_classes: tuple[type, ...] = ()
    #: Options of ``policy`` and of plugins among ``further``, by name.
    plugin_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Chance(_Group):
    """What is drawn at random, and how often."""

    seed: int | None = None
    draws: int = 1


@dataclass(frozen=True)
class Method(_Group):
    """How the rules of the evaluation of schedulers are answered."""

    accept: tuple[str, ...] = ()
    strict_method: bool = False


#: Program -> the file that it reads.
EXPORTS = {"evalys": "evalys.csv"}


@dataclass(frozen=True)
class Outputs(_Group):
    """What is written and said beside the summary."""

    out: Path | None = None
    journal_path: str | None = None
    #: Whether what was wrong with a trace is told line by line; None: that cannot be asked for.
    verbose: bool | None = False
    #: Keep the decisions without ``out``, too.
    decisions: bool = False
    #: What else is written beside the files of a run, for other programs: :data:`EXPORTS`.
    export: tuple[str, ...] = ()


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
        """From the options by name; :class:`headway.errors.UserError` for options that exclude each other."""
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
        sources = (
            work.from_cluster, work.trace_path is not None, work.workload is not None, work.trace is not None,
        )  # fmt: skip
        if sum(sources) > 1 or (not any(sources) and self.plugins.config_path is None):
            raise UserError("expected --trace FILE, --workload MODEL or -c CONFIG --from-cluster")
        if self.outputs.export and self.outputs.out is None:
            raise UserError("--export goes with --out DIRECTORY")
        if work.settings and work.workload is None:
            raise UserError("--set goes with --workload")
        if work.from_cluster and self.plugins.config_path is None:
            raise UserError("--from-cluster needs -c CONFIG, which names the cluster")
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
            raise UserError("--feedback goes with one run, not with --draws")


def _refuse_trace_options(with_: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option} goes with --trace, not with {with_}")
