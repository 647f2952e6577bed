"""Jobs of one second are served in the order of their numbers, also by a daemon that was killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon

from headway.events import JobSubmitted

pytestmark = pytest.mark.slurm

ELEMENTS = 8


@pytest.fixture
def daemon(slurm_cluster: Any, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(slurm_cluster, tmp_path, plugins=["fcfs", "first-fit"])
    yield made
    made.clean_up()


def two_arrays(cluster: Any) -> list[str]:
    """Two arrays of whole nodes that were submitted in the same second, held for headway."""
    while True:
        options = {"nodes": 1, "array": f"1-{ELEMENTS}", "administrator": False}
        arrays = [cluster.submit(4, 2, **options) for _ in range(2)]
        moments = {record["submit_time"] for record in cluster.jobs().values()
                   if str(record["array_job_id"]) in arrays}  # fmt: skip
        if len(moments) == 1:
            break
        cluster.run("scancel", *arrays)
    for array in arrays:
        cluster.scontrol("update", f"JobId={array}", "Priority=0")
    return arrays


def elements(array: str) -> list[str]:
    return [f"{array}_{element}" for element in range(1, ELEMENTS + 1)]


def decided(daemon: Daemon) -> list[str]:
    """The jobs in the order in which they were started; what a kill undid is started again."""
    return list(dict.fromkeys(start.job_id for _, start in daemon.starts()))


def place(daemon: Daemon, job: str) -> int:
    """Which number in the queue `headway explain` says that a job has."""
    said = daemon.command("explain", job).stdout
    found = re.search(r"It is number (\d+) of", said)
    assert found is not None, said
    return int(found[1])


def test_a_killed_daemon_goes_on_in_the_order_that_it_had(daemon: Daemon) -> None:
    cluster = daemon.cluster
    first, second = two_arrays(cluster)
    expected = elements(first) + elements(second)
    # Slurm lists the rest of an array that has begun behind what came after it.
    for count in (1, 5, 9):
        daemon.start()
        daemon.until(lambda count=count: len(decided(daemon)) >= count, what=f"{count} have started")
        daemon.kill()
        begun = decided(daemon)
        assert begun == expected[: len(begun)]
    daemon.start()
    daemon.until(lambda: len(decided(daemon)) >= len(expected), what="all have started")
    assert daemon.stop() == 0
    assert decided(daemon) == expected
    daemon.assert_replays()


def under_way(cluster: Any, jobs: list[str]) -> list[str]:
    """Those of these jobs that run, or that Slurm may start at any moment: they are held no longer."""
    known = cluster.jobs()
    return [
        job for job in jobs
        if job in known and (
            known[job]["job_state"] == "RUNNING"
            or (known[job]["job_state"] == "PENDING" and known[job]["priority"] != 0)
        )
    ]  # fmt: skip


def test_explain_knows_the_place_in_the_queue_that_the_daemon_gives(daemon: Daemon) -> None:
    """The rest of an array of which some ran is before the array that came after it."""
    cluster = daemon.cluster
    first, second = two_arrays(cluster)
    daemon.start()
    daemon.until(lambda: len(decided(daemon)) >= 2, what="some have started")
    daemon.kill()
    cluster.until(lambda: not under_way(cluster, elements(first)), what="they are over")
    waiting = [job for job in elements(first) + elements(second) if cluster.state(job) in ("PENDING", "")]
    blocker = cluster.submit(16, 600, nodes=4, hold=False)
    cluster.until(lambda: cluster.state(blocker) == "RUNNING", what="nothing is free")
    for job in (waiting[0], waiting[-ELEMENTS - 1], waiting[-ELEMENTS], waiting[-1]):
        assert place(daemon, job) == waiting.index(job) + 1


def test_a_requeued_job_keeps_its_place_over_a_kill(daemon: Daemon) -> None:
    """Slurm states that a requeued job was submitted when it was requeued."""
    cluster = daemon.cluster
    first = cluster.submit(16, 600, nodes=4, requeue=True)
    daemon.start()
    daemon.until(lambda: cluster.state(first) == "RUNNING", what="it runs")
    second = cluster.submit(16, 1, nodes=4)
    submitted = cluster.jobs()[first]["submit_time"]
    daemon.until(lambda: second in {e.job.id for e in daemon.events(JobSubmitted)}, what="it is known")
    daemon.kill()
    cluster.scontrol("requeuehold", first)
    cluster.until(lambda: cluster.state(first) == "PENDING", what="it waits")
    assert cluster.jobs()[first]["submit_time"] > submitted
    blocker = cluster.submit(16, 600, nodes=4, hold=False)
    cluster.until(lambda: cluster.state(blocker) == "RUNNING", what="nothing is free")
    cluster.scontrol("release", first)
    # It may not begin for two minutes after a requeue, for the sake of what its nodes may still do.
    cluster.scontrol("update", f"JobId={first}", "Priority=0", "StartTime=now")
    assert [place(daemon, job) for job in (first, second)] == [1, 2]
    daemon.start()
    cluster.run("scancel", blocker)
    daemon.until(lambda: len(daemon.starts()) >= 2, what="it is started again")
    assert [start.job_id for _, start in daemon.starts()] == [first, first]
    assert daemon.stop() == 0
