"""The chance of an arrival: what the silences of users so far say, and nodes that wake by it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from building import alike, described, emulate, node_cluster, plugged, traced

from headway import events as ev
from headway.decisions import PowerUp
from headway.energy.profiles import load_profile, with_energy
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway_plugins.energy.power_down import PowerDownIdle
from headway_plugins.grid.arrival_forecast import ArrivalForecast, ArrivalForecastOptions
from headway_plugins.grid.arrivals import Submitter
from headway_plugins.grid.rates import Rates
from headway_plugins.policies.easy import Easy


def watched(times, forecast=None, user="ann"):
    """A scheduler that has seen jobs at these times."""
    forecast = forecast or ArrivalForecast(ArrivalForecastOptions(least=3))
    s = Scheduler(ClusterDescription.flat(1), plugged(Easy(), forecast))
    for number, time in enumerate(times):
        s.step(time, [ev.JobSubmitted(time, described(f"{user}{number}", submit=time, user=user))])
    assert s.problems == []
    return s


def test_nobody_says_anything_where_nobody_knows():
    s = Scheduler(ClusterDescription.flat(1), plugged(Easy()))
    assert s.state.arrival_chance("pool", 60.0) is None
    assert watched([0.0, 10.0]).state.arrival_chance("pool", 60.0) is None
    assert watched([0.0, 1.0, 2.0, 3.0]).state.arrival_chance("elsewhere", 60.0) is None


def test_the_chance_is_that_of_the_model():
    rates = Rates(0.001, 0.002, 0.05)
    times = Submitter(np.random.default_rng(1), rates).until(200_000.0)
    s = watched(times.tolist())
    last = float(times[-1])
    for silent, seconds in ((0.0, 10.0), (0.0, 100.0), (60.0, 100.0), (500.0, 300.0)):
        s.step(last + silent, [])
        wanted = 1.0 - float(rates.no_arrival(seconds, silent))
        assert s.state.arrival_chance("pool", seconds) == pytest.approx(wanted, abs=0.06)


def test_users_are_independent_and_pools_their_own():
    forecast = ArrivalForecast(ArrivalForecastOptions(least=3))
    one = watched([0.0, 100.0, 200.0, 300.0], forecast).state.arrival_chance("pool", 50.0)
    both = watched([0.0, 100.0, 200.0, 300.0], forecast, user="bob").state.arrival_chance("pool", 50.0)
    assert both == pytest.approx(1 - (1 - one) ** 2)


def test_what_is_known_outlives_a_restart():
    forecast = ArrivalForecast(ArrivalForecastOptions(least=3))
    s = watched([0.0, 5.0, 300.0, 307.0], forecast)
    saved = json.loads(json.dumps(forecast.checkpoint()))
    again = ArrivalForecast(ArrivalForecastOptions(least=3))
    again.restore(saved)
    assert again.checkpoint() == forecast.checkpoint()
    assert again.arrival_chance("pool", 9.0, s.state) == forecast.arrival_chance("pool", 9.0, s.state)


def test_who_was_silent_the_longest_is_forgotten():
    forecast = ArrivalForecast(ArrivalForecastOptions(most_users=2))
    for user in ("a", "b", "a", "c"):
        watched([1.0], forecast, user=user)
    assert [name for _, name, _, _ in forecast.checkpoint()] == ["a", "c"]


class Certain:
    """Always expects a job, or never."""

    def __init__(self, chance: float) -> None:
        self.chance = chance

    @hookimpl
    def arrival_chance(self, pool: str, seconds: float) -> float:
        return self.chance


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan"), "much"])
def test_an_answer_that_is_no_chance_is_left_out(wrong):
    s = Scheduler(ClusterDescription.flat(1), plugged(Easy(), Certain(wrong)))
    assert s.state.arrival_chance("pool", 60.0) is None
    s.step(0, [])
    assert any("expected a chance from 0 to 1" in problem.message for problem in s.problems)


# ---------------------------------------------------------------------- nodes that wake by it


def run(chance, **options):
    """Jobs that need one node of four, an hour apart; nodes sleep after 100 s idle and wake in 30."""
    jobs = [traced("1", 4, 50), traced("2", 4, 50, submit=3600), traced("3", 4, 50, submit=3610)]
    given = {"idle": 100, "stay": 0, "margin": 0, "wake_chance": 0.5, "wake_nodes": 2, **options}
    power = PowerDownIdle(PowerDownIdle.Options(**given))
    cluster = with_energy(node_cluster(*alike(4, 4)), load_profile("present-day"))
    return emulate(cluster, jobs, Easy(), power, Certain(chance))


def test_nodes_that_are_likely_to_be_needed_stay_on_and_are_woken():
    unlikely, likely = run(0.1), run(0.9)
    assert unlikely.starts["2"] > 3600
    assert (likely.starts["2"], likely.starts["3"]) == (3600, 3610)
    # One is taken, so another is woken beside the one that is left.
    woken = [(time, d.nodes) for time, d in likely.decisions if isinstance(d, PowerUp)]
    assert woken and woken[0][0] == 3600 and len(woken[0][1]) == 1


def test_without_the_option_nothing_is_asked():
    without = run(0.9, wake_chance=None)
    assert without.starts == run(0.1).starts


@pytest.mark.parametrize("options", [{"wake_chance": 0}, {"wake_chance": 1.5}, {"wake_nodes": 0}])
def test_refuses_a_chance_that_is_none(options):
    with pytest.raises(ValueError):
        PowerDownIdle.Options(**options)
