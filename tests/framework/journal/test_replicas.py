"""Which copies of datasets a journal says were left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway import decisions as d
from headway import events as ev
from headway.adapter import KnownReplica, Outcome
from headway.journal import Journal, RunInfo
from headway.journal.replicas import replicas_after
from headway.model import ClusterDescription

COPY, DROP = d.Copy("x", "b", "a"), d.Drop("x", "b")
BEGUN = ev.DatasetCopying(1.0, "x", "b", "a")
CAME = ev.DatasetCopied(2.0, "x", "b", "a", 1.0)
LOST = ev.DatasetLost(3.0, "x", "b")
FAILED = ev.CopyFailed(3.0, "x", "b", "a")
YES, NO = Outcome(True), Outcome(False, "no")

COPYING = KnownReplica("x", "b", "copying", "a")
THERE = KnownReplica("x", "b", "there")
DROPPING = KnownReplica("x", "b", "dropping")


@pytest.mark.parametrize(
    ("history", "left"),
    [
        ([], None),
        ([(COPY, None)], COPYING),
        ([(COPY, YES)], COPYING),
        ([(COPY, NO)], None),
        ([(COPY, YES), (BEGUN, None)], COPYING),
        ([(COPY, YES), (BEGUN, None), (COPY, NO)], COPYING),
        ([(COPY, YES), (BEGUN, None), (FAILED, None)], None),
        ([(COPY, YES), (BEGUN, None), (CAME, None)], THERE),
        ([(CAME, None), (COPY, None)], THERE),
        ([(CAME, None), (DROP, None)], DROPPING),
        ([(CAME, None), (DROP, YES), (DROP, NO)], DROPPING),
        ([(CAME, None), (DROP, NO)], THERE),
        ([(CAME, None), (DROP, YES), (LOST, None)], None),
        ([(CAME, None), (DROP, YES), (CAME, None)], THERE),
        ([(DROP, None)], None),
        ([(CAME, None), (LOST, None), (COPY, None)], COPYING),
    ],
)
def test_what_is_left(history: list, left: KnownReplica | None) -> None:  # type: ignore[type-arg]
    assert replicas_after(history) == ([left] if left is not None else [])


def run(journal: Journal, mode: str, *cycles: tuple[list[ev.Event], list[d.Decision], list[Outcome]]) -> None:
    journal.begin_run(RunInfo(mode, 1.0, "0", "", 0, ClusterDescription.flat(1), {}))
    for seq, (events, decisions, outcomes) in enumerate(cycles, 1):
        journal.record_events(seq, float(seq), events)
        if decisions:
            journal.record_decisions(seq, decisions)
            if outcomes:
                journal.record_outcomes(seq, outcomes)
    journal.end_run("over")


def test_runs_follow_each_other_and_a_decision_its_events(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "j.db") as journal:
        assert journal.replicas() == []
        run(journal, "drive", ([], [COPY], []))
        assert journal.replicas() == [COPYING]
        run(
            journal,
            "drive",
            ([FAILED], [], []),
            ([], [COPY], [YES]),
            ([BEGUN], [], []),
            ([CAME], [DROP], [YES]),
        )
        assert journal.replicas() == [DROPPING]
        run(journal, "drive", ([LOST], [COPY, DROP], [NO, NO]), ([CAME], [], []))
        assert journal.replicas() == [THERE]


def test_what_a_run_only_wished_for_or_emulated_does_not_count(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "j.db") as journal:
        run(journal, "monitor", ([], [COPY], []))
        run(journal, "dry-run", ([CAME], [], []))
        assert journal.replicas() == []
        run(journal, "drive", ([CAME], [], []))
        run(journal, "monitor", ([LOST], [], []))
        assert journal.replicas() == []
