"""The published experiment: orderings E1 to E17, the cells of an independent rerun, decisions W4 to W8.

In small in every run; as large as published with the marker slow. E8, E10 and E15 are judged by the
reproduction alone: the first and the last do not come out, and E10 is arithmetic (test_wave_profiles.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pytest

from headway_plugins.wave.jobs import Outcome
from headway_plugins.wave.metrics import measured, slowdown
from headway_plugins.wave.options import Clock, Options, Search
from headway_plugins.wave.policies import POLICIES
from headway_plugins.wave.population import population
from headway_plugins.wave.zones import Target

SHARED, ZONES = Clock.SHARED, Clock.ZONES
RING, RANDOM = Search.RING, Search.RANDOM
NONE, IMMEDIATE, LINGER, ADAPTIVE, W_IMMEDIATE, W_LINGER, W_ADAPTIVE = POLICIES


@dataclass(frozen=True)
class Mean:
    """Over the seeds; failure in percent; NaN where no job is done."""

    failure: float
    slowdown: float
    migrations: float
    above: float
    largest: float


@cache
def world(hosts, seed, free, clients, days=1, load=False):
    drawn = population(seed, free=free / 100, clients=clients / 100, hosts=hosts, days=days, load=load)
    return drawn, {True: drawn.by_zone(), False: drawn.plain()}


@cache
def one(hosts, seed, free, clients, name, clock, options, days, load):
    drawn, overlays = world(hosts, seed, free, clients, days, load)
    run = drawn.run_on(drawn.hosts(clock), overlays[name.startswith("wave")], POLICIES[name], options)
    found = measured(run)
    done = [slowdown(course, course.first) for course in run.courses if course.outcome is Outcome.DONE]
    nothing = float("nan")
    return Mean(
        100 * found.failure,
        found.slowdown if done else nothing,
        found.migrations if done else nothing,
        100 * float(np.mean(np.array(done) > 2)) if done else nothing,
        max(done, default=nothing),
    )


@dataclass(frozen=True)
class Size:
    hosts: int
    seeds: tuple[int, ...]
    free: tuple[int, ...]
    clients: tuple[int, ...]

    @cached_property
    def much(self):
        return [f for f in self.free if f >= 65]

    def __call__(self, name, f=15, c=20, clock=None, search=RING, days=1, load=False, **options):
        """A policy's means; wave policies by the clocks of the zones, others by one clock unless said."""
        clock = clock or (ZONES if name.startswith("wave") else SHARED)
        given = Options(clock=clock, discovery=search, **options)
        found = [one(self.hosts, seed, f, c, name, clock, given, days, load) for seed in self.seeds]
        return Mean(
            *(float(np.mean([getattr(m, what) for m in found])) for what in list(Mean.__annotations__)[:4]),
            max(m.largest for m in found),
        )


SMALL = Size(1500, (1,), (15, 45, 85), (20, 70))
FULL = Size(5000, (1, 2, 3), (5, 15, 25, 35, 45, 65, 85, 95), (10, 30, 50, 70, 90))


@pytest.fixture(params=[SMALL, pytest.param(FULL, marks=pytest.mark.slow)], ids=["small", "full"])
def at(request):
    return request.param


def telling(mean):
    return mean.failure < 95


# ---------------------------------------------------------------------- orderings


def test_e1_every_migration_is_faster_than_none_and_immediate_is_exactly_1(at):
    for f in at.free:
        none = at(NONE, f).slowdown
        for name in (IMMEDIATE, LINGER, ADAPTIVE):
            for search in (RING, RANDOM):
                found = at(name, f, search=search)
                if telling(found):
                    assert found.slowdown < none + (0.01 if f >= 85 else 0)
                    assert name != IMMEDIATE or found.slowdown == pytest.approx(1, abs=1e-9)


def test_e2_linger_is_between_none_and_adaptive_and_adaptive_is_close_to_immediate(at):
    for f in at.free:
        if f >= 15:
            none, linger, adaptive = (at(name, f).slowdown for name in (NONE, LINGER, ADAPTIVE))
            assert adaptive < linger < none + 0.01
            assert adaptive - 1 < linger - adaptive


