"""The overlay network of the hosts: a content-addressable network (CAN) on a torus of 1 x 24.

S. Ratnasamy, P. Francis, M. Handley, R. Karp, S. Shenker: A Scalable Content-Addressable Network. SIGCOMM
2001; as D. Zhou and V. Lo use it (Wave Scheduler, JSSPP 2005, section 3.1). Each host owns one rectangle of
the space and knows the owners of the rectangles beside its own. The second axis is the hour west of
Greenwich.

What the papers leave open, and what is done here:

- Both axes wrap around (``wrap=False``: neither does).
- A rectangle is split in two halves, first by x, then by y, and so on. The newcomer takes the half that its
  point is in; a point on the border is in the upper (right) half.
- Neighbours: rectangles that abut along one axis and overlap, with a positive length, along the other axis. A
  pair that abuts on both sides of the torus counts once, and no host is its own neighbour.
- Routing goes to the neighbour whose rectangle is nearest to the destination, the second axis divided by 24,
  and to the lower number on ties. A host with the owner among its neighbours hands over to it: by distance
  alone, requests to a corner of several rectangles would go round that corner for ever.
- Leaving: the other half of the host's last split takes the rectangle back, if it is one rectangle. Otherwise
  the first pair of halves within it, lower half first, becomes one rectangle, and the host that this sets
  free takes over the rectangle of the host that leaves. So each host has one rectangle at all times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from headway.errors import UserError

#: The sizes of the space along both axes.
WIDTH, HEIGHT = 1.0, 24.0


class Rectangle(NamedTuple):
    """``[x0, x1) x [y0, y1)``."""

    x0: float
    x1: float
    y0: float
    y1: float

    @property
    def area(self) -> float:
        return (self.x1 - self.x0) * (self.y1 - self.y0)

    def halves(self, depth: int) -> tuple[Rectangle, Rectangle]:
        """The lower and the upper half of a rectangle that came about by so many splits."""
        x0, x1, y0, y1 = self
        if depth % 2:
            middle = (y0 + y1) / 2
            return Rectangle(x0, x1, y0, middle), Rectangle(x0, x1, middle, y1)
        middle = (x0 + x1) / 2
        return Rectangle(x0, middle, y0, y1), Rectangle(middle, x1, y0, y1)

    def touches(self, other: Rectangle, wrap: bool) -> bool:
        """Whether two rectangles are neighbours."""
        x0, x1, y0, y1 = self
        a0, a1, b0, b1 = other
        beside = _abut(x0, x1, a0, a1, WIDTH, wrap) and y0 < b1 and b0 < y1
        return beside or (_abut(y0, y1, b0, b1, HEIGHT, wrap) and x0 < a1 and a0 < x1)

    def distance(self, x: float, y: float, wrap: bool) -> float:
        """The square of the distance to a point, as a share of the space."""
        dx = _gap(self.x0, self.x1, x, WIDTH, wrap) / WIDTH
        dy = _gap(self.y0, self.y1, y, HEIGHT, wrap) / HEIGHT
        return dx * dx + dy * dy


SPACE = Rectangle(0.0, WIDTH, 0.0, HEIGHT)


@dataclass(slots=True, eq=False)
class _Part:
    """A node of the split tree: a host's rectangle, or two halves."""

    rectangle: Rectangle
    depth: int
    parent: _Part | None
    host: int = -1
    halves: tuple[_Part, _Part] | None = None


