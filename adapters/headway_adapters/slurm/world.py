"""What is learned about a Slurm cluster once: its configuration, as far as it decides how it is driven."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headway.errors import UserError
from headway.model import SwitchDescription
from headway_adapters.polling.client import Unanswered
from headway_adapters.slurm import checks, reader
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions


@dataclass
class World:
    """What is learned about the cluster once."""

    name: str
    site: reader.Site
    nodes_as_json: Sequence[str] | None
    accounting: bool
    #: Slurm measures what nodes draw.
    measures: bool
    #: How long jobs that ended stay listed, seconds.
    remembers: float = 300.0
    #: Between two rounds of Slurm's backfill scheduler, seconds.
    backfill_interval: float = 30.0
    switches: tuple[SwitchDescription, ...] = ()
    #: Its JSON does not say on how few switches jobs want to be.
    lists_bounds: bool = False
    #: Bounds of partitions that do not hold for jobs of a QOS.
    lifted: tuple[tuple[str, str], ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)


def learn(client: SlurmClient, options: SlurmOptions, words: frozenset[str], notes: set[str]) -> World:
    """Ask Slurm. ``words``: attributes of jobs that users can say. ``notes``: gets what is odd.

    Raises :class:`headway.errors.Failure` when it does not answer, :class:`UserError` for options that do not
    fit it.
    """
    version, shown, listed = client.look(
        [("squeue", "--version"), ("scontrol", "show", "config"), ("scontrol", "-o", "show", "partition")]
    )
    config = reader.config(shown.text)
    partitions = reader.read_partitions(listed.text)
    if not config or not partitions:
        silent = shown if not config else listed
        said = silent.text.strip().splitlines()
        found = repr(said[0][:80]) if said else "nothing"
        raise Unanswered(f"{' '.join(silent.argv[:4])}: expected Slurm's listing, found {found}")
    _partitions_exist(options, partitions)
    storage = config.get("AccountingStorageType", "")
    accounting = options.accounting == "yes" or (
        options.accounting == "auto" and storage.endswith("slurmdbd")
    )
    as_json: Sequence[str] | None = ("sinfo", "--json", "-a")
    if checks.version_of(version.text) >= (23, 2):
        # From here on sinfo's JSON groups nodes instead of listing them.
        as_json = ("scontrol", "show", "nodes", "--json", "-a")
    switches = _switches(client, notes) if config.get("TopologyPlugin") in reader.KINDS else ()
    return World(
        name=config.get("ClusterName", "slurm"),
        site=_site(config, options, words),
        nodes_as_json=as_json,
        accounting=accounting,
        measures=config.get("AcctGatherEnergyType", "").rpartition("/")[2] not in ("", "none", "(null)"),
        remembers=_seconds_of(config.get("MinJobAge", "")),
        backfill_interval=reader.backfill_interval(config),
        switches=switches,
        lifted=_lifted(client, notes) if storage.endswith("slurmdbd") else (),
        lists_bounds=bool(switches) and checks.version_of(version.text) < (23, 2),
        config=config,
    )


def _partitions_exist(options: SlurmOptions, partitions: Iterable[str]) -> None:
    known = sorted(partitions)
    for key, wanted in (("partitions", options.partitions), ("background", options.background.values())):
        missing = [name for name in wanted if name not in known]
        if missing:
            raise UserError(
                f"cluster.options.{key}: Slurm has no partition {missing[0]!r}. "
                f"Known: {', '.join(known) or 'none'}."
            )


def _site(config: dict[str, str], options: SlurmOptions, words: frozenset[str]) -> reader.Site:
    """What the reader goes by."""
    parameters = config.get("SelectTypeParameters", "").upper()
    return reader.Site(
        managed=options.partitions,
        hold_marker=options.hold_marker,
        array_limit=options.array_limit,
        unlimited_walltime=options.unlimited_walltime,
        memory_managed="MEMORY" in parameters,
        whole_nodes=config.get("SelectType", "") == "select/linear",
        whole_cores="CR_CPU" not in parameters,
        power=options.power,
        backfills=reader.starts_heterogeneous(config),
        needs_qos="qos" in config.get("AccountingStorageEnforce", "").lower().split(","),
        behind={behind: front for front, behind in options.background.items()},
        words=words,
    )


def _lifted(client: SlurmClient, notes: set[str]) -> tuple[tuple[str, str], ...]:
    """Which bounds of partitions do not hold for which QOS; as far as the accounting says it."""
    (shown,) = client.run_many([reader.LIFTED])
    if not shown.ok:
        notes.add(f"the QOS that lift the bounds of partitions are not known: {shown.complaint()}")
    return reader.read_lifted(shown.text) if shown.ok else ()


def _switches(client: SlurmClient, notes: set[str]) -> tuple[SwitchDescription, ...]:
    """How nodes are connected; nothing where Slurm does not say it."""
    (shown,) = client.run_many([("scontrol", "show", "topology")])
    found = reader.read_topology(shown.text, notes) if shown.ok else ()
    if not found:
        notes.add("scontrol show topology: expected switches, found none; jobs' --switches are ignored")
    return found


def _seconds_of(text: str) -> float:
    """``300 sec`` -> 300.0; 0.0 for anything else."""
    amount = text.partition(" ")[0]
    return float(amount) if amount.isascii() and amount.isdecimal() else 0.0
