"""Jobs that go from one real Slurm to another: each runs once, whenever the daemon is killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Diary
from test_federation_slurm import Federated

from headway import events as ev

pytestmark = [pytest.mark.slurm, pytest.mark.installed_slurm]

HERE = Path(__file__).parent
PLUGIN = HERE / "sends_away.py"
#: Each step of a route that goes well, and when the daemon is killed there.
STEPS = ("submit", "mark", "commit", "seal", "cancel the original", "settle")
MOVABLE = "headway:movable=yes mine"


@pytest.fixture
def clusters(slurm_factory: Callable[..., Any]) -> dict[str, Any]:
    return {"north": slurm_factory(nodes=1, cpus=2), "south": slurm_factory(nodes=1, cpus=2)}


@pytest.fixture
def daemon(clusters: dict[str, Any], tmp_path: Path) -> Iterator[Federated]:
    one = Federated(clusters, tmp_path)
    yield one
    one.clean_up()


def submit(cluster: Any, diary: Diary, **options: Any) -> str:
    return cluster.submit(1, script=diary.script(2), comment=MOVABLE, job_name="a name", **options)


def diaries(clusters: dict[str, Any]) -> list[Diary]:
    """One file for both: a job's script names it, wherever it runs."""
    return [Diary(cluster) for cluster in clusters.values()]


def ends(daemon: Federated) -> dict[str, str]:
    """How jobs of north ended, wherever they ran."""
    told = daemon.events(ev.JobEnded)
    return {event.job_id: event.outcome for event in told if event.job_id.startswith("north:")}


def test_a_job_goes_to_the_other_cluster_and_runs_there_once(
    clusters: dict[str, Any], daemon: Federated
) -> None:
    north, south = clusters.values()
    diary, _ = diaries(clusters)
    for _ in range(3):
        # So that the copy has another number.
        south.run("scancel", south.submit(1))
    job = submit(north, diary)
    stays = north.submit(1, script=diary.script(1))
    daemon.start("--plugin", str(PLUGIN))
    daemon.until(lambda: diary.ended().total() == 2, 60, "both jobs run")
    daemon.until(lambda: len(ends(daemon)) == 2, 60, "both ends are told")
    assert daemon.stop() == 0
    assert north.state(job) == "CANCELLED" and north.jobs()[job]["nodes"] == ""
    # Each question for the epoch has taken a number, too.
    (number,) = [one for one, told in south.jobs().items() if told["name"] == "a name"]
    copy = south.jobs()[number]
    assert copy["job_state"] in ("COMPLETED", "COMPLETING")
    assert f";from=north:{job}@" in copy["admin_comment"]
    assert copy["comment"].endswith("movable=yes mine") and f"routed=north:{job}/" in copy["comment"]
    # One job under one name; the job whose user said nothing stays, and is told why.
    (routed,) = daemon.events(ev.JobRouted)
    assert (routed.job_id, routed.pool) == (f"north:{job}", "south:batch")
    (failed,) = daemon.events(ev.DecisionFailed)
    assert "its user does not allow it" in failed.message and failed.decision.job_id == f"north:{stays}"
    assert ends(daemon) == {f"north:{job}": "completed", f"north:{stays}": "completed"}
    submitted = [event.job.id for event in daemon.events(ev.JobSubmitted)]
    assert submitted.count(f"north:{job}") == 1 and f"south:{number}" not in submitted
    daemon.assert_replays(PLUGIN)


def killed(daemon: Federated, at: str) -> None:
    """Run until the daemon kills itself at a step, and go on without that."""
    daemon.program = [sys.executable, str(HERE / "killed_between_steps.py")]
    os.environ["KILL_AT"] = at
    try:
        daemon.start("--plugin", str(PLUGIN), await_log=False)
    finally:
        del os.environ["KILL_AT"]
    assert daemon.ended(60) == -9
    daemon.start("--plugin", str(PLUGIN))


@pytest.mark.parametrize("step", ["seal after", *(
    pytest.param(f"{step} {when}", marks=pytest.mark.slow)
    for step in STEPS for when in ("before", "after") if (step, when) != ("seal", "after")
)])  # fmt: skip
def test_a_job_runs_once_although_the_daemon_is_killed(
    clusters: dict[str, Any], daemon: Federated, step: str
) -> None:
    north, south = clusters.values()
    diary, _ = diaries(clusters)
    job = submit(north, diary)
    killed(daemon, step)
    daemon.until(lambda: diary.ended().total() >= 1, 60, "it runs")
    daemon.until(lambda: ends(daemon), 60, "its end is told")
    assert not north.run("squeue", "-h") and not south.run("squeue", "-h")
    assert daemon.stop() == 0
    assert diary.begun().total() == diary.ended().total() == 1
    ran = [record for one in (north, south) for record in one.jobs().values() if record["nodes"]]
    assert len(ran) == 1
    assert ends(daemon) == {f"north:{job}": "completed"}


def test_a_forged_label_moves_nothing(clusters: dict[str, Any], daemon: Federated) -> None:
    north, south = clusters.values()
    diary, _ = diaries(clusters)
    job = submit(north, diary)
    words = f"headway:movable=yes,routed=north:{job}/0123456789abcdef,came_from=north:{job}"
    held = south.submit(1, script=diary.script(1), comment=words, administrator=False)
    free = south.submit(1, script=diary.script(1), comment=words)
    daemon.start("--plugin", str(PLUGIN))
    daemon.until(lambda: diary.ended().total() == 2, 60, "the job and the forger's own run")
    daemon.until(lambda: ends(daemon), 60, "the end is told")
    assert daemon.stop() == 0
    assert south.state(held) == "CANCELLED"
    assert ends(daemon) == {f"north:{job}": "completed"} and south.state(free) == "COMPLETED"
    copy = max(south.jobs(), key=int)
    assert copy not in (held, free) and f";from=north:{job}@" in south.jobs()[copy]["admin_comment"]
