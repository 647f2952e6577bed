"""The single steps of a search: set, cancel, roll back, bind, and what each of them leaves in the journal.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5: no hold on reservations and no two-phase commit; GUR "makes
reservations and cancels them, if they are no longer required".

Each step is a generator: it yields a :class:`.calls.Call`, is sent the answer, and returns its result. A
*round* is a pass over the machines at one start time; probes are round 0. A reservation's name is
``<metajob>-<round>-<machine>``, in a pipeline with ``.<stage>`` behind it.

Decisions on what the paper leaves open:

- The journal has an intent before each ``set`` and the answer after it. SUCCESS is written before the first
  ``bind``.
- A round is rolled back in reverse order of making.
- The site is looked at after a ``set`` that timed out. A reservation that is there counts; otherwise the
  ``set`` was denied. Such a site is looked at once more before the report, and a late reservation is
  cancelled.
- A ``cancel`` is tried three times. Then it is a leak, which is tried once more before the report.
- A site that answers an exact ``set`` with another number of nodes, or with a start before the one that was
  asked for, has denied it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

import msgspec

from headway_plugins.coscheduling.calls import (
    Answer,
    Call,
    Carried,
    Denied,
    Granted,
    Shown,
    TimedOut,
)
from headway_plugins.coscheduling.metajob import Machine, Metajob

_T = TypeVar("_T")
#: A part of a search: yields calls, is sent answers.
Steps = Generator[Call, Answer, _T]

#: How often a cancel or a bind is tried before it is given up.
TRIES = 3


class Part(msgspec.Struct, frozen=True):
    """What a round asks of a machine; seconds."""

    site: str
    nodes: int
    duration: float
    #: After the start of the metajob.
    offset: float = 0.0
    #: In a pipeline, from 1 on; 0: none.
    stage: int = 0


class Made(msgspec.Struct, frozen=True):
    """A reservation of the search."""

    site: str
    name: str
    nodes: int
    start: float
    end: float


class Rounds:
    """The reservations of a metajob, round by round."""

    def __init__(self, metajob: Metajob) -> None:
        self.metajob = metajob
        self.round = 0
        #: Of the present round, in the order of making.
        self.made: list[Made] = []
        #: Rows for a reader: P probe, M made, D denied, X cancelled, L leak, B bound.
        self.log: list[list[Any]] = []
        #: Rows for the recovery.
        self.journal: list[list[Any]] = []
        #: Site and name of what a site did not cancel.
        self.leaks: list[tuple[str, str]] = []
        #: Site and name of what timed out and was not there; it may come late.
        self.late: list[tuple[str, str]] = []
        #: Site and name of what SUCCESS names and no site has bound.
        self.unbound: list[tuple[str, str]] = []

    # ------------------------------------------------------------------ single calls

    def ask(self, part: Part, earliest: float, *, exact: bool = True) -> Steps[Granted | Denied]:
        """One ``set``; what is granted belongs to the round."""
        metajob = self.metajob
        stage = f".{part.stage}" if part.stage else ""
        name = f"{metajob.id}-{self.round}-{part.site}{stage}"
        machine = metajob.machines.get(part.site, Machine(0, 0))
        self.journal.append(["intent", part.site, name])
        answer = yield Call(
            "set", part.site, name, nodes=part.nodes, exact=exact, duration=part.duration, earliest=earliest,
            latest=metajob.latest, account=machine.account, user=machine.user, email=machine.email,
        )  # fmt: skip
        if isinstance(answer, TimedOut):
            answer = yield from self._look(part.site, name)
        if isinstance(answer, Granted):
            self.journal.append(["answer", part.site, name, [answer.start, answer.nodes]])
            end = answer.start + part.duration
            self.made.append(Made(part.site, name, answer.nodes, answer.start, end))
            return answer
        self.journal.append(["answer", part.site, name, None])
        return answer if isinstance(answer, Denied) else Denied("unexpected answer")

    def set(self, part: Part, earliest: float, *, exact: bool = True) -> Steps[Granted | Denied]:
        """One ``set``, with its row in the log."""
        answer = yield from self.ask(part, earliest, exact=exact)
        if isinstance(answer, Granted):
            self.log.append(["M", part.site, answer.nodes, answer.start])
            if (exact and answer.nodes != part.nodes) or answer.start < earliest:
                yield from self.cancel(self.made[-1])
                answer = Denied("unexpected answer")
        if isinstance(answer, Denied):
            self.log.append(["D", part.site, part.nodes, answer.reason])
        return answer

    def _look(self, site: str, name: str) -> Steps[Granted | Denied]:
        """What became of a ``set`` that timed out."""
        shown = yield Call("show", site, name)
        for found in shown.reservations if isinstance(shown, Shown) else ():
            if found.name == name:
                return Granted(found.start, found.nodes)
        self.late.append((site, name))
        return Denied("timeout")

    def cancel(self, made: Made, *, logged: bool = True) -> Steps[None]:
        """Give one reservation back, or note a leak."""
        if made in self.made:
            self.made.remove(made)
        for attempt in range(1, TRIES + 1):
            answer = yield Call("cancel", made.site, made.name, attempt=attempt)
            if isinstance(answer, Carried):
                self._cancelled(made.site, made.name, logged)
                return
        self.leaks.append((made.site, made.name))
        self.log.append(["L", made.site])
        self.journal.append(["leak", made.site, made.name])

    def _cancelled(self, site: str, name: str, logged: bool = True) -> None:
        self.journal.append(["cancelled", site, name])
        if logged:
            self.log.append(["X", site])

    def roll_back(self) -> Steps[None]:
        """Give back all that the round has, the last first."""
        for made in reversed(list(self.made)):
            yield from self.cancel(made)

    # ------------------------------------------------------------------ rounds

    def play(self, parts: Sequence[Part], start: float, slide: dict[str, float]) -> Steps[float | None]:
        """One round: each part at ``start`` and its offset.

        ``start``: all parts are there. A later time: nothing is left, and this start is the next to try.
        None: a site denied its part, and nothing is left. ``slide``: by how much to slide at sites that
        accept only the start that they are given.
        """
        self.round += 1
        for part in parts:
            wanted = start + part.offset
            answer = yield from self.set(part, wanted)
            if isinstance(answer, Denied):
                yield from self.roll_back()
                fixed = answer.reason == "place" and part.site in slide
                return start + slide[part.site] if fixed else None
            if answer.start > wanted:
                yield from self.roll_back()
                return answer.start - part.offset
        return start

    # ------------------------------------------------------------------ the end

    def bind(self) -> Steps[list[Made]]:
        """SUCCESS with what the round has: the job is bound to all of it."""
        kept = list(self.made)
        self.journal.append(["success", [made.name for made in kept]])
        for made in kept:
            for attempt in range(1, TRIES + 1):
                answer = yield Call("bind", made.site, made.name, job=self.metajob.id, attempt=attempt)
                if isinstance(answer, Carried):
                    self.journal.append(["bound", made.site, made.name])
                    self.log.append(["B", made.site])
                    break
            else:
                self.unbound.append((made.site, made.name))
        return kept

    def settle(self) -> Steps[None]:
        """Before the report: cancel what came late, and try the leaks once more."""
        kept = {made.name for made in self.made}
        for site in dict.fromkeys(site for site, _ in self.late):
            shown = yield Call("show", site)
            there = {found.name for found in shown.reservations} if isinstance(shown, Shown) else set()
            for where, name in [one for one in self.late if one[0] == site and one[1] in there]:
                self.late.remove((where, name))
                if name not in kept and (where, name) not in self.leaks:
                    yield from self.cancel(Made(where, name, 0, 0, 0))
        for site, name in list(self.leaks):
            answer = yield Call("cancel", site, name, attempt=TRIES + 1)
            if isinstance(answer, Carried):
                self.leaks.remove((site, name))
                self._cancelled(site, name)
