"""The modal histogram of estimates: the specification's vectors V1 to V34 and V39, and what always holds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.errors import UserError
from headway_plugins.estimates.modal import (
    PAPER,
    PUBLISHED_CODE,
    Mode,
    Pair,
    counts,
    curve,
    head_times,
    histogram,
    modes,
    modes_by_power,
    shape,
    shares,
    times,
    with_given_shares,
    with_given_times,
    with_heads,
)
from headway_plugins.estimates.ranks import RANKS, popularity

M, H = 60, 3600


class Scripted:
    """Draws that a rule says; permutations leave everything where it is."""

    def __init__(self, rule):
        self.rule = rule

    def integers(self, high):
        return self.rule(high)

    def permutation(self, x):
        return list(range(x))


FIRST, LAST, MIDDLE = Scripted(lambda n: 0), Scripted(lambda n: n - 1), Scripted(lambda n: n // 2)


# -------------------------------------------------------------------- acceptance 1: V1-V6, V10-V12


@pytest.mark.parametrize(
    ("jobs", "k"),
    [
        (10, 5), (20, 10), (110, 15), (200, 20), (600, 28), (1000, 35), (5500, 63), (10_000, 90),
        (23_070, 144), (40_000, 215), (53_673, 272), (70_000, 340), (77_222, 349), (160_000, 453),
        (223_407, 532), (250_000, 565), (300_000, 565),
    ],
)  # fmt: skip
def test_v1_v2_the_number_of_modes(jobs, k):
    assert modes(jobs) == k


def test_v3_the_number_of_modes_by_the_power_law():
    assert [modes_by_power(n) for n in (23_070, 53_673, 77_222, 223_407)] == [167, 255, 306, 520]


def test_v4_the_shape():
    assert [round(shape(k), 6) for k in (106, 265, 339, 525)] == [1.737228, 1.425440, 1.367000, 1.282286]


def test_v5_the_curve():
    assert [curve(0.5, 1.5), curve(0.25, 2), curve(0.9, 1.1)] == pytest.approx([0.25, 1 / 7, 0.45])


def test_v6_the_times_before_they_are_rounded():
    x = np.array([1, 10, 50, 90, 99, 100]) / 100
    expected = [217.4496644, 2314.2857143, 16200, 48600, 62894.1176471, 64800]
    assert (64_800 * curve(x, 1.5)).tolist() == pytest.approx(expected, rel=1e-9)


def test_v10_v11_v12_the_shares():
    head, tail = shares(340)
    assert [round(head[j - 1], 4) for j in (1, 2, 3, 20)] == [22.7009, 10.2624, 8.6476, 0.8439]
    assert [round(share, 4) for share in tail[:2]] == [0.6641, 0.5975]
    assert len(tail) == 320
    assert (795.6 * np.arange(21.0, 341) ** -2.27).sum() == pytest.approx(13.134578)
    assert [round(share, 5) for share in shares(106)[1][:2]] == [0.73622, 0.66244]
    assert shares(340, PUBLISHED_CODE)[0][0] == pytest.approx(21.7329, abs=5e-5)


# -------------------------------------------------------------------- acceptance 2: V7-V9, V13-V18


@pytest.mark.parametrize(
    ("k", "maximum", "a", "expected"),
    [
        (10, 3600, 1.5, [120, 300, 480, 660, 900, 1200, 1560, 2040, 2700, 3600]),
        (6, 240, 2, [22, 60, 80, 120, 180, 240]),
        (12, 300, 1.2, [4, 10, 16, 23, 43, 57, 60, 75, 120, 136, 180, 300]),
    ],
    ids=["V7", "V8", "V9"],
)
def test_the_times(k, maximum, a, expected):
    assert times(k, maximum, a) == expected


EARLY = [5 * M, 10 * M, 15 * M, 20 * M, 30 * M]
JOINT = [*EARLY, *(h * H for h in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18))]


@pytest.mark.parametrize(
    ("maximum", "others"),
    [
        (18 * H, [*JOINT[:-1], *(h * H for h in (13, 14, 15, 16, 17))]),
        (4 * H, [*EARLY, 40 * M, *(m * M for m in (60, 80, 100, 120, 140, *range(160, 240, 10)))]),
        (36 * H, [*JOINT, *(h * H for h in (20, 25, 30, 35))]),
        (400 * H, [*JOINT, *(h * H for h in (100, 200, 300, 350))]),
        (60 * H, [*JOINT, *(h * H for h in (20, 30, 40, 50))]),
        (24 * H, [*JOINT, *(h * H for h in (15, 16, 20, 22))]),
        (2 * H, [*EARLY, *(m * M for m in (40, 50, 60, 65, 70, 75, 80, 85, 90, 95, 100, 105, 110, 115))]),
    ],
    ids=["V13", "V14", "V15", "V16", "V16, 60 h", "V16, 24 h", "V17"],
)  # fmt: skip
def test_the_popular_times(maximum, others):
    assert head_times(maximum) == [maximum, *sorted(others)]


def test_v18_the_places_of_ctcs_popular_times():
    ctc = [18 * H, *sorted([*JOINT[:-1], 90 * M, 290 * M, 15 * H, 16 * H, 17 * H])]
    assert [ctc.index(time) for time in (5 * M, 10 * M, 90 * M, 17 * H, 18 * H)] == [1, 2, 7, 19, 0]
    assert (RANKS[0][1], RANKS[1][1]) == (1, 3)


def test_the_table_of_ranks_has_each_rank_once_in_a_log():
    for log in range(4):
        assert sorted(row[log] for row in RANKS) == list(range(1, 21))


def place(rank):
    """Where each log has a popularity rank in Table 6, in order."""
    return sorted([row[log] for row in RANKS].index(rank) for log in range(4))


@pytest.mark.parametrize(("first", "least", "most"), [(0, 0.17, 0.57), (1, 0.03, 0.51)])
def test_erratum_3_the_columns_of_table_6_correlate_more_than_is_said(first, least, most):
    found = np.corrcoef(np.array(RANKS[first:]).T)[np.triu_indices(4, 1)]
    assert (found.min(), found.max()) == pytest.approx((least, most), abs=0.005)


def test_erratum_6_of_the_ten_most_popular_29_of_40_are_in_the_upper_half_of_table_6():
    assert sum(rank <= 10 for row in RANKS[:10] for rank in row) == 29


@pytest.mark.parametrize(("rank", "near"), [*((rank, True) for rank in range(1, 8)), (8, False)])
def test_erratum_7_three_of_the_logs_have_a_rank_within_three_places_up_to_rank_7_alone(rank, near):
    a, b, c, d = place(rank)
    assert (min(c - a, d - b) <= 3) == near


# -------------------------------------------------------------------- acceptance 3: V19-V26


@pytest.mark.parametrize(
    ("draws", "given", "expected"),
    [
        (FIRST, {}, [1, 3, 4, 2, 5, 6, 7, 8, 9, 10, 11, 12, 18, 13, 14, 16, 15, 17, 19, 20]),
        (LAST, {}, [1, 6, 10, 17, 20, 14, 3, 19, 2, 4, 7, 18, 16, 5, 15, 13, 12, 11, 8, 9]),
        (MIDDLE, {}, [1, 4, 5, 6, 10, 7, 3, 13, 2, 14, 17, 16, 18, 12, 11, 19, 15, 9, 8, 20]),
        (FIRST, {0: 3}, [3, 1, 4, 2, 5, 6, 7, 8, 9, 10, 11, 12, 18, 13, 14, 16, 15, 17, 19, 20]),
        (
            FIRST, {5: 3, 6: 4, 7: 6},
            [1, 2, 5, 10, 7, 3, 4, 6, 8, 9, 11, 12, 18, 13, 14, 16, 15, 17, 19, 20],
        ),
    ],
    ids=["V19", "V20", "V21", "V22", "V23"],
)  # fmt: skip
def test_the_pool_with_scripted_draws(draws, given, expected):
    assert popularity(draws, given) == expected


def test_v24_v25_v26_the_law_of_the_pool():
    """Some of the specification's 100,000 pools, with bounds of four standard deviations or more."""
    rng = np.random.default_rng(26)
    pools = 1_200
    found = np.array([popularity(rng) for _ in range(pools)])
    for ttr, rank, law in (
        (1, 3, 3 / 4),
        (1, 4, 3 / 16),
        (1, 6, 1 / 16),
        (2, 4, 0.5892857),
        (2, 3, 0.1506122),
    ):
        error = 4 * np.sqrt(law * (1 - law) / pools)
        assert (found[:, ttr] == rank).mean() == pytest.approx(law, abs=error)
    for rank, mean in ((2, 4.93), (3, 1.44), (4, 2.28), (5, 6.31), (20, 17.08)):
        where = np.nonzero(found == rank)[1]
        assert where.mean() == pytest.approx(mean, abs=0.05 + 4 * where.std() / np.sqrt(pools))


