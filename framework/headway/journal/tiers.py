"""In which tier a running job is, read from what was decided about it and what became of it.

No batch system knows tiers. When a daemon begins anew, only the journal knows which of its jobs are in the
background, and which came forward since.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway.decisions import Start
from headway.events import JobEnded, JobMigrated, JobRequeued, JobStarted, JobTierChanged
from headway.journal.records import HistoryEntry


def tier_of(history: Iterable[HistoryEntry]) -> str:
    """The tier that a job's ``history``, in order, leaves it in; "" for a job that does not run and is not to
    start."""
    tier = ""
    started_by = -1
    for entry in history:
        what = entry.what
        if isinstance(what, Start):
            if entry.outcome is None or entry.outcome.accepted:
                tier, started_by = what.tier, entry.run_id
        elif isinstance(what, JobStarted):
            # A later run is shown a job that runs anew, and may not know its tier.
            if not tier or entry.run_id == started_by or what.tier != "foreground":
                tier = what.tier
        elif isinstance(what, JobTierChanged):
            tier = what.tier
        elif isinstance(what, JobMigrated):
            tier = what.tier or tier
        elif isinstance(what, JobEnded | JobRequeued):
            tier = ""
    return tier
