"""Why jobs still wait at the end of a run."""

from __future__ import annotations

from building import traced

from headway.emulation import emulate
from headway.hookspecs import hookimpl
from headway.metrics import summarise
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload.jobs import TraceJob


class Narrow:
    """A policy that starts no wide job."""

    @hookimpl
    def schedule(self, view):
        return [s for job in view.queue if job.processors < 5 and (s := view.start(job, "narrow"))]


def reasons(jobs: list[TraceJob], policy: str = "fcfs") -> list[tuple[int, str, str]]:
    catalogue = Catalogue()
    catalogue._classes["narrow"] = Narrow
    result = emulate(ClusterDescription.flat(8), jobs, [PluginConfig(policy)], catalogue, label="x")
    found = summarise(result)["counts"]["left_waiting"]
    return [(one["jobs"], one["first"], one["why"]) for one in found]


def test_of_jobs_that_all_ran_nothing_is_said() -> None:
    assert reasons([traced("1", 1), traced("2", 8)]) == []


def test_jobs_are_counted_by_what_explain_says_of_each() -> None:
    waiting = [traced(str(n), 1, held=True) for n in range(3)]
    assert reasons([*waiting, traced("9", 1)]) == [
        (3, "0", "It cannot start: held by its user or an administrator.")
    ]


def test_a_policy_that_starts_no_wide_job_is_told_as_the_cause() -> None:
    jobs = [traced("small", 1), traced("w1", 6), traced("w2", 7)]
    assert reasons(jobs, "narrow") == [
        (1, "w1", "Enough processors are free, and the policy does not start it."),
        (
            1,
            "w2",
            "Enough processors are free for it, and for job w1, the first of the queue: the policy starts "
            "neither.",
        ),
    ]


def test_reasons_that_differ_by_numbers_are_one() -> None:
    jobs = [traced(str(n), 6, submit=float(n)) for n in range(1, 40)]
    assert [(count, first) for count, first, _ in reasons(jobs, "narrow")] == [(38, "2"), (1, "1")]


def test_of_very_many_only_the_first_are_examined() -> None:
    found = reasons([traced(str(n), 1, held=True) for n in range(1001)])
    assert [jobs for jobs, _, _ in found] == [1000, 1]
    assert found[1][2].startswith("Not examined")
