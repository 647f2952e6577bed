"""`headway import pbs`: limits as the PBS Professional administrator's guide has them.

A limit is of one attribute of one object. What is said of a name replaces the generic limit of that attribute
and of no other; the server's limits and the queue's hold both.
"""

from __future__ import annotations

import pytest
from building import described
from imports import broken, made, said

from headway import events as ev
from headway.decisions import Start
from headway.model import ClusterDescription, NodeDescription, PoolDescription
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler

QUEUES = "create queue workq\nset queue workq queue_type = Execution\ncreate queue fast\n"


def started(qmgr: str, *jobs: tuple[str, str, int]) -> list[str]:
    """Which jobs (user, queue, processors) start at once on 64 processors, as user and number."""
    options = made("pbs", qmgr=QUEUES + qmgr).plugins["limits"]
    configs = [PluginConfig("limits", options, "limits"), PluginConfig("greedy"), PluginConfig("first-fit")]
    cluster = ClusterDescription(
        name="head",
        pools=(PoolDescription("workq"), PoolDescription("fast")),
        nodes=(NodeDescription("n1", 64, pools=("workq", "fast")),),
    )
    scheduler = Scheduler(cluster, Plugins.load(configs, Catalogue(), None))
    names = [f"{user}{number}" for number, (user, _, _) in enumerate(jobs, 1)]
    events = [
        ev.JobSubmitted(0, described(name, user=user, pool=pool, processors=processors))
        for name, (user, pool, processors) in zip(names, jobs, strict=True)
    ]
    return sorted(one.job_id for one in scheduler.step(0, events) if isinstance(one, Start))


#: What qmgr says, the jobs of users in queues, and which of them PBS runs.
CASES = [
    # alice may run 5 jobs, and the generic limit of processors holds for these, too.
    ("set queue workq max_run = [u:PBS_GENERIC=1]\nset queue workq max_run += [u:alice=5]\n"
     "set queue workq max_run_res.ncpus = [u:PBS_GENERIC=8]",
     [("alice", "workq", 4)] * 5 + [("bob", "workq", 4)] * 2, ["alice1", "alice2", "bob6"]),
    # Her own limit of processors leaves the generic limit of jobs in force.
    ("set server max_run = [u:PBS_GENERIC=2]\n"
     "set server max_run_res.ncpus = '[u:PBS_GENERIC=2],[u:alice=32]'",
     [("alice", "workq", 8)] * 3 + [("bob", "workq", 1)] * 3, ["alice1", "alice2", "bob4", "bob5"]),
    # The server's and the queue's limits hold both.
    ("set server max_run = [u:PBS_GENERIC=3]\nset queue fast max_run = [u:PBS_GENERIC=1]",
     [("alice", "fast", 1)] * 2 + [("alice", "workq", 1)] * 2, ["alice1", "alice3", "alice4"]),
    # A name's limit in a queue does not lift the server's.
    ("set server max_run = [u:PBS_GENERIC=2]\nset queue fast max_run = [u:alice=9]",
     [("alice", "fast", 1)] * 4, ["alice1", "alice2"]),
    # All together, and each.
    ("set server max_run = [o:PBS_ALL=3]\nset server max_run += [u:PBS_GENERIC=2]",
     [("alice", "workq", 1)] * 3 + [("bob", "workq", 1)] * 2, ["alice1", "alice2", "bob4"]),
    ("set queue workq max_run_res.ncpus = [o:PBS_ALL=10]",
     [("alice", "workq", 6), ("bob", "workq", 6), ("carl", "workq", 4), ("dora", "fast", 6)],
     ["alice1", "carl3", "dora4"]),
    # A limit of 0 is a limit.
    ("set server max_run = [u:PBS_GENERIC=0]\nset server max_run += [u:alice=1]",
     [("alice", "workq", 1)] * 2 + [("bob", "workq", 1)], ["alice1"]),
    # The attributes of early versions.
    ("set queue workq max_user_run = 1\nset queue workq max_running = 2",
     [("alice", "workq", 1)] * 2 + [("bob", "workq", 1), ("carl", "workq", 1)], ["alice1", "bob3"]),
    ("set server max_user_res.ncpus = 4",
     [("alice", "workq", 3), ("alice", "workq", 2), ("bob", "workq", 4)], ["alice1", "bob3"]),
    # The server's largest job is that of queues that say nothing of it.
    ("set server resources_max.ncpus = 4\nset queue fast resources_max.ncpus = 8\n"
     "set queue workq resources_max.walltime = 1:00:00",
     [("alice", "workq", 5), ("alice", "workq", 4), ("alice", "fast", 8)], ["alice2", "alice3"]),
    # What is set anew, taken away or unset.
    ("set server max_run = [u:PBS_GENERIC=1]\nset server max_run = [u:PBS_GENERIC=2]",
     [("alice", "workq", 1)] * 3, ["alice1", "alice2"]),
    ("set server max_run = [u:PBS_GENERIC=2]\nset server max_run += [u:alice=1]\n"
     "set server max_run -= [u:alice=1]", [("alice", "workq", 1)] * 3, ["alice1", "alice2"]),
    ("set server max_run = [u:PBS_GENERIC=2]\nset queue workq max_run = [u:PBS_GENERIC=1]\n"
     "unset queue workq max_run", [("alice", "workq", 1)] * 3, ["alice1", "alice2"]),
]  # fmt: skip


@pytest.mark.parametrize(("qmgr", "jobs", "run"), CASES)
def test_the_jobs_run_that_pbs_runs(qmgr: str, jobs: list[tuple[str, str, int]], run: list[str]) -> None:
    assert started(qmgr, *jobs) == run
    assert not broken(made("pbs", qmgr=QUEUES + qmgr))


def test_what_is_no_limit_costs_no_other() -> None:
    qmgr = (
        "set server max_run = [u:PBS_GENERIC=many],[u:alice=2]\nset server max_run_res.walltime = [u:bob=9]\n"
        "set server max_run_res.mem = [u:bob=2gw]\nset queue workq max_run = nonsense\n"
        "set server max_run_soft = [u:PBS_GENERIC=1]"
    )
    found = made("pbs", qmgr=QUEUES + qmgr)
    assert found.plugins["limits"]["of"] == {"user": {"alice": {"jobs": 2}, "bob": {"memory": 16.0}}}
    assert said(found) == [
        "qmgr:4: max_run: expected a number, found 'many'",
        "qmgr:5: max_run_res.walltime = [u:bob=9] is not carried over: headway has no limit on its sum",
        "qmgr:7: max_run: expected [u:NAME=NUMBER] or the like, found 'nonsense'",
        "qmgr:8: max_run_soft = [u:PBS_GENERIC=1] is not carried over (max_run and max_run_res are)",
    ]
