"""Serve pools that share nodes in turn: the first job of each pool, then the second of each, and so on.

PBS's ``round_robin`` in ``sched_config``: queues of the same priority take turns, in the order in which PBS
lists them, and begin anew with the first queue in each cycle; a higher priority comes before them. Here the
priority is the pool's tier, which the framework puts before any order.

Within a pool jobs keep the order that they have without this plugin: a fixed key of another plugin, else
submission. A pool that shares no nodes has no turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Again, Study, Traits
from headway.state import Job, State


class RoundRobin(Plugin):
    """Pools that share nodes in turn, a job of each."""

    traits = Traits(ask_again=Again.DOMAIN, study=Study(estimates=False))

    @hookimpl
    def order_queue(self, jobs: Sequence[Job], state: State) -> Sequence[Job] | None:
        if len({job.pool.name for job in jobs}) < 2:
            return None
        turns = {name: at for at, name in enumerate(state.pools)}
        rounds: Counter[str] = Counter()
        places: dict[str, tuple[int, int]] = {}
        for job in jobs:
            pool = job.pool.name
            rounds[pool] += 1
            places[job.id] = (rounds[pool], turns[pool])
        return sorted(jobs, key=lambda job: places[job.id])
