"""`headway run` from one run to the next: configurations that are wrong, signals, a cluster that is away."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner

from headway.cli import run
from headway.config import Config
from headway.daemon import succession
from headway.daemon.made import Unreached
from headway.engine import Stopped
from headway.errors import UserError


class Adapter:
    def __init__(self) -> None:
        self.away = False

    def outages(self) -> list[str]:
        return ["away"] if self.away else []


class Run:
    """A run that was made; it serves as its test says."""

    def __init__(self, config: Config, before: Run | None, serves: Callable[..., Stopped]) -> None:
        self.config = config
        self.before = before
        self.adapter = Adapter()
        self.closed = False
        self._serves = serves

    def serve(self, orders_to: Any, succeeds: Any, each_cycle: Any, life: Any) -> Stopped:
        return self._serves(self, succeeds, each_cycle)

    def close(self, heir: Run | None = None) -> None:
        assert not self.closed
        self.closed = True


class Engine:
    """What a run has to go on and to end with."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    def remember(self) -> None:
        self.orders.append("remember")

    def reload(self) -> None:
        self.orders.append("reload")


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, list[Run]]]:
    """Runs the command with runs that serve and are made as the test says."""

    def call(
        serves: Callable[..., Stopped], wrong: Callable[[Config], None] = lambda config: None
    ) -> tuple[Any, list[Run]]:
        made: list[Run] = []

        def make(
            config: Config, files: Any, clock: Any, before: Run | None, standing: Any, on_turn: Any
        ) -> Run:
            wrong(config)
            made.append(Run(config, before, serves))
            return made[-1]

        monkeypatch.setattr(succession, "make_run", make)
        done = CliRunner().invoke(run.command, ["-c", str(tmp_path / "site.yaml")], catch_exceptions=False)
        return done, made

    (tmp_path / "site.yaml").write_text("mode: drive\nseed: 1\n")
    return call


@pytest.mark.parametrize(
    "error",
    [
        UserError("accounts.yaml: found rubbish"),
        PermissionError(13, "Permission denied", "accounts.yaml"),
        RuntimeError("accounts.yaml: what nobody foresaw"),
    ],
)
@pytest.mark.parametrize("why", [Stopped.RELOAD, Stopped.CLOCK])
def test_the_run_in_force_goes_on_until_the_next_one_is_made(
    daemon: Any, tmp_path: Path, error: Exception, why: Stopped
) -> None:
    broken = True

    def wrong(config: Config) -> None:
        if config.seed == 1 and first and broken:
            raise error

    first: list[Run] = []

    def serves(this: Run, succeeds: Any, each_cycle: Any) -> Stopped:
        nonlocal broken
        if this.before is not None:
            assert this.before.closed
            return Stopped.STOPPED
        first.append(this)
        assert not succeeds(Engine(), why)
        assert not this.closed
        broken = False
        assert succeeds(Engine(), why)
        assert not this.closed
        return why

    done, made = daemon(serves, wrong)
    assert done.exit_code == 0
    assert [one.closed for one in made] == [True, True]
    assert "the old run continues" in done.stderr or "stays in force" in done.stderr
    assert "accounts.yaml" in done.stderr


def test_at_the_beginning_there_is_no_run_in_force(daemon: Any) -> None:
    def wrong(config: Config) -> None:
        raise UserError("Slurm has no partition 'bacth'.")

    with pytest.raises(UserError, match="bacth"):
        daemon(lambda *_: Stopped.STOPPED, wrong)


def test_a_newer_order_takes_the_place_of_a_run_that_was_made(daemon: Any, tmp_path: Path) -> None:
    def serves(this: Run, succeeds: Any, each_cycle: Any) -> Stopped:
        if this.before is not None:
            return Stopped.STOPPED
        for seed in (2, 3):
            (tmp_path / "site.yaml").write_text(f"mode: drive\nseed: {seed}\n")
            assert succeeds(Engine(), Stopped.RELOAD)
        return Stopped.RELOAD

    _, made = daemon(serves)
    assert [one.config.seed for one in made] == [1, 2, 3]
    assert all(one.closed for one in made)


