"""The minutes of resources that accounts and users may use in all, and that running jobs may still use.

The columns ``GrpTRESMins`` and ``TRESRunMins`` of ``sshare -l`` (slurm.schedmd.com/sshare.html): for each
node of the tree of accounts the limit as the batch system writes it, and the sum over the jobs that run there
and below of what they have times the seconds until their limits, as often as their QOS say, in whole minutes.
A suspended job does not run.

Slurm brings its own sums up to date when jobs begin and end and once in each ``PriorityCalcPeriod``; these
are of the moment that is asked about.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headway.state import Job, Status
from headway_plugins.accounts.amounts import amount
from headway_plugins.priority.fair_share import FairShare

MINUTES = ("GrpTRESMins", "TRESRunMins")
#: What Slurm counts by default.
RESOURCES = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")


def minutes_rows(plugin: FairShare, jobs: Iterable[Job], now: float) -> list[tuple[str, str]]:
    """Both columns at ``now`` (absolute seconds), in the order of :meth:`Tree.walk`."""
    policy, tree = plugin.policy, plugin.tree
    names = (policy.resources if policy is not None else ()) or RESOURCES
    allowed = policy.minutes if policy is not None else {}
    running = [
        (plugin.node_of(job.description), _left(job, now) * plugin.factor(job.description), job)
        for job in jobs
        if job.status is Status.RUNNING
    ]
    seconds = []
    for name in names:
        own = np.zeros(len(tree))
        for node, left, job in running:
            own[node] += left * _has(plugin, job, name)
        seconds.append(tree.shape().sums(own))
    rows = []
    for node, _ in tree.walk():
        entry = tree.entries[node]
        whose = f"{entry.account}:{entry.user}" if entry.user else entry.account
        to_run = (f"{name}={int(total[node] // 60)}" for name, total in zip(names, seconds, strict=True))
        rows.append((allowed.get(whose, ""), ",".join(to_run)))
    return rows


def _left(job: Job, now: float) -> float:
    """Whole seconds until the job's limit."""
    begun = now if job.start_time is None else job.start_time + job.paused
    return float(np.ceil(max(begun + job.estimate - now, 0.0)))


def _has(plugin: FairShare, job: Job, name: str) -> float:
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
