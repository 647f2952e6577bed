"""What `headway check` says of a Slurm's configuration."""

from __future__ import annotations

import pytest

from headway_adapters.slurm import checks


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
