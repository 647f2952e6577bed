"""The overlay: who owns which point, who knows whom, and how requests travel; joining and leaving."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway_plugins.wave.overlay import HEIGHT, SPACE, WIDTH, Overlay

#: The dossier's seven hosts, in the order in which they join.
SEVEN = {"A": (0.5, 12), "B": (0.7, 5), "C": (0.2, 20), "D": (0.9, 14), "E": (0.37, 7.12), "F": (0.6, 1),
         "G": (0.1, 15)}  # fmt: skip
NAMES = "".join(SEVEN)


def seven(wrap=True):
    return Overlay.of(SEVEN.values(), wrap=wrap)


def named(hosts):
    return "".join(NAMES[host] for host in hosts)


@pytest.mark.parametrize(
    ("name", "x", "y", "neighbours", "without"),
    [
        ("A", (0, 0.25), (0, 12), "BEG", "EG"),
        ("B", (0.75, 1), (0, 12), "ADF", "DF"),
        ("C", (0.25, 0.5), (12, 24), "DEG", "DEG"),
        ("D", (0.5, 1), (12, 24), "BCFG", "BCF"),
        ("E", (0.25, 0.5), (0, 12), "ACF", "ACF"),
        ("F", (0.5, 0.75), (0, 12), "BDE", "BDE"),
        ("G", (0, 0.25), (12, 24), "ACD", "AC"),
    ],
)
def test_seven_hosts(name, x, y, neighbours, without):
    host = NAMES.index(name)
    assert seven().rectangle(host) == (*x, *y)
    assert named(seven().neighbours(host)) == neighbours
    assert named(seven(wrap=False).neighbours(host)) == without


@pytest.mark.parametrize(
    ("point", "owner"),
    [
        ((0.37, 7.12), "E"), ((0.95, 23), "D"), ((0.3, 13), "C"),
        # On borders and corners.
        ((0.1, 12), "G"), ((0.25, 3), "E"), ((0.25, 12), "C"), ((0.5, 12), "D"), ((0, 0), "A"),
    ],
)  # fmt: skip
def test_the_owner_of_a_point(point, owner):
    assert NAMES[seven().owner(*point)] == owner


@pytest.mark.parametrize(
    ("start", "point", "route"),
    [
        ("E", (0.95, 23), "EABD"), ("F", (0.3, 13), "FEC"), ("G", (0.8, 4), "GDB"), ("D", (0.1, 1), "DGA"),
        ("D", (0.95, 23), "D"),
    ],
)  # fmt: skip
def test_a_route(start, point, route):
    assert named(seven().route(NAMES.index(start), *point)) == route


@pytest.mark.parametrize(
    ("start", "hops", "rings"),
    [
        ("E", 2, ["E", "ACF", "BDG"]), ("F", 2, ["F", "BDE", "ACG"]), ("F", 1, ["F", "BDE"]),
        ("F", 0, ["F"]), ("F", 9, ["F", "BDE", "ACG"]),
    ],
)  # fmt: skip
def test_rings(start, hops, rings):
    assert [named(ring) for ring in seven().rings(NAMES.index(start), hops)] == rings


def test_a_point_on_a_border_is_in_the_upper_half():
    overlay = Overlay.of([(0.1, 1), (0.5, 1)])
    assert overlay.owner(0.5, 0) == 1
    assert overlay.rectangle(1) == (0.5, 1, 0, 24)


def test_a_newcomer_at_the_owners_point_takes_the_half_and_the_owner_keeps_the_other():
    overlay = Overlay.of([(0.1, 1), (0.1, 1)])
    assert overlay.owner(0.1, 1) == 1
    assert overlay.rectangle(0) == (0.5, 1, 0, 24)


@pytest.mark.parametrize("point", [(1.0, 3), (-0.1, 3), (0.5, 24), (0.5, -1)])
def test_a_point_outside_of_the_space_is_refused(point):
    with pytest.raises(UserError, match="expected 0 <= x < 1 and 0 <= y < 24"):
        Overlay().join(*point)


def test_an_overlay_without_hosts_has_no_owner():
    with pytest.raises(UserError, match="expected at least one host, found none"):
        Overlay().owner(0.5, 3)


def test_a_request_to_a_corner_does_not_go_round_it():
    """All four rectangles are at distance 0: by distance and number alone, 1 and 0 would pass it back."""
    overlay = Overlay.of([(0.9, 20), (0.1, 1), (0.1, 20), (0.9, 20)])
    assert overlay.owner(0.5, 12) == 3
    assert overlay.route(1, 0.5, 12) == [1, 0, 3]


# ---------------------------------------------------------------------- leaving


def test_the_other_half_takes_the_rectangle_back():
    overlay = seven()
    overlay.leave(NAMES.index("F"))
    assert overlay.rectangle(NAMES.index("B")) == (0.5, 1, 0, 12)
    assert named(overlay.neighbours(NAMES.index("B"))) == "ADE"
    assert NAMES[overlay.owner(0.6, 1)] == "B"


def test_where_the_other_half_is_divided_a_host_of_its_first_pair_moves():
    """D leaves: its other half has been split into F and B, so F takes both and B takes D's rectangle."""
    overlay = seven()
    overlay.leave(NAMES.index("D"))
    assert overlay.rectangle(NAMES.index("F")) == (0.5, 1, 0, 12)
    assert overlay.rectangle(NAMES.index("B")) == (0.5, 1, 12, 24)
    assert named(overlay.neighbours(NAMES.index("B"))) == "CFG"


