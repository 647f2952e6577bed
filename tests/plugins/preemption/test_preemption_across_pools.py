"""Preemption where pools share nodes: victims have what the job's pool has, and a job has several pools."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import msgspec
import pytest
from building import InItsPool, described, emulate, node_cluster, plugged, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Kill, Requeue, Resume, Signal, Start, Suspend
from headway.model import ClusterDescription, NodeDescription
from headway.scheduler import Scheduler
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy
from headway_plugins.preemption.plugin import Preemption, PreemptionOptions
from headway_plugins.priority.multifactor import Multifactor, MultifactorOptions

HIGH = {"who": {"qos": ["high"]}, "whom": {"qos": ["low"]}}
#: n0 is of pool a alone, n1 of both, n2 of pool b alone.
OVERLAPPING = ("a", "a b", "b")
APART = ("a", "b")


def cluster(*pools: str, processors: int = 1, **more: Any) -> ClusterDescription:
    """A node for each of these lists of pools; suspended jobs lend."""
    nodes = [NodeDescription(f"n{at}", processors, pools=tuple(p.split())) for at, p in enumerate(pools)]
    names = dict.fromkeys(" ".join(pools).split())
    found = node_cluster(*nodes, pools=tuple(names), **more)
    return msgspec.structs.replace(found, suspended_lend=True)


class Site:
    """A scheduler over pools that share nodes; its cluster does as it is told in the next step."""

    def __init__(
        self, cluster: ClusterDescription, *rules: dict[str, Any], others: Sequence[Any] = (), **options: Any
    ) -> None:
        options = {"soon": 0, **options}
        self.plugin = Preemption(PreemptionOptions(rules=list(rules) or [HIGH], **options))
        self.scheduler = Scheduler(
            cluster, plugged(self.plugin, Easy(), FirstFit(), *others),
            capabilities=frozenset({Start, Requeue, Kill, Signal, Suspend, Resume}),
        )  # fmt: skip

    def step(self, now: float, *events: ev.Event) -> list[str]:
        """The decisions of a step: a start with its nodes, and with its pool if that is said."""
        made = self.scheduler.step(now, events)
        assert self.scheduler.problems == []
        marks = {Requeue: "-", Kill: "x", Signal: "~", Suspend: "z", Resume: "!"}
        words, starts = [], []
        for decision in made:
            if isinstance(decision, Start):
                where = " ".join(name for name, _ in decision.placement)
                words.append(f"{decision.job_id} on {where}" + (decision.pool and f" in {decision.pool}"))
                starts.append(ev.JobStarted(now, decision.job_id, decision.placement, pool=decision.pool))
            else:
                words.append(marks[type(decision)] + decision.job_id)  # type: ignore[attr-defined]
        return words + (self.step(now, *starts) if starts else [])

    def runs(self, since: float, job_id: str, pool: str, *nodes: str, qos: str = "low", **more: Any) -> None:
        """A job runs on these nodes."""
        count = self.scheduler.state.nodes.descriptions[nodes[0]].processors
        job = described(job_id, count * len(nodes), 1000, since, pool=pool, qos=qos, **more)
        placement = tuple((name, count) for name in nodes)
        self.step(since, ev.JobSubmitted(since, job), ev.JobStarted(since, job_id, placement))

    def arrives(self, now: float, job_id: str, size: int, *pools: str, **more: Any) -> list[str]:
        """A job arrives that may take places."""
        more = {"qos": "high", **more}
        job = described(job_id, size, 300, now, pool=pools[0], further_pools=pools[1:], **more)
        return self.step(now, ev.JobSubmitted(now, job))


# ---------------------------------------------------------------------- whose nodes help


@pytest.mark.parametrize("victims", ["least-lost", "youngest", "lowest-priority", "fewest"])
def test_a_job_whose_nodes_the_pool_does_not_have_stays(victims):
    site = Site(cluster(*OVERLAPPING), victims=victims)
    site.runs(0, "old", "b", "n1")
    site.runs(80, "young", "b", "n2")
    site.runs(50, "own", "a", "n0", qos="normal")
    assert site.arrives(100, "h", 1, "a") == ["-old"]
    assert site.step(101, ev.JobRequeued(101, "old")) == ["h on n1"]


def test_nobody_goes_where_all_that_may_go_have_other_nodes():
    site = Site(cluster(*OVERLAPPING))
    site.runs(0, "x", "b", "n2")
    site.runs(0, "y", "a", "n0", qos="normal")
    site.runs(0, "z", "b", "n1", qos="normal")
    assert site.arrives(100, "h", 1, "a") == []


def test_of_a_job_on_nodes_of_both_what_is_the_pools_counts():
    site = Site(cluster(*OVERLAPPING))
    site.runs(0, "wide", "b", "n1", "n2")
    site.runs(90, "own", "a", "n0")
    assert site.arrives(100, "h", 2, "a") == ["-own", "-wide"]


def test_a_job_of_another_pool_leaves_a_licence():
    site = Site(cluster("a", "a b", "b", licences=(("solver", 1),)))
    site.runs(0, "x", "b", "n2", licences=(("solver", 1),))
    assert site.arrives(100, "h", 1, "a", licences=(("solver", 1),)) == ["-x"]
    assert site.step(101, ev.JobRequeued(101, "x"))[0] == "h on n0"


# ---------------------------------------------------------------------- jobs of several pools


@pytest.mark.parametrize("pools", [OVERLAPPING, APART], ids=["one domain", "two domains"])
def test_it_takes_a_place_in_any_of_its_pools_and_starts_there(pools):
    site = Site(cluster(*pools))
    last = f"n{len(pools) - 1}"
    for at in range(len(pools) - 1):
        site.runs(0, f"x{at}", "a", f"n{at}", qos="normal")
    site.runs(0, "victim", "b", last)
    assert site.arrives(100, "h", 1, "a", "b") == ["-victim"]
    assert site.step(101, ev.JobRequeued(101, "victim")) == [f"h on {last} in b"]
    assert site.scheduler.state.jobs["h"].pool.name == "b"


def test_its_priority_is_that_of_the_pool_in_which_it_takes_a_place():
    """In pool b it has 100 more than the victim, in pool a as much."""
    options = MultifactorOptions(weights={"pool": 100.0, "qos": 100.0}, pools={"b": 1.0}, qos={"mid": 1.0})
    rule = {"who": {}, "whom": {}, "distance": 50}
    site = Site(cluster("a", "a b"), rule, others=(Multifactor(options),))
    site.runs(0, "x", "a", "n0", qos="mid")
    site.runs(0, "victim", "a", "n1")
    assert site.arrives(100, "h", 1, "a", qos="low") == []
    assert site.arrives(200, "i", 1, "a", "b", qos="low") == ["-victim"]


@pytest.mark.parametrize("pools", [OVERLAPPING, APART], ids=["one domain", "two domains"])
def test_with_a_grace_time_too(pools):
    site = Site(cluster(*pools), {**HIGH, "grace": 30, "how": "cancel"})
    last = f"n{len(pools) - 1}"
    for at in range(len(pools) - 1):
        site.runs(0, f"x{at}", "a", f"n{at}", qos="normal")
    site.runs(0, "victim", "b", last)
    assert site.arrives(100, "h", 1, "a", "b") == ["~victim"]
    assert site.step(130) == ["xvictim"]
    assert site.step(131, ev.JobEnded(131, "victim", "cancelled")) == [f"h on {last} in b"]


def test_it_takes_places_where_they_cost_least():
    site = Site(cluster(*OVERLAPPING))
    for since, name, pool, node in ((0, "x", "a", "n0"), (10, "y", "a", "n1"), (20, "z", "b", "n2")):
        site.runs(since, name, pool, node)
    assert site.arrives(100, "h", 1, "a", "b") == ["-z"]


def test_the_rules_are_those_of_the_pool_whose_places_it_takes():
    """In pool a it is nobody's better, though places there would cost less."""
    site = Site(cluster(*APART), {"who": {"pool": ["b"], "qos": ["normal"]}, "whom": {"qos": ["low"]}})
    site.runs(50, "cheap", "a", "n0")
    site.runs(0, "dear", "b", "n1")
    assert site.arrives(100, "h", 1, "a", "b", qos="normal") == ["-dear"]
    assert site.step(101, ev.JobRequeued(101, "dear")) == ["h on n1 in b"]


