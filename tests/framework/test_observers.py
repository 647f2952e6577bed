"""Which events a plugin with the hook ``observe`` is shown."""

from __future__ import annotations

from building import described, plugged

from headway.events import Event, JobEnded, JobSubmitted, NodeUp
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.plugins import Traits
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy


class Looking:
    """Writes down whom it was shown."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    @hookimpl
    def observe(self, event: Event) -> None:
        self.log.append(f"{type(self).__name__} {type(event).__name__}")


class Arrivals(Looking):
    traits = Traits(observes=(JobSubmitted,))


class Anything(Looking):
    traits = Traits(observes=(Event,))


class Elsewhere(Looking):
    traits = Traits(observes=(NodeUp,))


class Nothing(Looking):
    traits = Traits(observes=())


class Failing(Looking):
    @hookimpl
    def observe(self, event: Event) -> None:
        raise ValueError("no")


def shown(*kinds: type[Looking]) -> tuple[list[str], Scheduler]:
    log: list[str] = []
    scheduler = Scheduler(ClusterDescription.flat(4), plugged(*(kind(log) for kind in kinds), Easy()))
    scheduler.step(0.0, [JobSubmitted(0.0, described("a"))])
    scheduler.step(0.0, [JobEnded(0.0, "a", "completed")])
    return log, scheduler


def test_a_plugin_is_shown_the_events_that_it_names() -> None:
    assert shown(Arrivals)[0] == ["Arrivals JobSubmitted"]


def test_a_plugin_that_names_none_is_shown_nothing() -> None:
    assert shown(Nothing)[0] == []


def test_events_come_one_after_the_other_to_all_in_configured_order() -> None:
    assert shown(Looking, Arrivals, Anything)[0] == [
        "Looking JobSubmitted", "Arrivals JobSubmitted", "Anything JobSubmitted",
        "Looking JobEnded", "Anything JobEnded",
    ]  # fmt: skip


def test_one_that_fails_keeps_nothing_from_the_others() -> None:
    log, scheduler = shown(Failing, Arrivals)
    assert log == ["Arrivals JobSubmitted"]
    assert [(p.plugin, p.hook) for p in scheduler.problems] == [("failing", "observe")] * 2


def test_a_scheduler_says_whether_plugins_look_at_what_happens_to_jobs():
    def looks(*plugins: object) -> bool:
        return Scheduler(ClusterDescription.flat(8), plugged(*plugins)).looks_at_jobs_events

    assert looks(Easy(), Arrivals([])) and looks(Easy(), Anything([]))
    assert not looks(Easy()) and not looks(Easy(), Nothing([])) and not looks(Easy(), Elsewhere([]))
