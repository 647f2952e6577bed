"""The runs of the reproduction of the Wave Scheduler's paper: which, and what is kept of each.

A *variant* is a policy with its way to find hosts. The scenario says what is fixed and which clock the hosts
live by; x is what is varied, in percent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headway.experiment.campaign import Row
from headway_plugins.wave.jobs import Outcome
from headway_plugins.wave.metrics import measured, slowdown
from headway_plugins.wave.network import Line, Run, What
from headway_plugins.wave.options import Clock, LingerCheck, Options, Retry, Search
from headway_plugins.wave.policies import POLICIES, Where
from headway_plugins.wave.population import Population, population
from headway_plugins.wave.zones import Target

FAILURE, SLOWDOWN, MIGRATIONS = "failed jobs, %", "slowdown", "migrations"
PLACEMENT, SUBMITTED, ASKED = "failed at first, %", "slowdown from submission", "hosts asked"
ABOVE, LARGEST, WORK = "slowdown above 2, %", "largest slowdown", "work lost, h a job"
FIGURES = (FAILURE, SLOWDOWN, MIGRATIONS, PLACEMENT, SUBMITTED, ASKED, ABOVE, LARGEST, WORK)
#: Bounds of the bins of Figure 6; no job can exceed 5.5.
BINS = tuple(round(1.0 + 0.25 * step, 2) for step in range(19))
#: Half hours of the strip, jobs on it, and whose.
STRIP, SHOWN = 96, 20
STRIPS = ("wave-adaptive", "migration-adaptive")
#: Free time at which the rules for the target wavezone are compared, percent.
OF_RULES = (15.0, 85.0)

RING, RANDOM = Search.RING, Search.RANDOM
WAVES = tuple(name for name, one in POLICIES.items() if one.where is Where.NIGHT)
PLAIN = tuple(name for name in POLICIES if name not in WAVES)
#: Policies of one clock, with both ways to find hosts.
SHARED = tuple((name, search) for name in PLAIN for search in (RING, RANDOM))
#: Policies by the clocks of the zones, which is the fair comparison for the policies without wavezones.
ZONED = tuple((name, RING) for name in POLICIES)
#: Variations at f = 15 %: on the decisions that the paper leaves open, and what it names as future work.
VARIATIONS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "as decided": ({}, {}),
    "any available host of the wavezone": ({"strict": False}, {}),
    "owners' loads count": ({}, {"load": True}),
    "another calendar each day": ({}, {"days": 7}),
    "failed jobs are submitted again, from scratch": ({"retry": Retry.SCRATCH}, {}),
    "failed jobs are submitted again, from a checkpoint": ({"retry": Retry.CHECKPOINT}, {}),
    "search a quarter of an hour ahead": ({"lead": 0.25}, {}),
    "lingering jobs look at the end alone": ({"linger_check": LingerCheck.END}, {}),
    "all calendars are known": ({"discovery": Search.GLOBAL}, {}),
}


def label(name: str, search: Search) -> str:
    """A variant's name."""
    return f"{name}, {search}"


def figures(run: Run) -> dict[str, float]:
    """What is kept of a run; NaN where too few jobs are done for a mean."""
    found = measured(run)
    done = [one for one in run.courses if one.outcome is Outcome.DONE] if found.telling else []
    slow = [slowdown(one, one.first) for one in done]
    nothing = float("nan")
    return {
        FAILURE: 100 * (found.failure or 0.0),
        SLOWDOWN: found.slowdown if slow and found.slowdown is not None else nothing,
        MIGRATIONS: found.migrations if slow and found.migrations is not None else nothing,
        PLACEMENT: 100 * (found.placement or 0.0),
        SUBMITTED: found.from_submission if slow and found.from_submission is not None else nothing,
        ASKED: found.asked if found.asked is not None else nothing,
        ABOVE: 100 * float(np.mean(np.array(slow) > 2)) if slow else nothing,
        LARGEST: max(slow) if slow else nothing,
        WORK: found.lost_work / max(found.jobs, 1),
    }


