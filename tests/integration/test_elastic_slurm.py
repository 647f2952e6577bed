"""Elastic commands, dedicated jobs and users' reservations on a real Slurm, as users give and see them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import HEADWAY, Daemon, Diary, shown
from waiting import HANG, bound

from headway import events as ev
from headway.decisions import Reserve, SetTimeLimit

pytestmark = [pytest.mark.slurm, pytest.mark.long]

#: A job's owner and somebody else; every Linux has them.
OWNER, STRANGER = "games", "nobody"
#: The command as another user, who may not be able to reach this Python: loaded first, then given away.
AS_USER = """
import os, pwd, sys
from headway import cli
from headway.config import load_config
import headway.cli.elastic, headway.cli.reserve, headway.cli.status, headway.cli.unreserve
import headway.cli.screen, headway.service.client, headway.service.protocol, rich.table
user, *words = sys.argv[1:]
load_config(words[-1])
who = pwd.getpwnam(user)
os.setgroups([]); os.setgid(who.pw_gid); os.setuid(who.pw_uid)
cli.main(words)
"""


class Site(Daemon):
    """A daemon whose configuration and socket everybody can reach."""

    def __init__(self, cluster: Any, directory: Path, *plugins: Any) -> None:
        super().__init__(
            cluster, directory, plugins=[*plugins, "easy", "first-fit"],
            service={"socket": str(cluster.root / "headway.sock")},
        )  # fmt: skip
        self.readable = cluster.root / "site.yaml"
        self.readable.write_text(self.config_path.read_text())
        self.readable.chmod(0o644)

    def ask(self, *words: str, user: str | None = None) -> tuple[int, str]:
        """One of headway's commands, given by that user: its exit code and what it said."""
        argv = [str(HEADWAY)] if user is None else [sys.executable, "-c", AS_USER, user]
        done = subprocess.run(
            [*argv, *words, "-c", str(self.readable)],
            capture_output=True, text=True, timeout=HANG, cwd="/", env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, (done.stdout + done.stderr).strip()


@pytest.fixture
def site(slurm_cluster: Any, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes the daemon of the cluster; it is gone after the test."""
    made: list[Site] = []

    def make(*plugins: Any) -> Site:
        made.append(Site(slurm_cluster, tmp_path, *plugins))
        return made[-1]

    if os.geteuid() != 0:
        pytest.skip("only root can ask as other users")
    yield make
    for daemon in made:
        daemon.clean_up()


def limit(cluster: Any, job: str) -> str:
    return shown(cluster)[job].fields["TimeLimit"]


def test_an_extension_and_a_reduction_change_the_limit_and_the_schedule_around_it(
    slurm_cluster: Any, site: Callable[..., Site]
) -> None:
    def runs(job: str) -> bool:
        return slurm_cluster.state(job) == "RUNNING"

    def waits(*jobs: str) -> bool:
        time.sleep(1.2)
        return all(slurm_cluster.state(job) == "PENDING" for job in jobs)

    long = slurm_cluster.submit(8, 300, nodes=2, minutes=5, user=OWNER)
    daemon = site("elastic")
    daemon.start()
    daemon.until(lambda: runs(long), what="the long job runs")
    slurm_cluster.submit(16, 300, nodes=4, minutes=20)
    medium = slurm_cluster.submit(4, 300, nodes=1, minutes=7)
    longest = slurm_cluster.submit(4, 300, nodes=1, minutes=30, user=OWNER)
    daemon.until(lambda: len(daemon.events(ev.JobSubmitted)) == 4)
    # Both would run into the start of the one that needs all nodes.
    assert waits(medium, longest)

    code, said = daemon.ask("elastic", long, "--extend", "5m", user=STRANGER)
    assert code == 1 and "refused" in said
    assert limit(slurm_cluster, long) == "00:05:00"
    code, said = daemon.ask("elastic", long, "--extend", "5m", user=OWNER)
    assert code == 0 and said.startswith("accepted: ")
    assert limit(slurm_cluster, long) == "00:10:00"
    daemon.until(lambda: runs(medium), what="a job is backfilled before the later end")
    assert waits(longest)

    code, said = daemon.ask("elastic", longest, "--reduce", "22m", user=OWNER)
    assert code == 0 and said.startswith("accepted: ")
    assert limit(slurm_cluster, longest) == "00:08:00"
    daemon.until(lambda: runs(longest), what="the reduced job is backfilled")

    # A running job's limit goes down, and all of this is known from Slurm, not only hoped for.
    assert daemon.ask("elastic", long, "--reduce", "2m")[0] == 0
    assert limit(slurm_cluster, long) == "00:08:00"

    def changed() -> list[tuple[str, float]]:
        return [(e.job.id, e.job.request.walltime) for e in daemon.events(ev.JobChanged)]

    daemon.until(lambda: {(long, 600.0), (longest, 480.0), (long, 480.0)} <= set(changed()))
    assert daemon.ask("elastic", long, "--reduce", "8m", user=OWNER)[0] == 0
    daemon.until(lambda: slurm_cluster.state(long) in ("CANCELLED", "COMPLETING"), what="it ends now")

    for words, reason in (
        (("99999", "--extend", "5m"), "unknown"),
        ((medium, "--grow", "4"), "refused"),
        ((medium, "--shrink", "1"), "malleable"),
    ):
        code, said = daemon.ask("elastic", *words)
        assert code == 1 and reason in said
    code, said = daemon.ask("status", user=STRANGER)
    assert code == 0 and "mode drive" in said and "batch" in said
    assert daemon.stop() == 0
    assert code == 0 and not daemon.said("plugin failed")
    decided = [d for _, d in daemon.decisions() if isinstance(d, SetTimeLimit)]
    assert [(d.job_id, d.walltime) for d in decided] == [(long, 600), (longest, 480), (long, 480)]
    daemon.assert_replays()
    assert not (slurm_cluster.root / "headway.sock").exists()


def test_a_malleable_job_gives_whole_nodes_back(slurm_cluster: Any, site: Callable[..., Site]) -> None:
    job = slurm_cluster.submit(12, 300, nodes=3, user=OWNER, comment="headway:malleable", exclusive=True)
    daemon = site("elastic")
    daemon.start()
    daemon.until(lambda: slurm_cluster.state(job) == "RUNNING")
    waiting = slurm_cluster.submit(8, 300, nodes=2)
    daemon.until(lambda: len(daemon.events(ev.JobSubmitted)) == 2)
    daemon.until(lambda: daemon.events(ev.JobStarted))
    code, said = daemon.ask("elastic", job, "--shrink", "2", user=OWNER)
    assert code == 1 and "whole nodes" in said
    # With the size, the longer time on fewer processors is taken back.
    daemon.until(lambda: limit(slurm_cluster, job) == "00:05:00")
    code, said = daemon.ask("elastic", job, "--shrink", "4", user=OWNER)
    assert code == 0, said
    daemon.until(lambda: len(shown(slurm_cluster)[job].processors) == 2, what="it has two nodes")
    daemon.until(lambda: slurm_cluster.state(waiting) == "RUNNING", what="the freed node is used")
    assert daemon.stop() == 0
    daemon.assert_replays()


def test_a_dedicated_job_starts_at_its_second_among_backfilled_jobs(
    slurm_cluster: Any, site: Callable[..., Site]
) -> None:
    diary = Diary(slurm_cluster)
    daemon = site("dedicated", "elastic")
    daemon.start()
    # Time for jobs of a minute before it, however long the machine takes to submit them.
    begin = int(time.time() + bound(75.0))
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(begin))
    dedicated = slurm_cluster.submit(
        16, nodes=4, minutes=1, script=diary.script(2), begin=at, comment="headway:dedicated"
    )
    short = [slurm_cluster.submit(4, nodes=1, minutes=1, script=diary.script(s)) for s in (45, 2, 3, 2)]
    long = [slurm_cluster.submit(4, nodes=1, minutes=5, script=diary.script(1)) for _ in range(2)]
    daemon.until(lambda: set(short) <= set(diary.begun()), 8, "the short jobs are backfilled")
    code, said = daemon.ask("elastic", short[0], "--extend", "5m")
    assert code == 1 and f"dedicated job {dedicated}" in said
    assert limit(slurm_cluster, short[0]) == "00:01:00"
    # Three nodes are free, but not for five minutes.
    daemon.until(lambda: set(short[1:]) <= set(diary.ended()))
    assert not set(long) & set(diary.begun())

    daemon.until(lambda: dedicated in diary.begun(), what="the dedicated job starts")
    daemon.until(lambda: set(long) <= set(diary.ended()), what="the others follow")
    assert daemon.stop() == 0
    (decided,) = [now for now, start in daemon.starts() if start.job_id == dedicated]
    assert 0 <= decided - begin < bound(0.5)
    began = diary.executions()[dedicated].begin
    # What remains is Slurm's own delay: it looks for released jobs once a second.
    assert 0 <= began - begin < bound(3.0)
    assert all(diary.executions()[job].begin > began for job in long)
    daemon.assert_replays()


def test_a_users_reservation_is_made_respected_kept_and_removed(
    slurm_cluster: Any, site: Callable[..., Site]
) -> None:
    diary = Diary(slurm_cluster)
    daemon = site({"reservations": {"limits": {"max_nodes": 2, "max_reservations": 1}}})
    daemon.start()

    def reservations() -> str:
        return slurm_cluster.run("scontrol", "-o", "show", "reservation", check=False)

    code, said = daemon.ask("reserve", "--at", "now", "--for", "10m", "--nodes", "3", user=OWNER)
    assert code == 1 and "3 nodes asked for" in said
    code, said = daemon.ask("reserve", "--at", "now", "--for", "10m", "--nodes", "2", user=OWNER)
    assert code == 0 and "reservation r1: node1, node2" in said
    assert "ReservationName=headway_r1" in reservations() and f"Users={OWNER}" in reservations()
    code, said = daemon.ask("reserve", "--at", "+1h", "--for", "10m", "--nodes", "1", user=OWNER)
    assert code == 1 and "1 are allowed" in said

    three = [slurm_cluster.submit(4, nodes=1, minutes=3, script=diary.script(100)) for _ in range(3)]
    inside = slurm_cluster.submit(
        8, nodes=2, user=OWNER, minutes=1, script="sleep 2", reservation="headway_r1"
    )
    daemon.until(lambda: slurm_cluster.state(inside) in ("RUNNING", "COMPLETED"), what="its user's job runs")
    daemon.until(lambda: set(three[:2]) <= set(diary.begun()), what="two others run beside it")
    assert set(shown(slurm_cluster)[inside].processors) == {"node1", "node2"}
    daemon.until(lambda: slurm_cluster.state(inside) == "COMPLETED")
    daemon.until(lambda: {e.job_id for e in daemon.events(ev.JobEnded)} == {inside})
    time.sleep(1.0)
    assert slurm_cluster.state(three[2]) == "PENDING"

    # What it promised survives its own crash, and an operator's mistake.
    daemon.kill()
    daemon.start()
    slurm_cluster.scontrol("delete", "ReservationName=headway_r1")
    daemon.until(lambda: "ReservationName=headway_r1" in reservations(), what="it is made again")
    assert slurm_cluster.state(three[2]) == "PENDING"
    assert len([d for _, d in daemon.decisions() if isinstance(d, Reserve)]) == 2

    code, said = daemon.ask("unreserve", "r1", user=STRANGER)
    assert code == 1 and "belongs to another user" in said
    code, said = daemon.ask("unreserve", "r1", user=OWNER)
    assert code == 0, said
    assert "headway_r1" not in reservations()
    daemon.until(lambda: slurm_cluster.state(three[2]) == "RUNNING", what="its nodes are free again")
    assert daemon.stop() == 0
    daemon.assert_replays()
