"""Reports of pools."""

from __future__ import annotations

from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import PoolList, PoolReport
from headway.state import PoolState, State
from headway.state.choices import queued_for

_INF = float("inf")

#: Expected ends of a pool that a report tells.
_ENDS = 500


def pool_list(inquiry: Inquiry) -> PoolList:
    """All pools."""
    state = inquiry.state
    return PoolList(tuple([pool_report(state, pool) for pool in state.pools.values()]))


def pool_report(state: State, pool: PoolState) -> PoolReport:
    """Of a pool that shares nodes: its own queue and jobs, and what it has of the nodes."""
    domain = pool.domain
    queue, running, behind = queued_for(pool), domain.running, list(domain.background.values())
    if len(domain.pools) > 1:
        running = [entry for entry in running if entry[3].pool is pool]
        behind = [job for job in behind if job.pool is pool]
    return PoolReport(
        pool.name,
        pool.total,
        state.free_in(pool),
        len(queue),
        len(running),
        head=queue[0].processors if queue else 0,
        ends=tuple([(end, held) for end, _, held, _ in running[:_ENDS] if end != _INF]),
        background=len(behind),
        open=pool.open,
        tier=pool.tier,
        shares_nodes_with=tuple([name for name in domain.pool_names if name != pool.name]),
    )