def scenario(fixed: str, clock: Clock) -> str:
    """A scenario's name; ``fixed``: the letter of what is not varied."""
    return f"{fixed} fixed, {clock}"


def variants(clock: Clock) -> tuple[tuple[str, Search], ...]:
    """The variants that are run by a clock."""
    return SHARED if clock is Clock.SHARED else ZONED


def _runs(drawn: Population, clock: Clock, which: Sequence[tuple[str, Search]]) -> Iterator[tuple[str, Run]]:
    """All runs of one population by one clock, over the same overlays."""
    hosts = drawn.hosts(clock)
    overlays = {False: drawn.plain(), True: drawn.by_zone()}
    for name, search in which:
        options = Options(clock=clock, discovery=search)
        yield label(name, search), drawn.run_on(hosts, overlays[name in WAVES], POLICIES[name], options)


def run_point(seed: int, fixed: str, x: float, free: float, clients: float, hosts: int) -> list[Row]:
    """All variants of both clocks at one point of one seed."""
    drawn = population(seed, free=free, clients=clients, hosts=hosts)
    return [
        Row(scenario(fixed, clock), x, name, seed, figures(run))
        for clock in Clock
        for name, run in _runs(drawn, clock, variants(clock))
    ]


def run_histogram(seed: int, hosts: int) -> list[Row]:
    """Figure 6: which share of the jobs that are done has which slowdown, percent."""
    drawn = population(seed, free=0.15, clients=0.2, hosts=hosts)
    rows = []
    for clock in Clock:
        for name, run in _runs(drawn, clock, variants(clock)):
            slow = [slowdown(one, one.first) for one in run.courses if one.outcome is Outcome.DONE]
            counts, _ = np.histogram(slow, bins=BINS)
            shares = 100 * counts / max(len(slow), 1)
            values = {f"{low:g} to {high:g}": float(share)
                      for low, high, share in zip(BINS, BINS[1:], shares, strict=False)}  # fmt: skip
            rows.append(Row(scenario("f, c", clock), 15, name, seed, values))
    return rows


def run_rules(seed: int, hosts: int) -> list[Row]:
    """The three rules for the target wavezone, with limited and with much free time, c = 20 %."""
    rows = []
    for x in OF_RULES:
        drawn = population(seed, free=x / 100, clients=0.2, hosts=hosts)
        world, overlay = drawn.hosts(Clock.ZONES), drawn.by_zone()
        rows += [
            Row("rules", x, f"{name}, {rule}", seed,
                figures(drawn.run_on(world, overlay, POLICIES[name], Options(target=rule))))
            for name in WAVES for rule in Target
        ]  # fmt: skip
    return rows


def run_variations(seed: int, hosts: int) -> list[Row]:
    """Variations at f = 15 %, c = 20 %, by the clocks of the zones."""
    rows = []
    for what, (options, drawing) in VARIATIONS.items():
        drawn = population(seed, free=0.15, clients=0.2, hosts=hosts, **drawing)
        rows += [
            Row(what, 15, name, seed, figures(drawn.run(policy, Options(**options))))
            for name, policy in POLICIES.items()
        ]
    return rows


def run_strip(hosts: int) -> list[Row]:
    """Where the first jobs of a run are, in which zone, every half an hour; NaN where a job does not run."""
    drawn = population(1, free=0.15, clients=0.2, hosts=hosts)
    rows = []
    for name in STRIPS:
        run = drawn.run(POLICIES[name], Options(), traced=True)
        for job in range(SHOWN):
            lines = [line for line in run.trace if line.job == job]
            zones = zones_of(lines, drawn.zones)
            rows.append(Row("strip", job, name, job, {f"{at / 2:g}": zones[at] for at in range(STRIP)}))
    return rows


def zones_of(lines: Sequence[Line], zones: Sequence[int]) -> list[float]:
    """Of each half hour the zone in which a job runs then; NaN: it does not."""
    found = [float("nan")] * STRIP
    runs = (What.RUN, What.RESUME, What.MOVE)
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        if line.what in runs and line.host is not None and following is not None:
            for at in range(STRIP):
                if line.time <= at / 2 < following.time:
                    found[at] = float(zones[line.host])
    return found
