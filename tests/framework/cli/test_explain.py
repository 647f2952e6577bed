"""``headway explain``: why a job waits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Headway

from headway import __version__
from headway.decisions import Kill, Start
from headway.events import DecisionFailed, JobChanged, JobEnded, JobStarted, JobSubmitted
from headway.journal import Journal, RunInfo
from headway.journal.job_history import last_failure
from headway.journal.records import HistoryEntry
from headway.model import ClusterDescription, JobDescription, Request
from headway.model.modes import Mode


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.write_text(f"mode: dry-run\nplugins: [easy]\njournal: {tmp_path / 'runs.db'}\n")
    return path


@pytest.fixture
def recorded(config: Path, tmp_path: Path) -> None:
    """A run of 4 processors that ends while job 1 runs on 3 of them; 2 needs all, 3 would delay it."""

    def job(name: str, at: float, processors: int, walltime: float) -> JobSubmitted:
        return JobSubmitted(at, JobDescription(name, at, Request(processors, walltime), user="ann"))

    with Journal.open(tmp_path / "runs.db") as journal:
        cluster = ClusterDescription.flat(4, name="four")
        journal.begin_run(RunInfo(Mode.DRY_RUN, 0.0, __version__, config.read_text(), 0, cluster))
        journal.record_events(1, 0.0, [job("1", 0.0, 3, 100.0)])
        journal.record_events(
            2, 5.0, [JobStarted(0.0, "1", ()), job("2", 5.0, 4, 50.0), job("3", 5.0, 1, 500.0)]
        )
        journal.end_run("finished")


def test_the_head_waits_for_running_jobs(headway: Headway, config: Path, recorded: None) -> None:
    ran = headway("explain", 2, "-c", config, "--journal-only")
    said = " ".join(ran.out.split())
    assert (ran.code, ran.err) == (0, "")
    assert said.startswith("Job 2 of ann asks for 4 processors for 50 s in pool 'pool'; it was submitted at ")
    assert "It is number 1 of 2 in the queue; 1 of 4 processors are free." in said
    assert "It waits for the end of job 1 (by " in said
    assert "From the journal:" in said and "JobSubmitted" in said


def test_a_journal_alone_explains_a_job_by_the_clock_of_its_run(headway: Headway, recorded: None) -> None:
    said = " ".join(headway("explain", 2, "--journal", "runs.db").out.split())
    assert "it was submitted at 5. " in said and "It waits for the end of job 1 (by 100). " in said
    assert "kept for it from 100 on" in said and "1970" not in said


def test_without_a_journal_or_a_configuration_both_are_named(headway: Headway) -> None:
    ran = headway("explain", 2)
    assert ran.code == 2 and "expected -c FILE, HEADWAY_CONFIG in the environment, or a daemon at" in ran.err


def test_a_job_that_would_delay_the_head_is_told_so(headway: Headway, config: Path, recorded: None) -> None:
    said = " ".join(headway("explain", 3, "-c", config, "--journal-only").out.split())
    assert "It would fit now, but would delay job 2, for which processors are kept from " in said


def test_a_running_job_is_told_when_it_ends(headway: Headway, config: Path, recorded: None) -> None:
    assert "It runs, expected to end by " in headway("explain", 1, "-c", config, "--journal-only").out


def test_a_job_in_the_background_is_told_that_it_is_there(
    headway: Headway, config: Path, tmp_path: Path
) -> None:
    job = JobDescription("1", 0.0, Request(3, 100.0), user="ann")
    with Journal.open(tmp_path / "runs.db") as journal:
        cluster = ClusterDescription.flat(4, name="four")
        journal.begin_run(RunInfo(Mode.DRY_RUN, 0.0, __version__, config.read_text(), 0, cluster))
        journal.record_events(1, 0.0, [JobSubmitted(0.0, job), JobStarted(0.0, "1", (), tier="background")])
        journal.end_run("finished")
    said = headway("explain", 1, "-c", config, "--journal-only").out
    assert "It runs in the background, expected to end by " in said


def test_of_a_job_that_is_gone_the_journal_knows_the_history(
    headway: Headway, config: Path, trace: Path, tmp_path: Path
) -> None:
    assert headway("dry-run", "--trace", trace, "--journal", tmp_path / "runs.db").code == 0
    said = headway("explain", 17, "-c", config, "--journal-only").out
    assert "Job 17 is not in the cluster's queue any more." in said
    assert [word for word in ("JobSubmitted", "decided Start", "JobEnded") if word in said] == [
        "JobSubmitted", "decided Start", "JobEnded",
    ]  # fmt: skip


def test_an_unknown_job_and_a_missing_journal_are_the_users_mistake(
    headway: Headway, config: Path, recorded: None, tmp_path: Path
) -> None:
    ran = headway("explain", "x", "-c", config, "--journal-only")
    assert ran.code == 2 and "job 'x' is not known to the journal" in ran.err
    (tmp_path / "runs.db").unlink()
    ran = headway("explain", 1, "-c", config, "--journal-only")
    assert ran.code == 2 and "expected a journal, found no such file" in ran.err


def test_an_emulated_cluster_cannot_be_asked(headway: Headway, config: Path) -> None:
    ran = headway("explain", 1, "-c", config)
    assert ran.code == 2
    assert "'emulated' is no real cluster that could be asked; --journal-only explains" in ran.err


def test_a_live_job_is_explained_with_a_forecast(
    headway: Headway, pretended_slurm: Callable[..., Path]
) -> None:
    ran = headway("explain", 15, "-c", pretended_slurm())
    said = " ".join(ran.out.split())
    assert ran.code == 0
    assert said.startswith("Job 15 of alice asks for ")
    assert "It is expected to start at " in said or "cannot be foreseen" in said or "It cannot start" in said


def test_where_nothing_like_the_cluster_can_be_emulated_the_rest_is_told(
    headway: Headway, pretended_slurm: Callable[..., Path]
) -> None:
    """Nodes that sleep, but no energy profile: no emulation can put them to sleep."""
    config = pretended_slurm()
    config.write_text(config.read_text() + "    power: true\nplugins: [easy, first-fit, power-down]\n")
    ran = headway("explain", 25, "-c", config, "--fresh")
    said = " ".join(ran.out.split())
    assert (ran.code, ran.err) == (0, "")
    assert said.startswith("Job 25 of alice asks for ")
    assert "When it will start cannot be foreseen: no copy of the cluster can be emulated (" in said
    assert "plugin 'power-down' needs PowerDown" in said


def test_a_job_array_is_told_by_its_elements(headway: Headway, config: Path, tmp_path: Path) -> None:
    def element(number: int, processors: int, held: bool = False) -> JobSubmitted:
        job = JobDescription(
            f"9_{number}", 5.0, Request(processors, 50.0), user="ann", held=held, array_id="9",
            array_index=number,
        )  # fmt: skip
        return JobSubmitted(5.0, job)

    with Journal.open(tmp_path / "runs.db") as journal:
        cluster = ClusterDescription.flat(4, name="four")
        journal.begin_run(RunInfo(Mode.DRY_RUN, 0.0, __version__, config.read_text(), 0, cluster))
        elements = [element(number, 9 if number == 4 else 3) for number in (1, 2, 3, 4)]
        elements += [element(number, 2, held=True) for number in (7, 8, 12)]
        journal.record_events(1, 5.0, [*elements, JobStarted(5.0, "9_1", ())])
        journal.end_run("finished")
    ran = headway("explain", "9", "-c", config, "--journal-only")
    assert (ran.code, ran.err) == (0, "")
    said = " ".join(ran.out.split())
    assert said.startswith("Job array 9 of ann: 7 elements not over. On nodes: 1.")
    assert "In the queue: 2-3 (2 elements)." in said
    assert "it needs 9 processors, and pool 'pool' has 4: 4." in said
    assert "Cannot start: held by its user or an administrator: 7-8, 12 (3 elements)." in said
    assert "The first of these is 9_2. It is number 1 of 2 in the queue" in said
    assert headway("explain", "99", "-c", config, "--journal-only").code == 2


def test_why_the_last_start_failed_is_told_until_something_becomes_of_it() -> None:
    failed = DecisionFailed(5.0, Start("7"), "its nodes can never run it")
    told = [HistoryEntry(1, 1, 5.0, "event", failed)]
    assert last_failure(told) == "its nodes can never run it"
    changed = JobChanged(6.0, JobDescription("7", 0.0, Request(1, 60.0)))
    assert last_failure([*told, HistoryEntry(1, 2, 6.0, "event", changed)]) == "its nodes can never run it"
    assert last_failure([*told, HistoryEntry(1, 3, 7.0, "decision", Start("7"))]) == ""
    assert last_failure([*told, HistoryEntry(1, 3, 7.0, "event", JobStarted(7.0, "7", ()))]) == ""
    other = DecisionFailed(5.0, Kill("7"), "no")
    assert last_failure([HistoryEntry(1, 1, 5.0, "event", other)]) == ""


@pytest.mark.parametrize(
    ("array", "elements"),
    [
        ("9", ["9_1", "9_2", "9_10"]),
        ("9", ["9[1]", "9[2]", "9[10]"]),
        ("9[].hw", ["9[1].hw", "9[2].hw", "9[10].hw"]),
    ],
)
def test_of_an_array_that_is_over_the_journals_elements_are_named(
    headway: Headway, config: Path, tmp_path: Path, array: str, elements: list[str]
) -> None:
    def jobs(array: str, ids: list[str]) -> list[JobDescription]:
        return [
            JobDescription(job_id, 5.0, Request(1, 50.0), array_id=array, array_index=int(number))
            for job_id in ids
            for number in re.findall(r"(?<=[\[_])\d+", job_id)
        ]

    over = jobs(array, elements[::-1]) + jobs(array.replace("9", "91"), [elements[0].replace("9", "91")])
    with Journal.open(tmp_path / "runs.db") as journal:
        cluster = ClusterDescription.flat(4, name="four")
        journal.begin_run(RunInfo(Mode.DRY_RUN, 0.0, __version__, config.read_text(), 0, cluster))
        for cycle, job in enumerate(over, 1):
            journal.record_events(cycle, 5.0, [JobSubmitted(5.0, job), JobEnded(5.0, job.id)])
        journal.end_run("finished")
    ran = headway("explain", array, "-c", config, "--journal-only")
    assert (ran.code, ran.err) == (0, "")
    assert " ".join(ran.out.split()) == (
        f"No element of job array {array} is in the cluster's queue any more. The journal tells of "
        f"{', '.join(elements)}."
    )