@given(
    st.integers(0, 2**32),
    st.dictionaries(st.integers(0, 19), st.integers(1, 20), max_size=20),
    st.integers(1, 20),
)
def test_popularity_is_a_permutation_whatever_is_given(seed, wanted, size):
    at = {rank: ttr for ttr, rank in wanted.items() if ttr < size and rank <= size}
    given_ranks = {ttr: rank for rank, ttr in at.items()}
    found = popularity(np.random.default_rng(seed), given_ranks, size)
    assert sorted(found) == list(range(1, size + 1))
    assert all(found[ttr] == rank for ttr, rank in given_ranks.items())


# -------------------------------------------------------------------- acceptance 5: V27-V34, and errors


def head_with(maximum, *pairs):
    head, tail, ranks = with_given_shares(
        *shares(340), [Pair(time, share) for time, share in pairs], maximum, PAPER
    )
    assert sum(head) + sum(tail) == pytest.approx(100)
    return [round(share, 4) for share in head], ranks, sum(tail)


def test_v27_the_share_of_the_maximum():
    head, ranks, _ = head_with(18 * H, (18 * H, 23.8))
    assert [head[j - 1] for j in (1, 2, 3, 20)] == [23.8, 10.0922, 8.5043, 0.8299]
    assert sum(head) == pytest.approx(89, abs=1e-3)
    assert ranks == {18 * H: 1}


