"""The thirteen policies of Chandio and others (2014): their vectors, the window, the counters, the names."""

from __future__ import annotations

import pytest
from building import described, emulate, plugged, traced

from headway import events as ev
from headway.decisions import Start
from headway.emulation import emulate as emulate_configured
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, PoolDescription
from headway.plugins import Catalogue, PluginConfig, Plugins, make_plugin
from headway.scheduler import Scheduler
from headway_plugins.orders.largest_first import LargestFirst
from headway_plugins.policies.greedy import Greedy
from headway_plugins.policies.k_reserved import KReserved, KReservedOptions
from headway_plugins.policies.window import Window, WindowOptions

THIRTEEN = [
    "fcfs", "sjf", "ljf", "minet", "maxet", "fcfs-ff", "sjf-ff", "ljf-ff", "minet-ff", "maxet-ff",
    "window-k", "easy", "k-reserved",
]  # fmt: skip

#: On 4 processors, all at 0, estimates exact: A 3 x 10 s, B 2 x 5 s, C 1 x 20 s, D 1 x 1 s.
VECTORS = {
    (0, 10, 10, 10): ["fcfs", "ljf"],
    (0, 10, 0, 10): ["fcfs-ff", "ljf-ff", "maxet", "maxet-ff"],
    (5, 0, 0, 0): ["sjf", "sjf-ff", "minet-ff"],
    (5, 0, 5, 0): ["minet"],
}
#: Worked out by hand: with A running B is the head and booked for 10, of which C takes nothing (2 of 3 extra
#: are left). C has the last free processor, so D waits for A.
MORE = {(0, 10, 0, 10): ["window-k", "easy", "k-reserved"]}


def catalogue_run(name, jobs, processors=4, **more):
    catalogue = Catalogue()
    return emulate_configured(
        ClusterDescription.flat(processors), jobs, [PluginConfig(name)], catalogue, label=name, **more
    )


@pytest.mark.parametrize(
    ("name", "starts"),
    [(name, starts) for table in (VECTORS, MORE) for starts, names in table.items() for name in names],
)
def test_the_vectors(name, starts):
    jobs = [traced("A", 3, 10), traced("B", 2, 5), traced("C", 1, 20), traced("D", 1, 1)]
    result = catalogue_run(name, jobs)
    assert tuple(record.start_time for record in result.jobs) == starts


def test_the_vectors_name_all_thirteen():
    named = [name for table in (VECTORS, MORE) for names in table.values() for name in names]
    assert sorted(named) == sorted(THIRTEEN)


@pytest.mark.parametrize("name", THIRTEEN)
def test_every_name_is_a_plugin_or_a_preset_and_says_what_it_is(name):
    catalogue = Catalogue()
    if name in catalogue.presets():
        preset = catalogue.presets()[name]
        assert preset.summary and "Chandio" in preset.paper
        for part, _ in preset.plugins:
            assert part in catalogue.names()
    else:
        assert catalogue.info(name).summary


def test_no_preset_has_a_plugins_name_so_each_name_means_one_thing():
    catalogue = Catalogue()
    assert not set(catalogue._presets) & set(catalogue.names())


# ---------------------------------------------------------------- greedy


FLAT = ClusterDescription.flat(8)


def reasons(run):
    return {decision.job_id: decision.reason for _, decision in run.decisions if isinstance(decision, Start)}


def test_greedy_says_whom_it_passed_over():
    run = emulate(FLAT, [traced("a", 6, 50), traced("b", 4, 9), traced("c", 2, 9, 1)], Greedy())
    assert run.starts == {"a": 0, "b": 50, "c": 1}
    told = reasons(run)
    assert told["c"] == "fits now, and job b, the first in the queue, does not"
    assert told["a"] == told["b"] == "first in the queue"


def test_greedy_lets_a_large_job_wait_as_long_as_smaller_ones_come():
    small = [traced(str(at), 4, 10, 5 * at) for at in range(20)]
    run = emulate(
        FLAT, sorted([*small, traced("large", 8, 10, 6)], key=lambda t: t.job.submit_time), Greedy()
    )
    assert run.starts["large"] == max(run.starts[str(at)] for at in range(20)) + 10


