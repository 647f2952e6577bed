"""The geometry of a wired machine: boxes of midplanes, their links, and which boxes conflict.

A partition with extent n on lines of length N takes, on each of its lines:

==================  ====================================================================
n = 1               no link (it is closed inside the midplane)
mesh, n > 1         the n - 1 links between its consecutive members
torus, n = N        all N
torus, 1 < n < N    all N: the ring is closed through the other midplanes' switches;
                    impossible where passing through is denied
==================  ====================================================================

Positions wrap around modulo N; where n = N only position 0 counts. Two partitions conflict if they share a
midplane, or if together they use some link more often than its capacity. Sets of midplanes and of links are
integers, one bit each: midplane (x, y, z) is bit (x * Y + y) * Z + z; see :meth:`Geometry.link`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from headway.model.wiring import Torus

MESH, TORUS = "mesh", "torus"
CONNECTIONS = (MESH, TORUS)

Shape = tuple[int, int, int]


class Box(NamedTuple):
    """A rectangle of midplanes: where it begins, how far it goes, how it is wired."""

    origin: Shape
    shape: Shape
    connection: str = MESH

    @property
    def size(self) -> int:
        """Midplanes."""
        x, y, z = self.shape
        return x * y * z

    def __str__(self) -> str:
        """Such as ``1x2x2 at (0,0,0), mesh``."""
        at = ",".join(map(str, self.origin))
        return f"{'x'.join(map(str, self.shape))} at ({at}), {self.connection}"


def name_of(position: Sequence[int]) -> str:
    """The node name of a midplane, such as ``m0-3-1``."""
    return "m" + "-".join(str(at) for at in position)


def shapes_of(size: int, within: Shape) -> list[Shape]:
    """The shapes of so many midplanes that fit, least surface (ab + bc + ca) first, then by extents."""
    found = [
        (a, b, size // (a * b))
        for a in range(1, min(size, within[0]) + 1)
        if size % a == 0
        for b in range(1, min(size // a, within[1]) + 1)
        if (size // a) % b == 0 and size // (a * b) <= within[2]
    ]
    return sorted(found, key=lambda s: (s[0] * s[1] + s[1] * s[2] + s[2] * s[0], s))


class Geometry:
    """What follows from a torus' description."""

    def __init__(self, torus: Torus) -> None:
        self.torus = torus
        self.shape = torus.shape
        self.size = torus.shape[0] * torus.shape[1] * torus.shape[2]
        #: Node names in the order of their bits, and the other way round.
        self.names = [name_of(at) for at in product(*map(range, torus.shape))]
        self.index = {name: at for at, name in enumerate(self.names)}
        self.links = 3 * self.size
        #: How often each link may be used.
        self.capacity = [torus.capacity[d] for d in range(3) for _ in range(self.size)]
        #: Some link may be used several times.
        self.shared = max(torus.capacity) > 1
        self._positions = dict(zip(self.names, product(*map(range, torus.shape)), strict=True))
        self._boxes: dict[tuple[frozenset[str], str], Box | str] = {}
        #: The same by the nodes in the order in which they were asked for.
        self._asked: dict[tuple[tuple[str, ...], str], Box | str] = {}
        self._masks: dict[Box, tuple[int, int]] = {}
        self._nodes: dict[Box, tuple[str, ...]] = {}

    def bit(self, position: Sequence[int]) -> int:
        """The number of a midplane's bit."""
        x, y, z = position
        return (x * self.shape[1] + y) * self.shape[2] + z

    def link(self, dimension: int, position: Sequence[int]) -> int:
        """The number of the link that leads from a midplane to the next one along a dimension."""
        return dimension * self.size + self.bit(position)

    # ------------------------------------------------------------------ boxes

    def origins(self, shape: Shape, *, wrap: bool = True) -> Iterator[Shape]:
        """Where a box of this shape can begin, in lexicographic order; without ``wrap`` not across the
        edges."""
        yield from product(
            *(
                range(1 if n == whole else whole if wrap else whole - n + 1)
                for n, whole in zip(shape, self.shape, strict=True)
            )
        )

    def possible(self, shape: Shape, connection: str) -> bool:
        """Whether the machine can wire such a box at all."""
        if any(n > whole or n < 1 for n, whole in zip(shape, self.shape, strict=True)):
            return False
        if connection != TORUS:
            return True
        denied = self.torus.deny_passthrough
        return not any(1 < n < self.shape[d] and d in denied for d, n in enumerate(shape))

    def members(self, box: Box) -> list[Shape]:
        """The midplanes of a box."""
        x, y, z = self._spans(box)
        return list(product(x, y, z))

    def _spans(self, box: Box) -> list[list[int]]:
        """Its positions along each dimension."""
        return [
            [(start + step) % whole for step in range(n)]
            for start, n, whole in zip(box.origin, box.shape, self.shape, strict=True)
        ]

    def nodes_of(self, box: Box) -> tuple[str, ...]:
        """The names of its midplanes, in the order of their bits."""
        known = self._nodes.get(box)
        if known is None:
            known = self._nodes[box] = tuple([self.names[at] for at in bits_of(self.masks(box)[0])])
        return known

    def masks(self, box: Box) -> tuple[int, int]:
        """Its midplanes and the links that it takes, as bits."""
        known = self._masks.get(box)
        if known is None:
            known = self._masks[box] = self._count(box)
        return known

    def _count(self, box: Box) -> tuple[int, int]:
        spans = self._spans(box)
        links = 0
        for d, (n, whole) in enumerate(zip(box.shape, self.shape, strict=True)):
            if n > 1:
                taken = list(range(whole)) if box.connection == TORUS else spans[d][:-1]
                links |= self._bits([*spans[:d], taken, *spans[d + 1 :]]) << d * self.size
        return self._bits(spans), links

    def _bits(self, spans: Sequence[Sequence[int]]) -> int:
        """The bits of all midplanes with one position of each span."""
        _, high, deep = self.shape
        line = sum(1 << z for z in spans[2])
        layer = sum(line << y * deep for y in spans[1])
        return sum(layer << x * high * deep for x in spans[0])

    def without_room(self, held: Iterable[int]) -> int:
        """The links that no other partition can use beside the owners of these links, all as bits."""
        if not self.shared:
            full = 0
            for links in held:
                full |= links
            return full
        wires = Wires(self)
        for links in held:
            wires.take(0, links)
        return wires.full

    def box_of(self, nodes: Iterable[str], connection: str) -> Box | str:
        """The box that these midplanes are, or why they are none."""
        asked = tuple(nodes), connection
        answer = self._asked.get(asked)
        if answer is None:
            key = frozenset(asked[0]), connection
            answer = self._boxes.get(key)
            if answer is None:
                answer = self._boxes[key] = self._find(*key)
            self._asked[asked] = answer
        return answer

    def _find(self, nodes: frozenset[str], connection: str) -> Box | str:
        if connection not in CONNECTIONS:
            return f"expected the connection mesh or torus, found {connection!r}"
        strange = sorted(nodes - self.index.keys())
        if strange:
            return f"no midplane is called {strange[0]}"
        positions = [self._positions[name] for name in nodes]
        origin, shape = [], []
        for d, whole in enumerate(self.shape):
            there = {position[d] for position in positions}
            starts = [at for at in there if (at - 1) % whole not in there]
            if len(there) == whole:
                starts = [0]
            if len(starts) != 1:
                return f"{len(nodes)} midplanes that are not contiguous"
            origin.append(starts[0])
            shape.append(len(there))
        box = Box((origin[0], origin[1], origin[2]), (shape[0], shape[1], shape[2]), connection)
        if box.size != len(nodes):
            return f"{len(nodes)} midplanes that form no rectangle"
        if not self.possible(box.shape, connection):
            return f"{box}: no torus may be closed there through other midplanes' switches"
        return box


