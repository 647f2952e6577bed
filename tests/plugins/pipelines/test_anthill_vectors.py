"""AnthillSched's copies worked out by hand and by computing, those of the other strategies, and roundings."""

import pytest

from headway_plugins.pipelines.sizing import all_in_all, anthill, balanced, history, rounded

#: beta, E, processors, broadcasts, copies, copies when rounded once.
VECTORS = {
    "V1": ((600, 200, 200), (60, 20, 20), 10, (0, 0, 0), (6, 2, 2), (6, 2, 2)),
    "V2": ((900, 50, 50), (50, 25, 25), 8, (0, 0, 0), (6, 1, 1), (6, 1, 1)),
    "V3": ((100, 100), (10, 10), 8, (1, 0), (3, 5), (3, 5)),
    "V4": ((800, 100, 100), (20, 60, 20), 8, (0, 0, 1), (5, 2, 1), (5, 2, 1)),
    "V5": ((1000, 10, 10), (100, 1, 1), 8, (0, 0, 0), (6, 1, 1), (6, 1, 1)),
    "V6": ((1, 1, 1, 1), (1, 1, 1, 1), 2, (0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 1, 1)),
    "V7": ((500, 300, 200), (30, 50, 20), 16, (0, 1, 0), (5, 5, 6), (4, 5, 7)),
    "V8": ((500, 300, 200), (30, 50, 20), 12, (1, 1, 1), (5, 5, 2), None),
}


# ---------------------------------------------------------------------- 1: AnthillSched


@pytest.mark.parametrize("name", VECTORS)
def test_1_copies_rounded_in_every_iteration(name):
    received, seconds, processors, broadcast, copies, _ = VECTORS[name]
    assert anthill(received, seconds, processors, broadcast, iterations=50) == copies
    assert anthill(received, seconds, processors, broadcast) == copies


@pytest.mark.parametrize("name", [name for name in VECTORS if VECTORS[name][5]])
def test_1_copies_rounded_once(name):
    received, seconds, processors, broadcast, _, copies = VECTORS[name]
    assert anthill(received, seconds, processors, broadcast, iterations=50, mode="final") == copies


@pytest.mark.parametrize(
    ("name", "iteration", "real"),
    [
        ("V2", 0, (5.6, 1.2, 1.2)),
        ("V5", 0, (7.843137, 0.078431, 0.078431)),
        ("V7", 2, (4.622222, 5.333333, 6.044444)),
    ],
)
def test_1_real_numbers_before_they_are_rounded(name, iteration, real):
    received, seconds, processors, broadcast, *_ = VECTORS[name]
    steps = history(received, seconds, processors, broadcast)
    assert steps[iteration] == pytest.approx(real, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "real"), [("V3", (2.627719, 5.372281)), ("V4", (4.593539, 2.503230, 0.903230))]
)
def test_1_what_real_numbers_converge_to(name, real):
    received, seconds, processors, broadcast, *_ = VECTORS[name]
    steps = history(received, seconds, processors, broadcast, iterations=50, mode="final")
    assert steps[-1] == pytest.approx(real, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("V3", [(4, 4), (3, 5), (3, 5)]),
        ("V4", [(4, 3, 1), (5, 2, 1), (5, 2, 1)]),
        ("V7", [(7, 6, 3), (5, 6, 5), (5, 5, 6), (5, 5, 6)]),
    ],
)
def test_1_the_iterations(name, steps):
    received, seconds, processors, broadcast, *_ = VECTORS[name]
    found = [rounded(step, processors) for step in history(received, seconds, processors, broadcast)]
    assert found[: len(steps)] == steps


def test_4_it_stops_when_the_copies_repeat():
    received, seconds, processors, broadcast, *_ = VECTORS["V8"]
    steps = history(received, seconds, processors, broadcast)
    assert [rounded(step, processors) for step in steps] == [(5, 5, 2)] * 2


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("mode", ["loop", "final"])
def test_1_the_real_numbers_are_all_processors_in_every_iteration(name, mode):
    received, seconds, processors, broadcast, *_ = VECTORS[name]
    for step in history(received, seconds, processors, broadcast, iterations=50, mode=mode):
        assert sum(step) == pytest.approx(processors, abs=1e-9)


# ---------------------------------------------------------------------- 2: the other strategies, rounding


@pytest.mark.parametrize(
    ("processors", "copies"),
    [
        (15, (5, 5, 5)), (8, (3, 3, 2)), (12, (4, 4, 4)), (16, (6, 5, 5)), (16, (4, 3, 3, 3, 3)),
        (2, (1, 1, 1)),
    ],
)  # fmt: skip
def test_2_balanced(processors, copies):
    assert balanced(len(copies), processors) == copies


def test_2_all_in_all():
    assert all_in_all(3, 8) == (8, 8, 8)


def test_2_rounding_gives_the_first_of_equals_more():
    assert rounded((2.5, 2.5, 3.0), 8) == (3, 2, 3)
    assert rounded((5, 1.75, 1.25), 8) == (5, 2, 1)


# ---------------------------------------------------------------------- what the paper leaves open


def test_a_filter_has_no_more_copies_than_nodes_with_its_data():
    received, seconds, processors, broadcast, *_ = VECTORS["V1"]
    assert anthill(received, seconds, processors, broadcast, caps=(4, None, None)) == (4, 3, 3)
    # Nobody can take what is left over.
    assert anthill(received, seconds, processors, broadcast, caps=(4, 1, 2)) == (4, 1, 2)
    assert anthill(received, seconds, processors, broadcast, caps=(20, None, None)) == (6, 2, 2)


def test_weights():
    assert anthill((100, 0), (0, 100), 8, weights=(1, 0)) == (7, 1)
    assert anthill((100, 0), (0, 100), 8, weights=(0.25, 0.75)) == (2, 6)


def test_what_says_nothing_does_not_count():
    assert anthill((0, 0), (30, 10), 8) == (6, 2)
    assert anthill((30, 10), (0, 0), 8) == (6, 2)
    assert anthill((0, 0), (0, 0), 8) == (4, 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (((), (), 4), "expected bytes and seconds of the same filters, found 0 and 0"),
        (((1, 2), (1,), 4), "found 2 and 1"),
        (((1, -2), (1, 1), 4), "expected bytes of at least 0, found -2"),
        (((1, 2), (1, float("nan")), 4), "expected seconds of at least 0, found nan"),
        (((1, 2), (1, 1), 0), "expected at least 1 processor, found 0"),
        (((1, 2), (1, 1), 4, (True,)), "expected a stream behind each of 2 filters, found 1"),
    ],
)
def test_what_is_no_profile_is_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        anthill(*arguments)
