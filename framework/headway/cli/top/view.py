"""What every view of the picture is: it asks, and draws what it was told. Nothing of a terminal is in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headway.cli.top.asking import Questions
from headway.cli.top.lines import Line, Piece, fit, line

if TYPE_CHECKING:
    from headway.service.protocol import Report


#: Rows behind the last that is known into which a person can go, where there are more.
AHEAD = 100


@dataclass(frozen=True)
class Room:
    """Cells for a view."""

    width: int
    height: int


@dataclass
class Shared:
    """What all views know: what is looked for, and how the daemon is."""

    #: What the person looks for, by the daemon's names of it ("pool", "user", "status", "account", "qos",
    #: "name"); no key: any.
    wanted: dict[str, str] = field(default_factory=dict)
    mine: bool = False
    #: Looked for in what is shown of a job.
    text: str = ""
    status: Report | None = None
    #: The time of the daemon's last cycle that an answer is of (absolute seconds).
    as_of: float | None = None
    #: What the daemon adds to its answers, such as that only own jobs are shown.
    remark: str = ""
    #: Whether a person can point at something.
    points: bool = True
    clock: Callable[[], float] = time.time

    @property
    def pool(self) -> str:
        return self.wanted.get("pool", "")

    @property
    def now(self) -> float:
        """The daemon's time, as far as it is known."""
        return self.clock() if self.as_of is None else self.as_of

    def want(self, what: str, value: str) -> None:
        """Look for this; "": for any."""
        self.wanted.pop(what, None)
        if value:
            self.wanted[what] = value

    def pools(self) -> list[str]:
        """The names of the pools that are known."""
        return [] if self.status is None else [pool.name for pool in self.status.pools]


class View:
    """One view. Subclasses say what is asked, and draw it."""

    #: In the list of views, and for ``--show``.
    name = ""
    #: Keys of its own, in the last line.
    hints = ""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        #: Why nothing is shown, in the daemon's words.
        self.says = ""

    def look(self, room: Room) -> Questions:
        """What is asked for one picture; each ``yield`` is sent the reply."""
        return
        yield

    def draw(self, room: Room) -> Sequence[Line]:
        """The lines; at most ``room.height``."""
        return ()

    def key(self, key: str, room: Room) -> bool:
        """Whether the key was one of this view's; the view has changed then."""
        return False

    def needs(self, room: Room) -> bool:
        """Whether something on the screen is not known yet."""
        return False

    def chosen(self) -> str:
        """The id of the job that the person points at; "": none."""
        return ""

    def reset(self) -> None:
        """Something else is looked for."""


class Listing(View):
    """A view in which one of many rows is pointed at."""

    #: Lines above the rows, and below them for what is pointed at.
    above, told = 1, 2

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        #: The first row on the screen, and the row that is pointed at.
        self.top = self.at = 0

    @property
    def below(self) -> int:
        """Lines below the rows."""
        return self.told if self.shared.points else 0

    def length(self) -> int:
        """Rows, as far as it is known."""
        return 0

    def rows(self, room: Room) -> int:
        """Rows on the screen."""
        return max(1, room.height - self.above - self.below)

    def reset(self) -> None:
        self.top = self.at = 0

    def key(self, key: str, room: Room) -> bool:
        rows = self.rows(room)
        steps = {
            "up": -1, "k": -1, "down": 1, "j": 1, "pageup": -rows, "pagedown": rows, "space": rows,
            "home": -self.at, "g": -self.at, "end": self.length(), "G": self.length(),
        }  # fmt: skip
        if key not in steps:
            return False
        self.point(self.at + steps[key], room)
        return True

    def point(self, at: int, room: Room) -> None:
        """Point at a row, and bring it onto the screen."""
        rows = self.rows(room)
        self.at = max(0, min(at, self.length() - 1))
        self.top = max(0, min(self.top, self.at, self.length() - rows), self.at - rows + 1)

    def click(self, y: int, room: Room) -> bool:
        """The person clicked into a line of the view; whether there is a row."""
        row = self.top + y - self.above
        if not (self.above <= y < self.above + self.rows(room) and row < self.length()):
            return False
        self.at = row
        return True

    def marked(self, text: str, row: int, room: Room, look: str = "") -> Line:
        """A row, and whether it is the row that is pointed at."""
        if row == self.at and self.shared.points:
            return line(fit(">" + text, room.width), "chosen")
        return (Piece(" "), Piece(text, look))
