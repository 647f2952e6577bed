"""What was recorded of a real cluster happens on the emulated one, whatever is decided."""

from __future__ import annotations

import pytest
from building import alike, described, node_cluster

from headway import events as ev
from headway.emulation import emulate
from headway.errors import UserError
from headway.model import Association, NodeDescription, PoolDescription, Reservation, SitePolicy
from headway.plugins import Catalogue, PluginConfig
from headway.results import CapacityChange, RunResult
from headway.workload.jobs import TraceJob

EASY = (PluginConfig("easy"), PluginConfig("first-fit"))
TWO = node_cluster(*alike(2, 4))
POOL = TWO.pools[0].name


def run(
    jobs: list[TraceJob], *happens: ev.Event, plugins: tuple[PluginConfig, ...] = EASY
) -> tuple[dict[str, float | None], RunResult]:
    result = emulate(TWO, jobs, plugins, Catalogue(), label="recorded", happens=happens, start=0.0)
    return {one.job.id: one.start_time for one in result.jobs}, result


def wide(name: str, submit: float, seconds: float = 10.0, processors: int = 8) -> TraceJob:
    return TraceJob(described(name, processors, 100, submit, pool=POOL), seconds)


def test_a_node_that_goes_down_takes_no_job_and_ends_none():
    node = TWO.nodes[0]
    jobs = [wide("on it", 0.0, 30.0), wide("after", 5.0), wide("narrow", 6.0, 10.0, 4)]
    starts, result = run(jobs, ev.NodeDown(20, node.name, "broken"), ev.NodeUp(100, node))
    assert starts == {"on it": 0, "after": 100, "narrow": 30}
    assert [one.state for one in result.jobs] == ["completed"] * 3
    assert result.capacity == [CapacityChange(20, POOL, 4), CapacityChange(100, POOL, 8)]


def test_a_node_can_be_described_anew_and_come_new():
    more = NodeDescription("new", 4, pools=(POOL,))
    starts, _ = run([wide("12", 0.0, processors=12)], ev.NodeUp(50, more))
    assert starts == {"12": 50}


def test_a_pool_closes_and_opens():
    closed, opened = PoolDescription(POOL, open=False), PoolDescription(POOL)
    starts, _ = run([wide("a", 5.0)], ev.PoolChanged(1, closed), ev.PoolChanged(40, opened))
    assert starts == {"a": 40}


def test_a_reservation_is_made_and_removed_before_its_end():
    kept = Reservation("r", 10, 1000, nodes=tuple(node.name for node in TWO.nodes))
    starts, _ = run([wide("a", 20.0)], ev.ReservationMade(1, kept), ev.ReservationEnded(300, "r"))
    assert starts == {"a": 300}


def test_users_hold_what_still_waits():
    jobs = [wide("first", 0.0, 30.0), wide("second", 1.0)]
    held = (ev.JobHeld(20, "first"), ev.JobHeld(20, "second"), ev.JobReleased(70, "second"))
    starts, _ = run(jobs, *held)
    assert starts == {"first": 0, "second": 70}


def test_the_sites_policy_is_told_where_it_was_recorded():
    policy = SitePolicy(associations=(Association("x", shares=1), Association("x", "ann")), half_life=0.0)
    fair = (PluginConfig("fair-tree", {"accounts": "from-slurm"}), *EASY)
    starts, result = run([wide("a", 0.0)], ev.SitePolicyChanged(0, policy), plugins=fair)
    assert starts == {"a": 0} and not result.failures
    with pytest.raises(UserError, match="expected a single Slurm cluster"):
        run([wide("a", 0.0)], plugins=fair)


def test_no_job_is_backfilled_behind_a_job_that_is_about_to_leave():
    narrow = TraceJob(described("narrow", 4, 50, 21.0, pool=POOL), 10.0)
    jobs = [wide("leaves", 0.0, 30.0, 4), wide("head", 1.0), narrow]
    assert run(jobs)[0] == {"leaves": 0, "head": 31, "narrow": 21}
    # Told of a job that does not run it is nothing.
    told = (ev.JobLeaving(20, "leaves"), ev.JobLeaving(20, "head"), ev.JobLeaving(90, "leaves"))
    starts, result = run(jobs, *told)
    assert starts == {"leaves": 0, "head": 30, "narrow": 40}
    assert not result.failures


def test_what_cannot_happen_by_itself_is_refused():
    with pytest.raises(ValueError, match="JobEnded cannot happen by itself"):
        run([wide("a", 0.0)], ev.JobEnded(5, "a"))
