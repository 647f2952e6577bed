"""What a journal says of the past, page by page: decisions, events, and where jobs ran.

An entry has a place (:class:`Place`), by which a reader goes on, also in another connection and after the
journal has grown or lost old runs. Pages go by the time of the cycle that recorded an entry. A page is made
in a bounded time: where much is left out between two entries, it ends before it is full, and says where to go
on.

The entries of a cycle are found by their key, those of a job by the index of jobs. No index is of users or of
kinds, which are looked for among all entries.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    Text,
    false,
    func,
    or_,
    select,
    tuple_,
    type_coerce,
)

from headway.adapter import Outcome
from headway.decisions import Decision
from headway.events import Event
from headway.journal.database import Database
from headway.journal.encoding import Decoder
from headway.journal.reading import (
    Reading,
    decode_decision,
    decode_event,
    last_before,
    outcome_of,
    same_decision,
    time_of,
)
from headway.journal.schema import cycles, decisions, events, outcomes, runs

#: Rows that are looked at in one step.
STEP = 5000
#: Ids that one query names.
_IDS = 500
#: No cycle has as high a number; no run and no position has a higher one.
_LAST_SEQ, _LAST = 10**17, 2**31 - 1
#: After these events a job is no longer where it was, and runs on at most elsewhere.
ENDS = ("JobEnded", "JobRequeued", "JobMigrated")
#: What tells how a job came to be where it is.
_WAYS = ("JobSubmitted", "JobChanged", "JobStarted", *ENDS)
_DESCRIBED = ("JobSubmitted", "JobChanged")


class Place(NamedTuple):
    """Where an entry stands: its run, its cycle, its position among the cycle's entries of its kind."""

    run: int
    seq: int
    position: int

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def of(cls, text: str) -> Place:
        """What :meth:`__str__` has written. ValueError for another text."""
        run, seq, position = map(int, text.split("."))
        return cls(min(run, _LAST), min(seq, _LAST_SEQ), min(position, _LAST))


@dataclass(frozen=True)
class Entry:
    """An event or a decision."""

    place: Place
    #: When the cycle was that recorded it, seconds of the run's clock.
    at: float
    what: Event | Decision
    #: Of a decision, where one was recorded.
    outcome: Outcome | None = None
    #: The user of its job at that time; None: it is about no job, or its job is not known.
    user: str | None = None

    @property
    def run_id(self) -> int:
        return self.place.run

    @property
    def time(self) -> float:
        """An event's own time, a decision's cycle's time."""
        return self.what.time if isinstance(self.what, Event) else self.at


@dataclass(frozen=True)
class Asked:
    """Which entries are asked for, and in which order."""

    #: Seconds of the run's clock: recorded from then on, before then.
    since: float = -math.inf
    until: float = math.inf
    #: Types of events or decisions; empty: all.
    kinds: Collection[str] = ()
    #: Behind this entry, in the order that is asked for.
    after: Place | None = None
    count: int = 100
    oldest_first: bool = False
    #: Only what this user may know: what is about the own jobs, and events about no job; None: everything.
    user: str | None = None
    #: About this job; "": about any.
    job: str = ""


@dataclass(frozen=True)
class Found:
    """A page."""

    entries: Sequence[Entry]
    #: The next page is behind this place; None: there is none now.
    then: Place | None = None


class _Described(msgspec.Struct, frozen=True):
    """The user of a job, as an event with the job's description names it."""

    class Named(msgspec.Struct, frozen=True):
        user: str = ""

    job: Named


_decode_user: Decoder[_Described] = Decoder(_Described)


#: Run and job -> from which place on the job was which user's, in order.
_Users = Mapping[tuple[int, str], list[tuple[Place, str]]]


@dataclass(frozen=True)
class _Span:
    """A part of a run's entries; both ends belong to it."""

    oldest_first: bool
    low: Place
    high: Place

    def behind(self, place: Place | None) -> _Span:
        """What of it is behind a place."""
        if place is None:
            return self
        if self.oldest_first:
            return replace(self, low=max(self.low, place._replace(position=min(_LAST, place.position + 1))))
        return replace(self, high=min(self.high, place._replace(position=place.position - 1)))

    def up_to(self, place: Place | None) -> _Span:
        if place is None:
            return self
        return replace(self, high=place) if self.oldest_first else replace(self, low=place)

    def ordered(self, query: Select[Any], table: Table, *, by_job: bool = False) -> Select[Any]:
        """The rows of it that a query selects, in order. ``by_job``: they are few, by the index of jobs."""
        key = (table.c.seq, table.c.position)
        # A sum keeps SQLite from the key of the run, which has all rows of it.
        run = table.c.run_id + 0 if by_job else table.c.run_id
        within = query.where(run == self.low.run, tuple_(*key) >= self.low[1:], tuple_(*key) <= self.high[1:])
        return within.order_by(*((one if self.oldest_first else one.desc()) for one in key))

    def border(self, connection: Connection, table: Table, step: int) -> Place | None:
        """The place of the row that is the ``step``-th of it; None: it has fewer."""
        key = self.ordered(select(table.c.seq, table.c.position), table)
        row = connection.execute(key.offset(step - 1).limit(1)).first()
        return None if row is None else Place(self.low.run, *row)


