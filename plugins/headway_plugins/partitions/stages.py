"""What the stages of partitions' lives took in a run, as Table 1 of Y. Aridor and others, JSSPP 2005, has it.

From the steps of each partition: *prepare* (stages 1 to 3: promised until its boot is ordered, the wait for
a scheduler that is held up included), *boot* (4), *load* (5 to 8 without the job's run: from a ready
partition to the first instruction) and *halt* (9 and 10). Boots that failed are in none of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway.results import PartitionStep

#: By the state in which a stage begins and the state in which it ends.
STAGES = {
    ("promised", "configuring"): "prepare",
    ("configuring", "ready"): "boot",
    ("loading", "busy"): "load",
    ("deallocating", "free"): "halt",
}
#: In the order of a partition's life.
NAMES = tuple(STAGES.values())


def stage_seconds(steps: Iterable[PartitionStep], unit: int) -> dict[int, dict[str, float]]:
    """The mean seconds of each stage by the number of compute nodes, ``unit`` of them a midplane; stages that
    no partition went through are left out."""
    last: dict[str, PartitionStep] = {}
    sums: dict[int, dict[str, list[float]]] = {}
    for step in steps:
        before = last.get(step.partition)
        last[step.partition] = step
        name = STAGES.get((before.state, step.state)) if before is not None else None
        if name is not None and before is not None:
            sums.setdefault(len(step.nodes) * unit, {}).setdefault(name, []).append(step.time - before.time)
    return {
        size: {name: sum(found) / len(found) for name in NAMES if (found := sums[size].get(name))}
        for size in sorted(sums)
    }
