"""Elastic job bundling without a cluster: the paper's Figure 2, and a table for each decision."""

import math

import pytest

from headway_plugins.bundling.cases import first_subjobs, further_subjobs, when_placeholder_starts
from headway_plugins.bundling.model import INFINITY, Interval, Member, Model, progress
from headway_plugins.bundling.planning import plan
from headway_plugins.bundling.processes import Move, redistribute, spread
from headway_plugins.bundling.slots import Slots, backfillable, from_windows

WIDE = Model(100, 3600.0)


def subjobs(choice):
    return [] if choice is None else [(p, pytest.approx(r)) for p, r in choice.subjobs]


def planned(intervals):
    return [
        ("M" if i.migrating else f"q{i.processors}", pytest.approx(i.start), pytest.approx(i.end))
        for i in intervals
    ]


@pytest.mark.parametrize(
    ("processors", "offer", "degree", "size"),
    [
        (100, 30, 4, 25), (100, 33, 4, 25), (100, 34, 3, 34), (100, 50, 2, 50), (100, 99, 2, 50),
        (100, 100, 1, 100), (100, 12, 9, None), (100, 13, 8, 13), (7, 3, 3, 3), (64, 10, 7, 10),
        (336, 100, 4, 84), (8, 1, 8, 1),
    ],
)  # fmt: skip
def test_an_offer_is_trimmed_to_the_fewest_processors_of_its_degree(processors, offer, degree, size):
    model = Model(processors, 3600.0)
    assert model.degree(offer) == degree
    assert (model.trim(offer) if model.suffices(offer) else None) == size
    assert model.suffices(offer) == (offer >= model.least)


def test_the_penalty_counts_only_where_processors_are_shared():
    model = Model(100, 3600.0, delta=1.5)
    assert [model.time_on(q) for q in (100, 99, 50, 25)] == [3600, 10800, 10800, 21600]


class TestFigure2:
    model = Model(4, 800.0, migration=20.0)

    @pytest.mark.parametrize(
        ("now", "done", "members", "lead", "intervals"),
        [
            (0, 0, [(1, 1460 + 9999)], 0, [("q1", 0, 3200)]),
            (400, 0.125, [(1, 9999), (1, 9999)], 20, [("M", 400, 420), ("q2", 420, 1820)]),
            (
                820, 0.375, [(1, 1460), (1, 1460), (2, 1260)], 20,
                [("M", 820, 840), ("q4", 840, 1240), ("M", 1240, 1260), ("q2", 1260, 1460)],
            ),
        ],
    )  # fmt: skip
    def test_the_plans(self, now, done, members, lead, intervals):
        found = plan(self.model, now, done, [Member(*m) for m in members], lead)
        assert planned(found) == intervals

    def test_the_progress_over_the_intervals(self):
        run = [
            Interval(0, 400, 1), Interval(400, 420, 0, True), Interval(420, 820, 2),
            Interval(820, 840, 0, True), Interval(840, 1240, 4), Interval(1240, 1260, 0, True),
            Interval(1260, 1460, 2),
        ]  # fmt: skip
        at = (0, 400, 410, 820, 1240, 1250, 1460)
        assert [progress(self.model, run, t) for t in at] == [0, 0.125, 0.125, 0.375, 0.875, 0.875, 1]

    def test_the_processes(self):
        layout = spread(4, ["1"])
        assert layout == {"1": (1, 2, 3, 4)}
        layout, moves = redistribute(layout, ["2"])
        assert layout == {"1": (1, 2), "2": (3, 4)}
        assert moves == [Move(3, "1", "2"), Move(4, "1", "2")]
        layout, _ = redistribute(layout, ["3a", "3b"])
        assert layout == {"1": (1,), "2": (3,), "3a": (2,), "3b": (4,)}
        layout, _ = redistribute(layout, leaving=["3a", "3b"])
        assert layout == {"1": (1, 2), "2": (3, 4)}


class TestProcesses:
    def test_ten_processes_over_three_subjobs(self):
        layout = spread(10, ["a1", "a2", "a3", "a4"])
        assert list(layout.values()) == [(1, 5, 9), (2, 6, 10), (3, 7), (4, 8)]
        layout, moves = redistribute(layout, ["b"])
        assert [move.process for move in moves] == [9, 10] and layout["b"] == (9, 10)
        layout, moves = redistribute(layout, ["c1", "c2", "c3", "c4", "c5"])
        assert [move.process for move in moves] == [5, 6, 7, 8, 10] and layout["b"] == (9,)
        layout, moves = redistribute(layout, leaving=["a1", "a2", "a3", "a4"])
        assert [move.process for move in moves] == [1, 2, 3, 4]
        assert layout == {"b": (1, 9), "c1": (2, 5), "c2": (3, 6), "c3": (4, 7), "c4": (8,), "c5": (10,)}

    def test_all_go_to_the_place_holder(self):
        layout, moves = redistribute(spread(3, ["a"]), ["x", "y", "z"], ["a"])
        assert sorted(layout.values()) == [(1,), (2,), (3,)] and len(moves) == 3

    @pytest.mark.parametrize(
        ("joining", "leaving", "says"),
        [
            (["a"], [], "in the bundle already"),
            ([], ["b"], "not in the bundle"),
            ([], ["a"], "all processors leave"),
        ],
    )
    def test_what_cannot_be(self, joining, leaving, says):
        with pytest.raises(ValueError, match=says):
            redistribute(spread(3, ["a"]), joining, leaving)
        with pytest.raises(ValueError, match="found none"):
            spread(3, [])


