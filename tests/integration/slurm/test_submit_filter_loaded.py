"""`headway check` on a real Slurm: of the submit filter counts what slurmctld has loaded, not the file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.inputs.shipped import shipped
from headway_adapters.slurm import SlurmAdapter

pytestmark = [pytest.mark.slurm, pytest.mark.both_slurms]

#: As it holds jobs without end: no daemon runs here that could give a sign of life.
SHIPPED = (
    shipped("slurm/job_submit.lua")
    .read_text()
    .replace('HEARTBEAT = "/run/headway/heartbeat"', 'HEARTBEAT = ""')
    .replace('FENCE = "/var/lib/slurm/slurmctld/headway.epoch"', 'FENCE = ""')
)
OFF = SHIPPED.replace("{ batch = true }", "{}")
assert OFF != SHIPPED


class Filtered:
    """A cluster behind the filter, its file, and what `check` says of it."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.file = cluster.root / "etc" / "job_submit.lua"

    def put(self, text: str, age: float = 0.0) -> None:
        """Replace the file, by a file that was last modified so many seconds ago."""
        new = self.file.with_name("new.lua")
        new.write_text(text)
        os.utime(new, (time.time() - age,) * 2)
        new.rename(self.file)
        self.next_second()

    def next_second(self) -> None:
        """Slurm counts whole seconds."""
        moment = int(time.time())
        self.cluster.until(lambda: int(time.time()) > moment, what="the next second")

    def submit(self) -> bool:
        """Submit a job that waits in any case; whether it entered held."""
        job = self.cluster.submit(1, 1, hold=False, begin="now+1hour")
        return bool(self.cluster.jobs()[job]["priority"] == 0)

    def restart(self) -> None:
        self.cluster.saved()
        self.cluster.kill("slurmctld", "TERM")
        self.next_second()
        self.cluster.up("slurmctld")

    def said(self) -> str:
        options = {"partitions": ["batch"], **self.cluster.options}
        with SlurmAdapter(options, read_only=True) as adapter:
            (found,) = [check for check in adapter.check() if check.subject == "jobs enter held"]
        return "FAIL" if not found.ok else "ok" if found.known else "?"


@pytest.fixture
def filtered(slurm_factory: Callable[..., Any], tmp_path: Path) -> Filtered:
    lua = tmp_path / "job_submit.lua"
    lua.write_text(SHIPPED)
    return Filtered(slurm_factory("--lua", str(lua), "--set", "JobSubmitPlugins=lua"))


def test_a_file_that_slurmctld_has_loaded_at_its_start_is_in_order(filtered: Filtered) -> None:
    filtered.restart()
    assert filtered.said() == "ok"
    filtered.next_second()
    os.utime(filtered.file)
    assert filtered.said() == "?"
    filtered.next_second()
    assert filtered.submit()
    filtered.next_second()
    assert filtered.said() == "ok"


def test_a_file_with_an_older_time_is_not_loaded_and_jobs_show_it(filtered: Filtered) -> None:
    filtered.next_second()
    filtered.put(OFF)
    # 24.11 may load it at the second submission.
    filtered.cluster.until(lambda: not filtered.submit(), what="it is loaded")
    filtered.put(SHIPPED, age=5000)
    assert filtered.said() == "?"
    assert not filtered.submit()
    assert filtered.said() == "FAIL"
    filtered.restart()
    assert filtered.said() == "ok"
    filtered.next_second()
    assert filtered.submit()
    assert filtered.said() == "ok"


def test_with_a_broken_file_or_none_the_loaded_script_goes_on(filtered: Filtered) -> None:
    filtered.next_second()
    filtered.put(SHIPPED + "\nfunction (")
    assert filtered.said() == "?"
    assert filtered.submit()
    assert filtered.said() == "ok"
    filtered.file.unlink()
    assert filtered.said() == "FAIL"
    assert filtered.submit()
