"""The search, call by call: G1 to G13 and G17 of the worked examples, and the options."""

from __future__ import annotations

import json
import random
from itertools import islice

import pytest
from gur_sites import HALF_PAST_NINE, SEVEN, Faulty, after_trials, metajob, names, rows, search, site

from headway.errors import StateError
from headway_plugins.coscheduling.calls import (
    Call,
    Carried,
    Denied,
    Failed,
    Granted,
    TimedOut,
    Waited,
    metajob_of,
)
from headway_plugins.coscheduling.distributions import distributions
from headway_plugins.coscheduling.emulated_sites import EmulatedSites, run_in_turn
from headway_plugins.coscheduling.metajob import Metajob, Stage
from headway_plugins.coscheduling.options import SearchOptions, SiteFacts
from headway_plugins.coscheduling.search import Done, Search

WINDOW = (SEVEN, HALF_PAST_NINE)


def found(sites, wanted, **options):
    return sites.run(search(wanted, sites, **options))


def parts(done):
    return [(part.site, part.nodes, part.start) for part in done.parts]


# ---------------------------------------------------------------------- the worked examples


def test_g1_the_papers_sample():
    wanted = metajob(12, 7200, WINDOW, datastar655=(1, 158), purduesp=(1, 2))
    assert (wanted.latest - wanted.earliest, wanted.latest - wanted.duration) == (9000, SEVEN + 1800)
    done = found(EmulatedSites({"datastar655": site(176), "purduesp": site(2)}), wanted)
    assert done.log == rows(
        f"P datastar655 6 {SEVEN}", f"P purduesp 2 {SEVEN}",
        f"M datastar655 11 {SEVEN}", f"M purduesp 1 {SEVEN}", "B datastar655", "B purduesp",
    )  # fmt: skip
    assert (done.delays, done.start) == ({"datastar655": 0, "purduesp": 0}, SEVEN)


def test_g1b_a_busy_site_slides_the_start():
    sites = EmulatedSites({"datastar655": site(176), "purduesp": site(2, (SEVEN - 60, SEVEN + 1200, 2))})
    done = found(sites, metajob(12, 7200, WINDOW, datastar655=(1, 158), purduesp=(1, 2)))
    later = SEVEN + 1200
    assert done.delays == {"datastar655": 0, "purduesp": 1200}
    assert after_trials(done) == rows(
        f"M datastar655 11 {SEVEN}", f"M purduesp 1 {later}", "X purduesp", "X datastar655",
        f"M datastar655 11 {later}", f"M purduesp 1 {later}", "B datastar655", "B purduesp",
    )  # fmt: skip


def test_g2_the_published_division():
    sites = EmulatedSites({"DataStar": site(176), "Linux": site(128), "Purdue": site(2)})
    done = found(sites, metajob(12, 7200, WINDOW, DataStar=(1, 158), Linux=(1, 128), Purdue=(1, 2)))
    assert parts(done) == [("DataStar", 10, SEVEN), ("Linux", 1, SEVEN), ("Purdue", 1, SEVEN)]


def test_g3_the_least_loaded_get_the_most():
    sites = EmulatedSites({"A": site(8, (0, 100, 8)), "B": site(8), "C": site(8, (0, 50, 4))})
    done = found(sites, metajob(12, 100, (0, 400), A=(1, 8), B=(1, 8), C=(1, 8)))
    assert (done.order, done.delays) == (["B", "C", "A"], {"A": 100, "B": 0, "C": 0})
    assert after_trials(done) == rows(
        "M B 8 0", "M C 3 0", "M A 1 100", "X A", "X C", "X B",
        "M B 8 100", "M C 3 100", "M A 1 100", "B B", "B C", "B A",
    )  # fmt: skip


def test_g4_nodes_move_to_the_machine_with_more_load():
    sites = EmulatedSites({"A": site(8, (0, 1000, 6)), "B": site(10, (0, 1000, 4))})
    done = found(sites, metajob(8, 100, (0, 300), A=(1, 8), B=(1, 10)))
    assert done.delays == {"A": float("inf"), "B": 0}
    assert done.log == [
        ["P", "A", 4, None],
        *rows("P A 1 0", "P B 4 0", "D B 7 place", "M B 6 0", "M A 2 0", "B B", "B A"),
    ]


