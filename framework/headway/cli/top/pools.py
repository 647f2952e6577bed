"""The pools: what is free, what waits, and what a job could have now that delays no planned job."""

from __future__ import annotations

from headway.cli.cells import NAME_WIDTH, moment, span
from headway.cli.top.asking import Questions
from headway.cli.top.lines import Column, Line, line, table, wrapped
from headway.cli.top.view import Listing, Room, Shared
from headway.inquiry.reports import HoleList, HoleReport, PoolHoles
from headway.service.protocol import Holes, PoolReport


class Pools(Listing):
    """A line a pool, and the holes of the pool that is pointed at."""

    name = "pools"
    hints = "enter the pool's nodes  up/down another pool"
    told = 4

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.holes: dict[str, PoolHoles] = {}

    def look(self, room: Room) -> Questions:
        # How the pools are was told with the daemon's status.
        reply = yield Holes()
        self.says = "" if isinstance(reply.found, HoleList) else reply.reason
        if isinstance(reply.found, HoleList):
            self.holes = {found.pool: found for found in reply.found.pools}

    def _pools(self) -> tuple[PoolReport, ...]:
        return () if self.shared.status is None else self.shared.status.pools

    def length(self) -> int:
        return len(self._pools())

    def pointed(self) -> str:
        """The name of the pool that is pointed at."""
        pools = self._pools()
        return pools[min(self.at, len(pools) - 1)].name if pools else ""

    def draw(self, room: Room) -> list[Line]:
        if not self._pools():
            return [line(self.says)]
        self.point(self.at, room)
        rows = self.rows(room)
        shown = self._pools()[self.top : self.top + rows]
        head, texts = table(self._columns(), shown, room.width - 1)
        lines = [line(" " + head, "head")]
        lines += [self.marked(text, self.top + at, room) for at, text in enumerate(texts)]
        lines += [line("")] * (1 + rows - len(lines))
        if not self.below:
            return lines
        told = [part for text in self._told(self.pointed()) for part in wrapped(text, room.width - 1, "  ")]
        return [*lines, *(line(" " + text, "quiet") for text in told[: self.below])]

    def _told(self, pool: str) -> list[str]:
        found = self.holes.get(pool)
        power = self.shared.status.power if self.shared.status is not None else {}
        asleep = ", ".join(f"{count} nodes {state}" for state, count in sorted(power.items()))
        told = [f"All pools: {asleep}."] if asleep else []
        if found is None:
            return [*told, self.says]
        if not found.holes:
            return [*told, f"{pool}: {found.why or 'nothing is free now'}"]
        return [*told, f"{pool}, free for a job that delays no other: "
                + "; ".join(_hole(one, self.shared.now) for one in found.holes)]  # fmt: skip

    def _columns(self) -> list[Column[PoolReport]]:
        def use(pool: PoolReport) -> str:
            part = (pool.total - pool.free) / pool.total if pool.total else 0.0
            return f"{'#' * round(part * 10):.<10} {part:4.0%}"

        tiers = len({pool.tier for pool in self._pools()}) > 1

        def largest(pool: PoolReport) -> str:
            found = self.holes.get(pool.name)
            if found is None or not found.holes:
                return "-"
            hole = found.holes[0]
            return f"{hole.processors} for {span(hole.seconds) if hole.seconds is not None else 'ever'}"

        return [
            Column("pool", lambda pool: pool.name, 2 * NAME_WIDTH),
            Column("state", lambda pool: "open" if pool.open else "closed", 6),
            Column("cpus", lambda pool: str(pool.total), 9, right=True),
            Column("free", lambda pool: str(pool.free), 9, right=True),
            Column("in use", use, 15),
            Column("queued", lambda pool: str(pool.queued), 8, right=True),
            Column("runs", lambda pool: str(pool.running), 8, right=True),
            Column("tier", lambda pool: str(pool.tier) if tiers else "", 4, right=True, spare=1),
            Column("largest hole", largest, 200),
        ]


def _hole(hole: HoleReport, now: float) -> str:
    nodes = f" ({hole.nodes} nodes)" if hole.nodes else ""
    until = "without an end" if hole.until is None else f"until {moment(hole.until, now)}"
    return f"{hole.processors} cpus{nodes} {until}"
