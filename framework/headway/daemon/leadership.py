"""The epoch of a daemon that drives: a number that is higher than those of all daemons before it.

It is kept in the journal with each run, and written to the cluster with all that is changed there
(:meth:`headway.adapter.ClusterAdapter.lead`), so that a daemon that was paused while another took over can do
nothing any more.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from headway.adapter import Seen
from headway.errors import Superseded
from headway.journal import Journal

#: Under which the epoch is kept with the states of a run's plugins.
SAVED_AS = "/epoch"


def own_epoch(journal: Journal) -> int:
    """The epoch of the last run in a journal; 0: none ever drove."""
    last = journal.last_run()
    kept = last.info.plugin_states.get(SAVED_AS) if last is not None else None
    epoch = kept.get("epoch") if isinstance(kept, Mapping) else None
    return epoch if isinstance(epoch, int) and epoch > 0 else 0


def saved(epoch: int) -> dict[str, Any]:
    """The same for a run that begins."""
    return {SAVED_AS: {"epoch": epoch}} if epoch else {}


def next_epoch(own: int, seen: Seen) -> int:
    """The epoch of a daemon that begins to drive. ``own``: that of its journal's last run.

    Raises :class:`Superseded` if a daemon with another journal drives.
    """
    if seen.epoch > own and seen.alive:
        raise Superseded(
            f"another daemon drives this cluster with another journal (epoch {seen.epoch}, here {own}; "
            f"{seen.alive}). Run one of the two; if that daemon is gone, try again in a minute; a second "
            "daemon that waits for the first to fail is started by `headway run --standby`"
        )
    return max(own, seen.epoch) + 1


def new_name() -> str:
    """A word that no other daemon has."""
    return secrets.token_hex(6)