def test_g5_no_minimum_no_metajob():
    sites = EmulatedSites({"A": site(4, (0, 1000, 4)), "B": site(4)})
    done = found(sites, metajob(4, 100, (0, 300), A=(1, 4), B=(1, 4)))
    assert (done.outcome, done.why) == ("REFUSED", "not possible at A")
    assert sites.shown() == {"A": [], "B": []}


def test_g6_the_start_slides_from_one_site_to_the_next():
    sites = EmulatedSites({"A": site(4, (0, 50, 4), (120, 200, 4)), "B": site(4, (0, 80, 4))})
    done = found(sites, metajob(8, 60, (0, 400), A=(4, 4), B=(4, 4)))
    assert after_trials(done) == rows(
        "M A 4 50", "X A", "M A 4 50", "M B 4 80", "X B", "X A", "M A 4 200", "X A",
        "M A 4 200", "M B 4 200", "B A", "B B",
    )  # fmt: skip


def test_g7_a_site_that_refuses_all_leaves_nothing_behind():
    sites = EmulatedSites({"A": site(8), "B": site(8, refuse_after=1)})
    done = found(sites, metajob(8, 10, (0, 100), A=(2, 6), B=(2, 6)))
    assert after_trials(done) == rows(
        "M A 6 0", "D B 2 refused", "X A", "M A 5 0", "D B 3 refused", "X A", "M A 4 0", "D B 4 refused",
        "X A", "M A 3 0", "D B 5 refused", "X A", "M A 2 0", "D B 6 refused", "X A",
    )  # fmt: skip
    assert (done.why, names(sites)) == ("no distribution", set())


@pytest.mark.parametrize(("reorder", "log"), [
    (False, ["M A 7 50", "X A", "M A 7 50", "M B 1 50", "B A", "B B"]),
    (True, ["M B 7 0", "M A 1 50", "X A", "X B", "M B 7 50", "M A 1 50", "B B", "B A"]),
])  # fmt: skip
def test_g8_without_reorder_the_preference_stays(reorder, log):
    sites = EmulatedSites({"A": site(8, (0, 50, 8)), "B": site(8)})
    done = found(sites, metajob(8, 10, (0, 400), reorder=reorder, A=(1, 7), B=(1, 7)))
    assert after_trials(done) == rows(*log)


@pytest.mark.parametrize(("probe", "expected"), [
    ("min", [("A", 7, 60), ("B", 1, 60)]),
    ("share", [("B", 7, 20), ("A", 1, 20)]),
    ("max", [("B", 7, 20), ("A", 1, 20)]),
])  # fmt: skip
def test_g9_the_size_of_the_trial_matters(probe, expected):
    sites = EmulatedSites({"A": site(8, (0, 60, 6)), "B": site(8, (0, 20, 8))})
    assert parts(found(sites, metajob(8, 30, (0, 200), A=(1, 8), B=(1, 8)), probe=probe)) == expected


def test_g10_distributions():
    assert list(distributions([(1, 3)] * 3, 5)) == [
        (3, 1, 1), (2, 2, 1), (2, 1, 2), (1, 3, 1), (1, 2, 2), (1, 1, 3),
    ]  # fmt: skip


def test_g11_number_of_distributions_of_the_demonstration():
    assert len(list(distributions([(1, 158), (1, 128), (1, 2)], 12))) == 19


@pytest.mark.parametrize(("bounds", "total", "step", "expected"), [
    ([(1, 8), (1, 8)], 8, 3, [(7, 1), (4, 4), (1, 7)]),
    ([(0, 2), (0, 5)], 5, 4, [(2, 3)]),
    ([(0, 9), (0, 2), (0, 9)], 9, 5, [(9, 0, 0), (4, 2, 3)]),
    ([(1, 2)], 3, 1, []),
    ([], 0, 1, []),
    ([(0, 4)], 4, 2, [(4,)]),
])  # fmt: skip
def test_steps_between_distributions(bounds, total, step, expected):
    assert list(distributions(bounds, total, step)) == expected


