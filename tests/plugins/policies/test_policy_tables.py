"""Queue -> decisions, one cycle at a time, for each policy, on a count and on nodes.

A row says what runs (processors, expected end), what waits in service order (processors, estimate),
and who starts at time 100 with which reason.
"""

from __future__ import annotations

import pytest
from building import POLICIES, alike, described, node_cluster, plugged

from headway import events as ev
from headway.decisions import Start
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, NodeDescription
from headway.scheduler import Scheduler
from headway.state import Status
from headway_plugins.placement.first_fit import FirstFit

NOW = 100
FIRST = "first in the queue"
BEFORE = "fits before all bookings of earlier jobs"

#: name: (running, queue, {policy: names that start})
TABLE = {
    "everything fits": (
        [],
        [(2, 50), (3, 50), (3, 50)],
        {"fcfs": "abc", "easy": "abc", "conservative": "abc"},
    ),
    "nobody overtakes": (
        [(4, 150)],
        [(6, 50), (2, 10)],
        {"fcfs": "", "easy": "b", "conservative": "b"},
    ),
    "the head fits, the next does not": (
        [(4, 150)],
        [(3, 50), (2, 50), (1, 10)],
        {"fcfs": "a", "easy": "ac", "conservative": "ac"},
    ),
    "ends exactly at the shadow time": (
        [(4, 150)],
        [(8, 50), (4, 50)],
        {"fcfs": "", "easy": "b", "conservative": "b"},
    ),
    "would end one second after the shadow time": (
        [(4, 150)],
        [(8, 50), (4, 51)],
        {"fcfs": "", "easy": "", "conservative": ""},
    ),
    "fits in the extra processors": (
        [(4, 150)],
        [(6, 50), (2, 999)],
        {"fcfs": "", "easy": "b", "conservative": "b"},
    ),
    "extra processors shrink": (
        [(4, 150)],
        [(5, 50), (2, 999), (2, 999), (1, 999)],
        {"fcfs": "", "easy": "bd", "conservative": "bd"},
    ),
    "jobs that end by the shadow time do not use up the extra": (
        [(4, 150)],
        [(6, 50), (2, 50), (2, 999)],
        {"fcfs": "", "easy": "bc", "conservative": "bc"},
    ),
    "ends at the shadow time count as free": (
        [(2, 150), (2, 150), (2, 170)],
        [(4, 50), (2, 999)],
        {"fcfs": "", "easy": "b", "conservative": "b"},
    ),
    "the second in the queue is delayed by EASY, not by conservative": (
        [(4, 150)],
        [(8, 10), (8, 10), (4, 60)],
        {"fcfs": "", "easy": "", "conservative": ""},
    ),
    "EASY lets a job pass that conservative keeps waiting": (
        [(6, 150), (1, 200)],
        [(5, 100), (3, 100), (1, 105)],
        {"fcfs": "", "easy": "c", "conservative": ""},
    ),
    "only the head is protected by EASY": (
        [(4, 150), (2, 300)],
        [(6, 50), (7, 50), (2, 60), (2, 40)],
        {"fcfs": "", "easy": "d", "conservative": "d"},
    ),
    "conservative protects the second as well": (
        [(4, 150)],
        [(5, 50), (6, 50), (3, 101)],
        {"fcfs": "", "easy": "c", "conservative": ""},
    ),
    "a job larger than the machine keeps nobody waiting": (
        [],
        [(9, 50), (8, 999)],
        {"fcfs": "b", "easy": "b", "conservative": "b"},
    ),
    "nothing is booked for a job larger than the machine, but for the next": (
        [(4, 150)],
        [(9, 50), (8, 50), (4, 999)],
        {"fcfs": "", "easy": "", "conservative": ""},
    ),
    "an overdue job leaves any moment": (
        [(4, 90)],
        [(8, 50), (4, 50)],
        {"fcfs": "", "easy": "", "conservative": ""},
    ),
}


class Steered:
    """The policy under test, asleep while what runs is being set up."""

    def __init__(self, policy):
        self.policy, self.asleep, self.reasons = policy, True, {}

    @hookimpl
    def schedule(self, view):
        if self.asleep:
            return [view.start(job) for job in view.queue]
        return self.policy.schedule(view)


