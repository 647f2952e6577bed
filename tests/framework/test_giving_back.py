"""`headway give-back` and daemons: which of them has the cluster, in every order in which they meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from journals import begin

import headway.daemon.giving_back as module
from headway.adapter import Given, GivingBack
from headway.cli import cli
from headway.config import Config, load_config
from headway.daemon.giving_back import Report, give_back
from headway.errors import Failure, Held, UserError
from headway.journal import Journal


class Pretended(GivingBack):
    """Two pools with a job each."""

    pools = ("batch", "long")

    def __init__(self, options: Any = None, *, dry_run: bool = False) -> None:
        self.silent: bool | None = True
        self.heard = True
        self.did: list[str] = []
        self.before_each: Callable[[], object] = lambda: None
        self.answers = True
        self.full = False

    def is_silent(self) -> bool | None:
        return self.silent

    def was_heard(self) -> bool:
        return self.heard

    def stand_down(self) -> None:
        if self.full:
            raise Failure("the heartbeat /run/heartbeat cannot be written: No space left on device")
        self.did.append("stand down")

    def give_back(self, pools: Sequence[str], go_on: Callable[[], bool]) -> Iterator[Given]:
        if not self.answers:
            raise Failure("the batch system does not answer")
        for pool in pools:
            self.before_each()
            if go_on():
                self.did.append(pool)
                yield Given("job", f"of {pool}", "given back", "released")


@pytest.fixture
def giving(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    made = Pretended()
    monkeypatch.setattr(module, "giving", lambda config, stack, dry_run=False: [("", made)])
    monkeypatch.setattr(module, "GRACE", 0.05)
    return made


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "site.yaml"
    path.write_text(
        "cluster: {adapter: slurm, options: {partitions: [batch, long]}}\nmode: drive\n"
        f"plugins: [easy]\njournal: {tmp_path / 'journal.sqlite'}\n"
    )
    return load_config(path)


@pytest.fixture
def daemon(config: Config) -> Iterator[Journal]:
    """A process that drives: it has the journal."""
    with Journal.open(config.journal) as journal:
        begin(journal, 0.0)
        yield journal


ALL = ["stand down", "batch", "long"]


def pause(seconds: float) -> None:
    assert seconds == 1.0


def test_without_a_daemon_all_is_given_back_and_new_jobs_first(config: Config, giving: Pretended) -> None:
    told: list[str] = []
    report = give_back(config, None, tell=lambda one: told.append(one.line))
    assert giving.did == ALL and told == ["job of batch: released", "job of long: released"]
    assert report.outcome == "given back" and not report.failed


def test_a_part_is_given_back_without_telling_that_headway_rests(config: Config, giving: Pretended) -> None:
    give_back(config, ["long"])
    assert giving.did == ["long"]
    with pytest.raises(UserError, match="no pool is called 'lnog'"):
        give_back(config, ["lnog"])


def test_it_refuses_while_a_daemon_drives(config: Config, giving: Pretended, daemon: Journal) -> None:
    with pytest.raises(Held, match=r"a daemon drives with this configuration.*process .*--force") as told:
        give_back(config, None)
    # With another journal nothing would keep two of them from working against each other.
    assert "another journal" not in str(told.value)
    assert not giving.did
    assert give_back(config, None, force=True).outcome == "given back"
    assert giving.did == ALL


def test_a_daemon_that_only_watches_keeps_nothing(config: Config, giving: Pretended) -> None:
    with Journal.open(config.journal) as journal:
        begin(journal, 0.0, "monitor")
        give_back(config, None)
    assert giving.did[-2:] == ["batch", "long"]


def test_no_daemon_begins_meanwhile(config: Config, giving: Pretended) -> None:
    Journal.open(config.journal).close()

    def come() -> None:
        with pytest.raises(Held):
            Journal.open(config.journal)

    giving.before_each = come
    give_back(config, None)
    assert giving.did == ALL
    Journal.open(config.journal).close()


def test_the_timer_does_nothing_while_headway_is_heard(
    config: Config, giving: Pretended, daemon: Journal
) -> None:
    giving.silent = False
    assert give_back(config, None, if_silent=True) == Report("nothing")
    assert not giving.did


def test_the_timer_wants_a_heartbeat(config: Config, giving: Pretended) -> None:
    giving.silent = None
    with pytest.raises(UserError, match=r"cluster\.options: expected a heartbeat"):
        give_back(config, None, if_silent=True)


def test_the_timer_gives_back_what_a_dead_daemon_left(config: Config, giving: Pretended) -> None:
    assert give_back(config, None, if_silent=True).outcome == "given back"
    assert giving.did == ALL


def test_the_timer_waits_for_a_daemon_that_has_just_come(
    config: Config, giving: Pretended, daemon: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE", 60.0)

    def first_look(seconds: float) -> None:
        giving.silent = False

    assert give_back(config, None, if_silent=True, pause=first_look) == Report("nothing")
    assert not giving.did


def test_the_timer_gives_back_beside_a_daemon_that_hangs_until_it_is_heard(
    config: Config, giving: Pretended, daemon: Journal
) -> None:
    def wakes() -> None:
        giving.silent = not giving.did

    giving.before_each = wakes
    assert give_back(config, None, if_silent=True, pause=pause).outcome == "interrupted"
    assert giving.did == ["batch"], "and does not say that headway rests"


def test_the_timer_does_not_act_against_a_daemon_with_another_heartbeat(
    config: Config, giving: Pretended, daemon: Journal
) -> None:
    giving.heard = False
    with pytest.raises(Failure, match="no heartbeat was ever written"):
        give_back(config, None, if_silent=True, pause=pause)
    assert not giving.did


def test_a_batch_system_that_does_not_answer_is_a_failure(config: Config, giving: Pretended) -> None:
    giving.answers = False
    report = give_back(config, None)
    assert report.failed and report.failures == ("the batch system does not answer",)


@pytest.mark.parametrize("if_silent", [False, True])
def test_jobs_are_given_back_also_where_the_heartbeat_cannot_be_written(
    config: Config, giving: Pretended, if_silent: bool
) -> None:
    giving.full = True
    report = give_back(config, None, if_silent=if_silent)
    assert giving.did == ["batch", "long"]
    (failure,) = report.failures
    assert "No space left on device" in failure and "jobs that come now" in failure


def test_a_damaged_journal_keeps_nobody_from_giving_back(config: Config, giving: Pretended) -> None:
    Path(config.journal).write_bytes(b"no database")
    assert give_back(config, None).outcome == "given back"


# ---------------------------------------------------------------------- the command


def invoke(config: Config, *words: str) -> Any:
    return CliRunner().invoke(cli, ["give-back", "-c", config.source, *words])


def test_the_command_says_each_thing_and_counts(config: Config, giving: Pretended) -> None:
    done = invoke(config, "--all")
    assert done.output == "job of batch: released\njob of long: released\n2 given back\n"
    assert done.exit_code == 0
    done = invoke(config, "--all", "--json")
    assert msgspec.json.decode(done.output, type=Report).outcome == "given back"
    assert invoke(config, "--all", "--dry-run").output.endswith("would: 2 given back\n")


def test_where_giving_back_fails_nothing_says_that_there_is_nothing_to_give_back(
    config: Config, giving: Pretended
) -> None:
    giving.answers = False
    done = invoke(config, "--all")
    said = "the batch system does not answer\nrun it again when the cause is gone: it goes on where it was\n"
    assert (done.output, done.exit_code) == (said, 1)
    done = invoke(config, "--all", "--json")
    assert msgspec.json.decode(done.output, type=Report).outcome == "failed"


def test_the_command_of_the_timer_says_nothing_where_nothing_is_to_be_done(
    config: Config, giving: Pretended
) -> None:
    giving.pools = ()
    done = invoke(config, "--all", "--if-silent")
    assert (done.output, done.exit_code) == ("", 0)


@pytest.mark.parametrize("words", [(), ("--all", "batch")])
def test_the_command_wants_all_or_pools(config: Config, giving: Pretended, words: tuple[str, ...]) -> None:
    assert invoke(config, *words).exit_code == 2


def test_an_adapter_without_a_batch_system_has_nothing_to_give_back(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text("mode: drive\nplugins: [easy]\n")
    done = CliRunner().invoke(cli, ["give-back", "-c", str(path), "--all"], catch_exceptions=True)
    assert isinstance(done.exception, UserError) and "real cluster" in str(done.exception)