def test_the_last_host_may_leave_and_numbers_are_not_used_again():
    overlay = Overlay.of([(0.1, 1)])
    overlay.leave(0)
    assert len(overlay) == 0
    assert overlay.join(0.5, 5) == 1
    assert overlay.rectangle(1) == SPACE


def test_a_host_that_has_left_cannot_leave_again():
    overlay = seven()
    overlay.leave(3)
    with pytest.raises(UserError, match="host 3: expected a host of the overlay"):
        overlay.leave(3)


# ---------------------------------------------------------------------- properties

#: Points in general position, and points on a grid whose corners are corners of rectangles.
POINTS = st.one_of(
    st.tuples(st.floats(0, 0.999), st.floats(0, 23.999)),
    st.tuples(st.integers(0, 7).map(lambda at: at / 8), st.integers(0, 15).map(lambda at: at * 1.5)),
)
#: A point to join at, or which of the hosts leaves.
STEPS = st.lists(st.one_of(POINTS, st.integers(0, 30)), min_size=1, max_size=40)


def grown(steps, wrap=True):
    overlay = Overlay(wrap=wrap)
    for step in steps:
        if isinstance(step, tuple):
            overlay.join(*step)
        elif len(overlay):
            overlay.leave(overlay.hosts[step % len(overlay)])
    return overlay


def beside(a, b, size, wrap):
    """Whether intervals abut, and whether they overlap, in all their copies along an axis."""
    shifts = (-size, 0, size) if wrap else (0,)
    abut = any(a[1] == b[0] + shift or b[1] + shift == a[0] for shift in shifts)
    return abut, min(a[1], b[1]) > max(a[0], b[0])


def neighbours_by_hand(overlay, wrap):
    found = {}
    for host in overlay.hosts:
        ax, ay = overlay.rectangle(host)[:2], overlay.rectangle(host)[2:]
        found[host] = []
        for other in overlay.hosts:
            bx, by = overlay.rectangle(other)[:2], overlay.rectangle(other)[2:]
            (abut_x, over_x), (abut_y, over_y) = beside(ax, bx, WIDTH, wrap), beside(ay, by, HEIGHT, wrap)
            if other != host and ((abut_x and over_y) or (abut_y and over_x)):
                found[host].append(other)
    return found


@given(STEPS, st.booleans())
def test_rectangles_fill_the_space_and_neighbours_are_those_beside(steps, wrap):
    overlay = grown(steps, wrap)
    if not len(overlay):
        return
    assert sum(overlay.rectangle(host).area for host in overlay.hosts) == pytest.approx(HEIGHT)
    assert {host: overlay.neighbours(host) for host in overlay.hosts} == neighbours_by_hand(overlay, wrap)


@given(STEPS, st.lists(POINTS, min_size=1, max_size=5))
def test_each_point_has_the_one_owner_that_its_rectangle_says(steps, points):
    overlay = grown([(0.3, 3.0), *steps, (0.6, 9.0)])
    for x, y in points:
        inside = [
            host for host in overlay.hosts
            for x0, x1, y0, y1 in [overlay.rectangle(host)] if x0 <= x < x1 and y0 <= y < y1
        ]  # fmt: skip
        assert inside == [overlay.owner(x, y)]


@given(STEPS, st.lists(POINTS, min_size=1, max_size=5), st.booleans())
def test_a_route_ends_at_the_owner_and_goes_from_neighbour_to_neighbour(steps, points, wrap):
    overlay = grown([(0.3, 3.0), *steps, (0.6, 9.0)], wrap)
    for x, y in points:
        for start in overlay.hosts:
            path = overlay.route(start, x, y)
            assert path[0] == start and path[-1] == overlay.owner(x, y)
            assert len({*path}) == len(path)
            assert all(b in overlay.neighbours(a) for a, b in pairwise(path))


@given(STEPS, st.integers(0, 4))
def test_rings_are_the_hosts_by_distance(steps, hops):
    overlay = grown([*steps, (0.6, 9.0)])
    start = overlay.hosts[0]
    steps_to = {start: 0}
    waiting = [start]
    for host in waiting:
        for other in overlay.neighbours(host):
            if other not in steps_to:
                steps_to[other] = steps_to[host] + 1
                waiting.append(other)
    farthest = min(hops, max(steps_to.values()))
    assert overlay.rings(start, hops) == [
        sorted(host for host, far in steps_to.items() if far == ring) for ring in range(farthest + 1)
    ]


def test_a_large_overlay_has_few_neighbours_and_short_routes():
    """5,000 hosts: 4.6 neighbours, 16 hosts within two steps, routes shorter than the root of the hosts."""
    rng = np.random.default_rng(1)
    overlay = Overlay.of((rng.random((5000, 2)) * [WIDTH, HEIGHT]).tolist())
    counts = [len(overlay.neighbours(host)) for host in overlay.hosts]
    within = [sum(map(len, overlay.rings(host, 2))) for host in range(0, 5000, 10)]
    assert np.mean(counts) == pytest.approx(4.6, abs=0.1) and max(counts) <= 16
    assert np.mean(within) == pytest.approx(15.9, abs=0.3)
    routes = [len(overlay.route(0, x, 24 * y)) for x, y in rng.random((200, 2)).tolist()]
    assert np.mean(routes) < math.sqrt(5000)
