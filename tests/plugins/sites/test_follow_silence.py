"""No job is sent to a cluster that does not answer, nor from one."""

from __future__ import annotations

import pytest
from building import federated, plugged
from building import traced_at_home as job

from headway import decisions as d
from headway import events as ev
from headway.model import Site
from headway.scheduler import Scheduler
from headway_adapters.federation.emulated import EmulatedFederation
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.sites.follow import Follow


@pytest.mark.parametrize(
    ("silent", "said"),
    [("b", "It stays at a: b cannot take it (its cluster does not answer)"),
     ("a", "It stays at a: its cluster does not answer")],
)  # fmt: skip
def test_a_job_stays_while_a_cluster_is_silent_and_goes_when_it_answers(silent: str, said: str) -> None:
    follow = Follow(Follow.Options(movable="all", by=["load"]))
    jobs = [job("a:1", 4, 2000), job("a:2", 4, 1000, 10)]
    adapter = EmulatedFederation(federated(Site("a"), Site("b")), jobs)
    scheduler = Scheduler(adapter.describe(), plugged(follow, Fcfs()), capabilities=adapter.capabilities)
    extra: dict[float, ev.Event] = {
        5.0: ev.ClusterSilent(5, silent, "no route"), 300.0: ev.ClusterAnswers(300, silent),
    }  # fmt: skip
    routed = []
    for time in (0.0, 5.0, 10.0, 100.0, 300.0):
        now, events = adapter.wait(time) or (time, [])
        told = [extra[now]] if now in extra else []
        decided = scheduler.step(now, [*events, *told])
        routed += [now for one in decided if isinstance(one, d.Route)]
        adapter.apply(now, decided)
        if now == 100:
            assert follow.explain(scheduler.state.jobs["a:2"], "site") == said
    assert routed == [300.0], "as soon as it answers"