def test_and_on_shared_nodes():
    site = Site(cluster("a b", "a"), {"who": {"pool": ["b"], "qos": ["normal"]}, "whom": {"qos": ["low"]}})
    site.runs(0, "dear", "a", "n0")
    site.runs(50, "cheap", "a", "n1")
    assert site.arrives(100, "h", 1, "a", "b", qos="normal") == ["-dear"]
    assert site.step(101, ev.JobRequeued(101, "dear")) == ["h on n0 in b"]


def test_one_that_starts_soon_in_another_of_its_pools_takes_nobodys_place():
    site = Site(cluster(*APART), soon=60)
    site.runs(0, "ending", "a", "n0", qos="normal")
    site.runs(960, "victim", "b", "n1")
    assert site.arrives(970, "h", 1, "b", "a") == []
    assert site.step(1000, ev.JobEnded(1000, "ending")) == ["h on n0 in a"]


def test_room_is_made_no_more_for_a_job_that_left_the_pool():
    site = Site(cluster(*APART), {**HIGH, "grace": 30})
    site.runs(0, "x", "a", "n0", qos="normal")
    site.runs(0, "victim", "b", "n1")
    assert site.arrives(100, "h", 1, "b") == ["~victim"]
    elsewhere = described("h", 1, 300, 100, pool="a", qos="high")
    assert site.step(101, ev.JobChanged(101, elsewhere)) == []
    assert site.step(130) == [], "the victim was only signalled, and stays"


