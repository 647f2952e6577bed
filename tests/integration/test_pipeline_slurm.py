"""A pipeline on a real Slurm: its first job is the controlled run, the next one runs with the copies that
follow from it, each filter a step of the job."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from counting import HEADWAY, Counting

from headway_plugins.pipelines import commands

# The jobs run headway, and the system that 24.11 is in has no Python with its libraries.
pytestmark = [pytest.mark.slurm, pytest.mark.installed_slurm]
PROCESSORS = 6


@pytest.mark.long
def test_a_profile_run_fills_the_store_and_the_next_job_is_sized(slurm_factory: Callable[..., Any]) -> None:
    cluster = slurm_factory(nodes=2, cpus=PROCESSORS // 2)
    words = Counting(cluster.root / "words", "srun", 60)
    rules = ["--strategy", "NOAS"]
    script = shlex.join([str(HEADWAY), "size", *words.words, *rules, "--learn", "--run"])

    def ran() -> dict[str, Any]:
        said = words.root / "said"
        job = cluster.submit(PROCESSORS, script=script, hold=False, minutes=10, output=said)
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        cluster.until(lambda: cluster.state(job) in over, what="the job ends")
        assert cluster.state(job) == "COMPLETED", said.read_text()
        return words.ran(job)

    first = ran()
    assert first["profile"] and first["copies"] == {"read": 1, "count": 1, "decide": 1}
    # What headway makes of what was measured, outside of any job.
    said = CliRunner(env={"COLUMNS": "200"}).invoke(
        commands.size, [*words.words, *rules, "--processors", str(PROCESSORS)], catch_exceptions=False
    )
    assert "by shares of bytes and time of the controlled run" in said.output
    second = ran()
    copies = ",".join(str(count) for count in second["copies"].values())
    assert f"HEADWAY_COPIES={copies}" in said.output
    assert not second["profile"] and second["processors"] == str(PROCESSORS)
    assert sum(second["copies"].values()) == PROCESSORS and second["copies"]["read"] > 1
    for one in (first, second):
        # Every filter was a step of the job, with its copies.
        assert Counter(copy["filter"] for copy in one["stats"]) == one["copies"]
        assert len({(copy["job"], copy["step"]) for copy in one["stats"]}) == 3
    print(f"controlled run {first['seconds']:.2f} s, with {copies}: {second['seconds']:.2f} s")
