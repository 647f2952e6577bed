"""power-cap: a pool draws no more than it may."""

from __future__ import annotations

from pathlib import Path

import pydantic
import pytest
from building import alike, emulate, node_cluster, traced
from energy_building import PAPER, PRESENT, run_result
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decisions import PowerUp, SetFrequency, SetTimeLimit, Start
from headway.energy.profiles import with_energy
from headway.errors import UserError
from headway.metrics.energy import energy_use
from headway.model import ClusterDescription
from headway_plugins.energy.power_cap import PowerCap
from headway_plugins.energy.power_down import PowerDownIdle
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.policies.greedy import Greedy

#: Watts of a busy processor of the paper's class I at full speed, and at its slowest level.
FULL, SLOW = 40.0, 40.0 * 0.7 / 1.69


def cap(**options) -> PowerCap:
    return PowerCap(PowerCap.Options(**options))


def flat(processors: int = 8, profile=PAPER) -> ClusterDescription:
    return with_energy(ClusterDescription.flat(processors), profile)


def starts(run) -> dict[str, Start]:
    return {d.job_id: d for _, d in run.decisions if isinstance(d, Start)}


def peak(run, cluster) -> float:
    use = energy_use(run_result(run, cluster))
    assert use is not None
    return use.peak_power


def test_a_start_that_would_exceed_the_cap_is_delayed() -> None:
    jobs = [traced("1", 2, 100), traced("2", 2, 100)]
    run = emulate(flat(), jobs, Fcfs(), cap(watts=3 * FULL, slow=False))
    assert run.starts == {"1": 0, "2": 100}


def test_what_just_fits_starts() -> None:
    jobs = [traced("1", 2, 100), traced("2", 2, 100)]
    run = emulate(flat(), jobs, Fcfs(), cap(watts=4 * FULL, slow=False))
    assert run.starts == {"1": 0, "2": 0}


def test_it_is_slowed_to_the_fastest_level_that_fits() -> None:
    jobs = [traced("1", 2, 100), traced("2", 2, 100)]
    cluster = flat()
    run = emulate(cluster, jobs, Fcfs(), cap(watts=3.4 * FULL))
    assert run.starts == {"1": 0, "2": 0}
    # 0.9 * (1.2/1.3)^2 = 0.767 is too much for 0.7, 0.8 * (1.1/1.3)^2 = 0.573 is not.
    assert starts(run)["2"].frequency == pytest.approx(2.4e9)
    assert "at 2.40 GHz under the power cap" in starts(run)["2"].reason
    assert peak(run, cluster) <= 3.4 * FULL
    assert run.states == {"1": "completed", "2": "completed"}
    assert [d.walltime for _, d in run.decisions if isinstance(d, SetTimeLimit)] == [pytest.approx(125)]


def test_the_reason_of_a_delay_stands_at_the_job() -> None:
    from building import plugged

    from headway.events import JobSubmitted
    from headway.scheduler import Scheduler

    cluster = flat()
    scheduler = Scheduler(cluster, plugged(Fcfs(), cap(watts=50, slow=False)))
    scheduler.step(0, [JobSubmitted(0, traced("1", 1, 9).job), JobSubmitted(0, traced("2", 1, 9).job)])
    assert "power cap of pool 'pool': 40 W are drawn of 50 W" in scheduler.state.jobs["2"].veto


def test_a_delayed_job_is_not_overtaken_unless_that_is_wished_for() -> None:
    jobs = [traced("1", 2, 100), traced("wide", 4, 100), traced("narrow", 1, 100)]
    kept = emulate(flat(), jobs, Greedy(), cap(watts=4 * FULL, slow=False))
    assert kept.starts == {"1": 0, "wide": 100, "narrow": 200}
    passed = emulate(flat(), jobs, Greedy(), cap(watts=4 * FULL, slow=False, overtake=True))
    assert passed.starts["narrow"] == 0


