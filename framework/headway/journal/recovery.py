"""What a new run asks of the runs before it: decisions that may not have been carried out, starts that may
still come, what jobs run with."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from headway.adapter import KnownReplica, Outcome, WishedFrequency
from headway.decisions import Checkpoint, Decision, Migrate, SetFrequency, Start, SwapTiers
from headway.events import Event, JobEnded, JobSubmitted
from headway.journal.frequencies import wished_frequency
from headway.journal.moves import open_move
from headway.journal.reading import (
    PAGE,
    Reading,
    decode_decision,
    decode_event,
    outcome_of,
    same_decision,
    time_of,
)
from headway.journal.records import UnfinishedDecision
from headway.journal.replicas import DECISIONS, EVENTS, replicas_after
from headway.journal.schema import decisions, events, outcomes, runs
from headway.journal.tiers import tier_of
from headway.model.modes import Mode

#: What was decided so long ago, in seconds, is still looked for when a run begins: runs since then are never
#: pruned.
LOOKED_BACK = 30 * 86400.0

#: What :meth:`Recovery.recent_starts` and its like look at: so many runs, and so many decisions of each.
_RECENT_RUNS = 100
_RECENT_DECISIONS = 1000


class Recovery(Reading):
    """What is left of earlier runs."""

    def unfinished(self, run_id: int) -> list[UnfinishedDecision]:
        """The decisions of a run that have no outcome, in their order.

        After a crash between journal and cluster these may or may not have been carried out. A run that
        applies nothing ("monitor") has no outcomes, so all its decisions are here. UserError: no such
        run.
        """
        self._check_run(run_id)
        query = (
            select(decisions.c.seq, decisions.c.position, decisions.c.time, decisions.c.payload)
            .select_from(decisions.outerjoin(outcomes, same_decision()))
            .where(decisions.c.run_id == run_id, outcomes.c.run_id.is_(None))
            .order_by(decisions.c.seq, decisions.c.position)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            UnfinishedDecision(
                seq=row.seq,
                position=row.position,
                time=time_of(row.time),
                decision=self._decode(decode_decision, row.payload),
            )
            for row in rows
        ]

    def recent_starts(self, since: float) -> dict[str, float]:
        """Job -> when its last start was decided, of the starts that the last runs decided after ``since``
        (absolute seconds). Only the newest of each run are looked at: it costs little in any journal."""
        found: dict[str, float] = {}
        table = decisions.c
        with self._database.reading() as connection:
            for job_id, time_ in _recent(connection, (table.job_id, table.time), Start):
                if time_of(time_) > since:
                    found.setdefault(job_id, time_)
        return found

    def first_submissions(self, jobs: Collection[str]) -> dict[str, float]:
        """When these jobs were submitted (absolute seconds), if they were told of and are not over, as
        it was told last: a run is told what the run before it knew."""
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
                    event = self._decode(decode_event, payload)
                    if isinstance(event, JobSubmitted):
                        found[job_id] = event.job.submit_time
        return found

    def recent_frequencies(self, since: float) -> dict[str, WishedFrequency]:
        """Job -> at which frequency it should run, where one was asked for after ``since`` (absolute seconds)
        and the job has not ended since. As little is looked at as for :meth:`recent_starts`."""
        asked: set[str] = set()
        table = decisions.c
        with self._database.reading() as connection:
            for kind in (Start, SetFrequency):
                for job_id, time_, payload in _recent(
                    connection, (table.job_id, table.time, table.payload), kind
                ):
                    # Most starts ask for none, and are not read for that.
                    if time_of(time_) > since and '"frequency"' in payload:
                        asked.add(job_id)
        found = {job: wished_frequency(self.job_history(job)) for job in sorted(asked)}
        return {job: wish for job, wish in found.items() if wish is not None}

    def recent_tiers(self, since: float) -> dict[str, str]:
        """Job -> the tier that it is in, where that was decided after ``since`` (absolute seconds) and the
        job has not ended since. As little is looked at as for :meth:`recent_starts`."""
        asked: set[str] = set()
        table = decisions.c
        columns = (table.job_id, table.other_job_id, table.time, table.payload)
        with self._database.reading() as connection:
            for job_id, other, time_, payload in _recent(connection, columns, Start, SwapTiers, Migrate):
                # Most starts are in the foreground, and are not read for that.
                if time_of(time_) > since and ('"tier"' in payload or "SwapTiers" in payload):
                    asked.update(name for name in (job_id, other) if name)
        found = {job: tier_of(self.job_history(job)) for job in sorted(asked)}
        return {job: tier for job, tier in found.items() if tier}

    def open_moves(self, since: float) -> dict[str, Decision]:
        """Job -> the move that was decided after ``since`` (absolute seconds) and whose end is not recorded.
        As little is looked at as for :meth:`recent_starts`."""
        table = decisions.c
        with self._database.reading() as connection:
            rows = _recent(connection, (table.job_id, table.time), Migrate, Checkpoint)
            asked = {job_id for job_id, time_ in rows if time_of(time_) > since}
        found = {job: open_move(self.job_history(job)) for job in sorted(asked)}
        return {job: move for job, move in found.items() if move is not None}

    def replicas(self) -> list[KnownReplica]:
        """The copies of datasets that runs of real clusters left behind. Each run tells again what it was
        left, so pruned runs are not missed."""
        drove = select(runs.c.id).where(runs.c.mode == Mode.DRIVE.value)
        live = select(runs.c.id).where(runs.c.mode != Mode.DRY_RUN.value)
        keyed: list[tuple[tuple[int, int, int, int], tuple[Event | Decision, Outcome | None]]] = []
        e, d, o = events.c, decisions.c, outcomes.c
        told = select(e.run_id, e.seq, e.position, e.payload).where(
            # That they are about no job is in an index.
            e.job_id.is_(None), e.run_id.in_(live), e.kind.in_([kind.__name__ for kind in EVENTS]),
        )  # fmt: skip
        decided = (
            select(d.run_id, d.seq, d.position, d.payload, o.accepted, o.message)
            .select_from(decisions.outerjoin(outcomes, same_decision()))
            .where(d.job_id.is_(None), d.run_id.in_(drove), d.kind.in_([kind.__name__ for kind in DECISIONS]))
        )
        with self._database.reading() as connection:
            for run, seq, position, payload in connection.execute(told).all():
                event = self._decode(decode_event, payload)
                keyed.append(((run, seq, 0, position), (event, None)))
            for run, seq, position, payload, accepted, message in connection.execute(decided).all():
                decision = self._decode(decode_decision, payload)
                keyed.append(((run, seq, 1, position), (decision, outcome_of(accepted, message))))
        return replicas_after(what for _, what in sorted(keyed, key=lambda pair: pair[0]))


def _recent(
    connection: Connection, columns: Sequence[ColumnElement[Any]], *kinds: type[Decision]
) -> Iterator[Sequence[Any]]:
    """These columns of the newest decisions of these kinds, of the newest runs, newest first."""
    newest = select(runs.c.id).order_by(runs.c.id.desc()).limit(_RECENT_RUNS)
    for run in connection.execute(newest).scalars().all():
        query = (
            select(*columns)
            .where(decisions.c.run_id == run, decisions.c.kind.in_([kind.__name__ for kind in kinds]))
            .order_by(decisions.c.seq.desc(), decisions.c.position.desc())
            .limit(_RECENT_DECISIONS)
        )
        yield from connection.execute(query).all()
