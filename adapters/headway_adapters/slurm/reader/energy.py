"""What Slurm measured: watts of nodes, joules of jobs."""

from __future__ import annotations

from headway_adapters.slurm.reader.documents import records


def read_watts(text: str) -> dict[str, float]:
    """Node -> watts in ``scontrol -o show nodes``, of nodes that something was measured on.

    Slurm shows 0 for a node that it has no measurement of.
    """
    shown = {r["NodeName"]: r.get("CurrentWatts", "") for r in records(text, "NodeName")}
    return {name: float(watts) for name, watts in shown.items() if watts.isdecimal() and int(watts) > 0}


def read_energies(text: str) -> dict[str, float]:
    """Job -> joules in ``sacct -n -P -o JobID,ConsumedEnergyRaw``; without jobs of which none are known.

    A job's energy is that of its steps, whose lines are called ``JOB.STEP``.
    """
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, joules = line.partition("|")
        job_id, step, _ = name.partition(".")
        # "Unknown" is the largest numbers but one.
        if step and joules.strip().isdecimal() and int(joules) < 1 << 62:
            found[job_id] = found.get(job_id, 0.0) + float(joules)
    return found
