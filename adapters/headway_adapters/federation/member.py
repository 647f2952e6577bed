"""One cluster of a federation, and the thread that its adapter lives on."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog

from headway import decisions as d
from headway import events as ev
from headway.adapter import ClusterAdapter, Outage, Outcome
from headway.errors import HeadwayError, Superseded
from headway.inputs.trail import NOTHING, Trail, following
from headway.model import ClusterDescription
from headway_adapters.polling.resubmission import Resubmission

_FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 30.0

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class Told:
    """What a cluster's thread has to say, in the cluster's own names."""

    #: It has answered for the first time.
    joins: bool = False
    now: float | None = None
    events: Sequence[ev.Event] = ()
    #: It has no more to tell.
    ended: bool = False
    #: It cannot go on.
    error: BaseException | None = None


@dataclass(frozen=True)
class Order:
    """Decisions for a cluster, in its own names, and where their outcomes go."""

    now: float
    decisions: Sequence[d.Decision]
    outcomes: Future[Sequence[Outcome]]
    #: The cycle and the ids of these decisions, for the log.
    trail: Trail = NOTHING


@dataclass(frozen=True)
class Task(Generic[AnswerT]):
    """Something else that is done on the cluster's thread, and where its answer goes."""

    work: Callable[[], AnswerT]
    answer: Future[AnswerT]

    def carry_out(self) -> None:
        """Do it; what goes wrong is the answer."""
        try:
            self.answer.set_result(self.work())
        except BaseException as error:
            self.answer.set_exception(error)


class Member:
    """One cluster: its adapter, and the thread that the adapter lives on."""

    def __init__(
        self,
        name: str,
        adapter: ClusterAdapter,
        told: Callable[[], None],
        clock: Callable[[], float],
        log: Any,
    ) -> None:
        self.name = name
        self.adapter = adapter
        self.joined = False
        self.ended = False
        #: Its thread is in the adapter's wait, or about to be.
        self.waiting = False
        #: It has told its jobs.
        self.begun = False
        self.outbox: deque[Told] = deque()
        #: Set when it has answered, or failed to, once.
        self.asked = threading.Event()
        self.description: ClusterDescription | None = None
        self.error: HeadwayError | None = None
        self.outage: Outage | None = None
        #: When it was asked first.
        self.began: float | None = None
        self._told = told
        self._clock = clock
        self._log = log
        self._inbox: queue.SimpleQueue[Order | Task[Any] | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------------ called by the federation

    def start(self) -> None:
        """Begin to ask it; a second call changes nothing."""
        if self._thread is None:
            self.began = self._clock()
            self._thread = threading.Thread(target=self._live, name=f"cluster-{self.name}", daemon=True)
            self._thread.start()

    def let_wait(self) -> None:
        """The engine waits: so may this cluster."""
        self.waiting = True
        self._inbox.put(None)

    def order(self, now: float, decisions: Sequence[d.Decision], trail: Trail) -> Future[Sequence[Outcome]]:
        order = Order(now, decisions, Future(), trail)
        self._inbox.put(order)
        self.adapter.wake()
        return order.outcomes

    @property
    def resubmission(self) -> Resubmission | None:
        """What it offers for jobs that come from other clusters and go there; None: nothing."""
        return getattr(self.adapter, "resubmission", None)

    def run(self, work: Callable[[], AnswerT]) -> Future[AnswerT]:
        """Have something done on the cluster's thread."""
        task = Task(work, Future[AnswerT]())
        self._inbox.put(task)
        self.adapter.wake()
        return task.answer

    def close(self) -> None:
        """Tell the thread to end; :meth:`join` waits for that."""
        self._closing.set()
        self._inbox.put(None)
        self.adapter.wake()

    def join(self, seconds: float) -> None:
        if self._thread is None:
            self.adapter.close()
            return
        self._thread.join(max(seconds, 0.0))
        if self._thread.is_alive():
            self._log.warning("a cluster's commands are still under way at the end", cluster=self.name)

    # ------------------------------------------------------------------ its own thread

    def _live(self) -> None:
        structlog.contextvars.bind_contextvars(cluster=self.name)
        try:
            if self._describe():
                self._serve()
        except BaseException as error:  # it must not end unseen: the engine's thread raises it
            self._say(Told(error=error))
        finally:
            self.adapter.close()

    def _say(self, told: Told) -> None:
        self.outbox.append(told)
        self._told()

    def _describe(self) -> bool:
        """Ask until it answers; False if the end came first."""
        pause = _FIRST_PAUSE
        while not self._closing.is_set():
            try:
                self.description = self.adapter.describe()
            except HeadwayError as error:
                since = self.outage.since if self.outage is not None else self._clock()
                self.outage = Outage(self.name, since, str(error))
                self.error = error
                self.asked.set()
                self._closing.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            self.outage = None
            self.asked.set()
            self._say(Told(joins=True))
            return True
        return False

    def _serve(self) -> None:
        failed = False
        while True:
            order = self._inbox.get()
            if self._closing.is_set():
                return
            if isinstance(order, Task):
                order.carry_out()
                continue
            if order is not None:
                self._apply(order)
                continue
            try:
                moment = self.adapter.wait(None)
            except Superseded:
                raise
            except HeadwayError as error:
                # An adapter waits for its cluster by itself; what it gives up is tried again.
                self._log.error("a cluster's adapter failed; it is asked again", error=str(error))
                self._closing.wait(_FIRST_PAUSE)
                silent = [] if failed else [ev.ClusterSilent(self._clock(), reason=str(error))]
                failed = True
                self._say(Told(now=self._clock(), events=silent))
                continue
            if moment is None:
                self._say(Told(ended=True))
                return
            answers = [ev.ClusterAnswers(moment[0])] if failed else []
            failed = False
            self._say(Told(now=moment[0], events=[*answers, *moment[1]]))

    def _apply(self, order: Order) -> None:
        try:
            with following(order.trail):
                order.outcomes.set_result(self.adapter.apply(order.now, order.decisions))
        except HeadwayError as error:
            order.outcomes.set_result([Outcome(False, str(error))] * len(order.decisions))
