"""The policy for windows in emulation: who is chosen, who waits and why, what a failed task changes."""

import numpy as np
import pytest
from building import described, emulate, plugged, traced
from hypothesis import given
from hypothesis import strategies as st
from test_window_vectors import JOBS

from headway import events as ev
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway_plugins.windows.clock import Windows
from headway_plugins.windows.dispatch import ORDERS, dispatch
from headway_plugins.windows.policy import TwoPhase, TwoPhaseOptions
from headway_plugins.windows.staged import Staged

DAY = 86400


def tasks(jobs, outcomes=(), **more):
    """The jobs of stages as a workload; ``outcomes``: {task's id: outcome}."""
    found = []
    for job in jobs:
        for stage, lengths in enumerate(job.stages, start=1):
            for number, length in enumerate(lengths, start=1):
                name = f"{job.name}.{stage}.{number}"
                mark = {"job": job.name, "stage": stage, "reward": job.reward, "priority": job.priority}
                found.append(
                    traced(name, 1, length, outcome=dict(outcomes).get(name, "completed"),
                           attributes={"window": mark}, **more)
                )  # fmt: skip
    return found


class Night:
    """A run in emulation."""

    def __init__(self, workload, processors=2, **options):
        given = {"opens": "00:00", "length": 10, "fill": 1.0, "reselect": 0, **options}
        self.policy = TwoPhase(TwoPhaseOptions(**given))
        self.run = emulate(ClusterDescription.flat(processors), workload, self.policy, max_rounds=20000)
        assert self.run.problems == []

    def ends(self):
        """When each job of stages ended; None: not."""
        found = {}
        for name, result in self.run.results.items():
            found.setdefault(name.split(".")[0], []).append(result.end_time)
        return {job: None if None in ends else max(ends) for job, ends in found.items()}


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({}, {"A": 10, "B": 7, "C": DAY + 6, "D4": DAY + 8}),
        ({"order": "STCPU"}, {"A": 8, "B": 9, "C": DAY + 6, "D4": DAY + 8}),
        ({"fill": 0.8}, {"A": 7, "D4": 9, "B": DAY + 7, "C": DAY + 9}),
    ],
)
def test_12_the_set_of_a_night_and_the_rest_in_the_next(options, ends):
    found = Night(tasks(JOBS), **options).ends()
    assert {job: end for job, end in found.items() if end < DAY} == {
        job: end for job, end in ends.items() if end < DAY
    }
    assert {job for job, end in found.items() if end > DAY} == {job for job, end in ends.items() if end > DAY}
    assert all(end % DAY <= 10 for end in found.values())


stages = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple), min_size=1, max_size=3)
batches = st.lists(stages.map(tuple), min_size=1, max_size=5).map(
    lambda found: [Staged(f"j{at}", one, priority=at % 3) for at, one in enumerate(found)]
)


@given(batches, st.integers(1, 4), st.sampled_from(["LCPF", "STCPU", "PRIO"]))
def test_it_runs_as_it_was_dispatched(jobs, processors, order):
    planned = dispatch(jobs, processors, DAY, ORDERS[order]).ends
    found = Night(tasks(jobs), processors, order=order, length=DAY).ends()
    assert [found[job.name] for job in jobs] == list(planned)


@given(batches, st.integers(1, 3))
def test_by_chance_everything_runs_once_and_in_order(jobs, processors):
    night = Night(tasks(jobs), processors, order="RANDOM", length=DAY)
    results = night.run.results
    for job in jobs:
        last = 0.0
        for stage in range(1, len(job.stages) + 1):
            mine = [r for name, r in results.items() if name.startswith(f"{job.name}.{stage}.")]
            assert all(r.state == "completed" and r.starts == 1 for r in mine)
            assert min(r.start_time for r in mine) >= last
            last = max(r.end_time for r in mine)
    ends = night.ends().values()
    assert max(ends) * processors <= sum(job.work for job in jobs) + (processors - 1) * sum(
        job.path for job in jobs
    )


def test_a_job_of_which_a_task_failed_goes_and_another_comes():
    # A, B and C are chosen (23 of 24). B fails at 2: of 20 its other task has 2, so A and D4 are worth most.
    night = Night(tasks(JOBS, {"B.1.1": "failed"}), length=12)
    assert night.ends() == {"A": 9, "B": None, "C": DAY + 6, "D4": 11}
    assert night.run.states["B.2.1"] == "pending"


def test_the_choice_is_not_made_anew_before_its_time():
    # At 5 C has begun, and what is left does not suffice for D4.
    ends = Night(tasks(JOBS, {"B.1.1": "failed"}), length=12, reselect=5).ends()
    assert ends["C"] <= 12 and ends["A"] <= 12 and ends["D4"] > DAY


def test_other_jobs_start_where_no_task_of_the_set_waits():
    other = traced("other", 1, 3)
    night = Night([other, *tasks([Staged("x", ((2, 2), (2,)))])], length=10)
    assert night.run.starts["other"] == 2
    assert night.ends()["x"] == 4


def test_what_runs_already_takes_of_the_window():
    # The other job has one processor until 8: 12 processor-seconds are left, and A with 8 is worth most.
    night = Night([traced("other", 1, 8), *tasks(JOBS, submit=1)], length=10)
    assert {job for job, end in night.ends().items() if job != "other" and end <= 10} <= {"A", "B", "C", "D4"}
    assert night.policy is not None
    works = {job.name: job.work for job in JOBS}
    chosen = sum(works[job] for job, end in night.ends().items() if job != "other" and end <= 10)
    assert chosen <= 11


