"""Which pool each job of a trace goes to, by the partition (field 16) or queue (field 15) of its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np

from headway.errors import UserError
from headway.results import Refused
from headway.workload.cwf import cwf_jobs
from headway.workload.header import header_field
from headway.workload.jobs import TraceCommand, TraceJob
from headway.workload.trace import Column, Trace

_COLUMNS = {"partition": Column.PARTITION, "queue": Column.QUEUE}
#: The header's fields that give numbers their names; the format's own text also has the plural.
_FIELDS = {"partition": ("Partition", "Partitions"), "queue": ("Queue", "Queues")}


@dataclass(frozen=True)
class TracePools:
    """How the numbers of a trace stand for pools."""

    by: Literal["partition", "queue"] = "partition"
    #: A number, or the name that the trace's header gives it -> pool. Empty: numbers that the header names
    #: as pools are called.
    of: Mapping[int | str, str] = field(default_factory=dict)
    #: The pool of all other jobs; "": there must be none.
    others: str = ""
    #: Where that is configured, for messages.
    source: str = "trace_pools"


def emulated_jobs(
    trace: Trace,
    processors: int,
    sizes: Mapping[str, int],
    chosen: TracePools | None,
    *,
    limit: int | None = None,
) -> tuple[list[TraceJob], list[TraceCommand], list[Refused]]:
    """The jobs and commands of an emulation, as :func:`headway.workload.cwf_jobs`, each job in its pool.

    ``sizes``: the processors of each pool. Without ``chosen`` all jobs go to the first pool, jobs that are
    larger than ``processors`` are refused. Raises as :func:`jobs_in_pools`.
    """
    first = next(iter(sizes))
    if chosen is None:
        return cwf_jobs(trace, processors, limit=limit, pool=first)
    jobs, commands, refused = cwf_jobs(trace, max(sizes.values()), limit=limit, pool=first)
    jobs, larger = jobs_in_pools(trace, jobs, chosen, sizes)
    gone = {one.job_id for one in larger}
    return jobs, [command for command in commands if command.job_id not in gone], [*refused, *larger]


def jobs_in_pools(
    trace: Trace, jobs: Sequence[TraceJob], chosen: TracePools, sizes: Mapping[str, int]
) -> tuple[list[TraceJob], list[Refused]]:
    """The jobs, each sent to its pool, and the jobs that are larger than their pool.

    ``sizes``: the processors of each pool. Raises :class:`UserError` for a pool that there is not, and for
    a job whose number stands for none, with its line.
    """
    pool_of = _pools(trace, chosen, sizes)
    numbers = trace.records[:, _COLUMNS[chosen.by]].astype(np.int64)
    sent: list[TraceJob] = []
    refused: list[Refused] = []
    for one in jobs:
        pool = pool_of.get(int(numbers[one.row]), chosen.others)
        if not pool:
            raise UserError(_unknown(trace, one, int(numbers[one.row]), pool_of, chosen))
        size = one.job.request.processors
        if size > sizes[pool]:
            why = f"larger than the pool {pool} ({size} of {sizes[pool]} processors)"
            refused.append(Refused(one.job.id, why, int(trace.line_numbers[one.row])))
        else:
            sent.append(msgspec.structs.replace(one, job=msgspec.structs.replace(one.job, pool=pool)))
    return sent, refused


def _pools(trace: Trace, chosen: TracePools, sizes: Mapping[str, int]) -> dict[int, str]:
    """The pools by number."""
    names = trace.names(*_FIELDS[chosen.by])
    there = ", ".join(sizes)
    for pool in [*chosen.of.values(), *([chosen.others] if chosen.others else [])]:
        if pool not in sizes:
            raise UserError(f"{chosen.source}: expected one of the pools {there}, found {pool!r}")
    if not chosen.of:
        return {number: name for number, name in names.items() if name in sizes}
    number_of = {name: number for number, name in names.items()}
    found: dict[int, str] = {}
    for key, pool in chosen.of.items():
        number = key if isinstance(key, int) else number_of.get(key)
        if number is None:
            known = ", ".join(f"{number} {name}" for number, name in names.items()) or "none"
            raise UserError(
                f"{chosen.source}.of: expected a number, or a {chosen.by} that the header of "
                f"{trace.path} names ({known}), found {key!r}"
            )
        found[number] = pool
    return found


def _unknown(trace: Trace, job: TraceJob, number: int, pool_of: Mapping[int, str], chosen: TracePools) -> str:
    known = ", ".join(f"{number} ({pool})" for number, pool in sorted(pool_of.items())) or "none"
    return (
        f"{trace.path}:{trace.line_numbers[job.row]}: job {job.job.id}: expected a {chosen.by} that stands "
        f"for a pool: {known}; found {number}. Name its pool in {chosen.source}.of, or a pool for all other "
        f"jobs in {chosen.source}.others"
    )


def partition_header(header: Sequence[str], pools: Sequence[str]) -> list[str]:
    """A trace's header that names these pools as partitions 1, 2, ... and no others."""
    kept = [
        line
        for line in header
        if (named := header_field(line)) is None or named[0] not in _FIELDS["partition"]
    ]
    lines = [f"; Partition: {number} {name}" for number, name in enumerate(pools, start=1)]
    return [*kept, f"; Partitions: {len(pools)}", *lines]
