"""Domains: pools that are connected by nodes are one machine, with one queue and one set of bookings.

Which pools share nodes follows from the descriptions of the nodes. When a description changes a node's pools
(:attr:`.facts.Facts.regrouped`), the domains are worked out anew at the end of the fold of that step. A
domain that stays keeps all that is known of it. When domains are joined or taken apart, their jobs find their
queues and their entries in the running lists anew, and what was booked there is booked anew.
"""

from __future__ import annotations

from headway.model.nodes import sharing_nodes
from headway.state.facts import Facts
from headway.state.lending import lend
from headway.state.occupation import under
from headway.state.records import ON_NODES, Domain, PoolState, Status
from headway.state.reservations import keep_from
from headway.state.waiting import queue_or_wait


def regroup(state: Facts) -> None:
    """Join the pools that share nodes, and take pools apart that share nodes no longer."""
    state.regrouped = False
    wanted = connected(state)
    before = state.domains
    if [domain.pools for domain in before.values()] == wanted:
        return
    same = {domain.pools: domain for domain in before.values()}
    after = [same.get(pools) or Domain(pools) for pools in wanted]
    gone = [domain for domain in before.values() if domain not in after]
    new = [domain for domain in after if domain not in same.values()]
    moving = [
        job for job in state.jobs.values()
        if job.status in ON_NODES
        and (job.domain in gone or any(domain in gone for domain, _ in job.entries or ()))
    ]  # fmt: skip
    waiting = dict.fromkeys([job for domain in gone for job in domain.queue])

    def change() -> None:
        state.domains = {domain.name: domain for domain in after}
        for domain in new:
            for pool in domain.pools:
                pool.domain = domain
        state.nodes.group({pool.name: pool.domain.name for pool in state.pools.values()})
        for domain in new:
            if not domain.flat:
                domain.total, domain.free = state.nodes.count(*domain.pool_names)

    for job in under(state, moving, change):
        lend(state, job)
    for domain in new:
        for reservation in state.reservations.values():
            keep_from(state, domain, reservation)
        domain.touch()
    if state.domains_made is not None:
        state.domains_made()
    for job in waiting:
        job.status = Status.WAITING
        queue_or_wait(state, job)


def connected(state: Facts) -> list[tuple[PoolState, ...]]:
    """The pools of each domain, as the nodes are described now."""
    pools = state.pools
    found = sharing_nodes(pools, (node.pools for node in state.nodes.descriptions.values()))
    return [tuple(pools[name] for name in names) for names in found]
