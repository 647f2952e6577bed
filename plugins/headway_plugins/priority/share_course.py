"""How usage and its targets went over a run: what ``headway shares --html`` draws.

For each account or user: the part of what the account above has used that is theirs, and the part that their
shares (or their own target) promise, both 0 to 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headway_plugins.priority.fair_share import FairShare

#: As many moments at most are kept; of more, every second moment.
MOMENTS = 400


@dataclass(frozen=True)
class Line:
    """The course of an account or of a user in it; lists with a value a moment, NaN before it was known."""

    name: str
    is_user: bool
    target: list[float]
    used: list[float]


@dataclass
class Course:
    """Looks at a run's fair share again and again, at moments that are about equally far apart."""

    #: Absolute seconds.
    times: list[float] = field(default_factory=list)
    #: (account, user) -> target and part of the usage, by the number of the moment.
    parts: dict[tuple[str, str], dict[int, tuple[float, float]]] = field(default_factory=dict)
    _apart: float = 1.0

    def look(self, plugin: FairShare, now: float) -> None:
        """Time has come to ``now``: keep this moment, unless the last moment is too near."""
        if self.times and now < self.times[-1] + self._apart:
            return
        if len(self.times) >= MOMENTS:
            self._thin()
        self._keep(plugin, now)

    def end(self, plugin: FairShare, now: float) -> None:
        """The last moment, however near."""
        if not self.times or now > self.times[-1]:
            self._keep(plugin, now)

    def _keep(self, plugin: FairShare, now: float) -> None:
        at = len(self.times)
        self.times.append(now)
        total = plugin.standing(now).usage
        shape = plugin.tree.shape()
        used, target = shape.of_parent(total), shape.part
        for node, entry in enumerate(plugin.tree.entries):
            if node and not shape.joint[node]:
                promised = target[node] if entry.target is None else entry.target / 100
                whose = self.parts.setdefault((entry.account, entry.user), {})
                whose[at] = float(promised), float(used[node])

    def _thin(self) -> None:
        span = self.times[-1] - self.times[0]
        self.times = self.times[::2]
        self.parts = {
            whose: {at // 2: value for at, value in values.items() if at % 2 == 0}
            for whose, values in self.parts.items()
        }
        self._apart = max(2 * self._apart, 2 * span / MOMENTS)

    def families(self, plugin: FairShare, most: int) -> list[tuple[str, list[Line]]]:
        """An account -> the nodes right below it with something to show, the ``most`` that used most at the
        end; from the root down. Left out are a node without siblings and an account without usage."""
        tree, shape, moments = plugin.tree, plugin.tree.shape(), range(len(self.times))
        below: dict[str, list[Line]] = {}
        for node, _ in tree.walk():
            entry = tree.entries[node]
            values = self.parts.get((entry.account, entry.user))
            if values is None:
                continue
            both = [values.get(at, (math.nan, math.nan)) for at in moments]
            target, used = ([one[which] for one in both] for which in (0, 1))
            # A node in an account without shares of its own is a sibling of that account's siblings.
            account = tree.entries[shape.parent[node]].account
            line = Line(entry.user or entry.account, bool(entry.user), target, used)
            below.setdefault(account, []).append(line)
        found = []
        for account, lines in below.items():
            if len(lines) > 1 and any(used > 0 for line in lines for used in line.used):
                lines.sort(key=lambda line: -line.used[-1])
                found.append((account, lines[:most]))
        return found
