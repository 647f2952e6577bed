"""Many deaths of two daemons on a real Slurm: every job starts once, and each take-over is fast.

``HEADWAY_STANDBY_ROUNDS`` and ``HEADWAY_STANDBY_SEED`` in the environment set their number and the draws.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from failing_open import filter_with
from journals import schema_of
from live_daemon import Daemon
from standby_pair import TAKE_OVER, Pair, led_since, pair
from waiting import HANG, limit, until

pytestmark = [pytest.mark.slurm, pytest.mark.both_slurms, pytest.mark.campaign]

ROUNDS = int(os.environ.get("HEADWAY_STANDBY_ROUNDS", "100"))
SEED = int(os.environ.get("HEADWAY_STANDBY_SEED", "2026"))


@pytest.fixture(params=["shared", "followed"])
def two(request: pytest.FixtureRequest, slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Pair]:
    """Behind the shipped submit filter, with which an older leader's writes are refused."""
    script = tmp_path / "job_submit.lua"
    script.write_text(filter_with(tmp_path / "no-heartbeat").replace(f'"{tmp_path}/no-heartbeat"', '""'))
    cluster = slurm_factory("--lua", str(script), "--set", "JobSubmitPlugins=lua")
    # By its comment it is seen when slurmctld has saved its state: its user holds it all along.
    cluster.submit(1, 1, administrator=False)
    if request.param == "followed":
        with pair(cluster, tmp_path, None, hold=False) as made:
            yield made
        return
    with (
        schema_of(request.getfixturevalue("postgres")) as url,
        pair(cluster, tmp_path, url, hold=False) as made,
    ):
        made.url = url  # type: ignore[attr-defined]
        yield made


class Campaign:
    """One round after the other."""

    def __init__(self, two: Pair, rng: random.Random) -> None:
        self.two, self.rng = two, rng
        self.took: list[float] = []
        self.what: Counter[str] = Counter()
        self.kinds: list[Callable[[], None]] = [
            self.kill, self.kill, self.stop, self.pause, self.pause, self.pause_the_stand_by, self.both,
            self.cut,
        ]  # fmt: skip

    # -- who is what

    def leader(self) -> Daemon:
        """The daemon that led last, and runs; waits for it."""
        found: list[Daemon] = []

        def leads() -> bool:
            self.revive()
            found[:] = [daemon for daemon in self.two.daemons if _leads(daemon)]
            return len(found) == 1

        until(leads, "one of them leads", 3 * HANG, said=self.two.said)
        return found[0]

    def revive(self) -> None:
        """As systemd does."""
        for daemon in self.two.daemons:
            if daemon.process is None or daemon.process.poll() is not None:
                daemon.process = None
                self.two.start(daemon)

    def other(self, daemon: Daemon) -> Daemon:
        return next(one for one in self.two.daemons if one is not daemon)

    # -- what happens

    def round(self) -> None:
        self.leader()
        for _ in range(3):
            self.two.submit(self.rng.choice([1, 2, 4]), round(self.rng.uniform(0.5, 3.0), 1))
        time.sleep(self.rng.uniform(0.0, 2.0))
        restarts = self.rng.random() < 0.2
        what = self.rng.choice(self.kinds)
        self.what[what.__name__] += 1
        what()
        if restarts:
            self.what["slurmctld"] += 1
            self.two.restart_slurmctld()
        self.leader()
        self.two.begins(self.two.submit(), 3 * HANG)

    def kill(self) -> None:
        leader = self.leader()
        self.taken_over(leader, leader.kill)

    def stop(self) -> None:
        leader = self.leader()
        self.taken_over(leader, leader.stop)

    def pause(self) -> None:
        """1 to 60 seconds: a leader that another has replaced meanwhile ends when it goes on."""
        leader, seconds = self.leader(), self.rng.choice([self.rng.uniform(1, 8), self.rng.uniform(8, 60)])
        began = time.time()
        runs = len(self.other(leader).said("started"))
        leader.send(signal.SIGSTOP)
        until(lambda: time.time() > began + seconds, "the pause is over", seconds + HANG)
        leader.send(signal.SIGCONT)
        if len(self.other(leader).said("started")) > runs:
            self.took.append(led_since(self.other(leader), began))
            assert leader.ended(HANG) != 0

    def pause_the_stand_by(self) -> None:
        standby = self.other(self.leader())
        standby.send(signal.SIGSTOP)
        time.sleep(self.rng.uniform(1.0, 10.0))
        standby.send(signal.SIGCONT)

    def both(self) -> None:
        for daemon in self.two.daemons:
            daemon.kill()

    def cut(self) -> None:
        """The connections between the daemons, or of both to their database."""
        url = self.two.daemons[0].config["journal"]
        if "://" not in url:
            with self.two.cut_off():
                time.sleep(self.rng.uniform(0.5, 10.0))
            return
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name like 'headway %'"
            )

    def taken_over(self, leader: Daemon, action: Callable[[], object]) -> None:
        other = self.other(leader)
        self.two.follows(other)
        runs, began = len(other.said("started")), time.time()
        action()
        other.until(lambda: len(other.said("started")) > runs, what="the stand-by leads")
        self.took.append(led_since(other, began))


def _leads(daemon: Daemon) -> bool:
    told = [entry["event"] for entry in daemon.log() if entry["event"] in ("standing by", "started")]
    return (
        bool(told) and told[-1] == "started" and daemon.process is not None and daemon.process.poll() is None
    )


def test_deaths_of_two_daemons(two: Pair) -> None:
    two.start(two.daemons[0])
    two.leads(two.daemons[0])
    two.start(two.daemons[1])
    campaign = Campaign(two, random.Random(SEED))
    for number in range(ROUNDS):
        campaign.round()
        print(number, dict(campaign.what), f"last take-over {campaign.took[-1:]}", flush=True)
    two.finish()
    took = sorted(campaign.took)
    median = took[len(took) // 2]
    print(f"{len(two.jobs)} jobs, each once; take-overs: median {median:.2f} s, last {took[-1]:.2f} s")
    assert took[-1] < limit(TAKE_OVER)
