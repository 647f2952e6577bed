"""A job's history over restarts of the daemon: what a run only found as it was is not told again."""

from __future__ import annotations

from pathlib import Path

from building import described

from headway import decisions as d
from headway import events as ev
from headway.journal import Journal, RunInfo
from headway.journal.job_history import told_once
from headway.model import ClusterDescription

INFO = RunInfo("drive", 1.0, "test", "", 0, ClusterDescription.flat(4))
JOB = described("1", submit=5.0)


def told(path: Path, *runs: list[tuple[float, list[ev.Event], list[d.Decision]]]) -> list[tuple[int, str]]:
    """What remains of job 1's history over these runs: (run, kind)."""
    with Journal.open(path / "journal.db") as journal:
        for cycles in runs:
            journal.begin_run(INFO)
            for seq, (now, events, decisions) in enumerate(cycles, 1):
                journal.record_events(seq, now, events)
                if decisions:
                    journal.record_decisions(seq, decisions)
            journal.end_run("stopped")
        return [(entry.run_id, type(entry.what).__name__) for entry in told_once(journal.job_history("1"))]


BEGUN = [ev.JobSubmitted(5.0, JOB), ev.JobStarted(10.0, "1", (("n1", 1),))]


def test_submission_and_start_are_told_once_over_any_number_of_restarts(tmp_path: Path) -> None:
    first = [(5.0, [BEGUN[0]], [d.Start("1")]), (10.0, [BEGUN[1]], [])]
    again = [(20.0, BEGUN, [])]
    last = [(30.0, BEGUN, []), (40.0, [ev.JobEnded(40.0, "1")], [])]
    assert told(tmp_path, first, again, again, last, [(50.0, [*BEGUN, ev.JobEnded(40.0, "1")], [])]) == [
        (1, "JobSubmitted"), (1, "Start"), (1, "JobStarted"), (4, "JobEnded"),
    ]  # fmt: skip


def test_what_happened_while_headway_was_away_is_told(tmp_path: Path) -> None:
    first = [(5.0, [BEGUN[0]], [])]
    assert told(tmp_path, first, [(20.0, BEGUN, [])]) == [(1, "JobSubmitted"), (2, "JobStarted")]


def test_a_second_execution_is_told_and_so_is_each_refusal(tmp_path: Path) -> None:
    refused = ev.DecisionFailed(31.0, d.Start("1"), "no")
    first = [(5.0, [BEGUN[0]], []), (10.0, [BEGUN[1]], [])]
    second = [
        (20.0, BEGUN, []), (30.0, [ev.JobRequeued(30.0, "1")], [d.Start("1")]), (31.0, [refused], []),
        (50.0, [refused], []), (60.0, [ev.JobStarted(60.0, "1")], []),
    ]  # fmt: skip
    assert [kind for _, kind in told(tmp_path, first, second)] == [
        "JobSubmitted", "JobStarted", "JobRequeued", "Start", "DecisionFailed", "DecisionFailed",
        "JobStarted",
    ]  # fmt: skip


def test_a_state_that_each_run_finds_with_its_own_time_is_told_once(tmp_path: Path) -> None:
    first = [(5.0, BEGUN, []), (12.0, [ev.JobSuspended(12.0, "1")], [])]
    again = [(20.0, [*BEGUN, ev.JobSuspended(20.0, "1")], [])]
    assert [kind for _, kind in told(tmp_path, first, again, again)] == [
        "JobSubmitted", "JobStarted", "JobSuspended",
    ]  # fmt: skip
