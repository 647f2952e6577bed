"""Where a job runs: the processors that it has on each of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.model import Placement
from headway_adapters.slurm import values
from headway_adapters.slurm.reader.documents import JobRecord, node_names


def placement_of(record: JobRecord, threads: Mapping[str, int]) -> Placement:
    """The processors that a job has on each of its nodes. ``threads``: node -> hardware threads a core.

    22.05 does not fill ``cpus_used``; the map of allocated cores is right, and a core counts
    as its hardware threads where the job's total says so. Later versions state the count.
    """
    listed = values.text(record.nodes)
    if not listed:
        return ()
    names = node_names(listed)
    total = values.integer(record.cpus)
    counts: dict[str, int] = {}
    cores: dict[str, int] = {}
    resources = record.job_resources if isinstance(record.job_resources, dict) else {}
    within = resources.get("nodes")
    entries = resources.get("allocated_nodes")
    if not isinstance(entries, list):
        entries = within.get("allocation") if isinstance(within, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        name = entry.get("nodename", entry.get("name"))
        if not isinstance(name, str):
            continue
        cpus = entry.get("cpus")
        if isinstance(cpus, dict) and values.integer(cpus.get("count")):
            counts[name] = values.integer(cpus.get("count"))
        cores[name] = _allocated_cores(entry.get("sockets"))
    if all(counts.get(name) for name in names):
        return tuple((name, counts[name]) for name in names)
    if all(cores.get(name) for name in names):
        plain = {name: cores[name] for name in names}
        if sum(plain.values()) == total:
            return tuple(plain.items())
        threaded = {name: n * threads.get(name, 1) for name, n in plain.items()}
        if sum(threaded.values()) == total or not total:
            return tuple(threaded.items())
        return _share(total, names, threaded)
    return _share(total, names, {name: 1 for name in names})


def _allocated_cores(sockets: Any) -> int:
    """Cores marked as allocated, in 22.05's mapping or the later lists."""
    count = 0
    if isinstance(sockets, dict):
        sockets = list(sockets.values())
    for socket in sockets if isinstance(sockets, list) else ():
        cores = socket.get("cores") if isinstance(socket, dict) else None
        if isinstance(cores, dict):
            count += sum("ALLOCATED" in values.words(state) for state in cores.values())
        elif isinstance(cores, list):
            for core in cores:
                states = core.get("status") if isinstance(core, dict) else core
                count += "ALLOCATED" in values.words(states)
    return count


def _share(total: int, names: tuple[str, ...], weights: Mapping[str, int]) -> Placement:
    """``total`` processors over the nodes in proportion to ``weights``, one at least on each."""
    total = max(total, len(names))
    whole = sum(weights.values())
    shares = {name: max(1, total * weights[name] // whole) for name in names}
    left = total - sum(shares.values())
    for name in names:
        if left == 0:
            break
        step = 1 if left > 0 else (-1 if shares[name] > 1 else 0)
        shares[name] += step
        left -= step
    return tuple(shares.items())
