"""What `headway check` says of a Slurm's configuration."""

from __future__ import annotations

import pytest
from pretended import result
from pretended_slurm import FIXTURES, PretendedSlurm

from headway_adapters.slurm import SlurmAdapter, SlurmOptions, checks


@pytest.mark.parametrize(
    ("kind", "parameters", "starts"),
    [
        ("sched/backfill", "batch_sched_delay=0,bf_interval=1", True),
        ("sched/backfill", "bf_interval=5", True),
        ("sched/backfill", "bf_interval=6", False),
        ("sched/backfill", "batch_sched_delay=0", False),
        ("sched/builtin", "bf_interval=1", False),
    ],
)
def test_it_says_where_heterogeneous_jobs_stay_held_and_is_in_order_in_any_case(kind, parameters, starts):
    check = checks._scheduler({"SchedulerType": kind, "SchedulerParameters": parameters})
    assert check.ok and check.detail.startswith(kind)
    assert ("heterogeneous jobs stay held" in check.detail) is not starts
    assert ("bf_interval=1" in check.detail) is not starts


def test_a_closed_partition_can_be_watched_and_not_driven_and_an_unknown_one_is_a_mistake():
    slurm = PretendedSlurm()
    text = (FIXTURES / "show-partitions-oneline.txt").read_text().replace("State=UP", "State=DOWN")
    slurm.answer = lambda argv: result(argv, text) if "partition" in argv else None
    options = SlurmOptions(partitions=("batch", "btach"), accounting="no")
    with SlurmAdapter(options, read_only=True, transport=slurm) as one:
        found = {check.subject: check for check in one.check()}
    closed, unknown = found["partition batch"], found["partition btach"]
    assert not closed.ok and closed.driving and "State=UP" in closed.remedy
    assert not unknown.ok and not unknown.driving


@pytest.mark.parametrize(("on", "said"), [(True, "shows them (at most 10 are"), (False, "shows none; with")])
def test_it_says_whether_planned_starts_are_shown(on, said):
    check = checks._planned_starts(SlurmOptions(partitions=("batch",), show_starts=on))
    assert check.ok and said in check.detail
