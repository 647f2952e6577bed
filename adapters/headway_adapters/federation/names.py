"""Names of a federation: the same things under the names of their cluster and under the names of the
federation.

``batch`` of cluster ``siteA`` is ``siteA:batch``; likewise jobs, array ids, nodes, licences and reservations.
Cluster names hold no colon, so the part before the first one is the cluster, whatever follows.

Reservations are the exception, because headway makes some under names of its own, and must find them
again after a restart by what the cluster calls them:

- one that headway keeps for a job carries that job's name: ``job_123`` of ``siteA`` is ``job_siteA:123``
  for all;
- any other that headway made keeps the name that it was made under, for there is one headway to give
  such names; only where two clusters have it already is the second one prefixed;
- any other reservation's name is prefixed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from headway.model import (
    FOR_JOB,
    Dependency,
    JobDescription,
    NodeDescription,
    PoolBounds,
    PoolDescription,
    Request,
    Reservation,
    SwitchDescription,
)
from headway.model.policy import SitePolicy

T = TypeVar("T")
Rename = Callable[[str], str]

JOB, NODE, POOL, RESERVATION, LICENCE = "job", "node", "pool", "reservation", "licence"

#: What the fields of events and decisions name.
_FIELDS = {
    "job_id": JOB, "other_job_id": JOB, "parent_id": JOB, "node": NODE, "nodes": NODE, "pool": POOL,
    "partition": NODE, "reservation_id": RESERVATION, "placement": NODE, "licence": LICENCE,
}  # fmt: skip
#: What the fields of descriptions name.
_OF: dict[type, dict[str, str]] = {
    JobDescription: {
        "id": JOB, "array_id": JOB, "pool": POOL, "further_pools": POOL, "reservation": RESERVATION,
    },
    Request: {"required_nodes": NODE, "excluded_nodes": NODE, "licences": LICENCE},
    Dependency: {"job_id": JOB},
    NodeDescription: {"name": NODE, "host": NODE, "pools": POOL},
    PoolDescription: {"name": POOL},
    PoolBounds: {},
    SwitchDescription: {"name": NODE, "nodes": NODE, "switches": NODE},
    # Its own id depends on its maker: see Names.
    Reservation: {"pool": POOL, "nodes": NODE, "licences": LICENCE},
    SitePolicy: {"pools": POOL},
}  # fmt: skip


class Elsewhere(Exception):
    """A name that is not this cluster's; the text says which."""


class Direction:
    """How names change on their way in or out of one cluster."""

    def __init__(self, names: Names, cluster: str, *, outward: bool) -> None:
        self._names = names
        self._cluster = cluster
        self._outward = outward

    def rename(self, kind: str, name: str) -> str:
        if kind == JOB:
            if self._outward:
                return self._names.job_outward(self._cluster, name)
            return self._names.job_inward(self._cluster, name)
        if kind == RESERVATION:
            if self._outward:
                return self._names.reservation_outward(self._cluster, name)
            return self._names.reservation_inward(self._cluster, name)
        if self._outward:
            return f"{self._cluster}:{name}"
        cluster, colon, local = name.partition(":")
        if not colon or cluster != self._cluster:
            raise Elsewhere(f"{kind} {name!r} is not of cluster {self._cluster}")
        return local

    def renamed(self, thing: T) -> T:
        """A copy of a struct in which every name is the other side's."""
        kinds = _OF.get(type(thing), _FIELDS)
        changes: dict[str, Any] = {}
        for field in thing.__struct_fields__:  # type: ignore[attr-defined]
            value = getattr(thing, field)
            if (
                field == "pool"
                and not value
                and self._outward
                and isinstance(thing, JobDescription | Reservation)
            ):
                value = self._names.only_pool.get(self._cluster, "")
            if self._outward and field == "job_id" and isinstance(thing, Dependency) and not value:
                # A singleton: only namesakes of its own cluster count.
                changes[field] = f"{self._cluster}:"
                continue
            if not value:
                # Nothing named, so that it stays nothing.
                continue
            changed = self._changed(value, kinds.get(field))
            if changed is not value:
                changes[field] = changed
        if isinstance(thing, Reservation):
            changes["id"] = (
                self._names.made_outward(self._cluster, thing)
                if self._outward
                else self._names.reservation_inward(self._cluster, thing.id)
            )
        return msgspec.structs.replace(thing, **changes) if changes else thing  # type: ignore[type-var]

    def _changed(self, value: Any, kind: str | None) -> Any:
        if isinstance(value, msgspec.Struct):
            return self.renamed(value)
        if isinstance(value, tuple):
            if isinstance(value[0], msgspec.Struct):
                return tuple(self.renamed(one) for one in value)
            if kind is None:
                return value
            # A placement is of nodes and counts, licences are names and amounts.
            return tuple(
                (self.rename(kind, one[0]), *one[1:]) if isinstance(one, tuple) else self.rename(kind, one)
                for one in value
            )
        if isinstance(value, dict) and kind is not None:
            return {self.rename(kind, name): said for name, said in value.items()}
        return self.rename(kind, value) if kind is not None and isinstance(value, str) else value