def test_g12_single():
    sites = EmulatedSites({"A": site(8, (0, 100, 4)), "B": site(8, (0, 40, 8)), "C": site(4)})
    done = found(sites, metajob(6, 50, (0, 500), usage="single", A=(1, 8), B=(1, 8), C=(1, 8)))
    assert done.log == rows("M A 6 100", "M B 6 40", "X A", "D C 6 place", "B B")
    assert names(sites) == {"m-1-B"}


def test_single_keeps_the_first_of_equal_starts_and_asks_no_machine_with_other_bounds():
    sites = EmulatedSites({"A": site(8), "B": site(8), "C": site(8), "D": site(8)})
    done = found(sites, metajob(6, 50, (0, 500), usage="single", A=(1, 5), B=(1, 8), C=(1, 8), D=(7, 8)))
    assert done.log == rows("M B 6 0", "M C 6 0", "X C", "B B")


def test_g13_pipeline():
    sites = EmulatedSites({"A": site(8, (0, 30, 8)), "B": site(4, (100, 160, 4))})
    stages = (Stage("A", 8, 60, 0), Stage("B", 4, 40, 70))
    done = found(sites, Metajob("m", "pipeline", 0, 400, stages=stages))
    assert done.start == 90
    assert [(part.name, part.start, part.end) for part in done.parts] == [
        ("m-3-A.1", 90, 150), ("m-3-B.2", 160, 200),
    ]  # fmt: skip


def test_g17_a_crash_after_the_second_reservation_of_the_round():
    sites = EmulatedSites({"A": site(176), "B": site(2, (0, 1200, 2))})
    dying = search(metajob(12, 7200, (0, 9000), A=(1, 158), B=(1, 2)), sites)
    while names(sites) != {"m-1-A", "m-1-B"}:
        call = dying.next()
        dying.answer(call, sites.carry_out(call))
    assert [(call.kind, call.name) for call in sites.recover(dying)] == [
        ("cancel", "m-1-A"), ("cancel", "m-1-B"),
    ]  # fmt: skip
    assert names(sites) == set()


def test_g16_with_a_site_of_ten_minutes_the_common_start_is_at_ten_minutes():
    sites = EmulatedSites(
        {"A": site(8, (0, 4000, 4)), "L": site(8, (0, 700, 6), grain=600, min_duration=600)}
    )
    done = found(sites, metajob(10, 900, (100, 9000), A=(1, 8), L=(1, 4)))
    assert parts(done) == [("L", 4, 4200), ("A", 6, 4200)]
    # A has room for 6 nodes from 4,000 s on.
    assert ["M", "A", 6, 4000] in done.log


# ---------------------------------------------------------------------- options


def test_after_the_last_distribution_it_gives_up_or_goes_on():
    """The dossier's largest case: the first good division is number 4,032."""

    def sites():
        return EmulatedSites({"A": site(158, (0, 99, 58)), "B": site(128), "C": site(128)})

    wanted = metajob(200, 10, (0, 20), reorder=False, A=(1, 158), B=(1, 128), C=(1, 128))
    bounds = [(machine.min, machine.max) for machine in wanted.machines.values()]
    vectors = list(distributions(bounds, 200))
    assert len(vectors) == 13_911
    assert next(number for number, vector in enumerate(vectors, 1) if vector[0] <= 100) == 4_032

    assert found(sites(), wanted).why == "gave up after 500 distributions"
    assert found(sites(), wanted, grant_up_to=True).rounds == 2
    went_on = found(sites(), wanted, go_on=True)
    assert (went_on.outcome, went_on.tried, went_on.rounds) == ("SUCCESS", 500, 502)
    doubled = EmulatedSites.run(
        where := sites(),
        Search(wanted, SearchOptions(go_on=True), {"A": SiteFacts(at_most=False)}),
    )
    tried = [0]
    for step in (1, 2, 4, 8, 16, 32, 64):
        divisions = enumerate(distributions(bounds, 200, step), 1)
        tried.append(next(number for number, vector in divisions if vector[0] <= 100))
        if tried[-1] <= 500:
            break
    assert doubled.tried == sum(min(one, 500) for one in tried)
    assert (doubled.outcome, len(names(where))) == ("SUCCESS", 3)


