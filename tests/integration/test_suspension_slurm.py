"""Preemption by suspension on a real Slurm: who is in the way waits on its nodes, and runs on afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary
from waiting import until

from headway.decisions import Resume, Suspend
from headway.events import JobRequeued, JobResumed, JobSuspended

pytestmark = pytest.mark.slurm

RULE = {"who": {"account": ["urgent"]}, "whom": {"account": ["spare"]}, "how": "suspend", "again": 0}


@pytest.fixture
def site(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """2 nodes of 2 CPUs."""
    daemon = Daemon(
        slurm_factory(nodes=2, cpus=2), tmp_path,
        plugins=["easy", "first-fit", {"preemption": {"rules": [RULE]}}],
    )  # fmt: skip
    yield daemon
    daemon.clean_up()


@pytest.fixture
def measured(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """The same where Slurm counts memory, 1,000 MB a node, and has two licences."""
    words = ("--memory", "1000", "--set", "SelectTypeParameters=CR_Core_Memory", "--set", "Licenses=matlab:2")
    daemon = Daemon(
        slurm_factory(*words, nodes=2, cpus=2), tmp_path,
        plugins=["easy", "first-fit", {"preemption": {"rules": [RULE]}}],
    )  # fmt: skip
    yield daemon
    daemon.clean_up()


class Jobs:
    """A spare job that counts on both nodes until it may end, and urgent ones that run until they may."""

    def __init__(self, site: Daemon) -> None:
        self.site, self.diary = site, Diary(site.cluster)

    def submit(self, account: str, name: str, processors: int = 4, nodes: int = 2, **more: str | int) -> str:
        """A job that runs until :meth:`let_end`, on a busy machine for many minutes."""
        over = self.diary.path.with_name(f"over-{name}")
        script = self.diary.script(f"0; while ! [ -e {over} ]; do sleep 0.1; done")
        return self.site.cluster.submit(
            processors, nodes=nodes, script=script, account=account, **{"minutes": 60, **more}
        )

    def let_end(self, name: str) -> None:
        self.diary.path.with_name(f"over-{name}").touch()

    def state(self, job: str) -> str:
        return self.site.cluster.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()

    def wait(self, job: str, state: str) -> None:
        self.site.until(lambda: self.state(job) == state, what=f"job {job} is {state}")

    def suspended(self) -> tuple[str, str]:
        """One that is suspended, and the one that runs in its place."""
        low = self.submit("spare", "low")
        self.wait(low, "RUNNING")
        high = self.submit("urgent", "high")
        self.wait(high, "RUNNING")
        assert self.state(low) == "SUSPENDED"
        return low, high

    def end_all(self, *jobs: str) -> None:
        for name in ("low", "high"):
            self.let_end(name)
        wanted = dict.fromkeys(jobs, 1)
        self.site.until(lambda: self.diary.ended() == wanted, what="all have run")
        assert self.diary.begun() == wanted


def orders(site: Daemon, job: str) -> list[str]:
    """What was decided about a job after its start."""
    return [
        type(one).__name__ for _, one in site.decisions()
        if isinstance(one, Suspend | Resume) and one.job_id == job
    ]  # fmt: skip


def good_end(site: Daemon) -> None:
    assert site.events(JobRequeued) == []
    assert site.said("a plugin failed") == []
    assert site.stop() == 0
    site.assert_replays()


def test_it_waits_on_its_nodes_and_runs_on(site: Daemon) -> None:
    jobs = Jobs(site)
    site.start()
    low, high = jobs.suspended()
    jobs.let_end("high")
    site.until(lambda: site.events(JobResumed), what="it runs on, and that is seen")
    jobs.end_all(low, high)
    assert orders(site, low) == ["Suspend", "Resume"]
    assert [len(site.events(kind)) for kind in (JobSuspended, JobResumed)] == [1, 1]
    good_end(site)


@pytest.mark.parametrize("at", ["order", "run", "end"])
def test_killed_in_the_middle(site: Daemon, at: str) -> None:
    """When the order to stop was given, while the other runs, and while nobody looks as that ends: the next
    daemon lets it run on."""
    jobs = Jobs(site)
    site.start()
    if at == "order":
        low = jobs.submit("spare", "low")
        jobs.wait(low, "RUNNING")
        high = jobs.submit("urgent", "high")
        site.until(lambda: orders(site, low) == ["Suspend"], what="it is told to stop")
    else:
        low, high = jobs.suspended()
    site.kill()
    if at == "end":
        jobs.let_end("high")
        until(lambda: jobs.diary.ended()[high] == 1, "the urgent job is over")
    site.start()
    if at != "end":
        jobs.wait(high, "RUNNING")
        assert jobs.state(low) == "SUSPENDED"
        jobs.let_end("high")
    jobs.wait(low, "RUNNING")
    jobs.end_all(low, high)
    good_end(site)


def test_what_an_administrator_suspended_is_his(site: Daemon) -> None:
    jobs = Jobs(site)
    site.start()
    low = jobs.submit("spare", "low")
    jobs.wait(low, "RUNNING")
    site.cluster.scontrol("suspend", low)
    site.until(lambda: site.events(JobSuspended), what="that is seen")
    high = jobs.submit("urgent", "high")
    site.kill()
    site.start()
    assert jobs.state(low) == "SUSPENDED" and jobs.state(high) == "PENDING"
    site.cluster.scontrol("resume", low)
    jobs.wait(high, "RUNNING")
    assert jobs.state(low) == "SUSPENDED"
    jobs.let_end("high")
    jobs.wait(low, "RUNNING")
    jobs.end_all(low, high)
    assert orders(site, low) == ["Suspend", "Resume"]
    good_end(site)


def test_it_keeps_its_memory_and_licences(measured: Daemon) -> None:
    jobs = Jobs(measured)
    measured.start()
    low = jobs.submit("spare", "low", mem="600M", licenses="matlab:2")
    jobs.wait(low, "RUNNING")
    high = jobs.submit("urgent", "high", 2, 1, mem="300M")
    jobs.wait(high, "RUNNING")
    assert jobs.state(low) == "SUSPENDED"
    # The processors of the other node are free. Who is short and needs nothing else has them.
    jobs.let_end("neither")
    memory = jobs.submit("other", "low", 1, 1, mem="600M", minutes=5)
    licence = jobs.submit("other", "low", 1, 1, mem="100M", licenses="matlab:1", minutes=5)
    neither = jobs.submit("other", "neither", 1, 1, mem="100M", minutes=5)
    measured.until(
        lambda: jobs.diary.ended()[neither] == 1, what="it has run on the processors that are lent"
    )
    assert [jobs.state(job) for job in (memory, licence)] == ["PENDING", "PENDING"]
    said = " ".join(measured.command("explain", licence).stdout.split())
    assert "It needs 1 of licence 'matlab', of which 2 of 2 are in use." in said
    said = " ".join(measured.command("explain", memory).stdout.split())
    assert f"Suspended job {low} keeps what this job also asks for: memory." in said, said
    jobs.end_all(low, high, memory, licence, neither)
    order = jobs.diary.executions()
    assert min(order[memory].begin, order[licence].begin) > order[low].end
    good_end(measured)
