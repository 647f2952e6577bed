"""power-cap: a pool draws no more than it may."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import msgspec
import pydantic
import pytest
from building import alike, described, emulate, node_cluster, plugged, traced
from energy_building import PAPER, PRESENT, run_result
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.config import parse_config
from headway.daemon.replay import replay
from headway.decisions import PowerUp, SetFrequency, SetTimeLimit, Start
from headway.emulation import emulate as whole_run
from headway.energy.profiles import with_energy
from headway.errors import UserError
from headway.journal import Journal
from headway.metrics.energy import energy_use
from headway.model import ClusterDescription, NodeDescription, PoolDescription, Reservation
from headway.plugins import Catalogue, PluginConfig, make_plugin
from headway.scheduler import Scheduler
from headway_adapters.emulated import EmulatedAdapter, Faults
from headway_plugins.energy.power_cap import PowerCap
from headway_plugins.energy.power_down import PowerDownIdle
from headway_plugins.policies.conservative import Conservative
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


@pytest.mark.parametrize("policy", [Easy, Conservative])
@pytest.mark.parametrize(
    "machine", [ClusterDescription.flat(8), node_cluster(*alike(2, 4))], ids=["flat", "nodes"]
)
def test_the_first_in_the_queue_is_slowed_though_the_next_is_booked_behind_it(policy, machine) -> None:
    jobs = [traced("1", 6, 100), traced("2", 6, 100), traced("3", 6, 100)]
    run = emulate(with_energy(machine, PAPER), jobs, policy(), cap(watts=4 * FULL))
    # 0.8 * (1.1/1.3)^2 = 0.573: 6 processors draw what 3.4 draw at full speed.
    assert run.starts == {"1": 0, "2": 125, "3": 250}
    assert run.states == {"1": "completed", "2": "completed", "3": "completed"}


def test_one_that_would_run_into_a_reservation_when_slowed_stops_nobody() -> None:
    kept = Reservation("maintenance", 110, 200, pool="pool", processors=8)
    machine = msgspec.structs.replace(flat(), reservations=(kept,))
    plugin = cap(watts=4 * FULL)
    scheduler = Scheduler(
        machine, plugged(Greedy(), plugin), capabilities=EmulatedAdapter.capable_of(machine)
    )
    jobs = (described("1", 6, 100), described("2", 2, 50))
    decisions = scheduler.step(0, [ev.JobSubmitted(0, job) for job in jobs])
    assert [d.job_id for d in decisions if isinstance(d, Start)] == ["2"]
    assert "would delay what is reserved for other jobs" in scheduler.state.jobs["1"].veto


def test_the_reason_of_a_delay_stands_at_the_job() -> None:
    cluster = flat()
    scheduler = Scheduler(cluster, plugged(Fcfs(), cap(watts=50, slow=False)))
    scheduler.step(0, [ev.JobSubmitted(0, traced("1", 1, 9).job), ev.JobSubmitted(0, traced("2", 1, 9).job)])
    assert "power cap of pool 'pool': 40 W of 50 W are drawn" in scheduler.state.jobs["2"].veto


def test_a_delayed_job_is_not_overtaken_unless_that_is_wished_for() -> None:
    jobs = [traced("1", 2, 100), traced("wide", 4, 100), traced("narrow", 1, 100)]
    kept = emulate(flat(), jobs, Greedy(), cap(watts=4 * FULL, slow=False))
    assert kept.starts == {"1": 0, "wide": 100, "narrow": 200}
    passed = emulate(flat(), jobs, Greedy(), cap(watts=4 * FULL, slow=False, overtake=True))
    assert passed.starts["narrow"] == 0


def test_a_job_that_no_cap_could_hold_is_refused_and_passed_by() -> None:
    jobs = [traced("huge", 8, 100), traced("1", 1, 100)]
    run = emulate(flat(), jobs, Greedy(), cap(watts=2 * FULL, slow=False))
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
    with pytest.raises(UserError, match=r"no pool is called 'gpu'\. Known: pool\."):
        emulate(flat(), [traced("1", 2, 100)], Fcfs(), cap(pools={"gpu": 30}))


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


def test_a_replay_has_the_prices_of_the_run_whatever_became_of_their_file(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("time,price\n0,0.1\n28800,0.45\n36000,0.2\n")
    options = {"prices": {"file": str(prices), "caps": [{"above": 0.3, "watts": 50}]}, "slow": False}
    text = json.dumps({"mode": "dry-run", "plugins": ["fcfs", {"power-cap": options}]})
    catalogue = Catalogue()
    jobs = [traced("1", 2, 60, submit=8 * HOUR)]
    with Journal.open(str(tmp_path / "run.db")) as journal:
        whole_run(
            flat(), jobs, parse_config(text, "test").plugin_configs(), catalogue, label="x",
            journal=journal, config_text=text,
        )  # fmt: skip
        prices.unlink()
        found = replay(journal, catalogue)
        assert (found.differences, found.decisions) == ([], 1)


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


def test_prices_as_excel_writes_them(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_bytes(b"\xef\xbb\xbftime,price\r\n2026-01-01,0.25\r\n")
    cap(prices={"file": tmp_path / "prices.csv", "caps": [{"above": 1, "watts": 1}]})


def test_prices_are_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    prices = {"file": "prices.csv", "caps": [{"above": 1, "watts": 1}]}
    config = PluginConfig("power-cap", {"prices": prices}, "site.yaml: plugins[0]", tmp_path)
    with pytest.raises(UserError, match=f"{tmp_path}/prices.csv cannot be read"):
        make_plugin(PowerCap, config)
    (tmp_path / "prices.csv").write_text("time,price\n2026-01-01,0.25\n")
    make_plugin(PowerCap, config)


def test_a_time_without_quotes_is_named_as_it_was_meant() -> None:
    windows = [{"from": 17 * 60 + 30, "to": "20:00", "watts": 5}]
    with pytest.raises(UserError) as error:
        make_plugin(PowerCap, PluginConfig("power-cap", {"windows": windows}, "site.yaml: plugins[0]"))
    assert str(error.value) == (
        "site.yaml: plugins[0]: power-cap: windows[0].from: expected a time of day in quotes, such as "
        '"17:30", found the number 1050'
    )


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
        {"windows": [{"from": "08:00", "to": "09:00", "watts": 5, "days": []}]},
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


def test_if_nothing_else_is_in_the_way_they_are_woken_one_by_one() -> None:
    cluster = with_energy(node_cluster(*alike(4, 4)), PRESENT)
    down = PowerDownIdle(PowerDownIdle.Options(idle=50, stay=5000, margin=0))
    # Three idle nodes and one that wakes draw 768 W, all four with the job on them 555 W.
    jobs = [traced("0", 1, 1), traced("1", 16, 100, submit=500)]
    run = emulate(cluster, jobs, Fcfs(), down, cap(watts=600, slow=False))
    woken = [(time, d.nodes) for time, d in run.decisions if isinstance(d, PowerUp)]
    assert woken == [(500, ("n0",)), (530, ("n1",)), (560, ("n2",)), (590, ("n3",))]
    assert run.starts["1"] == 620


def test_before_that_they_wait_for_running_jobs_to_end() -> None:
    cluster = with_energy(node_cluster(*alike(4, 4)), PRESENT)
    down = PowerDownIdle(PowerDownIdle.Options(idle=50, stay=5000, margin=0))
    jobs = [traced("1", 12, 1000), traced("2", 16, 100, submit=500)]
    run = emulate(cluster, jobs, Fcfs(), down, cap(watts=600, slow=False, slow_running=False))
    assert run.starts == {"1": 0, "2": 1030}


@pytest.mark.parametrize("job", [traced("2", 13, 100, submit=500), traced("2", 4, 100, submit=500, nodes=4)])
def test_a_job_whose_nodes_alone_draw_more_awake_is_refused(job) -> None:
    cluster = with_energy(node_cluster(*alike(4, 4)), PRESENT)
    down = PowerDownIdle(PowerDownIdle.Options(idle=50, margin=0))
    # Asleep they draw 60 W, on and idle 491 W.
    run = emulate(cluster, [job, traced("3", 4, 100, submit=501)], Fcfs(), down, cap(watts=490))
    assert run.starts["2"] is None
    assert run.states == {"2": "pending", "3": "completed"}


# ---------------------------------------------------------------------- what waits, and what goes on


def test_a_job_that_waits_for_the_night_does_not_stop_the_day() -> None:
    jobs = [traced("big", 8, HOUR, submit=9 * HOUR), traced("small", 1, HOUR, submit=10 * HOUR)]
    run = emulate(flat(), jobs, Fcfs(), cap(windows=[WINDOW], watts=900, slow=False))
    assert run.starts == {"big": 20 * HOUR, "small": 10 * HOUR}


def test_one_that_fits_only_slowed_does_not_stop_those_that_need_not_be() -> None:
    jobs = [
        traced("1", 2, 100),
        traced("big", 8, 100),
        traced("3", 2, 100, submit=5),
        traced("4", 2, 100, submit=5),
    ]
    run = emulate(flat(), jobs, Fcfs(), cap(watts=5 * FULL, slow=False))
    assert run.starts == {"1": 0, "big": None, "3": 100, "4": 100}


@pytest.mark.parametrize("watts", [200, 300])
@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
@pytest.mark.parametrize(
    "cluster", [flat(), with_energy(node_cluster(*alike(4, 2)), PAPER)], ids=["flat", "nodes"]
)
def test_one_that_must_not_be_slowed_is_told_what_it_needs_and_holds_up_nobody(
    watts, policy, cluster
) -> None:
    jobs = [traced("big", 8, 100), traced("2", 1, 10), traced("3", 4, 10), traced("later", 4, 10, submit=900)]
    run = emulate(cluster, jobs, policy(), cap(watts=watts, slow=False))
    assert run.starts == {"big": None, "2": 0, "3": 0, "later": 900}
    big = run.scheduler.state.jobs["big"]
    said = (
        f"power cap of pool 'pool': alone with its idle nodes it needs 320 W of {watts} W, and the cap is "
        f"never above {watts} W; at a lower frequency the job would fit, which slow: false forbids"
    )
    assert big.hold_reason == said
    assert big.veto == said


def test_one_that_the_night_has_the_power_for_is_not_told_never() -> None:
    scheduler = Scheduler(flat(), plugged(Fcfs(), cap(windows=[WINDOW], watts=900, slow=False)))
    nine = 9 * HOUR
    scheduler.step(nine, [ev.JobSubmitted(nine, traced("big", 8, HOUR, submit=nine).job)])
    said = str(scheduler.state.jobs["big"].barrier)
    assert "the job needs at least 320 W" in said
    assert "never" not in said


@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
def test_one_that_the_hour_has_no_power_for_stops_nobody_though_it_does_not_fit_beside_who_runs(
    policy,
) -> None:
    night, day = (
        {"from": "00:00", "to": "08:00", "watts": 2 * FULL},
        {"from": "08:00", "to": "00:00", "watts": 8 * FULL},
    )
    jobs = [traced("runs", 1, HOUR), traced("whole", 8, HOUR), traced("small", 1, 10 * HOUR)]
    run = emulate(flat(), jobs, policy(), cap(windows=[night, day], slow=False))
    assert run.starts == {"runs": 0, "whole": 10 * HOUR, "small": 0}


def test_one_that_idle_nodes_leave_no_power_for_is_tried_again_when_they_sleep() -> None:
    cluster = with_energy(node_cluster(*alike(4, 4)), PRESENT)
    down = PowerDownIdle(PowerDownIdle.Options(idle=50, margin=0))
    # Four idle nodes draw 491 W, three of them asleep and one busy 184 W.
    run = emulate(cluster, [traced("1", 4, 100)], Fcfs(), down, cap(watts=495, slow=False))
    assert run.starts["1"] == 600 + 30


def test_the_week_holds_a_job_that_the_day_does_not() -> None:
    day, weekend = {**WINDOW, "from": "00:00", "to": "00:00"}, {"days": ["sat"], "watts": 5 * FULL}
    windows = [{**day, "days": ["sun", "mon", "tue", "wed", "thu", "fri"]}, {**day, **weekend}]
    jobs = [traced("big", 4, HOUR), traced("huge", 6, HOUR)]
    run = emulate(flat(), jobs, Fcfs(), cap(windows=windows, slow=False))
    # Time 0 is a Thursday.
    assert run.starts == {"big": 48 * HOUR, "huge": None}


def test_a_run_with_windows_ends_though_a_job_waits_for_ever() -> None:
    cluster = with_energy(node_cluster(*alike(2, 4)), PRESENT)
    never = [traced("refused", 8, 60), traced("no such node", 1, 60, features=("gpu",))]
    run = emulate(cluster, never, Fcfs(), cap(windows=[WINDOW], watts=250, slow=False), max_rounds=2_000)
    assert run.starts == {"refused": None, "no such node": None}


def test_slowed_jobs_get_their_frequency_back_though_others_wait_for_processors() -> None:
    jobs = [
        traced("1", 4, 60 * HOUR, submit=7 * HOUR),
        traced("wide", 8, HOUR, submit=7 * HOUR),
    ]
    run = emulate(flat(), jobs, Fcfs(), cap(windows=[WINDOW], watts=900))
    told = [(time, d.frequency) for time, d in run.decisions if isinstance(d, SetFrequency)]
    assert told[:2] == [(8 * HOUR, pytest.approx(2.1e9)), (20 * HOUR, pytest.approx(3.0e9))]


def test_starts_go_before_giving_frequencies_back() -> None:
    # At 20:00 there is room for one of the two: for the new job or for the old one's frequency.
    windows = [{**WINDOW, "watts": 4 * SLOW}, {"from": "20:00", "to": "07:00", "watts": 4 * SLOW + FULL}]
    jobs = [traced("old", 4, 30 * HOUR, submit=7 * HOUR), traced("new", 1, HOUR, submit=19 * HOUR)]
    run = emulate(flat(), jobs, Fcfs(), cap(windows=windows, slow=False))
    assert run.starts["new"] == 20 * HOUR


def test_a_slowed_job_gets_time_for_what_is_left_of_it_and_once_only() -> None:
    # Slowed from 8:00 to 20:00 on two days: 24 hours at 0.7 of the speed do the work of 16.8.
    job = traced("1", 4, 60 * HOUR, submit=7 * HOUR)
    run = emulate(flat(), [job], Fcfs(), cap(windows=[WINDOW], watts=900))
    assert run.states == {"1": "completed"}
    limits = [(time / HOUR, d.walltime / HOUR) for time, d in run.decisions if isinstance(d, SetTimeLimit)]
    first = 1 + 59 / 0.7
    # At 20:00 it had run for 13 h and done 9.4 of them; 50.6 h of its own time were left, 38.6 at 8:00.
    assert limits[0] == (8, pytest.approx(first))
    assert len(limits) == 1, "the first limit holds what the second day needs"
    assert run.results["1"].end_time == pytest.approx((7 + 60 + 24 * 0.3 + 12 * 0.3) * HOUR, abs=HOUR)


def test_a_limit_that_its_user_changes_is_what_a_slowed_job_is_entitled_to() -> None:
    cluster = flat()
    scheduler = Scheduler(
        cluster, plugged(Fcfs(), cap(windows=[WINDOW], watts=900)),
        capabilities=EmulatedAdapter.capable_of(cluster),
    )  # fmt: skip
    step = scheduler.step
    step(7 * HOUR, [ev.JobSubmitted(7 * HOUR, described("1", 4, 10 * HOUR, 7 * HOUR))])
    step(7 * HOUR, [ev.JobStarted(7 * HOUR, "1", ())])
    frequency, limit = step(8 * HOUR, [])
    assert limit.walltime == pytest.approx(HOUR + 9 * HOUR / 0.7)
    step(8 * HOUR, [ev.JobFrequencyChanged(8 * HOUR, "1", frequency.frequency)])
    step(8 * HOUR, [ev.JobChanged(8 * HOUR, described("1", 4, limit.walltime, 7 * HOUR))])
    step(9 * HOUR, [ev.JobChanged(9 * HOUR, described("1", 4, 2 * limit.walltime, 7 * HOUR))])
    (back,) = step(20 * HOUR, [])
    step(20 * HOUR, [ev.JobFrequencyChanged(20 * HOUR, "1", back.frequency)])
    slow, again = step(32 * HOUR, [])
    assert isinstance(slow, SetFrequency)
    # 25 h of its new limit are over.
    assert again.walltime == pytest.approx(25 * HOUR + (2 * limit.walltime - 25 * HOUR) / 0.7)


def test_an_order_on_its_way_is_not_given_again() -> None:
    job = traced("1", 4, 20 * HOUR, submit=7 * HOUR)
    ticks = [traced(f"t{at}", 1, 1, submit=8 * HOUR + at) for at in range(5)]
    run = emulate(
        flat(), [job, *ticks], Greedy(), cap(windows=[WINDOW], watts=900), faults=Faults(latency=60)
    )
    assert [time for time, d in run.decisions if isinstance(d, SetFrequency)][:1] == [8 * HOUR]
    assert sum(isinstance(d, SetFrequency) for time, d in run.decisions if time < 9 * HOUR) == 1


def test_a_frequency_that_cannot_be_set_is_tried_again_after_a_minute() -> None:
    job = traced("1", 4, 20 * HOUR, submit=7 * HOUR)
    plugin = cap(windows=[WINDOW], watts=900)
    run = emulate(flat(), [job], Fcfs(), plugin, faults=Faults(failure_rate=0.7), seed=2)
    times = [time for time, d in run.decisions if isinstance(d, SetFrequency) and time < 9 * HOUR]
    assert len(times) > 1
    assert all(later - earlier >= 60 for earlier, later in pairwise(times))


def test_a_start_that_dvfs_slowed_gets_the_limit_for_the_level_of_the_cap() -> None:
    from headway_plugins.energy.dvfs import Dvfs

    # dvfs wants 2.7 GHz for both, the cap has only room for 2.1 GHz for the second.
    watts = FULL * 0.9 * (1.2 / 1.3) ** 2 + SLOW + 0.1
    cluster = flat()
    jobs = [traced("1", 1, 100), traced("2", 1, 100)]
    run = emulate(cluster, jobs, Fcfs(), Dvfs(Dvfs.Options(slack=1.12)), cap(watts=watts))
    assert starts(run)["2"].frequency == pytest.approx(2.1e9)
    assert run.states == {"1": "completed", "2": "completed"}
    limits = [d.walltime for _, d in run.decisions if isinstance(d, SetTimeLimit) and d.job_id == "2"]
    assert limits == [pytest.approx(100 / 0.7)]


def test_a_job_that_the_cap_delays_keeps_its_limit() -> None:
    from headway_plugins.energy.dvfs import Dvfs

    jobs = [traced("1", 2, 100), traced("2", 2, 100)]
    run = emulate(flat(), jobs, Fcfs(), Dvfs(Dvfs.Options(slack=2)), cap(watts=2.5 * SLOW))
    assert run.starts["2"] > 0
    times = [time for time, d in run.decisions if isinstance(d, SetTimeLimit) and d.job_id == "2"]
    assert times == [run.starts["2"]]


def test_a_delayed_job_counts_once() -> None:
    jobs = [traced("1", 2, 100), traced("2", 2, 100), *(traced(f"t{at}", 1, 9, submit=at) for at in range(9))]
    plugin = cap(watts=2 * FULL, slow=False)
    emulate(flat(), jobs, Fcfs(), plugin)
    assert plugin.register_metrics()["power-cap"](None)["starts_delayed"] == 10


def test_nodes_that_the_cap_kept_asleep_are_woken_when_there_is_power() -> None:
    cluster = with_energy(node_cluster(*alike(4, 4)), PRESENT)
    down = PowerDownIdle(PowerDownIdle.Options(idle=50, stay=5000, margin=0))
    jobs = [traced("1", 4, 2000), traced("2", 4, 100, submit=500), traced("3", 8, 100, submit=501)]
    # A waking node draws 400 W: no two can at once.
    run = emulate(cluster, jobs, Fcfs(), down, cap(watts=700, slow=False))
    assert run.states == {"1": "completed", "2": "completed", "3": "completed"}
    # On the second node, which job 2 has left, and on the third, which was woken after it.
    assert run.results["3"].placement == (("n1", 4), ("n2", 4)) and run.starts["3"] < 1000


def test_pools_and_nodes_that_come_later_are_counted() -> None:
    cluster = with_energy(node_cluster(*alike(1, 4)), PRESENT)
    plugin = cap(watts=400, slow=False)
    scheduler = Scheduler(cluster, plugged(Fcfs(), plugin))
    pool = ev.PoolChanged(1, PoolDescription("late"))
    node = ev.NodeUp(1, NodeDescription("late1", 4, pools=("late", "pool")))
    scheduler.step(1, [pool, node])
    meter = plugin._meter
    assert meter.watts == {"pool": pytest.approx(2 * 122.8), "late": pytest.approx(122.8)}
    scheduler.step(2, [ev.JobSubmitted(2, described("1", 4, 60, 2, pool="late"))])
    assert meter.watts["late"] == meter.watts["pool"] - 122.8 == pytest.approx(122.8 + 4 * (8.68 - 0.8), 0.2)
    moved = ev.NodeUp(3, NodeDescription("n0", 4, pools=("late",)))
    scheduler.step(3, [moved])
    assert meter.base == {"pool": pytest.approx(122.8), "late": pytest.approx(2 * 122.8)}
    assert not scheduler.problems


def test_the_hour_that_comes_twice_in_autumn() -> None:
    from headway_plugins.energy.cap_over_time import CapOverTime, Window

    window = Window.model_validate({"from": "01:00", "to": "02:30", "watts": 5})
    over_time = CapOverTime([window], None, "Europe/Berlin")
    # On 2025-10-26, 03:00 summer time (01:00 UTC) is 02:00 again.
    midnight = 1761429600.0
    found = [over_time.at(midnight + hour * HOUR) for hour in (0.5, 1.5, 2.75, 3.25, 3.75)]
    assert found == [float("inf"), 5, float("inf"), 5, float("inf")]
    assert over_time.next_change(midnight + 3.25 * HOUR) == midnight + 3.5 * HOUR


def test_after_a_restart_running_jobs_are_not_slowed_and_stretched_again() -> None:
    cluster = flat()
    able = EmulatedAdapter.capable_of(cluster)

    def scheduler(**more) -> Scheduler:
        return Scheduler(
            cluster, plugged(Fcfs(), cap(windows=[WINDOW], watts=900)), capabilities=able, **more
        )

    before = scheduler()
    seven, eight = 7 * HOUR, 8 * HOUR
    before.step(seven, [ev.JobSubmitted(seven, described("1", 4, 30 * HOUR, seven))])
    before.step(seven + 1, [ev.JobStarted(seven, "1", ())])
    slow, limit = before.step(eight, [])
    longer = described("1", 4, limit.walltime, seven)
    told = [ev.JobFrequencyChanged(eight + 1, "1", slow.frequency), ev.JobChanged(eight + 1, longer)]
    before.step(eight + 1, told)
    saved = json.loads(json.dumps(before.checkpoint()))

    after = scheduler(saved=saved)
    # A batch system says nothing of frequencies.
    ten = 10 * HOUR
    assert after.step(ten, [ev.JobSubmitted(seven, longer), ev.JobStarted(seven, "1", ())]) == []
    assert after.state.jobs["1"].frequency == slow.frequency
    (back,) = after.step(20 * HOUR, [])
    assert (back.job_id, back.frequency) == ("1", pytest.approx(3.0e9))
    after.step(20 * HOUR + 1, [ev.JobFrequencyChanged(20 * HOUR + 1, "1", back.frequency)])
    # The next morning its limit has room for what is left.
    assert [type(d) for d in after.step(32 * HOUR, [])] == [SetFrequency]


def test_a_job_that_began_anew_while_nobody_looked_is_not_taken_for_slowed() -> None:
    cluster = flat()
    saved = {
        "powercap": {"slowed": {"1": None}, "times": {"1": [HOUR, 5 * HOUR, 1.4, 9 * HOUR]}},
        "": {"frequencies": {"1": [7 * HOUR, 2.1e9]}},
    }
    plugin = cap(windows=[WINDOW], watts=900)
    scheduler = Scheduler(
        cluster, plugged(Fcfs(), plugin), capabilities=EmulatedAdapter.capable_of(cluster), saved=saved
    )
    job = described("1", 4, 10 * HOUR, 7 * HOUR)
    nine, ten = 9 * HOUR, 10 * HOUR
    slow, limit = scheduler.step(ten, [ev.JobSubmitted(nine, job), ev.JobStarted(nine, "1", ())])
    assert isinstance(slow, SetFrequency)
    assert limit.walltime == pytest.approx(HOUR + 9 * HOUR / 0.7)


@st.composite
def workloads(draw):
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 12))):
        submit += draw(st.sampled_from([0, 5, 40, 300]))
        jobs.append(traced(f"j{at}", draw(st.integers(1, 6)), draw(st.integers(1, 300)), submit))
    return jobs


@settings(max_examples=80, deadline=None)
@given(
    workloads(),
    st.sampled_from([Fcfs, Easy, Greedy, Conservative]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 7]),
)
def test_the_cap_is_never_exceeded_and_every_job_that_can_run_does(
    jobs, policy, slow, overtake, latency
) -> None:
    cluster = with_energy(node_cluster(*alike(4, 2)), PAPER)
    # Jobs of 6 processors: at full speed, or only if they are slowed.
    watts = (4 if slow else 6) * FULL
    run = emulate(
        cluster,
        jobs,
        policy(),
        cap(watts=watts, slow=slow, overtake=overtake),
        faults=Faults(latency=latency),
    )
    assert not run.problems
    assert peak(run, cluster) <= watts * (1 + 1e-9)
    assert set(run.states.values()) == {"completed"}


@pytest.mark.parametrize("pools", ["aaa", "aab", "aba"])
def test_no_job_takes_the_power_that_an_earlier_one_waits_for_whichever_of_the_pools_it_is_of(
    pools: str,
) -> None:
    names = tuple(dict.fromkeys("a" + pools))
    machine = node_cluster(*alike(8, 1, pools=names), pools=names)
    sizes = [(1, 100), (3, 100), (1, 1000)]
    jobs = [
        traced(str(at), size, length, pool=pool)
        for at, ((size, length), pool) in enumerate(zip(sizes, pools, strict=True))
    ]
    run = emulate(with_energy(machine, PAPER), jobs, Fcfs(), cap(watts=3 * FULL, slow=False))
    assert run.problems == []
    assert run.starts == {"0": 0, "1": 100, "2": 200}


def test_where_it_has_other_nodes_it_does_not_wait_for_that() -> None:
    nodes = (NodeDescription(f"n{at}", 1, pools=("a",) if at < 4 else ("b",)) for at in range(7))
    both = NodeDescription("n7", 1, pools=("a", "b"))
    machine = node_cluster(*nodes, both, pools=("a", "b"))
    jobs = [traced("0", 1, 100, pool="a"), traced("1", 3, 100, pool="a"), traced("2", 1, 1000, pool="b")]
    run = emulate(with_energy(machine, PAPER), jobs, Easy(), cap(watts=3 * FULL, slow=False))
    assert run.starts == {"0": 0, "1": 100, "2": 0}
