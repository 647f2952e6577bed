"""What happens when a site loses a reservation after SUCCESS: acceptance 12 of the dossier."""

from __future__ import annotations

import msgspec
import pytest
from gur_sites import metajob, names, search, site

from headway_plugins.coscheduling.calls import Call
from headway_plugins.coscheduling.emulated_sites import EmulatedSites
from headway_plugins.coscheduling.watching import Loss, Reaction, anew, losses, react

WANTED = metajob(6, 10, (0, 60), A=(1, 4), B=(1, 4))


def started():
    sites = EmulatedSites({"A": site(4), "B": site(4)})
    return sites, sites.run(search(WANTED, sites)).parts


def test_no_loss_no_reaction():
    sites, parts = started()
    assert losses(parts, sites.shown(), {}, 0, 60) == []
    assert react(parts, [], "cancel_all", 0) == Reaction()


def degrade(sites):
    sites.books["B"].lose("m-1-B", 1)


def forget(sites):
    sites.books["B"].lose("m-1-B")


@pytest.mark.parametrize(("what", "told"), [
    (degrade, "the reservation has lost nodes (DEGRADED)"), (forget, "the reservation is gone"),
])  # fmt: skip
def test_a_loss_is_told(what, told):
    sites, parts = started()
    what(sites)
    assert losses(parts, sites.shown(), {}, 0, 60) == [Loss("B", "m-1-B", told)]


def test_nodes_that_are_down_when_a_site_answers_again_have_time_to_report():
    sites, parts = started()
    degraded = {**sites.shown(), "B": [msgspec.structs.replace(sites.shown()["B"][0], state="DEGRADED")]}
    assert losses(parts, degraded, {}, 0, 60, {"B"}) == []
    assert [loss.site for loss in losses(parts, degraded, {}, 0, 60, {"A"})] == ["B"]
    forget(sites)
    assert [loss.site for loss in losses(parts, sites.shown(), {}, 0, 60, {"B"})] == ["B"], "it is gone"


def test_a_reservation_that_was_moved_is_a_loss():
    sites, parts = started()
    shown = sites.shown()
    shown["A"] = [type(one)(one.name, one.nodes, 5, 15) for one in shown["A"]]
    assert losses(parts, shown, {}, 0, 60) == [Loss("A", "m-1-A", "the reservation was moved to 5")]


def test_a_site_that_does_not_answer_has_time_before_it_is_a_loss():
    sites, parts = started()
    shown = {**sites.shown(), "A": None}
    assert losses(parts, shown, {"A": 1}, 6, 6) == losses(parts, shown, {}, 6, 6) == []
    assert losses(parts, shown, {"A": 1}, 7, 6) == [Loss("A", "m-1-A", "the site does not answer", True)]
    assert losses(parts, shown, {"A": 1}, 10, 6) == [], "it is over"


def test_what_is_over_is_no_loss_and_is_not_cancelled():
    _, parts = started()
    assert losses(parts, {"A": [], "B": []}, {}, 10, 60) == []
    assert react(parts, [Loss("A", "m-1-A", "gone")], "cancel_all", 10).calls == ()


def test_on_loss():
    _, parts = started()
    lost = [Loss("B", "m-1-B", "the reservation is gone")]
    cancels = (Call("cancel", "B", "m-1-B"), Call("cancel", "A", "m-1-A"))
    assert react(parts, lost, "keep", 0) == Reaction(tuple(lost))
    assert react(parts, lost, "cancel_all", 0) == Reaction(tuple(lost), cancels)
    assert react(parts, lost, "replan", 0) == Reaction(tuple(lost), cancels, True)


def test_a_replan_starts_now_and_has_names_of_its_own():
    sites, parts = started()
    forget(sites)
    sites.now = 7
    for call in react(parts, losses(parts, sites.shown(), {}, 7, 60), "replan", 7).calls:
        sites.carry_out(call)
    assert names(sites) == set()
    done = sites.run(search(anew(WANTED, 7, 1), sites))
    assert (done.start, names(sites, "mr1")) == (7, {"mr1-1-A", "mr1-1-B"})
