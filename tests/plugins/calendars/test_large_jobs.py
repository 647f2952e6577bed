"""Windows for large jobs: acceptance 8 of the dossier of open job management, and our decisions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decisions import Start
from headway.emulation import emulate
from headway.errors import UserError
from headway.events import JobEnded, JobSubmitted
from headway.inquiry import explain
from headway.model import ClusterDescription, JobDescription, Request
from headway.partitions.description import TorusConfig
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway.workload.jobs import TraceJob

HOUR, DAY = 3600.0, 86400.0
#: The run begins on Thursday, 1 January 1970; the window is open on Saturdays from 08:00 to 20:00.
OPENS, CLOSES = 2 * DAY + 8 * HOUR, 2 * DAY + 20 * HOUR
SATURDAY = {"windows": {"weekend": {"from": "08:00", "to": "20:00", "days": ["sat"]}}}
FLAT = ClusterDescription.flat(8)
TORUS = TorusConfig(shape=(2, 2, 2)).description()


def job(name: str, submit: float, processors: int, hours: float, limit: float | None = None) -> TraceJob:
    request = Request(processors=processors, walltime=HOUR * (limit or hours))
    return TraceJob(JobDescription(id=name, submit_time=submit, request=request), HOUR * hours)


def run(jobs: list[TraceJob], cluster: Any = FLAT, policy: str = "easy", *more: Any, **options: Any) -> Any:
    plugins = [
        PluginConfig(policy, {}, "test"), PluginConfig("large-jobs", {**SATURDAY, **options}, "test"),
        *(PluginConfig(name, {"blocks": "prepared"}, "test") for name in more),
    ]  # fmt: skip
    return emulate(cluster, sorted(jobs, key=lambda j: j.job.submit_time), plugins, Catalogue(), label="x")


def starts(result: Any) -> dict[str, float]:
    return {one.job.id: one.start_time for one in result.jobs}


def test_8_a_large_job_starts_when_the_window_opens_and_not_before() -> None:
    found = starts(run([job("large", 0, 5, 1), job("half", 0, 4, 1)]))
    assert found == {"large": OPENS, "half": 0}


def test_8_small_jobs_that_would_reach_into_the_window_are_not_started() -> None:
    jobs = [
        job("large", 0, 8, 1),
        job("short", OPENS - 3 * HOUR, 1, 2),
        job("long", OPENS - 3 * HOUR, 1, 2, limit=4),
    ]
    assert starts(run(jobs)) == {"large": OPENS, "short": OPENS - 3 * HOUR, "long": OPENS + HOUR}


@pytest.mark.parametrize("comes", [1, 3])
def test_who_waits_already_when_a_large_job_comes_holds_up_nobody(comes: float) -> None:
    """The slow one would reach into the window, whether it is queued before the large job or after it."""
    jobs = [
        job("a", 0, 4, 52),
        job("b", 0, 2, 20),
        job("slow", 2 * HOUR, 4, 60),
        job("next", 4 * HOUR, 2, 30),
    ]
    assert starts(run([*jobs, job("large", comes * HOUR, 8, 1)], policy="fcfs"))["next"] == 4 * HOUR


def test_who_comes_into_the_windows_way_by_time_alone_holds_up_nobody() -> None:
    """At four o'clock the slow one could still be over in time; it cannot from eight o'clock on."""
    jobs = [job("a", 0, 4, 48), job("b", 0, 2, 20), job("slow", HOUR, 4, 48), job("next", 4 * HOUR, 2, 30)]
    began = starts(run([*jobs, job("large", 2 * HOUR, 8, 1)], policy="fcfs"))["next"]
    assert 8 * HOUR < began <= 8 * HOUR + 120


def test_where_no_large_job_waits_the_machine_is_not_emptied() -> None:
    assert starts(run([job("long", OPENS - HOUR, 1, 4)])) == {"long": OPENS - HOUR}


def scheduler_with(*jobs: TraceJob) -> tuple[Scheduler, list[Any]]:
    """A scheduler that was told of these jobs at the beginning, and what it decided."""
    configs = [PluginConfig("easy", {}, "test"), PluginConfig("large-jobs", SATURDAY, "test")]
    scheduler = Scheduler(FLAT, Plugins.load(configs, Catalogue(), frozenset({Start})))
    return scheduler, scheduler.step(0.0, [JobSubmitted(0.0, one.job) for one in jobs])


def test_a_large_job_that_is_cancelled_lets_the_others_go() -> None:
    scheduler, decided = scheduler_with(job("large", 0, 8, 1), job("long", 0, 1, 100))
    assert decided == []
    [start] = scheduler.step(10.0, [JobEnded(10.0, "large", "cancelled")])
    assert start.job_id == "long"


def test_in_a_window_large_jobs_come_first_and_those_that_are_left_wait_for_the_next() -> None:
    jobs = [job("first", OPENS + HOUR, 8, 12), job("second", OPENS, 8, 1), job("third", OPENS, 6, 11.5)]
    jobs += [job("small", OPENS, 2, 1), job("other", OPENS, 2, 1, limit=200)]
    found = starts(run(jobs))
    assert found["second"] == OPENS and found["third"] == OPENS + HOUR
    assert found["small"] == OPENS + HOUR, "beside the second large job"
    assert found["first"] == OPENS + 7 * DAY
    assert found["other"] >= OPENS + 7 * DAY, "its limit reaches into the next window"


def test_what_a_user_is_told() -> None:
    scheduler, _ = scheduler_with(job("large", 0, 8, 1), job("long", 0, 1, 100))
    large, other = ("\n".join(explain(scheduler, name, str)) for name in ("large", "long"))
    assert (
        "jobs above 50% of the machine start only in windows for large jobs; the next window opens at "
        "1970-01-03 08:00 UTC"
    ) in large
    assert "reaches into the window for large jobs that opens at 1970-01-03 08:00 UTC" in other


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"windows": {"w": {"from": "08:00", "for": "1h", "users": ["ada"]}}}, "expected no users"),
        ({"windows": {}}, "windows: expected a longer list"),
        ({"above": 1.5}, "less than 1"),
        ({"zone": "Mars/Olympus"}, "a time zone such as"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        run([], **options)


@st.composite
def weeks(draw: Any) -> list[TraceJob]:
    jobs = []
    for number in range(draw(st.integers(1, 12))):
        submit = draw(st.integers(0, 60)) * HOUR
        hours = draw(st.integers(1, 30))
        jobs.append(
            job(f"J{number}", submit, draw(st.integers(1, 8)), hours, hours + draw(st.integers(0, 9)))
        )
    return jobs


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("blocks", [False, True], ids=["flat", "prepared"])
def test_8_no_large_job_starts_outside_and_nobody_is_killed(policy: str, blocks: bool) -> None:
    @given(weeks())
    @settings(max_examples=8, deadline=None)
    def check(jobs: list[TraceJob]) -> None:
        cluster, unit = (TORUS, 512) if blocks else (FLAT, 1)
        jobs = [
            job(one.job.id, one.job.submit_time, one.job.request.processors * unit, one.runtime / HOUR,
                one.job.request.walltime / HOUR)
            for one in jobs
        ]  # fmt: skip
        result = run(jobs, cluster, policy, *(["partitions"] if blocks else []))
        assert {one.state for one in result.jobs} == {"completed"}
        for one in result.jobs:
            if one.job.request.processors > 4 * unit:
                # Its first instruction comes a little after the decision.
                assert OPENS <= one.start_time % (7 * DAY) < CLOSES + 120
        # Who waits at an opening finds the machine empty.
        waiting = [o for o in result.jobs if o.job.request.processors > 4 * unit and o.job.submit_time == 0]
        if waiting:
            for other in result.jobs:
                if other.start_time < OPENS:
                    assert other.start_time + other.job.request.walltime <= OPENS + 120

    check()
