"""How a host is found for a job: which hosts are asked, and in which order.

D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005, sections 4 and 5.1. The first host that satisfies the criterion
wins.

- *random*: draw a point and ask the owner of its rectangle, at most ``tries`` times (5). A host may be asked
  twice, and each time counts.
- *ring*: from the owner of a random point, ask this host, then its neighbours, then theirs, up to ``hops``
  steps away (2); each host once, in ascending order within a ring. The paper allows the client's own place as
  the beginning, too (``start: own``).
- *lowest*: ask all hosts in ascending order, for examples that are worked out by hand.
- *global* is ours, for a scheduler that knows all calendars: of the hosts that satisfy the criterion the host
  that stays idle longest, and of hosts that are all busy the host that is idle first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from headway_plugins.wave.draws import Draws
from headway_plugins.wave.hosts import Hosts
from headway_plugins.wave.overlay import HEIGHT, WIDTH, Overlay


@dataclass(frozen=True, slots=True)
class Request:
    """What a search is for."""

    #: Whether a host satisfies the criterion.
    satisfies: Callable[[int], bool]
    #: The hour GMT.
    hour: int
    #: Random points are drawn from ``[low, low + height)`` of the second axis.
    low: float = 0.0
    height: float = HEIGHT
    #: The host whose user has submitted the job; None: it is not known.
    client: int | None = None


class Discovery(Protocol):
    """A way to find hosts, which counts its searches and the hosts that it asks."""

    searches: int
    asked: int

    def find(self, request: Request) -> int | None:
        """A host that satisfies the criterion; None: none was found."""
        ...


class Points:
    """Random points of an overlay's space."""

    def __init__(self, overlay: Overlay, draws: Draws) -> None:
        self._overlay, self._draws = overlay, draws
        self.searches = self.asked = 0

    def owner(self, request: Request) -> int:
        """The owner of a random point."""
        x = self._draws.unit() * WIDTH
        y = request.low + self._draws.unit() * request.height
        return self._overlay.owner(x, y)


class RandomPoints(Points):
    """*random*."""

    def __init__(self, overlay: Overlay, draws: Draws, tries: int) -> None:
        super().__init__(overlay, draws)
        self._tries = tries

    def find(self, request: Request) -> int | None:
        self.searches += 1
        for _ in range(self._tries):
            host = self.owner(request)
            self.asked += 1
            if request.satisfies(host):
                return host
        return None


class ExpandingRing(Points):
    """*ring*."""

    def __init__(self, overlay: Overlay, draws: Draws, hops: int, *, own: bool = False) -> None:
        super().__init__(overlay, draws)
        self._hops, self._own = hops, own
        self._orders: dict[int, list[int]] = {}

    def find(self, request: Request) -> int | None:
        self.searches += 1
        start = request.client if self._own else None
        if start is None:
            start = self.owner(request)
        if start not in self._orders:
            rings = self._overlay.rings(start, self._hops)
            self._orders[start] = [host for ring in rings for host in ring]
        for host in self._orders[start]:
            self.asked += 1
            if request.satisfies(host):
                return host
        return None


class Lowest:
    """*lowest*."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self.searches = self.asked = 0

    def find(self, request: Request) -> int | None:
        self.searches += 1
        for host in range(self._hosts):
            self.asked += 1
            if request.satisfies(host):
                return host
        return None


class Global:
    """*global*."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._orders: dict[int, list[int]] = {}
        self.searches = self.asked = 0

    def find(self, request: Request) -> int | None:
        self.searches += 1
        hour = request.hour % self._hosts.period
        if hour not in self._orders:
            self._orders[hour] = longest_idle(self._hosts, range(len(self._hosts)), hour)
        for host in self._orders[hour]:
            self.asked += 1
            if request.satisfies(host):
                return host
        return None


def longest_idle(hosts: Hosts, candidates: Iterable[int], hour: int) -> list[int]:
    """The candidates by the time that they stay idle, the longest first; then the busy ones by when they are
    idle again. The lower number comes first on a tie."""

    def rank(host: int) -> tuple[float, float, int]:
        change = hosts.change(host, hour)
        return -hosts.idle_left(host, hour), float("inf") if change is None else change, host

    return sorted(candidates, key=rank)