def test_window_first_finds_the_earliest_start_of_all_divisions():
    sites = EmulatedSites({"A": site(8, (0, 60, 6)), "B": site(8, (0, 20, 8))})
    done = found(sites, metajob(8, 30, (0, 200), reorder=False, A=(1, 8), B=(1, 8)), window_first=True)
    assert (done.start, parts(done)) == (20, [("A", 2, 20), ("B", 6, 20)])
    plain = metajob(8, 30, (0, 200), reorder=False, A=(1, 8), B=(1, 8))
    sites = EmulatedSites({"A": site(8, (0, 60, 6)), "B": site(8, (0, 20, 8))})
    assert found(sites, plain).start == 60


def test_window_first_drops_a_division_that_was_denied():
    sites = EmulatedSites({"B": site(8, (0, 1000, 6)), "A": site(4, (0, 50, 3))})
    done = found(sites, metajob(4, 30, (0, 200), reorder=False, B=(1, 4), A=(0, 3)), window_first=True)
    assert after_trials(done) == rows(
        "D B 4 place", "D B 3 place", "M B 2 0", "M A 2 50", "X A", "X B", "M B 1 0", "M A 3 50", "X A",
        "X B", "M B 2 50", "M A 2 50", "B B", "B A",
    )  # fmt: skip


def test_a_machine_with_max_0_is_not_asked():
    sites = EmulatedSites({"A": site(4), "B": site(4)})
    done = found(sites, metajob(3, 10, (0, 20), B=(0, 0), A=(1, 4)))
    assert done.log == rows("P A 2 0", "M A 3 0", "B A")
    assert (done.order, done.delays["B"]) == (["A", "B"], float("inf"))


def test_a_site_with_fixed_starts_slides_by_the_step():
    sites = EmulatedSites({"F": site(4, (0, 500, 4), fixed=True)})
    done = found(sites, metajob(4, 100, (0, 2000), F=(1, 4)), slide=300)
    assert done.log == rows("P F 4 600", "D F 4 place", "D F 4 place", "M F 4 600", "B F")
    assert (done.rounds, done.tried) == (3, 1)


def test_a_refusal_is_repeated_once_if_a_competitor_was_there():
    """Two sites, both needed whole, preference lists turned about: both searches are refused."""

    def race(**options):
        sites = EmulatedSites({"S0": site(3, (7, 8, 3)), "S1": site(2)})
        m = search(metajob(5, 4, (1, 7), S0=(3, 3), S1=(2, 2)), sites, **options)
        n = search(metajob(5, 4, (1, 7), name="n", S1=(2, 2), S0=(3, 3)), sites, **options)
        turns = [0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1]
        return [done.outcome for done in run_in_turn(sites, [m, n], turns)]

    assert race() == ["REFUSED", "REFUSED"]
    assert race(repeat=True, back_off=0) == ["REFUSED", "SUCCESS"]


def test_a_refusal_without_a_competitor_is_not_repeated():
    sites = EmulatedSites({"A": site(4, (0, 1000, 4))})
    done = found(sites, metajob(4, 100, (0, 300), A=(1, 4)), repeat=True, back_off=40)
    assert (done.log, sites.now) == ([["P", "A", 4, None], ["P", "A", 1, None]], 20)


def test_grant_up_to_leaves_out_a_machine_with_min_0_that_has_no_node():
    sites = EmulatedSites({"A": site(4, (0, 90, 4)), "B": site(8)})
    done = found(sites, metajob(6, 10, (0, 200), A=(0, 4), B=(1, 8)), grant_up_to=True)
    assert parts(done) == [("B", 6, 0)]


