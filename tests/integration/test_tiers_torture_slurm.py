"""Tiers and moves through SIGKILLs of daemon and agent at random moments, on a real Slurm.

A job counts and saves itself; it is moved from node to node again and again, beside others in both tiers.
Whatever is killed when: it is never there twice, never lost, and counts to the end.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_tiers_slurm import COUNTER, PARTITIONS, NodeAgent, images, node_agent, site, spinner
from waiting import until

from headway import events as ev

__all__ = ["images", "node_agent", "site"]

pytestmark = [
    pytest.mark.slurm, pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="an agent for all users is root"),
]  # fmt: skip

WANDERER = '''
from headway.plugins import Traits
from headway.decisions import Migrate
from headway.events import JobMigrated
from headway.hookspecs import Plugin, hookimpl

OTHER = {"node1": "node2", "node2": "node1"}


class Wanderer(Plugin):
    """Moves each job whose name is `wanders` to the other node, a second after it came, for 20 s of a daemon
    and until a move came to its end.

    That is longer than daemons live while they are killed. A job that is moved all the time hardly
    counts: what it counts between saving itself and leaving is lost."""

    traits = Traits(needs=(Migrate,))
    began = None
    moved = False

    @hookimpl
    def observe(self, event):
        self.moved = self.moved or isinstance(event, JobMigrated)

    @hookimpl
    def control(self, state):
        self.began = state.now if self.began is None else self.began
        if self.moved and state.now > self.began + 20.0:
            return
        for job in list(state.jobs.values()):
            if job.description.name != "wanders" or job.status.value != "running" or not job.placement:
                continue
            if job.id in state.before_move:
                continue
            if state.now < job.start_time + 1.0:
                state.wake_at(job.start_time + 1.0, job.pool)
                continue
            node, count = job.placement[0]
            yield Migrate(job.id, ((OTHER[node], count),), "on and on")
'''


def campaign(
    slurm_factory: Callable[..., Any], site: Any, images: Path, agent: NodeAgent, kills: int, seed: int
) -> None:
    draw = random.Random(seed)
    cluster = slurm_factory(*PARTITIONS, nodes=2, cpus=2)
    program = images.parent / "counter.py"
    program.write_text(COUNTER)
    plugin = images.parent / "wanderer.py"
    plugin.write_text(WANDERER)
    saves = {"checkpoint-signal": {"directory": str(images), "spare": 0, "timeout": 30}}
    reasy = {"reasy": {"cpu_known": False}}
    daemon = site(cluster, [reasy, "first-fit", saves])
    goal = 60 + 100 * kills
    counts = f"exec {cluster.release.python} {program} {goal} {images} {images}/may-end"
    wanders = cluster.submit(1, script=counts, requeue=True, job_name="wanders", minutes=120)
    # One processor stays free to move to; who needs two is in the background.
    spins = spinner(cluster.release.python, images)
    beside = [cluster.submit(size, script=spins, minutes=120) for size in (1, 1, 2)]
    daemon.start("--plugin", str(plugin))
    daemon.until(lambda: cluster.state(wanders) == "RUNNING", what="it runs")
    done = images / f"done.{wanders}"
    for _ in range(kills):
        time.sleep(draw.uniform(0.2, 3.0))
        if draw.random() < 0.5:
            agent.stop(signal.SIGKILL)
            agent.start()
        else:
            daemon.kill()
            time.sleep(draw.uniform(0.0, 1.0))
            daemon.start("--plugin", str(plugin))
    daemon.until(lambda: daemon.events(ev.JobMigrated), 300.0, what="a move comes to its end")
    (images / "may-end").touch()
    # Its steps take a tenth of a second each, and several times that where others have the processors.
    # Slurm keeps a job that was requeued from starting for two minutes, if nobody says otherwise.
    until(done.exists, "it counts to the end", 300.0 + 0.4 * goal, said=daemon.log_path.read_text)
    assert done.read_text() == str(goal)
    # A move may have begun before that, and send it back while it ends: then it comes to its end again.
    daemon.until(lambda: cluster.state(wanders) == "COMPLETED", 300.0, "Slurm knows its end")
    # Every execution begins where an earlier one had saved itself, and no two count at once.
    begun = [line.split() for line in (images / f"begun.{wanders}").read_text().splitlines()]
    numbers = [int(number) for number, _ in begun]
    assert numbers == sorted(numbers)
    shown = cluster.jobs()[wanders]
    assert shown["restart_cnt"] == len(begun) - 1
    moved = [one for one in daemon.events(ev.JobMigrated) if one.job_id == wanders]
    assert moved, "it was never moved"
    for job in beside:
        cluster.run("scancel", job)
    daemon.until(lambda: all(cluster.state(job) == "CANCELLED" for job in beside), what="the others end")
    daemon.stop()
    daemon.assert_replays(plugin)


def test_three_kills(
    slurm_factory: Callable[..., Any], site: Any, images: Path, node_agent: NodeAgent
) -> None:
    campaign(slurm_factory, site, images, node_agent, 3, 1)


@pytest.mark.campaign
def test_fifty_kills(
    slurm_factory: Callable[..., Any], site: Any, images: Path, node_agent: NodeAgent
) -> None:
    campaign(slurm_factory, site, images, node_agent, 50, 2)
