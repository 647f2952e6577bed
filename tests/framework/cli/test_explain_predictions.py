"""``headway explain`` tells how long a job is predicted to run, by whom, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from building import plugged
from commandline import Headway

from headway import __version__
from headway.daemon.replay import learned
from headway.events import Event, JobEnded, JobStarted, JobSubmitted
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription, JobDescription, Request
from headway.model.modes import Mode
from headway.plugins import Catalogue
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy
from headway_plugins.prediction.recent import Recent, RecentOptions

CLUSTER = ClusterDescription.flat(4, name="four")


def submitted(name: str, at: float, processors: int = 1, user: str = "alice") -> JobSubmitted:
    return JobSubmitted(at, JobDescription(name, at, Request(processors, 7200.0), user=user))


def ran(name: str, at: float, runtime: float) -> list[tuple[float, list[Event]]]:
    return [
        (at, [submitted(name, at)]),
        (at, [JobStarted(at, name, ())]),
        (at + runtime, [JobEnded(at + runtime, name, "completed", "")]),
    ]


#: Two jobs of alice, of 100 s and 300 s, and three that are there at the end.
CYCLES: list[tuple[float, list[Event]]] = [
    *ran("1", 0.0, 100.0),
    *ran("2", 200.0, 300.0),
    (600.0, [submitted("3", 600.0, 3)]),
    (600.0, [JobStarted(600.0, "3", ())]),
    (650.0, [submitted("4", 650.0, 4), submitted("5", 650.0, 1, user="bob")]),
]


def record(config: Path, journal: Path, kept_after: int | None = None) -> Recent:
    """Record the cycles; what `recent` knows is kept after so many of them. What it knows at the end."""
    recent = Recent(RecentOptions())
    scheduler = Scheduler(CLUSTER, plugged(Easy(), recent))
    with Journal.open(journal) as opened:
        opened.begin_run(RunInfo(Mode.DRY_RUN, 0.0, __version__, config.read_text(), 0, CLUSTER))
        for seq, (now, events) in enumerate(CYCLES, 1):
            opened.record_events(seq, now, events)
            scheduler.step(now, events)
            if seq == kept_after:
                opened.checkpoint(seq, {"recent": recent.checkpoint()})
        opened.end_run("finished")
    return recent


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.write_text(f"mode: dry-run\nplugins: [easy, recent]\njournal: {tmp_path / 'runs.db'}\n")
    return path


@pytest.fixture
def explained(headway: Headway, config: Path, tmp_path: Path) -> Callable[[str], str]:
    record(config, tmp_path / "runs.db")
    return lambda job: " ".join(headway("explain", job, "-c", config, "--journal-only").out.split())


def test_a_waiting_job_is_told_its_prediction_and_what_it_follows_from(
    explained: Callable[[str], str],
) -> None:
    said = explained("4")
    assert (
        "Plugin 'recent' predicts that it runs for 200 s: the mean of its user's last 2 jobs (100 s, 300 s). "
        "It is planned with that, and may run for 7200 s." in said
    )
    assert explained("3").count("predicts that it runs for 200 s") == 1


def test_of_whom_too_little_is_known_it_says_so(explained: Callable[[str], str]) -> None:
    assert "No plugin predicts how long it runs: it is planned with 7200 s." in explained("5")


def test_without_predictors_nothing_is_said(headway: Headway, config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text().replace(", recent", ""))
    record(config, tmp_path / "runs.db")
    assert "predict" not in headway("explain", "4", "-c", config, "--journal-only").out


def test_who_outlived_it_and_who_came_before_the_last_job_ended_are_told_so() -> None:
    recent = Recent(RecentOptions())
    scheduler = Scheduler(CLUSTER, plugged(Easy(), recent))
    for now, events in CYCLES:
        scheduler.step(now, events)
    assert scheduler.next_wakeup() == 800.0
    scheduler.step(800.0, [])
    said = recent.explain(scheduler.state.jobs["3"], "prediction")
    assert scheduler.state.jobs["3"].expected_runtime == 260
    assert said == "it outlived the mean of its user's last 2 jobs and was given more time once"
    scheduler.step(900.0, [JobEnded(900.0, "3", "completed", "")])
    assert recent.explain(scheduler.state.jobs["4"], "prediction").endswith(
        "last 2 jobs when it was submitted"
    )


@pytest.mark.parametrize("kept_after", [None, 1, 3, 4, len(CYCLES)])
def test_what_was_learned_since_the_last_checkpoint_is_found_in_the_events(
    config: Path, tmp_path: Path, kept_after: int | None
) -> None:
    recent = record(config, tmp_path / "runs.db", kept_after)
    with Journal.open(tmp_path / "runs.db", create=False, read_only=True) as journal:
        run = journal.last_run()
        assert run is not None
        found = learned(journal, run, Catalogue())["recent"]
    assert found["last"] == recent.checkpoint()["last"] == {"alice": [100.0, 300.0]}
    users = {job_id: known[0] for job_id, known in recent.checkpoint()["jobs"].items()}
    assert {job_id: known[0] for job_id, known in found["jobs"].items()} == users


def test_a_live_job_is_explained_with_what_the_daemon_has_learned(
    headway: Headway, pretended_slurm: Callable[..., Path], tmp_path: Path
) -> None:
    config = pretended_slurm()
    config.write_text(config.read_text() + "plugins: [easy, recent]\n")
    assert "No plugin predicts how long it runs" in headway("explain", "15", "-c", config).out
    text = tmp_path / "then.yaml"
    text.write_text("mode: dry-run\nplugins: [easy, recent]\n")
    record(text, tmp_path / "journal.db", 3)
    said = " ".join(headway("explain", "15", "-c", config).out.split())
    assert "expected to start" not in said or "for its estimate, whatever is predicted, and" in said
    assert "Plugin 'recent' predicts that it runs for 200 s: the mean of its user's last 2 jobs" in said
