"""What etc/slurm ships, on a real Slurm: the submit filter, and handing control back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from waiting import until

from headway import decisions as d
from headway import events as ev
from headway.model import Reservation
from headway_adapters.slurm import SlurmAdapter

pytestmark = pytest.mark.slurm
ETC = Path(__file__).parents[3] / "etc" / "slurm"


def give_back(*argv: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headway_adapters.slurm.give_back", *argv]
    return subprocess.run(command, env=env, capture_output=True, text=True)


@pytest.fixture
def filtered(slurm_factory: Callable[..., Any]) -> Any:
    """A cluster whose partition ``batch`` is behind the filter; ``other`` is not."""
    return with_filter(slurm_factory, ETC / "job_submit.lua")


def with_filter(slurm_factory: Callable[..., Any], lua: Path) -> Any:
    return slurm_factory(
        "--lua", str(lua), "--set", "JobSubmitPlugins=lua",
        "--line", "PartitionName=batch Nodes=ALL Default=YES State=UP",
        "--line", "PartitionName=other Nodes=ALL State=UP",
    )  # fmt: skip


def options(cluster: Any) -> dict[str, Any]:
    return {"partitions": ["batch"], "poll_interval": 0.3, **cluster.options}


def test_nobody_submits_to_the_partition_of_background_jobs_or_moves_a_job_there(
    slurm_factory: Callable[..., Any], tmp_path: Path
) -> None:
    lua = tmp_path / "job_submit.lua"
    shipped = (ETC / "job_submit.lua").read_text()
    lua.write_text(shipped.replace("local BEHIND = {}", "local BEHIND = { other = true }"))
    filtered = with_filter(slurm_factory, lua)
    job = filtered.submit(1, 60, hold=False, user="nobody", administrator=False)
    for words in (
        ["sbatch", "-pother", "-D/", "-o/dev/null", "--wrap", "true"],
        ["scontrol", "update", f"JobId={job}", "Partition=other"],
    ):
        with pytest.raises(AssertionError, match="denied"):
            filtered.run(*words, user="nobody")
    assert filtered.jobs()[job]["partition"] == "batch"
    # headway, which is an administrator, does.
    filtered.scontrol("update", f"JobId={job}", "Partition=other")
    assert filtered.jobs()[job]["partition"] == "other"


def test_jobs_enter_held_for_headway_and_users_holds_stay_theirs(filtered: Any) -> None:
    ours = filtered.submit(1, 60, hold=False)
    theirs = filtered.submit(1, 60, administrator=False)
    elsewhere = filtered.submit(1, 60, hold=False, partition="other")
    with SlurmAdapter(options(filtered)) as adapter:
        adapter.describe()
        held = {e.job.id: e.job.held for e in told(adapter) if isinstance(e, ev.JobSubmitted)}
        assert (held[ours], held[theirs]) == (False, True)
        filtered.until(lambda: filtered.jobs()[ours]["state_reason"] == "JobHeldAdmin")
        assert filtered.jobs()[theirs]["state_reason"] == "JobHeldUser"
        checks = {check.subject: check for check in adapter.check()}
        assert checks["jobs enter held"].ok and "MANAGED names batch" in checks["jobs enter held"].detail
    lua = filtered.root / "etc" / "job_submit.lua"
    shipped = lua.read_text()
    for text, wrong in (
        (shipped.replace("{ batch = true }", "{ other = true }"), "MANAGED of"),
        (shipped.replace("headway:released", "x"), "lets users release"),
        (shipped.replace("headway:user-hold", "x"), "loses users' holds"),
        ("function slurm_job_submit(a, b, c) return slurm.SUCCESS end", "is not headway's"),
    ):
        lua.write_text(text)
        with SlurmAdapter(options(filtered), read_only=True) as adapter:
            (found,) = [check for check in adapter.check() if check.subject == "jobs enter held"]
        assert not found.ok and wrong in found.detail
    lua.write_text(shipped)
    filtered.until(lambda: filtered.state(elsewhere) == "RUNNING")


USER = "nobody"


@pytest.fixture
def users(filtered: Any) -> Any:
    """The cluster with the filter, used by somebody who is not root."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to submit as another user")
    return filtered


