"""Moves that are under way on a batch system: their machines driven, their jobs shown as one job.

A batch system knows no moves. A job that moves leaves its nodes, waits in its queue and starts again;
told as it happens, the scheduler would take it for a job that was requeued and start it somewhere else. So
while its move is under way a job is shown as it was when the move began, and at the end it is told once
what became of it: :class:`headway.events.JobMigrated` with the time that it stood still, or
:class:`headway.events.DecisionFailed`, and whatever the batch system shows of it from then on.

A daemon that is killed forgets its moves. The next daemon takes the job as it finds it (running, or in its
queue), says so, and resumes a job that its predecessor left suspended (:meth:`Moves.adopt`). So no move is
finished by a daemon that did not begin it, and none can be done twice.

Work (:class:`headway.adapter.migration.Work`) runs on threads of its own; all else on the adapter's.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome
from headway.adapter.migration import (
    Answered,
    Instruction,
    Machine,
    MigrationHandler,
    Move,
    Order,
    Over,
    Passed,
    Reported,
    Seen,
    Signal,
    Stimulus,
    Work,
    handler_for,
)
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

#: Pieces of work at once.
_THREADS = 4
#: Between two rounds of tidying, seconds.
_TIDY_SECONDS = 600.0


class Hands(Protocol):
    """What the moves need of their adapter."""

    def order(self, decision: d.Decision) -> Outcome:
        """Carry a decision out, a start too; not for jobs that do not move."""

    def signal(self, job_id: str, name: str) -> Outcome:
        """Send all processes of a running job a signal, such as "USR1"."""

    def poke(self) -> None:
        """Make the adapter look around. On any thread."""


@dataclass
class _UnderWay:
    """One move."""

    move: Move
    handler: MigrationHandler
    machine: Machine
    decision: d.Migrate | d.Checkpoint
    #: The job as it was when the move began: so it is shown.
    shown: SnapshotJob
    #: On the monotonic clock; None: it has not left its nodes.
    stood_since: float | None = None
    stood: float = 0.0
    #: A look has shown it in its queue, so what runs after that is another execution.
    queued: bool = False
    work: list[tuple[str, Future[Reported]]] = field(default_factory=list)


class Moves:
    """All moves of one adapter. Everything but the work runs on the adapter's thread."""

    def __init__(self, hands: Hands, *, log: Any, clock: Callable[[], float]) -> None:
        """``clock`` tells the time in absolute seconds."""
        self._hands = hands
        self._log = log
        self._clock = clock
        self._handlers: Sequence[MigrationHandler] = ()
        self._under_way: dict[str, _UnderWay] = {}
        self._pool: ThreadPoolExecutor | None = None
        #: Stimuli that are not told yet: orders are answered while a machine speaks.
        self._waiting: deque[tuple[str, Stimulus]] = deque()
        self._told: list[ev.Event] = []
        #: The time of the look that is being told of.
        self._at: float | None = None
        self._tidying: Future[list[str]] | None = None
        self._tidy_at = 0.0
        #: Open moves of an earlier run: job -> what it was at.
        self._before: dict[str, d.Decision] = {}

    def use(self, handlers: Iterable[MigrationHandler]) -> None:
        """The handlers, in the order in which they are asked."""
        self._handlers = tuple(handlers)
        if self._handlers and self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="migration")

    @property
    def handlers(self) -> Sequence[MigrationHandler]:
        return self._handlers

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._under_way

    # ------------------------------------------------------------------ begin

    def begin(self, decision: d.Migrate | d.Checkpoint, job: SnapshotJob | None, tier: str) -> Outcome:
        """Begin a move. ``job`` as the last look showed it, ``tier``: the tier that it is in."""
        key = decision.job_id
        if key in self._under_way:
            under_way = self._under_way[key]
            if under_way.decision == decision:
                return Outcome(True, f"its move is under way already: {under_way.machine.step}")
            return Outcome(False, f"job {key} is being moved already: {under_way.machine.step}")
        if job is None or job.state not in ("running", "suspended"):
            return Outcome(False, f"job {key} does not run")
        target = decision.placement or job.placement if isinstance(decision, d.Migrate) else ()
        again = isinstance(decision, d.Migrate) and decision.restart
        wanted = (decision.tier if isinstance(decision, d.Migrate) else "") or tier
        move = Move(job.job, job.placement, target, job.restarts, wanted, again, job.start_time, tier)
        handler, why = handler_for(self._handlers, move)
        if handler is None:
            return Outcome(False, f"job {key} cannot be moved: {why}")
        machine = handler.machine(move)
        # A batch system may know nothing of tiers: what a look shows has its tier from the agents.
        shown = msgspec.structs.replace(job, tier=tier)
        self._under_way[key] = _UnderWay(move, handler, machine, decision, shown)
        where = ", ".join(node for node, _ in target) or "its image"
        passed_over = {"passed_over": why} if why else {}
        self._log.info("a move begins", job=key, by=handler.name, to=where, **passed_over)
        self._follow(key, machine.begin(time.monotonic()))
        self._drain()
        return Outcome(True)

    # ------------------------------------------------------------------ stimuli

    def looked(self, snapshot: Snapshot, before: Snapshot | None) -> Snapshot | None:
        """Tell the machines what a look showed. Answers ``before``, the last look as it was shown, in which
        jobs whose move is over are where they are now, so that nothing else is told of them."""
        self._at = snapshot.time
        down = frozenset(name for name, node in snapshot.nodes.items() if not node.available)
        moved: dict[str, SnapshotJob] = {}
        for key, one in list(self._under_way.items()):
            job = snapshot.jobs.get(key)
            state = "ended" if job is None else job.state
            nodes = {node for node, _ in (*one.move.source, *one.move.target)}
            here = job.placement if job is not None else ()
            one.queued = one.queued or state == "pending"
            # Not every batch system counts executions (LSF does not).
            restarts = max(job.restarts if job is not None else 0, one.move.restarts + one.queued)
            if one.stood_since is None and state in ("pending", "suspended"):
                one.stood_since = time.monotonic()
            elif one.stood_since is not None and state == "running":
                one.stood, one.stood_since = one.stood + time.monotonic() - one.stood_since, None
            self._tell(key, Seen(state, here, restarts, down & nodes))
            if key not in self._under_way and self._is_moved(key) and job is not None:
                moved[key] = job
        self._drain()
        self._at = None
        for key in self._before:
            self._take_up(key, snapshot.jobs.get(key))
        self._before.clear()
        self._tidy(snapshot)
        if before is None or not moved:
            return before
        return replace(before, jobs={**before.jobs, **{k: j for k, j in moved.items() if k in before.jobs}})

    def _is_moved(self, key: str) -> bool:
        return any(isinstance(event, ev.JobMigrated) and event.job_id == key for event in self._told)

    def show(self, snapshot: Snapshot) -> Snapshot:
        """A look, with the jobs that move as they were."""
        if not self._under_way:
            return snapshot
        jobs = dict(snapshot.jobs)
        jobs.update((key, one.shown) for key, one in self._under_way.items())
        return replace(snapshot, jobs=jobs)

    def answered(self, start: d.Start, accepted: bool, message: str) -> bool:
        """A start that was accepted did not happen: tell its machine. False: it is no move's."""
        if start.job_id not in self._under_way:
            return False
        self._waiting.append((start.job_id, Answered(accepted, message)))
        return True

    def advance(self) -> list[ev.Event]:
        """Let work that is done and time that passed have their effect; what is to be told."""
        now = time.monotonic()
        for key, one in list(self._under_way.items()):
            done = [(task, future) for task, future in one.work if future.done()]
            one.work = [pair for pair in one.work if not pair[1].done()]
            for task, future in done:
                self._waiting.append((key, _report(task, future)))
            if one.machine.due is not None and now >= one.machine.due:
                self._waiting.append((key, Passed()))
        self._drain()
        if self._tidying is not None and self._tidying.done():
            for said in self._tidying.result():
                self._log.info("an image was removed", what=said)
            self._tidying = None
        return self.told()

    def told(self) -> list[ev.Event]:
        """What became of moves since this was asked last."""
        told, self._told = self._told, []
        return told

    @property
    def due(self) -> float | None:
        """Seconds until a machine wants to be told that time passed."""
        times = [one.machine.due for one in self._under_way.values() if one.machine.due is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _tell(self, key: str, stimulus: Stimulus) -> None:
        one = self._under_way.get(key)
        if one is None:
            return
        before = one.machine.step
        instructions = one.machine.tell(time.monotonic(), stimulus)
        if one.machine.step != before:
            self._log.info("a move goes on", job=key, step=one.machine.step)
        self._follow(key, instructions)

    def _drain(self) -> None:
        while self._waiting:
            self._tell(*self._waiting.popleft())

    # ------------------------------------------------------------------ instructions

    def _follow(self, key: str, instructions: Iterable[Instruction]) -> None:
        one = self._under_way[key]
        for instruction in instructions:
            if isinstance(instruction, Order):
                outcome = self._hands.order(instruction.decision)
                self._waiting.append((key, Answered(outcome.accepted, outcome.message)))
            elif isinstance(instruction, Signal):
                outcome = self._hands.signal(key, instruction.name)
                self._waiting.append((key, Answered(outcome.accepted, outcome.message)))
            elif isinstance(instruction, Work):
                assert self._pool is not None
                future = self._pool.submit(one.handler.perform, one.move, instruction.task)
                future.add_done_callback(lambda _: self._hands.poke())
                one.work.append((instruction.task, future))
            else:
                self._end(key, one, instruction)

    def _end(self, key: str, one: _UnderWay, over: Over) -> None:
        del self._under_way[key]
        now, decision = self._clock() if self._at is None else self._at, one.decision
        if one.stood_since is not None:
            # It is on its way to its nodes, and was not seen to run there yet.
            one.stood, one.stood_since = one.stood + time.monotonic() - one.stood_since, None
        if over.outcome == "saved":
            self._told.append(ev.JobCheckpointed(now, key))
        elif over.outcome == "moved":
            assert isinstance(decision, d.Migrate)
            self._told.append(
                ev.JobMigrated(
                    now, key, one.move.target, tier=decision.tier, restarted=over.restarted,
                    seconds=round(one.stood, 3),
                )
            )  # fmt: skip
        else:
            self._told.append(ev.DecisionFailed(now, decision, over.message))
        tell = self._log.info if over.outcome in ("moved", "saved") else self._log.warning
        how = "from its beginning" if over.restarted else "with its work so far"
        what = f"{over.message}; {how}" if over.outcome == "moved" else over.message
        tell("a move is over", job=key, outcome=over.outcome, by=one.handler.name,
             what=what, stood=round(one.stood, 1))  # fmt: skip
        self._hands.poke()

    # ------------------------------------------------------------------ an earlier run's moves

    def adopt(self, decisions: Mapping[str, d.Decision]) -> None:
        """Moves that an earlier run began, and whose end was not told."""
        self._before = dict(decisions)

    def _take_up(self, key: str, job: SnapshotJob | None) -> None:
        state = "ended" if job is None else job.state
        said = "a move that an earlier run began is given up; the job stays as it is"
        if job is None or state == "ended" or key in self._under_way:
            return
        self._log.warning(said, job=key, state=state, nodes=",".join(node for node, _ in job.placement))
        if state == "suspended":
            outcome = self._hands.order(d.Resume(key, "its move was cut off"))
            if not outcome.accepted:
                self._log.error("a job is suspended and could not be resumed; resume it by hand", job=key,
                                error=outcome.message)  # fmt: skip

    # ------------------------------------------------------------------ the rest

    def _tidy(self, snapshot: Snapshot) -> None:
        now = time.monotonic()
        if self._pool is None or self._tidying is not None or now < self._tidy_at:
            return
        self._tidy_at = now + _TIDY_SECONDS
        alive = frozenset(key for key, job in snapshot.jobs.items() if job.state != "ended")
        self._tidying = self._pool.submit(_tidied, self._handlers, alive)

    def close(self) -> None:
        """End what is under way as it is; the jobs stay as they are."""
        for handler in self._handlers:
            handler.stop()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def _report(task: str, future: Future[Reported]) -> Reported:
    try:
        return future.result()
    except Exception as error:
        return Reported(task, False, f"{type(error).__name__}: {error}")


def _tidied(handlers: Sequence[MigrationHandler], alive: frozenset[str]) -> list[str]:
    said: list[str] = []
    for handler in handlers:
        try:
            said += handler.tidy(alive)
        except Exception as error:
            said.append(f"{handler.name}: images not removed: {type(error).__name__}: {error}")
    return said