# ---------------------------------------------------------------------- answers that go wrong


class Script:
    """Answers calls of a kind from a list; all else goes to the sites."""

    def __init__(self, sites, kind, *answers):
        self.sites, self.kind, self.answers = sites, kind, list(answers)

    def run(self, searching) -> Done:
        while isinstance(call := searching.next(), Call):
            scripted = call.kind == self.kind and self.answers
            answer = self.answers.pop(0) if scripted else None
            searching.answer(call, self.sites.carry_out(call) if answer is None else answer)
        return call


def test_a_cancel_is_tried_three_times_then_listed_then_tried_once_more():
    sites = EmulatedSites({"A": site(4)})
    wanted = metajob(4, 10, (0, 20), A=(1, 4))
    done = Script(sites, "cancel", *[Failed()] * 3).run(search(wanted, sites))
    # The leak of the trial fills the site, and its last try gives it back.
    assert done.log == rows("L A", "P A 4 0", "M A 4 10", "X A", "M A 4 10", "B A", "X A")
    assert (done.leaks, names(sites)) == ([], {"m-2-A"})


def test_a_reservation_that_a_site_never_cancels_is_listed():
    sites = EmulatedSites({"A": site(4)})
    faulty = Faulty(sites, random.Random(0), 0.0)
    faulty.stuck.add("m-0-A")
    faulty.run(searching := search(metajob(4, 10, (0, 20), A=(1, 4)), sites))
    done = searching.next()
    assert (done.outcome, done.leaks, names(sites)) == ("SUCCESS", [("A", "m-0-A")], {"m-0-A", "m-2-A"})


def test_a_bind_that_no_site_carries_out_is_told():
    sites = EmulatedSites({"A": site(4)})
    done = Script(sites, "bind", *[Failed()] * 3).run(search(metajob(4, 10, (0, 20), A=(1, 4)), sites))
    assert (done.outcome, done.unbound) == ("SUCCESS", [("A", "m-1-A")])


@pytest.mark.parametrize("answer", [Granted(0, 3), Granted(-5, 4), Carried()])
def test_a_strange_answer_to_an_exact_set_is_a_denial(answer):
    sites = EmulatedSites({"A": site(4)})
    done = Script(sites, "set", None, answer).run(search(metajob(4, 10, (0, 20), A=(4, 4)), sites))
    assert (done.outcome, done.log[-1], names(sites)) == (
        "REFUSED",
        ["D", "A", 4, "unexpected answer"],
        set(),
    )


def test_a_site_that_offers_the_same_start_again_and_again_ends_the_search():
    searching = Search(metajob(4, 10, (0, 20), A=(2, 4)), SearchOptions(grant_up_to=True))
    for _ in range(100):
        call = searching.next()
        if isinstance(call, Done):
            break
        nodes = call.nodes if call.exact else 1
        searching.answer(call, Granted(call.earliest, nodes) if call.kind == "set" else Carried())
    assert searching.next().why == "no distribution"


# ---------------------------------------------------------------------- the machine


def test_next_gives_the_same_call_until_it_is_answered():
    sites = EmulatedSites({"A": site(4)})
    searching = search(metajob(4, 10, (0, 20), A=(1, 4)), sites)
    call = searching.next()
    assert searching.next() is call
    with pytest.raises(StateError, match="expected the answer to"):
        searching.answer(Call("cancel", "A", "m-0-A"), Carried())
    searching.answer(call, Denied("place"))
    assert searching.next() != call


