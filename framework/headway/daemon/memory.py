"""What a run of the daemon knows of the runs before it, from the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.adapter import WishedFrequency
from headway.config import INSTALLED, Adapters
from headway.daemon.replay import learned_by_predictors, recounted
from headway.decisions import Decision
from headway.errors import Damaged, HeadwayError
from headway.journal import Journal
from headway.journal.recovery import LOOKED_BACK
from headway.plugins import Catalogue
from headway.plugins.enabled import OF_ONE_RUN

#: Starts that were decided before this are not on their way any more, seconds.
RECENT = 86400.0
#: The tiers of jobs that were started so long ago are still looked for in the journal, seconds.
TIERS = LOOKED_BACK


@dataclass(frozen=True)
class Memory:
    """What earlier runs left to a run that begins."""

    #: Plugin -> what it knew.
    states: Mapping[str, Any]
    #: Job -> when its start was decided, absolute seconds.
    starts: Mapping[str, float]
    #: Job -> the frequency that was wished for it.
    frequencies: Mapping[str, WishedFrequency]
    #: Job -> the tier that it was put into.
    tiers: Mapping[str, str]
    #: Job -> the move that was begun and has not ended.
    moves: Mapping[str, Decision]


def remembered(journal: Journal, states: Mapping[str, Any], now: float) -> Memory:
    """What ``journal`` knows at ``now`` (absolute seconds), with the plugins' ``states``."""
    recent = now - RECENT
    return Memory(
        states,
        journal.recent_starts(recent),
        journal.recent_frequencies(recent),
        journal.recent_tiers(now - TIERS),
        journal.open_moves(recent),
    )


def states_at_the_end(
    journal: Journal, catalogue: Catalogue, log: Any, adapters: Adapters = INSTALLED
) -> dict[str, Any]:
    """What the plugins knew when the last run ended or was killed. ``adapters``: which its configuration can
    name."""
    return {**saved_states(journal, log), **_learned_since(journal, catalogue, log, adapters)}


def states_now(journal: Journal) -> dict[str, Any]:
    """What the plugins knew at the last checkpoint of the run that is being written."""
    last = journal.last_run()
    checkpoint = journal.last_checkpoint(last.id) if last is not None else None
    return checkpoint.states if checkpoint is not None else {}


def saved_states(journal: Journal, log: Any) -> dict[str, Any]:
    """What the plugins knew at the end of the last run, and a word about what it left open."""
    last = journal.last_run()
    if last is None:
        return {}
    open_decisions = journal.unfinished(last.id)
    if open_decisions:
        log.warning(
            "the last run was cut off between deciding and applying; the cluster's state tells what happened",
            run=last.id,
            decisions=[
                f"{type(u.decision).__name__} {getattr(u.decision, 'job_id', '')}".strip()
                for u in open_decisions
            ],
        )
    checkpoint = journal.last_checkpoint(last.id)
    if checkpoint is not None:
        return checkpoint.states
    # A run that was killed before its first checkpoint leaves what its plugins began with.
    return {name: state for name, state in last.info.plugin_states.items() if name not in OF_ONE_RUN}


def _learned_since(journal: Journal, catalogue: Catalogue, log: Any, adapters: Adapters) -> dict[str, Any]:
    """What predictors knew, and plugins that recount had counted, at the end of a run that was killed: its
    last checkpoint is behind."""
    last = journal.last_run()
    if last is None or last.ended_at is not None:
        return {}
    try:
        learned = learned_by_predictors(journal, last, catalogue, adapters)
        return {**learned, **recounted(journal, last, catalogue, adapters)}
    except Damaged:
        raise
    except HeadwayError as error:
        log.warning("what plugins learned or counted since the last checkpoint is lost", error=str(error))
        return {}
