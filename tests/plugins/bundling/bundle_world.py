"""A batch system, workers and a migration handler that are not there; a real brain and a real store."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from headway.adapter.migration import Machine, Move, Reported
from headway.adapter.user_side import Listed, Queue
from headway_plugins.bundling.live.actions import (
    Action,
    Cancel,
    Finish,
    Perform,
    Postpone,
    Release,
    Shrink,
    Submit,
)
from headway_plugins.bundling.live.brain import Brain, slots_of
from headway_plugins.bundling.live.messages import Report
from headway_plugins.bundling.live.specification import Specification
from headway_plugins.bundling.live.state import State
from headway_plugins.bundling.live.store import Store
from headway_plugins.migration.relocation import Relocation, Way

HOUR = 3600.0


def specification(**changes: object) -> Specification:
    spec = Specification(
        id="b00000001", user="alice", submitted=0.0, processors=8, walltime=HOUR, command=("/bin/app",),
        launch="each", directory="/", environment={}, system="slurm", options={"queue": "batch"},
        checkpoint="checkpoint-signal", checkpoint_options={"directory": "/images"}, checkpoint_every=0.0,
        program="/bin/headway", slack=1.05,
    )  # fmt: skip
    return msgspec.structs.replace(spec, **changes)


class Handler:
    """Every move is by signal; ``answers`` says what a task comes to, if not that all is well."""

    name = "checkpoint-signal"

    def __init__(self) -> None:
        self.answers: dict[str, Reported] = {}
        self.saves = "signal"

    def suits(self, move: Move) -> str:
        return ""

    def machine(self, move: Move) -> Machine:
        return Relocation(move, Way(saves=self.saves, save_seconds=60.0, ask_seconds=1.0))

    def perform(self, move: Move, task: str) -> Reported:
        return self.answers.get(task, Reported(task, True))


@dataclass
class Job:
    id: str
    number: int
    processors: int
    walltime: float
    state: str = "pending"
    start: float = 0.0


@dataclass
class Node:
    """A worker: one node's, one node a subjob."""

    life: str
    launch: int = 0
    processes: tuple[int, ...] = ()
    ended: dict[int, int] = field(default_factory=dict)
    signals: int = 0
    left: int | None = None


