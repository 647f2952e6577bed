"""What users say of the shape of their jobs on a real PBS and a real LSF: tasks of a job of stages, in its
window, and a moldable job where no size can be changed."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_servers import BatchServer
from real_systems import Lsf, Pbs

from headway import events as ev


@pytest.fixture(
    params=[pytest.param("pbs", marks=pytest.mark.pbs), pytest.param("lsf", marks=pytest.mark.lsf)]
)
def system(request: pytest.FixtureRequest) -> Iterator[Pbs | Lsf]:
    server: BatchServer = request.getfixturevalue(f"{request.param}_server")
    with tempfile.TemporaryDirectory(prefix="hw-shapes-") as directory:
        one = Pbs(server, Path(directory)) if request.param == "pbs" else Lsf(server, Path(directory))
        yield one
        one.close()


def task(system: Pbs | Lsf, job: str, stage: int, minutes: int) -> str:
    """A task of one processor that says of what it is a part, and that it takes a little less than its
    limit."""
    words = [f"job={job}", f"stage={stage}", f"length={60 * minutes - 1}"]
    if isinstance(system, Pbs):
        return system.qsub("1:ncpus=1", "-v", f"HEADWAY={'+'.join(words)}", minutes=minutes)
    return system.bsub("-Jd", f"headway:{','.join(words)}", "-W", str(minutes), str(system.script(1)))


def test_a_job_of_stages_is_done_in_its_window(system: Pbs | Lsf) -> None:
    now = datetime.datetime.now(datetime.UTC)
    opens = (now - datetime.timedelta(minutes=5)).strftime("%H:%M")
    # The second stage is submitted first, without a dependency: headway knows which goes first.
    last = task(system, "film", 2, 2)
    first = [task(system, "film", 1, 2) for _ in range(2)]
    long = task(system, "epos", 1, 13 * 60)
    daemon = system.daemon(plugins=[{"two-phase": {"opens": opens, "length": "12h"}}, "first-fit"])
    daemon.start()
    daemon.until(lambda: last in {one.job_id for one in daemon.events(ev.JobEnded)}, what="the film is done")
    assert daemon.stop() == 0
    # The server still names jobs of others that have ended.
    mine = {last, *first, long}
    order = [one.job_id for one in daemon.events(ev.JobStarted) if one.job_id in mine]
    assert sorted(order[:2]) == sorted(first) and order[2:] == [last]
    assert system.waits(long)
    daemon.assert_replays()


@pytest.mark.pbs
@pytest.mark.parametrize("system", ["pbs"], indirect=True)
def test_a_batch_of_moldable_jobs_is_planned_and_run_on_pbs(system: Pbs) -> None:
    # Two jobs as large as all there is: A4 plans both on half of it, so both run at once.
    whole = system.nodes * system.processors
    jobs = [system.qsub(f"{whole}:ncpus=1", "-v", "HEADWAY=moldable", seconds=1, minutes=5) for _ in range(2)]
    daemon = system.daemon(plugins=[{"moldable": {"algorithm": "A4", "replan_interval": 1}}, "first-fit"])
    daemon.start()
    daemon.until(lambda: set(jobs) <= {one.job_id for one in daemon.events(ev.JobEnded)}, what="both end")
    assert daemon.stop() == 0
    sizes = {
        one.job_id: sum(count for _, count in one.placement)
        for one in daemon.events(ev.JobStarted)
        if one.job_id in jobs
    }
    assert sizes == dict.fromkeys(jobs, whole // 2)
    assert not daemon.events(ev.DecisionFailed)
    limits = {
        one.job.id: one.job.request.walltime for one in daemon.events(ev.JobChanged) if one.job.id in jobs
    }
    assert limits == dict.fromkeys(jobs, 600.0)
    daemon.assert_replays()


@pytest.mark.pbs
@pytest.mark.parametrize("system", ["pbs"], indirect=True)
def test_a_job_whose_chunks_have_several_processors_keeps_its_size_on_pbs(system: Pbs) -> None:
    jobs = [
        system.qsub(f"{system.nodes}:ncpus={system.processors}", "-v", "HEADWAY=moldable", seconds=1)
        for _ in range(2)
    ]
    daemon = system.daemon(plugins=[{"moldable": {"algorithm": "A4", "replan_interval": 1}}, "first-fit"])
    daemon.start()
    daemon.until(lambda: set(jobs) <= {one.job_id for one in daemon.events(ev.JobEnded)}, what="both end")
    assert daemon.stop() == 0
    sizes = [sum(n for _, n in one.placement) for one in daemon.events(ev.JobStarted) if one.job_id in jobs]
    assert sizes == [system.nodes * system.processors] * 2
    daemon.assert_replays()