class Past(Reading):
    """Pages of a journal that another process may write to meanwhile."""

    #: Seconds after which a page ends, though it is not full.
    patience = 0.5

    @classmethod
    def open(cls, url_or_path: str | Path, seconds: float) -> Past:
        """The journal there, read in at most so many seconds a question; errors as of
        :class:`headway.journal.database.Database`."""
        return cls(Database(url_or_path, create=False, read_only=True, seconds=seconds))

    def __enter__(self) -> Past:
        return self

    def __exit__(self, *exc: object) -> None:
        self._database.close()

    def newest(self) -> float | None:
        """When the last cycle was, seconds of its run's clock; None: there is none."""
        latest = select(cycles.c.now).order_by(cycles.c.run_id.desc(), cycles.c.seq.desc()).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(latest).first()
        return None if row is None else time_of(row.now)

    # ------------------------------------------------------------------ pages

    def decisions(self, asked: Asked) -> Found:
        """Decisions with what became of them."""
        with self._database.snapshot() as connection:
            rows, then = self._page(connection, asked, decisions)
            users = self._users(connection, rows)
            return Found([self._decision(row, users) for row in rows], then)

    def events(self, asked: Asked) -> Found:
        """Events."""
        with self._database.snapshot() as connection:
            rows, then = self._page(connection, asked, events)
            users, times = self._users(connection, rows), self._times(connection, rows)
            return Found([self._event(row, users, times) for row in rows], then)

    def of_job(self, job_id: str, most: int) -> list[Entry]:
        """What is recorded of a job, oldest first; of more than ``most`` events or decisions the first."""
        with self._database.snapshot() as connection:
            told = connection.execute(_of_job(events, job_id, most)).all()
            decided = connection.execute(_of_job(decisions, job_id, most)).all()
            rows = [*told, *decided]
            users, times = self._users(connection, rows), self._times(connection, told)
            entries = [self._event(row, users, times) for row in told]
            entries += [self._decision(row, users) for row in decided]
        # Within a cycle the events come before the decisions.
        return sorted(entries, key=lambda one: (one.place[:2], isinstance(one.what, Decision), one.place[2]))

    def ends(self, asked: Asked) -> tuple[Found, dict[Place, list[Entry]]]:
        """The events :data:`ENDS`; and of each what was recorded in its run of how its job came there, oldest
        first and with it. A job that an earlier run has told of already is told once."""
        with self._database.snapshot() as connection:
            rows, then = self._page(connection, replace(asked, kinds=ENDS), events)
            rows = self._told_first(connection, rows)
            ways: dict[tuple[int, str], list[Any]] = {}
            for run, ids in _jobs_by_run(rows).items():
                for row in self._about(connection, run, ids, _WAYS):
                    ways.setdefault((run, row.job_id), []).append(row)
            times = self._times(connection, rows)
            found, led = [], {}
            for row in rows:
                users = _users_of(ways.get((row.run_id, row.job_id), ()), self._user)
                end = self._event(row, {(row.run_id, row.job_id): users}, times)
                before = [one for one in ways[row.run_id, row.job_id] if _place(one) <= end.place]
                led[end.place] = [
                    Entry(_place(one), math.nan, self._decode(decode_event, one.payload)) for one in before
                ]
                found.append(end)
        return Found(found, then), led

    def users(self, run: int, ids: Iterable[str]) -> dict[str, set[str]]:
        """Of those of these names that are jobs of a run: all users that the job has had in it."""
        with self._database.snapshot() as connection:
            found: dict[str, set[str]] = {}
            for row in self._about(connection, run, sorted(set(ids)), _DESCRIBED):
                found.setdefault(row.job_id, set()).add(self._user(row.payload))
        return found

    # ------------------------------------------------------------------ how a page is found

    def _page(self, connection: Connection, asked: Asked, table: Table) -> tuple[list[Any], Place | None]:
        """The rows of a page, and behind which place the next begins."""
        end, found = time.monotonic() + self.patience, list[Any]()
        for run, first, last in self._stretches(connection, asked, table):
            at: Place | None = asked.after if asked.after is not None and asked.after.run == run else None
            while True:
                left = _Span(asked.oldest_first, Place(run, first, 0), Place(run, last, _LAST)).behind(at)
                border = None if asked.job else left.border(connection, table, STEP)
                rows, cut = self._rows(connection, table, asked, left.up_to(border))
                found += rows
                if len(found) >= asked.count:
                    return found[: asked.count], _place(found[asked.count - 1])
                at = cut or border or Place(run, _LAST_SEQ if asked.oldest_first else 0, 0)
                # Each page goes on, however little time there is.
                if time.monotonic() > end and at != asked.after:
                    return found, at
                if cut is border is None:
                    break
        return found, None

    def _stretches(
        self, connection: Connection, asked: Asked, table: Table
    ) -> Iterator[tuple[int, int, int]]:
        """The runs that may have entries that are asked for, in their order: of each the first and the last
        cycle that counts."""
        order = runs.c.id.asc() if asked.oldest_first else runs.c.id.desc()
        known = select(runs.c.id).order_by(order)
        if asked.after is not None:
            behind = runs.c.id >= asked.after.run if asked.oldest_first else runs.c.id <= asked.after.run
            known = known.where(behind)
        if asked.job:
            known = known.where(runs.c.id.in_(select(table.c.run_id).where(_about_job(table, asked.job))))
        bounded = asked.since > -math.inf or asked.until < math.inf
        if not bounded:
            for run in connection.execute(known).scalars().all():
                yield run, 0, _LAST_SEQ
            return
        of_run = select(cycles.c.now).where(cycles.c.run_id == runs.c.id).limit(1).correlate(runs)
        first, last = (
            of_run.order_by(order).scalar_subquery() for order in (cycles.c.seq.asc(), cycles.c.seq.desc())
        )
        for run, begun, ended in connection.execute(known.add_columns(first, last)).all():
            if begun is None or ended is None or begun >= asked.until or ended < asked.since:
                continue
            low = last_before(connection, run, asked.since) if begun < asked.since else None
            high = last_before(connection, run, asked.until) if ended >= asked.until else _LAST_SEQ
            if high is not None:
                yield run, 0 if low is None else low + 1, high

    def _rows(
        self, connection: Connection, table: Table, asked: Asked, span: _Span
    ) -> tuple[list[Any], Place | None]:
        """The rows of a part of a run that are asked for, in their order; and behind which place there are
        more, if there are many."""
        query = span.ordered(_selected(table), table, by_job=bool(asked.job))
        if asked.kinds:
            query = query.where(table.c.kind.in_(sorted(asked.kinds)))
        if asked.job:
            # A user is not told which other job an own one was about.
            about = _about_job(table, asked.job) if asked.user is None else table.c.job_id == asked.job
            query = query.where(about)
        if asked.user is not None:
            of_no_job = table.c.job_id.is_(None) if table is events else false()
            query = query.where(or_(of_no_job, self._may_be_of(asked.user, table)))
        rows = connection.execute(query.limit(asked.count)).all()
        cut = _place(rows[-1]) if len(rows) == asked.count else None
        if asked.user is None:
            return list(rows), cut
        users = self._users(connection, rows)
        return [row for row in rows if row.job_id is None or _user_at(users, row) == asked.user], cut

    def _may_be_of(self, user: str, table: Table) -> ColumnElement[bool]:
        """Whether a row's job may have been this user's: its description names the user somewhere."""
        told = events.alias()
        place = func.strpos if self._database.path is None else func.instr
        named = {f'"user":{text}' for text in (msgspec.json.encode(user).decode(), json.dumps(user))}
        return (
            select(told.c.seq)
            .where(
                told.c.job_id == table.c.job_id, told.c.run_id + 0 == table.c.run_id,
                told.c.kind.in_(_DESCRIBED),
                or_(*(place(type_coerce(told.c.payload, Text), text) > 0 for text in sorted(named))),
            )
            .exists()
        )  # fmt: skip

    # ------------------------------------------------------------------ whose jobs they are

    def _users(self, connection: Connection, rows: Sequence[Any]) -> _Users:
        """Of each job of these rows in its run: from which place on it was which user's."""
        found: dict[tuple[int, str], list[tuple[Place, str]]] = {}
        for run, ids in _jobs_by_run(rows).items():
            told: dict[str, list[Any]] = {}
            for row in self._about(connection, run, ids, _DESCRIBED):
                told.setdefault(row.job_id, []).append(row)
            for job_id, described in told.items():
                found[run, job_id] = _users_of(described, self._user)
        return found

    def _about(
        self, connection: Connection, run: int, ids: Sequence[str], kinds: Sequence[str]
    ) -> Iterator[Any]:
        """The events of these kinds about these jobs in a run, in their order."""
        for at in range(0, len(ids), _IDS):
            about = select(events).where(
                # As in :meth:`_Span.ordered`.
                events.c.job_id.in_(ids[at : at + _IDS]), events.c.run_id + 0 == run,
                events.c.kind.in_(kinds),
            )  # fmt: skip
            yield from sorted(connection.execute(about).all(), key=_place)

    def _user(self, payload: str) -> str:
        return self._decode(_decode_user, payload).job.user

    def _told_first(self, connection: Connection, rows: Sequence[Any]) -> list[Any]:
        """Those that no earlier run has told of: a run tells of jobs that were over when it began, too."""
        begun = {run: self._begun(connection, run) for run in {row.run_id for row in rows}}
        found = []
        for row in rows:
            if row.time is not None and row.time < begun[row.run_id]:
                earlier = select(events.c.seq).where(
                    events.c.job_id == row.job_id, events.c.run_id < row.run_id, events.c.kind == row.kind,
                    events.c.time == row.time,
                ).limit(1)  # fmt: skip
                if connection.execute(earlier).first() is not None:
                    continue
            found.append(row)
        return found

    @staticmethod
    def _begun(connection: Connection, run: int) -> float:
        first = select(cycles.c.now).where(cycles.c.run_id == run).order_by(cycles.c.seq).limit(1)
        row = connection.execute(first).first()
        return -math.inf if row is None else time_of(row.now)

    # ------------------------------------------------------------------ rows become entries

    def _times(self, connection: Connection, rows: Sequence[Any]) -> dict[tuple[int, int], float]:
        """When the cycles of these rows were."""
        of_runs: dict[int, set[int]] = {}
        for row in rows:
            of_runs.setdefault(row.run_id, set()).add(row.seq)
        found = {}
        for run, numbers in of_runs.items():
            wanted = sorted(numbers)
            for at in range(0, len(wanted), _IDS):
                when = select(cycles.c.seq, cycles.c.now).where(
                    cycles.c.run_id == run, cycles.c.seq.in_(wanted[at : at + _IDS])
                )
                found.update({(run, row.seq): time_of(row.now) for row in connection.execute(when).all()})
        return found

    def _event(self, row: Any, users: _Users, times: dict[tuple[int, int], float]) -> Entry:
        at = times.get((row.run_id, row.seq), math.nan)
        return Entry(_place(row), at, self._decode(decode_event, row.payload), None, _user_at(users, row))

    def _decision(self, row: Any, users: _Users) -> Entry:
        outcome = outcome_of(row.accepted, row.message)
        what = self._decode(decode_decision, row.payload)
        return Entry(_place(row), time_of(row.time), what, outcome, _user_at(users, row))


