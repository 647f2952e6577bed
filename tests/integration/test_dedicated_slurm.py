"""Dedicated jobs' advance reservations on a real Slurm: made, kept, entered, moved, removed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary, shown
from waiting import bound

from headway import events as ev
from headway.decisions import Reserve, Unreserve

pytestmark = [pytest.mark.slurm, pytest.mark.long]

OWNER = "games"


@pytest.fixture
def headway(slurm_cluster: Any, tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Makes the cluster's daemon; it is gone after the test."""
    made: list[Daemon] = []

    def make(*plugins: Any) -> Daemon:
        socket = str(slurm_cluster.root / "headway.sock")
        daemon = Daemon(
            slurm_cluster, tmp_path, plugins=[*plugins, "easy", "first-fit"], service={"socket": socket}
        )
        made.append(daemon)
        return daemon

    yield make
    for daemon in made:
        daemon.clean_up()


def local(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment))


def reservation(cluster: Any, job: str) -> dict[str, str]:
    """What Slurm shows of the job's reservation; empty if there is none."""
    for line in cluster.run("scontrol", "-o", "show", "reservation", check=False).splitlines():
        fields = dict(re.findall(r"(\S+?)=(\S*)", line))
        if fields.get("ReservationName") == f"headway_job_{job}":
            return fields
    return {}


def test_a_dedicated_job_starts_at_its_second_inside_a_reservation_that_is_kept(
    slurm_cluster: Any, headway: Callable[..., Daemon]
) -> None:
    diary = Diary(slurm_cluster)
    over = slurm_cluster.root / "over"
    until_over = diary.script(f"0.1; until [ -e {over} ]; do sleep 0.1; done")
    # Time for jobs of a minute before it, however long the machine takes to submit them.
    begin = int(time.time() + bound(75.0))
    dedicated = slurm_cluster.submit(
        8, nodes=2, minutes=1, script=until_over, begin=local(begin), comment="headway:dedicated",
        user=OWNER, exclusive=True,
    )  # fmt: skip
    short = [slurm_cluster.submit(4, nodes=1, minutes=1, script=diary.script(s)) for s in (2, 3, 2, 3)]
    daemon = headway("dedicated", "elastic")
    daemon.start()
    daemon.until(lambda: reservation(slurm_cluster, dedicated), 8, "its reservation is made")
    made = reservation(slurm_cluster, dedicated)
    assert made["StartTime"] == local(begin + 10) and made["EndTime"] == local(begin + 60)
    assert made["Users"] == OWNER and made["NodeCnt"] == "2" and "FLEX" in made["Flags"]
    daemon.until(lambda: set(short) <= set(diary.begun()), 8, "short jobs are backfilled on all nodes")

    # Lost by an operator's mistake, and changed by one.
    slurm_cluster.scontrol("delete", f"ReservationName=headway_job_{dedicated}")
    daemon.until(lambda: reservation(slurm_cluster, dedicated), 8, "it is made again")
    assert any("lost" in entry["reason"] for entry in daemon.said("decided"))
    name = f"ReservationName=headway_job_{dedicated}"
    slurm_cluster.scontrol("update", name, f"StartTime={local(begin + 3000)}", "Duration=60")
    daemon.until(lambda: reservation(slurm_cluster, dedicated)["StartTime"] == local(begin + 10), 8)
    assert any("another program or user changed" in entry["reason"] for entry in daemon.said("decided"))

    # It survives headway's crash, and an extension of the waiting job moves its end.
    daemon.kill()
    daemon.start()
    done = daemon.command("elastic", dedicated, "--extend", "1m")
    assert done.returncode == 0, done.stdout + done.stderr
    daemon.until(lambda: reservation(slurm_cluster, dedicated)["EndTime"] == local(begin + 120), 8)
    assert shown(slurm_cluster)[dedicated].fields["TimeLimit"] == "00:02:00"
    long = [slurm_cluster.submit(4, nodes=1, minutes=20, script=diary.script(300)) for _ in range(4)]
    daemon.until(lambda: len(set(long) & set(diary.begun())) == 2, what="two run beside its nodes")

    daemon.until(lambda: dedicated in diary.begun(), what="the dedicated job starts")
    assert 0 <= float(next(at for what, job, at in diary.lines() if job == dedicated)) - begin < bound(3.0)
    assert "Reservation=headway_job_" in slurm_cluster.scontrol("-o", "show", "job", dedicated)

    # While it runs its reservation follows it; after it, it is gone.
    daemon.until(
        lambda: dedicated in {e.job_id for e in daemon.events(ev.JobStarted)}, what="headway sees it run"
    )
    done = daemon.command("elastic", dedicated, "--extend", "2m")
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown(slurm_cluster)[dedicated].fields["TimeLimit"] == "00:04:00"
    ends = shown(slurm_cluster)[dedicated].fields["EndTime"]
    daemon.until(lambda: reservation(slurm_cluster, dedicated).get("EndTime") == ends, 6)
    over.touch()
    daemon.until(lambda: dedicated in diary.ended(), what="the dedicated job ends")
    daemon.until(lambda: not reservation(slurm_cluster, dedicated), 8, "its reservation is gone")

    assert daemon.stop() == 0
    assert not daemon.said("plugin failed") and not daemon.said("slurm refused")
    (decided,) = [now for now, start in daemon.starts() if start.job_id == dedicated]
    assert 0 <= decided - begin < bound(0.5)
    decisions = [decision for _, decision in daemon.decisions()]
    assert len([d for d in decisions if isinstance(d, Reserve)]) == 5
    assert len([d for d in decisions if isinstance(d, Unreserve)]) == 1
    assert not daemon.events(ev.DecisionFailed)
    daemon.assert_replays()


