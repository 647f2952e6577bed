"""The policy that chooses between two policies."""

from __future__ import annotations

import pytest
from building import traced

from headway.emulation import emulate
from headway.errors import UserError
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig

OPTIONS = {
    "small": 2,
    "window": 4,
    "threshold": 0.5,
    "margin": 0.1,
    "mostly_small": "fcfs",
    "mostly_large": "easy",
}


def reasons(sizes, **options):
    """What each start said, for jobs of these sizes that come one a second and run for one."""
    jobs = [traced(str(n), size, 1, n) for n, size in enumerate(sizes)]
    result = emulate(
        ClusterDescription.flat(10),
        jobs,
        [PluginConfig("select", {**OPTIONS, **options})],
        Catalogue(),
        label="select",
        keep_decisions=True,
    )
    assert all(job.start_time is not None for job in result.jobs)
    return [record.decision.reason for record in result.decisions]


def test_it_begins_with_the_policy_for_large_jobs_and_switches_with_the_window():
    said = reasons([8, 8, 8, 8, 1, 1, 1, 1, 1])
    assert [at for at, reason in enumerate(said) if "switched" in reason] == [6]
    assert said[6].startswith(
        "switched from easy to fcfs: 75% of the last 4 jobs have at most 2 processors; first in the queue"
    )


def test_it_switches_back():
    said = reasons([1, 1, 1, 1, 8, 8, 8, 8])
    assert [reason.split(":")[0] for reason in said if "switched" in reason] == [
        "switched from easy to fcfs",
        "switched from fcfs to easy",
    ]


def test_inside_the_hysteresis_nothing_switches():
    # Half of the window is small, all the time: neither above 0.6 nor below 0.4.
    assert not any("switched" in reason for reason in reasons([1, 8] * 8))


def test_too_few_jobs_say_nothing():
    assert not any("switched" in reason for reason in reasons([1, 1, 1]))


def test_options_go_to_the_chosen_policy():
    with pytest.raises(UserError, match="max_skips"):
        reasons([1], mostly_large="delayed-los", options={"delayed-los": {"max_skips": -1}})


def test_it_does_not_choose_itself():
    with pytest.raises(UserError, match="another policy than select itself"):
        reasons([1], mostly_small="select")


def test_it_remembers_over_a_restart():
    kind = Catalogue().get("select")
    before, after = kind(kind.Options(**OPTIONS)), kind(kind.Options(**OPTIONS))
    before._recent.extend([True] * 4)
    before._choose()
    after.restore(before.checkpoint())
    assert (after.share, after._current) == (1.0, "fcfs")


def test_a_policy_whose_observe_takes_the_event_alone_is_shown_what_happens():
    options = {"mostly_large": "conservative", "options": {"conservative": {"guarantees": "keep"}}}
    result = emulate(
        ClusterDescription.flat(10),
        [traced(str(n), 6, 10, n) for n in range(3)],
        [PluginConfig("select", {**OPTIONS, **options})],
        Catalogue(),
        label="select",
    )
    assert [job.start_time for job in result.jobs] == [0, 10, 20]
    assert not result.failures
