"""Runs a case of the Wave Scheduler's vectors by the product's code and gives what ``expected`` gives."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from headway_plugins.wave.draws import Draws
from headway_plugins.wave.hosts import Hosts
from headway_plugins.wave.jobs import Job
from headway_plugins.wave.metrics import measured
from headway_plugins.wave.network import Network, Run
from headway_plugins.wave.options import Clock, Options, Order, Search, Start
from headway_plugins.wave.overlay import Overlay
from headway_plugins.wave.policies import POLICIES
from headway_plugins.wave.population import population
from headway_plugins.wave.zones import Target, Wavezones, hour_of, zones_in_night

METRICS = ("asked", "failure", "from_submission", "jobs", "lost_work", "migrations", "placement", "slowdown")
WORDS = {"clock": Clock, "target": Target, "discovery": Search, "start": Start, "order": Order}


def answer(case: dict[str, Any]) -> Any:
    kinds = {"overlay": _overlay, "target": _target, "run": _run, "population": _population}
    return kinds[case["kind"]](case)


def _overlay(case: dict[str, Any]) -> dict[str, Any]:
    overlay = Overlay.of(map(tuple, case["points"]), wrap=case.get("wrap", True))
    return {
        "rects": [list(overlay.rectangle(host)) for host in overlay.hosts],
        "neighbours": [overlay.neighbours(host) for host in overlay.hosts],
        "owners": [overlay.owner(x, y) for x, y in case.get("owners", ())],
        "routes": [overlay.route(start, x, y) for start, x, y in case.get("routes", ())],
        "rings": [overlay.rings(start, hops) for start, hops in case.get("rings", ())],
    }


def _target(case: dict[str, Any]) -> list[list[Any]]:
    wavezones, draws = Wavezones(case.get("wavezones", 6)), Draws(())
    rows = []
    for time in case["times"]:
        hour = hour_of(time)
        entered = wavezones.target(Target.JUST_ENTERED, hour, draws)
        rows.append([time, zones_in_night(hour), entered, wavezones.in_night(hour)])
    return rows


def _run(case: dict[str, Any]) -> dict[str, Any]:
    exact = _exact(case, True)
    options = _options(case, exact)
    hosts = case["hosts"]
    shared = options.clock is Clock.SHARED
    world = Hosts(
        [0 if shared else host["zone"] for host in hosts],
        [host["calendar"] for host in hosts],
        claimed=[number for number, host in enumerate(hosts) if host.get("claimed")],
    )
    points = [host.get("point") for host in hosts]
    overlay = None if None in points else Overlay.of(map(tuple, points))
    jobs = [
        Job(_hours(submit, exact), _hours(runtime, exact), *client)
        for submit, runtime, *client in case["jobs"]
    ]
    given = case.get("draws", {"list": []})
    if "seed" in given:
        draws = Draws.of(np.random.default_rng(given["seed"]), exact=exact)
    else:
        draws = Draws(given["list"], exact=exact)
    network = Network(world, overlay, POLICIES[case["policy"]], options, draws, traced=True)
    return _told(network.run(jobs), draws, case)


def _population(case: dict[str, Any]) -> dict[str, Any]:
    exact = _exact(case, False)
    options = _options(case, exact)
    drawn = population(case["seed"], free=case["f"], clients=case["c"], hosts=case["n"])
    jobs = [Job(_hours(job.submit, exact), _hours(job.runtime, exact), job.client) for job in drawn.jobs]
    drawn = replace(drawn, jobs=tuple(jobs))
    draws = Draws.of(np.random.default_rng([case["seed"], 2]), exact=exact)
    run = drawn.run(POLICIES[case["policy"]], options, draws, traced=True)
    return _told(run, draws, case)


def _exact(case: dict[str, Any], default: bool) -> bool:
    """Whether times are fractions of their decimal text."""
    return bool(case.get("exact", case.get("options", {}).get("exact", default)))


def _options(case: dict[str, Any], exact: bool) -> Options:
    given = {name: value for name, value in case.get("options", {}).items() if name != "exact"}
    for name, word in WORDS.items():
        if name in given:
            given[name] = word(given[name])
    for name in ("linger", "until"):
        if given.get(name) is not None:
            given[name] = _hours(given[name], exact)
    return Options(**given)


def _hours(value: float, exact: bool) -> float | Fraction:
    return Fraction(str(value)) if exact else value


def _told(run: Run, draws: Draws, case: dict[str, Any]) -> dict[str, Any]:
    figures = measured(run)
    found = {
        "jobs": [
            [
                str(course.outcome), _plain(course.first), _plain(course.end), course.migrations,
                float(course.done), [[_plain(time), host] for time, host in course.placements],
            ]
            for course in run.courses
        ],
        "metrics": {name: getattr(figures, name) for name in METRICS},
        "drawn": draws.count,
    }  # fmt: skip
    if case.get("trace", True):
        found["trace"] = [
            [_plain(line.time), line.job, str(line.what), line.host, _plain(line.timer)] for line in run.trace
        ]
    return found


def _plain(time: Any) -> float | None:
    return None if time is None else float(time)