class Overlay:
    """Hosts and their rectangles. Hosts have numbers, in the order in which they join."""

    def __init__(self, *, wrap: bool = True) -> None:
        self._wrap = wrap
        self._root = _Part(SPACE, 0, None)
        self._parts: dict[int, _Part] = {}
        self._neighbours: dict[int, set[int]] = {}
        self._next = 0

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]], *, wrap: bool = True) -> Overlay:
        """The overlay of hosts that join at these points, one after the other."""
        overlay = cls(wrap=wrap)
        for x, y in points:
            overlay.join(x, y)
        return overlay

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def hosts(self) -> list[int]:
        """The numbers of the hosts, ascending."""
        return sorted(self._parts)

    def rectangle(self, host: int) -> Rectangle:
        """What a host owns."""
        return self._part(host).rectangle

    def neighbours(self, host: int) -> list[int]:
        """The owners of the rectangles beside a host's, ascending."""
        self._part(host)
        return sorted(self._neighbours[host])

    def join(self, x: float, y: float) -> int:
        """A host joins at a point; its number. Raises :class:`UserError` for a point outside of the space."""
        if not (0 <= x < WIDTH and 0 <= y < HEIGHT):
            raise UserError(f"point ({x:g}, {y:g}): expected 0 <= x < {WIDTH:g} and 0 <= y < {HEIGHT:g}")
        host, self._next = self._next, self._next + 1
        if not self._parts:
            self._own(self._root, host)
            self._neighbours[host] = set()
            return host
        part = self._at(x, y)
        owner, part.host = part.host, -1
        low, high = (_Part(half, part.depth + 1, part) for half in part.rectangle.halves(part.depth))
        part.halves = (low, high)
        mine = _half(part, part.halves, x, y)
        self._own(mine, host)
        self._own(low if mine is high else high, owner)
        self._neighbours[host] = set()
        self._meet({owner, host}, {*self._neighbours[owner], owner, host})
        return host

    def leave(self, host: int) -> None:
        """A host leaves, and its rectangle is taken over; its number is not used again."""
        part = self._part(host)
        left = self._neighbours.pop(host)
        del self._parts[host]
        for other in left:
            self._neighbours[other].discard(host)
        if part.parent is None:
            part.host = -1
            return
        pair = part.parent
        while pair.halves is not None and (inner := _inner_half(pair.halves)) is not None:
            pair = inner
        assert pair.halves is not None
        low, high = pair.halves
        if part in (low, high):
            keeps, moves = (high if part is low else low).host, None
        else:
            keeps, moves = low.host, high.host
        pair.halves = None
        self._own(pair, keeps)
        around = {keeps, *left, *self._neighbours[keeps]}
        changed = {keeps}
        if moves is not None:
            around |= {moves, *self._neighbours[moves]}
            changed.add(moves)
            self._own(part, moves)
        self._meet(changed, around)

    def owner(self, x: float, y: float) -> int:
        """The host whose rectangle a point is in. Raises :class:`UserError` if no host has joined."""
        if not self._parts:
            raise UserError("overlay: expected at least one host, found none")
        return self._at(x, y).host

    def route(self, start: int, x: float, y: float) -> list[int]:
        """The hosts that pass a request on, from the first to the owner of the point."""
        owner = self.owner(x, y)
        path = [start]
        while path[-1] != owner:
            beside = self._neighbours[path[-1]]
            path.append(owner if owner in beside else min(beside, key=lambda one: self._way(one, x, y)))
        return path

    def rings(self, start: int, hops: int) -> list[list[int]]:
        """The hosts that are 0, 1, ... ``hops`` steps away, each ring ascending; rings without hosts are left
        out."""
        found = [[start]]
        seen = {start}
        while len(found) <= hops:
            ring = {other for host in found[-1] for other in self._neighbours[host]} - seen
            if not ring:
                break
            seen |= ring
            found.append(sorted(ring))
        return found

    def _part(self, host: int) -> _Part:
        if host not in self._parts:
            raise UserError(f"host {host}: expected a host of the overlay, found none")
        return self._parts[host]

    def _at(self, x: float, y: float) -> _Part:
        part = self._root
        while part.halves is not None:
            part = _half(part, part.halves, x, y)
        return part

    def _own(self, part: _Part, host: int) -> None:
        part.host = host
        self._parts[host] = part

    def _meet(self, changed: set[int], around: set[int]) -> None:
        """Find the neighbours of hosts whose rectangles have changed; they are among ``around``."""
        for host in changed:
            for other in self._neighbours[host]:
                self._neighbours[other].discard(host)
            mine = self._parts[host].rectangle
            self._neighbours[host] = {
                other for other in around
                if other != host and mine.touches(self._parts[other].rectangle, self._wrap)
            }  # fmt: skip
            for other in self._neighbours[host]:
                self._neighbours[other].add(host)

    def _way(self, host: int, x: float, y: float) -> tuple[float, int]:
        return self._parts[host].rectangle.distance(x, y, self._wrap), host


def _half(part: _Part, halves: tuple[_Part, _Part], x: float, y: float) -> _Part:
    """The half that a point is in."""
    low, high = halves
    upper = y >= high.rectangle.y0 if part.depth % 2 else x >= high.rectangle.x0
    return high if upper else low


def _inner_half(halves: tuple[_Part, _Part]) -> _Part | None:
    """The first half that has halves itself."""
    return next((half for half in halves if half.halves is not None), None)


def _abut(a0: float, a1: float, b0: float, b1: float, size: float, wrap: bool) -> bool:
    """Whether two intervals of an axis meet at an end."""
    if a1 == b0 or b1 == a0:
        return True
    return wrap and ((a1 == size and b0 == 0) or (b1 == size and a0 == 0))


def _gap(low: float, high: float, at: float, size: float, wrap: bool) -> float:
    """The distance of a point from an interval of an axis."""
    if low <= at <= high:
        return 0.0
    if at < low:
        return min(low - at, at + size - high) if wrap else low - at
    return min(at - high, low + size - at) if wrap else at - high
