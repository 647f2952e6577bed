"""The experiments of the paper on the Wave Scheduler: each claim is judged, rows are kept, and rows that make
a claim false do so."""

from __future__ import annotations

import numpy as np
import pytest

from headway.errors import UserError
from headway.experiment.campaign import Row
from headway.experiment.reproduction import Context
from headway_plugins.reproductions import wave
from headway_plugins.reproductions.wave import WaveReproduction
from headway_plugins.reproductions.wave_claims import (
    Curves,
    failures,
    histogram,
    moves,
    rules,
    turnaround,
    wave_failures,
    wave_moves,
    wave_turnaround,
)
from headway_plugins.reproductions.wave_runs import (
    ABOVE,
    FAILURE,
    LARGEST,
    MIGRATIONS,
    SLOWDOWN,
    VARIATIONS,
    WAVES,
    label,
    scenario,
    variants,
    zones_of,
)
from headway_plugins.wave.network import Line, What
from headway_plugins.wave.options import Clock, Search
from headway_plugins.wave.policies import POLICIES
from headway_plugins.wave.zones import Target

NONE, IMMEDIATE, LINGER, ADAPTIVE, W_IMMEDIATE, W_LINGER, W_ADAPTIVE = POLICIES
SEEDS = range(1, 6)


def context(out, keep=False):
    return Context(
        out=out, seeds=(1, 2), workers=1, traces=None, on_plan=lambda name, count: None,
        on_done=lambda count: None, rows=[], keep=keep,
    )  # fmt: skip


def test_every_claim_is_judged_and_rows_are_kept(tmp_path, monkeypatch):
    paper = WaveReproduction(hosts=120, free=(5, 15, 65), clients=(10, 90))
    claims = paper.run(context(tmp_path))
    where = [claim.where.split(",")[0] for claim in claims]
    assert where == [
        *(f"E{number}" for number in range(1, 11)), "E11", "E11", "E11", "E11", "E12", "E12", "E13", "E13",
        "E14", "E14", "E15", "E15", "E16", "E16", "E17", "-", "-",
    ]  # fmt: skip
    assert {claim.holds for claim in claims[:-2]} <= {"yes", "in part", "no"}
    pictures = {f"figure-{number}.png" for number in range(5, 14)} | {"strip.png"}
    assert pictures <= {file.name for file in tmp_path.iterdir()}
    page = (tmp_path / "tables.md").read_text()
    assert "Only this comparison is fair" in page
    assert all(f"| {what} | {name} |" in page for what in VARIATIONS for name in POLICIES)
    for name in ("run_point", "run_histogram", "run_rules", "run_variations", "run_strip"):
        monkeypatch.setattr(wave, name, None)
    assert paper.run(context(tmp_path, keep=True)) == claims
    assert (tmp_path / "tables.md").read_text() == page


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"free": (5, 25)}, "--set free: expected 15 among"),
        ({"free": (15,)}, "--set free: expected ascending percentages"),
        ({"clients": (90, 10)}, "--set clients: expected ascending percentages"),
        ({"clients": (10, 110)}, "--set clients: expected ascending percentages"),
        ({"hosts": 5}, "--set hosts: expected at least 10, found 5"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(UserError, match=message):
        WaveReproduction(**settings)


def test_the_strip_shows_a_job_where_it_runs():
    lines = [Line(1.2, 0, What.SLEEP, 0), Line(2, 0, What.MOVE, 1), Line(3, 0, What.STAY, 1),
             Line(4, 0, What.RESUME, 1), Line(4.6, 0, What.DONE, 1)]  # fmt: skip
    found = zones_of(lines, [7, 9])
    assert [at / 2 for at, zone in enumerate(found) if zone == 9] == [2, 2.5, 4, 4.5]
    assert sum(zone == zone for zone in found) == 4


# ---------------------------------------------------------------------- rows that make a claim true or false


def curves(value, xs=(5.0, 15.0, 45.0, 65.0, 95.0), fixed="c"):
    """Both clocks' curves; ``value``: of metric, policy, search, clock and x."""
    rng = np.random.default_rng(1)
    rows = [
        Row(scenario(fixed, clock), x, label(*one), seed, {
            metric: value(metric, *one, clock, x) + rng.normal(0, 1e-4)
            for metric in (FAILURE, SLOWDOWN, MIGRATIONS, ABOVE, LARGEST)
        })
        for clock in Clock for one in variants(clock) for x in xs for seed in SEEDS
    ]  # fmt: skip
    return [Curves(rows, fixed, clock, xs) for clock in (Clock.SHARED, Clock.ZONES)]


def holds(claims, where, of=""):
    (found,) = [claim.holds for claim in claims if claim.where.startswith(where) and of in claim.paper]
    return found


def slow(of):
    """Slowdowns by policy; everything else 50."""
    return lambda metric, name, search, clock, x: of[name] if metric == SLOWDOWN else 50.0


USUAL = {NONE: 2.5, IMMEDIATE: 1, LINGER: 2, ADAPTIVE: 1.05, W_IMMEDIATE: 1, W_LINGER: 1.4, W_ADAPTIVE: 1.01}


@pytest.mark.parametrize(
    ("of", "where", "expected"),
    [
        # Noise of immediate is no slowdown of 1.
        (USUAL, "E1", "in part"),
        ({**USUAL, LINGER: 2.6, ADAPTIVE: 2.6, IMMEDIATE: 2.6}, "E1", "no"),
        (USUAL, "E2", "yes"),
        ({**USUAL, ADAPTIVE: 1.5}, "E2", "in part"),
        ({**USUAL, LINGER: 3, ADAPTIVE: 3}, "E2", "no"),
        # No difference between ring and random anywhere.
        (USUAL, "E3", "in part"),
        (USUAL, "E4", "yes"),
    ],
)
def test_claims_on_figure_5(of, where, expected):
    shared, _ = curves(slow(of))
    assert holds(turnaround(shared), where) == expected


def crossing(metric, name, search, clock, x):
    """Linger faster with random and adaptive with ring below 65 %."""
    apart = 0.2 * (x < 65)
    by = {(LINGER, Search.RING): 2 + apart, (LINGER, Search.RANDOM): 2.0,
          (ADAPTIVE, Search.RING): 1.05, (ADAPTIVE, Search.RANDOM): 1.05 + apart}  # fmt: skip
    return by.get((name, search), USUAL[name])


def test_e3_is_a_crossing_below_65_percent():
    assert holds(turnaround(curves(crossing)[0]), "E3") == "yes"


@pytest.mark.parametrize(
    ("above", "largest", "expected"), [(90, 5.2, "yes"), (90, 4.8, "in part"), (30, 4, "in part")]
)
def test_e5_is_of_most_jobs_and_of_the_largest(above, largest, expected):
    shared, _ = curves(lambda metric, *_: {ABOVE: above, LARGEST: largest}.get(metric, 1.0))
    bins = {"1 to 1.25": 40.0, "1.25 to 1.5": 30.0}
    rows = [Row(scenario("f, c", Clock.SHARED), 15, label(name, Search.RING), seed, bins)
            for name in (IMMEDIATE, ADAPTIVE) for seed in SEEDS]  # fmt: skip
    shares = Curves(rows, "f, c", Clock.SHARED, (15,))
    assert holds(histogram(shared, shares), "E5") == expected


@pytest.mark.parametrize(
    ("eager", "patient", "by_clients", "expected"),
    [(80, 0.1, 0.3, ("yes", "yes")), (40, 0.1, 0.3, ("in part", "in part")), (40, 5, -0.3, ("no", "no"))],
)
def test_e6_and_e7_are_of_failures(eager, patient, by_clients, expected):
    def failed(metric, name, search, clock, x):
        return patient if name == ADAPTIVE else eager

    def crowded(metric, name, search, clock, x):
        return eager + by_clients * x / 2

    crowd, _ = curves(crowded, (10.0, 50.0, 90.0), "f")
    claims = failures(curves(failed)[0], crowd)
    assert (holds(claims, "E6"), holds(claims, "E7")) == expected
    assert holds(claims, "E8") == ("yes" if patient < eager else "no")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [(lambda x: 9 - abs(x - 15) / 10, "yes"), (lambda x: 9 - x / 20, "no"), (lambda x: 5 + x / 20, "no")],
)
def test_e9_is_a_rise_and_a_fall(shape, expected):
    shared, _ = curves(lambda metric, name, search, clock, x: shape(x))
    assert holds(moves(shared), "E9") == expected