# ---------------------------------------------------------------------- suspension

SUSPEND = {**HIGH, "how": "suspend"}


def test_a_suspended_job_runs_again_on_its_nodes_when_those_of_another_pool_leave_them():
    site = Site(cluster(*OVERLAPPING), SUSPEND)
    site.runs(0, "low", "b", "n1")
    site.runs(0, "x", "a", "n0", qos="normal")
    assert site.arrives(100, "h", 1, "a") == ["zlow"]
    assert site.step(101, ev.JobSuspended(101, "low")) == ["h on n1"]
    # Neither pool's later jobs have the node before it, and n2 is of no use to pool a.
    assert site.arrives(102, "later", 1, "a", qos="low") == []
    assert site.arrives(103, "other", 1, "b", qos="low") == ["other on n2"]
    assert site.step(400, ev.JobEnded(400, "h")) == ["!low"]
    assert site.step(401, ev.JobResumed(401, "low")) == []


def test_one_of_several_pools_that_was_suspended_runs_again_where_it_ran():
    site = Site(cluster(*OVERLAPPING), SUSPEND)
    site.runs(0, "x", "a", "n0", qos="normal")
    site.runs(0, "y", "a", "n1", qos="normal")
    assert site.arrives(1, "low", 1, "a", "b", qos="low") == ["low on n2 in b"]
    assert site.arrives(100, "h", 1, "b") == ["zlow"]
    assert site.step(101, ev.JobSuspended(101, "low")) == ["h on n2"]
    assert site.step(200, ev.JobEnded(200, "x")) == []
    assert site.step(400, ev.JobEnded(400, "h")) == ["!low"]
    assert site.scheduler.state.jobs["low"].pool.name == "b"


