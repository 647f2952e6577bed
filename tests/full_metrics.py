"""A report of metrics in which everything is known."""

from __future__ import annotations

from headway.adapter import CommandCount
from headway.measured.counting import OF_CYCLES, OF_STARTS, OF_WAITS
from headway.measured.report import (
    DecisionCount,
    Histogram,
    LetterCount,
    Measured,
    OddityCount,
    OfPool,
    OfUser,
    OutageSeconds,
    WaitingJobs,
)


def _sizes(bounds: tuple[float, ...]) -> Histogram:
    return Histogram(bounds, tuple(range(len(bounds) + 1)), 12.5)


FULL = Measured(
    version="1.0",
    mode="drive",
    cluster="c",
    run=3,
    since=1.7e9,
    last_turn=1.7e9 + 60,
    last_cycle=1.7e9 + 59,
    cycle_seconds=_sizes(OF_CYCLES),
    step_seconds=_sizes(OF_CYCLES),
    plugin_seconds={"easy": 1.25},
    events={"JobSubmitted": 7},
    decisions=(DecisionCount("Start", "accepted", 5), DecisionCount("Start", "refused", 1)),
    commands=(CommandCount("slurm", "scontrol", "done", 9, 0.5),),
    waits=(OfPool("batch", "", _sizes(OF_WAITS)), OfPool("batch", "night", _sizes(OF_WAITS))),
    plan_errors=(
        OfPool("batch", "", _sizes(OF_WAITS), "early"),
        OfPool("batch", "", _sizes(OF_WAITS), "late"),
    ),
    start_seconds={"": _sizes(OF_STARTS)},
    waiting=(WaitingJobs("batch", "queue", 4), WaitingJobs("batch", "hold", 1)),
    waiting_as_of=1.7e9 + 50,
    users=(OfUser("ann", 5),),
    jobs=12,
    outages_begun=2,
    outages=(OutageSeconds("slurm", 1.7e9 + 40),),
    oddities=(OddityCount("slurm", "a job started that headway did not start", 1),),
    problems=1,
    requests_limited=3,
    letters=(LetterCount("delivered", 2),),
    journal_bytes=4096,
    journal_free_bytes=2**33,
    journal_lag_seconds=0.5,
    epoch=4,
    watts=1234.5,
    watts_nodes=3,
    power={"down": 2},
    cpu_seconds=12.0,
    memory_bytes=2**28,
)
