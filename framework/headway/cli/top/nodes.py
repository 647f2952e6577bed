"""The map of the nodes: a character a node."""

from __future__ import annotations

import math

from headway.cli.cells import short
from headway.cli.top.asking import Questions
from headway.cli.top.lines import Line, Piece, line, wrapped
from headway.cli.top.view import Room, Shared, View
from headway.inquiry.pages import MOST
from headway.inquiry.reports import NodePage, NodeReport
from headway.service.protocol import Nodes

#: What a character of the map means, and how it looks.
LEGEND = (
    (".", "free", "free"), ("1-9", "tenths used", "part"), ("#", "all used", "runs"),
    ("R", "reserved", "part"), ("x", "down", "bad"), ("z", "asleep", "quiet"), ("w", "in between", "part"),
)  # fmt: skip
_LABEL = 12
_GROUP = 10


def character(node: NodeReport) -> tuple[str, str]:
    """The character of a node, and its look."""
    if not node.available:
        return "x", "bad"
    if node.power == "asleep":
        return "z", "quiet"
    if node.power != "on":
        return "w", "part"
    used = node.processors - node.free
    if used <= 0:
        return ("R", "part") if node.reservations else (".", "free")
    if node.free <= 0:
        return "#", "runs"
    return str(max(1, min(9, math.floor(10 * used / node.processors)))), "part"


class NodeMap(View):
    """As many nodes as there is room for; pages of them that are on the screen are asked for in turn."""

    name = "nodes"
    hints = "arrows node  p pool  enter its first job"
    #: Lines above the map and below it.
    above, told = 1, 3

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.nodes: dict[int, NodeReport] = {}
        #: Place of a page -> when it was told.
        self._told: dict[int, float] = {}
        #: How many nodes there are; None: not known yet.
        self.count: int | None = None
        self.top = self.at = 0

    def reset(self) -> None:
        self.nodes, self._told, self.count, self.top, self.at = {}, {}, None, 0, 0

    @property
    def below(self) -> int:
        """Lines below the map."""
        return self.told if self.shared.points else 0

    def _per_line(self, room: Room) -> int:
        return max(1, (room.width - _LABEL - 2) // (_GROUP + 1)) * _GROUP

    def _lines(self, room: Room) -> int:
        return max(1, room.height - self.above - self.below)

    def look(self, room: Room) -> Questions:
        last = self.top + self._per_line(room) * self._lines(room)
        pages = range(self.top // MOST * MOST, last, MOST)
        # The page that was told longest ago comes first, so that all get their turn.
        for first in sorted(pages, key=lambda place: self._told.get(place, -math.inf)):
            if self.count is not None and first >= self.count > 0:
                continue
            yield from self._page(first)

    def _page(self, first: int) -> Questions:
        """A page, which the daemon may tell in several parts."""
        place: int | None = first
        while place is not None and place < first + MOST:
            reply = yield Nodes(self.shared.pool, place, first + MOST - place)
            if not isinstance(reply.found, NodePage):
                self.says = reply.reason
                return
            self.says = ""
            for at, node in enumerate(reply.found.nodes, place):
                self.nodes[at] = node
            if reply.found.next is None:
                self.count = place + len(reply.found.nodes)
                self.nodes = {at: node for at, node in self.nodes.items() if at < self.count}
                self.at = max(0, min(self.at, self.count - 1))
                self.top = min(self.top, self.at)
            place = reply.found.next
        self._told[first] = self.shared.clock()

    def needs(self, room: Room) -> bool:
        last = self.top + self._per_line(room) * self._lines(room)
        return any(at not in self.nodes for at in range(self.top, min(last, self.count or last)))

    def _known(self) -> int:
        return self.count if self.count is not None else max(self.nodes, default=-1) + 1

    def key(self, key: str, room: Room) -> bool:
        wide, page = self._per_line(room), self._per_line(room) * self._lines(room)
        length = self.count if self.count is not None else self._known() + MOST
        steps = {
            "left": -1, "right": 1, "up": -wide, "k": -wide, "down": wide, "j": wide, "pageup": -page,
            "pagedown": page, "space": page, "home": -self.at, "g": -self.at, "end": length,
            "G": length,
        }  # fmt: skip
        if key not in steps:
            return False
        self.at = max(0, min(self.at + steps[key], length - 1))
        row, first = self.at // wide, self.top // wide
        self.top = max(min(first, row), row - self._lines(room) + 1) * wide
        return True

    def click(self, x: int, y: int, room: Room) -> bool:
        """The person clicked into the map; whether there is a node."""
        column = x - _LABEL - 1
        if column < 0 or column % (_GROUP + 1) == _GROUP or not 0 <= y - self.above < self._lines(room):
            return False
        column -= column // (_GROUP + 1)
        at = self.top + (y - self.above) * self._per_line(room) + column
        if column >= self._per_line(room) or at not in self.nodes:
            return False
        self.at = at
        return True

    def chosen(self) -> str:
        node = self.nodes.get(self.at)
        return node.jobs[0] if node is not None and node.jobs else ""

    def draw(self, room: Room) -> list[Line]:
        if not self.nodes:
            return [line(self.says or ("This cluster has no nodes, only processors." if self._told else ""))]
        legend: list[Piece] = [Piece(" ")]
        for mark, means, look in LEGEND:
            legend += [Piece(mark, look), Piece(f" {means}  ", "quiet")]
        lines: list[Line] = [tuple(legend)]
        wide = self._per_line(room)
        for row in range(self._lines(room)):
            lines.append(self._map_line(self.top + row * wide, wide))
        told = wrapped(self._node(), room.width - 1)
        return [*lines, *(line(" " + text, "quiet") for text in told[: self.below])]

    def _map_line(self, first: int, wide: int) -> Line:
        if first >= self._known():
            return line("")
        node = self.nodes.get(first)
        pieces = [Piece(f" {short(node.name if node is not None else '', _LABEL - 1):<{_LABEL}}", "quiet")]
        for at in range(first, min(first + wide, self._known())):
            if at > first and (at - first) % _GROUP == 0:
                pieces.append(Piece(" "))
            node = self.nodes.get(at)
            mark, look = ("?", "quiet") if node is None else character(node)
            pieces.append(Piece(mark, "chosen" if at == self.at and self.shared.points else look))
        return tuple(pieces)

    def _node(self) -> str:
        """The node that is pointed at."""
        node = self.nodes.get(self.at)
        of = f"Node {self.at + 1} of {self.count if self.count is not None else f'{self._known()} or more'}"
        if node is None:
            return of
        parts = [f"{node.name}, {node.free} of {node.processors} cpus free"]
        if node.memory is not None and node.memory_free is not None:
            parts.append(f"{node.memory_free / 2**30:.0f} of {node.memory / 2**30:.0f} GiB free")
        parts += [f"{left} of {amount} {kind} free" for kind, amount, left in node.gres]
        if not node.available:
            parts.append(f"not usable: {node.reason or 'no reason is told'}")
        if node.power != "on":
            parts.append(node.power)
        told = f"{of}: {', '.join(parts)}; pools {', '.join(node.pools)}."
        if node.jobs:
            told += f" Jobs {', '.join(node.jobs[:8])}{' ...' if len(node.jobs) > 8 else ''}."
        if node.reservations:
            told += f" Reservations {', '.join(node.reservations[:4])}."
        return told
