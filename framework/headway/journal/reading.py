"""What a journal's rows say, read back.

All of it can be asked while another process writes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Table, and_, or_, select

from headway.adapter import Outcome
from headway.decisions import AnyDecision, Decision, Start
from headway.errors import UserError
from headway.events import AnyEvent, Event, JobSubmitted, SitePolicyChanged
from headway.journal.database import Database, damaged
from headway.journal.encoding import Decoder
from headway.journal.records import CheckpointRecord, CycleRecord, HistoryEntry, RunInfo, RunRecord
from headway.journal.schema import checkpoints, cycles, decisions, events, outcomes, runs
from headway.model import ClusterDescription, JobDescription

T = TypeVar("T")

#: Cycles that are read at once; a reader holds no transaction open between two pages.
PAGE = 500

decode_event: Decoder[Event] = Decoder(AnyEvent)
decode_decision: Decoder[Decision] = Decoder(AnyDecision)
decode_cluster: Decoder[ClusterDescription] = Decoder(ClusterDescription)
decode_any: Decoder[Any] = Decoder(Any)


class Reading:
    """Runs, their cycles, and the histories of jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def name(self) -> str:
        """The file, or the URL without its password, for messages."""
        return self._database.name

    def verify(self, seconds: float = 60.0) -> bool:
        """Look for damage in the file's structure and in every row of the last run. Whether there was time
        for all of it. Raises :class:`headway.errors.Damaged` for the first damage that is found."""
        end = time.monotonic() + seconds
        faults = self._database.faults(seconds)
        if faults:
            raise damaged(self.name, "; ".join(faults[:3]))
        last = self.last_run()
        if last is not None:
            self.last_checkpoint(last.id)
            for _ in self._cycles(last.id):
                if time.monotonic() > end:
                    return False
        return faults is not None

    def size(self) -> int:
        """Bytes on disk."""
        return self._database.size()

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(select(runs).order_by(runs.c.id)).all()
        return [self._run_record(row) for row in rows]

    def last_run(self, mode: str | None = None) -> RunRecord | None:
        """The newest run (of this mode), None when there is none."""
        query = select(runs).order_by(runs.c.id.desc()).limit(1)
        if mode is not None:
            query = query.where(runs.c.mode == mode)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else self._run_record(row)

    def cycles(self, run_id: int, after: int | None = None) -> Iterator[CycleRecord]:
        """The recorded cycles of a run in their order, read bit by bit; only the cycles behind cycle
        ``after``.
        UserError: no such run."""
        self._check_run(run_id)
        return self._cycles(run_id, after)

    def _cycles(self, run_id: int, after: int | None = None) -> Iterator[CycleRecord]:
        while True:
            query = select(cycles).where(cycles.c.run_id == run_id).order_by(cycles.c.seq).limit(PAGE)
            if after is not None:
                query = query.where(cycles.c.seq > after)
            with self._database.reading() as connection:
                page = connection.execute(query).all()
                if not page:
                    return
                first, after = page[0].seq, page[-1].seq

                def of_page(table: Table, first: int = first, last: int = after) -> ColumnElement[bool]:
                    return and_(table.c.run_id == run_id, table.c.seq.between(first, last))

                event_rows = connection.execute(
                    select(events.c.seq, events.c.payload)
                    .where(of_page(events))
                    .order_by(events.c.seq, events.c.position)
                ).all()
                decision_rows = connection.execute(
                    select(decisions.c.seq, decisions.c.payload, outcomes.c.accepted, outcomes.c.message)
                    .select_from(decisions.outerjoin(outcomes, same_decision()))
                    .where(of_page(decisions))
                    .order_by(decisions.c.seq, decisions.c.position)
                ).all()
            by_seq: dict[int, tuple[list[Event], list[Decision], list[Outcome | None]]] = {
                row.seq: ([], [], []) for row in page
            }
            for seq, payload in event_rows:
                by_seq[seq][0].append(self._decode(decode_event, payload))
            for seq, payload, accepted, message in decision_rows:
                _, decided, concluded = by_seq[seq]
                decided.append(self._decode(decode_decision, payload))
                concluded.append(outcome_of(accepted, message))
            for row in page:
                happened, decided, concluded = by_seq[row.seq]
                yield CycleRecord(
                    seq=row.seq,
                    now=time_of(row.now),
                    events=tuple(happened),
                    decisions=tuple(decided),
                    outcomes=tuple(concluded),
                )

    def span(self, run_id: int) -> tuple[float, float] | None:
        """When the first and the last cycle of a run were; None: it has none."""
        ends = []
        with self._database.reading() as connection:
            for order in (cycles.c.seq.asc(), cycles.c.seq.desc()):
                query = select(cycles.c.now).where(cycles.c.run_id == run_id).order_by(order).limit(1)
                row = connection.execute(query).first()
                if row is None:
                    return None
                ends.append(time_of(row.now))
        return ends[0], ends[1]

    def last_before(self, run_id: int, time: float) -> int | None:
        """The last cycle of a run that was before ``time``; None: there is none. A run's cycles are in the
        order of their times, so only a few of them are looked at."""
        with self._database.reading() as connection:
            return last_before(connection, run_id, time)

    def starts(self, run_id: int) -> list[tuple[int, float, Start]]:
        """Each start that a run decided: cycle, the cycle's time, decision. UserError: no such run."""
        self._check_run(run_id)
        query = (
            select(decisions.c.seq, decisions.c.time, decisions.c.payload)
            .where(decisions.c.run_id == run_id, decisions.c.kind == Start.__name__)
            .order_by(decisions.c.seq, decisions.c.position)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        starts = []
        for row in rows:
            start = self._decode(decode_decision, row.payload)
            assert isinstance(start, Start)
            starts.append((int(row.seq), time_of(row.time), start))
        return starts

    def job_history(self, job_id: str, run_id: int | None = None) -> list[HistoryEntry]:
        """What happened to a job and what was decided about it, in order, over all runs or in one.

        A job that the journal does not know has an empty history.
        """

        def concerns(table: Table) -> ColumnElement[bool]:
            about_job = or_(table.c.job_id == job_id, table.c.other_job_id == job_id)
            return about_job if run_id is None else and_(about_job, table.c.run_id == run_id)

        with self._database.reading() as connection:
            event_rows = connection.execute(
                select(events.c.run_id, events.c.seq, events.c.position, events.c.payload).where(
                    concerns(events)
                )
            ).all()
            decision_rows = connection.execute(
                select(
                    decisions.c.run_id,
                    decisions.c.seq,
                    decisions.c.position,
                    decisions.c.time,
                    decisions.c.payload,
                    outcomes.c.accepted,
                    outcomes.c.message,
                )
                .select_from(decisions.outerjoin(outcomes, same_decision()))
                .where(concerns(decisions))
            ).all()
        # Within a cycle the events come before the decisions.
        keyed: list[tuple[tuple[int, int, int, int], HistoryEntry]] = []
        for run, seq, position, payload in event_rows:
            event = self._decode(decode_event, payload)
            keyed.append(((run, seq, 0, position), HistoryEntry(run, seq, event.time, "event", event)))
        for run, seq, position, now, payload, accepted, message in decision_rows:
            decision = self._decode(decode_decision, payload)
            outcome = outcome_of(accepted, message)
            entry = HistoryEntry(run, seq, time_of(now), "decision", decision, outcome)
            keyed.append(((run, seq, 1, position), entry))
        return [entry for _, entry in sorted(keyed, key=lambda pair: pair[0])]

    def elements(self, array_id: str) -> list[str]:
        """The ids of the jobs that came as elements of this array in any run, in order of their numbers."""
        return list(dict.fromkeys(job.id for job in self.described_elements(array_id)))

    def described_elements(self, array_id: str) -> list[JobDescription]:
        """The same jobs as they came, each once for each of its users.

        Batch systems begin an element's id as the array's, up to a bracket if it has one.
        """
        stem = array_id.partition("[")[0]
        about = events.c.job_id.startswith(stem, autoescape=True)
        if self._database.path is not None:
            # By the index, which SQLite does not take for the pattern.
            about = and_(about, events.c.job_id >= stem, events.c.job_id < stem + chr(0x10FFFF))
        submitted = select(events.c.payload).where(events.c.kind == "JobSubmitted", about)
        with self._database.reading() as connection:
            payloads = connection.execute(submitted).scalars().all()
        came = [self._decode(decode_event, payload) for payload in payloads]
        jobs = [event.job for event in came if isinstance(event, JobSubmitted)]
        found = {(job.id, job.user): job for job in jobs if job.array_id == array_id}
        return sorted(found.values(), key=lambda job: job.array_index or 0)

    def before(self, run_id: int, seq: int) -> Iterator[Event]:
        """What a run was told by cycle ``seq`` of the jobs that its later events name, in order; before that,
        what it was told last of the site's policy. UserError: no such run."""
        self._check_run(run_id)
        table = events.c
        until = (table.run_id == run_id, table.seq <= seq)
        policy = (
            select(table.payload)
            .where(*until, table.job_id.is_(None), table.kind == SitePolicyChanged.__name__)
            .order_by(table.seq.desc(), table.position.desc())
            .limit(1)
        )
        with self._database.reading() as connection:
            payloads = list(connection.execute(policy).scalars())
            named = select(table.job_id).distinct().where(table.run_id == run_id, table.seq > seq)
            jobs = [job for job in connection.execute(named).scalars() if job is not None]
            rows: list[tuple[int, int, str]] = []
            for at in range(0, len(jobs), PAGE):
                about = table.job_id.in_(jobs[at : at + PAGE])
                found = select(table.seq, table.position, table.payload).where(*until, about)
                rows += [tuple(row) for row in connection.execute(found).all()]
        payloads += [payload for _, _, payload in sorted(rows)]
        for payload in payloads:
            yield self._decode(decode_event, payload)

    def last_checkpoint(self, run_id: int) -> CheckpointRecord | None:
        """The newest checkpoint of a run; None when it has none. UserError: no such run."""
        self._check_run(run_id)
        query = select(checkpoints).where(checkpoints.c.run_id == run_id).order_by(checkpoints.c.plugin)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        if not rows:
            return None
        states = {row.plugin: self._decode(decode_any, row.state) for row in rows}
        return CheckpointRecord(seq=min(row.seq for row in rows), states=states)

    def _check_run(self, run_id: int) -> None:
        with self._database.reading() as connection:
            known = connection.execute(select(runs.c.id).order_by(runs.c.id)).scalars().all()
        if run_id not in known:
            there = ", ".join(map(str, known[-20:])) or "none"
            raise UserError(f"journal {self.name}: expected a run of it, found {run_id}. Its runs: {there}.")

    def _run_record(self, row: Row[Any]) -> RunRecord:
        info = RunInfo(
            mode=row.mode,
            started_at=row.started_at,
            version=row.version,
            config_text=row.config_text,
            seed=int(row.seed),
            cluster=self._decode(decode_cluster, row.cluster),
            plugin_states=self._decode(decode_any, row.plugin_states),
        )
        return RunRecord(id=row.id, info=info, ended_at=row.ended_at, end_reason=row.end_reason)

    def _decode(self, decoder: Decoder[T], payload: str) -> T:
        try:
            return decoder(payload)
        except (msgspec.DecodeError, ValueError) as error:
            raise damaged(self.name, f"a row cannot be read: {error}: {payload[:200]!a}") from error


def last_before(connection: Connection, run_id: int, time: float) -> int | None:
    """See :meth:`Reading.last_before`."""

    def at_most(seq: int | None) -> Any:
        query = select(cycles.c.seq, cycles.c.now).where(cycles.c.run_id == run_id)
        if seq is not None:
            query = query.where(cycles.c.seq <= seq)
        return connection.execute(query.order_by(cycles.c.seq.desc()).limit(1)).first()

    found: int | None = None
    newest = at_most(None)
    below = -1
    above = -1 if newest is None else newest.seq
    while below < above:
        row = at_most((below + above + 1) // 2)
        if row is None or row.seq <= below:
            # None between them.
            below = (below + above + 1) // 2
        elif time_of(row.now) < time:
            found, below = row.seq, (below + above + 1) // 2
        else:
            above = row.seq - 1
    return found


def same_decision() -> ColumnElement[bool]:
    return and_(
        outcomes.c.run_id == decisions.c.run_id,
        outcomes.c.seq == decisions.c.seq,
        outcomes.c.position == decisions.c.position,
    )


def outcome_of(accepted: bool | None, message: str | None) -> Outcome | None:
    return None if accepted is None else Outcome(accepted=accepted, message=message or "")


def time_of(value: float | None) -> float:
    # SQLite stores a NaN as NULL.
    return float("nan") if value is None else value