def _selected(table: Table) -> Select[Any]:
    if table is events:
        return select(events)
    with_outcomes = decisions.outerjoin(outcomes, same_decision())
    return select(decisions, outcomes.c.accepted, outcomes.c.message).select_from(with_outcomes)


def _of_job(table: Table, job_id: str, most: int) -> Select[Any]:
    about = _selected(table).where(_about_job(table, job_id))
    return about.order_by(table.c.run_id, table.c.seq, table.c.position).limit(most)


def _about_job(table: Table, job_id: str) -> ColumnElement[bool]:
    return or_(table.c.job_id == job_id, table.c.other_job_id == job_id)


def _place(row: Any) -> Place:
    return Place(row.run_id, row.seq, row.position)


def _jobs_by_run(rows: Iterable[Any]) -> dict[int, list[str]]:
    found: dict[int, dict[str, None]] = {}
    for row in rows:
        if row.job_id is not None:
            found.setdefault(row.run_id, {})[row.job_id] = None
    return {run: list(ids) for run, ids in found.items()}


def _users_of(rows: Iterable[Any], user: Callable[[str], str]) -> list[tuple[Place, str]]:
    return [(_place(row), user(row.payload)) for row in rows if row.kind in _DESCRIBED]


def _user_at(users: _Users, row: Any) -> str | None:
    """The user of a row's job by then; a cycle's events come before its decisions."""
    found = None
    for place, user in users.get((row.run_id, row.job_id), ()):
        if place[:2] > (row.run_id, row.seq) or ("accepted" not in row._fields and place > _place(row)):
            break
        found = user
    return found
