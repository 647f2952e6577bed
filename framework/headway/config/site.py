"""The configuration file as a validated model.

One YAML file says which cluster, which plugins, and what is done with their decisions; the same
file is deployed (``headway run``), watched (``--monitor``) and dry-run. ``docs/operators/configuration.md``
explains every key. A wrong key, type or value is a :class:`~headway.errors.UserError` that names
file and key, what was expected and what was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from headway.adapter import copying_capabilities
from headway.config.adapters import INSTALLED, Adapters, ClusterConfig, MemberConfig
from headway.config.emulation import EmulationConfig
from headway.config.letters import LettersConfig
from headway.config.section import Section
from headway.config.serve import ServeConfig
from headway.config.sites import (
    DatasetConfig,
    DatasetName,
    LinkConfig,
    TransfersConfig,
    as_one,
    described_sites,
)
from headway.config.standby import StandbyConfig
from headway.decisions import Decision
from headway.errors import UserError
from headway.inputs.durations import as_seconds
from headway.inputs.strict_yaml import parse_yaml
from headway.inputs.validation import explain_validation
from headway.model import ClusterDescription
from headway.model.classes import ClassBounds
from headway.model.modes import Mode
from headway.model.sites import Intake, Sites
from headway.model.transfers import Transfers
from headway.plugins import PluginConfig

#: Where a configuration that was read from no file says it comes from.
_NOWHERE = "configuration"


#: Of a cluster in a federation: it leads the names of its jobs, pools and nodes. Without an underscore
#: none can be taken for the beginning of a job's reservation (:data:`headway.model.FOR_JOB`).
ClusterName = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,31}$")]


def _plugin_entry(entry: Any) -> Any:
    """One entry of ``plugins``: a name, or a mapping of one name to its options."""
    if isinstance(entry, str) and entry:
        return entry
    if isinstance(entry, dict) and len(entry) == 1:
        ((name, options),) = entry.items()
        if isinstance(name, str) and name:
            if options is None or isinstance(options, dict):
                return entry
            raise ValueError(f"the options of {name!r} as keys and values")
    raise ValueError("a plugin's name, or a name with its options (- easy, or - name: {key: value})")


PluginEntry = Annotated[str | dict[str, dict[str, Any] | None], pydantic.BeforeValidator(_plugin_entry)]


class PoolConfig(Section):
    """What is to hold of a pool, instead of what the batch system says."""

    tier: int | None = pydantic.Field(
        default=None,
        description="where pools share nodes, jobs of pools with a higher tier come before all other jobs; "
        "default: the batch system's tier",
    )


class EnergyConfig(Section):
    """What the nodes draw. Without a profile nothing is known about power."""

    profile: str | None = pydantic.Field(
        default=None, min_length=1, description="an installed energy profile, or a YAML file"
    )
    classes: dict[str, str] = pydantic.Field(
        default_factory=dict,
        description="pattern of node names -> class of the profile; the first pattern that matches counts; "
        "default: the profile's first class",
    )


class MetricsConfig(Section):
    """Which jobs are narrow and short, for the metrics by class; what the daemon's metrics tell apart."""

    narrow: int = pydantic.Field(default=1, ge=1, description="most processors of a narrow job")
    short: float = pydantic.Field(
        default=3600.0, gt=0, allow_inf_nan=False, description="longest runtime of a short job, in seconds"
    )

    users: bool = pydantic.Field(
        default=False, description="true: the daemon's metrics tell waiting jobs by user, to operators"
    )

    def class_bounds(self) -> ClassBounds:
        """The same for a run's metrics."""
        return ClassBounds(self.narrow, self.short)


#: Of a batch mode: the time from one look at the queues to the next.
CycleSeconds = Annotated[
    float, pydantic.BeforeValidator(as_seconds), pydantic.Field(gt=0, le=86400, allow_inf_nan=False)
]