def test_its_nodes_are_kept_from_slurms_own_scheduling_and_follow_its_booking(
    slurm_factory: Callable[..., Any], tmp_path: Path
) -> None:
    cluster = slurm_factory(
        "--line", "PartitionName=batch Nodes=ALL Default=YES State=UP",
        "--line", "PartitionName=theirs Nodes=ALL State=UP", nodes=3,
    )  # fmt: skip
    # Time for what comes before it, however long the machine takes for that.
    begin = int(time.time() + bound(40.0))
    dedicated = cluster.submit(
        8,
        300,
        nodes=2,
        minutes=3,
        begin=local(begin),
        comment="headway:dedicated",
        user=OWNER,
        exclusive=True,
    )
    daemon = Daemon(cluster, tmp_path, plugins=["dedicated", "easy", "first-fit"])
    try:
        daemon.start()

        def nodes() -> str:
            return reservation(cluster, dedicated).get("Nodes", "")

        daemon.until(lambda: nodes() == "node[1-2]", 8, "its reservation is made")
        cluster.scontrol("update", "NodeName=node1", "State=DRAIN", "Reason=test")
        daemon.until(lambda: nodes() == "node[2-3]", 8, "it moves when a node goes down")
        cluster.scontrol("update", "NodeName=node1", "State=RESUME")
        theirs = [
            cluster.submit(4, 300, nodes=1, hold=False, partition="theirs", exclusive=True) for _ in range(3)
        ]

        def running() -> list[str]:
            return [job for job in theirs if cluster.state(job) == "RUNNING"]

        daemon.until(running, what="Slurm starts another partition's job")
        daemon.until(lambda: cluster.state(dedicated) == "RUNNING", what="it starts")
        assert len(running()) == 1
        assert shown(cluster)[dedicated].fields["NodeList"] == "node[2-3]"

        # It goes back to the queue, where Slurm keeps it for two minutes: so does its reservation.
        daemon.until(
            lambda: dedicated in {e.job_id for e in daemon.events(ev.JobStarted)}, what="headway sees it"
        )
        cluster.scontrol("requeue", dedicated)
        daemon.until(lambda: daemon.events(ev.JobRequeued), what="its requeuing is seen")

        def kept_again() -> bool:
            return reservation(cluster, dedicated).get("StartTime", "") > local(begin + 100)

        daemon.until(kept_again, 30, "its reservation is made for the time when it may start again")
        assert len(running()) == 1
        cluster.run("scancel", dedicated)
        daemon.until(lambda: not reservation(cluster, dedicated), 15, "its reservation goes with it")
        daemon.until(lambda: len(running()) == 3, what="Slurm has the nodes")

        assert not daemon.said("slurm refused") and not daemon.said("inconsistent")
        assert daemon.stop() == 0
        daemon.assert_replays()
    finally:
        daemon.clean_up()


def test_a_group_under_hybrid_los_starts_together_and_a_start_in_the_past_is_due_at_once(
    slurm_cluster: Any, tmp_path: Path
) -> None:
    diary = Diary(slurm_cluster)
    begin = int(time.time()) + 30

    def submit(at: float, nodes: int) -> str:
        return slurm_cluster.submit(
            4 * nodes, nodes=nodes, minutes=1, script=diary.script(4), begin=local(at),
            comment="headway:dedicated", exclusive=True,
        )  # fmt: skip

    group = [submit(begin, 2), submit(begin, 1), submit(begin, 1)]
    past = submit(begin - 86400, 4)
    daemon = Daemon(slurm_cluster, tmp_path, plugins=["hybrid-los", "first-fit"])
    try:
        daemon.start()
        daemon.until(lambda: past in diary.begun(), 8, "the one that is due starts")
        daemon.until(
            lambda: all(reservation(slurm_cluster, job) for job in group), 15, "the group is reserved for"
        )
        batch = slurm_cluster.submit(4, nodes=1, minutes=5, script=diary.script(1))
        daemon.until(lambda: set(group) <= set(diary.begun()), what="the group starts")
        begun = [float(at) for what, job, at in diary.lines() if what == "begin" and job in group]
        late = bound(3.0)
        assert all(0 <= at - begin < late for at in begun)
        daemon.until(lambda: batch in diary.ended(), 15, "the batch job follows")
        daemon.until(lambda: not any(reservation(slurm_cluster, job) for job in group), 8)
        assert daemon.stop() == 0
        assert not daemon.said("slurm refused") and not daemon.said("plugin failed")
        daemon.assert_replays()
    finally:
        daemon.clean_up()
