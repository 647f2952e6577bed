"""What the jobs themselves write down: when each of their runs began and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: The program of every job: ``job.sh DIRECTORY NAME SECONDS EXIT_CODE``. Each job, and each element of an
#: array, appends to a file of its own. SIGTERM, which batch systems send first, is written down, too.
SCRIPT = """#!/bin/sh
element=${SLURM_ARRAY_TASK_ID:-${PBS_ARRAY_INDEX:-${LSB_JOBINDEX:-0}}}
key=$2
[ "$element" = 0 ] || key=$2.$element
where="${SLURM_JOB_NODELIST:-}|${SLURM_JOB_CPUS_PER_NODE:-}|${LSB_MCPU_HOSTS:-}"
# A signal to all of the job ends date, too.
say() { at=; until [ -n "$at" ]; do at=$(date +%s.%N); done; echo "$1 $$ $at $where" >> "$file"; }
file=$1/$key
trap 'say killed; kill "$sleeper" 2>/dev/null; exit 143' TERM INT
say begin
sleep "$3" & sleeper=$!
# A signal may reach what it waits for before itself.
wait "$sleeper" || { say killed; exit 143; }
say end
exit "$4"
"""


@dataclass(frozen=True)
class Run:
    """One run of a job; times are seconds since the epoch.

    ``end`` None: it was killed before it could write that down. ``how``: "end", "killed" or "".
    ``where``: what the batch system told it about its nodes.
    """

    key: str
    begin: float
    end: float | None
    how: str
    where: str


def prepare(directory: Path) -> Path:
    """Make the directory that all users' jobs write into; the path of the program."""
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    script = directory.with_name("job.sh")
    script.write_text(SCRIPT)
    script.chmod(0o755)
    return script


def began(directory: Path, key: str) -> bool:
    return (directory / key).exists()


def runs(directory: Path) -> Mapping[str, list[Run]]:
    """All runs by job, in the order of their beginnings."""
    found: dict[str, list[Run]] = {}
    for path in sorted(directory.iterdir()):
        begun: dict[str, tuple[float, str]] = {}
        done: dict[str, tuple[float, str]] = {}
        order: list[str] = []
        for line in path.read_text().splitlines():
            what, process, at, *where = line.split(" ", 3)
            if what == "begin":
                # Process numbers come again after days only, but a node's own namespace may be new.
                process = f"{process}#{len(order)}"
                order.append(process)
                begun[process] = (float(at), where[0] if where else "")
            else:
                last = next(
                    (p for p in reversed(order) if p.split("#")[0] == process and p not in done), None
                )
                if last is not None:
                    done[last] = (float(at), what)
        found[path.name] = sorted(
            (Run(path.name, begun[p][0], *done.get(p, (None, "")), begun[p][1]) for p in order),
            key=lambda run: run.begin,
        )
    return found
