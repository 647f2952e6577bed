"""Originals and copies that belong together, as the marks at both clusters say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from headway_adapters.polling.resubmission import COPY, LEAVING, SEALED, Standing

#: A job at its cluster: the cluster's name, and its id there.
Place = tuple[str, str]
#: Cluster -> the jobs that it shows, by id; a cluster that does not answer is missing.
Shown = Mapping[str, Mapping[str, Standing]]


@dataclass(frozen=True)
class Ordered:
    """A route that this run was ordered: from where, to which cluster, the key of its label, and its copy as
    soon as that is marked."""

    source: Place
    target: str
    key: str
    copy: str = ""


@dataclass(frozen=True)
class Pair:
    """One route as its clusters show it."""

    source: Place
    original: Standing | None
    target: str
    copy: Standing | None
    #: It is the route that this run was ordered, and not what is left of an earlier one or forged.
    ordered: bool = False

    @property
    def place(self) -> str:
        """Where the copy is; "" without one."""
        return written((self.target, self.copy.job_id)) if self.copy is not None else ""

    @property
    def name(self) -> str:
        """What a message names: the copy, or the original without one."""
        return self.place or written(self.source)


def split(place: str) -> Place:
    """The cluster and the id there."""
    cluster, _, local = place.partition(":")
    return cluster, local


def written(place: Place) -> str:
    """As a mark has it."""
    return ":".join(place)


def needed(shown: Shown, ordered: Iterable[Ordered]) -> dict[str, set[str]]:
    """Cluster -> jobs that must be asked for: originals of copies, copies of originals, and what is ordered.

    Labels are left out: a user could have a cluster asked about any job.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for jobs in shown.values():
        for one in jobs.values():
            if one.mark is not None and one.state != "ended":
                cluster, local = split(one.mark.other)
                found[cluster].add(local)
    for route in ordered:
        found[route.source[0]].add(route.source[1])
    return found


class Pairing:
    """The routes that clusters show, and the routes that are ordered."""

    def __init__(self, shown: Shown, ordered: Collection[Ordered], clusters: Collection[str]) -> None:
        """``clusters``: all that there are, whether they answer or not."""
        self._shown = shown
        self._ordered = {route.source: route for route in ordered}
        self._clusters = clusters
        #: Originals that have a copy.
        self._seen: set[Place] = set()
        self.pairs: list[Pair] = []
        #: What the message names -> the cluster, and why its route cannot go on.
        self.stuck: dict[str, tuple[str, str]] = {}
        for cluster, jobs in shown.items():
            for one in sorted(jobs.values(), key=lambda job: (len(job.job_id), job.job_id)):
                self._copy(cluster, one)
        for cluster, jobs in shown.items():
            for one in jobs.values():
                self._original(cluster, one)
        for route in ordered:
            self._without_copy(route)

    def _copy(self, target: str, copy: Standing) -> None:
        if copy.mark is None:
            self._labelled(target, copy)
        elif copy.mark.kind in (COPY, SEALED) and (copy.state != "ended" or copy.ran):
            source = split(copy.mark.other)
            self._seen.add(source)
            if source[0] in self._shown:
                route = self._ordered.get(source)
                ours = route is not None and (route.target, route.copy) == (target, copy.job_id)
                original = self._shown[source[0]].get(source[1])
                self.pairs.append(Pair(source, original, target, copy, ours))
            elif copy.state != "ended":
                known = source[0] in self._clusters
                why = "does not answer" if known else "is not in the configuration"
                self.stuck[written((target, copy.job_id))] = target, f"cluster {source[0]} {why}"

    def _labelled(self, target: str, copy: Standing) -> None:
        """A label is believed if this run drew it; any other is of a route that ended early, or forged."""
        if copy.label is None or copy.came:
            return
        source = split(copy.label.original)
        route = self._ordered.get(source)
        ours = route is not None and (route.target, route.key) == (target, copy.label.key)
        if ours and source[0] in self._shown and source not in self._seen:
            self._seen.add(source)
            original = self._shown[source[0]].get(source[1])
            self.pairs.append(Pair(source, original, target, copy, ordered=True))
        elif source[0] in self._clusters and not ours:
            self.pairs.append(Pair(source, None, target, copy))

    def _original(self, cluster: str, one: Standing) -> None:
        source = cluster, one.job_id
        if one.mark is None or one.mark.kind != LEAVING or one.state == "ended" or source in self._seen:
            return
        self._seen.add(source)
        target, local = split(one.mark.other)
        if target in self._shown:
            route = self._ordered.get(source)
            ours = route is not None and (route.target, route.copy) == (target, local)
            self.pairs.append(Pair(source, one, target, self._shown[target].get(local), ours))
        else:
            known = target in self._clusters
            why = "does not answer" if known else "is not in the configuration"
            self.stuck[written(source)] = cluster, f"cluster {target} {why}"

    def _without_copy(self, route: Ordered) -> None:
        source = route.source
        if source not in self._seen and source[0] in self._shown and route.target in self._shown:
            original = self._shown[source[0]].get(source[1])
            self.pairs.append(Pair(source, original, route.target, None, ordered=True))