def test_v28_a_maximum_that_is_not_the_first():
    head, ranks, _ = head_with(18 * H, (18 * H, 9.8))
    assert head[:4] == [12.2593, 10.3303, 9.8, 8.7191]
    assert ranks == {18 * H: 3}


def test_v29_a_maximum_beside_an_effective_one():
    head, ranks, _ = head_with(36 * H, (36 * H, 1.1), (2 * H, 27.3))
    assert [*head[:3], *head[16:]] == [27.3, 9.3518, 7.8932, 1.1, 1.0925, 0.9945, 0.9126]
    assert ranks == {36 * H: 17, 2 * H: 1}


def test_v30_two_pairs():
    head, ranks, _ = head_with(4 * H, (4 * H, 12.5), (5 * M, 25))
    assert [*head[:4], head[-1]] == [25, 12.5, 7.9475, 6.7080, 0.7756]
    assert ranks == {4 * H: 2, 5 * M: 1}


def test_v31_a_pair_beside_an_unknown_maximum():
    head, ranks, _ = head_with(4 * H, (5 * M, 25))
    assert head[:3] == [18.4519, 25, 7.0290]
    assert ranks == {5 * M: 2}


def test_v32_pairs_that_leave_nothing_of_the_head():
    head, _, tail = head_with(18 * H, (H, 50), (30 * M, 45))
    assert sorted(head) == [0.0] * 18 + [45, 50]
    assert tail == pytest.approx(5)
    found = histogram(10_000, 18 * H, np.random.default_rng(1), pairs=[Pair(H, 50), Pair(30 * M, 45)])
    number = {mode.seconds: mode.jobs for mode in found}
    assert (number[H], number[30 * M]) == (5_000, 4_500)
    assert not {18 * H, 5 * M, 12 * H} & set(number)


@pytest.mark.parametrize(
    ("bins", "jobs", "expected"),
    [
        ([(1, 50, False), (2, 30, False), (3, 19.9, False), (4, 0.1, False)], 100, [49, 30, 20, 1]),
        ([(1, 40, False), (2, 35, True), (3, 25, False)], 7, [3, 2, 2]),
        ([(1, 33.4, False), (2, 33.3, False), (3, 33.3, False)], 10, [4, 3, 3]),
    ],
    ids=["V33", "V34", "V34, thirds"],
)
def test_counts(bins, jobs, expected):
    assert [mode.jobs for mode in counts(bins, jobs)] == expected


def test_the_smallest_modes_go_where_there_are_fewer_jobs_than_modes():
    assert counts([(1, 30, False), (2, 50, False), (3, 20, False)], 2) == [Mode(1, 1), Mode(2, 1)]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([Pair(M * n, 1) for n in range(1, 22)], "at most 20, found 21"),
        ([Pair(H, 60), Pair(2 * H, 41)], "at most 100 % together, found 101 %"),
        ([Pair(5 * H, 10)], "up to the maximum of 14400 s, found 18000 s"),
        ([Pair(H, 10), Pair(H, 20)], "3600 s is there twice"),
        ([Pair(H, 0)], "above 0 and up to 100 %, found 0"),
    ],
)
def test_pairs_that_cannot_be(pairs, said):
    with pytest.raises(UserError, match=said):
        histogram(1_000, 4 * H, np.random.default_rng(1), pairs=pairs)