class World:
    """Time goes on with :meth:`step`. A bundle's subjobs start at once if they fit."""

    def __init__(self, path: Path, spec: Specification | None = None, *, free: int = 2) -> None:
        self.spec = spec or specification()
        self.handler = Handler()
        self.store = Store(path / "state.db")
        #: What the manager wrote down last; it comes to the disk when it is read again.
        self.written = State()
        self.brain = Brain(self.spec, State(), self.handler, 60.0)
        self.now = 1000.0
        self.free = free
        #: (free processors, free bytes) of nodes.
        self.room: tuple[tuple[int, int | None], ...] = ()
        #: When others' jobs end: what the placeholder waits for.
        self.others = [(self.now + 40 * HOUR, 8 - free)]
        self.starts_at_once = True
        #: Nobody answers who is asked to submit, or to make the placeholder small; no file can be written.
        self.silent = self.full = False
        #: Whether users can put running jobs back, and whether the placeholder is held so.
        self.postpones, self.held = True, False
        self.jobs: dict[str, Job] = {}
        self.workers: dict[str, Node] = {}
        self.result: Finish | None = None
        self.shrunk: list[str] = []
        self.signals: list[str] = []
        self._count = 100

    # ------------------------------------------------------------------ what happens

    def step(self, seconds: float = 1.0, times: int = 1) -> None:
        for _ in range(times):
            self.now += seconds
            for job in list(self.jobs.values()):
                if job.state == "running" and self.now >= job.start + job.walltime:
                    self.end(job.number)
            self._talk()
            queue = self.queue()
            self._act(self.brain.step(self.now, queue, slots_of(queue), {}))

    def until(self, condition: object, *, seconds: float = 1.0, steps: int = 400) -> None:
        for _ in range(steps):
            if condition():  # type: ignore[operator]
                return
            self.step(seconds)
        raise AssertionError(f"not within {steps} steps: {self.state.status}, {self.state.notes}")

    def queue(self) -> Queue:
        listed = {
            job.id: Listed(
                job.id, f"{self.spec.id}.{job.number}", "alice", job.processors, job.state,
                job.start + job.walltime if job.state == "running" else None,
                reason="Priority" if job.state == "pending" else "",
            )
            for job in self.jobs.values()
        }  # fmt: skip
        waiting = tuple(one for one in listed.values() if one.state == "pending")
        mine = [(one.end, one.processors) for one in listed.values() if one.end is not None]
        return Queue(self.now, self.free, waiting, tuple([*self.others, *mine]), listed, self.room)

    def start(self, number: int) -> None:
        """The batch system starts a subjob, with one worker."""
        job = self.job(number)
        job.state, job.start = "running", self.now
        if number:
            self.free -= job.processors
        self.workers[job.id] = Node(f"life {job.id}")

    def end(self, number: int) -> None:
        """A subjob ends, whatever ran in it."""
        job = self.job(number)
        if job.state == "running" and number:
            self.free += job.processors
        job.state = "ended"
        self.workers.pop(job.id, None)

    def finish_all(self, code: int = 0) -> None:
        """All processes end by themselves."""
        for node in self.workers.values():
            node.ended = dict.fromkeys(node.processes, code)
            node.processes = ()

    def new_manager(self) -> None:
        """The manager was killed; another goes on from its database."""
        self.store.save(self.written)
        state = self.store.load()
        assert state is not None
        self.brain = Brain(self.spec, state, self.handler, 60.0)

    # ------------------------------------------------------------------ looks

    @property
    def state(self) -> State:
        return self.brain.state

    def job(self, number: int) -> Job:
        return next(job for job in self.jobs.values() if job.number == number)

    def said(self) -> str:
        return "; ".join(text for _, text in self.state.notes)

    def running(self) -> dict[int, list[int]]:
        """Subjob -> processes that run in it."""
        found = {
            self.jobs[key].number: sorted(node.processes)
            for key, node in self.workers.items()
            if node.processes
        }
        everywhere = [process for held in found.values() for process in held]
        assert len(everywhere) == len(set(everywhere)), f"a process runs twice: {found}"
        return found

    # ------------------------------------------------------------------ inside

    def _talk(self) -> None:
        reports = []
        for key, node in list(self.workers.items()):
            job = self.jobs[key]
            reports.append(Report(
                key, f"node{job.number}", ((f"node{job.number}", job.processors),), node.life, node.launch,
                len(node.processes), node.ended, node.signals,
            ))  # fmt: skip
        for report in reports:
            # As the manager does it: orders are of what is written down, reports are taken up later.
            orders = self.brain.orders(report.job, report.node)
            self.brain.report(self.now, report)
            node = self.workers[report.job]
            if orders.leave is not None:
                node.left = orders.leave
                self.end(self.jobs[report.job].number)
                continue
            if orders.launch.number != node.launch:
                node.launch, node.signals, node.ended = orders.launch.number, 0, {}
                node.processes = tuple(number for number, _ in orders.launch.processes)
            if orders.signals > node.signals:
                node.signals = orders.signals
                self.signals.append(orders.signal)
        self.running()

    def _act(self, actions: list[Action]) -> None:
        self.written = deepcopy(self.state)
        for action in list(actions):
            if isinstance(action, Submit):
                self._submit(action)
            elif isinstance(action, Cancel):
                job = self.state.subjob(action.number).job
                if job in self.jobs:
                    self.end(action.number)
            elif isinstance(action, Shrink):
                self._shrink(action)
            elif isinstance(action, Postpone):
                self._postpone()
            elif isinstance(action, Release):
                self.held = False
            elif isinstance(action, Perform):
                self.brain.worked(self.now, action.move, self.handler.perform(action.move, action.task))
                self.written = deepcopy(self.state)
            elif self.full:
                self.brain.not_finished()
            else:
                self.result = action
                self.brain.finished()

    def _submit(self, action: Submit) -> None:
        if self.silent:
            self.brain.unanswered(self.now, action.number)
            return
        subjob = self.state.subjob(action.number)
        self._count += 1
        key = str(self._count)
        self.jobs[key] = Job(key, action.number, subjob.processors, subjob.walltime)
        self.brain.submitted(self.now, action.number, key)
        self.written = deepcopy(self.state)
        if action.number and self.starts_at_once and subjob.processors <= self.free:
            self.start(action.number)

    def _shrink(self, action: Shrink) -> None:
        if self.silent:
            self.brain.not_shrunk(self.now, "no answer", again=True)
            return
        self.shrunk.append(self.state.subjob(action.number).job)
        self.brain.shrunk()

    def _postpone(self) -> None:
        if self.postpones:
            self.job(0).state, self.held = "pending", True
            self.workers.pop(self.job(0).id, None)
        else:
            self.brain.not_postponed(self.now, "users cannot")
