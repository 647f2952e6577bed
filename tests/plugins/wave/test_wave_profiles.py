"""What a move costs (section 5.3(c) of the paper)."""

from __future__ import annotations

import pytest

from headway_plugins.wave.profiles import PROFILES, added_slowdown, transfer_seconds


@pytest.mark.parametrize(("size", "seconds"), [(1e6, 31.25), (20e6, 625)])
def test_the_way_up_takes_so_long(size, seconds):
    assert transfer_seconds(size) == seconds


@pytest.mark.parametrize(
    ("moves", "size", "hours", "added"),
    [
        (1, 1e6, 12, 0.000723), (6.9, 1e6, 12, 0.0050), (1, 20e6, 12, 0.01447), (6.9, 20e6, 12, 0.0998),
        (10.3, 1e6, 18, 0.00497), (10.3, 20e6, 18, 0.0993),
    ],
)  # fmt: skip
def test_moves_raise_the_slowdown(moves, size, hours, added):
    assert added_slowdown(moves, size, hours) == pytest.approx(added, abs=5e-5)


def test_programs_of_the_paper_move_in_half_a_minute():
    assert {name: round(transfer_seconds(one.program), 1) for name, one in PROFILES.items()} == {
        "SETI@home": 24.7,
        "Folding": 11.6,
    }