@pytest.mark.parametrize(
    ("plain", "expected"),
    [(1.35, ("yes", "yes")), (1.1, ("yes", "in part")), (1.03, ("no", "no")), (0.9, ("no", "no"))],
)
def test_e11_and_e12_are_by_each_clock(plain, expected):
    """By one clock migration-adaptive is as slow as given, in zones it is as fast as wave-adaptive."""

    def value(metric, name, search, clock, x):
        if name == ADAPTIVE:
            return plain if clock is Clock.SHARED else 1.0
        return USUAL[name]

    claims = wave_turnaround(curves(value))
    faster = holds(claims, "E11, Figure 10, one clock", W_ADAPTIVE)
    assert (faster, holds(claims, "E12, one clock")) == expected
    assert holds(claims, "E11, Figure 10, zones", W_ADAPTIVE) == holds(claims, "E12, zones") == "no"
    assert holds(claims, "E11, Figure 10, zones", W_LINGER) == "yes"


@pytest.mark.parametrize(("better", "expected"), [(10, ("yes", "yes", "yes")), (-10, ("no", "no", "no"))])
def test_e13_to_e16_compare_wave_with_migration(better, expected):
    def value(metric, name, search, clock, x):
        if name == W_IMMEDIATE and metric == FAILURE and x >= 65:
            return 60 + better
        alike = {W_LINGER: 50.0, W_ADAPTIVE: 50.0 - better / 5}
        if x >= 65 and metric == FAILURE:
            return 50.0 + alike.get(name, 50.0) * 0.01
        return 50.0 if name in WAVES else 50.0 + better

    frees, crowds = curves(value), curves(value, (10.0, 50.0), "f")
    claims = wave_failures(frees, crowds)
    assert holds(claims, "E13, Figure 12, one clock") == expected[0]
    assert holds(claims, "E14, Figure 11, zones") == ("yes" if better > 0 else "in part")
    assert holds(claims, "E15, Figure 12, zones") == ("in part" if better > 0 else "no")
    assert holds(wave_moves(frees), "E16, Figure 13, zones") == expected[2]


@pytest.mark.parametrize(("gain", "expected"), [(0.2, "yes"), (0.0, "no"), (-0.2, "no")])
def test_e17_is_of_both_other_rules(gain, expected):
    rng = np.random.default_rng(2)
    rows = [
        Row("rules", x, f"{name}, {rule}", seed, {
            SLOWDOWN: 1.4 + gain * (rule is not Target.JUST_ENTERED) + rng.normal(0, 0.01),
            MIGRATIONS: 3.0, FAILURE: 10.0,
        })
        for x in (15.0, 85.0) for name in WAVES for rule in Target for seed in SEEDS
    ]  # fmt: skip
    assert holds(rules(rows), "E17") == expected