def decide(cluster, policy, running, queue):
    """The starts at ``NOW``."""
    steered = Steered(POLICIES[policy]())
    s = Scheduler(cluster, plugged(steered, FirstFit()))
    setup = [
        described(f"r{at}", size, end, **more) for at, (size, end, more) in enumerate(map(full, running))
    ]
    assert len(s.step(0, [ev.JobSubmitted(0, job) for job in setup])) == len(setup)
    steered.asleep = False
    waiting = [
        described("abcdefgh"[at], size, estimate, submit=NOW, **more)
        for at, (size, estimate, more) in enumerate(map(full, queue))
    ]
    decisions = s.step(NOW, [ev.JobSubmitted(NOW, job) for job in waiting])
    assert s.problems == []
    assert all(s.state.jobs[d.job_id].status is Status.STARTING for d in decisions)
    assert all(isinstance(d, Start) for d in decisions)
    return decisions


def full(row):
    return (*row, {}) if len(row) == 2 else row


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("case", TABLE)
def test_starts_on_a_count_of_processors(case, policy):
    running, queue, expected = TABLE[case]
    decisions = decide(ClusterDescription.flat(8), policy, running, queue)
    assert "".join(d.job_id for d in decisions) == expected[policy]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("case", TABLE)
def test_starts_on_nodes_of_one_processor_are_the_same(case, policy):
    """With nodes of one processor, where does not matter, so the policy decides as on a count."""
    running, queue, expected = TABLE[case]
    decisions = decide(node_cluster(*alike(8, 1)), policy, running, queue)
    assert "".join(d.job_id for d in decisions) == expected[policy]
    sizes = {"abcdefgh"[at]: row[0] for at, row in enumerate(queue)}
    assert all(len(d.placement) == sizes[d.job_id] for d in decisions)


#: On two nodes of 4 processors.
NODE_TABLE = {
    "enough processors, but not on one node": (
        [(3, 150, {"nodes": 1}), (3, 150, {"nodes": 1})],
        [(2, 50, {"nodes": 1}), (1, 10)],
        {"fcfs": "", "easy": "b", "conservative": "b"},
    ),
    "a whole node waits for its neighbour to leave": (
        [(1, 150)],
        [(8, 50, {"exclusive": True}), (4, 60, {"nodes": 1}), (4, 50, {"nodes": 1})],
        {"fcfs": "", "easy": "c", "conservative": "c"},
    ),
    "the head's nodes are kept, others are not": (
        [(4, 150)],
        [(8, 50, {"nodes": 2}), (2, 999), (2, 50)],
        {"fcfs": "", "easy": "c", "conservative": "c"},
    ),
    "a job beside the head's nodes may run for ever": (
        [(4, 150), (2, 150)],
        [(4, 50, {"nodes": 1}), (2, 999)],
        {"fcfs": "", "easy": "b", "conservative": "b"},
    ),
    "a node that the user named": (
        [(4, 150)],
        [(2, 50, {"required_nodes": ("n0",)}), (4, 999, {"excluded_nodes": ("n0",)})],
        {"fcfs": "", "easy": "b", "conservative": "b"},
    ),
}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("case", NODE_TABLE)
def test_starts_on_nodes(case, policy):
    running, queue, expected = NODE_TABLE[case]
    decisions = decide(node_cluster(*alike(2, 4)), policy, running, queue)
    assert "".join(d.job_id for d in decisions) == expected[policy]


def test_a_job_that_no_node_suits_keeps_nobody_waiting():
    cluster = node_cluster(NodeDescription("n0", 8, features=("slow",)))
    queue = [(1, 50, {"features": ("fast",)}), (8, 999)]
    for policy in ("fcfs", "easy", "conservative"):
        assert "".join(d.job_id for d in decide(cluster, policy, [], queue)) == "b"


# ---------------------------------------------------------------- reasons


def reasons(policy, running, queue):
    return {d.job_id: d.reason for d in decide(ClusterDescription.flat(8), policy, running, queue)}


def test_fcfs_says_that_it_was_first():
    assert reasons("fcfs", [], [(1, 10), (1, 10)]) == {"a": FIRST, "b": FIRST}


def test_easy_says_why_a_job_was_backfilled():
    assert reasons("easy", [(4, 150)], [(1, 10), (6, 50), (1, 10), (1, 999)]) == {
        "a": FIRST,
        "c": "backfilled: ends by 150, when job b is to start",
        "d": "backfilled: needs no processor that job b will need at 150",
    }


def test_conservative_says_that_nobody_is_delayed():
    assert reasons("conservative", [(4, 150)], [(6, 50), (1, 10)]) == {"b": BEFORE}
