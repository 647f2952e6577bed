"""``headway explain`` asks the daemon, says so, and looks at the cluster where no daemon answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commandline import Headway

from headway import __version__
from headway.adapter import StartsWait
from headway.cli import asking, common
from headway.cli.as_json import schema_of
from headway.cli.common import wall_clock
from headway.cli.explain import command
from headway.cli.explanation import Explanation
from headway.decisions import Start
from headway.events import DecisionFailed, JobSubmitted
from headway.inquiry.reports import BeforeReport, JobReport, PlanAccuracy, PlanHistory, SoonerReport
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription, JobDescription, Request
from headway.model.modes import Mode
from headway.service import Inbox, Peer, Server
from headway.service.protocol import AnyRequest, Explain, Explained, OutageReport, Reply, Report

AS_OF = 1_700_000_000.0
WAITS = JobReport("15", "batch", "pending", 4, 60.0, 60.0, 1.0, position=3, queue_length=9)
PLANNED = JobReport("15", "batch", "pending", 4, 60.0, 60.0, 1.0, position=3, planned_start=AS_OF + 60)


class Answering(Inbox):
    """Gives one reply to each question, and keeps what was asked."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(lambda: None, Report("drive", "tc", 1, 0.0), clock=time.time)
        self.reply = reply
        self.asked: list[AnyRequest] = []

    def ask(self, request: AnyRequest, peer: Peer) -> Future[Reply]:
        self.asked.append(request)
        future: Future[Reply] = Future()
        future.set_result(self.reply)
        return future


@pytest.fixture
def site(
    pretended_slurm: Callable[..., Path], tmp_path: Path
) -> Iterator[Callable[..., tuple[Path, Answering]]]:
    """A configuration, and a daemon at its socket that gives this reply."""
    servers = []

    def start(found: Explained | None = None, outcome: str = "accepted", reason: str = "") -> Any:
        inbox = Answering(Reply(outcome, reason, found=found, as_of=AS_OF))
        servers.append(Server(tmp_path / "journal.db.sock", inbox))
        return pretended_slurm(), inbox

    yield start
    for server in servers:
        server.close()


def test_the_daemons_sentences_are_printed_and_it_is_said_of_when_they_are(
    site: Any, headway: Headway
) -> None:
    config, inbox = site(Explained("15", ("Job 15 waits.", "It is number 3."), PLANNED))
    ran = headway("explain", 15, "-c", config)
    assert (ran.code, ran.err) == (0, "")
    said = f"So says the daemon, as of its cycle at {wall_clock(AS_OF)}."
    assert ran.out.splitlines() == ["Job 15 waits.", "It is number 3.", said]
    assert inbox.asked == [Explain("15")]


def test_of_a_job_without_a_planned_start_it_is_said_what_foretells_one(site: Any, headway: Headway) -> None:
    config, _ = site(Explained("15", ("Job 15 waits.",), WAITS))
    said = "The daemon has planned no start for it yet; `headway explain --fresh` foretells one."
    assert headway("explain", 15, "-c", config).out.splitlines()[1] == said


def test_the_first_job_without_a_planned_start_is_foretold_one_by_a_look_at_the_cluster(
    site: Any, headway: Headway
) -> None:
    config, inbox = site(Explained("25", ("Job 25 waits.",), msgspec.structs.replace(WAITS, position=1)))
    ran = headway("explain", 25, "-c", config)
    assert ran.code == 0 and Explain("25") in inbox.asked
    assert ran.out.startswith("Job 25 of alice asks for ") and "So says the daemon" not in ran.out
    # Where the cluster is out of reach the daemon's answer remains.
    (config.parent / "bin").rename(config.parent / "away")
    ran = headway("explain", 25, "-c", config)
    assert ran.code == 0 and ran.out.startswith("Job 25 waits.")


def test_starts_that_wait_and_an_outage_are_told(site: Any, headway: Headway) -> None:
    found = Explained(
        "15", ("Job 15 waits.",), PLANNED, (StartsWait("tc", 2, "the budget"),),
        (OutageReport("tc", AS_OF, "refused"),),
    )  # fmt: skip
    config, _ = site(found)
    said = headway("explain", 15, "-c", config).out.splitlines()
    assert said[1:3] == [
        "2 starts wait for the budget.",
        f"tc has not answered since {wall_clock(AS_OF)}: refused.",
    ]


@pytest.mark.parametrize("how", ["--fresh", "--plugin"])
def test_it_is_not_asked_where_a_fresh_look_is_wanted(
    site: Any, headway: Headway, tmp_path: Path, how: str
) -> None:
    config, inbox = site(Explained("15", ("Job 15 waits.",), PLANNED))
    (tmp_path / "mine.py").write_text("class Mine:\n    '''Nothing.'''\n")
    ran = headway("explain", 15, "-c", config, *([how] if how == "--fresh" else [how, tmp_path / "mine.py"]))
    assert Explain("15") not in inbox.asked and "So says the daemon" not in ran.out


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("unknown", "no job with the id '15' is in the cluster's queue"),
        ("failed", "not a request: Invalid value 'explain'"),
    ],
)
def test_where_it_cannot_say_it_is_told_why_and_the_cluster_is_looked_at(
    site: Any, headway: Headway, outcome: str, reason: str
) -> None:
    config, _ = site(outcome=outcome, reason=reason)
    ran = headway("explain", 15, "-c", config)
    assert (ran.code, ran.err) == (0, f"Looking at the cluster: the daemon has no answer ({reason})\n")
    assert ran.out.startswith("Job 15 of alice asks for ")