def test_more_pairs_than_modes():
    with pytest.raises(UserError, match="at most 5, found 6"):
        histogram(10, 4 * H, np.random.default_rng(1), pairs=[Pair(M * n, 1) for n in range(1, 7)])


@pytest.mark.parametrize(
    ("jobs", "maximum", "said"),
    [
        (1_000, 59, "a maximum of at least 60 s, found 59"),
        (10_000, 80, "at least 90 s for 90 different estimates, found 80 s"),
        (0, H, "at least 1 job"),
    ],
)
def test_a_maximum_or_a_number_of_jobs_that_cannot_be(jobs, maximum, said):
    with pytest.raises(UserError, match=said):
        histogram(jobs, maximum, np.random.default_rng(1))


# -------------------------------------------------------------------- the whole


def test_v39_a_thousand_jobs():
    found = histogram(1_000, 18 * H, FIRST)
    number = {mode.seconds: mode.jobs for mode in found}
    assert (len(found), sum(number.values())) == (35, 1_000)
    assert shape(35) == pytest.approx(2.433325, abs=1e-6)
    assert sorted(set(number) - set(head_times(18 * H))) == [
        9600, 12360, 15240, 16740, 19860, 23160, 24900, 26700, 30420, 32340, 34380, 38580, 40800, 45480,
        55920,
    ]  # fmt: skip
    expected = {
        64800: 228, 900: 104, 300: 86, 600: 73, 1200: 62, 1800: 52, 3600: 44, 7200: 38, 10800: 32, 14400: 28,
        9600: 13, 55920: 4,
    }  # fmt: skip
    assert {time: number[time] for time in expected} == expected


def test_popular_times_take_the_place_of_the_nearest():
    assert with_heads([60, 120, 300, 540, 900], [900, 310, 540]) == [60, 120, 310, 540, 900]
    # Both want 300, which is nearer to 310: the other gets the next.
    assert with_heads([60, 120, 300, 900], [900, 310, 330]) == [60, 310, 330, 900]


def test_a_given_time_takes_the_place_of_the_nearest_popular_one_but_never_of_the_maximum():
    assert with_given_times([900, 300, 600], [Pair(890, 1)]) == [900, 300, 890]
    assert with_given_times([900, 300, 600], [Pair(900, 5), Pair(600, 5)]) == [900, 300, 600]


@pytest.mark.parametrize("jobs", [500, 23_070, 223_407])
def test_acceptance_4_what_every_histogram_has(jobs):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        maximum = int(rng.choice([4 * H, 18 * H, 36 * H]))
        found = histogram(jobs, maximum, rng)
        number = Counter({mode.seconds: mode.jobs for mode in found})
        assert sum(number.values()) == jobs
        assert len(found) == modes(jobs)
        assert all(0 < time <= maximum for time in number)
        assert maximum in number
        head = sum(number[time] for time in head_times(maximum)) / jobs
        assert head == pytest.approx(0.89, abs=0.006)
        if jobs > 500:
            # Of few modes the tail has some that are more popular than the least of the head.
            assert sum(n for _, n in number.most_common(20)) / jobs == pytest.approx(0.89, abs=0.006)


PAIRS = st.dictionaries(st.integers(1, 4 * H), st.floats(0.01, 8), max_size=12)


#: Of 30 jobs each of eleven modes has 1 %: none, if it is rounded.
ALL_GIVEN = {**dict.fromkeys(range(1, 11), 1.0), 4 * H: 1.0}


@settings(max_examples=60)
@given(st.integers(30, 4_000), PAIRS, st.integers(0, 2**32))
@example(30, ALL_GIVEN, 0)
def test_given_modes_have_their_share_whatever_they_are(jobs, pairs, seed):
    given_modes = [Pair(time, share) for time, share in pairs.items()]
    if len(given_modes) > min(20, modes(jobs)):
        return
    found = histogram(jobs, 4 * H, np.random.default_rng(seed), pairs=given_modes)
    number = {mode.seconds: mode.jobs for mode in found}
    assert sum(number.values()) == jobs
    if number.keys() <= pairs.keys():
        # There is no other mode that could have the rest.
        return
    for pair in given_modes:
        assert number.get(pair.seconds, 0) == int(pair.share * jobs / 100 + 0.5)
