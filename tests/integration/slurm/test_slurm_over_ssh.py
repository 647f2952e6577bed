"""The Slurm adapter on a real Slurm that it reaches over a real SSH connection."""

from __future__ import annotations

import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sshd import Sshd
from waiting import limit

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome
from headway_adapters.slurm import SlurmAdapter

pytestmark = [pytest.mark.slurm, pytest.mark.sshd]

Drive = Callable[..., "Remote"]


class Remote:
    """An adapter that reaches a cluster through an SSH server, and every event that it told."""

    def __init__(self, cluster: Any, server: Sshd, **options: Any) -> None:
        settings = {
            "partitions": ["batch"], "poll_interval": 0.5, **cluster.options, "start_timeout": 5.0,
            "ssh": server.options(), **options,
        }  # fmt: skip
        self.adapter = SlurmAdapter(settings)
        self.adapter.describe()
        self.events: list[ev.Event] = []

    def until(self, kind: type[ev.Event], job_id: str, seconds: float = 30.0) -> Any:
        """Wait for an event of a kind about a job; it may have been told before."""
        end = time.time() + limit(seconds)
        while True:
            for event in self.events:
                about = getattr(event, "job_id", "")
                if isinstance(event, ev.JobSubmitted):
                    about = event.job.id
                if isinstance(event, ev.DecisionFailed):
                    about = getattr(event.decision, "job_id", "")
                if isinstance(event, kind) and about == job_id:
                    return event
            assert time.time() < end, f"no {kind.__name__} of job {job_id}; told: {self.events[-8:]}"
            moment = self.adapter.wait(time.time() + 0.5)
            assert moment is not None
            self.events += moment[1]

    def start(self, *job_ids: str) -> list[Outcome]:
        starts = [d.Start(job, ((f"node{at + 1}", 1),)) for at, job in enumerate(job_ids)]
        return list(self.adapter.apply(time.time(), starts))


@pytest.fixture
def drive(slurm_cluster: Any) -> Iterator[Drive]:
    opened: list[Remote] = []

    def begin(server: Sshd, **options: Any) -> Remote:
        opened.append(Remote(slurm_cluster, server, **options))
        return opened[-1]

    yield begin
    for remote in opened:
        remote.adapter.close()


def test_a_job_is_seen_started_and_seen_to_end(slurm_cluster: Any, sshd: Sshd, drive: Drive) -> None:
    job = slurm_cluster.submit(1, 1)
    remote = drive(sshd)
    remote.until(ev.JobSubmitted, job)
    assert [outcome.accepted for outcome in remote.start(job)] == [True]
    assert remote.until(ev.JobStarted, job).placement == (("node1", 1),)
    ended = remote.until(ev.JobEnded, job)
    assert (ended.outcome, ended.exit_code) == ("completed", 0)
    found = {check.subject: check for check in remote.adapter.check()}
    for subject in ("ssh", "slurm's commands", "slurmctld", "partition batch", "clock", "privilege"):
        assert found[subject].ok, found[subject]
    assert f"127.0.0.1:{sshd.port}" in found["ssh"].detail


def hesitating(directory: Path, commands: str, *, before: str, after: str) -> str:
    """A directory of Slurm's commands in which releasing a job takes its time."""
    directory.mkdir()
    path = commands or "/usr/bin:/usr/local/bin"
    for name in ("squeue", "sinfo", "sacct", "scancel", "sdiag", "sacctmgr"):
        (directory / name).symlink_to(str(shutil.which(name, path=path)))
    real = shutil.which("scontrol", path=path)
    script = directory / "scontrol"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *release*) ;; *) exec '
        + f'{real} "$@";; esac\n{before}\n{real} "$@"\n{after}\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(directory)


@pytest.mark.parametrize(
    ("released", "before", "after"), [(True, ":", "sleep 8"), (False, "sleep 8; exit 1", ":")]
)
def test_cut_in_the_middle_of_a_start_the_next_look_decides(
    slurm_cluster: Any, sshd_factory: Callable[..., Sshd], drive: Drive, tmp_path: Path,
    released: bool, before: str, after: str,
) -> None:  # fmt: skip
    job = slurm_cluster.submit(1, 60)
    server = sshd_factory()
    remote = drive(
        server,
        bin_dir=hesitating(tmp_path / "bin", slurm_cluster.release.commands, before=before, after=after),
    )
    remote.until(ev.JobSubmitted, job)
    threading.Timer(4.0, server.cut).start()
    (outcome,) = remote.start(job)
    assert (outcome.accepted, outcome.message) == (True, "no answer; the next look will show the result")
    if released:
        assert remote.until(ev.JobStarted, job).placement == (("node1", 1),)
    else:
        failed = remote.until(ev.DecisionFailed, job)
        assert "before it started" in failed.message or "did not start" in failed.message
        assert slurm_cluster.state(job) == "PENDING"
    assert sum(isinstance(event, ev.JobStarted) for event in remote.events) == int(released)


def test_while_the_way_is_cut_nothing_is_news(
    slurm_cluster: Any, sshd_factory: Callable[..., Sshd], drive: Drive
) -> None:
    job, later = slurm_cluster.submit(1, 60), slurm_cluster.submit(1, 60)
    server = sshd_factory()
    remote = drive(server)
    remote.until(ev.JobSubmitted, job)
    remote.start(job)
    remote.until(ev.JobStarted, job)
    told = len(remote.events)
    server.stop()
    end = time.time() + 4
    while time.time() < end:
        moment = remote.adapter.wait(time.time() + 0.5)
        assert moment is not None
        assert all(isinstance(event, ev.ClusterSilent) for event in moment[1])
    outcome = remote.start(later)[0]
    assert not outcome.accepted and "not tried" in outcome.message
    remote.until(ev.DecisionFailed, later)
    server.start()
    slurm_cluster.run("scancel", job)
    assert remote.until(ev.JobEnded, job).outcome == "cancelled"
    assert not [event for event in remote.events[told:] if isinstance(event, ev.JobSubmitted | ev.JobStarted)]
    remote.start(later)
    remote.until(ev.JobStarted, later)