class Wires:
    """Which midplanes and links are in use, and how often."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._uses = [0] * geometry.links
        self._scarce = geometry.shared
        #: Midplanes in use, and links that no other partition can use, as bits.
        self.busy = 0
        self.full = 0

    def copy(self) -> Wires:
        """The same, to try something."""
        other = Wires(self._geometry)
        other._uses = list(self._uses)
        other.busy, other.full = self.busy, self.full
        return other

    def fits(self, nodes: int, links: int) -> bool:
        """Whether a partition of these midplanes and links conflicts with no other partition."""
        return not (nodes & self.busy or links & self.full)

    def take(self, nodes: int, links: int) -> None:
        """A partition that fits has them."""
        self.busy |= nodes
        if not self._scarce:
            self.full |= links
            return
        for link in bits_of(links):
            self._uses[link] += 1
            if self._uses[link] >= self._geometry.capacity[link]:
                self.full |= 1 << link

    def give_back(self, nodes: int, links: int) -> None:
        """It has them no more."""
        self.busy &= ~nodes
        if not self._scarce:
            self.full &= ~links
            return
        for link in bits_of(links):
            self._uses[link] -= 1
            if self._uses[link] < self._geometry.capacity[link]:
                self.full &= ~(1 << link)


def bits_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, smallest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
