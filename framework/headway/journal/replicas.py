"""Which copies of datasets the runs before left behind, read from what was decided and what was told."""

from __future__ import annotations

from collections.abc import Iterable

from headway.adapter import KnownReplica, Outcome
from headway.decisions import Copy, Decision, Drop
from headway.events import CopyFailed, DatasetCopied, DatasetCopying, DatasetLost, Event

#: The events that say something of copies.
EVENTS = (DatasetCopying, DatasetCopied, DatasetLost, CopyFailed)
#: The decisions that do.
DECISIONS = (Copy, Drop)


def replicas_after(history: Iterable[tuple[Event | Decision, Outcome | None]]) -> list[KnownReplica]:
    """What is left after a ``history`` of events and decisions, in order, each decision with its outcome,
    where that is known. A decision without an outcome may have been carried out."""
    known: dict[tuple[str, str], KnownReplica] = {}
    for what, outcome in history:
        if isinstance(what, Copy | Drop):
            if outcome is None or outcome.accepted:
                _decided(known, what)
        elif isinstance(what, DatasetCopying):
            known[what.dataset, what.site] = KnownReplica(what.dataset, what.site, "copying", what.source)
        elif isinstance(what, DatasetCopied):
            known[what.dataset, what.site] = KnownReplica(what.dataset, what.site, "there")
        elif isinstance(what, DatasetLost | CopyFailed):
            known.pop((what.dataset, what.site), None)
    return list(known.values())


def _decided(known: dict[tuple[str, str], KnownReplica], decision: Copy | Drop) -> None:
    about = decision.dataset, decision.site
    before = known.get(about)
    if isinstance(decision, Copy):
        if before is None:
            known[about] = KnownReplica(*about, "copying", decision.source)
    elif before is not None and before.state == "there":
        known[about] = KnownReplica(*about, "dropping")
