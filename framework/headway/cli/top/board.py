"""The whole picture: what the daemon is, the list of views, one view, its keys; and who asks for what."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Sequence
from datetime import datetime

from headway.cli.top.asking import Pace, Questions
from headway.cli.top.cycles import Cycles
from headway.cli.top.help import Help
from headway.cli.top.job import OneJob
from headway.cli.top.jobs import JobListing, Queue, Running
from headway.cli.top.lines import Line, Piece, clipped, line, plain
from headway.cli.top.nodes import NodeMap
from headway.cli.top.plan import Plan
from headway.cli.top.pools import Pools
from headway.cli.top.shares import Shares
from headway.cli.top.view import Listing, Room, Shared, View
from headway.errors import Failure
from headway.service.protocol import AnyRequest, Reply, Status

#: The views with a number, in their order.
VIEWS: tuple[type[View], ...] = (Queue, Running, Pools, NodeMap, Plan, Cycles, Shares)
#: Lines above a view, and below it; the line of the list of views.
ABOVE, BELOW, TABS = 3, 1, 1
#: What can be looked for by name.
_WORDS = re.compile(r"(pool|user|status|account|qos|name)=(\S*)")
#: Seconds for which the daemon's status is not asked for again.
_FRESH = 2.0
#: So many times as long as usual, at most, after a daemon that refuses.
_SLOWEST = 8


class Board:
    """What is shown and what is known. Nothing here waits, and nothing here knows a terminal."""

    def __init__(self, where: str, pace: Pace | None = None, clock: Callable[[], float] = time.time) -> None:
        """``where``: the path of the daemon's socket; ``clock``: absolute seconds."""
        self.where = where
        self.shared = Shared(clock=clock)
        self.views = [kind(self.shared) for kind in VIEWS]
        self.job, self.help = OneJob(self.shared), Help(self.shared)
        self.view = self.views[0]
        self._back = self.view
        self._pace = pace if pace is not None else Pace()
        #: Since when the daemon does not answer or refuses, and why; and when it answered last.
        self.trouble_since: float | None = None
        self.trouble = ""
        self.answered: float | None = None
        #: Until when the daemon's status is not asked for again (absolute seconds).
        self._status_until = 0.0
        self._refusals = 0
        #: Questions were left out of the last look, because it would have been too many.
        self.is_short = False
        #: Grows with each change of what is wanted: answers to earlier questions are of no use.
        self.version = 0

    # ------------------------------------------------------------------ asking

    def look(self, room: Room) -> Generator[AnyRequest, Reply | Failure, None]:
        """What is asked for one picture; each ``yield`` is sent the reply, or why there is none."""
        self.is_short = False
        for chain in (self._status(), self.view.look(self.inside(room))):
            request = next(chain, None)
            while request is not None:
                if not self._pace.take():
                    self.is_short = True
                    return
                said = yield request
                # With a time, the question was taken, and the view tells what failed.
                if isinstance(said, Failure) or (said.outcome == "failed" and said.as_of is None):
                    self._troubled(said)
                    return
                if said.as_of is not None:
                    self.shared.as_of = said.as_of
                try:
                    request = chain.send(said)
                except StopIteration:
                    request = None
        self.trouble_since, self.trouble, self._refusals = None, "", 0
        self.answered = self.shared.clock()

    def lacks(self, room: Room) -> bool:
        """Whether something on the screen was left out, because it would have been too many questions."""
        return self.is_short and self.view.needs(self.inside(room))

    def _status(self) -> Questions:
        if self.trouble_since is None and self.shared.clock() < self._status_until:
            return
        reply = yield Status()
        self._status_until = self.shared.clock() + _FRESH
        self.shared.status = reply.status
        if reply.status is not None and reply.status.last_cycle is not None:
            self.shared.as_of = reply.status.last_cycle

    def _troubled(self, said: Reply | Failure) -> None:
        self.trouble = str(said) if isinstance(said, Failure) else f"refused: {said.reason}"
        self._refusals = 0 if isinstance(said, Failure) else self._refusals + 1
        if self.trouble_since is None:
            self.trouble_since = self.shared.clock()

    def patience(self, every: float) -> float:
        """Seconds until the next look: longer each time that the daemon refuses."""
        if self.is_short:
            return min(every, self._pace.pause())
        return float(every * min(_SLOWEST, 2**self._refusals))

    # ------------------------------------------------------------------ keys, mouse and words

    @staticmethod
    def inside(room: Room) -> Room:
        """What a view has of the room."""
        return Room(room.width, max(1, room.height - ABOVE - BELOW))

    def show(self, name: str) -> None:
        """Show the view of this name."""
        self._open(next(view for view in self.views if view.name == name))

    def _open(self, view: View) -> None:
        if view is self.view:
            return
        if view in (self.job, self.help) and self.view not in (self.job, self.help):
            self._back = self.view
        self.view = view
        self.shared.remark = ""
        self.version += 1

    def key(self, key: str, room: Room) -> bool:
        """Whether the key meant something."""
        if self._key_of_all(key):
            return True
        handled = self.view.key(key, self.inside(room))
        if handled and self.view.needs(self.inside(room)):
            self.version += 1
        return handled

    def _key_of_all(self, key: str) -> bool:
        if key.isdigit() and 1 <= int(key) <= len(self.views):
            self._open(self.views[int(key) - 1])
        elif key in ("tab", "shift+tab"):
            at = self.views.index(self.view) if self.view in self.views else -1
            self._open(self.views[(at + (1 if key == "tab" else -1)) % len(self.views)])
        elif key in ("question_mark", "h", "f1"):
            self._open(self.help)
        elif key in ("escape", "backspace") and self.view in (self.job, self.help):
            self._open(self._back)
        elif key == "enter":
            self._enter()
        elif key == "m":
            self.shared.mine = not self.shared.mine
            self._anew()
        elif key == "p":
            pools = ["", *self.shared.pools()]
            at = pools.index(self.shared.pool) if self.shared.pool in pools else -1
            self.shared.want("pool", pools[(at + 1) % len(pools)])
            self._anew()
        elif key == "c":
            self.shared.wanted.clear()
            self.shared.mine, self.shared.text = False, ""
            self._anew()
        elif key == "r":
            self.version += 1
        else:
            return False
        return True

    def _enter(self) -> None:
        if isinstance(self.view, Pools):
            self.shared.want("pool", self.view.pointed())
            self._anew()
            self.show(NodeMap.name)
        elif (job := self.view.chosen()) and self.view is not self.job:
            self.open_job(job)

    def open_job(self, job_id: str) -> None:
        """Show a job."""
        self.job.open(job_id)
        self._open(self.job)
        self.version += 1

    def find(self, words: str) -> None:
        """Look for what a person typed: ``pool=batch user=ann``, and a text."""
        self.shared.wanted.clear()
        for what, value in _WORDS.findall(words):
            self.shared.want(what, value[:256])
        self.shared.text = " ".join(_WORDS.sub("", words).split())
        self._anew()
        if not isinstance(self.view, JobListing):
            self.show(Queue.name)

    def _anew(self) -> None:
        for view in self.views:
            view.reset()
        self.version += 1

    def resized(self, room: Room) -> None:
        """There is more room, or less."""
        if self.view.needs(self.inside(room)):
            self.version += 1

    def click(self, x: int, y: int, room: Room) -> bool:
        """The mouse was pressed on a cell; whether something was there. A row that is pointed at opens."""
        if y == TABS:
            return self._click_tab(x)
        inside = self.inside(room)
        found, before = False, self.view.chosen()
        if isinstance(self.view, NodeMap):
            found = self.view.click(x, y - ABOVE, inside)
        elif isinstance(self.view, Listing):
            found = self.view.click(y - ABOVE, inside)
            if found and before and self.view.chosen() == before:
                self._enter()
        return found

    def _click_tab(self, x: int) -> bool:
        at = 0
        for view, piece in zip([*self.views, self.help], self._tabs(), strict=True):
            if at <= x < at + len(piece.text):
                self._open(view)
                return True
            at += len(piece.text)
        return False

    # ------------------------------------------------------------------ the picture

    def draw(self, room: Room) -> list[Line]:
        """All lines, each of the room's width."""
        inside = self.inside(room)
        body = list(self.view.draw(inside))[: inside.height]
        if not any(plain(one).strip() for one in body):
            body = [line(" Asking the daemon ..." if self.trouble_since is None else "")]
        body += [line("")] * (inside.height - len(body))
        lines = [
            line(self._title(room.width), "title"),
            tuple(self._tabs()),
            self._state(),
            *body,
            self._hints(),
        ]
        return [clipped(one, room.width) for one in lines[: room.height]]

    def text(self, room: Room) -> str:
        """The same as plain text, without the keys and blank lines at the end."""
        lines = [plain(one).rstrip() for one in self.draw(room)[:-BELOW]]
        del lines[TABS]
        return "\n".join(lines).rstrip()

    def _title(self, width: int) -> str:
        status = self.shared.status
        if status is None:
            return f" headway top  asking the daemon at {self.where} ..."
        # A job of pools that share nodes is in one queue and counted in each of them.
        runs = sum(pool.running + pool.background for pool in status.pools)
        left = f" headway top  {status.cluster}, {status.mode}  {status.jobs:,} jobs, {runs:,} run"
        at = "no cycle yet"
        if status.last_cycle is not None:
            at = f"as of {datetime.fromtimestamp(status.last_cycle):%H:%M:%S} "
        return f"{left}  {at:>{max(0, width - len(left) - 2)}}"

    def _tabs(self) -> list[Piece]:
        named = [(f"{number} {view.name}", view) for number, view in enumerate(self.views, 1)]
        return [
            # Brackets, too: colours may not be there.
            Piece(
                f"[{name}]" if view is self.view else f" {name} ", "chosen" if view is self.view else "quiet"
            )
            for name, view in [*named, ("? help", self.help)]
        ]

    def _state(self) -> Line:
        """What is wrong, else what is looked for."""
        if self.trouble_since is not None:
            since = f"{datetime.fromtimestamp(self.trouble_since):%H:%M:%S}"
            # The line is short, and which daemon it is was said at the beginning.
            return line(f"! Since {since}: {self.trouble.replace(f' at {self.where}', '')}", "bad")
        status = self.shared.status
        for outage in status.outages if status is not None else ():
            since = f"{datetime.fromtimestamp(outage.since):%H:%M:%S}"
            return line(f"! {outage.cluster} has not answered since {since}: {outage.message}", "bad")
        words = [f"{what} {value}" for what, value in self.shared.wanted.items()]
        words += ["mine"] if self.shared.mine else []
        words += [f"with {self.shared.text!r}"] if self.shared.text else []
        words += [said] if isinstance(self.view, JobListing) and (said := self.view.said()) else []
        words += [self.shared.remark] if self.shared.remark else []
        if status is not None and status.problems_in_all:
            words.append(f"{status.problems_in_all} problems (see `headway status`)")
        told = ", ".join(words)
        short = "the rest is asked for later, to stay within the daemon's limits" if self.is_short else ""
        return line(" " + "; ".join(filter(None, [told, short])), "quiet")

    def _hints(self) -> Line:
        if self.trouble_since is not None and self.answered is not None:
            return line(" The picture is older; the daemon is asked again.  ? help  q leave", "head")
        return (Piece(f" {self.view.hints}".rstrip(), "head"), Piece("  ? help  q leave", "head"))


def driven(
    questions: Generator[AnyRequest, Reply | Failure, None], ask: Callable[[AnyRequest], Reply | Failure]
) -> None:
    """Ask all questions of a look, one after the other."""
    request = next(questions, None)
    while request is not None:
        try:
            request = questions.send(ask(request))
        except StopIteration:
            return


def names() -> Sequence[str]:
    """What ``--show`` can name."""
    return tuple(kind.name for kind in VIEWS)