def told(adapter: SlurmAdapter, looks: int = 2) -> list[ev.Event]:
    """What is told until so many looks are in: of two, the second began after the call."""
    found: list[ev.Event] = []

    def take() -> object:
        moment = adapter.wait(time.time() + 0.1)
        assert moment is not None
        found.extend(moment[1])
        return adapter.overlay.raw is not before

    for _ in range(looks):
        before = adapter.overlay.raw
        until(take, "the adapter looks", pause=0.0)
    return found


def release(cluster: Any, job: str) -> None:
    cluster.run("scontrol", "release", job, user=USER)


def nice(cluster: Any, job: str) -> None:
    cluster.run("scontrol", "update", f"JobId={job}", "Nice=5", user=USER, check=False)


def move_here(cluster: Any, job: str) -> None:
    # 24.11 moves it and says "Resource temporarily unavailable".
    cluster.run("scontrol", "update", f"JobId={job}", "Partition=batch", user=USER, check=False)
    cluster.until(lambda: cluster.jobs()[job]["partition"] == "batch", what="it is moved")


def requeue(cluster: Any, job: str) -> None:
    cluster.scontrol("release", job)
    cluster.until(lambda: cluster.state(job) == "RUNNING", seconds=60)
    cluster.run("scontrol", "requeue", job, user=USER)
    cluster.until(lambda: cluster.state(job) == "PENDING", seconds=60)
    cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", user=USER)


@pytest.mark.parametrize(
    ("way", "hold", "partition"),
    [
        (release, True, "batch"), (nice, True, "batch"), (nice, False, "batch"), (requeue, False, "batch"),
        (move_here, False, "other"),
    ],
)  # fmt: skip
def test_no_user_starts_a_job_past_headway(users: Any, way: Any, hold: bool, partition: str) -> None:
    """The ways in which Slurm would start a job of its user's at once: the filter closes them."""
    if partition == "other":
        users.scontrol("update", "PartitionName=other", "State=DOWN")
    job = users.submit(1, 60, hold=hold, administrator=False, user=USER, partition=partition)
    way(users, job)
    # slurmctld starts what it may within a second; a later job that does start shows that it looked.
    witness = users.submit(1, 60, hold=False)
    users.scontrol("release", witness)
    users.until(lambda: users.state(witness) == "RUNNING", seconds=60)
    assert users.jobs()[job]["job_state"] == "PENDING" and users.jobs()[job]["priority"] == 0
    with SlurmAdapter(options(users)) as adapter:
        adapter.describe()
        events = told(adapter)
        users.until(lambda: users.jobs()[job]["admin_comment"].startswith("headway:held") or hold, seconds=60)
        held = [e.job.held for e in events if isinstance(e, ev.JobSubmitted) and e.job.id == job]
        assert held == [way is nice and hold], "a release is the user's word to headway; a hold stays"
        if not held[0]:
            assert adapter.apply(time.time(), [d.Start(job, (("node2", 1),))])[0].accepted
            users.until(lambda: users.state(job) == "RUNNING", seconds=60)


@pytest.mark.parametrize("array", [{}, {"array": "1-2"}], ids=["one", "array"])
def test_a_user_holds_a_job_that_headway_holds_already(users: Any, array: Any) -> None:
    """Slurm takes no note of it: the filter does, until its user releases the job."""
    job = users.submit(1, 60, hold=False, administrator=False, user=USER, comment="mine", **array)
    first = f"{job}_1" if array else job
    with SlurmAdapter(options(users)) as adapter:
        adapter.describe()
        told(adapter)
        users.until(lambda: users.jobs()[job]["admin_comment"].startswith("headway:held"))
        users.run("scontrol", "hold", job, user=USER)
        events = told(adapter)
        assert [e.job_id for e in events if isinstance(e, ev.JobHeld)][:1] == [first]
        assert not adapter.apply(time.time(), [d.Start(first, (("node1", 1),))])[0].accepted
        # Other words are no release, and nobody's hold is lost when control is given back.
        users.run("scontrol", "update", f"JobId={job}", "Comment=other", user=USER)
        assert users.jobs()[job]["comment"] == "other headway:user-hold"
        users.run("scontrol", "release", job, user=USER)
        events = told(adapter)
        assert [e.job_id for e in events if isinstance(e, ev.JobReleased)][:1] == [first]
        assert adapter.apply(time.time(), [d.Start(first, (("node1", 1),))])[0].accepted
        users.until(lambda: users.state(first) == "RUNNING", seconds=60)


