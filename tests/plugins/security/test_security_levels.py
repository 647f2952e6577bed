"""What protection costs and which levels fit, by the worked examples and beside an enumeration."""

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import UserError
from headway_plugins.security.levels import (
    ROUNDING,
    Option,
    at_levels,
    need_of,
    parse_profile,
    part_of,
    profile_2005,
    raise_exactly,
    raise_in_turn,
    undominated,
)

PROFILE = profile_2005()


def need(kilobytes, **ranges):
    return need_of({"bytes": kilobytes * 1e3, **ranges}, PROFILE, "job 1")


def levels(needed, steps):
    return tuple(option.level for option in needed.options(steps).values())


def test_t1_the_costs_of_a_megabyte():
    encryption, integrity, _ = PROFILE.ladders
    assert [1e3 * option.cost(1e6) for option in encryption] == pytest.approx(
        [5.926, 10.370, 26.667, 29.630, 34.072, 47.416, 66.667, 74.074, 160.000], abs=1e-3
    )
    assert [1e3 * option.cost(1e6) for option in integrity] == pytest.approx(
        [41.841, 58.514, 83.333, 102.775, 145.349, 175.747, 229.358, 1333.333, 1886.792, 2000.000], abs=1e-3
    )


@pytest.mark.parametrize(
    ("kilobytes", "least", "most"),
    [(50, 92.388347, 271.0), (500, 113.883465, 1243.0), (1000, 137.766930, 2323.0)],
)
def test_t2_the_least_and_most_overhead(kilobytes, least, most):
    job = need(kilobytes)
    assert 1e3 * job.cost(job.lowest) == pytest.approx(least, abs=1e-6)
    assert 1e3 * job.cost(job.highest) == pytest.approx(most, abs=1e-6)


def test_t3_the_level_of_a_task_and_its_overhead():
    job = need(500)
    steps = at_levels(job, (0.7, 0.5, 0.6))
    assert job.level(steps) == pytest.approx(0.62)
    assert 4 * job.level(steps) == pytest.approx(2.48)
    assert 1e3 * job.cost(steps) == pytest.approx(254.007752, abs=1e-6)
    assert job.level(job.lowest) == pytest.approx(0.14)
    assert job.level(job.highest) == pytest.approx(0.93)


def test_t4_the_highest_overhead_of_a_range_and_the_deadline():
    job = need(1000, encryption=[0.1, 0.5], integrity=[0.1, 0.7], authentication=[0.3, 0.9])
    most = job.cost(job.highest)
    assert most == pytest.approx(0.426429348, abs=1e-9)
    arrival, execution, laxity = 100.0, 500.0, 50.0
    assert arrival + execution + most + laxity == pytest.approx(650.426429348, abs=1e-9)


SLACKS = [
    (5, (0.1, 0.1, 0.9), 4.939693, 0.26, None),
    (10, (0.6, 0.1, 0.9), 9.088684, 0.51, None),
    (12, (0.8, 0.1, 0.9), 11.754508, 0.61, None),
    (20, (0.8, 0.4, 0.9), 17.847900, 0.70, None),
    (30, (0.9, 0.4, 0.9), 26.440492, 0.75, ((0.8, 0.6, 0.9), 25.145100, 0.76)),
    (40, (0.9, 0.7, 0.9), 39.098780, 0.84, None),
    (50, (0.9, 0.7, 0.9), 39.098780, 0.84, None),
    (100, (0.9, 0.7, 0.9), 39.098780, 0.84, None),
    (150, (0.9, 0.8, 0.9), 149.496333, 0.87, None),
    (200, (0.9, 0.8, 0.9), 149.496333, 0.87, None),
    (216.162, (0.9, 1.0, 0.6), 216.148000, 0.87, ((0.9, 0.9, 0.9), 204.842245, 0.90)),
    (216.163, (0.9, 1.0, 0.9), 216.163000, 0.93, None),
]


