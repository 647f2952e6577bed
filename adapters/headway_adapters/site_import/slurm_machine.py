"""Slurm's partitions, nodes and licences: what the adapter drives, and the machine of a dry run.

Decisions on what is left open:

- In a dry run all nodes are in one pool, the default partition's, because a trace knows no partitions.
- Nodes in the state FUTURE are none yet, for Slurm too. Nodes that are DOWN or DRAIN in the file are there: a
  dry run is of the machine, not of a day on which some of it was broken.
- Processors that ``CoreSpecCount`` or ``CpuSpecList`` keep for the system are no job's (``CPUEfctv``); memory
  less ``MemSpecLimit`` is what jobs have. Where ``SelectTypeParameters`` does not name memory, Slurm does not
  count it, and neither does a dry run.
- Without ``SelectType`` nodes are shared, as from Slurm 23.11 on, and as nearly all files say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headway_adapters.site_import.found import Imported, Line, Remark, shown, whole
from headway_adapters.site_import.slurm_files import Record, SlurmFiles, as_written
from headway_adapters.site_import.slurm_overlaps import tell_of_overlaps
from headway_adapters.slurm import hostlist

_GRES = re.compile(r"([^:]+)(?::([^:0-9][^:]*))??(:no_consume)?(?::(\d+)([KMGTP]?))?", re.IGNORECASE)
#: Keys of partitions that have no counterpart, where they say something else than these; and why.
_LEFT_OF_PARTITIONS = {
    "qos": (("N/A",), "the limits of a partition's QOS are not carried over"),
    "gracetime": (("0", "00:00:00"), "grace time is not carried over"),
    "maxcpuspernode": (("UNLIMITED",), "limits per node are not carried over"),
    "maxcpuspersocket": (("UNLIMITED",), "limits per socket are not carried over"),
    "maxmempernode": (("UNLIMITED", "0"), "limits per node are not carried over"),
    "maxmempercpu": (("UNLIMITED", "0"), "limits per processor are not carried over"),
    "minnodes": (("0", "1"), "smallest sizes are not carried over"),
    "lln": (("NO",), "nodes are not chosen by load"),
    "exclusiveuser": (("NO",), "in headway, users share nodes"),
    "exclusivetopo": (("NO",), "in headway, jobs share blocks"),
    "overtimelimit": (("NONE", "0", "NO"), "jobs are expected to end at their limits"),
    "reqresv": (("NO",), "headway does not keep out jobs without a reservation"),
    "state": (("UP",), "headway would start jobs there; leave the partition out of "
                       "cluster.options.partitions"),
    "alternate": (("",), "jobs are not sent to another partition"),
}  # fmt: skip
_NONE = ("", "(NULL)", "NONE", "N/A")


def carry_machine(read: SlurmFiles, found: Imported) -> None:
    """Write down partitions, nodes and licences."""
    names = [record["partitionname"] for record, _ in read.partitions]
    found.options["partitions"] = names or ["batch"]
    if not names:
        found.remarks.append(_no_partitions(read))
    default = next((one for one in read.partitions if one[0].get("default", "").upper() == "YES"), None)
    if default is None and read.partitions:
        default = read.partitions[0]
    _tell_of_partitions(read, found)
    tell_of_overlaps(read, default, found)
    _nodes(read, default[0]["partitionname"] if default else "batch", found)
    _whole_nodes(read, default, found)
    licences = _licences(read, found)
    if licences:
        found.emulation["licences"] = licences


def _no_partitions(read: SlurmFiles) -> Remark:
    lines = [line for _, line in (*read.config.values(), *read.associations, *read.qos)]
    line = lines[0] if lines else read.first or Line("slurm.conf", 1, "")
    first = Line(line.file, 1, "")
    return Remark(
        first, "no partition was found (PartitionName=...): put yours into cluster.options.partitions"
    )


def _tell_of_partitions(read: SlurmFiles, found: Imported) -> None:
    """Remark what partitions say and the configuration does not."""
    for record, line in read.partitions:
        for key, (nothing, why) in _LEFT_OF_PARTITIONS.items():
            text = record.get(key, "")
            if text.upper() not in (*_NONE, *nothing):
                found.leave(line, f"{as_written(key, line)}={text}: {why}")
        if re.match(r"(FORCE|YES)\b", record.get("oversubscribe", record.get("shared", "")), re.IGNORECASE):
            found.leave(line, "OverSubscribe: in headway, jobs do not share processors")
    tiers = {record["partitionname"]: record.get("prioritytier", "1") for record, _ in read.partitions}
    if len(set(tiers.values())) > 1:
        line = next(line for record, line in read.partitions if "prioritytier" in record)
        said = ", ".join(f"{name}: {tier}" for name, tier in tiers.items())
        found.leave(
            line,
            f"PriorityTier ({said}) counts on the cluster, among partitions that share nodes; a dry run has "
            "one partition",
        )


def _whole_nodes(read: SlurmFiles, default: Record | None, found: Imported) -> None:
    """Say whether each job has its nodes to itself."""
    linear = read.value("SelectType").lower() == "select/linear"
    exclusive = {
        record["partitionname"]: line
        for record, line in read.partitions
        if record.get("oversubscribe", record.get("shared", "")).upper() == "EXCLUSIVE"
    }
    if not found.emulation.get("nodes"):
        return
    if linear or (default is not None and default[0]["partitionname"] in exclusive):
        found.emulation["whole_nodes"] = True
        return
    for name, line in exclusive.items():
        found.leave(
            line,
            f"OverSubscribe=EXCLUSIVE: a dry run has the jobs of {name} in the default partition, which "
            "shares nodes",
        )


def _licences(read: SlurmFiles, found: Imported) -> dict[str, int]:
    licences = {}
    at = read.line("Licenses")
    for item in filter(None, read.value("Licenses").split(",")):
        name, _, count = re.sub(r"@[^:=]*", "", item.strip()).replace("=", ":").partition(":")
        number = whole(count or "1")
        if number is not None and name:
            licences[name] = number
        elif at is not None:
            found.broken(at, f"Licenses: expected NAME:COUNT, found {shown(item)}")
    return licences


# ---------------------------------------------------------------------- nodes


def _nodes(read: SlurmFiles, pool: str, found: Imported) -> None:
    """Equal nodes together."""
    kinds: list[dict[str, Any]] = []
    with_memory = _counts_memory(read)
    for record, line in read.nodes:
        kind = _node(record, line, with_memory, found)
        if kind is None:
            continue
        kind["pool"] = pool
        same = next((one for one in kinds if {**one, "count": 0} == {**kind, "count": 0}), None)
        if same is not None:
            same["count"] += kind["count"]
        else:
            kinds.append(kind)
    if kinds:
        found.emulation["nodes"] = kinds
    _tell_of_gres(read, found)


def _counts_memory(read: SlurmFiles) -> bool:
    """Whether Slurm gives memory out; without a word it does where nodes are shared."""
    parameters = read.value("SelectTypeParameters").upper()
    if not re.search(r"CR_\w", parameters) or parameters in ("NONE", "CR_LLN", "CR_ONE_TASK_PER_CORE"):
        return read.value("SelectType").lower() != "select/linear"
    return "MEMORY" in parameters


def _node(record: Mapping[str, str], line: Line, with_memory: bool, found: Imported) -> dict[str, Any] | None:
    """Equal nodes of a dry run; None if they are not described, or not there yet."""

    def amount(key: str, default: int = 1) -> int:
        text = record.get(key, "")
        if text and whole(text) is None:
            found.broken(line, f"{key}: expected a number, found {shown(text)}")
        return whole(text) or default

    try:
        count = len(hostlist.expand(record["nodename"]))
    except (ValueError, OverflowError) as error:
        found.broken(line, f"NodeName: expected a host list, found {shown(record['nodename'])} ({error})")
        return None
    state = record.get("state", "").upper()
    if "FUTURE" in state:
        return None
    if re.search(r"DOWN|DRAIN|FAIL", state):
        found.leave(line, f"State={record['state']}: a dry run has these nodes")
    threads = amount("threadspercore")
    processors = amount("cpus", 0) or amount("cputot", 0) or amount("procs", 0) or (
        amount("boards") * (amount("sockets", 0) or amount("socketsperboard")) * amount("corespersocket")
        * threads
    )  # fmt: skip
    processors -= _kept_processors(record, threads, line, found)
    if processors < 1:
        found.broken(line, "expected at least one processor for jobs, found none; the nodes are left out")
        return None
    kind: dict[str, Any] = {"count": count, "processors": processors}
    if with_memory and (memory := amount("realmemory", 0) - amount("memspeclimit", 0)) > 0:
        kind["memory"] = memory * 2**20
    if gres := _gres(record, line, found):
        kind["gres"] = gres
    listed = record.get("feature", record.get("features", record.get("availablefeatures", "")))
    if features := [one for one in listed.split(",") if one]:
        kind["features"] = features
    if record.get("weight", "1") != "1":
        found.leave(line, f"Weight={record['weight']}: nodes are not chosen by weight")
    return kind


def _kept_processors(record: Mapping[str, str], threads: int, line: Line, found: Imported) -> int:
    """The processors that only the system uses."""
    if listed := record.get("cpuspeclist", ""):
        numbers: set[int] = set()
        for item in listed.split(","):
            first, dash, last = item.partition("-")
            low, high = whole(first), whole(last if dash else first)
            if low is None or high is None or not low <= high < 100_000:
                found.broken(line, f"CpuSpecList: expected processors such as 0-1,4, found {shown(listed)}")
                return 0
            numbers.update(range(low, high + 1))
        return len(numbers)
    cores = record.get("corespeccount", "")
    if cores and whole(cores) is None:
        found.broken(line, f"CoreSpecCount: expected a number, found {shown(cores)}")
    return (whole(cores) or 0) * threads


def _gres(record: Mapping[str, str], line: Line, found: Imported) -> dict[str, int]:
    """Generic resources of a node, as ``NAME[:TYPE][:no_consume]:COUNT[KMGTP]``."""
    gres: dict[str, int] = {}
    for item in filter(None, re.sub(r"\([^)]*\)", "", record.get("gres", "")).split(",")):
        match = _GRES.fullmatch(item.strip())
        count = None if match is None else whole(match[4] or "1")
        if match is None or count is None:
            found.broken(line, f"Gres: expected NAME:COUNT, found {shown(item)}")
            continue
        count *= 1024 ** " KMGTP".index((match[5] or " ").upper())
        gres[match[1]] = gres.get(match[1], 0) + count
        if match[3]:
            found.leave(
                line, f"Gres={item.strip()}: a dry run does not know no_consume, so jobs consume the resource"
            )
    return gres


def _tell_of_gres(read: SlurmFiles, found: Imported) -> None:
    """Remark devices of gres.conf that no node has in slurm.conf, which Slurm does not know either."""
    of: dict[str, set[str]] = {}
    for record, _ in read.nodes:
        try:
            names = hostlist.expand(record["nodename"])
        except (ValueError, OverflowError):
            continue
        kinds = {item.strip().partition(":")[0] for item in record.get("gres", "").split(",")}
        for name in names:
            of.setdefault(name, set()).update(kinds)
    for record, line in read.gres:
        try:
            named = hostlist.expand(record["nodename"]) if "nodename" in record else list(of)
        except (ValueError, OverflowError):
            found.broken(line, f"NodeName: expected a host list, found {shown(record['nodename'])}")
            continue
        if of and not any(record["name"] in of.get(name, ()) for name in named):
            found.leave(
                line,
                f"Name={record['name']}: no node has it in slurm.conf (Gres=), so no node of the dry "
                "run has it",
            )
