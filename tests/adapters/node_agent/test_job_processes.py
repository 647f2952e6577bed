"""A job's processes are found through their control group, or their environment."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest
from waiting import limit

from headway_adapters.node_agent.processes import JobUse, find, jobs_here, names_of

SLURM = {"SLURM_JOB_ID": "12"}
ARRAY = {"SLURM_JOB_ID": "13", "SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "3"}


@pytest.mark.parametrize(
    ("cgroup", "environment", "names"),
    [
        ("0::/user.slice", {}, ()),
        ("0::/user.slice", SLURM, ("12",)),
        ("0::/user.slice", ARRAY, ("10_3", "13")),
        ("0::/user.slice", {"PBS_JOBID": "7.server"}, ("7.server", "7")),
        ("0::/user.slice", {"PBS_JOBID": "7[2].server"}, ("7[2].server", "7[2]")),
        ("0::/user.slice", {"LSB_JOBID": "5", "LSB_JOBINDEX": "0"}, ("5",)),
        ("0::/user.slice", {"LSB_JOBID": "5", "LSB_JOBINDEX": "4"}, ("5[4]",)),
        ("0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0", {}, ("12",)),
        ("9:cpuset:/slurm/uid_1000/job_12/step_batch\n0::/", {}, ("12",)),
        ("5:cpuset:/pbs_jobs.service/jobid/7.server", {}, ("7.server", "7")),
        ("0::/lsf/cluster1/job.5.1722.1700000000", {}, ("5",)),
        ("0::/system.slice/slurmstepd.scope/job_13/step_0", ARRAY, ("10_3", "13")),
    ],
)
def test_names_of_a_process(cgroup, environment, names):
    assert names_of(cgroup, environment) == names


def test_what_a_user_writes_into_an_environment_does_not_count_against_the_control_group():
    assert names_of("0::/slurmstepd.scope/job_99/step_0", ARRAY) == ("99",)


@pytest.fixture
def process():
    """Starts Python programs with an environment; they end with the test."""
    started: list[subprocess.Popen] = []

    def start(program: str = "import time; time.sleep(60)", **environment: str) -> psutil.Process:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PBS_", "LSB_"))}
        child = subprocess.Popen([sys.executable, "-c", program], env={**clean, **environment})
        started.append(child)
        found = psutil.Process(child.pid)
        # The kernel lets the parent go on a moment before the child's new environment can be read.
        until = time.monotonic() + limit()
        while not found.environ() and time.monotonic() < until:
            time.sleep(0.01)
        return found

    yield start
    for child in started:
        child.kill()
        child.wait()


def test_processes_of_one_job_are_one(process):
    both = [process(SLURM_JOB_ID="12"), process(SLURM_JOB_ID="12")]
    [job] = jobs_here([*both, process(), process(SLURM_JOB_ID="")])
    assert (job.job, job.processes) == ("12", tuple(sorted(p.pid for p in both)))
    assert job.memory > 0


def test_a_jobs_cpus_are_those_that_its_processes_may_run_on(process):
    mine = min(psutil.Process().cpu_affinity())
    bound = process(f"import os, time; os.sched_setaffinity(0, {{{mine}}}); time.sleep(60)", PBS_JOBID="7.s")
    until = time.monotonic() + limit()
    while bound.cpu_affinity() != [mine] and time.monotonic() < until:
        time.sleep(0.02)
    [job] = jobs_here([bound])
    assert job.cpus == (mine,)


def test_an_element_of_an_array_is_found_by_each_name(process):
    jobs = jobs_here([process(**ARRAY), process(SLURM_JOB_ID="13")])
    [job] = jobs
    assert job.job == "10_3" and len(job.processes) == 2
    assert find(jobs, "13") is find(jobs, "10_3") is job
    assert find(jobs, "10") is None


def test_a_process_that_ends_meanwhile_is_left_out(process):
    gone = process(SLURM_JOB_ID="12")
    gone.kill()
    gone.wait()
    assert jobs_here([gone]) == []


def test_the_whole_machine_can_be_looked_at(process):
    mine = process(SLURM_JOB_ID="123456789")
    found = find(jobs_here(), "123456789")
    assert isinstance(found, JobUse) and found.processes == (mine.pid,)
