"""``headway give-back`` and ``headway drive`` where the other of two daemons may lead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.config import Config
from headway.errors import Failure
from headway.standby import elsewhere
from headway.standby.elsewhere import Other


@pytest.fixture
def site(pretended_slurm: Callable[..., Path]) -> Path:
    path = pretended_slurm()
    path.write_text(f"{path.read_text()}\nstandby: {{follow: [ssh, there]}}\n")
    return path


def test_nothing_is_given_back_while_the_stand_by_leads(
    site: Path, headway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "other_daemon", lambda config: Other("process 1 on host a", leads=True))
    done = headway("give-back", "--all", "-c", site)
    assert done.code == 1
    assert "the other daemon, process 1 on host a, leads" in done.err
    assert headway("give-back", "--all", "--force", "-c", site).code == 0


@pytest.mark.parametrize(
    "words", [("give-back", "--all"), ("drive", "--for", "1h")], ids=["give-back", "drive"]
)
def test_a_stand_by_that_only_waits_is_told_and_in_the_way(
    site: Path, headway: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """It would lead as soon as no other daemon does, and hold jobs again."""
    monkeypatch.setattr(elsewhere, "other_daemon", lambda config: Other("process 1 on host a", leads=False))
    done = headway(*words, "-c", site)
    assert done.code == 1
    assert (
        "a stand-by, process 1 on host a, waits to lead" in done.err and "stop that daemon, too" in done.err
    )


def test_what_would_be_given_back_is_told_beside_a_stand_by(
    site: Path, headway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "other_daemon", lambda config: Other("process 1 on host a", leads=False))
    assert headway("give-back", "--all", "--dry-run", "-c", site).code == 0
    assert headway("give-back", "--all", "--force", "-c", site).code == 0


def test_where_the_other_machine_is_away_it_is_given_back(
    site: Path, headway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(config: Config) -> Other | None:
        raise Failure("no route to host")

    monkeypatch.setattr(elsewhere, "other_daemon", away)
    done = headway("give-back", "--all", "-c", site)
    assert done.code == 0 and "not known whether the other daemon leads" in done.err


def test_nothing_is_driven_for_a_time_while_the_stand_by_leads(
    site: Path, headway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would depose that daemon: a stand-by's journal is a copy, and so knows the epoch."""
    monkeypatch.setattr(elsewhere, "other_daemon", lambda config: Other("process 1 on host a", leads=True))
    done = headway("drive", "--for", "1h", "-c", site)
    assert done.code == 1 and "the other daemon, process 1 on host a, leads" in done.err
