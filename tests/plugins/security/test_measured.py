"""What protection costs here, as a profile that can be read again."""

import sys

import pytest
from click.testing import CliRunner

from headway.errors import UserError
from headway_plugins.security.commands import command
from headway_plugins.security.levels import SERVICES, need_of, parse_profile
from headway_plugins.security.measured import (
    LEVELS,
    Figure,
    Figures,
    measure,
    need_security,
    profile_text,
)


def test_a_measured_profile_is_read_again(tmp_path):
    pytest.importorskip("cryptography")
    out = tmp_path / "speeds.yaml"
    result = CliRunner().invoke(command, ["measure", "--seconds", "0.01", "--out", str(out)])
    assert result.exit_code == 0, result.output
    profile = parse_profile(out.read_text(), "speeds.yaml")
    assert profile.protects
    for service, ladder in zip(SERVICES, profile.ladders, strict=True):
        assert ladder[-1].level == max(LEVELS[service].values()) or service == "authentication"
    need = need_of({"bytes": 1e9}, profile, "job 1")
    assert 0 < need.cost(need.lowest) <= need.cost(need.highest)


def test_the_figures_are_medians_of_what_the_clock_says():
    pytest.importorskip("cryptography")
    now = 0.0

    def clock():
        nonlocal now
        now += 0.5
        return now

    figures = measure(0.5, clock)
    assert {f.option for f in figures.of("integrity")} == set(LEVELS["integrity"])
    assert all(f.speed == pytest.approx(2 * 1.048576) for f in figures.of("encryption"))
    assert all(f.seconds == pytest.approx(0.5) for f in figures.of("authentication"))


def test_the_profile_of_figures_leaves_out_what_is_worse_and_slower():
    figures = Figures(
        (
            Figure("encryption", "AES-128-GCM", 0.7, speed=2030.0),
            Figure("encryption", "ChaCha20-Poly1305", 0.9, speed=843.0),
            Figure("encryption", "AES-256-GCM", 1.0, speed=1390.0),
            Figure("integrity", "SHA-256", 0.7, speed=160.0),
            Figure("authentication", "Ed25519", 0.8, seconds=0.00045),
        ),
        {"machine": "x"},
    )
    profile = parse_profile(profile_text(figures), "profile")
    assert [o.name for o in profile.ladders[0]] == ["AES-128-GCM", "AES-256-GCM"]
    assert profile.ladders[0][-1].cost(1e12) == pytest.approx(719.4, abs=0.1)
    assert profile.ladders[1][0].cost(1e12) == pytest.approx(6250)


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setattr("headway.inputs.extras.find_spec", lambda name: None)
    with pytest.raises(UserError, match="extra `security`"):
        need_security("headway security measure")
