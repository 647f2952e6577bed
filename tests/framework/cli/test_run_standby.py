"""``headway run --standby``: what becomes of the lease when the daemon ends in one way or another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from structlog.testing import capture_logs
from waiting import HANG

from headway.cli import run
from headway.config import load_config
from headway.daemon import succession
from headway.daemon.made import Unreached
from headway.daemon.standing import ALONE, Standing
from headway.daemon.succession import Succession
from headway.errors import Failure, Superseded, UserError
from headway.standby import waiting
from headway.standby.leadership import Deposed, Tenure, Word


class Lease(Standing):
    """A lease that was won."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self.tenure = Tenure(Word(7, "process 1 on host a"), 5.0, 0.0)
        self.on_lost = on_lost
        self.released = 0

    def check(self) -> None:
        self.tenure.check()

    def release(self) -> None:
        self.released += 1


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Result, list[Any]]]:
    """Run the command, with runs that the test makes; how it ended, and the leases that there were."""

    def call(
        *words: str, runs: Callable[[Any], None] = lambda lease: None, leads: bool = True, text: str = ""
    ) -> tuple[Result, list[Any]]:
        leases: list[Any] = []

        def stand_by(config: Any, files: Any, stopped: Any, on_lost: Any) -> Lease | None:
            assert not stopped()
            leases.append(Lease(on_lost) if leads else None)
            return leases[-1]

        def whole(self: Succession) -> None:
            runs(self._standing)

        monkeypatch.setattr(waiting, "stand_by", stand_by)
        monkeypatch.setattr(succession.Succession, "run", whole)
        (tmp_path / "site.yaml").write_text(f"mode: drive\n{text}")
        return CliRunner().invoke(run.command, ["-c", str(tmp_path / "site.yaml"), *words]), leases

    return call


def test_the_lease_is_given_up_when_the_daemon_ends(daemon: Any) -> None:
    done, (lease,) = daemon("--standby")
    assert done.exit_code == 0 and lease.released == 1


def test_it_is_given_up_when_the_daemon_fails(daemon: Any) -> None:
    def fails(lease: Any) -> None:
        raise Failure("disk full")

    done, (lease,) = daemon("--standby", runs=fails)
    assert isinstance(done.exception, Failure) and lease.released == 1


def test_a_daemon_that_ended_because_it_leads_no_more_says_so(daemon: Any) -> None:
    def loses(lease: Any) -> None:
        lease.tenure.give_up("process 2 on host b leads with epoch 8")
        lease.on_lost()

    done, (lease,) = daemon("--standby", runs=loses)
    assert isinstance(done.exception, Deposed) and "epoch 8" in str(done.exception)
    assert lease.released == 1


def test_a_daemon_whose_write_was_refused_is_to_be_started_again_as_the_stand_by(daemon: Any) -> None:
    def refused(lease: Any) -> None:
        raise Superseded("another daemon has taken over: Slurm knows epoch 9")

    done, _ = daemon("--standby", runs=refused)
    assert isinstance(done.exception, Deposed) and done.exception.exit_code == 1
    # Of a daemon without a stand-by it is the end.
    done, _ = daemon(runs=refused)
    assert isinstance(done.exception, Superseded)


def test_a_stand_by_that_is_told_to_end_runs_nothing(daemon: Any) -> None:
    def never(lease: Any) -> None:
        raise AssertionError

    done, _ = daemon("--standby", runs=never, leads=False)
    assert done.exit_code == 0


def test_a_configuration_with_the_section_says_the_same_and_without_there_is_no_lease(daemon: Any) -> None:
    assert daemon(text="standby: {patience: 3s}\n")[1]
    assert not daemon()[1]


class Run:
    """A run that was made, and ends at once."""

    def serve(self, *_: object) -> str:
        return "stopped"

    def close(self) -> None:
        pass


@pytest.fixture
def beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Begin a first run while the cluster does not answer the first ``silent`` questions; how often it was
    asked."""

    def begin(standing: Standing, silent: int) -> int:
        asked = 0

        def make(*_: object) -> Run:
            nonlocal asked
            asked += 1
            if asked <= silent:
                raise Unreached("Connection reset by peer")
            return Run()

        monkeypatch.setattr(succession, "make_run", make)
        path = tmp_path / "site.yaml"
        path.write_text("mode: drive\n")
        Succession(load_config(path), path, (), lambda engine: nullcontext(), str, standing=standing).run()
        return asked

    return begin


def test_a_take_over_asks_a_cluster_again_that_does_not_answer(beginning: Callable[..., int]) -> None:
    lease = Lease(lambda: None)
    lease.asks_for = HANG
    with capture_logs() as logs:
        assert beginning(lease, silent=3) == 4
    assert [log["event"] for log in logs] == ["the cluster does not answer; waiting for it"]


def test_it_does_so_for_a_time_and_while_it_leads(beginning: Callable[..., int]) -> None:
    lease = Lease(lambda: None)
    lease.asks_for = 0.3
    with pytest.raises(Unreached):
        beginning(lease, silent=1000)
    lease.asks_for = HANG
    lease.tenure.give_up("process 2 on host b leads with epoch 8")
    with pytest.raises(Deposed):
        beginning(lease, silent=1000)


def test_a_daemon_without_a_stand_by_ends_at_once(beginning: Callable[..., int]) -> None:
    with pytest.raises(Unreached):
        beginning(ALONE, silent=1)


def test_a_reload_cannot_change_the_journal_under_a_lease(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text("mode: drive\njournal: one.db\n")
    kept = Succession(
        load_config(path),
        path,
        (),
        lambda engine: None,
        str,
        standing=Lease(lambda: None),  # type: ignore[arg-type,return-value]
    )
    path.write_text("mode: drive\njournal: two.db\n")
    with pytest.raises(UserError, match="a daemon with a stand-by cannot change its journal"):
        kept._read_again()