def test_e3_below_65_percent_linger_is_faster_with_random_and_adaptive_with_ring(at):
    for f in at.free:
        linger, adaptive = ({s: at(name, f, search=s) for s in (RING, RANDOM)} for name in (LINGER, ADAPTIVE))
        if f < 65:
            assert adaptive[RING].slowdown < adaptive[RANDOM].slowdown
            if telling(linger[RANDOM]):
                assert linger[RANDOM].slowdown < linger[RING].slowdown
        else:
            for found in (linger, adaptive):
                assert found[RING].slowdown == pytest.approx(found[RANDOM].slowdown, abs=0.02)


def test_e4_none_and_immediate_do_not_depend_on_how_hosts_are_found(at):
    for f in at.free:
        assert at(NONE, f).slowdown == pytest.approx(at(NONE, f, search=RANDOM).slowdown, abs=0.07)


def test_e5_most_jobs_without_migration_are_slowed_down_by_more_than_2(at):
    assert at(NONE).above > 85
    assert at(IMMEDIATE).above == 0 and at(ADAPTIVE).above < 5
    assert at is SMALL or at(NONE).largest > 5


def test_e6_immediate_and_linger_fail_extremely_often_and_adaptive_nearly_never(at):
    for f in (f for f in at.free if f <= 15):
        assert min(at(name, f, search=s).failure for name in (IMMEDIATE, LINGER) for s in (RING, RANDOM)) > 60
    for f in at.free:
        assert max(at(ADAPTIVE, f, search=s).failure for s in (RING, RANDOM)) < 1


def test_e7_failures_rise_with_the_clients_and_immediates_are_high_throughout(at):
    for name in (NONE, IMMEDIATE, LINGER, ADAPTIVE):
        failures = [at(name, c=c).failure for c in at.clients]
        assert failures == sorted(failures)
    assert min(at(IMMEDIATE, c=c).failure for c in at.clients) > 65


def test_e9_migrations_rise_first_and_then_fall(at):
    for name in (IMMEDIATE, ADAPTIVE):
        moves = {f: at(name, f).migrations for f in at.free}
        assert max(moves, key=moves.__getitem__) == 15
        later = [moves[f] for f in at.free if f >= 15]
        assert later == sorted(later, reverse=True)
    assert at is SMALL or at(ADAPTIVE, 5).migrations < at(ADAPTIVE, 15).migrations


def test_e11_wave_is_faster_and_wave_adaptive_always_low(at):
    for f in at.free:
        assert at(W_ADAPTIVE, f).slowdown < 1.03
        if f <= 45 and telling(at(LINGER, f)):
            assert at(W_LINGER, f).slowdown < at(LINGER, f).slowdown
    assert at(W_ADAPTIVE).slowdown < at(ADAPTIVE).slowdown - 0.2


def test_e12_wave_adaptive_takes_three_quarters_by_one_clock_and_all_of_it_in_zones(at):
    wave = at(W_ADAPTIVE).slowdown
    assert wave / at(ADAPTIVE).slowdown == pytest.approx(0.78, abs=0.03)
    assert wave / at(ADAPTIVE, clock=ZONES).slowdown == pytest.approx(1.0, abs=0.02)


def test_e13_with_limited_free_time_wave_fails_less_than_migration(at):
    for c in at.clients:
        for ours, theirs in ((W_IMMEDIATE, IMMEDIATE), (W_LINGER, LINGER)):
            assert at(ours, c=c).failure < at(theirs, c=c).failure


def test_e14_with_much_free_time_wave_immediate_fails_most(at):
    for f in at.much:
        most, close = at(W_IMMEDIATE, f).failure, 5 if at is SMALL else 3.5
        assert most > max(at(name, f).failure for name in POLICIES if name != W_IMMEDIATE)
        for name in (W_LINGER, W_ADAPTIVE):
            assert at(name, f).failure == pytest.approx(at(ADAPTIVE, f).failure, abs=close)


