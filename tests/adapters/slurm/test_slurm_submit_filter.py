"""What `headway check` says of the submit filter: of what slurmctld has loaded, not of the file alone."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from pretended import Pretended, result

from headway.adapter import Check
from headway.inputs.shipped import shipped
from headway_adapters.slurm import reader, submit_filter
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.submit_filter import Script
from headway_adapters.transport import Result

BOOT = 1_000_000
PATH = Path("/etc/slurm/job_submit.lua")


def job(number: int, submitted: float = BOOT + 100, **fields: Any) -> reader.JobRecord:
    """A job that went past the filter, unless ``fields`` say something else."""
    values = {"job_id": number, "submit_time": submitted, "partition": "batch", "priority": 4_294_901_000}
    return reader.JobRecord(**{**values, **fields})


def held(number: int, submitted: float = BOOT + 100, **fields: Any) -> reader.JobRecord:
    """A job that the filter held."""
    marked = {"priority": 0, "admin_comment": "headway:new;nodes=any", **fields}
    return job(number, submitted, **marked)


def verdict(check: Check) -> str:
    return "FAIL" if not check.ok else "ok" if check.known else "?"


def judged(changed: float | None, jobs: list[reader.JobRecord], *partitions: str) -> str:
    script = Script(PATH, "the script", changed=changed)
    return verdict(submit_filter.loaded(script, BOOT, "seen", partitions or ("batch",), jobs))


@pytest.mark.parametrize(
    ("changed", "jobs", "expected"),
    [
        # slurmctld loaded the file when it started.
        (BOOT - 0.5, [], "ok"),
        # It may have loaded the file before it.
        (BOOT, [], "?"),
        (BOOT + 50.0, [], "?"),
        # It cannot be told which file slurmctld reads.
        (None, [], "?"),
        # Jobs tell.
        (BOOT + 50.0, [held(1)], "ok"),
        (None, [held(1)], "ok"),
        (BOOT + 50.0, [job(1)], "FAIL"),
        (BOOT - 0.5, [job(1)], "FAIL"),
        (None, [job(1)], "FAIL"),
        # Of jobs that came before the file was changed, or in that second, it says nothing.
        (BOOT + 150.0, [held(1), job(2)], "?"),
        (BOOT + 100.2, [held(1), job(2)], "?"),
        (BOOT - 50.0, [job(1, BOOT - 20.0)], "ok"),
        # The last job counts: 24.11 may load the file at the second submission.
        (BOOT + 50.0, [held(2), job(1)], "ok"),
        (BOOT + 50.0, [held(1, BOOT + 200), job(2)], "ok"),
        (BOOT + 50.0, [held(1), job(2)], "FAIL"),
    ],
)
def test_a_file_that_is_older_than_slurmctld_is_loaded_and_of_a_newer_one_jobs_tell(
    changed: float | None, jobs: list[reader.JobRecord], expected: str
) -> None:
    assert judged(changed, jobs) == expected


@pytest.mark.parametrize(
    "fields",
    [
        # Its user holds it.
        {"priority": 0},
        # headway, or somebody else, has written of it.
        {"admin_comment": "headway:held;nodes=any"},
        {"admin_comment": "headway:pin=n1;asked=;nodes=0-0;cpus=n1:4;run=0"},
        {"admin_comment": "a ticket"},
        {"comment": "mine headway:released"},
        # Slurm counts it as submitted when it was requeued.
        {"restart_cnt": 1},
        {"restart_cnt": {"set": True, "infinite": False, "number": 2}},
        {"submit_time": {"set": False, "infinite": False, "number": 0}},
        {"partition": "other"},
    ],
)
def test_jobs_that_show_nothing(fields: dict[str, Any]) -> None:
    assert judged(BOOT + 50.0, [job(1, **fields)]) == "?"


def test_each_partition_needs_its_job() -> None:
    both = ("batch", "long")
    assert judged(BOOT + 50.0, [held(1)], *both) == "?"
    assert judged(BOOT + 50.0, [held(1), held(2, partition="long")], *both) == "ok"
    assert judged(BOOT + 50.0, [held(1), job(2, partition="long")], *both) == "FAIL"
    # One managed partition of several is enough for the filter.
    assert judged(BOOT + 50.0, [held(1, partition="batch,long")], *both) == "?"
    assert (
        judged(BOOT + 50.0, [held(1), held(2, partition="long"), job(3, partition="other,long")], *both)
        == "FAIL"
    )


def test_without_slurmctlds_start_old_jobs_are_no_fault() -> None:
    assert verdict(submit_filter.loaded(Script(PATH), None, "seen", ("batch",), [job(1)])) == "?"
    assert (
        verdict(submit_filter.loaded(Script(PATH, "x", changed=5.0), None, "seen", ("batch",), [held(1)]))
        == "ok"
    )


def test_it_says_what_happened_and_what_to_do() -> None:
    script = Script(PATH, "the script", changed=BOOT + 50.0)
    unknown = submit_filter.loaded(script, BOOT, "seen", ("batch", "long"), [held(1)])
    assert f"{PATH} was changed at" in unknown.detail and "slurmctld started at" in unknown.detail
    assert "restart slurmctld" in unknown.remedy and "sbatch -p long" in unknown.remedy
    past = submit_filter.loaded(script, BOOT, "seen", ("batch",), [job(7)])
    assert "job 7 entered batch unheld at" in past.detail and "restart slurmctld" in past.remedy
    shown = submit_filter.loaded(script, BOOT, "seen", ("batch",), [held(1)])
    assert "a script of headway's held job 1" in shown.detail


class OneAnswer(Pretended):
    """Lists no jobs."""

    def listed(self, argv: tuple[str, ...]) -> Result:
        return result(argv, '{"jobs": [], "errors": []}')


def looked(
    directory: Path, ping: str = f"Slurmctld(primary) at {socket.gethostname()} is UP", **options: Any
) -> Check:
    """What is said where slurmctld was started long after the file was written."""
    client = SlurmClient(SlurmOptions(partitions=["batch"]), read_only=True, transport=OneAnswer())
    config = {
        "JobSubmitPlugins": "require_timelimit,lua", "BOOT_TIME": "2199-01-01T00:00:00",
        "SLURM_CONF": str(directory / "slurm.conf"),
    }  # fmt: skip
    options = {"heartbeat": "/nowhere/heartbeat", **options}
    found = submit_filter.check(client, config, SlurmOptions(partitions=["batch"], **options), ping)
    return found[0]


def test_the_shipped_filter_is_in_order(tmp_path: Path) -> None:
    (tmp_path / "job_submit.lua").write_text(shipped("slurm/job_submit.lua").read_text())
    found = looked(tmp_path)
    assert verdict(found) == "ok" and "slurmctld loaded the script when it started" in found.detail


@pytest.mark.parametrize(
    "ping",
    ["", "Slurmctld(primary) at elsewhere is UP", "Slurmctld(primary) at elsewhere is DOWN"],
)
def test_a_file_on_another_machine_than_slurmctlds_need_not_be_its_own(tmp_path: Path, ping: str) -> None:
    (tmp_path / "job_submit.lua").write_text(shipped("slurm/job_submit.lua").read_text())
    assert verdict(looked(tmp_path, ping)) == "?"


def test_a_file_that_is_gone_where_slurmctld_runs_fails_and_elsewhere_is_not_known(tmp_path: Path) -> None:
    gone = looked(tmp_path)
    assert verdict(gone) == "FAIL" and "job_submit.lua is gone" in gone.detail and "install" in gone.remedy
    elsewhere = looked(tmp_path, "Slurmctld(primary) at elsewhere is UP")
    assert verdict(elsewhere) == "?" and "job_submit.lua cannot be read from here" in elsewhere.detail


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("{ batch = true }", "{ other = true }", "MANAGED of"),
        ("{ batch = true }", "{\n  -- batch = true,\n  other = true }", "MANAGED of"),
        ('"headway:released"', '"x"', "lets users release"),
        ('"headway:user-hold"', '"x"', "loses users' holds"),
        ("local MANAGED", "-- local MANAGED", "is not headway's"),
    ],
)
def test_a_file_that_does_not_do_it_fails(tmp_path: Path, old: str, new: str, wrong: str) -> None:
    text = shipped("slurm/job_submit.lua").read_text()
    assert old in text
    (tmp_path / "job_submit.lua").write_text(text.replace(old, new))
    found = looked(tmp_path)
    assert verdict(found) == "FAIL" and wrong in found.detail


def test_a_partition_of_background_jobs_that_is_open_to_users_fails(tmp_path: Path) -> None:
    text = shipped("slurm/job_submit.lua").read_text()
    (tmp_path / "job_submit.lua").write_text(text)
    found = looked(tmp_path, background={"batch": "behind"}, agents={"key": "key"})
    assert verdict(found) == "FAIL" and "BEHIND of" in found.detail
    (tmp_path / "job_submit.lua").write_text(text.replace("BEHIND = {}", 'BEHIND = { ["behind"] = true }'))
    assert verdict(looked(tmp_path, background={"batch": "behind"}, agents={"key": "key"})) == "ok"