class TestSlots:
    def test_all_ends_up_to_the_shadow_time_count(self):
        ends = [(50, 2), (20, 3), (30, 4), (30, 5)]
        assert backfillable(10, 2, 8, ends) == Slots(2, 6, 30)
        assert backfillable(10, 2, 5, ends) == Slots(2, 0, 20)
        assert backfillable(10, 2, 20, ends) == Slots(2, 2)
        assert backfillable(10, 2, None, ends) == Slots(2, 2)

    @pytest.mark.parametrize(
        ("windows", "slots"),
        [
            ([], Slots(0, 0)), ([(8, INFINITY)], Slots(8, 8)), ([(8, 100)], Slots(8, 0, 110)),
            ([(8, 100), (2, INFINITY)], Slots(8, 2, 110)), ([(8, 100), (2, 1000)], Slots(8, 2, 110)),
            # 300 processor-seconds are more than 160.
            ([(8, 20), (3, 100), (1, INFINITY)], Slots(3, 1, 110)), ([(8, 100), (8, INFINITY)], Slots(8, 8)),
        ],
    )  # fmt: skip
    def test_of_a_schedulers_windows_the_one_with_most_in_it_passes(self, windows, slots):
        assert from_windows(10, windows, longest=1000) == slots

    @pytest.mark.parametrize(
        ("slots", "lasting", "passing"),
        [
            (Slots(10, 4, 100), 4, 10), (Slots(10, 40, 100), 10, 0), (Slots(10, 0, 100), 0, 10),
            (Slots(10, 10), 10, 0), (Slots(10, 4, 0), 4, 0),
        ],
    )  # fmt: skip
    def test_type_one_lasts_and_type_two_passes(self, slots, lasting, passing):
        assert (slots.lasting, slots.passing(0)) == (lasting, passing)


@pytest.mark.parametrize(
    ("extra", "shadow", "delta", "case", "expected", "completion"),
    [
        (30, 120, 1, 1, [(25, 14400)], 14400),
        (30, 1000, 1, 3, [(25, 13640), (25, 1000)], 13640),
        (30, 3600, 1, 3, [(25, 11040), (25, 3600)], 11040),
        (30, 7200, 1, 3, [(25, 7440), (25, 7200)], 7440),
        (30, 7201, 1, 2, [(50, 7200)], 7200),
        (13, 3600, 1, 3, [(13, 18480), (37, 3600)], 18480),
        (12, 3600, 1, None, [], None),
        (0, 7200, 1, None, [], None),
        (0, 7201, 1, 2, [(50, 7200)], 7200),
        (50, 3600, 1, 1, [(50, 7200)], 7200),
        (30, 7200, 1.5, 3, [(25, 14640), (25, 7200)], 14640),
    ],
)
def test_what_a_waiting_job_asks_for(extra, shadow, delta, case, expected, completion):
    choice = first_subjobs(WIDE._replace(delta=float(delta)), 0.0, Slots(60, extra, shadow))
    assert subjobs(choice) == expected
    if choice is not None:
        assert (choice.case, choice.completion) == (case, pytest.approx(completion))
        assert choice.intervals[-1].end == choice.completion


@pytest.mark.parametrize("slots", [Slots(100, 100), Slots(100, 30, 7300)])
def test_a_waiting_job_asks_for_nothing_as_large_as_itself(slots):
    """Its own request is that subjob."""
    assert first_subjobs(WIDE, 0.0, slots) is None


def test_the_intervals_of_a_waiting_jobs_third_case():
    choice = first_subjobs(WIDE, 0.0, Slots(60, 30, 3600))
    assert planned(choice.intervals) == [("q50", 0, 3480), ("M", 3480, 3600), ("q25", 3600, 11040)]