class LogConfig(Section):
    """What the daemon says on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "text", "json"] = "console"


class ServiceConfig(Section):
    """The local socket through which users speak to the daemon."""

    enabled: bool = pydantic.Field(
        default=True, description="true: open a local socket for users' commands; false: no socket"
    )
    socket: str | None = pydantic.Field(
        default=None,
        min_length=1,
        description="path of the socket; default: the journal's file with .sock appended",
    )
    operators: list[str] = pydantic.Field(
        default_factory=list,
        description="users that may command all jobs, besides root and the daemon's own user",
    )
    speakers: list[str] = pydantic.Field(
        default_factory=list,
        description="users that may ask on behalf of other users: the one that `headway serve` runs as",
    )
    private: bool = pydantic.Field(
        default=True,
        description="users are told of their own jobs only; false: of all jobs. Operators are told of all",
    )
    timeout: float = pydantic.Field(
        default=30.0, gt=0, le=3600, description="seconds for which a request waits for an answer"
    )
    burst: int = pydantic.Field(default=20, ge=1, description="requests of a user that are served at once")
    rate: float = pydantic.Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="further requests of a user that are served each second",
    )
    operator_burst: int = pydantic.Field(default=200, ge=1, description="`burst` of an operator")
    operator_rate: float = pydantic.Field(
        default=20.0, gt=0, allow_inf_nan=False, description="`rate` of an operator"
    )


class Config(Section):
    """A whole configuration file."""

    mode: Mode = pydantic.Field(
        default=Mode.MONITOR,
        description="drive: apply decisions; monitor: journal them only; dry-run: emulate",
    )
    cluster: ClusterConfig = ClusterConfig()
    clusters: dict[ClusterName, MemberConfig] = pydantic.Field(
        default_factory=dict,
        description="several clusters instead of `cluster`: name -> {adapter, options, site, emulation}; "
        "their pools, jobs and nodes are called NAME:pool, NAME:job, NAME:node",
    )
    links: list[LinkConfig] = pydantic.Field(
        default_factory=list, description="what data can take between the clusters"
    )
    datasets: dict[DatasetName, DatasetConfig] = pydantic.Field(
        default_factory=dict, description="the datasets that jobs read, by name"
    )
    transfers: TransfersConfig = pydantic.Field(
        default_factory=TransfersConfig, description="how datasets are copied"
    )
    plugins: list[PluginEntry] = pydantic.Field(
        default=["easy", "first-fit"],
        description="enabled plugins in order: a name, or a name with its options",
    )
    journal: str = pydantic.Field(default="headway.db", description="SQLite file, or a database URL")
    seed: int = pydantic.Field(default=0, ge=0, description="seed of all random draws")
    cycle: CycleSeconds | None = pydantic.Field(
        default=None,
        description="batch mode: start jobs only at multiples of this time (10s, 1m); default: at each event",
    )
    wait_for_down_nodes: bool = pydantic.Field(
        default=False,
        description="true: keep jobs in the queue that could run only on nodes that are down; false: leave "
        "such jobs out of the queue until the nodes come back",
    )
    pools: dict[str, PoolConfig] = pydantic.Field(
        default_factory=dict, description="properties of pools, by name of the pool"
    )
    emulation: EmulationConfig = EmulationConfig()
    energy: EnergyConfig = EnergyConfig()
    metrics: MetricsConfig = MetricsConfig()
    log: LogConfig = LogConfig()
    service: ServiceConfig = ServiceConfig()
    serve: ServeConfig = ServeConfig()
    letters: LettersConfig = LettersConfig()
    standby: StandbyConfig = StandbyConfig()

    #: Where it was read from, for messages; not a key of the file.
    _source: str = pydantic.PrivateAttr(_NOWHERE)
    _text: str = pydantic.PrivateAttr("")
    _adapters: Adapters = pydantic.PrivateAttr(default_factory=lambda: INSTALLED)

    @pydantic.model_validator(mode="after")
    def _one_or_several_clusters(self) -> Config:
        if self.clusters and "cluster" in self.model_fields_set:
            raise ValueError("either cluster (for a single cluster) or clusters (for several), found both")
        for key in ("links", "datasets"):
            if getattr(self, key) and not self.clusters:
                raise ValueError(f"{key} only beside clusters, found no clusters")
        emulated = {name for name, one in self.clusters.items() if one.emulation is not None}
        if emulated and (without := [name for name in self.clusters if name not in emulated]):
            raise ValueError(
                f"clusters: emulation for each cluster or for none, found none for {', '.join(without)}"
            )
        return self

    @property
    def source(self) -> str:
        return self._source

    @property
    def text(self) -> str:
        """The file's text, as the journal keeps it."""
        return self._text

    @property
    def adapters(self) -> Adapters:
        """The adapters that it can name."""
        return self._adapters

    def _use(self, adapters: Adapters) -> None:
        """These are the adapters that it can name; :class:`UserError` if it names another."""
        self._adapters = adapters
        for where, cluster in self.clusters_by_place():
            kind = adapters.get(cluster.adapter, f"{where}.adapter")
            if cluster.options and getattr(kind, "Options", None) is None:
                raise UserError(
                    f"{where}.options: adapter {cluster.adapter!r} has no options, found "
                    f"{', '.join(cluster.options)}"
                )

    @property
    def has_standby(self) -> bool:
        """Whether it says that there are two daemons, of which one leads."""
        return "standby" in self.model_fields_set

    def names_traces(self) -> bool:
        """Whether it says which jobs a dry run runs."""
        several = (one.emulation for one in self.clusters.values())
        return any(one is not None and one.trace is not None for one in (self.emulation, *several))

    @property
    def tiers(self) -> dict[str, int]:
        """The tiers of pools that the configuration says, by name."""
        return {name: pool.tier for name, pool in self.pools.items() if pool.tier is not None}

    def with_energy(self, cluster: ClusterDescription, profile: str | None = None) -> ClusterDescription:
        """The cluster with the configured energy profile, or ``profile`` instead.

        Raises :class:`UserError` if there is no such profile, or it is wrong.
        """
        name = profile if profile is not None else self.energy.profile
        if name is None:
            return cluster
        from headway.energy.profiles import load_profile, with_energy

        beside = None if profile is not None else self._beside()
        where = "--energy" if profile is not None else f"{self._source}: energy.profile"
        loaded = load_profile(name, where, beside)
        return with_energy(cluster, loaded, self.energy.classes, f"{self._source}: energy.classes")

    def sites(self, pools: Mapping[str, Sequence[str]]) -> Sites | None:
        """The sites that are configured; None if there is nothing to say of them beside their pools.

        ``pools``: the names of each cluster's pools. Raises :class:`UserError` for names that do not fit.
        """
        configured = {name: cluster.site for name, cluster in self.clusters.items()}
        if not (self.links or self.datasets or any(configured.values())):
            return None
        there = {name: pools.get(name, ()) for name in self.clusters}
        return described_sites(there, configured, self.links, self.datasets, self._source)

    def intakes(self) -> dict[str, Intake]:
        """How jobs of other clusters are submitted at each cluster."""
        return {
            name: cluster.site.intake() for name, cluster in self.clusters.items() if cluster.site is not None
        }

    def emulated_clusters(self) -> ClusterDescription | None:
        """What stands for several clusters in a dry run, each with its own emulation; None: nothing does.

        Raises :class:`UserError` for a cluster without a size, and for one that several cannot have.
        """
        found: dict[str, ClusterDescription] = {}
        for name, cluster in self.clusters.items():
            where = f"{self._source}: clusters.{name}.emulation"
            if cluster.emulation is None:
                return None
            if cluster.emulation.torus is not None:
                raise UserError(f"{where}.torus: expected processors or nodes for one of several clusters")
            described = cluster.emulation.description()
            if described is None:
                raise UserError(f"{where}: expected processors or nodes, found neither")
            found[name] = described
        if not found:
            return None
        pools = {name: [f"{name}:{pool.name}" for pool in one.pools] for name, one in found.items()}
        configured = {name: cluster.site for name, cluster in self.clusters.items()}
        return as_one(found, described_sites(pools, configured, self.links, self.datasets, self._source))

    def clusters_by_place(self) -> Sequence[tuple[str, ClusterConfig]]:
        """Each configured cluster, and where it stands: file and key."""
        if not self.clusters:
            return [(f"{self._source}: cluster", self.cluster)]
        return [(f"{self._source}: clusters.{name}", cluster) for name, cluster in self.clusters.items()]

    def capabilities(
        self, cluster: ClusterDescription, gives: frozenset[type[Decision]] = frozenset()
    ) -> frozenset[type[Decision]]:
        """What the configured adapters can carry out on ``cluster``, as far as that can be said without
        asking them; of several clusters, what one of them can. ``gives``: what they can with the help of
        plugins, if they can use it."""
        found: frozenset[type[Decision]] = frozenset()
        for where, one in self.clusters_by_place():
            kind = self._adapters.get(one.adapter, f"{where}.adapter")
            found |= kind.capable_of(cluster, one.options) | (gives if kind.moves else frozenset())
        return found | copying_capabilities(self.live_transfers())

    def live_transfers(self, *, read_only: bool = False) -> Transfers:
        """How datasets of real clusters are copied. ``read_only``: nothing may be changed."""
        sites = {name: cluster.site for name, cluster in self.clusters.items()}
        return self.transfers.described(sites, read_only=read_only)

    def keeps_suspended(self) -> str | None:
        """Where the configuration names a cluster that keeps the processors of suspended jobs for them;
        None if it names none."""
        for where, one in self.clusters_by_place():
            if not self._adapters.get(one.adapter, f"{where}.adapter").suspended_lend:
                return f"{where}: adapter: {one.adapter}"
        return None

    def trace_path(self) -> Path:
        """The trace of ``emulation.trace``, which is relative to the configuration file, or a sample."""
        from headway.workload.samples import located

        return located(self.beside(self.emulation.trace or ""))

    def beside(self, path: str) -> Path:
        """A path that is relative to the configuration file."""
        return (self._beside() or Path()) / path

    def _beside(self) -> Path | None:
        """The folder of the configuration file; None if it was read from no file."""
        return None if self._source == _NOWHERE else Path(self._source).parent

    def socket_path(self) -> Path | None:
        """The daemon's socket; None if there is none: switched off, or a journal that is no file."""
        if not self.service.enabled:
            return None
        if self.service.socket is not None:
            return Path(self.service.socket)
        return None if "://" in self.journal else Path(f"{self.journal}.sock")

    def tokens_path(self) -> Path | None:
        """The file of own tokens of the interface over HTTP; None where the journal is no file and the key
        is not set."""
        if self.serve.tokens is not None:
            return Path(self.serve.tokens)
        return None if "://" in self.journal else Path(f"{self.journal}.tokens")

    def plugin_configs(self) -> list[PluginConfig]:
        """The enabled plugins with their options, in order."""
        found = []
        beside = self._beside()
        for at, entry in enumerate(self.plugins):
            where = f"{self._source}: plugins[{at}]"
            if isinstance(entry, str):
                found.append(PluginConfig(entry, {}, where, beside))
                continue
            ((name, options),) = entry.items()
            found.append(PluginConfig(name, options or {}, where, beside))
        return found


def load_config(path: str | Path, adapters: Adapters | None = INSTALLED) -> Config:
    """Read and validate a configuration file; :class:`UserError` if it is missing or wrong.

    ``adapters``: which it can name; None: for a command that only speaks to the daemon, which has read the
    same file and knows its adapters.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: expected a configuration file, found no such file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{error.object[error.start]:02x}"
        raise UserError(f"{path}, line {line}: expected a text file in UTF-8, found {found}") from error
    except OSError as error:
        raise UserError(f"{path}: the configuration cannot be read: {error.strerror or error}") from error
    return parse_config(text, str(path), adapters)


def parse_config(text: str, source: str = _NOWHERE, adapters: Adapters | None = INSTALLED) -> Config:
    """A configuration from its text, which can name ``adapters`` (None: they are not looked at); ``source``
    leads error messages."""
    data = parse_yaml(text, source)
    if data is None:
        data = {}
    if not isinstance(data, dict):
        found = "a list" if isinstance(data, list) else repr(data)
        raise UserError(f"{source}: expected keys such as mode, cluster, plugins; found {found}")
    try:
        config = Config.model_validate(data)
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, source, Config)) from error
    config._source, config._text = source, text
    if adapters is not None:
        config._use(adapters)
    return config
