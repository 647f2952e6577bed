"""Answers that need a scheduler of their own: a copy of the daemon's, in a process that was forked off it.

What would become of a job that is not submitted is known once the scheduler has been given the job, and a
step cannot be taken back: plugins have state of their own. So the scheduler's thread forks
(:mod:`headway.service.apart`). The forked process forks again for each job that is tried, so that each trial
begins with the scheduler as it was.

 scheduler's thread:  fork, not more often than every 50 times as long as a fork takes
 thread `trials`:     a trial's words to the process, its answer back; ends what takes too long
 forked process:      for each trial a process of its own, which ends after :data:`SECONDS`
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from time import perf_counter

import msgspec

from headway.inquiry.going_on import OutOfTime
from headway.inquiry.inquiry import Inquiry, seen_by
from headway.inquiry.reports import TrialReport
from headway.scheduler import Scheduler, plain_clock
from headway.service import apart, protocol
from headway.service.peer import Peer
from headway.service.protocol import Reply, When
from headway.service.trying import earlier, smaller, try_out

#: Seconds of wall time for one answer, and how much longer the process may take before it is ended.
SECONDS = 1.7
_GRACE = 2.0
#: Of this time, the most that the whole request takes, if smaller requests are to be tried, and that each of
#: these takes.
_WHOLE, _EACH = 0.6, 0.15
#: So many times as long as a fork took there is no other.
_PAUSE = 50
#: Trials that wait, at most.
MOST = 8
_NOTHING = "the trial had no answer in time, because a cycle takes longer now; try again later"
#: So long an unused process stays, seconds.
_IDLE = 5.0


class Asked(msgspec.Struct, frozen=True):
    """A trial, on its way to the process: of which user, and when it was asked (absolute seconds)."""

    wanted: When
    user: str
    now: float
    #: Whether the user may know of all jobs; else of the own jobs.
    sees_all: bool


@dataclass
class Snapshot:
    """A process with a copy of the scheduler as it was after a step."""

    pid: int
    connection: socket.socket
    #: How many cycles there were, and the time of the last (absolute seconds).
    cycles: int
    as_of: float
    #: When it was made, and when there may be another (:func:`time.perf_counter`).
    made: float
    outdated: float
    #: Seconds that it took to make it.
    took: float = 0.0

    def close(self) -> None:
        """End the process."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class Snapshots:
    """The trials of one scheduler. Asked on the scheduler's thread; answers come from a thread of its own."""

    def __init__(
        self,
        clock: Callable[[], float] | None = None,
        seconds: float = SECONDS,
        tell_time: Callable[[float], str] = plain_clock,
    ) -> None:
        """``clock``: the cluster's time (absolute seconds); None: that of the last step. ``seconds`` of wall
        time for one answer; ``tell_time`` writes a time for a person."""
        self._tell_time = tell_time
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()
        #: The process that answers, if there is one.
        self._snapshot: Snapshot | None = None
        self._work: queue.SimpleQueue[tuple[Snapshot, Asked, Future[Reply]] | Snapshot | None]
        self._work = queue.SimpleQueue()
        self._waiting = 0
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------------ the scheduler's thread

    def ask(
        self, wanted: When, peer: Peer, scheduler: Scheduler, future: Future[Reply], sees_all: bool = True
    ) -> None:
        """Have a trial made; the reply comes later. ``sees_all``: it may name other users' jobs."""
        with self._lock:
            full = self._waiting >= MOST
            self._waiting += not full
        if full:
            future.set_result(Reply("failed", f"{MOST} trials are waiting; try again later"))
            return
        try:
            snapshot = self._current(scheduler)
        except OSError as error:
            self._done(future, Reply("failed", f"no process could be made for the trial: {error.strerror}"))
            return
        now = max(snapshot.as_of, self._clock() if self._clock is not None else snapshot.as_of)
        self._work.put((snapshot, Asked(wanted, peer.user, now, sees_all), future))
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="headway-trials", daemon=True)
            self._thread.start()

    def cycle(self) -> None:
        """A cycle is over: a process that is not needed any more ends."""
        if self._snapshot is not None and perf_counter() >= max(
            self._snapshot.outdated, self._snapshot.made + _IDLE
        ):
            self._retire()

    def close(self) -> None:
        """End all processes; trials that wait fail."""
        self._retire()
        if self._thread is not None:
            self._work.put(None)
            self._thread.join(self._seconds + _GRACE + 1.0)
            self._thread = None

    def _retire(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            # After the trials that it has still to make.
            self._work.put(snapshot)

    def _current(self, scheduler: Scheduler) -> Snapshot:
        """The process with the scheduler as it is now, or was a moment ago."""
        known = self._snapshot
        if known is not None and (known.cycles == scheduler.cycles or perf_counter() < known.outdated):
            return known
        self._retire()
        self._snapshot = fork(scheduler, self._seconds, self._tell_time)
        return self._snapshot

    # ------------------------------------------------------------------ the thread of trials

    def _serve(self) -> None:
        while (task := self._work.get()) is not None:
            if isinstance(task, Snapshot):
                task.close()
            else:
                snapshot, asked, future = task
                self._done(future, self._answer(snapshot, asked))

    def _answer(self, snapshot: Snapshot, asked: Asked) -> Reply:
        try:
            connection = snapshot.connection
            connection.settimeout(self._seconds + _GRACE)
            connection.sendall(msgspec.json.encode(asked) + b"\n")
            said = _line(connection)
            if said:
                return protocol.read_reply(said)
        except (OSError, msgspec.DecodeError):
            pass
        # Its next answer could be this trial's.
        with contextlib.suppress(OSError):
            snapshot.connection.shutdown(socket.SHUT_RDWR)
        snapshot.cycles, snapshot.outdated = -1, 0.0
        return Reply("failed", _NOTHING)

    def _done(self, future: Future[Reply], reply: Reply) -> None:
        with self._lock:
            self._waiting -= 1
        future.set_result(reply)


def _line(connection: socket.socket) -> bytes:
    said = b""
    while not said.endswith(b"\n"):
        more = connection.recv(65536)
        if not more:
            return b""
        said += more
    return said


# ---------------------------------------------------------------------- the forked process


def fork(scheduler: Scheduler, seconds: float, tell_time: Callable[[float], str] = plain_clock) -> Snapshot:
    """Fork a process that answers trials. Raises :class:`OSError` if none can be made."""
    ours, theirs = socket.socketpair()
    began = perf_counter()
    try:
        pid = apart.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if not pid:
        apart.alone(lambda: _serve_trials(scheduler, theirs, seconds, tell_time), theirs.fileno())
    theirs.close()
    done = perf_counter()
    return Snapshot(
        pid, ours, scheduler.cycles, scheduler.state.now, done, done + max(1.0, _PAUSE * (done - began)),
        done - began,
    )  # fmt: skip


def _serve_trials(
    scheduler: Scheduler, connection: socket.socket, seconds: float, tell_time: Callable[[float], str]
) -> None:
    """Answer trials one by one until the daemon hangs up."""
    connection.settimeout(None)
    while line := _line(connection):
        asked = msgspec.json.decode(line, type=Asked)
        inquiry = Inquiry(scheduler, tell_time, sees=seen_by(None if asked.sees_all else asked.user))
        reply = _tried(inquiry, asked, time.monotonic() + seconds, seconds)
        connection.sendall(protocol.write(reply))


def _tried(inquiry: Inquiry, asked: Asked, end: float, seconds: float) -> Reply:
    """The answer to a trial, with smaller requests that start earlier as far as there is time for them."""
    wanted = asked.wanted
    reply = _in_a_process(inquiry, asked, _WHOLE * seconds if wanted.smaller else seconds)
    report = reply.found
    if not isinstance(report, TrialReport) or report.outcome in ("now", "never") or not wanted.smaller:
        return reply
    found = []
    for less in smaller(wanted):
        left = min(end - time.monotonic(), _EACH * seconds)
        if left <= 0:
            break
        other = _in_a_process(inquiry, msgspec.structs.replace(asked, wanted=less), left)
        if (one := earlier(less, other, report)) is not None:
            found.append(one)
    found.sort(key=lambda one: one.start)
    return msgspec.structs.replace(reply, found=msgspec.structs.replace(report, smaller=tuple(found)))


def _in_a_process(inquiry: Inquiry, asked: Asked, seconds: float) -> Reply:
    """A trial in a process of its own, which ends with it: the scheduler stays as it is here."""
    pid, inlet = apart.begin(lambda outlet: _try(inquiry, asked, outlet, seconds))
    with os.fdopen(inlet, "rb") as answers:
        # What was said last is the answer; its last line may be cut.
        *lines, _ = answers.read().split(b"\n")
    os.waitpid(pid, 0)
    return protocol.read_reply(lines[-1]) if lines else Reply("failed", _NOTHING)


def _try(inquiry: Inquiry, asked: Asked, outlet: int, seconds: float) -> None:
    """Write answers, each better than the one before, until the time is over."""
    apart.end_by_alarm(seconds)
    most = int(seconds + _GRACE) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    with contextlib.suppress(OutOfTime):
        try_out(
            inquiry,
            asked.wanted,
            asked.user,
            asked.now,
            lambda reply: apart.write_all(outlet, protocol.write(reply)),
        )