@pytest.mark.parametrize(
    ("leftovers", "state", "end"), [("keep", "completed", 20), ("kill", "cancelled", 10)]
)
def test_what_runs_when_the_window_closes(leftovers, state, end):
    # It is believed to take 5 s, and takes 20.
    job = traced("x", 1, 30, runtime=20, attributes={"window": {"job": "x", "stage": 1}})

    class Soon:
        @hookimpl
        def predict_runtime(self, job):
            return 5.0

    policy = TwoPhase(TwoPhaseOptions(opens="00:00", length=10, leftovers=leftovers))
    run = emulate(ClusterDescription.flat(1), [job], policy, Soon())
    assert run.problems == []
    assert (run.states["x"], run.results["x"].end_time) == (state, end)


def barrier(policy, jobs, now=0.0, processors=2):
    """Why each job waits, and who started."""
    scheduler = Scheduler(ClusterDescription.flat(processors), plugged(policy))
    scheduler.step(now, [ev.JobSubmitted(time=now, job=job) for job in jobs])
    return {
        job.id: str(state.barrier) if (state := scheduler.state.jobs[job.id]).barrier else state.status.value
        for job in jobs
    }


def test_12_the_reasons():
    jobs = [trace.job for trace in tasks([*JOBS, Staged("E", ((11,),))])]
    why = barrier(TwoPhase(TwoPhaseOptions(opens="00:00", length=10, fill=0.8)), jobs)
    assert why["A.1.1"] == "starting"
    assert why["A.2.1"] == "stage 1 of job A has not ended"
    assert why["B.1.1"] == (
        "not in the set: with this job the set would need 1.56 of the part that may be filled"
    )
    assert why["E.1.1"] == "its stages take 11 s, and the window has 10 s"
    why = barrier(TwoPhase(TwoPhaseOptions(opens="20:00", length=10)), jobs)
    assert set(why.values()) == {"it waits for its window, which opens at 20:00 (UTC)"}


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("A", "expected a job and a stage in its attribute window, found 'A'"),
        ({"stage": 1}, "expected the name of a job of stages, found None"),
        ({"job": "A", "stage": 0}, "job A: expected a stage from 1 on, found 0"),
        ({"job": "A", "stage": 1, "reward": 0}, "job A: expected a reward above 0, found 0"),
        ({"job": "A", "stage": 1, "priority": "x"}, "job A: expected a number as its priority, found 'x'"),
    ],
)
def test_marks_that_cannot_be(mark, said):
    job = described("1", 1, 5, attributes={"window": mark})
    assert barrier(TwoPhase(TwoPhaseOptions(opens="00:00")), [job]) == {"1": said}


def test_a_stage_that_is_missing():
    jobs = [
        described(str(stage), 1, 5, attributes={"window": {"job": "A", "stage": stage}}) for stage in (1, 3)
    ]
    why = barrier(TwoPhase(TwoPhaseOptions(opens="00:00")), jobs)
    assert set(why.values()) == {"job A has no stage 2"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"opens": 1050}, 'a time of day in quotes, such as "17:30", found the number 1050'),
        ({"opens": "25:00"}, "a time of day such as '20:00', found '25:00'"),
        ({"timezone": "Nowhere"}, "a time zone such as Europe/Berlin, found 'Nowhere'"),
        ({"length": "2d"}, "less than or equal to 86400"),
        ({"fill": 0}, "greater than 0"),
    ],
)
def test_options_that_cannot_be(options, said):
    with pytest.raises(ValueError, match=said):
        TwoPhaseOptions(**options)


def test_a_cluster_that_cannot_end_jobs():
    policy = TwoPhase(TwoPhaseOptions(leftovers="kill"))
    with pytest.raises(UserError, match="leftovers: kill: the cluster cannot end running jobs"):
        Scheduler(ClusterDescription.flat(2), plugged(policy), capabilities=frozenset())


def test_windows_on_some_days_over_midnight():
    # The epoch was a Thursday.
    windows = Windows("20:00", 13 * 3600, ["mon", "fri"], "UTC")
    assert windows.at(0).opens == 1 * DAY + 20 * 3600
    assert windows.at(2 * DAY + 8 * 3600).opens == 1 * DAY + 20 * 3600
    assert windows.at(2 * DAY + 9 * 3600).opens == 4 * DAY + 20 * 3600


def test_what_has_happened_is_known_after_a_restart():
    policy = TwoPhase(TwoPhaseOptions(opens="00:00", length=10))
    arrived = [trace.job for trace in tasks([Staged("A", ((2, 2), (1,)))])]
    scheduler = Scheduler(ClusterDescription.flat(1), plugged(policy))
    scheduler.step(0.0, [ev.JobSubmitted(time=0.0, job=job) for job in arrived])
    scheduler.step(1.0, [ev.JobStarted(time=0.0, job_id="A.1.1", placement=())])
    scheduler.step(2.0, [ev.JobEnded(time=2.0, job_id="A.1.1", outcome="failed")])
    saved = policy.checkpoint()
    again = TwoPhase(TwoPhaseOptions(opens="00:00", length=10))
    again.restore(saved)
    why = barrier(again, arrived[1:], now=3.0)
    assert set(why.values()) == {"job A can no longer be done (stage 1: job A.1.1 failed)"}


def test_what_a_run_earned():
    night = Night(tasks(JOBS), fill=1.0)

    class Result:
        jobs = list(night.run.results.values())

    figures = night.policy.register_metrics()["two_phase"](Result)
    assert figures["completed"] == 4
    assert figures["reward"] == 31
    assert figures["wasted processor-seconds"] == 0
    assert np.isfinite(list(figures.values())).all()
