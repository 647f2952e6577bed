"""A user who makes a limit longer while the job is started gains nothing by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pretended import events
from pretended_slurm import RECORDS, PretendedSlurm

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome
from headway_adapters.slurm import SlurmAdapter, SlurmOptions

#: Job 15 asks for so many minutes.
PLANNED = 10
#: As Slurm writes it.
INFINITE = 4294967295


def limits_set(slurm: PretendedSlurm) -> list[str]:
    return [word for argv in slurm.said for word in argv if word.startswith("TimeLimit=")]


def started(
    slurm: PretendedSlurm,
    minutes: int | None,
    before: Sequence[d.Decision] = (),
    minutes_before: int = PLANNED,
) -> list[str]:
    """Job 15 is started, and runs by the next look with a limit of so many minutes (None: as it was); the
    limits that were set."""
    slurm.jobs[0] = {**slurm.jobs[0], "time_limit": minutes_before}
    options = SlurmOptions(partitions=("batch",), poll_interval=0.05, accounting="no")
    with SlurmAdapter(options, transport=slurm) as one:
        one.describe()
        events(one)
        start = d.Start("15", (("node1", 4), ("node2", 4)))
        assert list(one.apply(one.now(), [*before, start])) == [Outcome(True)] * (len(before) + 1)
        running: dict[str, Any] = {key: RECORDS[7][key] for key in ("job_resources", "nodes", "start_time")}
        slurm.jobs[0] |= {**running, "job_state": "RUNNING", "state_reason": "None", "priority": 1}
        slurm.jobs[0]["time_limit"] = minutes or PLANNED
        told: list[ev.Event] = []
        while not any(isinstance(event, ev.JobStarted) for event in told):
            told += events(one)
    return limits_set(slurm)


def test_a_limit_that_was_made_longer_while_the_job_was_started_is_set_back() -> None:
    assert started(PretendedSlurm(), 600) == [f"TimeLimit={PLANNED}"]


@pytest.mark.parametrize("minutes", [None, PLANNED - 5])
def test_a_limit_that_is_as_it_was_or_shorter_stays(minutes: int | None) -> None:
    assert started(PretendedSlurm(), minutes) == []


def test_a_limit_that_headway_itself_made_longer_before_the_start_stays() -> None:
    longer = d.SetTimeLimit("15", 3600.0)
    assert started(PretendedSlurm(), 60, [longer]) == ["TimeLimit=60"]
    assert started(PretendedSlurm(), 600, [longer]) == ["TimeLimit=60", "TimeLimit=60"]


def test_a_job_without_a_limit_keeps_none() -> None:
    assert started(PretendedSlurm(), INFINITE, minutes_before=INFINITE) == []
