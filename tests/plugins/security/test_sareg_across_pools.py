"""Promises where pools share nodes: each is of the job's own pool, and no job of another pool breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import node_cluster
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_sareg_plugin import ABLE, CATALOGUE, MEASURED

from headway import events as ev
from headway.decisions import Start
from headway.model import JobDescription, NodeDescription, Request
from headway.plugins import PluginConfig, Plugins
from headway.scheduler import Scheduler

#: n0 is of pool a alone, n1 of both, n2 of pool b alone.
OVERLAPPING = ("a", "a b", "b")


class Site:
    """Nodes of one processor in these pools; jobs run as long as they said, and as it was promised."""

    def __init__(self, folder: Path, *pools: str) -> None:
        (folder / "speeds.yaml").write_text(MEASURED)
        options = {"profile": str(folder / "speeds.yaml"), "margin": 0}
        nodes = (NodeDescription(f"n{at}", 1, pools=tuple(p.split())) for at, p in enumerate(pools))
        names = tuple(dict.fromkeys(" ".join(pools).split()))
        plugins = Plugins.load([PluginConfig("sareg", options), PluginConfig("first-fit")], CATALOGUE, None)
        self.scheduler = Scheduler(node_cluster(*nodes, pools=names), plugins, capabilities=ABLE)
        self.plugin = plugins.by_name["sareg"]
        #: When what runs ends; when each job was started, and in which pool.
        self.ends: dict[str, float] = {}
        self.began: dict[str, tuple[float, str]] = {}

    def step(self, now: float, *events: ev.Event) -> None:
        made = self.scheduler.step(now, events)
        assert self.scheduler.problems == []
        starts = []
        for start in (decision for decision in made if isinstance(decision, Start)):
            job = self.scheduler.state.jobs[start.job_id]
            self.began[job.id], self.ends[job.id] = (now, job.pool.name), now + job.estimate
            starts.append(ev.JobStarted(now, job.id, start.placement, pool=start.pool))
        if starts:
            self.step(now, *starts)

    def arrives(
        self, now: float, name: str, size: int, runs: float, *pools: str, deadline: float | None = None
    ) -> str:
        """Why it is refused; "" if it is not."""
        attributes = None if deadline is None else {"deadline": deadline}
        job = JobDescription(
            name, now, Request(size, runs), pools[0], attributes=attributes, further_pools=pools[1:]
        )
        self.step(now, ev.JobSubmitted(now, job))
        return self.scheduler.state.jobs[name].refusal

    def until(self, now: float) -> None:
        """Let jobs end, and others begin, up to this moment."""
        while True:
            due = [(end, name) for name, end in self.ends.items() if end <= now]
            wake = self.scheduler.state.next_wakeup()
            first = min(
                [end for end, _ in due] + ([wake] if wake is not None and wake <= now else []), default=None
            )
            if first is None:
                return
            over = [name for end, name in due if end == first]
            for name in over:
                del self.ends[name]
            self.step(first, *(ev.JobEnded(first, name) for name in over))


def test_what_a_pool_does_not_have_is_not_promised(tmp_path):
    site = Site(tmp_path, *OVERLAPPING)
    site.arrives(0, "j", 3, 10, "a")
    site.until(100)
    assert site.scheduler.state.jobs["j"].obstacle is not None
    assert "j" not in site.began and "j" not in site.plugin._promises


def test_a_deadline_is_of_the_jobs_own_pool(tmp_path):
    site = Site(tmp_path, *OVERLAPPING)
    assert site.arrives(0, "x", 1, 100, "a") == ""
    # Two of the domain's processors are free, but only one of pool a's.
    assert "its deadline cannot be met" in site.arrives(1, "y", 2, 50, "a", deadline=100.0)
    assert site.arrives(1, "z", 2, 50, "a", deadline=150.0) == ""
    site.until(200)
    assert site.began["z"] == (100, "a")


def test_a_promise_is_not_broken_by_a_job_of_another_pool(tmp_path):
    site = Site(tmp_path, *OVERLAPPING)
    site.arrives(0, "x", 1, 100, "a")
    site.arrives(1, "y", 2, 50, "a", deadline=160.0)
    # It might be put on the node that y needs.
    assert "its deadline cannot be met" in site.arrives(2, "z", 1, 110, "b", deadline=115.0)
    assert site.arrives(2, "w", 1, 90, "b", deadline=95.0) == ""
    site.until(300)
    assert site.began["y"] == (100, "a") and site.began["w"] == (2, "b")


def test_a_job_of_several_pools_is_promised_a_time_in_one_that_can_keep_its_deadline(tmp_path):
    site = Site(tmp_path, *OVERLAPPING)
    site.arrives(0, "x", 2, 100, "a")
    assert site.arrives(1, "j", 1, 20, "a", "b", deadline=30.0) == ""
    assert site.began["j"] == (1, "b")
    assert "its deadline cannot be met" in site.arrives(2, "k", 2, 20, "a", "b", deadline=30.0)


@given(
    nodes=st.lists(st.sampled_from(["a", "b", "a b", "b c", "c", "a b c"]), min_size=1, max_size=5),
    jobs=st.lists(
        st.tuples(
            st.integers(0, 30), st.integers(1, 3), st.integers(1, 20), st.integers(0, 60),
            st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True),
        ),
        min_size=1, max_size=10,
    ),
)  # fmt: skip
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_job_that_is_not_refused_meets_its_deadline(tmp_path, nodes, jobs):
    site = Site(tmp_path, *nodes, "a b c")
    accepted = {}
    for at, (now, size, runs, slack, pools) in enumerate(sorted(jobs)):
        site.until(now)
        name, deadline = str(at), float(now + runs + slack)
        if (
            not site.arrives(now, name, size, runs, *pools, deadline=deadline)
            and name in site.plugin._promises
        ):
            accepted[name] = deadline - runs
    site.until(10_000)
    for name, latest in accepted.items():
        assert site.began[name][0] <= latest + 1e-6


@pytest.mark.parametrize("size", [1, 2, 3])
def test_equal_pools_are_one_pool(tmp_path, size):
    several, one = Site(tmp_path, *["a b"] * 3), Site(tmp_path, *["a"] * 3)
    for at in range(8):
        refusals = []
        for site, pool in ((several, "ab"[at % 2]), (one, "a")):
            site.until(5 * at)
            refusals.append(site.arrives(5 * at, str(at), size, 20, pool, deadline=5 * at + 60.0))
        assert refusals[0] == refusals[1]
    several.until(1000)
    one.until(1000)
    assert {name: start for name, (start, _) in several.began.items()} == {
        name: start for name, (start, _) in one.began.items()
    }
