"""The cluster as the scheduler knows it: a fold over events.

:class:`State` holds every job that is not over, every pool with its queue and its running jobs,
and the nodes. Events change it (:meth:`State.apply`), and so do the decisions that the scheduler
has taken (:meth:`State.begin`): from the decision to the confirming event a job is *starting* and
its processors count as taken.

The state is kept so that each event costs work in proportion to what it changes: queues and
running lists stay sorted, free processors are counted up and down, and a domain that nothing
touched is not scheduled again.

Each file holds one idea, and calls only files that stand above it here:

``news``, ``records``, ``factors``, ``facts``
    what happened to a domain since its policies were asked; a job, a pool, a domain; what a property of jobs
    is that plugins register; all data of the state;
``wakeups``, ``dependencies``, ``bounds``, ``obstacles``, ``reasons``, ``choices``, ``admission``
    what becomes due; what a job waits for, what a pool cannot hold, and the table of all reasons why a job
    waits; jobs of several pools; whether plugins refuse a job;
``queues``, ``kinds``, ``waiting``, ``barriers``
    the queues; where a job goes that is on no nodes; limits that bar it, and many alike;
``watchers``, ``occupation``, ``expectations``
    the watchers of the processors that jobs take; these processors; and until when jobs take them;
``tenants``, ``pool_share``, ``reservations``, ``moves``, ``foresight``, ``guard``
    which job is on which node; what one pool of a domain has; reservations; background and moves; changes
    that were decided and not confirmed; what every start must pass;
``domains``
    pools that share nodes;
``plain``, ``lifecycle``, ``running``, ``frequency``, ``capacity``, ``silence``
    how plain jobs come and go; what each event does to jobs, pools and nodes; clusters that do not answer;
``fold``, ``state``, ``retold``
    which function handles which event, and the whole; a state told anew to another scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.state.factors import Factor
    from headway.state.foresight import Foreseeable
    from headway.state.news import ENDS_MOVED
    from headway.state.records import (
        Barrier,
        Domain,
        Job,
        Obstacle,
        Outlook,
        PoolState,
        RunningEntry,
        Status,
        Watcher,
    )
    from headway.state.state import State
    from headway.state.tenants import Tenants

__all__ = [
    "ENDS_MOVED",
    "Barrier",
    "Domain",
    "Factor",
    "Foreseeable",
    "Job",
    "Obstacle",
    "Outlook",
    "PoolState",
    "RunningEntry",
    "State",
    "Status",
    "Tenants",
    "Watcher",
]

__getattr__ = late(
    __name__,
    {
        ".factors": "Factor",
        ".foresight": "Foreseeable",
        ".news": "ENDS_MOVED",
        ".records": "Barrier Domain Job Obstacle Outlook PoolState RunningEntry Status Watcher",
        ".state": "State",
        ".tenants": "Tenants",
    },
)