def test_e16_wave_needs_fewer_migrations(at):
    for f in at.free:
        for ours, theirs in ((W_IMMEDIATE, IMMEDIATE), (W_ADAPTIVE, ADAPTIVE)):
            if telling(at(theirs, f)):
                assert at(ours, f).migrations < at(theirs, f).migrations
    assert at(W_ADAPTIVE).migrations < at(ADAPTIVE, clock=ZONES).migrations - 2


def test_e17_the_wavezone_that_has_just_entered_night_is_the_fastest(at):
    first, *others = (at(W_LINGER, target=rule).slowdown for rule in Target)
    assert all(first < other - 0.15 for other in others)
    first, *others = (at(W_ADAPTIVE, target=rule).migrations for rule in Target)
    assert all(first < other - 1 for other in others)


# ---------------------------------------------------------------------- decisions


def test_w4_owners_loads_would_make_immediate_slower_than_1(at):
    expected = {15: 1.07, 45: 1.10} if at is SMALL else {5: 1.06, 15: 1.07, 45: 1.10, 95: 1.14}
    for f, slow in expected.items():
        found = at(IMMEDIATE, f, clock=ZONES, load=True)
        assert found.slowdown == pytest.approx(slow, abs=0.01)


def test_w6_slowdowns_above_5_need_repeated_calendars(at):
    assert at(NONE, days=7).largest < 5
    assert at(NONE).largest <= 5.5


def test_w8_wave_immediate_fails_by_its_strict_rules(at):
    assert at(W_IMMEDIATE, 65).failure > 5
    assert at(W_IMMEDIATE, 65, strict=False).failure < 1


# ---------------------------------------------------------------------- cells of the rerun

