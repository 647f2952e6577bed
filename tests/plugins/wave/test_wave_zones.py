"""Night, wavezones, and the three rules for the target."""

from __future__ import annotations

import pytest

from headway.errors import UserError
from headway_plugins.wave.draws import Draws
from headway_plugins.wave.zones import Target, Wavezones, hour_of, zones_in_night

NO_DRAWS = Draws(())


@pytest.mark.parametrize(
    ("time", "night", "entered", "counts", "most"),
    [
        (0, [0, 19, 20, 21, 22, 23], 0, [1, 0, 0, 0, 1, 4], 5),
        (3.99, [0, 1, 2, 3, 22, 23], 0, [4, 0, 0, 0, 0, 2], 0),
        (4, [0, 1, 2, 3, 4, 23], 1, [4, 1, 0, 0, 0, 1], 0),
        (8.5, [3, 4, 5, 6, 7, 8], 2, [1, 4, 1, 0, 0, 0], 1),
        (23.9, [18, 19, 20, 21, 22, 23], 5, [0, 0, 0, 0, 2, 4], 5),
        (25, [0, 1, 20, 21, 22, 23], 0, [2, 0, 0, 0, 0, 4], 5),
    ],
)
def test_six_wavezones(time, night, entered, counts, most):
    zones, hour = Wavezones(6), hour_of(time)
    assert zones_in_night(hour) == night
    assert zones.in_night(hour) == counts
    assert zones.target(Target.JUST_ENTERED, hour, NO_DRAWS) == entered
    assert zones.target(Target.MOST_NIGHT, hour, NO_DRAWS) == most


@pytest.mark.parametrize(("number", "target"), [(0.0, 1), (0.49, 1), (0.5, 2), (0.99, 2)])
def test_most_nights_draws_among_equals_only(number, target):
    """At 10.5 the wavezones 1 and 2 have three zones in night each."""
    draws = Draws([number])
    assert Wavezones(6).target(Target.MOST_NIGHT, 10, draws) == target
    assert draws.count == 1


@pytest.mark.parametrize(("number", "target"), [(0.0, 0), (0.16, 0), (0.2, 1), (0.99, 2)])
def test_a_random_night_is_a_zone_and_not_a_wavezone(number, target):
    """At 8.5 zone 3 is in wavezone 0, 4 to 7 are in 1, and 8 is in 2."""
    assert Wavezones(6).target(Target.RANDOM_NIGHT, 8, Draws([number])) == target


def test_other_divisions():
    assert [Wavezones(4).of(zone) for zone in (0, 5, 6, 23)] == [0, 0, 1, 3]
    assert [Wavezones(24).target(Target.JUST_ENTERED, hour, NO_DRAWS) for hour in (0, 7, 30)] == [0, 7, 6]
    for count in (0, 5, 48):
        with pytest.raises(UserError, match=f"expected a divisor of 24, found {count}"):
            Wavezones(count)


def test_sums_that_miss_a_whole_hour_by_rounding_are_in_the_new_hour():
    assert hour_of(5.9999999999) == 6
    assert hour_of(5.9999) == 5


def test_draws_that_are_used_up_say_so():
    with pytest.raises(ValueError, match="expected a further random number, found 1 in all"):
        Draws([0.5]).permutation(3)


def test_a_permutation_swaps_from_the_last_place_on():
    assert Draws([0.0, 0.99]).permutation(3) == [2, 1, 0]
