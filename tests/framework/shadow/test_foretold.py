"""The emulation of a record: the policy that made the record makes the same schedule again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from watched_journals import EPOCH as T
from watched_journals import began, came, cluster, drawn, over, plan, record, told, watched_run

from headway.events import (
    Event,
    JobHeld,
    JobReleased,
    LicencesChanged,
    NodeDown,
    NodeUp,
    PoolChanged,
    ReservationEnded,
    ReservationMade,
)
from headway.model import Dependency, PoolDescription, Reservation
from headway.plugins import Catalogue, PluginConfig
from headway.shadow.foretold import foretell, remembering, workload_of
from headway.shadow.record import Stretch
from headway.workload.jobs import TraceJob


def stretch(place: Path) -> Stretch:
    (found,) = record(place).stretches
    return found


def happenings(jobs: list[TraceJob]) -> list[Event]:
    """Changes of the cluster in the time of these jobs, and of some jobs."""
    nodes, last = cluster().nodes, jobs[-1].job.submit_time
    half = (T + last) / 2
    kept = Reservation("maint", half + 600, half + 4000, nodes=("n1", "n2"))
    return [
        NodeDown(T + 700, "n3", "broken"), NodeUp(half, nodes[2]),
        ReservationMade(half, kept), ReservationEnded(half + 3000, "maint"),
        PoolChanged(half + 50, PoolDescription("batch", open=False)),
        PoolChanged(half + 900, PoolDescription("batch")),
        LicencesChanged(half, "matlab", 3),
        JobHeld(jobs[20].job.submit_time, "21"), JobReleased(half + 5000, "21"),
    ]  # fmt: skip


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("seed", range(3))
def test_the_policy_that_made_the_record_makes_it_again(tmp_path: Path, policy: str, seed: int) -> None:
    jobs = drawn(seed)
    watched_run(tmp_path / "j.sqlite", jobs, policy, happens=happenings(jobs))
    found = stretch(tmp_path / "j.sqlite")
    work = workload_of(found)
    assert len(work.jobs) == 80 and work.dropped_dependencies == 0
    again = foretell(found, work, plan(policy), seed=7)
    real = np.array([one.start if one.start is not None else np.nan for one in work.courses])
    assert np.allclose(again.start, real, rtol=0, atol=1e-3, equal_nan=True)
    assert np.nanmean(real) > np.nanmean([one.submit for one in work.courses]) + 60
    other = foretell(found, work, plan("easy" if policy == "fcfs" else "fcfs"), seed=7)
    assert not np.allclose(other.start, real, rtol=0, atol=1e-3, equal_nan=True)


def test_a_record_that_begins_in_the_middle_goes_on_as_it_did(tmp_path: Path) -> None:
    jobs = drawn(5)
    watched_run(tmp_path / "j.sqlite", jobs, "fcfs")
    half = jobs[40].job.submit_time
    (found,) = record(tmp_path / "j.sqlite", half).stretches
    work = workload_of(found)
    assert any(one.begun for one in work.courses) and any(one.waited for one in work.courses)
    again = foretell(found, work, plan("fcfs"), seed=0)
    real = np.array([one.start if one.start is not None else np.nan for one in work.courses])
    assert np.allclose(again.start, real, rtol=0, atol=1e-3, equal_nan=True)


def test_jobs_of_which_something_is_unknown(tmp_path: Path) -> None:
    told(
        tmp_path / "j.sqlite",
        (T, []),
        (T + 1, [came("1", T + 1), came("2", T + 1, limit=1000.0), came("3", T + 1), came("4", T + 1)]),
        (T + 2, [began("1", T + 2), began("2", T + 2, "n2")]),
        (T + 3, [came("5", T + 3, dependencies=(Dependency("ended", "99"), Dependency("ended", "1")))]),
        (T + 4, [came("6", T + 4, processors=0)]),
        (T + 502, [over("1", T + 502), over("3", T + 500, "cancelled")]),
        # Its number is given again: it was requeued after its end.
        (T + 503, [came("1", T + 503)]),
        ended=T + 600,
    )
    work = workload_of(stretch(tmp_path / "j.sqlite"))
    assert (work.cancelled, work.sizeless, work.dropped_dependencies) == (1, 1, 1)
    # Job 1 used 500 of 3600 s: so much of its limit is assumed of a job that was not over.
    used = 500 / 3600
    assert {one.job.id: one.runtime for one in work.jobs} == pytest.approx(
        {"1": 500.0, "2": 598.0, "4": used * 3600, "5": used * 3600, "1'": used * 3600}
    )
    assert [each.job_id for each in work.jobs[3].job.dependencies] == ["1"]


def test_what_plugins_have_learned_is_theirs_again_unless_it_goes_by_decisions() -> None:
    catalogue = Catalogue()
    names = ["easy", "first-fit", "recent"]
    assert remembering([PluginConfig(name) for name in names], catalogue) == {"recent"}
