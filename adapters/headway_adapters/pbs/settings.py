"""What only administrators change, seldom: the queues, the server, the licences. Looked at now and then.

A queue that is created has jobs at once. So a job or a vnode that names an unknown queue has the queues asked
for in that very look.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway_adapters.pbs import cluster, licences
from headway_adapters.pbs.client import PbsClient, is_silence
from headway_adapters.pbs.listings import Listings
from headway_adapters.polling.client import Unanswered
from headway_adapters.transport import Result

#: How long they count as they were seen, in poll intervals.
_FOR = 5.0


@dataclass(frozen=True)
class Seen:
    """The settings as they were seen last."""

    queues: Mapping[str, cluster.Queue]
    servers: Mapping[str, Mapping[str, Any]]
    notes: frozenset[str]
    #: How much there is of what is counted for the whole server.
    licences: Mapping[str, int]
    #: On the monotonic clock.
    until: float
    #: The queues that were asked for, including routing queues and missing queues.
    names: frozenset[str]


class Settings:
    """Asks for the settings of one PBS when it is time to. On the looking thread."""

    def __init__(
        self, client: PbsClient, listings: Listings, *, poll_interval: float, licences: bool
    ) -> None:
        """``poll_interval``: seconds. ``licences``: there may be resources that PBS counts for the server."""
        self._client = client
        self._listings = listings
        self._for = _FOR * poll_interval
        self._licences = licences
        self._seen: Seen | None = None
        #: The site's own resources with their flags (None: not told), and what the server had then.
        self._flags: Mapping[str, str] | None = None
        self._flags_of: frozenset[str] = frozenset()

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """The commands that ask for them."""
        form = self._listings.form
        return [("qstat", "-Q", "-f", *form), ("qstat", "-B", "-f", *form)]

    def due(self) -> list[tuple[str, ...]]:
        """The commands to run with this look; none while what was seen counts."""
        seen = self._seen
        return self.commands if seen is None or time.monotonic() >= seen.until else []

    def read(self, results: Sequence[Result], *, named: Collection[str]) -> Seen:
        """The settings by the answers to :meth:`due`; asked for anew where an unknown queue is ``named``.

        Raises :class:`Unanswered`.
        """
        if results:
            self._seen = self._read(results)
        seen = self._seen
        if seen is None or not seen.names.issuperset(named):
            seen = self._read(self._client.run_many(self.commands))
        self._seen = replace(seen, names=seen.names.union(named))
        return self._seen

    def _read(self, results: Sequence[Result]) -> Seen:
        for result in results:
            if not result.ok:
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        notes: set[str] = set()
        objects = self._listings.objects(results[0], "Queue", notes)
        queues = cluster.read_queues(objects)
        if not queues:
            raise Unanswered("qstat -Q: lists no execution queue")
        servers = self._listings.objects(results[1], "Server", notes)
        there = self._licences_of(servers, notes)
        until = time.monotonic() + self._for
        return Seen(queues, servers, frozenset(notes), there, until, frozenset(objects))

    def _licences_of(self, servers: Mapping[str, Mapping[str, Any]], notes: set[str]) -> Mapping[str, int]:
        """How much the server has of what is counted; the flags are asked for when a new name comes up, and
        for as long as one lacks the flag, which the administrator may set at any time."""
        there = licences.available(servers)
        if not self._licences or not there:
            return {}
        known = self._flags if there.keys() <= self._flags_of else None
        if known is None or licences.uncounted(there, known):
            result = self._client.run(licences.LIST)
            if is_silence(result) and known is None:
                raise Unanswered(f"qmgr: {result.complaint()}")
            if not result.ok:
                notes.add(f"which resources of the server PBS counts cannot be asked: {result.complaint()}")
            self._flags = licences.flags(result.text) if result.ok else known
            self._flags_of = frozenset(there)
        return licences.totals(there, self._flags, notes)