def test_a_job_that_no_cap_could_hold_is_refused_and_passed_by() -> None:
    jobs = [traced("huge", 8, 100), traced("1", 1, 100)]
    run = emulate(flat(), jobs, Greedy(), cap(watts=4 * FULL, slow=False))
    assert run.starts == {"huge": None, "1": 0}
    assert run.states["huge"] == "pending"


def test_the_idle_power_of_the_nodes_counts() -> None:
    cluster = with_energy(node_cluster(*alike(2, 4)), PRESENT)
    idle = 2 * (119.6 + 4 * 0.8)
    jobs = [traced("1", 4, 100), traced("2", 4, 100)]
    run = emulate(cluster, jobs, Fcfs(), cap(watts=idle + 5 * 4.0, slow=False))
    assert run.starts == {"1": 0, "2": 100}


def test_each_pool_may_have_its_own() -> None:
    from headway.model import PoolDescription

    cluster = ClusterDescription("two", (PoolDescription("a", 4), PoolDescription("b", 4)))
    jobs = [traced("1", 2, 100, pool="a"), traced("2", 2, 100, pool="b")]
    run = emulate(with_energy(cluster, PAPER), jobs, Fcfs(), cap(watts=900, pools={"a": 30}, slow=False))
    assert run.starts == {"1": None, "2": 0}


def test_a_pool_that_is_not_there_is_refused_by_name() -> None:
    run = emulate(flat(), [traced("1", 2, 100)], Fcfs(), cap(pools={"gpu": 30}))
    assert any("no pool is called 'gpu'" in problem for problem in run.problems)


# ---------------------------------------------------------------------- windows and prices

HOUR = 3600.0
#: Time 0 of the tests' clock is midnight of a Thursday.
WINDOW = {"from": "08:00", "to": "20:00", "watts": 2 * FULL}


def test_in_a_window_of_the_day_less_is_allowed_and_after_it_more() -> None:
    jobs = [traced("night", 4, HOUR, submit=7 * HOUR), traced("day", 4, HOUR, submit=9 * HOUR)]
    run = emulate(flat(), jobs, Fcfs(), cap(windows=[WINDOW], slow=False, slow_running=False))
    assert run.starts == {"night": 7 * HOUR, "day": 20 * HOUR}


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    window = {"from": "22:00", "to": "06:00", "days": ["thu"], "watts": 1}
    jobs = [traced("a", 1, 60, submit=1 * HOUR), traced("b", 1, 60, submit=25 * HOUR)]
    run = emulate(flat(), jobs, Fcfs(), cap(windows=[window], slow=False))
    assert run.starts == {"a": HOUR, "b": 30 * HOUR}


def test_when_the_cap_falls_running_jobs_are_slowed_and_later_restored() -> None:
    cluster = flat()
    job = traced("1", 4, 40 * HOUR, submit=7 * HOUR)
    run = emulate(cluster, [job], Fcfs(), cap(windows=[WINDOW], watts=900))
    told = [(time, d.frequency) for time, d in run.decisions if isinstance(d, SetFrequency)]
    assert told[0] == (8 * HOUR, pytest.approx(2.1e9))
    assert told[1] == (20 * HOUR, pytest.approx(3.0e9))
    assert run.states == {"1": "completed"}
    use = energy_use(run_result(run, cluster))
    assert use is not None
    assert use.power.at([9 * HOUR])[0] == pytest.approx(4 * SLOW)


def test_the_youngest_is_slowed_first() -> None:
    jobs = [traced("old", 2, 20 * HOUR, submit=6 * HOUR), traced("young", 2, 20 * HOUR, submit=7 * HOUR)]
    window = {**WINDOW, "watts": 3.2 * FULL}
    run = emulate(flat(), jobs, Fcfs(), cap(windows=[window], watts=900))
    first = next(d for _, d in run.decisions if isinstance(d, SetFrequency))
    assert (first.job_id, first.frequency) == ("young", pytest.approx(2.4e9))


