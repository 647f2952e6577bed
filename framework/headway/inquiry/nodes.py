"""Reports of nodes."""

from __future__ import annotations

from itertools import islice

from headway.inquiry.inquiry import Inquiry, Sees, everything
from headway.inquiry.pages import MOST, page
from headway.inquiry.reports import NodePage, NodeReport
from headway.state import Job
from headway.state.records import submission


def node_page(inquiry: Inquiry, pool: str, first: int, count: int, sees: Sees = everything) -> NodePage:
    """Some of the nodes of a pool, "": of all. Of their jobs those are named that may be seen."""
    table = inquiry.state.nodes
    names = [name for name, node in table.descriptions.items() if not pool or pool in node.pools]
    on_page = set(islice(names, first, first + min(count, MOST)))
    jobs = _jobs_on(inquiry, on_page, sees)
    made, then = page(iter(names), lambda name: node_report(inquiry, name, tuple(jobs[name])), first, count)
    return NodePage(made, then)


def node_report(inquiry: Inquiry, name: str, jobs: tuple[str, ...]) -> NodeReport:
    """A node; ``jobs``: the ids of its jobs. The id of a reservation that is kept for a job names the job, so
    it is told to those who may know of all jobs."""
    table, sees_all = inquiry.state.nodes, inquiry.sees_all
    node, at = table.descriptions[name], table.index[name]
    return NodeReport(
        name,
        node.processors,
        max(0, int(table.free.processors[at])),
        node.pools,
        node.available and bool(table.available[at]),
        node.reason,
        table.power.get(name, "on"),
        node.memory or None,
        max(0, int(table.free.memory[at])) if node.memory else None,
        tuple([(kind, amount, max(0, int(table.free.gres[kind][at]))) for kind, amount in node.gres]),
        node.features,
        jobs,
        tuple([one.id for one in table.reservations.get(at, ()) if sees_all or not one.job_id]),
    )


def _jobs_on(inquiry: Inquiry, names: set[str], sees: Sees) -> dict[str, list[str]]:
    """The ids of the jobs on each of these nodes, in the order in which they were submitted."""
    found: dict[str, list[Job]] = {name: [] for name in names}
    for job in inquiry.state.running_jobs():
        here = [name for name, _ in job.placement if name in names]
        if here and sees(job):
            for name in here:
                found[name].append(job)
    return {name: [job.id for job in sorted(jobs, key=submission)] for name, jobs in found.items()}
