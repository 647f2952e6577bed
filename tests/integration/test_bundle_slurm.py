"""`headway bundle` on a real Slurm, as an ordinary user: a wide job starts early, spreads, and survives."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from bundle_user import PROCESSES, Bundles, headway_for
from waiting import until

pytestmark = [
    pytest.mark.slurm,
    # The bundle's jobs run headway, and the system that 24.11 is in has no Python with its libraries.
    pytest.mark.installed_slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be an ordinary user beside Slurm's own"),
]
USER = "nobody"
SECOND = ("--set", "SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=1,bf_resolution=1")


class SlurmBundles(Bundles):
    """On a cluster that others keep busy."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        run = partial(cluster.run, user=USER)
        # Others may enter the cluster's directory, not that of the tests.
        super().__init__(
            cluster.root / "user", headway_for(USER, cluster.root, run), run, pwd.getpwnam(USER).pw_uid,
            ("--system", "slurm", "--listen", "127.0.0.1"),
        )  # fmt: skip

    def busy(self, processors: int, seconds: float) -> str:
        """Somebody else's job, with a limit of half an hour."""
        job: str = self.cluster.submit(processors, seconds, hold=False, minutes=30)
        self.cluster.until(lambda: self.cluster.state(job) == "RUNNING", what="the others run")
        return job


@pytest.fixture
def bundles(slurm_factory: Callable[..., Any]) -> Iterator[SlurmBundles]:
    made = SlurmBundles(slurm_factory(*SECOND, nodes=2, cpus=2))
    yield made
    for process in made.processes("manage"):
        process.kill()


@pytest.mark.long
def test_a_wide_job_starts_on_a_fragment_spreads_and_is_done_before_it_could_have_started(
    bundles: SlurmBundles,
) -> None:
    cluster = bundles.cluster
    long, short = 50.0, 3.0
    began = time.time()
    bundles.busy(2, long)
    some = bundles.busy(1, 300)
    bundles.hold()
    bundle = bundles.submit()
    first = bundles.until_begun(0, "it begins")
    # Four processes share the one processor that was free.
    assert len({row[3] for row in first}) == 1
    time.sleep(short)
    cluster.run("scancel", some)
    second = bundles.until_begun(1, "it spreads")
    bundles.go()
    assert len({row[3] for row in second}) == 2 and sum(row[2] for row in second) > 0
    result = bundles.done(bundle)
    elastic = time.time() - began
    assert result["exit_code"] == 0 and bundles.right
    assert bundles.run("wait", bundle).endswith("the application is complete")
    assert bundles.known(bundle)["state"]["migrations"] == 1
    # The job that the user knows tells the exit code, on one processor.
    first_job = result["placeholder"]
    cluster.until(lambda: cluster.state(first_job) == "COMPLETED", what="the original request ends")
    # The same, submitted plainly.
    for job in list(cluster.jobs()):
        cluster.run("scancel", job)
    cluster.until(
        lambda: {one["job_state"] for one in cluster.jobs().values()} <= {"CANCELLED", "COMPLETED"},
        what="all are gone",
    )
    bundles.again()
    began = time.time()
    bundles.busy(2, long)
    some = bundles.busy(1, 300)
    plain = cluster.submit(
        PROCESSES, hold=False, minutes=1, user=USER,
        script=f"for i in 0 1 2 3; do HEADWAY_PROCESSES=4 HEADWAY_PROCESS=$i HEADWAY_PROCESSOR=$i "
        f"{' '.join(bundles.command)} & done; wait",
    )  # fmt: skip
    time.sleep(short)
    cluster.run("scancel", some)
    cluster.until(lambda: cluster.state(plain) == "COMPLETED", what="the plain one is done")
    plainly = time.time() - began
    print(f"turnaround: bundle {elastic:.1f} s, plain {plainly:.1f} s")
    assert bundles.right and elastic < plainly


@pytest.mark.long
def test_the_manager_is_killed_and_the_next_command_picks_the_bundle_up(bundles: SlurmBundles) -> None:
    bundles.busy(3, 300)
    bundles.hold()
    bundle = bundles.submit()
    bundles.until_begun(0, "it begins")
    for process in bundles.processes("manage"):
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    assert not bundles.processes("manage")
    assert "picked up: " + bundle in bundles.run("resume")
    bundles.go()
    assert bundles.done(bundle)["exit_code"] == 0 and bundles.right, bundles.said()
    # Nothing was started again for that.
    assert {row[0] for row in bundles.begun()} == {0}


