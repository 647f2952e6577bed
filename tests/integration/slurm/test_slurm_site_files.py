"""What etc/slurm ships, on a real Slurm: the submit filter, and handing control back."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    return slurm_factory(
        "--lua", str(ETC / "job_submit.lua"), "--set", "JobSubmitPlugins=lua",
        "--line", "PartitionName=batch Nodes=ALL Default=YES State=UP",
        "--line", "PartitionName=other Nodes=ALL State=UP",
    )  # fmt: skip


def options(cluster: Any) -> dict[str, Any]:
    return {"partitions": ["batch"], "poll_interval": 0.3, "slurm_conf": cluster.conf}


def test_jobs_enter_held_for_headway_and_users_holds_stay_theirs(filtered: Any) -> None:
    ours = filtered.submit(1, 60, hold=False)
    theirs = filtered.submit(1, 60, administrator=False)
    elsewhere = filtered.submit(1, 60, hold=False, partition="other")
    with SlurmAdapter(options(filtered)) as adapter:
        adapter.describe()
        moment = adapter.wait(time.time())
        assert moment is not None
        held = {e.job.id: e.job.held for e in moment[1] if isinstance(e, ev.JobSubmitted)}
        assert (held[ours], held[theirs]) == (False, True)
        filtered.until(lambda: filtered.jobs()[ours]["state_reason"] == "JobHeldAdmin")
        assert filtered.jobs()[theirs]["state_reason"] == "JobHeldUser"
        checks = {check.subject: check for check in adapter.check()}
        assert checks["jobs enter held"].ok
    filtered.until(lambda: filtered.state(elsewhere) == "RUNNING")


def test_control_is_handed_back(filtered: Any) -> None:
    blockers = [filtered.submit(4, 60, hold=False) for _ in range(4)]
    plain, pinned = filtered.submit(1, 60, hold=False), filtered.submit(1, 60, hold=False)
    array = filtered.submit(1, 60, hold=False, array="1-4%2")
    theirs = filtered.submit(1, 60, administrator=False)
    dedicated = filtered.submit(1, 60, hold=False, begin="now+600", comment="headway:dedicated")
    kept = Reservation(f"job_{dedicated}", time.time() + 600, time.time() + 900, nodes=("node4",), ours=True)
    with SlurmAdapter(options(filtered)) as adapter:
        adapter.describe()
        adapter.wait(time.time())
        adapter.wait(time.time() + 1)
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
