"""Nodes, from ``scontrol show nodes --json``, 22.05's ``sinfo --json``, or as text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from headway.errors import Failure
from headway.model import NodeDescription
from headway_adapters.slurm import values
from headway_adapters.slurm.reader.documents import MIB, decode, records
from headway_adapters.slurm.reader.gres import gres
from headway_adapters.slurm.reader.site import Site

_USABLE_NODE_STATES = frozenset({"IDLE", "MIXED", "ALLOCATED"})
_NODE_STATES = _USABLE_NODE_STATES | {"DOWN", "ERROR", "FUTURE", "UNKNOWN", "INVALID"}
#: Flags under which a node takes no new jobs, with the reason that we give.
_BAD_NODE_FLAGS: dict[str, str] = {
    "DRAIN": "drained",
    "DRAINED": "drained",
    "DRAINING": "draining",
    "FAIL": "failing",
    "FAILING": "failing",
    "NOT_RESPONDING": "not responding",
    "NO_RESPOND": "not responding",
    "POWERING_DOWN": "powering down",
    "POWERED_DOWN": "powered down",
    "POWER_DOWN": "powering down",
    "POWERING_UP": "powering up",
    "POWER_UP": "powering up",
    "MAINT": "in maintenance",
    "MAINTENANCE": "in maintenance",
    "REBOOT": "rebooting",
    "REBOOT_REQUESTED": "rebooting",
    "REBOOT_ISSUED": "rebooting",
    "BLOCKED": "blocked",
    "INVALID_REG": "registered with a wrong configuration",
    "UNDRAIN": "",
}
_GOOD_NODE_FLAGS = frozenset(
    {"COMPLETING", "RESERVED", "PLANNED", "CLOUD", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "RES", "NET",
     "EXTERNAL", "UNDRAIN", "RESUME"}
)  # fmt: skip
#: Where several stand together the first of these counts: what was asked for comes before what is.
_POWER: dict[str, str] = {
    "POWERING_UP": "waking",
    "POWER_UP": "waking",
    "POWERING_DOWN": "falling asleep",
    "POWER_DOWN": "falling asleep",
    "POWERED_DOWN": "asleep",
}
#: What a sleeping node is too.
_SILENT = frozenset({"NOT_RESPONDING", "NO_RESPOND"})


@dataclass
class Nodes:
    """All nodes of a listing."""

    nodes: dict[str, NodeDescription] = field(default_factory=dict)
    power: dict[str, str] = field(default_factory=dict)
    #: Node -> hardware threads a core.
    threads: dict[str, int] = field(default_factory=dict)


def read_nodes(data: bytes, site: Site, notes: set[str]) -> Nodes:
    """``scontrol show nodes --json``, or 22.05's ``sinfo --json``."""
    listing = decode(data, "the listing of nodes", notes)
    if listing.nodes is None:
        raise Failure("the listing of nodes holds no nodes")
    found = Nodes()
    for record in listing.nodes:
        name = record.get("name")
        if not isinstance(name, str) or not name:
            notes.add("a node without a name was left out")
            continue
        try:
            _read_node(found, site, notes, name, record)
        except Exception as error:
            # Whatever is odd about a node is no reason to know nothing of the others.
            notes.add(f"node {name} cannot be read and is left out: {error}")
    return found


def _read_node(found: Nodes, site: Site, notes: set[str], name: str, record: dict[str, Any]) -> None:
    states = values.words(record.get("state")) + values.words(record.get("state_flags"))
    whole = values.integer(record.get("cpus"))
    memory = values.integer(record.get("real_memory")) - values.integer(record.get("specialized_memory"))
    _put_node(
        found, site, notes, name=name, states=states,
        processors=values.integer(record.get("effective_cpus"), whole) or whole,
        memory=memory * MIB, gres_text=values.text(record.get("gres")),
        features=values.names(record.get("active_features", record.get("features"))),
        pools=values.names(record.get("partitions")), reason=values.text(record.get("reason")),
        threads=values.integer(record.get("threads"), 1),
        disk=values.integer(record.get("temporary_disk")) * MIB,
        layout=tuple(values.integer(record.get(key)) for key in ("sockets", "cores")),
    )  # fmt: skip


def read_nodes_text(text: str, site: Site, notes: set[str]) -> Nodes:
    """``scontrol -o show nodes``: for a Slurm that writes no JSON of its nodes."""
    found = Nodes()
    for record in records(text, "NodeName"):
        whole = values.integer(record.get("CPUTot"))
        memory = values.integer(record.get("RealMemory")) - values.integer(record.get("MemSpecLimit"))
        _put_node(
            found, site, notes, name=record["NodeName"],
            states=values.words(record.get("State", "").replace("*", "+NOT_RESPONDING")),
            processors=values.integer(record.get("CPUEfctv"), whole), memory=memory * MIB,
            gres_text=values.text(record.get("Gres")), features=values.names(record.get("ActiveFeatures")),
            pools=values.names(record.get("Partitions")),
            reason=re.sub(r" \[[^]]*\]$", "", values.text(record.get("Reason"))),
            threads=values.integer(record.get("ThreadsPerCore"), 1),
            disk=values.integer(record.get("TmpDisk")) * MIB,
            layout=tuple(values.integer(record.get(key)) for key in ("Sockets", "CoresPerSocket")),
        )  # fmt: skip
    return found


def _put_node(
    found: Nodes, site: Site, notes: set[str], *, name: str, states: tuple[str, ...], processors: int,
    memory: int, gres_text: str, features: tuple[str, ...], pools: tuple[str, ...], reason: str, threads: int,
    disk: int, layout: tuple[int, ...],
) -> None:  # fmt: skip
    bad: list[str] = []
    power = next((meaning for word, meaning in _POWER.items() if word in states), None)
    if power is not None:
        found.power[name] = power
    for word in states:
        if site.power and power is not None and (word in _POWER or word in _SILENT):
            continue
        if word in _USABLE_NODE_STATES or word in _GOOD_NODE_FLAGS:
            pass
        elif word in _NODE_STATES:
            bad.append(word.lower())
        elif word in _BAD_NODE_FLAGS:
            bad.append(_BAD_NODE_FLAGS[word])
        else:
            notes.add(f"unknown node state {word!r} is taken as harmless")
    if not any(word in _NODE_STATES for word in states):
        bad.append("in no known state")
    why = ", ".join(dict.fromkeys(word for word in bad if word))
    if why and reason:
        why = f"{why}: {reason}"
    found.threads[name] = max(threads, 1)
    found.nodes[name] = NodeDescription(
        name=name,
        processors=processors,
        memory=max(memory, 0) if site.memory_managed else 0,
        gres=gres(gres_text) if gres_text else (),
        features=features,
        pools=pools,
        available=not bad,
        reason=why,
        sizes=_sizes(0 if site.memory_managed else memory, disk, *layout),
    )


def _sizes(memory: int, disk: int, sockets: int, cores: int) -> tuple[tuple[str, int], ...]:
    """What Slurm compares requests with, and gives nothing of out; amounts of memory and disk are bytes."""
    sizes = (("memory", memory), ("disk", disk), ("sockets", sockets), ("cores of a socket", cores))
    return tuple((name, amount) for name, amount in sizes if amount > 0)
