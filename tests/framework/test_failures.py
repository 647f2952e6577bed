"""What the log is told of plugins that fail again and again, and what stands at the end of a run."""

from __future__ import annotations

import pytest
from building import traced

from headway.emulation import emulate
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig, Problem
from headway.plugins.failures import Failures
from headway.results import RunResult


def raised(message: str = "ValueError: boom", place: str = "mine.py:5", hook: str = "schedule") -> Problem:
    return Problem("mine", hook, message, "Traceback ...", place)


def told(failures: Failures, problems: list[Problem], now: float = 0.0) -> list[tuple[int, bool]]:
    found = [failures.note(problem, now) for problem in problems]
    return [(one.times, one.new) for one in found if one is not None]


def test_an_exception_that_is_raised_again_at_its_place_is_counted_and_told_at_powers_of_ten() -> None:
    failures = Failures()
    problems = [raised(f"ValueError: boom at {at}") for at in range(1234)]
    assert told(failures, problems) == [(1, True), (10, False), (100, False), (1000, False)]
    assert [(one.times, one.new) for one in failures.untold()] == [(1234, False)]
    assert list(failures.untold()) == []


def test_each_place_plugin_and_hook_is_told_by_itself() -> None:
    problems = [raised(), raised(place="mine.py:9"), raised(hook="observe"), raised()]
    assert told(Failures(), problems) == [(1, True), (1, True), (1, True)]


def test_a_run_without_an_end_is_reminded_each_hour() -> None:
    failures = Failures(remind=3600.0)
    assert told(failures, [raised()], now=5.0) == [(1, True)]
    assert told(failures, [raised(), raised()], now=3604.0) == []
    assert told(failures, [raised(), raised()], now=3605.0) == [(4, False)]


def test_the_same_impossible_wish_of_a_plugin_for_other_jobs_is_no_new_problem() -> None:
    wishes = [Problem("mine", "schedule", f"job a-{n} is not known; not started", "") for n in range(9)]
    assert told(Failures(), wishes) == [(1, True)]


def test_what_did_not_fit_the_records_is_told_of_each_job() -> None:
    odd = [Problem("state", "apply", f"JobEnded of job {n}: is not known", "") for n in range(9)]
    assert len(told(Failures(), odd)) == 9


class Raises:
    """A policy whose hooks raise when told to."""

    in_hook = ""
    until = 1_000_000
    calls = 0

    def _maybe(self, hook: str) -> None:
        if hook == self.in_hook:
            type(self).calls += 1
            if self.calls <= self.until:
                raise ValueError(f"boom {self.calls}")

    @hookimpl
    def startup(self):
        self._maybe("startup")

    @hookimpl
    def observe(self):
        self._maybe("observe")

    @hookimpl
    def queue_key(self, job):
        self._maybe("queue_key")
        return (job.seq,)

    @hookimpl
    def predict_runtime(self):
        self._maybe("predict_runtime")

    @hookimpl
    def bar_job(self):
        self._maybe("bar_job")

    @hookimpl
    def admit_job(self):
        self._maybe("admit_job")

    @hookimpl
    def order_queue(self):
        self._maybe("order_queue")

    @hookimpl
    def react(self):
        self._maybe("react")

    @hookimpl
    def prepare(self):
        self._maybe("prepare")

    @hookimpl
    def schedule(self, view):
        self._maybe("schedule")
        return [start for job in view.queue if (start := view.start(job, "fits"))]

    @hookimpl
    def control(self):
        self._maybe("control")

    @hookimpl
    def veto(self):
        self._maybe("veto")


HOOKS = (
    "startup", "observe", "queue_key", "predict_runtime", "bar_job", "admit_job", "order_queue", "react",
    "prepare", "schedule", "control", "veto",
)  # fmt: skip


def run(hook: str, until: int = 1_000_000, jobs: int = 5) -> RunResult:
    catalogue = Catalogue()
    kind = type("Raises", (Raises,), {"in_hook": hook, "until": until})
    catalogue._classes["raises"] = kind
    work = [traced(str(number), 1, 10, 20.0 * number) for number in range(jobs)]
    return emulate(ClusterDescription.flat(8), work, [PluginConfig("raises")], catalogue, label="x")


@pytest.mark.parametrize("hook", HOOKS)
def test_a_run_knows_which_plugin_failed_each_time_that_it_was_called(hook: str) -> None:
    (failure,) = run(hook).failures
    assert (failure.plugin, failure.hook, failure.always) == ("raises", hook, True)
    assert failure.message == "ValueError: boom 1" and failure.place.startswith("test_failures.py:")


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook != "startup"])
def test_a_plugin_that_failed_once_answered_otherwise(hook: str) -> None:
    (failure,) = run(hook, until=1).failures
    assert (failure.times, failure.always) == (1, False)
    assert str(failure).startswith(f"plugin 'raises' failed once in hook {hook}: ValueError: boom 1")


def test_a_run_without_failures_has_none() -> None:
    assert run("").failures == []
