"""What a run knows of the runs before it."""

from __future__ import annotations

from pathlib import Path

import structlog

from headway.daemon.memory import saved_states
from headway.inputs import SAVED_AS
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription
from headway.plugins.enabled import FROM_FILES


def test_what_a_replay_of_a_killed_run_needs_is_not_handed_on(tmp_path: Path) -> None:
    states = {"turns": {"alice": 7}, FROM_FILES: {"turns": "turns.py"}, SAVED_AS: {"prices.csv": "0,1"}}
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.begin_run(RunInfo("drive", 0.0, "1", "", 0, ClusterDescription.flat(1), states))
        assert saved_states(journal, structlog.get_logger()) == {"turns": {"alice": 7}}
