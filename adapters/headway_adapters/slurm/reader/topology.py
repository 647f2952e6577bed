"""How nodes are connected, and on how few switches jobs want to be: ``scontrol show topology``, ``squeue``.

Slurm 22.05 leaves ``--switches`` out of its JSON, so that pending jobs are listed once more, as text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from headway.errors import Failure
from headway.model import SwitchDescription
from headway_adapters.slurm import values
from headway_adapters.slurm.reader.documents import JobRecord, node_names, records

#: What :func:`read_bounds` reads.
BOUNDS = ("squeue", "-h", "-a", "-t", "PD", "-O", "JobID:.24,ReqSwitch:.16,Wait4Switch:.24")
#: The values of ``TopologyPlugin`` that are told of below.
KINDS = ("topology/tree", "topology/block")

#: Number of a job's record -> most leaf switches, and seconds that it waits for so few (None: without end).
Bounds = Mapping[int, tuple[int, float | None]]


def read_topology(text: str, notes: set[str]) -> tuple[SwitchDescription, ...]:
    """``scontrol show topology``: switches (topology/tree), or blocks (topology/block) as leaf switches."""
    found: list[SwitchDescription] = []
    for key in ("SwitchName", "BlockName"):
        for record in records(text, key):
            try:
                switches = node_names(record.get("Switches", ""))
                # A switch above others is shown with the nodes of all of them.
                nodes = () if switches else node_names(record.get("Nodes", ""))
            except Failure as error:
                notes.add(f"scontrol show topology: {key} {record[key]!r} is left out: {error}")
            else:
                found.append(SwitchDescription(record[key], nodes, switches))
    return tuple(found)


def read_bounds(text: str) -> Bounds:
    """The pending jobs that were submitted with ``--switches``, of :data:`BOUNDS`."""
    found: dict[int, tuple[int, float | None]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]):
            found[int(words[0])] = int(words[1]), _finite(values.minutes_text(words[2]))
    return found


def bound_of(record: JobRecord, listed: Bounds) -> tuple[int, float | None]:
    """A job's ``--switches``, where the JSON has it or it is ``listed``: most leaf switches (0: any number)
    and seconds."""
    if count := values.integer(record.minimum_switches):
        return count, _finite(values.number(record.maximum_switch_wait_time))
    return listed.get(values.integer(record.job_id), (0, None))


def _finite(seconds: float | None) -> float | None:
    return None if seconds is None or math.isinf(seconds) else float(seconds)
