"""Jobs follow calendars, load, data and prices between the sites of an emulated federation."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from building import Run, emulate, federated, plugged, traced
from building import traced_at_home as job
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import decisions as d
from headway import events as ev
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.inquiry.sentences import explain
from headway.model import ClusterDescription, Dataset, Link, PoolDescription, Site, Store
from headway.scheduler import Scheduler, plain_clock
from headway.state import State
from headway.workload.jobs import TraceJob
from headway_adapters.federation.emulated import EmulatedFederation
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.sites.follow import Follow

HOUR, DAY = 3600.0, 86400.0
#: A Monday, 0:00 UTC.
MONDAY = 4 * DAY


def follow(**options: Any) -> Follow:
    return Follow(Follow.Options(**{"movable": "all", **options}))


def daily(name: str, begin: float, end: float, **more: Any) -> Site:
    """A site that is open every day between these hours, UTC."""
    spans = [(int(day * DAY + begin * HOUR), int(day * DAY + end * HOUR)) for day in range(7)]
    return Site(name, calendar=tuple(spans), **more)


def routes(run: Run) -> list[tuple[float, str, str]]:
    return [(time, one.job_id, one.pool) for time, one in run.decisions if isinstance(one, d.Route)]


def reasons(run: Run, kind: type[d.Decision] = d.Route) -> list[str]:
    return [one.reason for _, one in run.decisions if isinstance(one, kind)]


A, B = Site("a"), Site("b")


# ---------------------------------------------------------------------- load


def test_a_job_goes_where_it_can_start_sooner():
    jobs = [job("a:1", 4, 2000), job("a:2", 4, 1000, 10)]
    run = emulate(federated(A, B), jobs, follow(by=["load"]), Fcfs())
    assert routes(run) == [(10.0, "a:2", "b:q")]
    assert run.starts["a:2"] == 10.0 and run.results["a:2"].pool == "b:q"
    assert reasons(run) == ["b is better now: it is expected to start at b now, at a in 33 min 10 s"]


@pytest.mark.parametrize(("gain", "sent"), [(1990, 1), (1991, 0)])
def test_a_job_stays_for_less_than_the_gain(gain: float, sent: int):
    jobs = [job("a:1", 4, 2000), job("a:2", 4, 1000, 10)]
    run = emulate(federated(A, B), jobs, follow(by=["load"], gain=gain), Fcfs())
    assert len(routes(run)) == sent


def test_only_jobs_that_allow_it_move():
    jobs = [job("a:1", 4, 2000), *(
        job(f"a:{at}", 4, 1000, 10, attributes=said)
        for at, said in ((2, None), (3, {"movable": "no"}), (4, {"movable": True}))
    )]  # fmt: skip
    run = emulate(federated(A, B), jobs, follow(by=["load"], movable="asked"), Fcfs())
    assert [name for _, name, _ in routes(run)] == ["a:4"]


def test_jobs_that_are_sent_count_where_they_go():
    # Each takes all of a site; the third is better off where it is.
    jobs = [job("a:1", 4, 2000), *(job(f"a:{at}", 4, 5000, 10) for at in (2, 3, 4))]
    run = emulate(federated(A, B, Site("c")), jobs, follow(by=["load"]), Fcfs())
    assert routes(run)[:2] == [(10.0, "a:2", "b:q"), (10.0, "a:3", "c:q")]
    assert run.results["a:4"].pool == "a:q"


def test_a_job_is_looked_at_again_after_a_while():
    # The job at b ends early, and then b is better. All jobs were looked at when the run began.
    jobs = [job("a:1", 4, 4000), job("b:1", 4, 4000, runtime=100), job("a:2", 4, 100, 10)]
    run = emulate(federated(A, B), jobs, follow(by=["load"], every=300), Fcfs())
    assert routes(run) == [(300.0, "a:2", "b:q")]


def test_no_more_are_on_their_way_than_may_be():
    jobs = [job("a:1", 4, 5000), *(job(f"a:{at}", 1, 100, 10) for at in (2, 3, 4))]
    links = [Link("a", "b", 1.0, latency=50.0)]
    run = emulate(federated(A, B, links=links), jobs, follow(by=["load"], at_a_time=1, every=60), Fcfs())
    times = [time for time, _, _ in routes(run)]
    assert len(times) == 3 and all(after - before >= 50 for before, after in pairwise(times))


class RefusesB:
    @hookimpl
    def admit_job(self, job: Any) -> str | None:
        return "not here" if job.pool.name == "b:q" else None


def test_a_job_that_is_refused_where_it_was_sent_comes_back_once():
    jobs = [job("a:1", 4, 5000), job("a:2", 4, 100, 10)]
    run = emulate(federated(A, B), jobs, follow(by=["load"], most_routes=9, every=1), RefusesB(), Fcfs())
    assert [pool for _, _, pool in routes(run)] == ["b:q", "a:q"]
    assert run.starts["a:2"] == 5000.0


# ---------------------------------------------------------------------- calendars


def test_two_sites_that_follow_each_other_hand_their_jobs_on():
    night, day = daily("a", 0, 8), daily("b", 8, 24)
    jobs = [job("a:1", 4, 6 * HOUR, 7 * HOUR), job("a:2", 4, HOUR, 7 * HOUR)]
    run = emulate(federated(night, day), jobs, follow(by=["calendar"], later="7d"), Fcfs(), epoch=MONDAY)
    assert routes(run) == [(8 * HOUR, "a:2", "b:q")]
    assert run.results["a:2"].pool == "b:q" and run.starts["a:2"] == 8 * HOUR


def test_a_job_goes_where_the_longest_time_is_left():
    here, short, long = daily("a", 0, 8), daily("b", 0, 9), daily("c", 0, 12)
    jobs = [job("a:1", 1, 10 * HOUR, 6 * HOUR)]
    run = emulate(federated(here, short, long), jobs, follow(by=["calendar"]), Fcfs(), epoch=MONDAY)
    assert routes(run) == [(6 * HOUR, "a:1", "c:q")]
    assert reasons(run) == [
        "c is better now: c is open for 6 h 00 min from its start on, "
        "a is open for 2 h 00 min from its start on"
    ]


def test_a_closed_site_keeps_the_jobs_that_do_not_move():
    closed = daily("a", 20, 24)
    jobs = [job("a:1", 1, 60, HOUR), job("a:2", 1, 60, HOUR, attributes={"movable": "yes"})]
    run = emulate(federated(closed, B), jobs, follow(movable="asked"), Fcfs(), epoch=MONDAY)
    assert run.starts == {"a:1": 20 * HOUR, "a:2": HOUR}
    assert run.results["a:1"].pool == "a:q" and run.results["a:2"].pool == "b:q"


# ---------------------------------------------------------------------- prices


def test_jobs_follow_a_price_that_swaps(tmp_path):
    (tmp_path / "a.csv").write_text("time,price\n0,1.0\n10000,3.0\n")
    (tmp_path / "b.csv").write_text("time,price\n0,3.0\n10000,1.0\n")
    options = Follow.Options(
        movable="all", by=["price"], price={"a": tmp_path / "a.csv", "b": tmp_path / "b.csv"}
    )
    plugin = Follow(options)
    jobs = [job("b:1", 1, 100, 50), job("a:1", 1, 100, 20000), job("a:2", 1, 100, 50)]
    run = emulate(federated(A, B), sorted(jobs, key=lambda one: one.job.submit_time), plugin, Fcfs())
    assert routes(run) == [(50.0, "b:1", "a:q"), (20000.0, "a:1", "b:q")]
    assert reasons(run)[0] == "a is better now: a processor-hour of its run costs 1 at a, 3 at b"
    figures = plugin.register_metrics()["follow"](None)
    assert figures["cost"] == pytest.approx(300 / 3600) and figures["routes"] == 2


def test_a_waiting_job_is_looked_at_when_a_price_changes(tmp_path):
    (tmp_path / "b.csv").write_text("time,carbon\n0,300\n5000,100\n")
    options = Follow.Options(movable="all", by=["carbon"], carbon={"a": 200, "b": tmp_path / "b.csv"})
    jobs = [job("a:1", 4, 9000), job("a:2", 4, 100, 1)]
    run = emulate(federated(A, B), jobs, Follow(options), Fcfs())
    assert routes(run) == [(5000.0, "a:2", "b:q")]


def test_no_job_goes_where_it_would_start_much_later():
    jobs = [job("b:1", 4, 8000), job("a:1", 4, 100, 5)]
    cheap = {"by": ["price"], "price": {"a": 2, "b": 1}}
    assert routes(emulate(federated(A, B), jobs, follow(**cheap), Fcfs())) == []
    assert len(routes(emulate(federated(A, B), jobs, follow(**cheap, later="3h"), Fcfs()))) == 1


def test_the_order_of_criteria_decides():
    jobs = [job("a:1", 4, 2000), job("a:2", 4, 1000, 10)]
    price = {"a": 1.0, "b": 2.0}
    for by, sent in ((["load", "price"], 1), (["price", "load"], 0)):
        assert len(routes(emulate(federated(A, B), jobs, follow(by=by, price=price), Fcfs()))) == sent


# ---------------------------------------------------------------------- data


def test_a_job_goes_to_its_data_or_its_data_comes():
    sites = Site("a", store=Store()), Site("b", store=Store())
    link = Link("b", "a", bandwidth=1.0, latency=0.0)
    datasets = Dataset("large", 2000, ("b",)), Dataset("small", 50, ("b",))
    jobs = [
        job("a:1", 1, 10, attributes={"data": "large"}), job("a:2", 1, 10, attributes={"data": "small"}),
        job("a:3", 1, 10, 100, attributes={"data": "small"}),
    ]  # fmt: skip
    plugin = follow(by=["data"])
    run = emulate(federated(*sites, links=[link], datasets=datasets), jobs, plugin, Fcfs())
    assert routes(run) == [(0.0, "a:1", "b:q")]
    assert run.starts == {"a:1": 0.0, "a:2": 50.0, "a:3": 100.0}
    assert reasons(run, d.Copy) == ["job a:2 waits for it"]
    figures = plugin.register_metrics()["follow"](None)
    assert (figures["copies"], figures["bytes_copied"]) == (1, 50)


def test_a_job_is_not_expected_to_start_before_its_data_is_there():
    sites = Site("a", store=Store()), Site("b", store=Store())
    jobs = [job("a:1", 4, 2000), job("a:2", 4, 10, 1, attributes={"data": "d"})]
    for size, sent in ((1800, 0), (1000, 1)):
        cluster = federated(*sites, links=[Link("a", "b", 1.0)], datasets=[Dataset("d", size, ("a",))])
        assert len(routes(emulate(cluster, jobs, follow(by=["load"]), Fcfs()))) == sent


def test_a_job_does_not_go_where_its_data_cannot_come():
    sites = Site("a", store=Store()), B
    jobs = [job("a:1", 4, 5000), job("a:2", 4, 10, 1, attributes={"data": "d"})]
    cluster = federated(*sites, datasets=[Dataset("d", 10, ("a",))])
    run = emulate(cluster, jobs, follow(by=["load"]), Fcfs())
    assert routes(run) == [] and run.starts["a:2"] == 5000.0


# ---------------------------------------------------------------------- running work


def nights() -> ClusterDescription:
    """Three sites whose nights begin at 0:00, 5:00 and 8:00 GMT."""
    return federated(daily("h0", 0, 6), daily("h1", 5, 11), daily("h2", 8, 14), size=1)


@pytest.mark.parametrize("when", ["immediate", "adaptive"])
def test_a_job_rides_the_night_over_three_sites(when):
    # As in the paper when all hosts are free: from 1.5 there, from 6 and from 11 on, to 13.5 with 2 moves.
    jobs = [job("h0:1", 1, 12 * HOUR, 1.5 * HOUR, attributes={"saves": 0})]
    plugin = follow(by=["calendar"], when=when)
    run = emulate(nights(), jobs, plugin, Fcfs(), epoch=MONDAY)
    started = [
        (event.time / HOUR, event.job_id) for event in run.adapter.told if isinstance(event, ev.JobStarted)
    ]
    assert [time for time, _ in started] == [1.5, 6.0, 11.0]
    assert [(time / HOUR, pool) for time, _, pool in routes(run)] == [(6.0, "h1:q"), (11.0, "h2:q")]
    (result,) = run.results.values()
    assert result.end_time == 13.5 * HOUR and result.state == "completed"
    assert reasons(run, d.Requeue)[0] == "h0 is closed, and h1 can start it now"
    assert reasons(run)[0] == "h1 is better now: h0 is closed, and h1 can start it now"
    figures = plugin.register_metrics()["follow"](None)
    assert figures["requeues"] == figures["routes"] == 2 and figures["processor_hours_lost"] == 0
    assert figures["share_in_open_hours"] == 1.0


def test_a_job_that_lingers_leaves_later():
    # 2 h later each time. Unlike in the paper it runs on meanwhile.
    jobs = [job("h0:1", 1, 12 * HOUR, 1.5 * HOUR, attributes={"saves": 0})]
    plugin = follow(by=["calendar"], when="linger", linger=("2h", "2h"))
    run = emulate(nights(), jobs, plugin, Fcfs(), epoch=MONDAY)
    assert [(time / HOUR, pool) for time, _, pool in routes(run)] == [(8.0, "h2:q")]
    assert run.results["h0:1"].end_time == 13.5 * HOUR


@pytest.mark.parametrize(("when", "moves"), [("immediate", []), ("linger", [8.0]), ("adaptive", [8.0])])
def test_a_job_that_finds_no_site_at_once(when, moves):
    # No site is open at 6:00; h2 opens at 8:00.
    jobs = [job("h0:1", 1, 12 * HOUR, 1.5 * HOUR, attributes={"saves": 0})]
    cluster = federated(daily("h0", 0, 6), daily("h2", 8, 14), size=1)
    plugin = follow(by=["calendar"], when=when, linger=("2h", "2h"))
    run = emulate(cluster, jobs, plugin, Fcfs(), epoch=MONDAY)
    assert [time / HOUR for time, _, _ in routes(run)] == moves
    assert run.results["h0:1"].end_time == 13.5 * HOUR


def test_saving_takes_its_time_before_the_job_leaves():
    jobs = [job("h0:1", 1, 8 * HOUR, 1.5 * HOUR, attributes={"saves": 600})]
    plugin = follow(by=["calendar"], when="immediate")
    run = emulate(nights(), jobs, plugin, Fcfs(), epoch=MONDAY)
    signals = [time for time, one in run.decisions if isinstance(one, d.Signal)]
    assert signals == [6 * HOUR] and routes(run) == [(6 * HOUR + 600, "h0:1", "h1:q")]
    # What it does from the signal on is lost.
    assert run.results["h0:1"].end_time == 9.5 * HOUR + 600
    assert plugin.register_metrics()["follow"](None)["processor_hours_lost"] == pytest.approx(1 / 6)


def test_only_the_work_that_is_left_has_to_fit_into_open_hours():
    # 3.5 of 8 hours are left at 6:00. Until 10:00 they fit, so b is as good as c, and comes first.
    cluster = federated(daily("a", 0, 6), daily("b", 5, 10), daily("c", 5, 24), size=1)
    jobs = [job("a:1", 1, 8 * HOUR, 1.5 * HOUR, attributes={"saves": 0})]
    run = emulate(cluster, jobs, follow(by=["calendar"], when="immediate"), Fcfs(), epoch=MONDAY)
    assert routes(run) == [(6 * HOUR, "a:1", "b:q")]


@pytest.mark.parametrize(
    ("said", "most", "moves"),
    [({}, "9h", 0), ({"restartable": True}, "1h", 0), ({"restartable": True}, "9h", 1),
     ({"restartable": "no"}, "9h", 0), ({"checkpoint": 60}, "1h", 1)],
)  # fmt: skip
def test_what_runs_leaves_only_if_it_may_and_loses_little(said, most, moves):
    jobs = [job("h0:1", 1, 8 * HOUR, 1.5 * HOUR, attributes=said)]
    plugin = follow(by=["calendar"], when="immediate", most_lost=most, most_routes=1)
    run = emulate(nights(), jobs, plugin, Fcfs(), epoch=MONDAY)
    assert len(routes(run)) == moves and run.states == {"h0:1": "completed"}


def test_running_work_leaves_a_site_that_becomes_too_dear(tmp_path):
    (tmp_path / "a.csv").write_text("time,price\n0,1.0\n10000,9.0\n")
    options = Follow.Options(
        movable="all", by=["load"], price={"a": tmp_path / "a.csv", "b": 2.0}, leave_above=5.0,
        when="immediate",
    )  # fmt: skip
    jobs = [job("a:1", 1, 15000, attributes={"saves": 0}), job("b:9", 1, 10, 12000)]
    run = emulate(federated(A, B), jobs, Follow(options), Fcfs())
    assert routes(run) == [(10000.0, "a:1", "b:q")]
    assert "a is too dear: its price is 9, above 5" in reasons(run, d.Requeue)[0]
    assert run.results["a:1"].end_time == 15000.0


# ---------------------------------------------------------------------- with migration handlers


class Saver:
    """A handler that saves the jobs with its word."""

    name = "saver"

    def for_cluster(self, cluster: str) -> Saver:
        return self

    def suits(self, move: Any) -> str:
        assert ":" not in move.job.id
        return "" if (move.job.attributes or {}).get("image") else "it has no image"


def leaving(said: dict[str, Any], **options: Any) -> tuple[Run, dict[str, Any]]:
    """A job of 8 hours, begun at 1:30 at a site that closes at 6:00; what became of it, and the figures."""
    jobs = [job("h0:1", 1, 8 * HOUR, 1.5 * HOUR, attributes=said)]
    plugin = follow(**{"by": ["calendar"], "when": "immediate", "most_routes": 1, **options})
    run = emulate(nights(), jobs, plugin, Fcfs(), epoch=MONDAY, handlers=[Saver()])
    assert run.states == {"h0:1": "completed"} and run.problems == []
    return run, plugin.register_metrics()["follow"](None)


def kinds(run: Run) -> list[str]:
    return [type(one).__name__ for _, one in run.decisions]


@pytest.mark.parametrize("word", [{"restartable": True}, {"checkpoint": 7200}, {"saves": 600}])
def test_a_job_that_a_handler_saves_loses_nothing(word):
    run, figures = leaving({**word, "image": True}, most_lost=0)
    assert kinds(run) == ["Start", "Checkpoint", "Requeue", "Route", "Start"]
    assert [event.job_id for event in run.adapter.told if isinstance(event, ev.JobCheckpointed)] == ["h0:1"]
    assert run.results["h0:1"].end_time == 9.5 * HOUR and figures["processor_hours_lost"] == 0
    assert reasons(run, d.Checkpoint) == ["h0 is closed, and h1 can start it now: it is to be saved first"]


@pytest.mark.parametrize(
    ("said", "most", "expected"),
    [
        ({"restartable": True}, 0, ["Start", "Checkpoint"]),
        ({"restartable": True}, "9h", ["Start", "Checkpoint", "Requeue", "Route", "Start"]),
        ({"saves": 600}, "9h", ["Start", "Checkpoint", "Signal", "Requeue", "Route", "Start"]),
        # Its user does not say that it may go.
        ({}, "9h", ["Start"]),
    ],
)
def test_a_job_that_no_handler_saves_goes_as_it_is_or_stays(said, most, expected):
    run, _ = leaving(said, most_lost=most)
    assert kinds(run) == expected


def test_a_job_that_was_not_saved_is_saved_anew_when_it_looks_again():
    class Later(Saver):
        tries = 0

        def suits(self, move: Any) -> str:
            self.tries += 1
            return "no room" if self.tries == 1 else ""

    jobs = [job("h0:1", 1, 8 * HOUR, 1.5 * HOUR, attributes={"restartable": True})]
    plugin = follow(by=["calendar"], when="adaptive", linger=("1h", "1h"), most_lost=0, most_routes=1)
    run = emulate(nights(), jobs, plugin, Fcfs(), epoch=MONDAY, handlers=[Later()])
    found = [(time / HOUR, type(one).__name__) for time, one in run.decisions]
    assert [one for one in found if one[1] != "Start"] == [
        (6.0, "Checkpoint"), (7.0, "Checkpoint"), (7.0, "Requeue"), (7.0, "Route"),
    ]  # fmt: skip
    assert run.results["h0:1"].end_time == 9.5 * HOUR


def test_explain_says_why_no_handler_saved_a_job():
    said: list[str | None] = []
    jobs = [job("h0:1", 1, 8 * HOUR, 1.5 * HOUR, attributes={"restartable": True})]
    plugin = follow(by=["calendar"], when="immediate", most_lost=0)

    class Asks:
        @hookimpl
        def react(self, state: Any) -> None:
            if (one := state.jobs.get("h0:1")) is not None and state.now > 6.1 * HOUR:
                said.append(plugin.explain(one, "site"))

    more = job("h2:2", 1, 60, 8.5 * HOUR)
    emulate(nights(), [*jobs, more], plugin, Asks(), Fcfs(), epoch=MONDAY, handlers=[Saver()])
    assert said and said[0] == (
        "It does not leave its site: h0 is closed, and it would lose 4 h 30 min of its work (no handler "
        "saved it: job h0:1 cannot be saved: saver: it has no image)"
    )


def test_where_a_requeued_job_goes_is_known_after_a_kill():
    plugin, heir = (follow(by=["calendar"], when="immediate") for _ in range(2))
    for one in (plugin, heir):
        one.startup(State(federated(A, B)), frozenset({d.Requeue, d.Route}))
    plugin.restore({"trips": {"a:7": [1, ["b"]]}, "bound": {}, "supply": None})
    plugin._leaving.bound["a:1"] = ("b:q", "a is closed")
    heir.restore(json.loads(json.dumps(plugin.checkpoint())))
    assert heir.checkpoint() == plugin.checkpoint()
    bound = {"a:1": ["b:q", "a is closed"]}
    assert heir.checkpoint() == {"trips": {"a:7": [1, ["b"]]}, "bound": bound, "supply": None}


@pytest.mark.parametrize(("most", "sent"), [(5.0, 0), (9.0, 1)])
def test_no_job_goes_to_a_site_that_is_too_dear(most, sent):
    jobs = [job("a:1", 4, 2000), job("a:2", 4, 1000, 10)]
    plugin = follow(by=["load"], price={"a": 1, "b": 9}, leave_above=most)
    assert len(routes(emulate(federated(A, B), jobs, plugin, Fcfs()))) == sent


def test_running_work_may_return_after_it_has_run_elsewhere(tmp_path):
    (tmp_path / "a.csv").write_text("time,price\n0,1\n10000,9\n20000,1\n")
    (tmp_path / "b.csv").write_text("time,price\n0,9\n10000,1\n20000,9\n")
    prices = {"a": tmp_path / "a.csv", "b": tmp_path / "b.csv"}
    options = Follow.Options(movable="all", by=["load"], price=prices, leave_above=5.0, when="immediate")
    run = emulate(federated(A, B), [job("a:1", 1, 25000, attributes={"saves": 0})], Follow(options), Fcfs())
    assert routes(run) == [(10000.0, "a:1", "b:q"), (20000.0, "a:1", "a:q")]
    assert run.results["a:1"].end_time == 25000.0


# ---------------------------------------------------------------------- bounds


def test_a_job_is_sent_on_no_more_often_than_it_may_be():
    # Six sites, each open for 4 hours; the job rides round and round.
    sites = [
        daily(name, at, at + 4)
        for name, at in (("a", 0), ("b", 4), ("c", 8), ("d", 12), ("e", 16), ("f", 20))
    ]
    jobs = [job("a:1", 1, 40 * HOUR, attributes={"saves": 0})]
    for most in (0, 2, 9):
        plugin = follow(by=["calendar"], when="immediate", most_routes=most, later="1d")
        run = emulate(federated(*sites), jobs, plugin, Fcfs(), epoch=MONDAY)
        assert len(routes(run)) == most and run.states == {"a:1": "completed"}
    assert [pool[0] for _, _, pool in routes(run)] == list("bcdefabcd")


JOBS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(1, 4), st.integers(1, 6000), st.integers(0, 2000),
        st.sampled_from([None, {"saves": 0}, {"saves": 30}, {"restartable": True}, {"movable": "no"}]),
    ),
    min_size=1, max_size=20,
)  # fmt: skip
OPTIONS = st.fixed_dictionaries({
    "by": st.permutations(["calendar", "load", "price"]).flatmap(
        lambda order: st.integers(1, 3).map(lambda count: list(order[:count]))
    ),
    "when": st.sampled_from([None, "immediate", "linger", "adaptive"]),
    "movable": st.sampled_from(["all", "asked"]),
    "most_routes": st.integers(0, 4),
    "gain": st.sampled_from([0, 60, 600]),
    "later": st.sampled_from([0, 3600, 86400]),
    "every": st.sampled_from([1, 300]),
    "at_a_time": st.sampled_from([1, 20]),
    "depth": st.sampled_from([0, 3, 30]),
    "linger": st.sampled_from([("10m", "20m"), ("0s", "0s")]),
    "leave_above": st.sampled_from([None, 1.5]),
})  # fmt: skip


@given(rows=JOBS, options=OPTIONS, latency=st.sampled_from([0.0, 90.0]), seed=st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_every_job_runs_once_to_its_end_at_one_site(rows, options, latency, seed):
    jobs, now = [], 0.0
    for at, (site, processors, seconds, later, said) in enumerate(rows):
        now += later
        jobs.append(job(f"{site}:{at}", processors, seconds, now, attributes=said))
    sites = daily("a", 0, 1), daily("b", 1, 24), Site("c")
    links = [Link(x, y, 1.0, latency) for x in "abc" for y in "abc" if x != y]
    plugin = follow(price={"a": 1, "b": 2, "c": 1.2}, **options)
    run = emulate(federated(*sites, links=links), jobs, plugin, Easy(), epoch=MONDAY, seed=seed)
    assert run.problems == []
    assert list(run.results) == [one.job.id for one in jobs]
    assert set(run.states.values()) == {"completed"}
    running: set[str] = set()
    where: dict[str, list[str]] = {}
    for event in run.adapter.told:
        if isinstance(event, ev.JobStarted):
            assert event.job_id not in running
            running.add(event.job_id)
        elif isinstance(event, ev.JobEnded | ev.JobRequeued):
            running.discard(event.job_id)
        elif isinstance(event, ev.JobRouted):
            assert event.job_id not in running
            where.setdefault(event.job_id, []).append(event.pool)
    assert all(len(pools) <= options["most_routes"] for pools in where.values())
    if options["movable"] == "asked":
        assert not where
    assert not run.scheduler.state.jobs
    for domain in run.scheduler.state.domains.values():
        assert domain.free == domain.total


# ---------------------------------------------------------------------- words


class Asks:
    """Asks the plugin at a time why a job is where it is."""

    def __init__(self, time: float, job_id: str, plugin: Follow) -> None:
        self.time, self.job_id, self.plugin = time, job_id, plugin
        self.said: str | None = None

    @hookimpl
    def startup(self, state: Any) -> None:
        state.wake_at(self.time, next(iter(state.pools.values())))

    @hookimpl
    def control(self, state: Any) -> None:
        if self.said is None and state.now >= self.time:
            self.said = self.plugin.explain(state.jobs[self.job_id], "site") or ""


def told_at(
    time: float, job_id: str, cluster: ClusterDescription, jobs: list[TraceJob], plugin: Follow
) -> str | None:
    """What ``headway explain`` says of the site of a job at that time."""
    asks = Asks(time, job_id, plugin)
    emulate(cluster, jobs, plugin, Fcfs(), asks, epoch=MONDAY)
    return asks.said


THREE = [job("a:1", 4, 500), job("b:1", 4, 300), job("a:2", 4, 100, 10)]
TOO_LITTLE = (
    "It stays at a: it is expected to start at b in 4 min 50 s, at a in 8 min 10 s, "
    "which is too little a gain"
)


@pytest.mark.parametrize(
    ("options", "b", "said"),
    [
        ({"gain": 300}, B, TOO_LITTLE),
        ({}, B, "It stays at a: no site can be better by load"),
        ({"movable": "asked"}, B, "It stays at its site: it does not have the attribute 'movable'"),
        ({"gain": 100}, daily("b", 20, 24), "It stays at a: b cannot take it (closed)"),
        (
            {"gain": 100, "most_routes": 0}, B,
            "It stays at a: it was sent on 0 times, as often as it may be",
        ),
    ],
)  # fmt: skip
def test_explain_says_why_a_job_stays(options, b, said):
    assert told_at(20, "a:2", federated(A, b), THREE, follow(by=["load"], **options)) == said


def test_explain_says_where_a_job_is_going():
    cluster = federated(A, B, links=[Link("a", "b", 1.0, latency=100.0)])
    assert told_at(20, "a:2", cluster, THREE, follow(by=["load"], gain=100)) == (
        "It goes to b: it is expected to start at b in 4 min 50 s, at a in 8 min 10 s"
    )


def test_explain_says_why_running_work_does_not_leave():
    jobs = [job("a:1", 1, 5 * HOUR, attributes={"restartable": True})]
    cluster = federated(daily("a", 0, 2), daily("b", 3, 24))
    plugin = follow(by=["calendar"], when="adaptive", linger=("30m", "30m"), most_lost="1d")
    assert told_at(2 * HOUR, "a:1", cluster, jobs, plugin) == (
        "It does not leave its site: a is closed, and no other site can start it soon; it looks again in "
        "30 min 00 s"
    )


def test_headway_explain_shows_the_sentence():
    adapter = EmulatedFederation(federated(A, B), THREE)
    plugins = plugged(follow(by=["load"], gain=300), Fcfs())
    scheduler = Scheduler(adapter.describe(), plugins, capabilities=adapter.capabilities)
    while "a:2" not in scheduler.state.jobs:
        now, events = adapter.wait(None)
        adapter.apply(now, scheduler.step(now, events))
    assert explain(scheduler, "a:2", plain_clock)[-1] == f"{TOO_LITTLE}."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["price"]}, "price: the price of each site"),
        ({"by": ["load", "load"]}, "each criterion once"),
        ({"leave_above": 1.0}, "which leave_above needs"),
        ({"linger": ("3h", "1h")}, "the shorter time first"),
        ({"timezone": "Mars"}, "a time zone such as"),
        ({"signal": "KILL"}, "expected a signal that a job can catch"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        Follow.Options(**options)


@pytest.mark.parametrize(
    ("cluster", "options", "message"),
    [
        (ClusterDescription("one", (PoolDescription("q", 4),)), {}, "expected a federation with sites"),
        (federated(A, B), {"price": {"aa": 1}}, "no site is called 'aa'"),
        (federated(A, B), {"by": ["price"], "price": {"a": 1}}, "found none of b"),
    ],
)
def test_what_does_not_fit_the_cluster(cluster, options, message):
    jobs = [traced("1", pool=cluster.pools[0].name)]
    with pytest.raises(UserError, match=message):
        emulate(cluster, jobs, follow(**options), Fcfs())


def test_a_file_of_prices_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"plugin 'follow': price: a: .*cannot be read"):
        Follow.Options(price={"a": tmp_path / "none.csv"})