class Names:
    """The names of all clusters of a federation."""

    def __init__(self) -> None:
        #: Reservations: name for all -> cluster, name there; and back.
        self._all: dict[str, tuple[str, str]] = {}
        self._there: dict[tuple[str, str], str] = {}
        #: The names that their cluster has shown.
        self._shown: set[str] = set()
        #: Jobs that have gone to another cluster than the one that their name begins with.
        self._at: dict[str, str] = {}
        #: Jobs that have another id there than in their name: name for all -> cluster, id there; and back.
        self._place: dict[str, tuple[str, str]] = {}
        self._named: dict[tuple[str, str], str] = {}
        #: Of clusters with one pool, in their own names: what "" means there.
        self.only_pool: dict[str, str] = {}

    def outward(self, cluster: str) -> Direction:
        """From a cluster's names to the federation's."""
        return Direction(self, cluster, outward=True)

    def inward(self, cluster: str) -> Direction:
        """From the names for all to a cluster's. Raises :class:`Elsewhere` for another cluster's."""
        return Direction(self, cluster, outward=False)

    def cluster_of(self, name: str) -> str:
        """The cluster of a job, node or pool; "" if the name says none."""
        cluster, colon, _ = name.partition(":")
        return cluster if colon else ""

    def cluster_of_job(self, name: str) -> str:
        """The cluster that has a job."""
        return self._at.get(name) or self.job_place(name)[0]

    def job_place(self, name: str) -> tuple[str, str]:
        """The cluster that a job was submitted to, and its id there."""
        known = self._place.get(name)
        if known is not None:
            return known
        cluster, colon, local = name.partition(":")
        return (cluster, local) if colon else ("", name)

    def job_outward(self, cluster: str, local: str) -> str:
        """A job's name for all."""
        return self._named.get((cluster, local)) or f"{cluster}:{local}"

    def job_inward(self, cluster: str, name: str) -> str:
        """A job's id at a cluster. Raises :class:`Elsewhere` for another cluster's job."""
        there, local = self.job_place(name)
        if there != cluster:
            raise Elsewhere(f"job {name!r} is not of cluster {cluster}")
        return local

    def job_is(self, name: str, cluster: str, local: str) -> None:
        """The job is at this cluster under this id from now on, and keeps its name."""
        self._named.pop(self._place.pop(name, ("", "")), None)
        if (cluster, local) != self.job_place(name):
            self._place[name] = (cluster, local)
            self._named[(cluster, local)] = name

    def job_at(self, name: str, cluster: str) -> None:
        """The job is of this cluster from now on, and keeps its name."""
        if self.cluster_of(name) == cluster:
            self._at.pop(name, None)
        else:
            self._at[name] = cluster

    # ------------------------------------------------------------------ reservations

    def cluster_of_reservation(self, name: str) -> str:
        """The cluster that has it, as far as it is known or its name says; else ""."""
        known = self._all.get(name)
        if known is not None:
            return known[0]
        if name.startswith(FOR_JOB):
            return self.cluster_of_job(name.removeprefix(FOR_JOB))
        return self.cluster_of(name)

    def reservation_outward(self, cluster: str, local: str) -> str:
        """The federation's name of a reservation that was told before, or that is not ours."""
        return self._there.get((cluster, local)) or f"{cluster}:{local}"

    def made_outward(self, cluster: str, reservation: Reservation) -> str:
        """The federation's name of a reservation that a cluster shows; kept until :meth:`forget`."""
        local = reservation.id
        known = self._there.get((cluster, local))
        if known is not None:
            self._shown.add(known)
            return known
        name = f"{cluster}:{local}"
        if reservation.ours and local.startswith(FOR_JOB):
            name = FOR_JOB + self.job_outward(cluster, local.removeprefix(FOR_JOB))
        elif reservation.ours and local not in self._all and ":" not in local:
            name = local
        self._keep(name, cluster, local)
        self._shown.add(name)
        return name

    def reservation_inward(self, cluster: str, name: str) -> str:
        """A cluster's own name of a reservation; that of a new one is kept."""
        known = self._all.get(name)
        if known is None:
            start = FOR_JOB if name.startswith(FOR_JOB) else ""
            bare = name.removeprefix(start)
            owner, rest = self.job_place(bare) if start else bare.partition(":")[::2]
            known = (owner, start + rest) if ":" in bare else (cluster, name)
            if known[0] == cluster:
                self._keep(name, cluster, known[1])
        if known[0] != cluster:
            raise Elsewhere(f"reservation {name!r} is not of cluster {cluster}")
        return known[1]

    def _keep(self, name: str, cluster: str, local: str) -> None:
        self._all[name] = (cluster, local)
        self._there[(cluster, local)] = name

    def forget(self, name: str) -> None:
        """It is over."""
        self._shown.discard(name)
        known = self._all.pop(name, None)
        if known is not None:
            self._there.pop(known, None)

    def not_made(self, name: str) -> None:
        """A new one was refused: another cluster may get one of that name."""
        if name not in self._shown:
            self.forget(name)