def test_a_users_hold_of_a_job_that_headway_holds_is_the_users_when_control_is_given_back(users: Any) -> None:
    job = users.submit(1, 60, hold=False, administrator=False, user=USER)
    with SlurmAdapter(options(users)) as adapter:
        adapter.describe()
        told(adapter)
        users.until(lambda: users.jobs()[job]["admin_comment"].startswith("headway:held"))
    users.run("scontrol", "hold", job, user=USER)
    installed = users.root / "etc" / "job_submit.lua"
    installed.write_text((ETC / "job_submit.lua").read_text().replace("{ batch = true }", "{}"))
    # Slurm reads a file again that is younger, in whole seconds, than when it read it last.
    os.utime(installed, (time.time() + 2,) * 2)
    assert give_back("batch", env=users.env).returncode == 0
    assert users.jobs()[job]["state_reason"] == "JobHeldUser"
    users.run("scontrol", "release", job, user=USER)
    users.until(lambda: users.state(job) == "RUNNING", seconds=60)


def test_a_start_that_is_not_headways_is_counted_and_told(filtered: Any) -> None:
    job = filtered.submit(1, 60, hold=False)
    with SlurmAdapter(options(filtered)) as adapter, capture_logs() as logs:
        adapter.describe()
        told(adapter)
        assert not adapter.oddities()
        filtered.scontrol("release", job)
        filtered.until(lambda: filtered.state(job) == "RUNNING", seconds=60)
        end = time.time() + 60
        while not adapter.oddities() and time.time() < end:
            told(adapter, 1)
        (odd,) = adapter.oddities()
    assert (odd.count, odd.what) == (1, "a job started that headway did not start")
    assert job in odd.detail and "root" in odd.detail
    assert [log["job"] for log in logs if log["event"] == odd.what] == [job]


@pytest.mark.parametrize("when", ["before headway came", "before it was taken over", "after"])
def test_a_job_is_headways_again_when_an_administrator_lets_it_go(filtered: Any, when: str) -> None:
    def comment(text: str) -> None:
        filtered.scontrol("update", f"JobId={job}", f"AdminComment={text}")

    job = filtered.submit(1, 60, hold=False)
    if when == "before headway came":
        comment("hold: look at it")
        comment("")
    if when == "before it was taken over":
        comment("hold: look at it")
    with SlurmAdapter(options(filtered)) as adapter:
        adapter.describe()
        events = told(adapter)
        if when == "after":
            comment("hold: look at it")
            events += told(adapter)
            assert any(isinstance(e, ev.JobHeld) for e in events)
        if when != "before headway came":
            comment("")
        end = time.time() + 60
        while filtered.jobs()[job]["admin_comment"][:12] != "headway:held" and time.time() < end:
            told(adapter, 1)
        record = filtered.jobs()[job]
        assert (record["admin_comment"][:12], record["state_reason"]) == ("headway:held", "JobHeldAdmin")
    done = give_back("batch", env=filtered.env)
    assert f"job {job}: released" in done.stdout


def until_held_running(users: Any, adapter: SlurmAdapter, job: str) -> None:
    """The job runs, and is held for the case that it is requeued."""

    def held() -> bool:
        told(adapter, 1)
        return bool(users.jobs()[job]["state_reason"] == "JobHeldAdmin")

    users.until(held, seconds=60)
    assert users.state(job) == "RUNNING"