# ---------------------------------------------------------------- window


def window(size):
    return Window(WindowOptions(size=size))


def test_only_the_window_is_looked_at():
    jobs = [traced("a", 5, 50), traced("b", 4, 9), traced("c", 4, 9), traced("d", 3, 9)]
    assert emulate(FLAT, jobs, window(2)).starts == {"a": 0, "b": 50, "c": 50, "d": 59}
    assert emulate(FLAT, jobs, window(3)).starts == {"a": 0, "b": 50, "c": 50, "d": 0}


def test_the_window_refills_as_its_jobs_start():
    jobs = [traced("a", 5, 50), traced("b", 4, 9), *[traced(name, 1, 99) for name in "cde"]]
    run = emulate(FLAT, jobs, window(2))
    assert run.starts == {"a": 0, "b": 50, "c": 0, "d": 0, "e": 0}
    assert reasons(run)["e"] == "fits, in the window of the first 2"
    assert reasons(run)["a"] == "first in the queue"


def test_who_arrives_behind_a_full_window_waits_though_it_fits():
    jobs = [traced("a", 5, 50), traced("b", 4, 9), traced("c", 4, 9), traced("late", 1, 1, 3)]
    assert emulate(FLAT, jobs, window(2)).starts["late"] == 59
    assert emulate(FLAT, jobs, window(3)).starts["late"] == 3


# ---------------------------------------------------------------- k-reserved


def reserved(limit):
    return KReserved(KReservedOptions(limit=limit))


#: "h" waits for "r" and would be overtaken by each of the short ones.
OVERTAKING = [traced("r", 5, 100), traced("h", 5, 9), *[traced(str(at), 1, 5, 1) for at in range(4)]]


@pytest.mark.parametrize("limit", range(6))
def test_a_job_is_overtaken_so_often_and_no_more(limit):
    run = emulate(FLAT, OVERTAKING, reserved(limit))
    early = [name for name in "0123" if run.starts[name] < 100]
    # Three fit at once; the fourth fits when they end.
    assert early == list("0123")[:limit]
    assert run.starts["h"] == 100


def test_an_exhausted_job_that_is_not_the_head_closes_the_queue_behind_it():
    jobs = [
        traced("r", 5, 100), traced("h", 8, 9),
        traced("x", 4, 9), traced("1", 2, 5, 1), traced("2", 2, 5, 10), traced("y", 3, 20, 20),
    ]  # fmt: skip
    # Both the head and "x" were overtaken once by "1": they let nobody else pass.
    run = emulate(FLAT, jobs, reserved(1))
    assert run.starts["1"] == 1
    assert run.starts["2"] >= 100 and run.starts["y"] >= 100


def test_an_exhausted_job_may_itself_be_backfilled():
    """Possible where an order puts later jobs before it: else those before it are exhausted as well."""
    jobs = [
        traced("r", 4, 100), traced("q", 2, 20), traced("x", 3, 30, 1), traced("1", 1, 5, 2),
        traced("h", 8, 9, 3), traced("2", 1, 2, 4),
    ]  # fmt: skip
    run = emulate(FLAT, jobs, reserved(1), LargestFirst())
    # "1" exhausts "x", so "2" has to wait; "x" passes "h", which that exhausts.
    assert run.starts == {"r": 0, "q": 0, "x": 20, "1": 2, "h": 100, "2": 109}


def test_each_pool_is_closed_for_itself():
    cluster = ClusterDescription(
        "two", (PoolDescription("p", processors=8), PoolDescription("q", processors=8))
    )
    jobs = [
        traced(f"{pool}{at}", size, estimate, submit, pool=pool)
        for pool in "pq"
        for at, (size, estimate, submit) in enumerate([(5, 100, 0), (5, 9, 0), (1, 5, 0), (1, 5, 0)])
    ]
    starts = emulate(cluster, jobs, reserved(1)).starts
    assert [starts[name] for name in ("p2", "p3", "q2", "q3")] == [0, 100, 0, 100]


