"""Two tiers on one node, with real processes: policies, shares, and whom an agent leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import until

from headway_adapters.node_agent import processes
from headway_adapters.node_agent.priorities import Priorities
from headway_adapters.node_agent.service import Agent
from headway_adapters.node_agent.watch import Tenant, Watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the policies are Linux's")
ROOT = os.geteuid() == 0
SPIN = "while True: pass"
ME = psutil.Process().username()
#: Jobs of this process of the tests alone.
ONE, TWO = f"{os.getpid()}1", f"{os.getpid()}2"


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a process of a job, in a session of its own, on one processor."""
    made: list[subprocess.Popen[bytes]] = []
    cpu = min(os.sched_getaffinity(0))

    def start(name: str, code: str = SPIN, **more: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{cpu}])\n{code}"],
            env={**os.environ, "SLURM_JOB_ID": name}, start_new_session=True,
            stdin=subprocess.DEVNULL, **more,
        )  # fmt: skip
        made.append(process)
        until(lambda: os.sched_getaffinity(process.pid) == {cpu}, "it runs")
        return process

    yield start
    for process in made:
        for child in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else ():
            child.kill()
        process.kill()
        process.wait()


def agent(tmp_path: Path, **more: Any) -> tuple[Agent, list[str]]:
    notes: list[str] = []
    options = {"state": tmp_path / "tiers.json", "least_user": 0, "way": "idle", "note": notes.append, **more}
    return Agent(**options), notes


def reports(one: Agent, wishes: dict[str, str], user: str = ME) -> dict[str, Any]:
    answer = one.answer({"wishes": {key: {"tier": tier, "user": user} for key, tier in wishes.items()}})
    return {job["job"]: job for job in answer["jobs"]}


def policy(process: subprocess.Popen[bytes]) -> int:
    return os.sched_getscheduler(process.pid)


@pytest.mark.skipif(not ROOT, reason="only root can bring a process back from SCHED_IDLE")
def test_into_the_background_and_back(tmp_path: Path, job: Any) -> None:
    one, notes = agent(tmp_path)
    a, b = job(ONE), job(TWO)
    found = reports(one, {ONE: "background"})
    assert (found[ONE]["tier"], found[ONE]["way"], found[TWO]["tier"]) == ("background", "idle", "")
    assert (policy(a), policy(b)) == (os.SCHED_IDLE, os.SCHED_OTHER)
    reports(one, {ONE: "foreground", TWO: "background"})
    assert (policy(a), policy(b)) == (os.SCHED_OTHER, os.SCHED_IDLE)
    assert f"job {ONE}: background (idle, 1 changed)" in notes


@pytest.mark.skipif(not ROOT, reason="changes priorities of sessions")
def test_the_shares_agree_with_the_tiers(tmp_path: Path, job: Any) -> None:
    """Two jobs want the same processor: the one in front has nearly all of it, after the swap the other."""
    one, _ = agent(tmp_path)
    a, b = job(ONE), job(TWO)

    def shares() -> tuple[float, float]:
        before = [sum(psutil.Process(p.pid).cpu_times()[:2]) for p in (a, b)]

        def enough() -> bool:
            now = [sum(psutil.Process(p.pid).cpu_times()[:2]) for p in (a, b)]
            return sum(now) - sum(before) > 1.0

        until(enough, "they had a second together")
        used = [sum(psutil.Process(p.pid).cpu_times()[:2]) - t for p, t in zip((a, b), before, strict=True)]
        return used[0] / sum(used), used[1] / sum(used)

    reports(one, {ONE: "foreground", TWO: "background"})
    front, behind = shares()
    assert front > 0.9, (front, behind)
    reports(one, {ONE: "background", TWO: "foreground"})
    front, behind = shares()
    assert behind > 0.9, (front, behind)


