"""The cycles as they come, and what was decided in each."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime

from headway.cli.top.asking import Questions
from headway.cli.top.lines import Line, line
from headway.cli.top.view import Room, Shared, View
from headway.inquiry.reports import CycleReport
from headway.service.protocol import Cycle

#: Lines that are kept.
_KEPT = 2000


class Cycles(View):
    """The latest at the end. Cycles between two looks of the picture are counted, not told."""

    name = "cycles"
    hints = "up/down scroll  end the latest"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.lines: deque[Line] = deque(maxlen=_KEPT)
        self._number: int | None = None
        #: Lines from the end; 0: the end is shown as it comes.
        self.back = 0

    def look(self, room: Room) -> Questions:
        reply = yield Cycle()
        found = reply.found
        self.says = "" if isinstance(found, CycleReport) else reply.reason
        if isinstance(found, CycleReport) and found.number != self._number:
            before = len(self.lines)
            self._add(found)
            if self.back:
                self.back += len(self.lines) - before
            self._number = found.number
            self.shared.remark = reply.reason

    def _add(self, cycle: CycleReport) -> None:
        if self._number is not None:
            missed = cycle.number - self._number - 1
            if missed > 0:
                self.lines.append(line(f" ... {missed:,} cycles between were not asked for", "quiet"))
            elif missed < -1:
                self.lines.append(line(" ... the daemon began anew", "quiet"))
        at = datetime.fromtimestamp(cycle.at).strftime("%H:%M:%S")
        came = ", ".join(f"{count} {name}" for name, count in cycle.events.items()) or "nothing happened"
        took = f"{cycle.seconds * 1000:.0f} ms"
        self.lines.append(line(f" {at} cycle {cycle.number:,} ({took}): {came}", "head"))
        for one in cycle.first:
            job = f" {one.job}" if one.job else ""
            why = f": {one.reason}" if one.reason else ""
            refused = "" if one.accepted else f" REFUSED by the cluster: {one.message or 'without a reason'}"
            self.lines.append(line(f"   {one.decision}{job}{refused}{why}", "bad" if refused else ""))
        rest = sum(cycle.decisions.values()) - len(cycle.first)
        if rest > 0:
            counts = ", ".join(f"{count} {name}" for name, count in cycle.decisions.items())
            self.lines.append(line(f"   ... of {counts}", "quiet"))
        elif not cycle.decisions:
            self.lines.append(line("   nothing was decided", "quiet"))

    def key(self, key: str, room: Room) -> bool:
        most = max(0, len(self.lines) - room.height)
        steps = {
            "up": 1, "k": 1, "down": -1, "j": -1, "pageup": room.height, "pagedown": -room.height,
            "space": -room.height, "home": most, "g": most, "end": -most, "G": -most,
        }  # fmt: skip
        if key not in steps:
            return False
        self.back = max(0, min(self.back + steps[key], most))
        return True

    def draw(self, room: Room) -> Sequence[Line]:
        if not self.lines:
            return [line(self.says)]
        end = len(self.lines) - min(self.back, max(0, len(self.lines) - room.height))
        return list(self.lines)[max(0, end - room.height) : end]
