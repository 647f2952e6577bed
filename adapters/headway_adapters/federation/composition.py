"""Which cluster carries out a decision, in a federation of real clusters and in one of emulated clusters.

A decision goes to the cluster that its job, pool, node or reservation belongs to. Nodes of several clusters
in one ``PowerUp`` or ``PowerDown`` are shared out. A decision that its cluster cannot carry out is refused
with the names of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

import msgspec

from headway import decisions as d
from headway.adapter import ClusterAdapter, Outcome
from headway.model import ClusterDescription, PoolDescription
from headway_adapters.federation.names import Elsewhere, Names


class Member(Protocol):
    """One cluster."""

    @property
    def name(self) -> str: ...
    @property
    def adapter(self) -> ClusterAdapter: ...
    @property
    def joined(self) -> bool:
        """It has answered."""

    @property
    def ended(self) -> bool:
        """It has no more to tell."""


#: A cluster's name, and a decision that it is to carry out, in the names for all.
Part = tuple[str, d.Decision]


class Composition:
    """Which clusters there are, and which of them a decision is for."""

    def __init__(
        self,
        members: Mapping[str, Member],
        names: Names,
        capabilities: frozenset[type[d.Decision]] = frozenset(),
    ) -> None:
        """``capabilities``: what is carried out for all clusters together, besides what each can."""
        self._members = members
        self._names = names
        self._together = capabilities

    def among(self, member: Member, pool: PoolDescription) -> PoolDescription:
        """A cluster's pool, which says what other clusters can carry out and its own cannot."""
        # Handlers may have given some of them more since they were made.
        known = self._together.union(*(each.adapter.capabilities for each in self._members.values()))
        lacks = tuple(sorted(kind.__name__ for kind in known - member.adapter.capabilities))
        return msgspec.structs.replace(pool, lacks=lacks) if lacks else pool

    def parts(self, decision: d.Decision) -> list[Part]:
        """The clusters that are to carry it out, each with its part.

        Raises :class:`Elsewhere` if none can.
        """
        if not isinstance(decision, d.PowerUp | d.PowerDown):
            return [(self._able(self.cluster_of(decision), decision), decision)]
        by_cluster: dict[str, list[str]] = {}
        for node in decision.nodes:
            by_cluster.setdefault(self._names.cluster_of(node), []).append(node)
        return [
            (self._able(name, decision), msgspec.structs.replace(decision, nodes=tuple(nodes)))
            for name, nodes in by_cluster.items()
        ]

    def _able(self, name: str, decision: d.Decision) -> str:
        """The cluster's name, if it can carry out such a decision."""
        kind = type(decision).__name__
        member = self._members.get(name)
        if member is None:
            known = ", ".join(self._members)
            raise Elsewhere(f"{kind}: expected a name that begins with a cluster's ({known}), found {name!r}")
        if not member.joined:
            raise Elsewhere(f"{kind}: cluster {name} has not answered yet")
        if member.ended:
            raise Elsewhere(f"{kind}: cluster {name} has ended")
        if type(decision) not in member.adapter.capabilities:
            raise Elsewhere(f"cluster {name} cannot carry out {kind}")
        return name

    def cluster_of(self, decision: d.Decision) -> str:
        """The cluster that a decision is about, as far as its names say; else ""."""
        cluster_of = self._names.cluster_of
        if isinstance(decision, d.Reserve):
            wanted = decision.reservation
            named = wanted.pool or (wanted.nodes[0] if wanted.nodes else "")
            return cluster_of(named) if named else self._names.cluster_of_reservation(wanted.id)
        if isinstance(decision, d.Unreserve):
            return self._names.cluster_of_reservation(decision.reservation_id)
        if isinstance(decision, d.SubmitSubjob):
            return self._names.cluster_of_job(decision.parent_id)
        return self._names.cluster_of_job(getattr(decision, "job_id", ""))


def described_together(
    names: Sequence[str], parts: Sequence[ClusterDescription], *, suspended_lend: bool
) -> ClusterDescription:
    """Clusters as one, in the names for all."""
    return ClusterDescription(
        name="+".join(names),
        pools=tuple(pool for part in parts for pool in part.pools),
        nodes=tuple(node for part in parts for node in part.nodes),
        reservations=tuple(one for part in parts for one in part.reservations),
        # Their names would have to tell jobs of several clusters.
        enters_reservations=False,
        licences=tuple(one for part in parts for one in part.licences),
        switches=tuple(one for part in parts for one in part.switches),
        shares_out=any(part.shares_out for part in parts),
        moves_take_time=any(part.moves_take_time for part in parts),
        suspended_lend=suspended_lend,
        numbered=all(part.numbered for part in parts),
    )


def failure_of(decision: d.Decision) -> d.AnyDecision:
    """The decision as an event names it."""
    return cast(d.AnyDecision, decision)


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome of a decision that several clusters carried out, or none could."""
    if len(outcomes) == 1:
        return outcomes[0]
    accepted = bool(outcomes) and all(outcome.accepted for outcome in outcomes)
    return Outcome(accepted, "; ".join(outcome.message for outcome in outcomes if outcome.message))