def test_one_of_several_pools_goes_before_suspended_jobs_in_any_of_them():
    site = Site(cluster(*OVERLAPPING), SUSPEND)
    site.runs(0, "x", "a", "n0", qos="normal")
    site.runs(0, "z", "a", "n1", qos="normal")
    site.runs(0, "low", "b", "n2")
    assert site.arrives(100, "h", 1, "b") == ["zlow"]
    assert site.step(101, ev.JobSuspended(101, "low")) == ["h on n2"]
    # When h ends the place is kept for the suspended job; a better one of pools a and b goes before it.
    site.arrives(102, "i", 1, "a", "b")
    assert site.step(400, ev.JobEnded(400, "h")) == ["i on n2 in b"]


# ---------------------------------------------------------------------- against all subsets


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, int]], int, list[str]]:
    """The pools of each node; which of the nodes each running job has; the job's size and pools."""
    names = ["a", "b", "c"][: draw(st.integers(2, 3))]
    nodes = draw(st.lists(st.lists(st.sampled_from(names), min_size=1, unique=True), min_size=2, max_size=6))
    owners = draw(st.lists(st.integers(-1, 3), min_size=len(nodes), max_size=len(nodes)))
    pools = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return [" ".join(node) for node in nodes], owners, draw(st.integers(1, 4)), pools


@given(situation=situations())
@settings(max_examples=150, deadline=None)
def test_who_goes_is_the_cheapest_set_of_any_pool(situation):
    nodes, owners, size, pools = situation
    site = Site(cluster(*nodes, "a b c"), timeout=1000)
    #: Job -> the nodes that it has; all in one pool.
    has: dict[str, list[int]] = {}
    for owner in sorted(set(owners) - {-1}):
        mine = [at for at, who in enumerate(owners) if who == owner]
        common = set.intersection(*(set(nodes[at].split()) for at in mine))
        mine = mine if common else mine[:1]
        pool = min(common or nodes[mine[0]].split())
        has[str(owner)] = mine
        site.runs(10.0 * owner, str(owner), pool, *(f"n{at}" for at in mine))
    # The last node is of all pools, so that they are one domain, and not to be had.
    site.runs(40, "beside", "a", f"n{len(nodes)}", qos="normal")
    made = site.arrives(100, "h", size, *pools)

    def enough(gone: tuple[str, ...], pool: str) -> bool:
        taken = {at for name, mine in has.items() if name not in gone for at in mine}
        return sum(at not in taken and pool in nodes[at].split() for at in range(len(nodes))) >= size

    def cost(gone: tuple[str, ...]) -> float:
        return sum(len(has[name]) * (100 - 10 * int(name)) for name in gone)

    sets = [
        gone for count in range(len(has) + 1) for gone in combinations(has, count)
        if any(enough(gone, pool) for pool in pools)
    ]  # fmt: skip
    victims = tuple(word[1:] for word in made if word[0] == "-")
    if not sets:
        assert made == []
    elif () in sets:
        assert victims == () and made[0].startswith("h on")
    else:
        assert cost(victims) == min(map(cost, sets))
        assert any(enough(victims, pool) for pool in pools)


@pytest.mark.parametrize("how", ["requeue", "suspend"])
@given(
    nodes=st.lists(st.sampled_from(["a", "b", "c", "a b", "b c", "a b c"]), min_size=1, max_size=5),
    jobs=st.lists(
        st.tuples(
            st.integers(0, 40), st.integers(1, 4), st.integers(1, 30), st.sampled_from(["high", "low"]),
            st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True),
        ),
        min_size=1, max_size=10,
    ),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_all_jobs_run_in_their_pools(how, nodes, jobs):
    """On whole runs, with two processors a node."""
    trace = [
        traced(str(at), size, length, submit, qos=qos, pool=pools[0], further_pools=tuple(pools[1:]))
        for at, (submit, size, length, qos, pools) in enumerate(sorted(jobs))
    ]
    rule = {**HIGH, "how": how}
    plugin = Preemption(PreemptionOptions(rules=[rule], soon=0, timeout=1000))
    run = emulate(cluster(*nodes, "a b c", processors=4), trace, plugin, Easy(), FirstFit(), InItsPool())
    assert run.problems == []
    assert set(run.states.values()) == {"completed"}
