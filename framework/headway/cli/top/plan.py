"""What runs and what is booked, over time: a line a node, or a line a job where a cluster has no nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from headway.cli.cells import moment, short
from headway.cli.top.asking import Questions
from headway.cli.top.lines import Line, Piece, line, wrapped
from headway.cli.top.view import AHEAD, Listing, Room, Shared
from headway.inquiry.pages import MOST
from headway.inquiry.reports import BookingPage, BookingReport, JobPage, JobReport, NodePage, NodeReport
from headway.service.protocol import Bookings, Jobs, Nodes

#: Hours that the picture may show.
SPANS = (0.5, 1, 2, 4, 8, 12, 24, 48, 96, 168, 336)
#: Pages of running jobs that are asked for a picture, at most, and jobs that are kept.
_PAGES, _KEPT = 3, 20_000
_LABEL = 12


@dataclass(frozen=True)
class Bar:
    """A job on a node, or for itself, over time (absolute seconds)."""

    job: str
    start: float
    #: None: it has no end.
    end: float | None
    user: str
    is_booked: bool


class Plan(Listing):
    """The nodes on the screen, what they do now, and what is planned for them."""

    name = "plan"
    hints = "left/right time  +/- scale  0 now  p pool"
    told = 3

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        #: Which of the spans is shown; None: one in which most of what is known ends.
        self.scale: int | None = None
        #: Seconds from now to where the picture begins.
        self.offset = 0.0
        self.nodes: tuple[NodeReport, ...] = ()
        self.first, self.is_all, self.asked = 0, False, False
        self.bookings: tuple[BookingReport, ...] = ()
        self.is_all_booked = True
        #: Running jobs by id, and where the next page of these begins.
        self.running: dict[str, JobReport] = {}
        self._next = 0

    def reset(self) -> None:
        super().reset()
        self.nodes, self.first, self.is_all, self.asked = (), 0, False, False

    # ------------------------------------------------------------------ asking

    def look(self, room: Room) -> Questions:
        pool, first = self.shared.pool, self.top
        reply = yield Nodes(pool, first, min(MOST, self.rows(room)))
        self.says = "" if isinstance(reply.found, NodePage) else reply.reason
        if not isinstance(reply.found, NodePage):
            return
        if first and not reply.found.nodes:
            self.top = self.at = self.at // 2
            yield from self.look(room)
            return
        self.nodes, self.first, self.is_all = reply.found.nodes, first, reply.found.next is None
        reply = yield Bookings(pool, 0, MOST)
        if isinstance(reply.found, BookingPage):
            self.bookings, self.is_all_booked = reply.found.bookings, reply.found.next is None
            self.shared.remark = reply.reason
        yield from self._ask_running(pool)
        self.asked = True
        self.point(self.at, room)

    def _ask_running(self, pool: str) -> Questions:
        """A page of the running jobs; more, as long as a node on the screen has a job that is not known."""
        for _ in range(_PAGES):
            reply = yield Jobs(pool=pool, status="running", first=self._next, count=MOST)
            if not isinstance(reply.found, JobPage):
                return
            for job in reply.found.jobs:
                # The latest stand last, so that what is not told any more goes first.
                self.running.pop(job.id, None)
                self.running[job.id] = job
            self._next = reply.found.next or 0
            while len(self.running) > _KEPT:
                del self.running[next(iter(self.running))]
            if not self.nodes and not self._next:
                known = {job.id for job in reply.found.jobs}
                self.running = {job_id: job for job_id, job in self.running.items() if job_id in known}
            if all(job in self.running for node in self.nodes for job in node.jobs):
                return

    # ------------------------------------------------------------------ the rows

    def _job_bars(self) -> list[Bar]:
        """On a cluster without nodes: what runs, by its end, then what is booked, by its start."""
        runs = [_of_running(job) for job in self.running.values()]
        books = [bar for bar in map(_of_booking, self.bookings) if bar is not None]
        return [
            *sorted(runs, key=lambda bar: float("inf") if bar.end is None else bar.end),
            *sorted(books, key=lambda bar: bar.start),
        ]

    def _node_bars(self, node: NodeReport) -> list[Bar]:
        runs = [_of_running(self.running[job]) for job in node.jobs if job in self.running]
        here = (one for one in self.bookings if any(name == node.name for name, _ in one.placement))
        books = [bar for bar in map(_of_booking, here) if bar is not None]
        return sorted([*runs, *books], key=lambda bar: (bar.is_booked, bar.start))

    def length(self) -> int:
        if not self.nodes:
            return len(self._job_bars())
        return self.first + len(self.nodes) + (0 if self.is_all else AHEAD)

    def needs(self, room: Room) -> bool:
        last = self.top + self.rows(room)
        known = self.first + len(self.nodes)
        return not self.asked or (
            bool(self.nodes) and (self.top < self.first or (last > known and not self.is_all))
        )

    def _pointed(self) -> list[Bar]:
        if not self.nodes:
            return self._job_bars()[self.at : self.at + 1]
        at = self.at - self.first
        return self._node_bars(self.nodes[at]) if 0 <= at < len(self.nodes) else []

    def chosen(self) -> str:
        bars = self._pointed()
        return bars[0].job if bars else ""

    def key(self, key: str, room: Room) -> bool:
        scale = self._scale(room)
        if key in ("plus", "equals_sign", "minus"):
            self.scale = max(0, min(scale + (1 if key == "minus" else -1), len(SPANS) - 1))
        elif key in ("left", "right"):
            self.offset = max(0.0, self.offset + (900.0 if key == "right" else -900.0) * SPANS[scale])
        elif key == "0":
            self.offset, self.scale = 0.0, None
        else:
            return super().key(key, room)
        return True

    # ------------------------------------------------------------------ the picture

    def draw(self, room: Room) -> list[Line]:
        if not self.asked:
            return [line(self.says)]
        rows, wide = self.rows(room), max(1, room.width - _LABEL - 2)
        begin = self.shared.now + self.offset
        hours = SPANS[self._scale(room)]
        cell = hours * 3600.0 / wide
        lines = [line(" " * (_LABEL + 1) + _axis(begin, cell, wide), "head")]
        for label, bars, at, is_known in self._rows(rows):
            pointed = at == self.at and self.shared.points
            mark, look = (">", "chosen") if pointed else (" ", "quiet")
            named = Piece(f"{mark}{short(label, _LABEL - 1):<{_LABEL}}", look)
            lines.append((named, *_drawn(bars, begin, cell, wide, is_known)))
        lines += [line("")] * (1 + rows - len(lines))
        told = [f"# runs  = booked  % several jobs  ? not told  {hours:g} hours are shown{self._rest()}"]
        told += wrapped(self._told(), room.width - 1)
        return [*lines, *(line(" " + text, "quiet") for text in told[: self.below])]

    def _rows(self, rows: int) -> Iterable[tuple[str, list[Bar], int, bool]]:
        """Of each row on the screen: its label, its bars, its place, and whether all its jobs are known."""
        if not self.nodes:
            for at, bar in enumerate(self._job_bars()[self.top : self.top + rows], self.top):
                yield bar.job, [bar], at, True
            return
        for at in range(self.top, self.top + rows):
            if 0 <= at - self.first < len(self.nodes):
                node = self.nodes[at - self.first]
                bars = self._node_bars(node)
                runs = any(not bar.is_booked for bar in bars)
                known = all(job in self.running for job in node.jobs) and (
                    runs or node.free >= node.processors
                )
                yield node.name + ("" if node.available else " x"), bars, at, known

    def _told(self) -> str:
        now = self.shared.now
        bars = self._pointed()
        words = [
            f"{bar.job} {bar.user} {moment(bar.start, now) if bar.is_booked else 'runs'}"
            f"-{moment(bar.end, now) if bar.end is not None else ''}"
            for bar in bars[:6]
        ]
        more = f" and {len(bars) - 6} more" if len(bars) > 6 else ""
        return f"{', '.join(words) or 'Nothing runs here and nothing is booked'}{more}."

    def _rest(self) -> str:
        return "" if self.is_all_booked else f", and the first {len(self.bookings)} bookings"

    def _scale(self, room: Room) -> int:
        """The span that is shown."""
        if self.scale is not None:
            return self.scale
        now = self.shared.now
        ends = sorted(
            bar.end - now
            for _, bars, _, _ in self._rows(self.rows(room))
            for bar in bars
            if bar.end is not None
        )
        most = ends[len(ends) * 3 // 4] if ends else 0.0
        return next((at for at, hours in enumerate(SPANS) if hours * 3600 >= most), len(SPANS) - 1)


def _of_running(job: JobReport) -> Bar:
    started = job.started if job.started is not None else job.submitted
    return Bar(job.id, started, job.expected_end, job.user, False)


def _of_booking(booking: BookingReport) -> Bar | None:
    if booking.start is None:
        return None
    return Bar(booking.job, booking.start, booking.end, booking.user, True)


def _axis(begin: float, cell: float, wide: int) -> str:
    """Times above the columns, each where its column begins."""
    text = ""
    day = None
    for column in range(0, wide - 5, 12):
        at = datetime.fromtimestamp(begin + column * cell)
        stamp = at.strftime("%H:%M") if at.date() == day or day is None else at.strftime("%m-%d %H:%M")
        day = at.date()
        text = f"{text:<{column}}|{stamp}" if len(text) <= column else text
    return text[:wide]


def _drawn(bars: Sequence[Bar], begin: float, cell: float, wide: int, is_known: bool) -> list[Piece]:
    """A row of the picture."""
    counts, booked = [0] * wide, [False] * wide
    marks = [""] * wide
    for bar in bars:
        if bar.is_booked and bar.end is not None and bar.end <= begin:
            continue
        # A column is a bar's if the bar has its middle; each has one. A job that should be over still runs.
        first = max(0, round((bar.start - begin) / cell))
        last = wide if bar.end is None else max(first + 1, round((bar.end - begin) / cell))
        for column in range(first, min(last, wide)):
            counts[column] += 1
            booked[column] = bar.is_booked
        label = f"|{bar.job}"
        if len(label) < min(last, wide) - first:
            for at, char in enumerate(short(label, len(label)), first):
                marks[at] = char if counts[at] == 1 else ""
    if not is_known and counts[0] == 0:
        marks[0] = "?"
    pieces = []
    for column in range(wide):
        count = counts[column]
        if count > 1:
            pieces.append(Piece("%", "part"))
        elif count:
            look = "booked" if booked[column] else "runs"
            pieces.append(Piece(marks[column] or ("=" if booked[column] else "#"), look))
        else:
            pieces.append(Piece(marks[column] or ".", "quiet"))
    return pieces