@pytest.mark.parametrize(
    ("now", "done", "slots", "case", "expected", "completion"),
    [
        (3600, 0.25, Slots(30, 30), 1, [(25, 5520)], 9120),
        (3600, 0.25, Slots(9, 9), 1, [(9, 8220)], 11820),
        (3600, 0.25, Slots(8, 8), None, [], None),
        (3600, 0.25, Slots(30, 0, 5600), 2, [(25, 2000)], 12880),
        (3600, 0.25, Slots(30, 0, 3900), None, [], None),
        (3600, 0.25, Slots(30, 0, 4080), None, [], None),
        (3600, 0.25, Slots(30, 0, 4081), 2, [(25, 481)], 14399),
        (3600, 0.25, Slots(60, 10, 5600), 3, [(9, 7460), (16, 2000)], 11060),
        (3600, 0.25, Slots(80, 0, 7000), 1, [(75, 2820)], 6420),
        (14112, 0.98, Slots(80, 80), 1, [(75, 192)], 14304),
        (14256, 0.99, Slots(80, 80), None, [], None),
    ],
)
def test_what_a_running_job_asks_for(now, done, slots, case, expected, completion):
    members, ahead = [Member(25, 14400.0)], [Interval(0.0, 14400.0, 25)]
    choice = further_subjobs(WIDE, now, done, members, ahead, slots)
    assert subjobs(choice) == expected
    if choice is not None:
        assert (choice.case, choice.completion) == (case, pytest.approx(completion))


def test_the_intervals_of_a_running_jobs_third_case():
    choice = further_subjobs(
        WIDE, 3600, 0.25, [Member(25, 14400.0)], [Interval(0.0, 14400.0, 25)], Slots(60, 10, 5600)
    )
    assert planned(choice.intervals) == [
        ("M", 3600, 3720), ("q50", 3720, 5480), ("M", 5480, 5600), ("q34", 5600, 11060),
    ]  # fmt: skip


def test_a_planned_departure_disappears_when_the_application_completes_before():
    members = [Member(25, 20000.0), Member(25, 5000.0)]
    ahead = plan(WIDE, 600, 0.1, members)
    assert planned(ahead) == [
        ("q50", 600, 4880), ("M", 4880, 5000), ("q25", 5000, 9400),
    ]  # fmt: skip
    choice = further_subjobs(WIDE, 600, 0.1, members, ahead, Slots(60, 0, 4000))
    assert (choice.case, subjobs(choice), choice.completion) == (1, [(50, 3360)], 3960)
    assert planned(choice.intervals) == [("M", 600, 720), ("q100", 720, 3960)]


def test_a_gain_that_is_too_small_is_left():
    members, ahead = [Member(25, 14400.0)], [Interval(0.0, 14400.0, 25)]
    slots = Slots(30, 0, 4081)
    assert further_subjobs(WIDE, 3600, 0.25, members, ahead, slots, min_gain=0.5) is not None
    assert further_subjobs(WIDE, 3600, 0.25, members, ahead, slots, min_gain=1.5) is None


def test_slack_is_asked_for_within_the_slot():
    members, ahead = [Member(25, 14400.0)], [Interval(0.0, 14400.0, 25)]
    choice = further_subjobs(WIDE, 3600, 0.25, members, ahead, Slots(30, 30), slack=1.05)
    assert subjobs(choice) == [(25, 5520 * 1.05)]
    choice = further_subjobs(WIDE, 3600, 0.25, members, ahead, Slots(80, 0, 6500.0), slack=1.05)
    assert subjobs(choice) == [(75, 2900)]


@pytest.mark.parametrize(
    ("done", "completion", "option", "until"),
    [
        (0, 24400, "restart", 13600),
        (0.03, 23968, "restart", 13600),
        (0.05, 23680, "move", 13540),
        (0.98, 10288, "move", 10192),
        (0.99, 10144, "continue", 10144),
    ],
)
def test_what_becomes_of_the_bundle_when_the_original_request_starts(done, completion, option, until):
    turn = when_placeholder_starts(WIDE, 10000, done, completion)
    assert turn == (option, pytest.approx(until))


def test_without_migrations_a_job_takes_what_lasts_and_begins_again():
    model = WIDE._replace(migration=INFINITY)
    assert first_subjobs(model, 0.0, Slots(60, 30, 3600)).case == 1
    assert first_subjobs(model, 0.0, Slots(60, 30, 7201)).case == 2
    members, ahead = [Member(25, 14400.0)], [Interval(0.0, 14400.0, 25)]
    assert further_subjobs(model, 3600, 0.25, members, ahead, Slots(80, 80)) is None
    assert when_placeholder_starts(model, 10000, 0.98, 10288).option == "continue"
    assert when_placeholder_starts(model, 10000, 0.05, 23680).option == "restart"
    assert math.isinf(model.migration)


def test_what_cannot_be_left_in_time_is_infeasible():
    assert plan(WIDE, 0, 0, [Member(25, 100.0)]) is None
    assert plan(WIDE, 0, 0, [Member(12, INFINITY)]) is None


def test_two_departures_within_a_migration_are_one():
    found = plan(WIDE, 0, 0, [Member(25, 20000.0), Member(10, 1000.0), Member(15, 1100.0)])
    assert planned(found)[:2] == [("q50", 0, 880), ("M", 880, 1000)]
    assert found[2].processors == 25
