"""How fast options are, from what jobs tell."""

from __future__ import annotations

import pytest

from headway_plugins.security.learnt import FURTHEST, REMEMBERED, Speeds
from headway_plugins.security.levels import Profile, parse_profile

TEXT = """
name: measured
encryption: [{level: 0.7, option: AES-128-GCM, speed: 2000}, {level: 1.0, option: AES-256-GCM, speed: 1000}]
integrity: [{level: 0.7, option: SHA-256, speed: 400}, {level: 0.9, option: SHA-512, speed: 200}]
authentication: [{level: 0.8, option: Ed25519, seconds: 0.001}]
"""


@pytest.fixture
def profile() -> Profile:
    return parse_profile(TEXT, "here")


def speeds(profile: Profile) -> dict[str, float | None]:
    """MB/s."""
    return {o.name: o.speed and o.speed / 1e6 for ladder in profile.ladders for o in ladder}


def test_the_median_of_three_runs_counts_and_others_are_scaled_alike(profile: Profile) -> None:
    learnt = Speeds()
    for number, seconds in enumerate((0.01, 0.02, 5.0)):
        assert learnt.applied(profile) == profile
        learnt.learn(f"{number}", f"AES-256-GCM:10000000:{seconds},Ed25519:5000000:0.5")
    # 10 MB in 0.02 s; what is told of a signature says nothing of the size of data.
    found = speeds(learnt.applied(profile))
    assert found == pytest.approx(
        {"AES-128-GCM": 1000, "AES-256-GCM": 500, "SHA-256": 400, "SHA-512": 200, "Ed25519": None}
    )


def test_what_a_job_tells_again_counts_once_and_little_data_not_at_all(profile: Profile) -> None:
    learnt = Speeds()
    for _ in range(9):
        learnt.learn("1", "SHA-512:10000000:0.1")
    for number in range(9):
        learnt.learn(f"x{number}", "SHA-512:1000:0.1")
        learnt.learn(f"y{number}", "nonsense")
        learnt.forget(f"x{number}")
    assert learnt.runs == {"SHA-512": [1e-8]}


def test_lies_change_a_speed_by_a_factor_at_most_and_old_runs_are_forgotten(profile: Profile) -> None:
    learnt = Speeds()
    for number in range(99):
        learnt.learn(f"{number}", "SHA-512:1000000000:0.000001")
    assert speeds(learnt.applied(profile))["SHA-512"] == pytest.approx(200 * FURTHEST)
    for number in range(99):
        learnt.learn(f"b{number}", "SHA-512:1000000:99999.0")
    assert speeds(learnt.applied(profile))["SHA-512"] == pytest.approx(200 / FURTHEST)
    assert {name: len(runs) for name, runs in learnt.runs.items()} == {"SHA-512": REMEMBERED}
    assert Speeds(learnt.runs).applied(profile) == learnt.applied(profile)


def test_an_option_that_turns_out_slower_than_a_better_one_is_left_out(profile: Profile) -> None:
    learnt = Speeds()
    for number in range(3):
        learnt.learn(f"{number}", "SHA-256:10000000:0.1,SHA-512:10000000:0.05")
    assert [option.name for option in learnt.applied(profile).ladders[1]] == ["SHA-512"]
