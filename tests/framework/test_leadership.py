"""Epochs: the number of a daemon that drives, kept in its journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.adapter import Seen
from headway.daemon.leadership import next_epoch, own_epoch, saved
from headway.errors import Superseded
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription
from headway.model.modes import Mode

ALIVE = "it writes its heartbeat"


@pytest.mark.parametrize(
    ("own", "seen", "expected"),
    [
        (0, Seen(), 1),
        (7, Seen(7, ALIVE), 8),
        # Its journal was written, and the cluster not told any more.
        (8, Seen(7, ALIVE), 9),
        # The journal is an older one, or another daemon's is the highest, which is dead.
        (3, Seen(7), 8),
    ],
)
def test_the_next_epoch_is_higher_than_all_before(own: int, seen: Seen, expected: int) -> None:
    assert next_epoch(own, seen) == expected


def test_beside_a_living_daemon_with_another_journal_none_begins() -> None:
    with pytest.raises(Superseded, match=r"epoch 7, here 3; it writes its heartbeat"):
        next_epoch(3, Seen(7, ALIVE))
    assert Superseded.exit_code == 4


def test_a_journal_keeps_it(tmp_path: Path) -> None:
    with Journal.open(str(tmp_path / "journal.sqlite")) as journal:
        assert own_epoch(journal) == 0
        for states, expected in (
            (saved(5), 5),
            (saved(0), 0),
            ({"/epoch": "nonsense"}, 0),
            ({"/epoch": {}}, 0),
        ):
            cluster = ClusterDescription(name="c", pools=(), nodes=())
            journal.begin_run(RunInfo(Mode.DRIVE, 0.0, "1", "", 0, cluster, states))
            journal.end_run("done", ended_at=1.0)
            assert own_epoch(journal) == expected
