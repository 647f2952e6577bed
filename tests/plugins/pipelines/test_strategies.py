"""Which copies a job gets: strategies, short jobs, combinations between those that were run."""

import pytest

from headway.errors import UserError
from headway_plugins.pipelines.pipeline import Filter, Pipeline
from headway_plugins.pipelines.profiles import Profile, nearest_two
from headway_plugins.pipelines.strategies import Rules, interpolated, size

ID3 = Pipeline("id3", tuple(map(Filter, ("read", "count", "decide"))), {"node_size": (1, 2)})
NOAS = Rules("NOAS")


def profile(value, received=(600, 200, 200), seconds=(60, 20, 20), wall=100.0):
    return Profile({"node_size": value}, received, seconds, wall)


PROFILES = (profile(1),)


def sized(rules, profiles=PROFILES, value=1, processors=10, pipeline=ID3):
    return size(pipeline, {"node_size": value}, processors, profiles, rules)


# ---------------------------------------------------------------------- 2: strategies, interpolation


@pytest.mark.parametrize(
    ("strategy", "copies"), [("AS", (10, 10, 10)), ("BS", (4, 3, 3)), ("NOAS", (6, 2, 2)), ("OAS", (6, 2, 2)),
                             ("OBS", (4, 3, 3))]
)  # fmt: skip
def test_2_each_strategy(strategy, copies):
    assert sized(Rules(strategy)).copies == copies


@pytest.mark.parametrize(
    ("wall", "copies", "sequential"), [(4.999, (1, 1, 1), True), (5.0, (6, 2, 2), False)]
)
def test_2_less_than_five_seconds_are_short(wall, copies, sequential):
    found = sized(Rules("OAS"), [profile(1, wall=wall)])
    assert (found.copies, found.sequential) == (copies, sequential)
    assert sized(Rules("OBS"), [profile(1, wall=wall)]).sequential is sequential
    assert sized(NOAS, [profile(1, wall=wall)]).copies == (6, 2, 2)


def test_what_is_short_is_an_option():
    assert sized(Rules("OAS", short=200)).sequential


def test_2_copies_between_two_combinations():
    assert interpolated([(6, 1, 1), (2, 4, 2)], [0.75, 0.25], 8) == (5, 2, 1)
    # On 8 processors the first gives 6, 1, 1 and the second 2, 4, 2.
    known = [profile(2, (900, 50, 50), (50, 25, 25)), profile(10, (2, 4, 2), (2, 4, 2))]
    found = sized(NOAS, known, 4, 8)
    assert [(p.parameters["node_size"], w) for p, w in found.profiles] == [(2, 0.75), (10, 0.25)]
    assert found.copies == (5, 2, 1)
    assert found.reason == "NOAS: between the controlled runs with node_size 2 (75%) and node_size 10 (25%)"


def test_short_is_interpolated_too():
    known = [profile(2, wall=2.0), profile(10, wall=14.0)]
    assert sized(Rules("OAS"), known, 3, 8).sequential
    assert not sized(Rules("OAS"), known, 4, 8).sequential


def test_beyond_the_last_combination_it_is_that_one():
    known = [profile(2), profile(10), profile(5)]
    assert nearest_two(known, {"node_size": 20}) == [(known[1], 1.0)]
    assert nearest_two(known, {"node_size": 5}) == [(known[2], 1.0)]


def test_several_numbers_are_scaled_before_they_are_compared():
    known = [Profile({"a": a, "b": b, "kind": "x"}, (1,), (1,), 1) for a, b in [(0, 0), (10, 0), (0, 1000)]]
    near = nearest_two(known, {"a": 1, "b": 300, "kind": "x"})
    assert [p.parameters["b"] for p, _ in near] == [0, 1000]
    distances = (0.1**2 + 0.3**2) ** 0.5, (0.1**2 + 0.7**2) ** 0.5
    assert near[0][1] == pytest.approx(distances[1] / sum(distances))
    assert nearest_two(known, {"a": 1, "b": 300, "kind": "y"}) == []


def test_without_a_profile_nobody_guesses():
    with pytest.raises(
        UserError, match=r"expected a profile of id3 with node_size 1, or one near it; found none"
    ):
        sized(NOAS, [])
    assert sized(Rules("BS"), []).copies == (4, 3, 3)


def test_a_reader_is_capped_if_that_is_wanted():
    reading = Pipeline(
        "id3", (Filter("read", data_nodes=4), Filter("count"), Filter("decide")), ID3.parameters
    )
    assert sized(Rules("NOAS", cap=True), pipeline=reading).copies == (4, 3, 3)
    assert sized(NOAS, pipeline=reading).copies == (6, 2, 2)


def test_2_parameters_with_ten_values_each_are_a_hundred_runs():
    values = tuple(range(10))
    combinations = Pipeline("p", (Filter("a"),), {"A": values, "B": values}).combinations()
    assert len(combinations) == 100
    assert combinations[:2] == [{"A": 0, "B": 0}, {"A": 0, "B": 1}]