@pytest.mark.skipif(not ROOT, reason="changes priorities of sessions")
def test_a_session_with_a_stranger_is_tried_again(tmp_path: Path, job: Any) -> None:
    """A process that is not known to be the job's keeps the session's weight; once it is gone, it is set."""
    code = "import subprocess, time; subprocess.Popen(['sleep', '1000'], env={}); time.sleep(1000)"
    process = job(ONE, code)
    until(lambda: len(psutil.Process(process.pid).children()) == 1, "it has a child of another environment")
    if not Priorities().sessions_matter():
        pytest.skip("this kernel does not group processes by session")
    group = Path(f"/proc/{process.pid}/autogroup")
    one, _ = agent(tmp_path)
    reports(one, {ONE: "background"})
    assert group.read_text().endswith("nice 0\n") and policy(process) == os.SCHED_IDLE
    psutil.Process(process.pid).children()[0].kill()
    until(lambda: (one.look(), group.read_text().endswith("nice 19\n"))[1], "the session follows")
    reports(one, {ONE: "foreground"})
    assert group.read_text().endswith("nice 0\n")


@pytest.mark.skipif(not ROOT, reason="only root can bring a process back from SCHED_IDLE")
def test_threads_and_forked_processes_go_along(tmp_path: Path, job: Any) -> None:
    code = (
        "import subprocess, sys, threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
        "time.sleep(1000)\n"
    )
    process = job(ONE, code)
    until(lambda: len(psutil.Process(process.pid).children()) == 1, "it forks")
    until(lambda: psutil.Process(process.pid).num_threads() == 2, "it has a thread")
    one, _ = agent(tmp_path)
    found = reports(one, {ONE: "background"})
    assert found[ONE]["processes"] == 2
    child = psutil.Process(process.pid).children()[0]
    everybody = [int(t) for pid in (process.pid, child.pid) for t in os.listdir(f"/proc/{pid}/task")]
    assert {os.sched_getscheduler(thread) for thread in everybody} == {os.SCHED_IDLE}
    assert len(everybody) == 3


def test_a_process_that_ends_meanwhile_is_no_error() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    done = Priorities(way="idle").put(Tenant("1", frozenset({"1"}), {gone.pid}, set(), 0.0), "background")
    assert (done.changed, done.problem) == (0, "")


def test_jobs_of_users_whom_it_may_not_touch_are_left_alone(tmp_path: Path, job: Any) -> None:
    process = job(ONE, "import time; time.sleep(1000)")
    for user, more, said in (
        (ME, {"least_user": 1 << 30}, f"it has processes of user {os.geteuid()}, below {1 << 30}"),
        ("daemon", {}, f"it has processes of user {os.geteuid()}, and belongs to daemon"),
        ("no-such-user", {}, "its user 'no-such-user' is not known here"),
    ):
        one, notes = agent(tmp_path, **more)
        found = reports(one, {ONE: "background"}, user)
        assert found[ONE]["tier"] == "" and said in found[ONE]["problem"]
        assert any(said in note for note in notes)
        assert policy(process) == os.SCHED_OTHER


@pytest.mark.skipif(not ROOT, reason="only root can bring a process back from SCHED_IDLE")
def test_an_agent_that_begins_anew_goes_on(tmp_path: Path, job: Any) -> None:
    one, _ = agent(tmp_path)
    process = job(ONE, "import time; time.sleep(1000)")
    reports(one, {ONE: "background"})
    del one
    assert policy(process) == os.SCHED_IDLE
    os.sched_setscheduler(process.pid, os.SCHED_OTHER, os.sched_param(0))
    again, _ = agent(tmp_path)
    again.look()
    assert policy(process) == os.SCHED_IDLE
    (tmp_path / "tiers.json").write_text("{")
    broken, notes = agent(tmp_path)
    broken.look()
    assert policy(process) == os.SCHED_IDLE and "cannot be read" in notes[0]


def test_what_a_job_uses_is_measured(tmp_path: Path, job: Any) -> None:
    now = [0.0]
    one, _ = agent(tmp_path, clock=lambda: now[0])
    process = job(ONE)
    one.look()
    assert reports(one, {})[ONE]["use"] is None
    begun = psutil.Process(process.pid).cpu_times().user
    until(lambda: psutil.Process(process.pid).cpu_times().user > begun + 0.5, "it used half a second")
    now[0] = 10.0
    one.look()
    used = reports(one, {})[ONE]["use"]
    assert 0.04 < used < 5.0


