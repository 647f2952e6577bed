"""The minutes of resources that accounts and users may use in all, and that running jobs may still use.

The columns ``GrpTRESMins`` and ``TRESRunMins`` of ``sshare -l`` (slurm.schedmd.com/sshare.html): for each
node of the tree of accounts the limit as the batch system writes it, and the sum over the jobs that run there
and below of what they have times the seconds until their limits, as often as their QOS say, in whole minutes.
A suspended job does not run.

Slurm brings its own sums up to date when jobs begin and end and once in each ``PriorityCalcPeriod``; these
are of the moment that is asked about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from headway.model import Request
from headway.state import Job, Status
from headway_plugins.accounts.amounts import amount
from headway_plugins.accounts.tree import Floats
from headway_plugins.priority.counting_usage import UsageCount

#: What Slurm counts by default.
RESOURCES = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")


def minutes_left(
    plugin: UsageCount, jobs: Iterable[Job], now: float
) -> tuple[Mapping[str, str], dict[str, Floats]]:
    """The limits by ``account`` and ``account:user``; and by resource what running jobs may still use at
    ``now`` (absolute seconds), in units x seconds, at and below each node of the tree."""
    policy, tree = plugin.policy, plugin.tree
    names = (policy.resources if policy is not None else ()) or RESOURCES
    running = [job for job in jobs if job.status is Status.RUNNING]
    nodes = plugin.nodes_of(running)
    left = [_left(job, now) * plugin.factor(job.description) for job in running]
    # Jobs of one size have the same of everything.
    known: dict[tuple[Request, int, int], tuple[float, ...]] = {}
    amounts = np.zeros((len(names), len(running)))
    for at, job in enumerate(running):
        key = (job.request, job.processors, len(job.placement))
        has = known.get(key)
        if has is None:
            has = known[key] = tuple(_has(plugin, job, name) for name in names)
        amounts[:, at] = has
    amounts *= np.array(left)
    shape = tree.shape()
    whose = np.array(nodes, np.intp)
    sums = [shape.sums(np.bincount(whose, row, len(tree)).astype(np.float64)) for row in amounts]
    limits = policy.minutes if policy is not None else {}
    return limits, dict(zip(names, sums, strict=True))


def _left(job: Job, now: float) -> float:
    """Whole seconds until the job's limit."""
    begun = now if job.start_time is None else job.start_time + job.paused
    return float(math.ceil(max(begun + job.estimate - now, 0.0)))


def _has(plugin: UsageCount, job: Job, name: str) -> float:
    """How much the job has of what Slurm calls ``name``: memory in MiB."""
    if name == "cpu":
        return job.processors
    if name == "node":
        return len(job.placement) or max(job.request.nodes, 1)
    if name == "mem":
        return 1024.0 * amount(job.request, "memory", job.processors)
    if name == "billing":
        return plugin.billed(job.description, job.processors)
    generic = name.removeprefix("gres/")
    return amount(job.request, generic, job.processors) if generic != name else 0.0