#: Failure % / slowdown / migrations by f, c = 20 %; the failure alone where it is above 95 %.
BY_FREE = {
    (NONE, RING, SHARED): "0/3.24/0 0/2.67/0 0/2.26/0 0/1.96/0 0/1.70/0 0/1.36/0 0/1.13/0 0/1.04/0",
    (IMMEDIATE, RING, SHARED): "99.9 80.5/1/10.3 40.2/1/9.8 11.9/1/8.6 2.1/1/7.3 0/1/4.7 0/1/2.0 0/1/0.7",
    (LINGER, RING, SHARED):
        "99.7 69.4/2.07/7.4 21.6/1.89/5.7 4.2/1.72/4.1 0.6/1.56/2.7 0/1.32/1.0 0/1.12/0.2 0/1.04/0",
    (ADAPTIVE, RING, SHARED):
        "0/2.32/6.7 0/1.30/10.2 0/1.06/9.8 0/1.01/8.6 0/1.00/7.3 0/1/4.7 0/1/2.0 0/1/0.7",
    (IMMEDIATE, RANDOM, SHARED): "100 99.7 94.6/1/7.8 78.0/1/7.4 52.7/1/6.9 11.7/1/4.6 0.8/1/2.0 0/1/0.7",
    (LINGER, RANDOM, SHARED):
        "100 99.2 86.3/1.78/4.3 56.5/1.67/3.4 29.2/1.54/2.4 3.1/1.32/0.9 0.2/1.12/0.2 0/1.04/0",
    (ADAPTIVE, RANDOM, SHARED):
        "0/2.79/3.3 0/1.88/6.7 0/1.40/7.7 0/1.17/7.4 0/1.07/6.8 0/1.01/4.6 0/1/2.0 0/1/0.7",
    (W_IMMEDIATE, RING, ZONES):
        "11.6/1/2.9 10.5/1/2.8 10.9/1/2.7 9.8/1/2.6 9.9/1/2.5 7.4/1/2.1 4.2/1/1.3 2.5/1/0.6",
    (W_LINGER, RING, ZONES):
        "16.2/1.35/3.0 12.6/1.36/2.8 10.0/1.37/2.5 7.8/1.36/2.2 5.5/1.34/1.7 2.5/1.26/0.8 1.5/1.12/0.2 "
        "1.3/1.04/0",
    (W_ADAPTIVE, RING, ZONES):
        "0/1.01/2.9 0/1.01/2.8 0/1.01/2.7 0/1.01/2.6 0/1.00/2.5 0/1/2.1 0/1/1.3 0/1/0.6",
    (IMMEDIATE, RING, ZONES):
        "24.2/1/4.8 8.3/1/5.6 3.1/1/5.9 0.5/1/5.9 0.1/1/5.5 0/1/4.1 0/1/2.0 0/1/0.7",
    (LINGER, RING, ZONES):
        "20.9/1.62/5.2 5.6/1.70/5.3 1.7/1.69/4.7 0.3/1.63/3.7 0.1/1.53/2.6 0/1.31/1.0 0/1.12/0.1 0/1.04/0",
    (ADAPTIVE, RING, ZONES): "0/1.03/4.9 0/1.01/5.7 0/1.00/5.9 0/1/5.8 0/1/5.5 0/1/4.1 0/1/2.0 0/1/0.7",
}  # fmt: skip
#: The same by c, f = 15 %.
BY_CLIENTS = {
    (NONE, RING, SHARED): "0/2.68/0 0/2.67/0 0/2.68/0 0.8/2.68/0 5.5/2.68/0",
    (IMMEDIATE, RING, SHARED): "71.6/1/10.5 85.8/1/10.1 90.6/1/10.0 93.2/1/9.6 94.5/1/9.5",
    (LINGER, RING, SHARED): "58.4/2.08/7.6 74.0/2.05/7.1 82.6/2.02/7.0 86.8/2.00/6.9 89.5/1.98/6.7",
    (ADAPTIVE, RING, SHARED): "0/1.18/10.8 0/1.46/9.3 0/1.76/6.7 0.1/2.00/4.8 1.8/2.18/3.6",
    (W_IMMEDIATE, RING, ZONES): "4.7/1/2.9 20.3/1/2.7 43.1/1/2.7 56.8/1/2.6 65.0/1/2.6",
    (W_LINGER, RING, ZONES): "5.6/1.36/2.9 21.3/1.35/2.7 41.6/1.34/2.7 55.6/1.33/2.6 65.8/1.33/2.6",
    (W_ADAPTIVE, RING, ZONES): "0/1.00/2.9 0.2/1.02/2.8 2.1/1.17/2.8 4.6/1.43/2.4 6.3/1.73/1.9",
}


def check_cell(found, cell, where):
    failure, *means = map(float, cell.split("/"))
    assert found.failure == pytest.approx(failure, abs=3), where
    if failure < 95 and telling(found):
        assert found.slowdown == pytest.approx(means[0], abs=0.03), where
        assert found.migrations == pytest.approx(means[1], abs=0.3), where


@pytest.mark.slow
@pytest.mark.parametrize("which", BY_FREE, ids="-".join)
def test_cells_by_free_time(which):
    name, search, clock = which
    for f, cell in zip(FULL.free, BY_FREE[which].split(), strict=True):
        check_cell(FULL(name, f, clock=clock, search=search), cell, f)


@pytest.mark.slow
@pytest.mark.parametrize("which", BY_CLIENTS, ids="-".join)
def test_cells_by_clients(which):
    name, search, clock = which
    for c, cell in zip(FULL.clients, BY_CLIENTS[which].split(), strict=True):
        check_cell(FULL(name, c=c, clock=clock, search=search), cell, c)


@pytest.mark.parametrize("which", BY_FREE, ids="-".join)
def test_cells_at_15_percent_in_small(which):
    """1,500 hosts are fewer than published, so tolerances are wider."""
    name, search, clock = which
    failure, *means = map(float, BY_FREE[which].split()[1].split("/"))
    found = SMALL(name, clock=clock, search=search)
    assert found.failure == pytest.approx(failure, abs=7)
    if failure < 95:
        assert found.slowdown == pytest.approx(means[0], abs=0.1)
        assert found.migrations == pytest.approx(means[1], abs=0.6)
