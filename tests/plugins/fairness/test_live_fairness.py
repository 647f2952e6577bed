"""The fairness of a live cluster from its journal."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from building import described

from headway import cli
from headway import events as ev
from headway.errors import UserError
from headway.journal import Journal, RunInfo
from headway.metrics import job_columns
from headway.metrics.system import eligible
from headway.model import Association, ClusterDescription, SitePolicy
from headway_plugins.fairness.equality import resource_equality
from headway_plugins.fairness.figures import overtakers
from headway_plugins.fairness.live import course_of, past

CLUSTER = ClusterDescription.flat(1)


def two(now: float) -> list[ev.Event]:
    """A job of 10 s, and behind it one of 2 s."""
    return [
        ev.JobSubmitted(now, described("long", 1, 10, now, user="ann")),
        ev.JobSubmitted(now, described("short", 1, 2, now, user="bob")),
        ev.JobStarted(now, "long"),
        ev.JobEnded(now + 10, "long"),
        ev.JobStarted(now + 10, "short"),
        ev.JobEnded(now + 12, "short"),
    ]


def test_a_short_job_behind_a_long_one():
    assert resource_equality(course_of(two(0), CLUSTER)).unfairness.tolist() == [-5, 5]


def test_what_a_new_run_is_told_again_changes_nothing():
    events = two(0)
    again = [*events[:3], *events[:3], *events[3:]]
    assert resource_equality(course_of(again, CLUSTER)).unfairness.tolist() == [-5, 5]


def test_a_suspended_job_uses_nothing():
    events = [
        ev.JobSubmitted(0, described("a", 1, 20)),
        ev.JobStarted(0, "a"),
        ev.JobSuspended(4, "a"),
        ev.JobSubmitted(4, described("b", 1, 2, 4)),
        ev.JobStarted(4, "b"),
        ev.JobEnded(6, "b"),
        ev.JobResumed(6, "a"),
        ev.JobEnded(10, "a"),
    ]
    # While both are there each deserves half of b's two seconds.
    assert resource_equality(course_of(events, CLUSTER)).unfairness.tolist() == [1, -1]


def held(*events: ev.Event) -> tuple[float | None, list[float]]:
    """A job that its user held from its submission at 0 on: from when it could start, and what all deserved
    beside one of 10 s."""
    result = course_of(
        [
            ev.JobSubmitted(0, described("a", 1, 10)),
            ev.JobStarted(0, "a"),
            ev.JobSubmitted(0, msgspec.structs.replace(described("b", 1, 2), held=True)),
            *events,
            ev.JobEnded(10, "a"),
            ev.JobStarted(10, "b"),
            ev.JobEnded(12, "b"),
        ],
        CLUSTER,
    )
    return result.jobs[1].job.begin_time, resource_equality(result).unfairness.tolist()


def test_a_job_that_its_user_held_arrives_when_it_is_released():
    assert held(ev.JobReleased(8, "b")) == (8, [-1, 1])


def test_a_hold_while_it_waits_begins_its_waiting_anew():
    again = (ev.JobReleased(1, "b"), ev.JobHeld(2, "b"), ev.JobReleased(6, "b"))
    assert held(*again) == (6, [-2, 2])


def test_who_was_released_while_no_daemon_ran_arrives_when_it_is_told_again():
    assert held(ev.JobSubmitted(4, described("b", 1, 2))) == (4, [-3, 3])


def test_a_change_of_a_held_job_does_not_release_it():
    changed = msgspec.structs.replace(described("b", 1, 3), held=True)
    assert held(ev.JobChanged(1, changed)) == (10, [0, 0])


def test_only_who_came_later_to_the_same_pool_and_began_meanwhile_overtook_it():
    jobs = [
        described(name, 1, 5, submit, pool=pool)
        for name, submit, pool in [("held", 0, "p"), ("q", 2, "q"), ("early", 1, "p"), ("late", 4, "p")]
    ]
    jobs[0] = msgspec.structs.replace(jobs[0], held=True)
    result = course_of(
        [
            *(ev.JobSubmitted(job.submit_time, job) for job in jobs),
            ev.JobStarted(2, "early"),
            ev.JobReleased(3, "held"),
            ev.JobStarted(4, "q"),
            ev.JobStarted(5, "late"),
            ev.JobStarted(9, "held"),
        ],
        CLUSTER,
    )
    at = [job.job.id for job in result.jobs].index("held")
    assert overtakers(result, eligible(result, job_columns(result)), at) == ["late"]


def test_a_requeued_job_that_runs_again_used_both():
    events = [
        ev.JobSubmitted(0, described("a", 1, 20)),
        ev.JobStarted(0, "a"),
        ev.JobRequeued(4, "a"),
        ev.JobStarted(5, "a"),
        ev.JobEnded(9, "a"),
    ]
    result = course_of(events, CLUSTER)
    assert (result.jobs[0].start_time, result.jobs[0].starts) == (5, 2)
    found = resource_equality(result)
    assert (found.deserved.tolist(), found.unfairness.tolist()) == ([8], [0])


def journal(path, now, mode="drive"):
    with Journal.open(path) as written:
        written.begin_run(RunInfo(mode, now, "0", "", 0, CLUSTER))
        for seq, event in enumerate(two(now), 1):
            written.record_events(seq, event.time, [event])
        written.end_run("test")


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(f"journal: {tmp_path / 'journal.sqlite'}\n")
    return path


def test_the_command_names_who_lost(site, tmp_path, capsys):
    journal(tmp_path / "journal.sqlite", round(time.time()) - 3600)
    cli.main(["fairness", "-c", str(site), "--since", "1d"])
    said = capsys.readouterr().out
    assert "2 jobs that ended" in said and "50.0 %" in said and "0 still run, 0 wait" in said
    assert "bob" in said and "short" in said


def test_runs_in_emulation_are_no_past_of_a_cluster(tmp_path):
    journal(tmp_path / "journal.sqlite", 0, "dry-run")
    with Journal.open(tmp_path / "journal.sqlite") as written:
        assert past(written) is None


def test_nothing_that_ended_since_then_is_said(site, tmp_path, capsys):
    journal(tmp_path / "journal.sqlite", 1000)
    with pytest.raises(SystemExit) as ended:
        cli.main(["fairness", "-c", str(site), "--since", "1d"])
    assert ended.value.code == UserError.exit_code
    assert "expected jobs that ended since" in capsys.readouterr().err


LISTED = {"a": {"shares": 3, "users": ["bob"]}, "b": {"shares": 1, "users": ["ann"]}}
#: The same, as a Slurm tells it.
TOLD = SitePolicy(
    (
        Association("a", shares=3),
        Association("a", "bob", default=True),
        Association("b", shares=1),
        Association("b", "ann", default=True),
    )
)


@pytest.mark.parametrize("accounts", [LISTED, "from-slurm"], ids=["listed", "from Slurm"])
def test_the_command_compares_with_the_sites_shares(accounts, tmp_path, capsys, monkeypatch):
    config = tmp_path / "site.yaml"
    config.write_text(
        json.dumps(
            {"journal": str(tmp_path / "j.sqlite"), "plugins": [{"classic": {"accounts": accounts}}, "easy"]}
        )
    )
    now = round(time.time()) - 3600
    with Journal.open(tmp_path / "j.sqlite") as written:
        written.begin_run(RunInfo("drive", now, "0", config.read_text(), 0, CLUSTER))
        before = [] if accounts == LISTED else [ev.SitePolicyChanged(now, TOLD)]
        for seq, event in enumerate([*before, *two(now)], 1):
            written.record_events(seq, event.time, [event])
        written.end_run("test")
    read = []
    cycles = Journal.cycles
    monkeypatch.setattr(Journal, "cycles", lambda *words: (read.append(words[1:]), cycles(*words))[1])
    cli.main(["fairness", "-c", str(config), "--since", "1d"])
    assert read == [(1,)], "a journal of months is read once"
    said = " ".join(capsys.readouterr().out.split())
    assert "By the site's shares" in said
    # bob is in no account by his job, but by default in a.
    assert "a bob 75.0 % 1" in said
