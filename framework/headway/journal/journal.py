"""The durable log of all that happened and of all that was decided.

The engine's loop is: wait, :meth:`Journal.record_events`, step, :meth:`Journal.record_decisions`, apply,
:meth:`Journal.record_outcomes`. Each of these returns after its transaction is on disk, so that a
decision is never acted upon before it is known for ever. A crash between the journal and the cluster
leaves decisions without an outcome: :meth:`Journal.unfinished` names them.

Each process that drives makes a *run*; the cycles are numbered within it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import delete, insert, update

from headway.adapter import Outcome
from headway.decisions import Decision, SubmitSubjob, SwapTiers
from headway.errors import Failure
from headway.events import DecisionFailed, Event, JobChanged, JobSubmitted
from headway.journal.database import Database
from headway.journal.encoding import encode
from headway.journal.pruning import prune_open
from headway.journal.records import RunInfo
from headway.journal.recovery import Recovery
from headway.journal.schema import checkpoints, cycles, decisions, events, outcomes, runs


class Journal(Recovery):
    """A journal in a database, made by :meth:`open`.

    All methods raise Failure when the database cannot be read or written; what was recorded before
    stays as it was, and the journal can be used again once the cause is gone. The ``record_*``
    methods raise ValueError when they are called out of their order.
    """

    #: What is recorded is kept.
    enabled: ClassVar[bool] = True

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._run: int | None = None
        # The last recorded cycle, its time, and how many decisions it has (None: not recorded yet).
        self._seq: int | None = None
        self._now = 0.0
        self._decided: int | None = None
        self._concluded = False

    @classmethod
    def open(
        cls, url_or_path: str | Path, *, create: bool = True, read_only: bool = False, at_least: int = 0
    ) -> Journal:
        """The journal in this file, or at this ``sqlite:///`` or ``postgresql://`` URL.

        With ``create``, one that does not exist yet is made (but no directory). With ``read_only``,
        nothing is made or changed, and another process may write to it meanwhile; otherwise this is
        its only writer until :meth:`close` or the end of the process, with an :attr:`epoch` that is
        ``at_least`` so high.

        Raises UserError when it is no journal, of a newer schema or missing; Held when another process
        writes to it; Failure when it cannot be reached, read or written; Damaged when it is broken.
        """
        return cls(Database(url_or_path, create=create, read_only=read_only, at_least=at_least))

    @property
    def epoch(self) -> int:
        """A number that grows with each writer of the journal, and is this writer's alone; 0: read only."""
        return self._database.number

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
        """Remove the runs that were over before this time (seconds since the epoch) and that no restart
        needs (:mod:`headway.journal.pruning`); how many. Never the run that is being written."""
        return len(prune_open(self._database, before))

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
