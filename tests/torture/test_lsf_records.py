"""What became of a job of LSF, from lines of ``lsb.events`` as a real mbatchd (volclava) wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.history import Asked, History
from torture.lsf import Lsf
from torture.stamps import Run
from torture.stream import Wanted
from torture.system import Records
from torture.verdict import Judge

AT = 1795447903
STARTED = f'"JOB_START" "22" {AT} 18 4 0 0 100.0 1 "lsfb" "" "" 0 0 "select[type == local] order[r15s:pg]"'
CANCELLED = f'"JOB_STATUS" "22" {AT} 18 32 0 0 0.0000 {AT} 0 0 2 0 0'
REQUEUED = f'"JOB_REQUEUE" "22" {AT} 18 0'
ENDED = (
    f'"JOB_STATUS" "22" {AT + 1} 18 64 0 0 0.0282 {AT + 1} 1 0.006015 0.022211 5244 0 -1 0 0 1123 0 0 0 48 '
    "-1 0 0 0 23 13 -1 0 0 0 0"
)


def judged(directory: Path, *lines: str) -> tuple[list[str], Records]:
    """The faults that are not LSF's own, and what its records tell, of one job that was cancelled."""
    lsf = object.__new__(Lsf)
    lsf.root, lsf.nodes = directory, Lsf.hosts
    history = History(directory / "history.jsonl")
    history.want(Wanted(1, 0, 1, 1, False, 1.0))
    history.ask(Asked(1, "submit", (), AT - 7, AT - 6, True, "", "18"))
    history.ask(Asked(1, "cancel", (), AT - 0.3, AT + 0.2, True, "", ""))
    runs = {"t1": [Run("t1", AT + 0.3, AT + 1.3, "end", "||lsfb 1")]}
    (directory / "work/logdir").mkdir(parents=True)
    (directory / "work/logdir/lsb.events").write_text("".join(f"{line}\n" for line in lines))
    records = lsf.records(history, runs)
    found = Judge(lsf, history, runs, records, {"t1": [AT - 0.5, AT + 0.5]}).all()
    return [one.kind for one in found if not one.system], records


def test_a_brun_that_was_on_its_way_when_its_job_was_cancelled_is_no_requeue(tmp_path: Path) -> None:
    found, records = judged(tmp_path, CANCELLED, REQUEUED, STARTED, ENDED)
    assert found == [] and records.requeues == {}
    assert list(records.oddities.values()) == [1]


@pytest.mark.parametrize("before", [(STARTED, CANCELLED), ()])
def test_what_was_sent_back_otherwise_is_a_requeue(tmp_path: Path, before: tuple[str, ...]) -> None:
    found, records = judged(tmp_path, *before, REQUEUED, STARTED, ENDED)
    assert "requeued by nobody" in found and records.requeues == {"t1": [AT]}
    assert records.oddities == {}
