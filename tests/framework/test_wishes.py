"""Monitor mode: what nothing carries out is told once, while it could still come about."""

from __future__ import annotations

import pytest
from building import described, federated, plugged

from headway import events as ev
from headway.decisions import Copy, Drop, Route
from headway.hookspecs import hookimpl
from headway.model import Dataset, Link, Site, Store
from headway.scheduler import Scheduler
from headway_plugins.data.staging import Staging

SITES = Site("a", store=Store()), Site("b", store=Store())
CLUSTER = federated(*SITES, links=[Link("a", "b", 1.0)], datasets=[Dataset("d", 10, ("a",))])


class Wishes:
    """Decides the same in each step."""

    def __init__(self, decision):
        self.decision = decision

    @hookimpl
    def control(self):
        return [self.decision] if self.decision is not None else None


#: A decision; the events before it, and what brings it about; what undoes that.
WISHES = [
    (Copy("d", "b", "a"), (), ev.DatasetCopied(20, "d", "b"), ev.DatasetLost(30, "d", "b")),
    (Drop("d", "b"), (ev.DatasetCopied(0, "d", "b"),), ev.DatasetLost(20, "d", "b"),
     ev.DatasetCopied(30, "d", "b")),
    (Route("j", "b:q"), (), ev.JobRouted(20, "j", "b:q"), ev.JobRouted(30, "j", "a:q")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wish", "before", "done", "undone"), WISHES, ids=[type(wish[0]).__name__ for wish in WISHES]
)
def test_what_would_be_done_is_said_once(wish, before, done, undone):
    scheduler = Scheduler(CLUSTER, plugged(Wishes(wish)), monitor=True)
    arrived = ev.JobSubmitted(0, described("j", 1, pool="a:q"))
    assert scheduler.step(0, [arrived, *before]) == [wish]
    assert scheduler.step(10, [ev.Tick(10)]) == []
    # It has come about. When that is over, it is said again.
    scheduler.plugins.by_name["wishes"].decision = None
    scheduler.step(20, [done])
    scheduler.plugins.by_name["wishes"].decision = wish
    assert scheduler.step(30, [undone]) == [wish]
    assert scheduler.step(40, [ev.Tick(40)]) == []


def test_a_route_to_another_pool_is_another_wish():
    third = federated(*SITES, Site("c", store=Store()))
    plugin = Wishes(Route("j", "b:q"))
    scheduler = Scheduler(third, plugged(plugin), monitor=True)
    scheduler.step(0, [ev.JobSubmitted(0, described("j", 1, pool="a:q"))])
    plugin.decision = Route("j", "c:q")
    assert scheduler.step(1, [ev.Tick(1)]) == [plugin.decision]


def test_a_daemon_that_watches_wishes_for_a_copy_once():
    scheduler = Scheduler(CLUSTER, plugged(Staging()), monitor=True, capabilities=frozenset({Copy, Drop}))
    waits = described("j", 1, pool="b:q", attributes={"data": "d"})
    copies = scheduler.step(0, [ev.JobSubmitted(0, waits)])
    for now in range(1, 20):
        copies += scheduler.step(now, [ev.Tick(now)])
    assert copies == [Copy("d", "b", "a", "job j waits for it")]
    (waiting,) = scheduler.state.jobs.values()
    assert scheduler.state.why_waiting(waiting) == "it waits for dataset d (its copy has not begun)"
