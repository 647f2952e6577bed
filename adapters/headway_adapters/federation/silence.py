"""Which clusters of a federation are silent, and how that is told.

A cluster that was silent from the start is so until its jobs are told, one cycle after its pools: until then
nobody knows what it has. Later outages are told by the clusters' adapters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from headway import events as ev
from headway.adapter import Outage
from headway_adapters.federation.member import Member

#: What is said of a cluster that answers too late for the first cycle.
_LATE = "it has not told its jobs yet"


def outage_of(member: Member) -> Outage | None:
    """That the cluster has not answered since the start; None: it has."""
    if member.outage is None and member.began is not None and not member.asked.is_set():
        return Outage(member.name, member.began, "no answer yet")
    return member.outage


class Silences:
    """The clusters that the engine takes to be silent."""

    def __init__(self) -> None:
        self._silent: set[str] = set()

    def of(
        self, cluster: str, event: ev.ClusterSilent | ev.ClusterAnswers
    ) -> ev.ClusterSilent | ev.ClusterAnswers:
        """What a cluster's adapter tells, under the cluster's name."""
        if isinstance(event, ev.ClusterSilent):
            self._silent.add(cluster)
        else:
            self._silent.discard(cluster)
        return msgspec.structs.replace(event, cluster=cluster)

    def begins(self, member: Member, now: float) -> Iterator[ev.Event]:
        """A cluster tells its jobs."""
        if not member.begun and member.name in self._silent:
            yield self.of(member.name, ev.ClusterAnswers(now))

    def not_begun(self, members: Iterable[Member], now: float) -> Iterator[ev.Event]:
        """A cycle begins without the jobs of these clusters."""
        for member in members:
            if member.begun or member.name in self._silent:
                continue
            outage = outage_of(member)
            since, why = (now, _LATE) if outage is None else (outage.since, outage.message)
            yield self.of(member.name, ev.ClusterSilent(since, reason=why))
