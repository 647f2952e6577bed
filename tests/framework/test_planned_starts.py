"""Planned starts beside real ones, from a journal; and the file of them that a campaign takes along."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import described
from click.testing import CliRunner

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome
from headway.cli import cli
from headway.errors import UserError
from headway.experiment.planned_starts import (
    PlannedStarts,
    RealCluster,
    encoded,
    planned_starts,
    read_real_cluster,
)
from headway.journal import Journal, RunInfo, planned
from headway.journal.latencies import SAVED_AS, Latencies
from headway.journal.latency_summary import LatencySummary
from headway.journal.planned import LivePlans
from headway.journal.starts_report import StartsReport
from headway.model import ClusterDescription

CLUSTER = ClusterDescription.flat(8, name="site")
DONE, REFUSED = Outcome(True), Outcome(False, "no")
#: A cycle: its time, what was told, what was decided and what became of that.
Cycle = tuple[float, list[ev.Event], list[tuple[d.Decision, Outcome]]]


def start(job: str, outcome: Outcome = DONE, *nodes: str) -> tuple[d.Decision, Outcome]:
    return d.Start(job, tuple((node, 1) for node in nodes)), outcome


def run(journal: Journal, cycles: list[Cycle], mode: str = "drive", states: dict | None = None) -> None:
    journal.begin_run(RunInfo(mode, 1.0, "test", "", 0, CLUSTER))
    for seq, (now, events, decided) in enumerate(cycles):
        journal.record_events(seq, now, events)
        journal.record_decisions(seq, [decision for decision, _ in decided])
        journal.record_outcomes(seq, [outcome for _, outcome in decided])
    journal.checkpoint(len(cycles), states or {})
    journal.end_run("stopped", ended_at=cycles[-1][0])


def of(tmp_path: Path, *runs: list[Cycle], mode: str = "drive", since: float = 0.0) -> PlannedStarts:
    with Journal.open(tmp_path / "journal.db") as journal:
        for cycles in runs:
            run(journal, cycles, mode)
        found = planned_starts(journal, since)
    assert found is not None
    return found.starts[mode]


def began(job: str, planned: float, time: float) -> list[Cycle]:
    return [(planned, [], [start(job)]), (time + 1, [ev.JobStarted(time, job)], [])]


def test_how_much_later_than_planned_jobs_begin(tmp_path):
    found = of(tmp_path, [*began("a", 10.25, 11.5), *began("b", 20.25, 23.5)])
    assert (found.planned, found.began, found.later, found.mean) == (2, 2, (2.25, 3.15, 3.25), 2.25)
    assert str(found) == (
        "2 of 2 planned starts took place, half within 2.2 s, 95 % within 3.1 s, all within 3.2 s"
    )


def test_whole_seconds_are_never_before_the_plan(tmp_path):
    found = of(tmp_path, [(10.5, [], [start("a")]), (10.9, [ev.JobStarted(10.0, "a")], [])])
    assert found.later == (0.2, 0.2, 0.2)


def test_what_is_refused_or_fails_is_counted_and_may_be_planned_again(tmp_path):
    found = of(
        tmp_path,
        [
            (10.25, [], [start("a", REFUSED), start("b")]),
            (11.25, [ev.DecisionFailed(11.0, d.Start("b"), "node is down")], []),
            *began("a", 20.25, 21.25),
        ],
    )
    assert (found.planned, found.failed, found.began, found.later[0]) == (3, 2, 1, 1.0)


@pytest.mark.parametrize(
    "event", [ev.JobEnded(12.0, "a", "cancelled"), ev.JobHeld(12.0, "a"), ev.JobRequeued(12.0, "a")]
)
def test_a_plan_whose_job_ends_or_is_held_first_is_withdrawn(tmp_path, event):
    found = of(tmp_path, [(10.25, [], [start("a")]), (12.5, [event], [])])
    assert (found.planned, found.withdrawn, found.began) == (1, 1, 0)


def test_a_watched_cluster_starts_jobs_later_than_the_first_plan_or_unplanned(tmp_path):
    cycles: list[Cycle] = [
        (10.25, [ev.JobSubmitted(10.0, described("a", 1, 60)), ev.JobSubmitted(10.0, described("b", 1, 60))],
         [start("a", REFUSED)]),
        (30.25, [], [start("a", REFUSED)]),
        (40.25, [ev.JobStarted(40.125, "a"), ev.JobStarted(40.125, "b")], []),
    ]  # fmt: skip
    found = of(tmp_path, cycles, mode="monitor")
    assert (found.planned, found.failed, found.later[0], found.unplanned) == (1, 0, 29.875, 1)


def test_what_ran_before_the_daemon_is_not_counted_unless_the_run_before_had_planned_it(tmp_path):
    before: list[Cycle] = [(10.25, [], [start("a")])]
    after: list[Cycle] = [(20.25, [ev.JobStarted(12.25, "a"), ev.JobStarted(3.5, "old")], [])]
    found = of(tmp_path, before, after)
    assert (found.planned, found.later[0], found.unplanned) == (1, 2.0, 0)


def test_other_nodes_than_planned_are_told(tmp_path):
    cycles: list[Cycle] = [
        (10.25, [], [start("a", DONE, "n1"), start("b", DONE, "n2")]),
        (11.25, [ev.JobStarted(11.0, "a", (("n1", 1),)), ev.JobStarted(11.0, "b", (("n3", 1),))], []),
    ]
    assert of(tmp_path, cycles).elsewhere == 1


def test_only_plans_since_then_count_and_what_is_not_known_is_open(tmp_path):
    found = of(tmp_path, [*began("a", 10.25, 11.25), (20.25, [], [start("b")])], since=15.0)
    assert (found.planned, found.began, found.open, found.later) == (1, 0, 1, ())


@pytest.mark.parametrize("apart", [False, True])
def test_what_was_planned_before_counts_for_nothing_and_did_not_begin_unplanned(tmp_path, apart):
    first, second = began("a", 10.25, 40.0)
    runs = ([first], [(30.25, [], []), second]) if apart else ([first, second],)
    found = of(tmp_path, *runs, mode="monitor", since=20.0)
    assert (found.planned, found.began, found.unplanned, found.open) == (0, 0, 0, 0)


def test_emulated_runs_are_no_real_ones(tmp_path):
    with Journal.open(tmp_path / "journal.db") as journal:
        run(journal, began("a", 10.25, 11.25), "dry-run")
        assert planned_starts(journal) is None


REAL = RealCluster("site", 11.25, Latencies((1.0,), (2.0,), (0.5,), True), {"drive": PlannedStarts(2, 1)})


def test_what_is_written_is_read(tmp_path):
    file = tmp_path / "cluster.json"
    file.write_text(encoded(REAL))
    assert read_real_cluster(file, "here") == REAL


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "found No such file"),
        ("[1]", "found something else"),
        ('{"cluster": "x", "latencies": {"start": [-1]}}', "expected latencies from 0 to 600 s"),
        ('{"cluster": "x", "starts": {"drive": {"later": [1]}}}', "expected 3 quantiles"),
    ],
)
def test_something_else_is_refused(tmp_path, text, says):
    file = tmp_path / "cluster.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UserError, match=says) as error:
        read_real_cluster(file, "c.yaml: method.measured")
    assert str(error.value).startswith(f"c.yaml: method.measured: {file}: ")


@pytest.fixture
def site(tmp_path) -> Path:
    """A configuration with an empty journal."""
    config = tmp_path / "site.yaml"
    config.write_text(f"plugins: [easy]\njournal: {tmp_path / 'journal.db'}\n")
    Journal.open(tmp_path / "journal.db").close()
    return config


def test_the_command_shows_a_journal_and_writes_the_file(tmp_path, site):
    with Journal.open(tmp_path / "journal.db") as journal:
        run(journal, began("a", 10.25, 11.5), states={SAVED_AS: {"": {"start": [1.25], "end": [2.0]}}})
        run(journal, began("b", 30.25, 40.5), "monitor")
    file = tmp_path / "cluster.json"
    done = CliRunner().invoke(cli, ["starts", "-c", str(site), "--out", str(file)])
    assert done.exit_code == 0, done.output
    assert "driven: 1 of 1 planned starts took place, half within 1.2 s" in done.output
    assert "only watched: 1 of 1 planned starts took place, half within 10.2 s" in done.output
    assert "latencies: from a decision to the start half within 1.2 s" in done.output
    assert read_real_cluster(file, "").latencies == Latencies((1.25,), (2.0,))


def test_the_command_says_what_a_journal_lacks(tmp_path, site):
    done = CliRunner().invoke(cli, ["starts", "-c", str(site)])
    assert isinstance(done.exception, UserError) or done.exit_code == 2
    assert "a run that drove or watched" in (done.output + str(done.exception))
    with Journal.open(tmp_path / "journal.db") as journal:
        run(journal, began("a", 10.25, 11.5), "monitor")
    done = CliRunner().invoke(cli, ["starts", "-c", str(site), "--since", "1h"])
    assert "no run in that time" in done.output
    assert "latencies: none measured yet (a daemon in mode drive measures them)" in done.output


def test_the_newest_are_counted_without_reading_what_is_older(tmp_path, monkeypatch):
    """What was planned before and not carried out yet is looked up job by job."""
    old = [cycle for n in range(100) for cycle in began(f"o{n}", 10.0 + 3 * n, 11.0 + 3 * n)]
    late = [
        (5000.0, [], [start("late"), start("again"), start("lost"), start("refused", REFUSED)]),
        (5001.0, [ev.JobStarted(5000.5, "again")], []),
        (5002.0, [ev.JobRequeued(5001.5, "again")], []),
    ]
    new = [
        (6000.0, [ev.JobSubmitted(6000.0, described("new", submit=6000))], []),
        *began("new", 6001.0, 6002.0),
        (6004.0, [], [start("again"), start("lost"), start("refused")]),
        (6005.0, [ev.JobStarted(5999.0, "late"), ev.JobStarted(6004.5, "lost")], []),
        (6006.0, [ev.JobStarted(6005.0, "again"), ev.JobStarted(6005.0, "unplanned")], []),
    ]
    read = []
    cycles = Journal._cycles

    def counted(self, run_id, after=None):
        for cycle in cycles(self, run_id, after):
            read.append(cycle.now)
            yield cycle

    monkeypatch.setattr(Journal, "_cycles", counted)
    found = of(tmp_path, [*old, *late, *new], since=6000.0)
    # `late` and `lost` were planned before; `refused` waits.
    assert (found.planned, found.began, found.open, found.unplanned) == (3, 2, 1, 1)
    assert found.withdrawn == found.failed == 0
    assert min(read) == 6000.0


@pytest.mark.parametrize("length", range(6))
def test_the_last_cycle_before_a_moment(tmp_path, length):
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.begin_run(RunInfo("drive", 1.0, "test", "", 0, CLUSTER))
        seqs = [0, 1, 5, 6, 40][:length]
        for seq in seqs:
            journal.record_events(seq, 10.0 * seq, [])
        for time in (-1.0, 0.0, 5.0, 10.0, 11.0, 50.0, 55.0, 60.5, 400.0, 401.0):
            expected = max((seq for seq in seqs if 10.0 * seq < time), default=None)
            assert journal.last_before(1, time) == expected, time
        assert journal.span(1) == ((10.0 * seqs[0], 10.0 * seqs[-1]) if seqs else None)


def test_a_daemon_counts_what_its_journal_says_later(tmp_path):
    cycles = [
        (5.0, [ev.JobSubmitted(1.0, described("old", 1, 10))], []),
        *began("a", 10.25, 11.5),
        (
            13.0,
            [ev.JobStarted(11.75, "old"), ev.JobSubmitted(12.75, described("b", 1, 10))],
            [start("b", REFUSED)],
        ),
        (14.0, [ev.JobStarted(13.75, "c")], [start("d")]),
        (15.0, [ev.JobEnded(14.75, "d")], []),
    ]
    live = LivePlans("site", "drive", carried_out=True)
    assert live.report({}) == StartsReport("site", None, None, {}, {})
    for now, events, decided in cycles:
        live.cycle(now, events, [what for what, _ in decided], [outcome for _, outcome in decided])
    found = live.report({"": LatencySummary(1, (1.0, 1.0, 1.0))})
    assert (found.since, found.until) == (5.0, 15.0)
    told = found.starts["drive"]
    assert (told.planned, told.began, told.failed, told.withdrawn, told.unplanned) == (3, 1, 1, 1, 1)
    assert of(tmp_path, cycles).planned == told.planned


def test_of_very_many_starts_a_daemon_remembers_the_newest(monkeypatch):
    monkeypatch.setattr(planned, "KEPT", 2)
    live = LivePlans("site", "drive", carried_out=True)
    live.cycle(0.0, [], [], [])
    for number, late in enumerate((9.25, 1.25, 2.25)):
        at = 100.0 * (number + 1)
        live.cycle(at, [], [d.Start(str(number), ())], [DONE])
        live.cycle(at + 50, [ev.JobStarted(at + late, str(number))], [], [])
    told = live.report({}).starts["drive"]
    assert (told.began, told.planned, told.later[-1], told.mean) == (3, 3, 2.25, 1.75)