@pytest.mark.long
@pytest.mark.parametrize("killed", ["worker", pytest.param("subjob", marks=pytest.mark.slow)])
def test_a_worker_or_its_subjob_is_killed_and_it_goes_on_from_the_last_checkpoint(
    bundles: SlurmBundles, killed: str
) -> None:
    bundles.busy(3, 300)
    bundles.hold()
    bundle = bundles.submit("--every", "2")
    bundles.until_begun(0, "it begins")
    until(lambda: bundles.known(bundle)["state"]["saved"] > 0, "it is saved", said=bundles.said)
    subjob = bundles.known(bundle)["state"]["subjobs"][1]["job"]
    if killed == "worker":
        (worker,) = bundles.processes("worker")
        worker.send_signal(signal.SIGKILL)
    else:
        bundles.cluster.run("scancel", subjob)
    rows = bundles.until_begun(1, "it goes on")
    bundles.go()
    assert sum(row[2] for row in rows) > 0
    assert bundles.done(bundle)["exit_code"] == 0 and bundles.right, bundles.said()


@pytest.mark.long
def test_jobs_that_depend_on_the_original_request_wait_for_the_application(
    slurm_factory: Callable[..., Any],
) -> None:
    bundles = SlurmBundles(slurm_factory(*SECOND, nodes=3, cpus=2))
    cluster = bundles.cluster
    some = bundles.busy(5, 300)
    bundles.hold()
    # As planned it is complete after four times so long; its subjob lasts longer.
    bundle = bundles.submit("--time", "5", "--slack", "10")
    bundles.until_begun(0, "it begins")
    first = bundles.known(bundle)["state"]["subjobs"][0]["job"]
    after = cluster.submit(1, 0, hold=False, user=USER, dependency=f"afterok:{first}")
    until(lambda: bundles.known(bundle)["share"] == 1.0, "it should be complete", said=bundles.said)
    cluster.run("scancel", some)
    until(
        lambda: bundles.known(bundle)["state"]["subjobs"][0]["state"] == "postponed"
        and cluster.state(first) == "PENDING",
        "the original request is put back", said=bundles.said,
    )  # fmt: skip
    assert cluster.state(after) == "PENDING"
    bundles.go()
    assert bundles.done(bundle)["exit_code"] == 0 and bundles.right, bundles.said()
    for job in (first, after):
        cluster.until(lambda job=job: cluster.state(job) == "COMPLETED", what="what depends on it runs")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun (Debian's openmpi-bin)")
def test_an_application_of_mpiruns_begins_is_saved_spreads_and_is_right(
    slurm_factory: Callable[..., Any],
) -> None:
    bundles = SlurmBundles(slurm_factory(*SECOND, nodes=2, cpus=2))
    # All nodes are this machine: what mpirun wants to have run on another one is run here.
    agent, rank = bundles.base / "agent", bundles.base / "rank"
    agent.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    rank.write_text(f"#!/bin/sh\nHEADWAY_PROCESS=$OMPI_COMM_WORLD_RANK exec {' '.join(bundles.command)}\n")
    for path in (agent, rank):
        path.chmod(0o755)
    names = ("IMAGE", "RESTARTS", "PROCESSES", "PROCESSOR")
    exported = [word for name in names for word in ("-x", f"HEADWAY_{name}")]
    bundles.busy(2, 300)
    some = bundles.busy(1, 300)
    bundles.hold()
    settings = ("--mca", "plm_rsh_agent", str(agent), "--oversubscribe")
    bundle = bundles.submit(command=["mpirun", "-n", str(PROCESSES), *settings, *exported, str(rank)])
    bundles.until_begun(0, "it begins")
    bundles.cluster.run("scancel", some)
    second = bundles.until_begun(1, "it spreads")
    bundles.go()
    assert sum(row[2] for row in second) > 0, "it began from what was saved"
    assert bundles.done(bundle)["exit_code"] == 0 and bundles.right, bundles.said()


@pytest.mark.long
def test_a_cancelled_bundle_leaves_no_job_and_no_process(bundles: SlurmBundles) -> None:
    bundles.busy(3, 300)
    bundles.hold()
    bundle = bundles.submit()
    bundles.until_begun(0, "it begins")
    bundles.run("cancel", bundle)
    until(lambda: not bundles.processes(), "nothing of it runs", said=bundles.said)
    mine = [one for one in bundles.cluster.jobs().values() if one["user_name"] == USER]
    assert {one["job_state"] for one in mine} == {"CANCELLED"}
    assert bundles.done(bundle)["exit_code"] == 130
