"""``follow`` between two real Slurms: what runs is saved, goes and goes on; each job ends once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from following import Following, Worker, kept, prices

from headway import decisions as d
from headway import events as ev

pytestmark = [pytest.mark.slurm, pytest.mark.installed_slurm]

MOVABLE = "headway:movable=yes,checkpoint"


@pytest.fixture
def clusters(slurm_factory: Callable[..., Any]) -> dict[str, Any]:
    return {name: slurm_factory("--name", name, nodes=1, cpus=2) for name in ("north", "south")}


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)


Made = Callable[..., Following]


@pytest.fixture
def follow(clusters: dict[str, Any], tmp_path: Path, worker: Worker) -> Iterator[Made]:
    made: list[Following] = []

    def make(options: dict[str, Any], **more: Any) -> Following:
        made.append(Following(clusters, tmp_path, worker, options, **more))
        return made[-1]

    yield make
    for one in made:
        one.clean_up()


def by_price(directory: Path, after: float) -> dict[str, Any]:
    """North becomes dear so many seconds from now."""
    north = prices(directory, "north", (-60, 0.1), (after, 5.0))
    return {
        "by": ["load"], "gain": 60, "price": {"north": north, "south": 0.2}, "leave_above": 1.0,
        "when": "adaptive", "linger": [1, 2], "every": 5, "most_lost": 0,
    }  # fmt: skip


def test_what_runs_is_saved_goes_and_goes_on_where_it_is_cheap(
    clusters: dict[str, Any], worker: Worker, follow: Made, tmp_path: Path
) -> None:
    north, south = clusters.values()
    running = north.submit(2, script=worker.script(80), comment=MOVABLE)
    waiting = north.submit(2, script=worker.script(2), comment=MOVABLE)
    daemon = follow(by_price(tmp_path, 15))
    daemon.start()
    daemon.until(lambda: len(worker.lines("end")) == 2, 120, "both end")
    daemon.until(lambda: daemon.ends().total() == 2, 60, "both ends are told")
    assert daemon.stop() == 0
    assert daemon.ends() == {(f"north:{running}", "completed"): 1, (f"north:{waiting}", "completed"): 1}
    assert worker.lines("begin")[0] == ("north", running, 0)
    begins = {(cluster, job): step for cluster, job, step in worker.lines("begin")}
    copies = [one for one in south.jobs().values() if f";from=north:{running}@" in one["admin_comment"]]
    (copy,) = (str(one["job_id"]) for one in copies)
    assert begins["south", copy] == worker.saved("north", running)
    assert kept(worker, "south", copy)["files"] == kept(worker, "north", running)["files"]
    about = [one for _, one in daemon.decisions() if getattr(one, "job_id", "") == f"north:{running}"]
    assert [type(one) for one in about] == [d.Start, d.Checkpoint, d.Requeue, d.Route, d.Start]
    assert [event.job_id for event in daemon.events(ev.JobCheckpointed)] == [f"north:{running}"]
    daemon.assert_replays()


@pytest.mark.slow
def test_what_waits_and_what_runs_leaves_a_site_that_closes(
    clusters: dict[str, Any], worker: Worker, follow: Made
) -> None:
    north, _ = clusters.values()
    closes = time.time() + 75
    begin, end = (time.strftime("%H:%M", time.gmtime(at)) for at in (closes - 12 * 3600, closes))
    running = north.submit(2, script=worker.script(450), comment=MOVABLE, minutes=4)
    waiting = north.submit(2, script=worker.script(2), comment=MOVABLE, minutes=4)
    daemon = follow(
        {"by": ["calendar"], "when": "adaptive", "linger": [1, 2], "every": 5, "most_lost": 0},
        sites={"north": {"calendar": [f"mon-sun {begin}-{end}"]}},
    )
    daemon.start()
    daemon.until(lambda: len(worker.lines("end")) == 2, 300, "both end")
    daemon.until(lambda: daemon.ends().total() == 2, 60, "both ends are told")
    assert daemon.stop() == 0
    assert daemon.ends() == {(f"north:{running}", "completed"): 1, (f"north:{waiting}", "completed"): 1}
    assert [cluster for cluster, _, _ in worker.lines("begin")] == ["north", "south", "south"]
    reasons = [one.reason for _, one in daemon.decisions() if isinstance(one, d.Requeue)]
    assert reasons and all(reason.startswith("north is closed") for reason in reasons)
    assert max(step for _, _, step in worker.lines("begin")) == worker.saved("north", running) > 10


HERE = Path(__file__).parent
#: Places on the way of a running job to another cluster, and when the daemon is killed there.
PLACES = ("save", "saved", "requeue", "carry", "mark", "commit", "seal", "cancel the original", "settle")


@pytest.mark.parametrize("place", ["carry before", *(
    pytest.param(f"{place} {when}", marks=pytest.mark.slow)
    for place in PLACES for when in ("before", "after") if (place, when) != ("carry", "before")
)])  # fmt: skip
def test_a_running_job_ends_once_although_the_daemon_is_killed_on_its_way(
    clusters: dict[str, Any], worker: Worker, follow: Made, tmp_path: Path, place: str
) -> None:
    north, south = clusters.values()
    job = north.submit(2, script=worker.script(60), comment=MOVABLE)
    daemon = follow(by_price(tmp_path, 6))
    daemon.program = [sys.executable, str(HERE / "killed_following.py")]
    os.environ["KILL_AT"] = place
    try:
        daemon.start(await_log=False)
    finally:
        del os.environ["KILL_AT"]
    assert daemon.ended(90) == -9
    daemon.start()
    daemon.until(lambda: worker.lines("end"), 120, "it ends")
    daemon.until(daemon.ends, 60, "its end is told")
    assert daemon.stop() == 0
    assert not north.run("squeue", "-h") and not south.run("squeue", "-h")
    assert daemon.ends() == {(f"north:{job}", "completed"): 1}
    assert len(worker.lines("end")) == 1
    # It went on from what was saved, and each execution began where it was sent.
    begun = worker.lines("begin")
    assert [cluster for cluster, _, _ in begun] == ["north", "south"], begun
    assert begun[0] == ("north", job, 0) and begun[1][2] == worker.saved("north", job)


def test_a_job_that_is_not_saved_in_time_runs_on_and_its_operator_is_told(
    clusters: dict[str, Any], worker: Worker, follow: Made, tmp_path: Path
) -> None:
    north, south = clusters.values()
    job = north.submit(2, script=worker.script(100, saves=":"), comment=MOVABLE)
    daemon = follow({**by_price(tmp_path, 6), "when": "immediate"}, timeout=2)
    daemon.start()
    daemon.until(lambda: daemon.said("a move is over"), 60, "its move is over")
    (over,) = daemon.said("a move is over")
    assert (over["cluster"], over["outcome"], over["level"]) == ("north", "stayed", "warning")
    explained = " ".join(daemon.command("explain", f"north:{job}").stdout.split())
    assert "It does not leave its site: north is too dear" in explained, explained
    assert "no handler saved it:" in explained and "is not there, or older than the request" in explained
    daemon.until(daemon.ends, 90, "its end is told")
    assert daemon.stop() == 0
    assert daemon.ends() == {(f"north:{job}", "completed"): 1}
    assert [line[0] for line in worker.lines("begin")] == ["north"] and not south.jobs()


def test_a_cluster_that_is_gone_in_the_middle_is_named_and_its_job_goes_on(
    clusters: dict[str, Any], worker: Worker, follow: Made, tmp_path: Path
) -> None:
    north, south = clusters.values()
    job = north.submit(2, script=worker.script(60), comment=MOVABLE)
    daemon = follow(by_price(tmp_path, 6))
    daemon.start()
    daemon.until(lambda: any(one["step"] == "mark" for one in daemon.said("a job between clusters")), 60,
                 "its copy is marked")  # fmt: skip
    south.kill("slurmctld", "STOP")
    stuck = "jobs between clusters that do not go on"
    daemon.until(lambda: stuck in daemon.command("status").stdout, 60, "its operator is told")
    assert "south" in daemon.command("status").stdout
    assert not daemon.ends()
    south.kill("slurmctld", "CONT")
    daemon.until(lambda: worker.lines("end"), 120, "it ends")
    daemon.until(daemon.ends, 60, "its end is told")
    assert daemon.stop() == 0
    assert daemon.ends() == {(f"north:{job}", "completed"): 1} and len(worker.lines("end")) == 1
    assert [cluster for cluster, _, _ in worker.lines("begin")] == ["north", "south"]
