"""The manager: a daemon of the user's, all of whose I/O is here.

A single thread decides. Other threads answer workers' questions from what is saved, so that no order ever
leaves that the next manager would not know of. Whatever the batch system does not answer is asked again at
the next look.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from headway.adapter.migration import MigrationHandler, Reported
from headway.adapter.user_side import Queue, Silence, Submission, UserSide, load_user_side
from headway.errors import Failure, Held, UserError
from headway.link import Server, read_key
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.service import client, protocol
from headway_plugins.bundling.live import messages
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
from headway_plugins.bundling.live.place import Place, Result
from headway_plugins.bundling.live.specification import Specification
from headway_plugins.bundling.live.state import State
from headway_plugins.bundling.live.store import Store
from headway_plugins.bundling.slots import Slots, backfillable, from_windows

#: Between two looks at the queue while something is expected there, seconds.
_SOON = 1.0
#: Between two steps, seconds.
_STEP = 0.2
#: Workers at once.
_MOST_WORKERS = 4096
#: How long a process that looks whether a manager is there may have the database, seconds.
_PATIENCE = 10.0


def load_handler(spec: Specification) -> MigrationHandler:
    """The migration handler that a bundle names. Raises :class:`UserError`."""
    where = "--checkpoint"
    config = PluginConfig(spec.checkpoint, spec.checkpoint_options, where)
    handlers = Plugins.load([config], Catalogue(), None).handlers()
    if len(handlers) != 1:
        raise UserError(f"{where}: expected a migration handler (such as checkpoint-signal), found a plugin "
                        f"{spec.checkpoint!r}, which is none")  # fmt: skip
    handler: MigrationHandler = handlers[0]
    return handler


def default_address() -> str:
    """This machine, as nodes reach it."""
    name = socket.getfqdn()
    with contextlib.suppress(OSError):
        socket.getaddrinfo(name, None)
        return name
    return "127.0.0.1"


class Manager:
    """Runs a bundle to its end."""

    def __init__(
        self,
        place: Place,
        *,
        side: UserSide | None = None,
        clock: Callable[[], float] = time.time,
        note: Callable[[str], None],
    ) -> None:
        """Raises :class:`Held` if another manager is at it, :class:`Failure` and :class:`UserError`."""
        place.check()
        self._place = place
        self.spec = place.specification()
        self._clock = clock
        self._note = note
        self._side = side if side is not None else load_user_side(self.spec.system, self.spec.options)
        self._handler = load_handler(self.spec)
        self._store = _patiently(place.database)
        state = self._store.load()
        self.resumed = state is not None
        self.brain = Brain(self.spec, state or State(), self._handler, self._side.grain)
        self._lock = threading.Lock()
        self._inbox: list[tuple[float, messages.Report]] = []
        self._cancelled = False
        self._bell = threading.Event()
        self._stopping = False
        self._next_look = 0.0
        #: The time of the last note that stands in the log.
        self._told = self.brain.state.notes[-1][0] if self.brain.state.notes else 0.0
        #: What is complained of, and what about: said once, until it is over.
        self._complaints: dict[str, str] = {}
        #: What was decided and is to be done once it is written down.
        self._decided: list[Action] = []
        #: Whether all that is known is written down.
        self._kept = True
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="handler")
        self._work: list[tuple[Perform, Future[Reported]]] = []

    # ------------------------------------------------------------------ life

    def run(self) -> None:
        """Until the bundle is done, or :meth:`stop`."""
        key = read_key(self._place.key)
        listen = self.spec.listen or default_address()
        address = listen if ":" in listen else f"{listen}:0"
        if self.brain.image:
            image = Path(self.brain.image)
            try:
                image.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as error:
                raise Failure(f"{image}: images cannot be kept: {error.strerror}") from error
        with Server(address, key, self._answer, most=_MOST_WORKERS, note=self._note) as server:
            host = listen.rpartition(":")[0] if ":" in listen else listen
            self._place.announce(f"{host}:{server.address.rpartition(':')[2]}")
            self._note(
                f"bundle {self.spec.id}: {'goes on' if self.resumed else 'begins'} at {server.address}"
            )
            try:
                while self.brain.state.status != "done" and not self._stopping:
                    self.once()
                    self._bell.wait(_STEP)
                    self._bell.clear()
                if self.brain.state.status == "done":
                    # Workers that ask once more are told to end.
                    time.sleep(4 * self.spec.beat)
            finally:
                self._handler.stop()
                self._pool.shutdown(wait=True, cancel_futures=True)

    def stop(self) -> None:
        """End the manager; the bundle goes on without it. May be called from a signal handler."""
        self._stopping = True
        self._bell.set()

    def close(self) -> None:
        self._store.close()

    # ------------------------------------------------------------------ one round

    def once(self) -> None:
        """Look if it is time, decide, write down, act. What cannot be written down is not acted upon."""
        with self._lock:
            if not self._kept and not self._save():
                return
        queue, slots, ends = self._seen()
        now = self._clock()
        brain = self.brain
        with self._lock:
            for heard, report in self._inbox:
                brain.report(heard, report)
            self._inbox.clear()
            if self._cancelled:
                brain.cancel(now)
            for work, future in [pair for pair in self._work if pair[1].done()]:
                self._work.remove((work, future))
                brain.worked(now, work.move, _outcome(work, future))
            self._decided += brain.step(now, queue, slots, ends)
            if not self._save():
                return
            decided, self._decided = self._decided, []
        for action in decided:
            self._act(action)
        if brain.urgent:
            self._next_look = min(self._next_look, self._clock() + _SOON)

    def _save(self) -> bool:
        """Whether all that is known is written down now. Raises :class:`Failure` if it never can be."""
        try:
            self._store.save(self.brain.state)
        except Failure as error:
            if not self._place.database.is_file():
                raise
            self._kept = False
            self._complain("disk", f"the bundle's state cannot be saved, so nothing is done: {error}")
            return False
        self._kept = True
        self._over("disk")
        for at, text in [note for note in self.brain.state.notes if note[0] > self._told]:
            self._note(text)
            self._told = at
        return True

    def _seen(self) -> tuple[Queue | None, Slots | None, dict[int, int]]:
        if self._clock() < self._next_look:
            return None, None, {}
        self._next_look = self._clock() + self.spec.poll
        try:
            queue = self._side.look()
            ends = self._place.ends_of(self.brain.state.launch)
        except Failure as error:
            self._complain("queue", f"the batch system does not answer: {error}")
            return None, None, {}
        self._over("queue")
        return queue, self._slots(queue), ends

    def _slots(self, queue: Queue) -> Slots | None:
        if not self.spec.socket and not self.spec.showbf:
            return slots_of(queue)
        try:
            slots = self._daemons_slots() if self.spec.socket else self._schedulers_slots()
        except Failure as error:
            # The bundle is looked after all the same; it asks for nothing new.
            self._complain("slots", f"the free slots are not known: {error}")
            return None
        self._over("slots")
        return slots

    def _daemons_slots(self) -> Slots | None:
        """Slots of headway's own plan: its order of the queue, and when it expects jobs to end."""
        report = client.ask(Path(self.spec.socket), protocol.Status(), timeout=10.0).status
        wanted = self.spec.pool or self._side.queue
        for pool in report.pools if report is not None else ():
            if pool.name == wanted:
                return backfillable(self._clock(), pool.free, pool.head or None, pool.ends)
        raise Failure(f"headway at {self.spec.socket} has no pool {wanted!r}")

    def _schedulers_slots(self) -> Slots:
        """Slots of the batch system's own scheduler, which knows its reservations and policies."""
        windows = self._side.windows(self.spec.showbf)
        offered = [(window.processors, window.seconds) for window in windows]
        return from_windows(self._clock(), offered, self.spec.longest)

    def _complain(self, what: str, text: str) -> None:
        """Say something once until it is over."""
        if self._complaints.get(what) != text:
            self._complaints[what] = text
            self._note(text)

    def _over(self, what: str) -> None:
        self._complaints.pop(what, None)

    def _act(self, action: Action) -> None:
        brain = self.brain
        try:
            if isinstance(action, Submit):
                self._submit(action.number)
            elif isinstance(action, Cancel):
                subjob = brain.state.subjob(action.number)
                if subjob.job:
                    self._side.cancel(subjob.job)
            elif isinstance(action, Shrink):
                first = brain.state.subjob(action.number)
                self._side.shrink(first.job, action.seconds)
                if first.state == "postponed":
                    self._side.release(first.job)
                brain.shrunk()
            elif isinstance(action, Postpone):
                self._side.postpone(brain.state.subjob(action.number).job)
            elif isinstance(action, Release):
                self._side.release(brain.state.subjob(action.number).job)
            elif isinstance(action, Perform):
                work = self._pool.submit(self._handler.perform, action.move, action.task)
                work.add_done_callback(lambda _: self._bell.set())
                self._work.append((action, work))
            elif isinstance(action, Finish):
                known = brain.state.placeholder
                self._place.finish(Result(action.exit_code, action.message, known.job if known else ""))
                brain.finished()
        except Failure as error:
            with self._lock:
                self._not_done(action, error)

    def _not_done(self, action: Action, error: Failure) -> None:
        """An action failed: the brain is told what did not happen."""
        brain = self.brain
        if isinstance(action, Cancel):
            brain.not_cancelled(action.number)
            text = f"subjob {action.number} could not be cancelled: {error}"
            self._complain(f"cancel {action.number}", text)
        elif isinstance(action, Shrink):
            brain.not_shrunk(self._clock(), str(error), again=isinstance(error, Silence))
            self._save()
        elif isinstance(action, Postpone):
            brain.not_postponed(self._clock(), str(error), again=isinstance(error, Silence))
            self._save()
        elif isinstance(action, Release):
            brain.not_released()
            self._complain("release", str(error))
            self._save()
        elif isinstance(action, Finish):
            brain.not_finished()
            self._complain("result", str(error))
        else:
            raise error

    def _submit(self, number: int) -> None:
        brain = self.brain
        subjob = brain.state.subjob(number)
        job = Submission(
            brain.name_of(number), subjob.processors, subjob.walltime,
            (self.spec.program, "bundle", "worker", str(self._place.path)),
            str(self._place.output(number)), self.spec.account, subjob.load * self.spec.memory,
        )  # fmt: skip
        try:
            found = self._side.submit(job)
        except Silence as error:
            with self._lock:
                brain.unanswered(self._clock(), number)
                self._save()
            self._complain("submission", f"subjob {number} may have been submitted: {error}")
            return
        except Failure as error:
            with self._lock:
                brain.refused(self._clock(), number, str(error))
                self._save()
            return
        with self._lock:
            brain.submitted(self._clock(), number, found)
            self._save()
        self._over("submission")
        self._next_look = self._clock() + _SOON

    # ------------------------------------------------------------------ the link

    def _answer(self, message: Any) -> Any:
        """Called by threads of the link."""
        try:
            heard = msgspec.convert(message, type=messages.Message, str_keys=True)
        except msgspec.ValidationError as error:
            return {"error": str(error)}
        with self._lock:
            if not self._kept:
                # No order leaves that the next manager would not know of: what runs goes on.
                raise Failure("the bundle's state cannot be saved")
            if isinstance(heard, messages.Cancel):
                self._cancelled = True
                self._bell.set()
                return {"ok": True}
            report = heard.report
            self._inbox.append((self._clock(), report))
            return msgspec.to_builtins(self.brain.orders(report.job, report.node))


def _outcome(work: Perform, future: Future[Reported]) -> Reported:
    if (error := future.exception()) is not None:
        return Reported(work.task, False, f"{type(error).__name__}: {error}")
    return future.result()


def _patiently(path: Path) -> Store:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return Store(path)
        except Held:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def serve(place: Place, note: Callable[[str], None]) -> int:
    """Run a bundle's manager in this process until it is done or a signal ends it; its exit code."""
    manager = Manager(place, note=note)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: manager.stop())
    try:
        manager.run()
    finally:
        manager.close()
    return 0
