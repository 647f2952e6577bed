"""The durable log of all that happened and of all that was decided.

The engine's loop is: wait, :meth:`Journal.record_events`, step, :meth:`Journal.record_decisions`, apply,
:meth:`Journal.record_outcomes`. Each of these returns after its transaction is on disk, so that a
decision is never acted upon before it is known for ever. A crash between the journal and the cluster
leaves decisions without an outcome: :meth:`Journal.unfinished` names them.

Each process that drives makes a *run*; the cycles are numbered within it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Row, Table, and_, delete, func, insert, or_, select, update

from headway.adapter import Outcome, WishedFrequency
from headway.decisions import (
    AnyDecision,
    Checkpoint,
    Decision,
    Migrate,
    SetFrequency,
    Start,
    SubmitSubjob,
    SwapTiers,
)
from headway.errors import Failure, UserError
from headway.events import (
    AnyEvent,
    DecisionFailed,
    Event,
    JobChanged,
    JobEnded,
    JobSubmitted,
    SitePolicyChanged,
)
from headway.journal.database import Database, damaged
from headway.journal.encoding import Decoder, encode
from headway.journal.frequencies import wished_frequency
from headway.journal.moves import open_move
from headway.journal.records import (
    CheckpointRecord,
    CycleRecord,
    HistoryEntry,
    RunInfo,
    RunRecord,
    UnfinishedDecision,
)
from headway.journal.schema import OF_A_RUN, checkpoints, cycles, decisions, events, outcomes, runs
from headway.journal.tiers import tier_of
from headway.model import ClusterDescription

T = TypeVar("T")

#: Cycles that are read at once; a reader holds no transaction open between two pages.
PAGE = 500
#: What :meth:`Journal.recent_starts` and its like look at: so many runs, and so many decisions of each.
_RECENT_RUNS = 100
_RECENT_STARTS = 1000

_decode_event: Decoder[Event] = Decoder(AnyEvent)
_decode_decision: Decoder[Decision] = Decoder(AnyDecision)
_decode_cluster: Decoder[ClusterDescription] = Decoder(ClusterDescription)
_decode_any: Decoder[Any] = Decoder(Any)


class Journal:
    """A journal in a database, made by :meth:`open`.

    All methods raise Failure when the database cannot be read or written; what was recorded before
    stays as it was, and the journal can be used again once the cause is gone. The ``record_*``
    methods raise ValueError when they are called out of their order.
    """

    #: What is recorded is kept.
    enabled: ClassVar[bool] = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self._run: int | None = None
        # The last recorded cycle, its time, and how many decisions it has (None: not recorded yet).
        self._seq: int | None = None
        self._now = 0.0
        self._decided: int | None = None
        self._concluded = False

    @classmethod
    def open(cls, url_or_path: str | Path, *, create: bool = True, read_only: bool = False) -> Journal:
        """The journal in this file, or at this ``sqlite:///`` or ``postgresql://`` URL.

        With ``create``, one that does not exist yet is made (but no directory). With ``read_only``,
        nothing is made or changed, and another process may write to it meanwhile; otherwise this is
        its only writer until :meth:`close` or the end of the process.

        Raises UserError when it is no journal, of a newer schema or missing; Held when another process
        writes to it; Failure when it cannot be reached, read or written; Damaged when it is broken.
        """
        return cls(Database(url_or_path, create=create, read_only=read_only))

    @property
    def name(self) -> str:
        """The file, or the URL without its password, for messages."""
        return self._database.name

    def close(self) -> None:
        """Let other writers in. Does not end the run: that is :meth:`end_run`."""
        self._database.close()

    def close_unused(self) -> None:
        """Close it before any run began: a file that this opening made goes again."""
        if self._database.fresh and self.last_run() is None:
            self._database.remove()
        else:
            self.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- writing ---------------------------------------------------------------------------------

    def begin_run(self, info: RunInfo) -> int:
        """Start a run and return its id; what is recorded from now on belongs to it."""
        if self._run is not None:
            raise ValueError(f"run {self._run} has not ended")
        row = {
            "mode": info.mode,
            "started_at": info.started_at,
            "version": info.version,
            "seed": str(info.seed),
            "config_text": info.config_text,
            "cluster": self._encode(info.cluster, "the cluster's description"),
            "plugin_states": self._encode_states(info.plugin_states),
        }
        with self._database.writing() as connection:
            key = connection.execute(insert(runs), row).inserted_primary_key
            assert key is not None
            run = int(key[0])
        self._run, self._seq, self._decided = run, None, None
        return run

    def end_run(self, reason: str, *, ended_at: float | None = None) -> None:
        """Close the run; ``ended_at`` is seconds since the epoch, now by default."""
        run = self._running()
        ended = time.time() if ended_at is None else ended_at
        with self._database.writing() as connection:
            connection.execute(update(runs).where(runs.c.id == run).values(ended_at=ended, end_reason=reason))
        self._run = None

    def record_events(self, seq: int, now: float, events_: Sequence[Event]) -> None:
        """Record that cycle ``seq`` began at ``now`` (seconds of the run's clock) with these events.

        Comes first in each cycle, also in one without events; ``seq`` grows from cycle to cycle.
        """
        run = self._running()
        if self._seq is not None and seq <= self._seq:
            raise ValueError(f"cycle {seq} after cycle {self._seq}")
        rows = [
            {
                "run_id": run,
                "seq": seq,
                "position": position,
                "time": event.time,
                "kind": type(event).__name__,
                **_jobs_of(event),
                "payload": self._encode(event, f"an event {type(event).__name__}"),
            }
            for position, event in enumerate(events_)
        ]
        with self._database.writing() as connection:
            connection.execute(insert(cycles), {"run_id": run, "seq": seq, "now": now})
            if rows:
                connection.execute(insert(events), rows)
        self._seq, self._now, self._decided = seq, now, None

    def record_decisions(self, seq: int, decisions_: Sequence[Decision]) -> None:
        """Record what cycle ``seq`` decided. Only after this may it be acted upon."""
        run = self._running()
        if seq != self._seq or self._decided is not None:
            raise ValueError(f"decisions of cycle {seq} do not follow its events")
        rows = [
            {
                "run_id": run,
                "seq": seq,
                "position": position,
                "time": self._now,
                "kind": type(decision).__name__,
                **_jobs_of(decision),
                "reason": getattr(decision, "reason", ""),
                "payload": self._encode(decision, f"a decision {type(decision).__name__}"),
            }
            for position, decision in enumerate(decisions_)
        ]
        if rows:
            with self._database.writing() as connection:
                connection.execute(insert(decisions), rows)
        self._decided, self._concluded = len(rows), False

    def record_outcomes(self, seq: int, outcomes_: Sequence[Outcome]) -> None:
        """Record what became of the decisions of cycle ``seq``, in their order.

        Fewer outcomes than decisions leave the last decisions unfinished.
        """
        run = self._running()
        if seq != self._seq or self._decided is None or self._concluded:
            raise ValueError(f"outcomes of cycle {seq} do not follow its decisions")
        if len(outcomes_) > self._decided:
            raise ValueError(f"{len(outcomes_)} outcomes for {self._decided} decisions of cycle {seq}")
        rows = [
            {
                "run_id": run,
                "seq": seq,
                "position": position,
                "accepted": bool(outcome.accepted),
                "message": outcome.message,
            }
            for position, outcome in enumerate(outcomes_)
        ]
        if rows:
            with self._database.writing() as connection:
                connection.execute(insert(outcomes), rows)
        self._concluded = True

    def checkpoint(self, seq: int, states: Mapping[str, Any], of: Collection[str] | None = None) -> None:
        """Keep what the plugins know after cycle ``seq``: JSON-able data by the plugin's name.

        Replaces the run's checkpoint before it, or in it what is ``of`` these plugins. Raises Failure, and
        keeps the old one, when a state cannot be written as JSON.
        """
        run = self._running()
        rows = [
            {
                "run_id": run,
                "plugin": plugin,
                "seq": seq,
                "state": self._encode(state, f"the state of plugin {plugin!r}"),
            }
            for plugin, state in states.items()
        ]
        with self._database.writing() as connection:
            gone = delete(checkpoints).where(checkpoints.c.run_id == run)
            if of is not None:
                gone = gone.where(checkpoints.c.plugin.in_(of))
            connection.execute(gone)
            if rows:
                connection.execute(insert(checkpoints), rows)

    def prune(self, before: float) -> int:
        """Remove the runs that were over before this time (seconds since the epoch); how many.

        A run that was killed was over when the next one began; if none did, it is kept, because a
        restart reconciles with it. So is the run being written.
        """
        next_run = runs.alias()
        over_at = func.coalesce(
            runs.c.ended_at,
            select(func.min(next_run.c.started_at)).where(next_run.c.id > runs.c.id).scalar_subquery(),
        )
        with self._database.writing() as connection:
            old = connection.execute(select(runs.c.id).where(over_at < before)).scalars().all()
            for run in old:
                for table in OF_A_RUN:
                    connection.execute(delete(table).where(table.c.run_id == run))
                connection.execute(delete(runs).where(runs.c.id == run))
        if old:
            self._database.compact()
        return len(old)

    def _running(self) -> int:
        if self._run is None:
            raise ValueError("no run has begun")
        return self._run

    def _encode(self, value: Any, what: str) -> str:
        try:
            return encode(value)
        except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
            raise Failure(f"journal {self.name}: cannot write {what} as JSON: {error}") from error

    def _encode_states(self, states: Mapping[str, Any]) -> str:
        for plugin, state in states.items():
            self._encode(state, f"the state of plugin {plugin!r}")
        return self._encode(dict(states), "the plugins' states")

    # -- reading ---------------------------------------------------------------------------------

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
        """The recorded cycles of a run in their order, read bit by bit; those behind cycle ``after`` alone.
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
                    .select_from(decisions.outerjoin(outcomes, _same_decision()))
                    .where(of_page(decisions))
                    .order_by(decisions.c.seq, decisions.c.position)
                ).all()
            by_seq: dict[int, tuple[list[Event], list[Decision], list[Outcome | None]]] = {
                row.seq: ([], [], []) for row in page
            }
            for seq, payload in event_rows:
                by_seq[seq][0].append(self._decode(_decode_event, payload))
            for seq, payload, accepted, message in decision_rows:
                _, decided, concluded = by_seq[seq]
                decided.append(self._decode(_decode_decision, payload))
                concluded.append(_outcome(accepted, message))
            for row in page:
                happened, decided, concluded = by_seq[row.seq]
                yield CycleRecord(
                    seq=row.seq,
                    now=_time(row.now),
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
                ends.append(_time(row.now))
        return ends[0], ends[1]

    def last_before(self, run_id: int, time: float) -> int | None:
        """The last cycle of a run that was before ``time``; None: there is none. A run's cycles are in the
        order of their times, so only a few of them are looked at."""
        with self._database.reading() as connection:

            def at_most(seq: int | None) -> Any:
                query = select(cycles.c.seq, cycles.c.now).where(cycles.c.run_id == run_id)
                if seq is not None:
                    query = query.where(cycles.c.seq <= seq)
                return connection.execute(query.order_by(cycles.c.seq.desc()).limit(1)).first()

            found, newest = None, at_most(None)
            below = -1
            above = -1 if newest is None else newest.seq
            while below < above:
                row = at_most((below + above + 1) // 2)
                if row is None or row.seq <= below:
                    # None between them.
                    below = (below + above + 1) // 2
                elif _time(row.now) < time:
                    found, below = row.seq, (below + above + 1) // 2
                else:
                    above = row.seq - 1
        return found

    def unfinished(self, run_id: int) -> list[UnfinishedDecision]:
        """The decisions of a run that have no outcome, in their order.

        After a crash between journal and cluster these may or may not have been carried out. A run that
        applies nothing ("monitor") has no outcomes, so all its decisions are here. UserError: no such
        run.
        """
        self._check_run(run_id)
        query = (
            select(decisions.c.seq, decisions.c.position, decisions.c.time, decisions.c.payload)
            .select_from(decisions.outerjoin(outcomes, _same_decision()))
            .where(decisions.c.run_id == run_id, outcomes.c.run_id.is_(None))
            .order_by(decisions.c.seq, decisions.c.position)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            UnfinishedDecision(
                seq=row.seq,
                position=row.position,
                time=_time(row.time),
                decision=self._decode(_decode_decision, row.payload),
            )
            for row in rows
        ]

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
            start = self._decode(_decode_decision, row.payload)
            assert isinstance(start, Start)
            starts.append((int(row.seq), _time(row.time), start))
        return starts

    def recent_starts(self, since: float) -> dict[str, float]:
        """Job -> when its last start was decided, of those that the last runs decided after ``since``
        (absolute seconds). Only the newest of each run are looked at: it costs little in any journal."""
        found: dict[str, float] = {}
        with self._database.reading() as connection:
            newest = select(runs.c.id).order_by(runs.c.id.desc()).limit(_RECENT_RUNS)
            for run in connection.execute(newest).scalars().all():
                query = (
                    select(decisions.c.job_id, decisions.c.time)
                    .where(decisions.c.run_id == run, decisions.c.kind == Start.__name__)
                    .order_by(decisions.c.seq.desc(), decisions.c.position.desc())
                    .limit(_RECENT_STARTS)
                )
                for job_id, time_ in connection.execute(query).all():
                    if _time(time_) > since:
                        found.setdefault(job_id, time_)
        return found

    def first_submissions(self, jobs: Collection[str]) -> dict[str, float]:
        """When those of these jobs were submitted (absolute seconds) that were told of and are not over, as
        it was told last: a run is told what the one before it knew."""
        found: dict[str, float] = {}
        kinds = (JobSubmitted.__name__, JobEnded.__name__)
        table, asked = events.c, list(jobs)
        with self._database.reading() as connection:
            for at in range(0, len(asked), PAGE):
                query = (
                    select(table.job_id, table.payload)
                    .where(table.job_id.in_(asked[at : at + PAGE]), table.kind.in_(kinds))
                    .order_by(table.run_id, table.seq, table.position)
                )
                for job_id, payload in connection.execute(query).all():
                    found.pop(job_id, None)
                    event = self._decode(_decode_event, payload)
                    if isinstance(event, JobSubmitted):
                        found[job_id] = event.job.submit_time
        return found

    def recent_frequencies(self, since: float) -> dict[str, WishedFrequency]:
        """Job -> at which frequency it should run, where one was asked for after ``since`` (absolute seconds)
        and the job has not ended since. As little is looked at as for :meth:`recent_starts`."""
        asked: set[str] = set()
        with self._database.reading() as connection:
            newest = select(runs.c.id).order_by(runs.c.id.desc()).limit(_RECENT_RUNS)
            for run in connection.execute(newest).scalars().all():
                for kind in (Start, SetFrequency):
                    query = (
                        select(decisions.c.job_id, decisions.c.time, decisions.c.payload)
                        .where(decisions.c.run_id == run, decisions.c.kind == kind.__name__)
                        .order_by(decisions.c.seq.desc(), decisions.c.position.desc())
                        .limit(_RECENT_STARTS)
                    )
                    for job_id, time_, payload in connection.execute(query).all():
                        # Most starts ask for none, and are not read for that.
                        if _time(time_) > since and '"frequency"' in payload:
                            asked.add(job_id)
        found = {job: wished_frequency(self.job_history(job)) for job in sorted(asked)}
        return {job: wish for job, wish in found.items() if wish is not None}

    def recent_tiers(self, since: float) -> dict[str, str]:
        """Job -> the tier that it is in, where that was decided after ``since`` (absolute seconds) and the
        job has not ended since. As little is looked at as for :meth:`recent_starts`."""
        asked: set[str] = set()
        with self._database.reading() as connection:
            newest = select(runs.c.id).order_by(runs.c.id.desc()).limit(_RECENT_RUNS)
            for run in connection.execute(newest).scalars().all():
                table = decisions.c
                query = (
                    select(table.job_id, table.other_job_id, table.time, table.payload)
                    .where(decisions.c.run_id == run)
                    .where(decisions.c.kind.in_((Start.__name__, SwapTiers.__name__, Migrate.__name__)))
                    .order_by(decisions.c.seq.desc(), decisions.c.position.desc())
                    .limit(_RECENT_STARTS)
                )
                for job_id, other, time_, payload in connection.execute(query).all():
                    # Most starts are in the foreground, and are not read for that.
                    if _time(time_) > since and ('"tier"' in payload or "SwapTiers" in payload):
                        asked.update(name for name in (job_id, other) if name)
        found = {job: tier_of(self.job_history(job)) for job in sorted(asked)}
        return {job: tier for job, tier in found.items() if tier}

    def open_moves(self, since: float) -> dict[str, Decision]:
        """Job -> the move that was decided after ``since`` (absolute seconds) and of which nobody was told
        how it ended. As little is looked at as for :meth:`recent_starts`."""
        asked: set[str] = set()
        with self._database.reading() as connection:
            newest = select(runs.c.id).order_by(runs.c.id.desc()).limit(_RECENT_RUNS)
            for run in connection.execute(newest).scalars().all():
                query = (
                    select(decisions.c.job_id, decisions.c.time)
                    .where(decisions.c.run_id == run)
                    .where(decisions.c.kind.in_((Migrate.__name__, Checkpoint.__name__)))
                    .order_by(decisions.c.seq.desc(), decisions.c.position.desc())
                    .limit(_RECENT_STARTS)
                )
                asked.update(row[0] for row in connection.execute(query).all() if _time(row[1]) > since)
        found = {job: open_move(self.job_history(job)) for job in sorted(asked)}
        return {job: move for job, move in found.items() if move is not None}

    def job_history(self, job_id: str, run_id: int | None = None) -> list[HistoryEntry]:
        """What happened to a job and what was decided about it, in order, over all runs or in one.

        A job that nobody has heard of has an empty history.
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
                .select_from(decisions.outerjoin(outcomes, _same_decision()))
                .where(concerns(decisions))
            ).all()
        # Within a cycle the events come before the decisions.
        keyed: list[tuple[tuple[int, int, int, int], HistoryEntry]] = []
        for run, seq, position, payload in event_rows:
            event = self._decode(_decode_event, payload)
            keyed.append(((run, seq, 0, position), HistoryEntry(run, seq, event.time, "event", event)))
        for run, seq, position, now, payload, accepted, message in decision_rows:
            decision = self._decode(_decode_decision, payload)
            outcome = _outcome(accepted, message)
            entry = HistoryEntry(run, seq, _time(now), "decision", decision, outcome)
            keyed.append(((run, seq, 1, position), entry))
        return [entry for _, entry in sorted(keyed, key=lambda pair: pair[0])]

    def elements(self, array_id: str) -> list[str]:
        """The ids of the jobs that came as elements of this array in any run, in order of their numbers.

        Batch systems begin an element's id as the array's, up to a bracket if it has one.
        """
        stem = array_id.partition("[")[0]
        submitted = select(events.c.payload).where(
            events.c.kind == "JobSubmitted", events.c.job_id.startswith(stem, autoescape=True)
        )
        with self._database.reading() as connection:
            payloads = connection.execute(submitted).scalars().all()
        came = [self._decode(_decode_event, payload) for payload in payloads]
        jobs = [event.job for event in came if isinstance(event, JobSubmitted)]
        found = {job.id: job.array_index or 0 for job in jobs if job.array_id == array_id}
        return sorted(found, key=lambda job_id: found[job_id])

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
            yield self._decode(_decode_event, payload)

    def last_checkpoint(self, run_id: int) -> CheckpointRecord | None:
        """The newest checkpoint of a run; None when it has none. UserError: no such run."""
        self._check_run(run_id)
        query = select(checkpoints).where(checkpoints.c.run_id == run_id).order_by(checkpoints.c.plugin)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        if not rows:
            return None
        states = {row.plugin: self._decode(_decode_any, row.state) for row in rows}
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
            cluster=self._decode(_decode_cluster, row.cluster),
            plugin_states=self._decode(_decode_any, row.plugin_states),
        )
        return RunRecord(id=row.id, info=info, ended_at=row.ended_at, end_reason=row.end_reason)

    def _decode(self, decoder: Decoder[T], payload: str) -> T:
        try:
            return decoder(payload)
        except (msgspec.DecodeError, ValueError) as error:
            raise damaged(self.name, f"a row cannot be read: {error}: {payload[:200]!a}") from error


def _jobs_of(what: Event | Decision) -> dict[str, str | None]:
    """The columns ``job_id`` and ``other_job_id``: the jobs whose histories this belongs to."""
    job_id: str | None
    other: str | None = None
    if isinstance(what, DecisionFailed):
        return _jobs_of(what.decision)
    if isinstance(what, JobSubmitted | JobChanged):
        job_id = what.job.id
    elif isinstance(what, SubmitSubjob):
        job_id, other = what.parent_id, what.job.id
    elif isinstance(what, SwapTiers):
        job_id, other = what.job_id, what.other_job_id or None
    else:
        job_id = getattr(what, "job_id", None)
    return {"job_id": job_id, "other_job_id": other}


def _same_decision() -> ColumnElement[bool]:
    return and_(
        outcomes.c.run_id == decisions.c.run_id,
        outcomes.c.seq == decisions.c.seq,
        outcomes.c.position == decisions.c.position,
    )


def _outcome(accepted: bool | None, message: str | None) -> Outcome | None:
    return None if accepted is None else Outcome(accepted=accepted, message=message or "")


def _time(value: float | None) -> float:
    # SQLite stores a NaN as NULL.
    return float("nan") if value is None else value