@pytest.mark.parametrize("message", [None, [], {"wishes": {"1": {"tier": "above"}}}, {"wishes": {"1": 2}}])
def test_what_is_not_understood_changes_nothing(tmp_path: Path, message: Any) -> None:
    one, _ = agent(tmp_path)
    assert set(one.answer(message)) == {"error"}
    assert not (tmp_path / "tiers.json").exists()


# ---------------------------------------------------------------------- control groups


GROUP = "/system.slice/slurmstepd.scope/job_9001"


def grouped(tmp_path: Path, *files: str) -> tuple[Priorities, Path]:
    place = tmp_path / GROUP.lstrip("/")
    place.mkdir(parents=True)
    for name in files:
        (place / name).write_text({"cpu.idle": "0\n", "cpu.weight": "100\n"}[name])
    text = f"0::{GROUP}/step_0/user/task_0\n"
    return Priorities(cgroups=tmp_path, cgroup_of=lambda pid: text), place


TENANT = Tenant("9001", frozenset({"9001"}), {1, 2}, set(), 0.0)


def test_a_control_group_is_made_idle(tmp_path: Path) -> None:
    one, place = grouped(tmp_path, "cpu.weight", "cpu.idle")
    assert (one.put(TENANT, "background").way, (place / "cpu.idle").read_text()) == ("cgroup", "1")
    assert one.put(TENANT, "background").changed == 1 or (place / "cpu.idle").read_text() == "1"
    one.put(TENANT, "foreground")
    assert (place / "cpu.idle").read_text() == "0" and (place / "cpu.weight").read_text() == "100\n"


def test_an_older_kernel_has_the_weight(tmp_path: Path) -> None:
    one, place = grouped(tmp_path, "cpu.weight")
    one.put(TENANT, "background")
    assert (place / "cpu.weight").read_text() == "1"
    one.put(TENANT, "foreground")
    assert (place / "cpu.weight").read_text() == "100"


def test_without_the_controller_threads_are_changed(tmp_path: Path) -> None:
    one, _ = grouped(tmp_path)
    assert one.group(TENANT) is None
    only = Priorities(cgroups=tmp_path, cgroup_of=lambda pid: f"0::{GROUP}", way="cgroup")
    assert "no control group of its own" in only.put(TENANT, "background").problem


def test_a_job_in_two_groups_is_in_none(tmp_path: Path) -> None:
    one = Priorities(cgroups=tmp_path, cgroup_of=lambda pid: f"0::/a/job_{pid}/step_0")
    assert one.group(TENANT) is None


# ---------------------------------------------------------------------- the watch


def test_the_watch_finds_what_the_report_finds(job: Any) -> None:
    job(ONE, "import time; time.sleep(1000)")
    job(TWO, "import time; time.sleep(1000)")
    watch = Watch()
    for _ in range(2):
        found = {one.job: one.processes for one in watch.look() if one.job in (ONE, TWO)}
        report = {one.job: set(one.processes) for one in processes.jobs_here() if one.job in found}
        assert found == report and len(found) == 2


def test_the_first_process_of_a_job_is_the_one_above_the_others(job: Any) -> None:
    code = "import subprocess, time; subprocess.Popen(['sleep', '1000']); time.sleep(1000)"
    process = job(ONE, code)
    until(lambda: len(psutil.Process(process.pid).children()) == 1, "it forks")
    found = processes.find(processes.jobs_here(), ONE)
    assert found is not None and processes.first_of(found, ME) == process.pid
    other = job(ONE, "import time; time.sleep(1000)")
    found = processes.find(processes.jobs_here(), ONE)
    assert found is not None
    with pytest.raises(Exception, match="expected one process from which all others come"):
        processes.first_of(found, ME)
    with pytest.raises(Exception, match="expected processes of daemon"):
        processes.first_of(found, "daemon")
    assert other.poll() is None
    time.sleep(0)
