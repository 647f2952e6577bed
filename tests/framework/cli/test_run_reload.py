"""`headway run` from one run to the next: configurations that are wrong, signals, a cluster that is away."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headway.cli import run
from headway.config import Config
from headway.engine import Stopped
from headway.errors import Failure, UserError


def test_the_old_configuration_stays_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "site.yaml"
    file.write_text("mode: drive\nseed: 1\n")
    served: list[int] = []

    def serve(config: Config, *rest: Any, patient: bool) -> Stopped:
        served.append(config.seed)
        if config.seed == 2:
            raise UserError("cluster.options.partitions: Slurm has no partition 'bacth'.")
        file.write_text("mode: drive\nseed: 2\n")
        return Stopped.RELOAD if len(served) == 1 else Stopped.STOPPED

    monkeypatch.setattr(run, "serve", serve)
    done = CliRunner().invoke(run.command, ["-c", str(file)], catch_exceptions=False)
    assert done.exit_code == 0
    assert served == [1, 2, 1]
    assert "the old one stays in force" in done.stderr and "'bacth'" in done.stderr


def test_at_the_beginning_there_is_no_old_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "site.yaml"
    file.write_text("mode: drive\n")

    def serve(config: Config, *rest: Any, patient: bool) -> Stopped:
        raise UserError("cluster.options.partitions: Slurm has no partition 'bacth'.")

    monkeypatch.setattr(run, "serve", serve)
    with pytest.raises(UserError, match="bacth"):
        CliRunner().invoke(run.command, ["-c", str(file)], catch_exceptions=False)


@pytest.mark.parametrize("same", [True, False])
def test_the_driven_cluster_is_waited_for_and_another_one_must_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    file = tmp_path / "site.yaml"
    file.write_text("mode: drive\n")
    served: list[bool] = []

    def serve(config: Config, *rest: Any, patient: bool) -> Stopped:
        served.append(patient)
        if len(served) == 1:
            file.write_text("mode: drive\nseed: 1\n" + ("" if same else "cluster: {adapter: slurm}\n"))
            return Stopped.RELOAD
        if not patient:
            raise run.Unreached("Slurm does not answer")
        return Stopped.STOPPED

    monkeypatch.setattr(run, "serve", serve)
    done = CliRunner().invoke(run.command, ["-c", str(file)], catch_exceptions=False)
    assert done.exit_code == 0
    assert served == ([False, True] if same else [False, False, True])
    assert ("the old one stays in force" in done.stderr) is not same


class Told:
    """An engine's orders."""

    def __init__(self) -> None:
        self.orders: list[str] = []

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


class Away:
    """A cluster that answers at the third attempt."""

    def __init__(self) -> None:
        self.asked = 0

    def describe(self) -> str:
        self.asked += 1
        if self.asked < 3:
            raise Failure("nobody answers")
        return "the cluster"


def test_waiting_for_a_cluster_is_told_once_and_ends_when_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RETRY_SECONDS", 0.01)
    told: list[str] = []

    class Log:
        def error(self, said: str, **more: Any) -> None:
            told.append(said)

    with run.Orders() as orders:
        assert run._describe(Away(), orders, True, Log()) == "the cluster"
        assert told == ["the cluster does not answer; waiting for it"]
        with pytest.raises(run.Unreached, match="nobody answers"):
            run._describe(Away(), orders, False, Log())
        os.kill(os.getpid(), signal.SIGTERM)
        assert run._describe(Away(), orders, True, Log()) is None
