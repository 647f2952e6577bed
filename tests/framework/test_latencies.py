"""What the daemon measures of a batch system: from a decision to a start, from an end until it is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from building import described

from headway import decisions as d
from headway import events as ev
from headway.journal import Journal, RunInfo
from headway.journal.latencies import KEPT, SAVED_AS, Latencies, LatencyMeter, measured, moment
from headway.model import ClusterDescription


def lived(
    meter: LatencyMeter, job: str, decided: float, began: float, ended: float, told: float, **more: str
) -> None:
    """One job's life as the engine tells it."""
    meter.cycle(decided, [ev.JobSubmitted(decided, described(job, 1, 100))], [d.Start(job)])
    meter.cycle(began + 0.1, [ev.JobStarted(began, job)], [])
    meter.cycle(told, [ev.JobEnded(ended, job, **more)], [])


def of_one(meter: LatencyMeter) -> Latencies:
    return meter.latencies().get("", Latencies())


def test_a_start_counts_from_its_decision_and_an_end_to_the_cycle_that_knows_it() -> None:
    meter = LatencyMeter()
    lived(meter, "a", 10.25, 11.75, 50.25, 52.5)
    assert of_one(meter) == Latencies((1.5,), (2.25,))


@pytest.mark.parametrize(
    ("stated", "after", "before", "expected"),
    [
        (12.25, (12.5,), 12.0, 12.25),  # as precise as it can be
        (12.0, (), 20.0, 12.5),
        (12.0, (10.0, 11.0), 20.0, 12.5),
        (12.0, (10.0, 12.5), 20.0, 12.75),  # later than a look that did not show it
        (12.0, (10.0,), 12.5, 12.25),  # known before the second was over
        (12.0, (12.25, 12.5), 12.75, 12.625),
        (12.0, (13.5,), 20.0, 12.5),  # clocks that differ
    ],
)
def test_of_a_whole_second_the_part_counts_in_which_it_can_have_been(
    stated: float, after: tuple[float, ...], before: float, expected: float
) -> None:
    assert moment(stated, after, before) == expected


def test_whole_seconds_are_narrowed_by_the_decision_the_looks_and_the_cycle() -> None:
    meter = LatencyMeter()
    looks = iter([(11.5, 12.25), (50.25, 50.75), (60.5, 61.0), (70.0, 70.125)])

    def told(now: float, event: ev.Event) -> None:
        meter.cycle(now, [event], [], lambda job_id: next(looks))

    meter.cycle(10.25, [], [d.Start("a")])
    told(12.5, ev.JobStarted(12.0, "a"))
    told(51.5, ev.JobEnded(50.0, "a"))
    meter.cycle(60.75, [], [d.Start("b")])
    told(61.25, ev.JobStarted(60.0, "b"))
    told(70.25, ev.JobEnded(70.0, "b"))
    found = of_one(meter)
    assert found.start == (2.0, 0.125)
    assert found.end == (0.875, 0.125)
    assert found.look == (0.75, 0.5, 0.5, 0.125)
    assert found.whole_seconds
    assert LatencyMeter(meter.saved()).latencies()[""] == found


def test_a_look_that_told_of_several_counts_once() -> None:
    meter = LatencyMeter()
    meter.cycle(1.0, [], [d.Start("a"), d.Start("b")])
    both = [ev.JobStarted(2.5, "a"), ev.JobStarted(2.5, "b")]
    meter.cycle(3.0, both, [], lambda job_id: (2.0, 2.75))
    assert of_one(meter) == Latencies((1.5, 1.5), (), (0.75,))


def test_the_lag_is_what_the_looks_do_not_explain() -> None:
    assert Latencies((), (5.0, 5.5, 6.0), (1.0,)).lag() == pytest.approx(5.0)
    assert Latencies((), (0.25,), (2.0,)).lag() == 0.0
    assert Latencies((), (0.25,)).lag() == Latencies((), (), (2.0,)).lag() == 0.0


def test_a_job_that_is_ended_at_its_limit_counts_from_there() -> None:
    meter = LatencyMeter()
    lived(meter, "a", 10.25, 10.25, 130.25, 131.25, outcome="timed out")
    assert of_one(meter).end == (21.0,)


@pytest.mark.parametrize("outcome", ["vanished"])
def test_what_nobody_timed_is_not_counted(outcome: str) -> None:
    meter = LatencyMeter()
    lived(meter, "a", 10.25, 11.75, 50.25, 52.5, outcome=outcome)
    assert of_one(meter).end == ()


def test_what_others_started_and_what_was_refused_is_not_counted() -> None:
    meter = LatencyMeter()
    meter.cycle(1.0, [ev.JobStarted(1.5, "theirs")], [d.Start("ours")])
    meter.cycle(2.0, [ev.DecisionFailed(2.0, d.Start("ours"), "no")], [])
    meter.cycle(30.0, [ev.JobStarted(30.5, "ours")], [])
    assert of_one(meter).start == ()


def test_hours_are_an_outage_and_no_latency() -> None:
    meter = LatencyMeter()
    lived(meter, "a", 10.25, 5000.25, 6000.25, 9000.25)
    assert not of_one(meter)


def test_it_is_kept_over_restarts_newest_samples_only_and_apart_by_cluster() -> None:
    meter = LatencyMeter(cluster_of=lambda job: job.partition(":")[0])
    for number in range(KEPT + 5):
        lived(meter, f"x:{number}", 0.25, 0.25 + number, 900.25, 901.0)
    lived(meter, "y:1", 0.25, 3.25, 900.25, 900.75)
    again = LatencyMeter(meter.saved()).latencies()
    assert again == meter.latencies()
    # Samples beyond ten minutes are none.
    assert again["x"].start[-1] == min(KEPT + 4.0, 600.0)
    assert len(again["x"].start) == KEPT == len(again["x"].end)
    assert again["y"] == Latencies((3.0,), (0.5,))
    summary = meter.summary()["y"]
    assert (summary.starts, summary.start, summary.ends, summary.end) == (1, (3.0,) * 3, 1, (0.5,) * 3)
    assert meter.summary() is meter.summary()


def test_draws_are_of_what_was_measured() -> None:
    rng = np.random.default_rng(1)
    found = Latencies((1.0, 2.0), (3.0,))
    assert {found.draw_start(rng) for _ in range(50)} == {1.0, 2.0}
    assert found.draw_end(rng) == 3.0
    assert Latencies(look=(0.5,)).draw_look(rng) == 0.5
    assert Latencies().draw_start(rng) == Latencies().draw_end(rng) == 0.0


def test_a_journal_gives_what_its_last_run_that_measured_anything_knew(tmp_path: Path) -> None:
    meter = LatencyMeter()
    lived(meter, "a", 10.25, 11.75, 50.25, 52.5)
    with Journal.open(tmp_path / "journal.db") as journal:
        assert measured(journal) == {}
        for states in ({SAVED_AS: meter.saved()}, {}):
            journal.begin_run(RunInfo("drive", 1.0, "test", "", 0, ClusterDescription.flat(1)))
            journal.checkpoint(0, states)
            journal.end_run("stopped")
        assert measured(journal) == {"": Latencies((1.5,), (2.25,))}