def arrivals(now, *jobs):
    return [ev.JobSubmitted(now, described(*job)) for job in jobs]


def ids(decisions):
    return [decision.job_id for decision in decisions if isinstance(decision, Start)]


FIRST = [("r", 5, 100), ("h", 5, 9), ("1", 1, 5), ("2", 1, 5)]


def test_the_counts_survive_a_restart():
    policy = reserved(3)
    before = Scheduler(FLAT, plugged(policy))
    assert ids(before.step(0, arrivals(0, *FIRST))) == ["r", "1", "2"]
    saved = before.checkpoint()
    assert saved == {"kreserved": {"h": 2}}
    after = Scheduler(FLAT, plugged(reserved(3)), saved=saved)
    after.step(10, [*arrivals(10, ("r", 5, 100), ("h", 5, 9)), ev.JobStarted(0, "r")])
    assert ids(after.step(11, arrivals(11, ("3", 1, 5, 11)))) == ["3"]
    assert ids(after.step(12, arrivals(12, ("4", 1, 5, 12)))) == []
    forgetful = Scheduler(FLAT, plugged(reserved(3)))
    forgetful.step(10, [*arrivals(10, ("r", 5, 100), ("h", 5, 9)), ev.JobStarted(0, "r")])
    assert ids(forgetful.step(12, arrivals(12, ("3", 1, 5, 12), ("4", 1, 5, 12)))) == ["3", "4"]


class Veto:
    """Nobody named here starts."""

    def __init__(self, *names):
        self.names = names

    @hookimpl
    def veto(self, decision):
        return "not you" if decision.job_id in self.names else None


def test_a_start_that_is_vetoed_overtakes_nobody():
    policy = reserved(1)
    s = Scheduler(FLAT, plugged(policy, Veto("1", "2")))
    for now in range(5):
        assert ids(s.step(now, arrivals(now, *FIRST) if not now else [ev.Tick(now)])) == ["r"][now:]
    assert policy.checkpoint() is None


def test_in_monitor_mode_a_wish_counts_once():
    policy = reserved(2)
    s = Scheduler(FLAT, plugged(policy), monitor=True)
    first = [*arrivals(0, *FIRST[:3]), ev.JobStarted(0, "r")]
    assert ids(s.step(0, first)) == ["1"]
    for now in range(1, 5):
        s.step(now, [ev.Tick(now)])
    assert policy.checkpoint() == {"h": 1}


def test_counts_of_jobs_that_are_gone_are_forgotten():
    policy = reserved(1)
    policy.restore({f"gone{at}": 1 for at in range(200)})
    Scheduler(FLAT, plugged(policy)).step(0, arrivals(0, *FIRST))
    assert policy.checkpoint() == {"h": 1}


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("window", {"size": 0}, "site: window: size: expected greater than or equal to 1, found 0"),
        ("window", {"k": 5}, "site: window: k: unknown key"),
        ("window", {"size": "many"}, "site: window: size: expected a whole number, found 'many'"),
        (
            "k-reserved",
            {"limit": -1},
            "site: k-reserved: limit: expected greater than or equal to 0, found -1",
        ),
        ("greedy", {"size": 3}, "site: plugin 'greedy' has no options, found {'size': 3}"),
        ("smallest-first", {"by": 3}, "site: plugin 'smallest-first' has no options"),
    ],
)
def test_wrong_options_are_explained(name, options, said):
    with pytest.raises(UserError) as error:
        make_plugin(Catalogue().get(name), PluginConfig(name, options, "site"))
    assert said in str(error.value)


def test_the_options_of_a_preset_are_those_of_its_policy():
    plugins = Plugins.load([PluginConfig("window-k", {"size": 3}, "site")], Catalogue(), None)
    assert plugins.by_name["window"].options.size == 3
    assert Plugins.load([PluginConfig("window-k")], Catalogue(), None).by_name["window"].options.size == 10
    assert (
        Plugins.load([PluginConfig("k-reserved")], Catalogue(), None).by_name["k-reserved"].options.limit == 5
    )
