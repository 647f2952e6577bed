"""What an adapter tells of itself at work: looks, heartbeat, and the commands that it ran."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pretended import events, result
from pretended_slurm import PretendedSlurm
from test_slurm_adapter_unit import adapter
from waiting import until

from headway.adapter import Check
from headway_adapters.slurm import SlurmAdapter


def signs(one: SlurmAdapter) -> dict[str, Check]:
    return {sign.subject: sign for sign in one.vital_signs()}


def test_before_the_first_look_nothing_is_known() -> None:
    with adapter(PretendedSlurm()) as one:
        assert set(signs(one)) == {"last look"}
        assert (signs(one)["last look"].ok, signs(one)["last look"].known) == (True, False)
        one.describe()
        events(one)
        assert signs(one)["last look"].known
        assert signs(one)["last look"].detail.startswith("slurm was read ")


def test_a_look_that_is_old_is_ill(monkeypatch: pytest.MonkeyPatch) -> None:
    with adapter(PretendedSlurm()) as one:
        one.describe()
        events(one)
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 1000)
        found = signs(one)["last look"]
        monkeypatch.undo()
    assert not found.ok
    assert found.detail.startswith("slurm was read 1")
    assert found.remedy


def test_a_heartbeat_that_is_old_or_cannot_be_written_is_ill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = tmp_path / "run" / "heartbeat"
    beat.parent.mkdir()
    with adapter(PretendedSlurm(), heartbeat=str(beat), patience=60) as one:
        assert (signs(one)["heartbeat"].ok, signs(one)["heartbeat"].known) == (True, False)
        one.describe()

        def written() -> bool:
            events(one, 0.05)
            return signs(one)["heartbeat"].known

        until(written, "the heartbeat is written")
        assert signs(one)["heartbeat"].ok
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 31)
        assert not signs(one)["heartbeat"].ok
        monkeypatch.undo()


def test_commands_are_counted() -> None:
    slurm = PretendedSlurm()
    with adapter(slurm) as one:
        one.describe()
        events(one)
        done = {(told.command, told.outcome) for told in one.commands_run()}
        assert ("squeue", "done") in done
        slurm.answer = lambda argv: result(
            argv, rc=1, stderr="slurm_load_jobs error: Unable to contact slurm controller"
        )

        def silent() -> bool:
            events(one, 0.05)
            return "silent" in {told.outcome for told in one.commands_run()}

        until(silent, "Slurm is silent")
        assert {told.cluster for told in one.commands_run()} == {"slurm"}
