"""Jobs that are handed to the emulated cluster while it runs."""

from __future__ import annotations

import pytest
from building import traced

from headway.decisions import Start
from headway.events import JobEnded, JobStarted, JobSubmitted
from headway.model import ClusterDescription
from headway_adapters.emulated import EmulatedAdapter


def test_a_later_job_is_told_started_and_ends():
    adapter = EmulatedAdapter(ClusterDescription.flat(8), [traced("1", 2, runtime=50)])
    now, (submitted,) = adapter.wait(None)
    assert (now, submitted.job.id) == (0.0, "1")
    adapter.apply(now, [Start("1")])
    assert [type(event) for event in adapter.wait(20.0)[1]] == [JobStarted]
    adapter.submit(traced("2", 4, submit=30, runtime=10))
    now, events = adapter.wait(None)
    assert (now, [type(event) for event in events]) == (30.0, [JobSubmitted])
    adapter.apply(now, [Start("2")])
    ended = []
    while (moment := adapter.wait(None)) is not None:
        ended += [(event.job_id, event.time) for event in moment[1] if isinstance(event, JobEnded)]
    assert ended == [("2", 40.0), ("1", 50.0)]
    assert [result.job.id for result in adapter.results()] == ["1", "2"]


def test_an_emulation_that_had_come_to_its_end_goes_on():
    adapter = EmulatedAdapter(ClusterDescription.flat(8), [], start=100.0)
    assert adapter.wait(None) is None
    adapter.submit(traced("1", submit=100))
    assert [type(event) for event in adapter.wait(None)[1]] == [JobSubmitted]


def test_the_workload_that_was_given_is_not_changed():
    workload = [traced("1")]
    adapter = EmulatedAdapter(ClusterDescription.flat(8), workload)
    adapter.submit(traced("2", submit=5))
    assert len(workload) == 1


@pytest.mark.parametrize("time", [5.0, 15.0])
def test_nothing_is_submitted_in_the_past_or_out_of_order(time):
    adapter = EmulatedAdapter(ClusterDescription.flat(8), [traced("1", submit=20)], start=10.0)
    with pytest.raises(ValueError, match="before"):
        adapter.submit(traced("2", submit=time))
