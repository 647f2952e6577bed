"""How far a run goes without the emulated cluster's account, and where the cluster takes over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from building import traced

from headway.decisions import Decision, Kill
from headway.emulation import emulate
from headway.emulation.direct import Direct
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Dependency, NodeDescription, PoolDescription, Reservation
from headway.model.nodes import PoolBounds
from headway.plugins import Catalogue, PluginConfig
from headway.state import State

FLAT = ClusterDescription.flat(4)
JOBS = [traced(f"j{at}", 2, 10, at) for at in range(6)]


@pytest.fixture
def courses(monkeypatch: pytest.MonkeyPatch) -> list[Direct]:
    """The direct beginnings of runs, each as it was when it was over."""
    begun: list[Direct] = []
    run: Callable[[Direct], None] = Direct.run

    def noting(direct: Direct) -> None:
        run(direct)
        begun.append(direct)

    monkeypatch.setattr(Direct, "run", noting)
    return begun


def ran(cluster: ClusterDescription = FLAT, jobs: Any = JOBS, *plugins: str, **more: Any) -> Any:
    configs = [PluginConfig(name) for name in (*plugins, "easy")]
    return emulate(cluster, jobs, configs, more.pop("catalogue", Catalogue()), label="run", **more)


def test_a_plain_run_needs_no_second_account(courses: list[Direct]) -> None:
    result = ran()
    (direct,) = courses
    assert [direct.course.ended[at] for at in range(6)] == list(result.jobs)
    assert (direct.course.running, direct.course.waiting, direct.left) == ([], {}, [])


def test_it_need_not_begin_directly(courses: list[Direct]) -> None:
    assert ran(direct=False).jobs == ran().jobs
    assert len(courses) == 1


def test_a_job_that_waits_for_another_is_judged_by_the_emulated_cluster(courses: list[Direct]) -> None:
    waiting = traced("after", 1, 10, 3, dependencies=(Dependency("ended", "j0"),))
    result = ran(FLAT, [*JOBS[:3], waiting, *JOBS[3:]])
    (direct,) = courses
    assert direct.course.arrived == 3
    assert {job.job.id: job.start_time for job in result.jobs}["after"] == 11


class Killing(Catalogue):
    """Has a plugin that ends what runs at 12."""

    def get(self, name: str, where: str = "plugins") -> Any:
        class Killer:
            @hookimpl
            def control(self, state: State) -> list[Decision]:
                return [Kill(job.id, "enough") for job in state.running_jobs() if state.now == 12]

        return Killer if name == "killer" else super().get(name, where)


def test_what_is_no_start_is_carried_out_by_the_emulated_cluster(courses: list[Direct]) -> None:
    jobs = [traced("long", 1, 100), traced("new", 1, 5, 12), traced("last", 4, 5, 13)]
    result = ran(FLAT, jobs, "killer", catalogue=Killing(), keep_decisions=True)
    (direct,) = courses
    assert [type(decision).__name__ for decision in direct.left] == ["Start", "Kill", "Kill"]
    assert [(job.job.id, job.end_time, job.state) for job in result.jobs] == [
        ("long", 12, "cancelled"), ("new", 12, "cancelled"), ("last", 18, "completed")
    ]  # fmt: skip
    assert [type(record.decision).__name__ for record in result.decisions] == [
        "Start", "Start", "Kill", "Kill", "Start"
    ]  # fmt: skip


NODE = NodeDescription("n1", 4, pools=("pool",))
MORE_THAN_JOBS: dict[str, ClusterDescription] = {
    "nodes": ClusterDescription("nodes", (PoolDescription("pool"),), (NODE,)),
    "closed": ClusterDescription("closed", (PoolDescription("pool", 4, open=False),)),
    "bounds": ClusterDescription("bounds", (PoolDescription("pool", 4, bounds=PoolBounds(max_walltime=20)),)),
    "reservation": ClusterDescription(
        "reserved", (PoolDescription("pool", 4),), (), (Reservation("r", 5, 9, pool="pool", processors=2),)
    ),
    "licences": ClusterDescription("licences", (PoolDescription("pool", 4),), licences=(("matlab", 1),)),
}  # fmt: skip


@pytest.mark.parametrize("which", MORE_THAN_JOBS)
def test_a_cluster_with_more_than_flat_pools_is_emulated_from_the_beginning(
    which: str, courses: list[Direct]
) -> None:
    ran(MORE_THAN_JOBS[which])
    assert courses == []


@pytest.mark.parametrize("more", [{"faults": {"latency": 1.0}}, {"start": 0.0}], ids=["faults", "start"])
def test_so_is_a_run_of_which_more_is_asked(more: dict[str, Any], courses: list[Direct]) -> None:
    ran(**more)
    assert courses == []