def test_where_no_daemon_is_the_cluster_is_looked_at(
    headway: Headway, pretended_slurm: Callable[..., Path]
) -> None:
    ran = headway("explain", 15, "-c", pretended_slurm())
    assert ran.code == 0 and ran.out.startswith("Job 15 of alice asks for ")
    assert ran.err.startswith("Looking at the cluster: no daemon answers at ")


def test_a_site_without_a_socket_is_looked_at_without_a_word(
    headway: Headway, pretended_slurm: Callable[..., Path]
) -> None:
    config = pretended_slurm()
    config.write_text(config.read_text() + "service: {enabled: false}\n")
    assert headway("explain", 15, "-c", config).err == ""


def test_the_journals_history_follows_and_a_journal_that_cannot_be_read_is_no_word_worth(
    site: Any, headway: Headway, tmp_path: Path
) -> None:
    config, _ = site(Explained("15", ("Job 15 waits.",), PLANNED))
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.begin_run(RunInfo(Mode.DRIVE, 0.0, __version__, "", 0, ClusterDescription.flat(4)))
        job = JobDescription("15", 5.0, Request(1, 60.0))
        failed = DecisionFailed(6.0, Start("15"), "no such node")
        journal.record_events(1, 5.0, [JobSubmitted(5.0, job), failed])
        journal.end_run("finished")
    said = headway("explain", 15, "-c", config).out
    assert "Its last start failed: no such node.\nFrom the journal:\n" in said
    (tmp_path / "journal.db").write_bytes(b"no journal at all" * 100)
    ran = headway("explain", 15, "-c", config)
    assert ran.code == 0 and ran.out.endswith(f"as of its cycle at {wall_clock(AS_OF)}.\n")


# ---------------------------------------------------------------------- the socket alone


@pytest.fixture
def alone(site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answering]:
    """A daemon at the socket of its unit, and no configuration that can be read."""
    monkeypatch.delenv("HEADWAY_CONFIG", raising=False)
    monkeypatch.setattr(common, "CONFIGS", ())
    monkeypatch.setattr(asking, "SOCKET", tmp_path / "journal.db.sock")

    def start(*given: Any, **more: Any) -> Answering:
        _, inbox = site(*given, **more)
        assert isinstance(inbox, Answering)
        return inbox

    return start


def test_the_socket_alone_is_enough(alone: Any, headway: Headway) -> None:
    inbox = alone(Explained("15", ("Job 15 waits.",), PLANNED, remembered=("It has stood.",)))
    ran = headway("explain", 15)
    said = f"So says the daemon, as of its cycle at {wall_clock(AS_OF)}."
    assert (ran.code, ran.out.splitlines()) == (0, ["Job 15 waits.", "It has stood.", said])
    assert inbox.asked == [Explain("15")]


def test_of_a_job_that_the_user_may_not_see_nothing_is_said(alone: Any, headway: Headway) -> None:
    alone(outcome="unknown", reason="no job of yours with the id '15' is in the cluster's queue")
    ran = headway("explain", 15)
    assert (ran.code, ran.out) == (2, "")
    assert "no job of yours with the id '15'" in ran.err


@pytest.mark.parametrize("option", ["--fresh", "--journal-only", "--plugin"])
def test_what_needs_a_configuration_says_so(
    alone: Any, headway: Headway, option: str, tmp_path: Path
) -> None:
    alone(Explained("15", ("Job 15 waits.",), PLANNED))
    (tmp_path / "mine.py").write_text("class Mine:\n    '''Nothing.'''\n")
    ran = headway("explain", 15, option, *([tmp_path / "mine.py"] if option == "--plugin" else []))
    assert ran.code == 2 and f"{option} needs a configuration: expected -c FILE" in ran.err


def test_json_has_the_daemons_answer_as_it_is(alone: Any, headway: Headway) -> None:
    found = Explained(
        "15", ("Job 15 waits.",), PLANNED, before=BeforeReport(2, 8, ("13", "14")),
        plan_history=PlanHistory(AS_OF, AS_OF + 60), plan_accuracy=PlanAccuracy("batch", 9, 10.0, 20.0),
        remembered=("It has stood.",), sooner=(SoonerReport("limit", limit=60.0),),
    )  # fmt: skip
    alone(found)
    printed = headway("explain", 15, "--json").out
    assert msgspec.json.decode(printed, type=Explanation) == Explanation(
        "15", "daemon", ("Job 15 waits.", "It has stood."), AS_OF, PLANNED, found.before, found.plan_history,
        found.plan_accuracy, found.sooner,
    )  # fmt: skip
    assert schema_of(command) == msgspec.json.schema(Explanation)


def test_json_of_a_fresh_look_has_the_same_shape(
    headway: Headway, pretended_slurm: Callable[..., Path]
) -> None:
    ran = headway("explain", 15, "-c", pretended_slurm(), "--fresh", "--json")
    found = msgspec.json.decode(ran.out, type=Explanation)
    assert (found.id, found.says) == ("15", "cluster") and found.job is not None and found.job.id == "15"
    assert found.sentences[0].startswith("Job 15 of alice asks for ")
