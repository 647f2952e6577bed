"""The algorithms on two small sites, worked out by hand, and what must hold on any grid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from security_grids import GRID, example

from headway_plugins.security.grid import Course, Grid, GridJob, Placed, Shortfall, batch, mapping, sareg
from headway_plugins.security.levels import ROUNDING, need_of, profile_2005, raise_exactly

#: site, start, end of A to G; None: nobody took it.
BY_SAREG = [(1, 0, 143.363), (2, 0, 72.056578), None, (2, 20, 130.963), None, (2, 130.963, 174.681274),
            (1, 40, 74.483)]  # fmt: skip
BY_NS_EDF = [(1, 0, 103.736408), (2, 0, 69.397492), None, (1, 103.736408, 194.133370), None,
             (2, 69.397492, 114.494708), (1, 40, 70.316290)]  # fmt: skip
BY_MINMIN = [(2, 0, 113.736408), (1, 0, 61.397492), (1, 110.396962, 179.509334), (1, 20, 110.396962), None,
             (2, 113.736408, 158.833624), (2, 40, 72.316290)]  # fmt: skip
BY_SUFFERAGE = [(1, 0, 103.736408), (2, 0, 69.397492), (2, 130.396962, 193.509334), (2, 20, 130.396962),
                None, (1, 103.736408, 152.833624), (1, 40, 70.316290)]  # fmt: skip


def seen(course):
    return [
        (p.site + 1, pytest.approx(p.start, abs=1e-5), pytest.approx(p.end, abs=1e-5))
        if isinstance(p, Placed)
        else None
        for p in course.placed
    ]


@pytest.mark.parametrize(
    ("run", "wanted", "value", "overall"),
    [
        (lambda: sareg(GRID, example()), BY_SAREG, 9.06, 6.471429),
        (lambda: sareg(GRID, example(), drawn=True), BY_NS_EDF, 6.42, 4.585714),
        (lambda: batch(GRID, example(), "minmin"), BY_MINMIN, 6.42, 4.585714),
        (lambda: batch(GRID, example(), "sufferage"), BY_SUFFERAGE, 6.42, 4.585714),
    ],
    ids=["sareg", "ns-edf", "minmin", "sufferage"],
)
def test_t6_two_sites(run, wanted, value, overall):
    course = run()
    assert seen(course) == wanted
    assert course.guarantee_ratio * 7 == pytest.approx(5)
    assert course.security_value == pytest.approx(value, abs=1e-9)
    assert course.overall == pytest.approx(overall, abs=1e-6)


def test_t6_the_levels_that_are_left_for_those_who_come_late():
    course = sareg(GRID, example())
    found = {
        job.name: tuple(option.level for option in job.need.options(placed.steps).values())
        for job, placed in zip(course.jobs, course.placed, strict=True)
        if isinstance(placed, Placed)
    }
    top = (0.9, 1.0, 0.9)
    assert found == {"A": top, "B": (0.9, 0.7, 0.9), "D": top, "F": (0.6, 0.1, 0.6), "G": top}
    assert [placed.transfer for placed in course.placed if isinstance(placed, Placed)] == [0, 8, 20, 0, 0]
    wide = course.placed[4]
    assert isinstance(wide, Shortfall) and wide.seconds == float("inf")


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [("minmin", [(0, 0, 0), (2, 1, 0), (1, 0, 5)]), ("sufferage", [(1, 0, 0), (2, 1, 0), (0, 0, 7)])],
)
def test_t7_a_mapping_event(rule, wanted):
    """Run times on two sites of one processor: (5, 6), (7, 15), (9, 9.5)."""
    durations = np.array([[5.0, 6.0], [7.0, 15.0], [9.0, 9.5]])
    ones = np.ones(3, np.int64)
    assert mapping(0.0, [np.zeros(1), np.zeros(1)], ones, durations, rule, all_of_it=True) == wanted


@st.composite
def grids(draw):
    count = draw(st.integers(1, 3))
    grid = Grid(
        tuple(draw(st.integers(1, 6)) for _ in range(count)),
        tuple(tuple(draw(st.sampled_from([1e6, 5e6])) for _ in range(count)) for _ in range(count)),
    )
    jobs, now = [], 0.0
    for number in range(draw(st.integers(1, 12))):
        now += draw(st.sampled_from([0.0, 1.0, 7.5, 30.0]))
        low = draw(st.sampled_from([0.1, 0.3, 0.5]))
        need = need_of(
            {"bytes": draw(st.sampled_from([1e6, 2e7, 8e7])), "encryption": [low, 0.9]}, profile_2005(), "job"
        )
        execution = draw(st.floats(1, 50))
        jobs.append(
            GridJob(
                str(number), now, draw(st.integers(1, 7)), execution,
                now + execution + draw(st.floats(0, 300)), draw(st.integers(0, count - 1)),
                draw(st.sampled_from([0.0, 1e7])), need, tuple(draw(st.integers(0, 2)) for _ in range(3)),
            )
        )  # fmt: skip
    return grid, jobs


def fits(grid: Grid, course: Course) -> None:
    """Nobody begins before it came, and no processor is given twice."""
    for job, placed in zip(course.jobs, course.placed, strict=True):
        if not isinstance(placed, Placed):
            continue
        assert placed.start >= job.arrival
        need = job.execution + placed.transfer + job.need.cost(placed.steps)
        assert placed.end - placed.start == pytest.approx(need)
        beside = sum(
            other.processors
            for other, where in zip(course.jobs, course.placed, strict=True)
            if isinstance(where, Placed)
            and where.site == placed.site
            and where.start <= placed.start + 1e-9 < where.end - 1e-9
        )
        assert beside <= grid.processors[placed.site]


@settings(max_examples=40, deadline=None)
@given(grids(), st.booleans(), st.sampled_from(["home_first", "best"]), st.sampled_from(["fixed", "edf"]))
def test_accepted_jobs_end_in_time_whatever_comes(given_grid, drawn, choice, plan):
    grid, jobs = given_grid
    course = sareg(grid, jobs, drawn=drawn, site_choice=choice, plan=plan)
    fits(grid, course)
    for job, placed in zip(jobs, course.placed, strict=True):
        if isinstance(placed, Placed):
            assert placed.end <= job.deadline + ROUNDING
        else:
            assert placed is not None and placed.seconds > 0


@settings(max_examples=40, deadline=None)
@given(grids(), st.sampled_from(["minmin", "sufferage"]), st.sampled_from([0.0, 10.0]))
def test_batch_schedulers_run_whatever_fits(given_grid, rule, interval):
    grid, jobs = given_grid
    course = batch(grid, jobs, rule, interval)
    fits(grid, course)
    for job, placed in zip(jobs, course.placed, strict=True):
        assert (placed is None) == (job.processors > max(grid.processors))
        if interval and isinstance(placed, Placed):
            assert placed.start % interval == pytest.approx(0.0)


@settings(max_examples=40, deadline=None)
@given(grids())
def test_the_first_job_has_the_best_levels_that_its_slack_allows(given_grid):
    grid, jobs = given_grid
    placed = sareg(grid, jobs[:1], raising=raise_exactly).placed[0]
    if isinstance(placed, Placed):
        job = jobs[0]
        slack = job.deadline - placed.start - placed.transfer - job.execution
        assert placed.steps == raise_exactly(job.need, slack)


def test_t9_the_overhead_as_a_rate_of_the_run():
    """What transfer and protection make of the speed of the first two jobs."""
    course = sareg(GRID, example())
    found = [
        job.execution / (placed.end - placed.start)
        for job, placed in zip(course.jobs[:2], course.placed[:2], strict=True)
        if isinstance(placed, Placed)
    ]
    assert found == [pytest.approx(0.697530, abs=1e-6), pytest.approx(0.832679, abs=1e-6)]