@pytest.mark.parametrize("options", [
    {}, {"window_first": True}, {"grant_up_to": True}, {"max_distributions": 1, "go_on": True},
    {"repeat": True},
])  # fmt: skip
def test_a_search_goes_on_from_a_snapshot_at_every_call(options):
    def sites():
        return EmulatedSites({"A": site(8, (0, 60, 6)), "B": site(8, (0, 20, 8)), "F": site(3, fixed=True)})

    wanted = metajob(10, 30, (0, 200), A=(1, 8), B=(1, 8), F=(0, 2))
    expected = EmulatedSites.run(one := sites(), search(wanted, one, **options))
    searching = search(wanted, other := sites(), **options)
    while isinstance(searching.next(), Call):
        searching = Search.restore(json.loads(json.dumps(searching.snapshot())))
        call = searching.next()
        searching.answer(call, other.carry_out(call))
    assert searching.next() == expected
    assert Search.restore(searching.snapshot()).next() == expected


@pytest.mark.parametrize("sent", [True, False])
def test_after_a_restart_a_call_that_may_be_lost_leaves_nothing_behind(sent):
    """Whether or not the call under way reached its site, at each call."""
    wanted = metajob(10, 30, (0, 200), A=(1, 8), B=(1, 8))

    def sites():
        return EmulatedSites({"A": site(8, (0, 60, 6)), "B": site(8, (0, 20, 8))})

    calls = len(sites_run(wanted, sites(), None, sent)[0])
    for restart in range(calls):
        made, there = sites_run(wanted, sites(), restart, sent)
        done = made[-1]
        kept = {part.name for part in done.parts}
        assert names(there) == kept, restart
        assert done.outcome == "SUCCESS" or not sent, restart


def sites_run(wanted, sites, restart, sent):
    """The calls and the end of a search that is restored at call number ``restart``; and the sites."""
    searching, seen = search(wanted, sites), []
    while isinstance(call := searching.next(), Call):
        if len(seen) == restart:
            searching = Search.restore(searching.snapshot())
            if sent:
                sites.carry_out(call)
            searching.answer(searching.next(), TimedOut())
        else:
            searching.answer(call, sites.carry_out(call))
        seen.append(call)
    return [*seen, call], sites


def test_a_snapshot_of_another_version_is_refused():
    sites = EmulatedSites({"A": site(4)})
    searching = search(metajob(4, 10, (0, 20), A=(1, 4)), sites)
    searching.answer(call := searching.next(), sites.carry_out(call))
    snapshot = searching.snapshot()
    with pytest.raises(StateError, match="recover from its journal"):
        Search.restore({**snapshot, "under_way": ["set", "A", "m-1-A"]})
    with pytest.raises(StateError, match="recover from its journal"):
        Search.restore({**snapshot, "journal": snapshot["journal"][:-1]})


@pytest.mark.parametrize(("least", "options"), [
    (1, {"grant_up_to": True}),
    # Fewer nodes than min are there at first.
    (4, {"grant_up_to": True}),
    (1, {"repeat": True, "back_off": 0}),
])  # fmt: skip
def test_no_name_of_a_reservation_comes_twice(least, options):
    sites = EmulatedSites({"A": site(8, (0, 60, 6)), "B": site(8, (0, 20, 8))})
    searching = search(metajob(8, 30, (0, 200), A=(least, 8), B=(1, 8)), sites, **options)
    if "repeat" in options:
        # B is refused at first, and a competitor was there.
        searching.answer(searching.next(), Granted(0, 4))
        searching.answer(searching.next(), Carried())
        for _ in range(2):
            searching.answer(searching.next(), Denied("place"))
        assert searching.next().kind == "wait"
        searching.answer(searching.next(), Waited(True))
    sites.run(searching)
    intents = [row[2] for row in searching.journal if row[0] == "intent"]
    # A trial with fewer nodes has the name of the trial that was denied.
    assert len(intents) - len(set(intents)) == ("repeat" in options)


@pytest.mark.parametrize(("name", "owner"), [
    ("m1-2-A", "m1"), ("m1-2-a-b.1", "m1"), ("m12-0-A", "m12"), ("m1-x-A", ""), ("m1", ""), ("m1-2-", ""),
])  # fmt: skip
def test_the_metajob_of_a_name(name, owner):
    assert metajob_of(name) == owner


def test_distributions_come_one_by_one():
    assert len(list(islice(distributions([(0, 10**6)] * 9, 10**6), 1000))) == 1000