def test_a_requeued_job_does_not_start_while_headway_is_away(users: Any) -> None:
    job = users.submit(1, 600, hold=False, user=USER)
    with SlurmAdapter(options(users)) as adapter:
        adapter.describe()
        told(adapter)
        assert adapter.apply(time.time(), [d.Start(job, (("node2", 1),))])[0].accepted
        until_held_running(users, adapter, job)
    users.run("scontrol", "requeue", job, user=USER)
    users.until(lambda: users.state(job) == "PENDING", seconds=60)
    assert users.jobs()[job]["state_reason"] == "JobHeldAdmin"
    users.run("scontrol", "update", f"JobId={job}", "StartTime=now", user=USER, check=False)
    assert users.jobs()[job]["priority"] == 0
    with SlurmAdapter(options(users)) as adapter:
        adapter.describe()
        assert any(isinstance(e, ev.JobSubmitted) and not e.job.held for e in told(adapter))
        assert adapter.apply(time.time(), [d.Start(job, (("node3", 1),))])[0].accepted
        until_held_running(users, adapter, job)
    # Given back, it is Slurm's again.
    assert f"job {job}: released" in give_back("batch", env=users.env).stdout
    assert users.jobs()[job]["priority"] > 0


def test_control_is_handed_back(filtered: Any) -> None:
    blockers = [filtered.submit(4, 60, hold=False) for _ in range(4)]
    plain, pinned = filtered.submit(1, 60, hold=False), filtered.submit(1, 60, hold=False)
    array = filtered.submit(1, 60, hold=False, array="1-4%2")
    theirs = filtered.submit(1, 60, administrator=False)
    dedicated = filtered.submit(1, 60, hold=False, begin="now+600", comment="headway:dedicated")
    kept = Reservation(f"job_{dedicated}", time.time() + 600, time.time() + 900, nodes=("node4",), ours=True)
    with SlurmAdapter(options(filtered)) as adapter:
        adapter.describe()
        told(adapter)
        assert adapter.apply(time.time(), [d.Reserve(kept)])[0].accepted
        adapter.apply(time.time(), [d.Start(job, ((f"node{n}", 4),)) for n, job in enumerate(blockers, 1)])
        filtered.until(lambda: all(filtered.state(job) == "RUNNING" for job in blockers))
        adapter.apply(time.time(), [d.Start(pinned, (("node1", 1),))])
    # It died with that start on its way.
    filtered.scontrol("hold", pinned)
    for job in blockers:
        filtered.run("scancel", job)
    filtered.until(lambda: not any(filtered.state(job) == "COMPLETING" for job in blockers))
    done = give_back("batch", env=filtered.env)
    assert done.returncode == 0, done.stderr
    started = [plain, pinned, f"{array}_1", f"{array}_2"]
    filtered.until(lambda: all(filtered.state(job) == "RUNNING" for job in started))
    assert filtered.jobs()[pinned]["required_nodes"] == ""
    assert filtered.jobs()[theirs]["state_reason"] == "JobHeldUser"
    assert theirs not in done.stdout
    assert f"reservation job_{dedicated}: removed" in done.stdout
    assert "headway_job" not in filtered.run("scontrol", "show", "reservation", check=False)


@pytest.mark.parametrize("argument", ["-x", "a b", "$(id)", ""])
def test_give_back_takes_partitions_only(argument: str) -> None:
    done = give_back(argument)
    assert done.returncode == 2 and "partition" in done.stderr and "Traceback" not in done.stderr


def test_what_slurm_does_not_change_is_no_failure_of_handing_back(filtered: Any) -> None:
    never = filtered.submit(100_000, hold=False)
    ours = filtered.submit(1, 60, hold=False)
    assert {filtered.jobs()[job]["admin_comment"] for job in (never, ours)} == {"headway:new;nodes=any"}
    done = give_back("batch", env=filtered.env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"job {ours}: released" in done.stdout
    assert f"job {never}: left as it is, Slurm refuses to change it (Requested partition" in done.stdout
