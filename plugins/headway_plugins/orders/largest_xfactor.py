"""Serve the largest expansion factor first: (wait + estimate) / estimate.

G. Sabin, P. Sadayappan: Unfairness Metrics for Space-Sharing Parallel Job Schedulers. JSSPP 2005, section 4:
LXF. Short jobs rise fast and long jobs slowly, but every job rises.

The order changes with time, so the queue is ordered anew in each step in which something happened. Ties are
broken by submission. A job with an estimate of 0 has an unbounded factor: it is served first.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Again, Traits
from headway.state import Job, State

_INF = float("inf")


class LargestXfactor(Plugin):
    """The largest (wait + estimate) / estimate first."""

    traits = Traits(
        ask_again=Again.DOMAIN,
        paper=(
            "G. Sabin, P. Sadayappan: Unfairness Metrics for Space-Sharing Parallel Job Schedulers, "
            "JSSPP 2005"
        ),
    )

    @hookimpl
    def order_queue(self, jobs: Sequence[Job], state: State) -> Sequence[Job]:
        now = state.now

        def key(job: Job) -> float:
            estimate = job.estimate
            return -((now - job.description.submit_time + estimate) / estimate) if estimate > 0 else -_INF

        return sorted(jobs, key=key)