@pytest.mark.parametrize(("slack", "raised", "cost", "level", "exact"), SLACKS)
def test_t5_levels_for_a_slack(slack, raised, cost, level, exact):
    job = need(100_000)
    for raising, (wanted, seconds, value) in (
        (raise_in_turn, (raised, cost, level)),
        (raise_exactly, exact or (raised, cost, level)),
    ):
        steps = raising(job, slack)
        assert levels(job, steps) == pytest.approx(wanted)
        assert job.cost(steps) == pytest.approx(seconds, abs=1e-6)
        assert job.level(steps) == pytest.approx(value)


@pytest.mark.parametrize("raising", [raise_in_turn, raise_exactly])
def test_t5_too_little_slack(raising):
    assert raising(need(100_000), 4.0) is None


@settings(max_examples=40, deadline=None)
@given(st.floats(1e3, 1e6), st.floats(0, 1.2), st.booleans())
def test_nothing_better_fits_than_the_exact_levels(kilobytes, share, half):
    job = need(kilobytes, **({"integrity": [0.2, 0.7], "encryption": [0.3, 0.6]} if half else {}))
    slack = share * job.cost(job.highest)
    fitting = [
        steps
        for steps in product(*(range(len(ladder)) for ladder in job.ladders))
        if job.cost(steps) <= slack + ROUNDING
    ]
    exact, in_turn = raise_exactly(job, slack), raise_in_turn(job, slack)
    assert (exact is None) == (in_turn is None) == (not fitting)
    if exact is not None and in_turn is not None:
        assert job.level(exact) == pytest.approx(max(map(job.level, fitting)))
        assert job.level(in_turn) <= job.level(exact) + 1e-9
        assert max(job.cost(exact), job.cost(in_turn)) <= slack + ROUNDING


def test_t8_an_option_that_is_worse_and_slower_is_left_out():
    found = undominated(
        [
            Option(0.5, "SHA-1", 355e6),
            Option(0.7, "AES-128-GCM", 2030e6),
            Option(0.9, "ChaCha20-Poly1305", 843e6),
            Option(1.0, "AES-256-GCM", 1390e6),
        ]
    )
    assert [(option.level, option.speed) for option in found] == [(0.7, 2030e6), (1.0, 1390e6)]


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.4, 0.5, 0.9, 1.0]), st.integers(1, 9)), min_size=1))
def test_on_a_ladder_the_cost_rises_with_the_level(options):
    given_options = [Option(level, "x", float(speed)) for level, speed in options]
    ladder = undominated(given_options)
    assert list(ladder) == sorted(ladder, key=lambda o: o.level)
    assert all(a.level < b.level and a.speed > b.speed for a, b in pairwise(ladder))
    for option in given_options:
        assert any(kept.level >= option.level and kept.speed >= option.speed for kept in ladder)


def test_a_range_above_the_top_means_the_top_and_one_between_two_options_the_next():
    encryption = PROFILE.ladders[0]
    assert [o.level for o in part_of(encryption, 0.95, 1.0)] == [0.9]
    assert [o.level for o in part_of(encryption, 0.31, 0.39)] == [0.4]
    assert [o.level for o in part_of(encryption, 0.3, 0.5)] == [0.3, 0.4, 0.5]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"encryption": [0.9, 0.3]}, "from low to high, found 0.9 to 0.3"),
        ({"encryption": [0.0, 0.3]}, "encryption"),
        ({"bytes": -1}, "bytes"),
        ({"cipher": "x"}, "cipher"),
        ({"weights": {"encryption": 0.9}}, "sum 1"),
    ],
)
def test_what_a_job_may_not_ask_for(asked, said):
    with pytest.raises(UserError, match="job 7") as caught:
        need_of(asked, PROFILE, "job 7")
    assert said in str(caught.value)


def test_a_profile_says_what_is_wrong_with_it():
    with pytest.raises(UserError, match=r"speeds\.yaml.*encryption"):
        parse_profile("name: x\nencryption: []\n", "speeds.yaml")
    with pytest.raises(UserError, match="expected a speed"):
        parse_profile(
            "name: x\nencryption: [{level: 0.5, option: AES}]\nintegrity: [{level: 1, option: B, speed: 1}]\n"
            "authentication: [{level: 1, option: C, seconds: 1}]\n",
            "speeds.yaml",
        )
