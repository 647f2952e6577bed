"""The sites of a federation as a planner sees them: their slots, and the pools to which jobs are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from headway.state import Domain, Job, PoolState, State
from headway.state.catalogue import Catalogue
from headway_plugins.data.site_planner import Slot

#: Seconds that a job is on its way at least.
_MOMENT = 1e-3


def travel(catalogue: Catalogue, source: str, target: str) -> float:
    """Seconds that a job is on its way: other jobs of its new site may start meanwhile."""
    link = catalogue.links.get((source, target))
    return max(_MOMENT, link.latency if link is not None else 0.0)


def pools_of(state: State) -> dict[str, list[PoolState]]:
    """Site -> its pools that are open, in the order of the configuration."""
    catalogue = state.catalogue
    assert catalogue is not None
    found: dict[str, list[PoolState]] = {}
    for pool in state.pools.values():
        if pool.open and pool.total:
            found.setdefault(catalogue.site_of(pool.name), []).append(pool)
    return found


def pool_for(job: Job, pools: Iterable[PoolState]) -> PoolState:
    """To which of a site's pools a job goes: the one that is called as its own, else the first one."""
    called = job.pool.name.rpartition(":")[2]
    pools = list(pools)
    return next((pool for pool in pools if pool.name.rpartition(":")[2] == called), pools[0])


def slots_of(
    state: State, pools: Mapping[str, list[PoolState]], others: Iterable[tuple[Job, bool]],
    ready: Callable[[Job], float], most: int,
) -> list[Slot]:  # fmt: skip
    """Slots of the first pool of each site, at most so many of each, the first to be free.

    ``others``: jobs that wait and that the plan leaves to the policy, in the order of the queue, each with
    whether it is before the last planned job. They take the slots that are free first, each as many as it has
    processors; a job behind the planned jobs only if it can start now. ``ready``: seconds until a job has its
    data.
    """
    free = {site: _free(state, first.domain, most) for site, (first, *_) in pools.items()}
    catalogue = state.catalogue
    assert catalogue is not None
    for job, before in others:
        times = free.get(catalogue.site_of(job.pool.name))
        if times:
            taken = min(job.processors, len(times))
            begins = max(times[taken - 1], ready(job))
            if before or begins <= 0:
                times[:taken] = [begins + job.expected_runtime] * taken
                times.sort()
    return [Slot(site, time) for site, times in free.items() for time in times]


def _free(state: State, domain: Domain, most: int) -> list[float]:
    """When the processors of a domain are free, seconds from now, in order."""
    found = [0.0] * min(most, max(0, domain.free))
    for end, _, processors, _ in domain.running:
        if len(found) >= most:
            break
        found += [max(0.0, end - state.now)] * min(processors, most - len(found))
    return found