def test_what_cannot_be_saved_is_drawn_and_counted() -> None:
    plugin = cap(windows=[{**WINDOW, "watts": 10}], watts=900)
    run = emulate(flat(), [traced("1", 4, 4 * HOUR, submit=7 * HOUR)], Fcfs(), plugin)
    assert run.states == {"1": "completed"}
    figures = plugin.register_metrics()["power-cap"](None)
    assert figures["seconds_above_cap"] == pytest.approx(3 * HOUR / 0.7)
    assert figures["most_watts_above_cap"] == pytest.approx(4 * SLOW - 10)


def test_a_high_price_lowers_the_cap(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "time,price\n1970-01-01T00:00,0.10\n1970-01-01T08:00,0.45\n1970-01-01T10:00+00:00,0.2\n"
    )
    options = {"file": prices, "caps": [{"above": 0.3, "watts": 50}]}
    jobs = [traced("1", 2, 60, submit=8 * HOUR)]
    run = emulate(flat(), jobs, Fcfs(), cap(prices=options, slow=False))
    assert run.starts == {"1": 10 * HOUR}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("when,price\n", "line 1: expected the columns time and price"),
        ("time,price\n0,cheap\n", "line 2: expected a price, found 'cheap'"),
        ("time,price\nsoon,1\n", "line 2: expected a time (ISO 8601, or seconds), found 'soon'"),
        ("time,price\n5,1\n5,2\n", "line 3: expected times that rise"),
        ("time,price\n", "expected prices, found none"),
    ],
)
def test_wrong_prices_are_named(tmp_path: Path, text: str, said: str) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(text)
    with pytest.raises(UserError) as error:
        cap(prices={"file": prices, "caps": [{"above": 1, "watts": 1}]})
    assert said in str(error.value)


def test_prices_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        cap(prices={"file": tmp_path / "none.csv", "caps": [{"above": 1, "watts": 1}]})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"watts": 0},
        {"windows": [{"from": "8", "to": "9:00", "watts": 5}]},
        {"windows": [{"from": "08:00", "to": "09:00", "watts": 5, "days": ["monday"]}]},
        {"watts": 5, "timezone": "Mars/Olympus"},
        {"prices": {"file": "x.csv", "caps": []}},
    ],
)
def test_wrong_caps_are_refused(options) -> None:
    with pytest.raises(pydantic.ValidationError):
        PowerCap.Options(**options)


def test_nodes_are_woken_only_as_far_as_the_cap_allows() -> None:
    cluster = with_energy(node_cluster(*alike(4, 4)), PRESENT)
    one_idle = 119.6 + 4 * 0.8
    down = PowerDownIdle(PowerDownIdle.Options(idle=50, stay=0, margin=0))
    jobs = [traced("1", 4, 2000), traced("2", 12, 100, submit=500)]
    limit = one_idle + 4 * 4 + 3 * 15 + 400
    run = emulate(cluster, jobs, Fcfs(), down, cap(pools={"pool": limit}, slow=False))
    woken = [d.nodes for time, d in run.decisions if isinstance(d, PowerUp) and time == 500]
    assert woken == [("n1",)]


@st.composite
def workloads(draw):
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 12))):
        submit += draw(st.sampled_from([0, 5, 40, 300]))
        jobs.append(traced(f"j{at}", draw(st.integers(1, 6)), draw(st.integers(1, 300)), submit))
    return jobs


@settings(max_examples=80, deadline=None)
@given(
    workloads(), st.sampled_from([Fcfs, Easy, Greedy]), st.booleans(), st.booleans(), st.sampled_from([0, 7])
)
def test_the_cap_is_never_exceeded_and_every_job_that_can_run_does(
    jobs, policy, slow, overtake, latency
) -> None:
    from headway_adapters.emulated import Faults

    cluster = with_energy(node_cluster(*alike(4, 2)), PAPER)
    run = emulate(
        cluster,
        jobs,
        policy(),
        cap(watts=6 * FULL, slow=slow, overtake=overtake),
        faults=Faults(latency=latency),
    )
    assert not run.problems
    assert peak(run, cluster) <= 6 * FULL * (1 + 1e-9)
    assert set(run.states.values()) == {"completed"}
