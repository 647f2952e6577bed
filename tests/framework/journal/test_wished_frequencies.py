"""At which frequency a job should run, as the journal of a daemon that died tells its successor."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome, WishedFrequency
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription, JobDescription, Request

SLOW, SLOWER = 2.0e9, 1.0e9
START = d.Start("1", frequency=SLOW)
SET = ev.JobFrequencyChanged(7.0, "1", SLOW)
STARTED = ev.JobStarted(6.0, "1")
#: In a story: the daemon dies, and another begins.
DIES = "dies"


def recorded(path: Path, *story: object) -> Journal:
    """A journal with a cycle for each part of the story, from second 5 on."""
    journal = Journal.open(path / "journal.db")
    begun = False
    for at, part in enumerate(story, 5):
        if part == DIES:
            journal.end_run("killed")
            begun = False
            continue
        if not begun:
            journal.begin_run(RunInfo("drive", float(at), "test", "", 0, ClusterDescription.flat(1)))
            begun = True
        decision, outcome = part if isinstance(part, tuple) else (part, None)
        events = [decision] if isinstance(decision, ev.Event) else []
        journal.record_events(at, float(at), events)
        journal.record_decisions(at, [] if events else [decision])  # type: ignore[list-item]
        if outcome is not None:
            journal.record_outcomes(at, [outcome])
    return journal


WISHED = WishedFrequency(SLOW, asked=5.0)
RUNS = WishedFrequency(SLOW, asked=5.0, started=6.0)
HAS = WishedFrequency(SLOW, asked=5.0, started=6.0, is_set=True)
FAILED = ev.DecisionFailed(7.0, START, "no")
NOT_SET = ev.DecisionFailed(8.0, d.SetFrequency("1", SLOWER), "no")
ORDER = d.SetFrequency("1", SLOWER)
LONGER = d.SetTimeLimit("1", 900.0)


def limited(seconds: float) -> JobDescription:
    return JobDescription("1", 0.0, Request(1, seconds))


@pytest.mark.parametrize(
    ("story", "wish"),
    [
        ([d.Start("1")], None),
        ([START], WISHED),
        ([(START, Outcome(True))], WISHED),
        # Monitor mode decides as well, and nothing is done.
        ([(START, Outcome(False))], None),
        ([START, FAILED], None),
        ([START, FAILED, d.Start("1")], None),
        ([START, STARTED], RUNS),
        ([START, STARTED, SET], HAS),
        ([START, STARTED, SET, ORDER], WishedFrequency(SLOWER, asked=5.0, started=6.0)),
        ([START, STARTED, SET, ORDER, NOT_SET], HAS),
        ([START, STARTED, SET, (ORDER, Outcome(False))], HAS),
        ([START, STARTED, SET, ev.JobRequeued(9.0, "1")], None),
        ([START, STARTED, SET, ev.JobEnded(9.0, "1")], None),
        # Another daemon sees it, and dies before it set anything.
        ([START, DIES, STARTED], WISHED),
        ([START, STARTED, DIES, STARTED], RUNS),
        ([START, STARTED, SET, DIES, STARTED], HAS),
        # It began anew while nobody looked.
        ([START, STARTED, SET, DIES, ev.JobStarted(60.0, "1")], None),
        # With a longer limit, of which nobody knows what became.
        ([START, LONGER], replace(WISHED, walltime=900.0)),
        ([START, LONGER, STARTED, SET], replace(HAS, walltime=900.0)),
        ([START, LONGER, DIES, STARTED], replace(WISHED, walltime=900.0)),
        ([START, LONGER, ev.JobChanged(7.0, limited(500.0))], replace(WISHED, walltime=900.0)),
        ([START, LONGER, ev.JobChanged(7.0, limited(900.0))], WISHED),
        ([START, (LONGER, Outcome(True))], WISHED),
        ([START, (LONGER, Outcome(False))], WISHED),
        ([START, LONGER, ev.DecisionFailed(7.0, LONGER, "no")], WISHED),
        ([START, LONGER, START], WishedFrequency(SLOW, asked=7.0)),
        ([LONGER], None),
        # Somebody else started it.
        ([STARTED, ORDER], WishedFrequency(SLOWER, started=6.0)),
    ],
)  # fmt: skip
def test_what_a_journal_tells(story: list[object], wish: WishedFrequency | None, tmp_path: Path) -> None:
    with recorded(tmp_path, *story) as journal:
        assert journal.recent_frequencies(1.0) == ({} if wish is None else {"1": wish})


def test_what_was_asked_long_ago_is_not_looked_for(tmp_path: Path) -> None:
    with recorded(tmp_path, START, STARTED) as journal:
        assert journal.recent_frequencies(5.0) == {}
