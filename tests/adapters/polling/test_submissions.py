"""A requeued job keeps the moment at which it was submitted, whatever the batch system states then."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from building import described

from headway import events as ev
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription
from headway_adapters.federation import Federation
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.polling.submissions import first_submitted, nobody_knows


def look(submit: float, *, restarts: int = 1, state: str = "pending", name: str = "1") -> Snapshot:
    job = SnapshotJob(described(name, 1, 10, submit), state, restarts=restarts)
    return Snapshot(1000.0, {name: job})


def moment(snapshot: Snapshot, name: str = "1") -> float:
    return snapshot.jobs[name].job.submit_time


def nine(jobs: Collection[str]) -> dict[str, float]:
    assert set(jobs) == {"1"}
    return {"1": 9.0}


def test_it_is_that_of_the_look_before() -> None:
    assert moment(first_submitted(look(50.0), look(20.0, restarts=0), nine)) == 20.0
    # And so it goes on.
    kept = first_submitted(look(50.0), look(20.0, restarts=0), nobody_knows)
    assert moment(first_submitted(look(70.0, restarts=2), kept, nobody_knows)) == 20.0


def test_at_the_first_look_it_is_what_an_earlier_run_knew() -> None:
    assert moment(first_submitted(look(50.0), None, nine)) == 9.0
    assert moment(first_submitted(look(50.0), None, nobody_knows)) == 50.0


def test_a_later_moment_is_never_taken() -> None:
    assert moment(first_submitted(look(5.0), None, nine)) == 5.0
    assert moment(first_submitted(look(5.0), look(20.0), nine)) == 5.0


@pytest.mark.parametrize("told", [look(50.0, restarts=0), look(50.0, state="ended")])
def test_of_other_jobs_nobody_is_asked(told: Snapshot) -> None:
    """A number that is given again is another job's."""
    assert first_submitted(told, None, nine) is told


def test_the_journal_knows_it_of_jobs_that_are_not_over(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        for run in range(2):
            journal.begin_run(RunInfo("drive", float(run), "test", "", 0, ClusterDescription.flat(4)))
            told = [ev.JobSubmitted(5.0, described(name, 1, 10, 5.0 + run)) for name in ("1", "2", "3")]
            journal.record_events(1, 10.0, [*told, ev.JobRequeued(8.0, "1"), ev.JobEnded(9.0, "2")])
            journal.end_run("killed")
        assert journal.first_submissions(["1", "2", "9"]) == {"1": 6.0}
        assert journal.first_submissions([]) == {}


def test_a_federation_asks_in_the_names_for_all() -> None:
    class Member:
        capabilities: frozenset[type] = frozenset()
        suspended_lend = False
        moves = shows_starts = False

        def submitted_before(self, known) -> None:  # type: ignore[no-untyped-def]
            self.known = known

    a, b = Member(), Member()
    asked: list[str] = []

    def known(jobs: Collection[str]) -> dict[str, float]:
        asked.extend(jobs)
        return {job: 7.0 for job in jobs if job == "b:2_3"}

    Federation({"a": a, "b": b}, clock=lambda: 0.0).submitted_before(known)  # type: ignore[dict-item]
    assert (a.known(["1"]), b.known(["2_3", "4"])) == ({}, {"2_3": 7.0})
    assert asked == ["a:1", "b:2_3", "b:4"]