def test_a_stop_gives_up_the_next_run_that_was_made(daemon: Any) -> None:
    def serves(this: Run, succeeds: Any, each_cycle: Any) -> Stopped:
        assert succeeds(Engine(), Stopped.RELOAD)
        return Stopped.STOPPED

    _, made = daemon(serves)
    assert [one.closed for one in made] == [True, True]


@pytest.mark.parametrize("same", [True, False])
def test_the_driven_cluster_is_waited_for_and_another_one_must_answer(
    daemon: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    monkeypatch.setattr(succession, "RETRY_SECONDS", 0.0)
    waits = "the cluster does not answer; waiting for it"
    away = False

    def wrong(config: Config) -> None:
        if away:
            raise Unreached("Slurm does not answer")

    def serves(this: Run, succeeds: Any, each_cycle: Any) -> Stopped:
        nonlocal away
        if this.before is not None:
            return Stopped.STOPPED
        away = this.adapter.away = True
        (tmp_path / "site.yaml").write_text("mode: drive\n" + ("" if same else "cluster: {adapter: lsf}\n"))
        engine = Engine()
        assert not succeeds(engine, Stopped.RELOAD)
        each_cycle(engine)
        assert "reload" not in engine.orders
        away = this.adapter.away = False
        each_cycle(engine)
        assert ("reload" in engine.orders) is same
        return Stopped.RELOAD if same and succeeds(engine, Stopped.RELOAD) else Stopped.STOPPED

    done, made = daemon(serves, wrong)
    assert (waits in done.stderr) is same
    assert ("the old configuration stays in force" in done.stderr) is not same
    assert len(made) == (2 if same else 1)


class Told:
    """An engine's orders."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.reload_is_due = False

    def stop(self) -> None:
        self.orders.append("stop")

    def reload(self) -> None:
        self.orders.append("reload")


@pytest.mark.parametrize(
    ("number", "order"), [(signal.SIGTERM, "stop"), (signal.SIGINT, "stop"), (signal.SIGHUP, "reload")]
)
def test_a_signal_between_two_runs_is_given_to_the_next(number: signal.Signals, order: str) -> None:
    before = signal.getsignal(number)
    first, second, third = Told(), Told(), Told()
    with run.Orders() as orders:
        with orders.to(first):  # type: ignore[arg-type]
            pass
        os.kill(os.getpid(), number)
        with orders.to(second):  # type: ignore[arg-type]
            pass
        with orders.to(third):  # type: ignore[arg-type]
            pass
    assert (first.orders, second.orders) == ([], [order])
    # Stopping is for good.
    assert third.orders == (["stop"] if order == "stop" else [])
    assert signal.getsignal(number) is before


def test_a_reload_that_comes_while_an_engine_ends_is_given_to_the_next() -> None:
    first, second = Told(), Told()
    with run.Orders() as orders:
        with orders.to(first):  # type: ignore[arg-type]
            first.reload_is_due = True
        with orders.to(second):  # type: ignore[arg-type]
            pass
    assert second.orders == ["reload"]


def test_the_log_is_as_the_configuration_says_that_is_read_again(daemon: Any, tmp_path: Path) -> None:
    levels = [logging.INFO, logging.DEBUG, logging.INFO]
    seen = []

    def serves(this: Run, succeeds: Any, each_cycle: Any) -> Stopped:
        seen.append(structlog.get_logger("headway").is_enabled_for(logging.DEBUG))
        if len(seen) == len(levels):
            return Stopped.STOPPED
        level = logging.getLevelName(levels[len(seen)]).lower()
        (tmp_path / "site.yaml").write_text(f"mode: drive\nlog: {{level: {level}}}\n")
        assert succeeds(Engine(), Stopped.RELOAD)
        return Stopped.RELOAD

    done, _ = daemon(serves)
    assert done.exit_code == 0
    assert seen == [level == logging.DEBUG for level in levels]
