"""What-if of a policy: a process of its own, bounded, that the daemon forks and ends.

 scheduler's thread:  one fork; one what-if at a time
 thread `what-if`:    waits for the answer; ends the process if it takes too long or nobody wants it any more
 forked process:      forks twice, for the course as it is planned and for the one under the other policy

Each course is followed in a process of its own, so both begin with the scheduler as it was. A process has a
limit of wall time, of processor time and of memory beside what it shares with the daemon; all of them end
with the process that forked them. What did not come within the limits is said in the answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from headway.errors import UserError
from headway.events import Event
from headway.inquiry.course import Course, follow, waiting_jobs
from headway.inquiry.going_on import OutOfTime
from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import ForeseenJob
from headway.inquiry.what_if import compared
from headway.scheduler import Scheduler
from headway.service import apart, protocol
from headway.service.peer import Peer
from headway.service.protocol import Reply, WhatIf
from headway.state.retold import told_anew

#: Seconds of wall time for the whole answer, how much longer a process may take before it is ended, and how
#: much longer a step may take than there is time for it.
SECONDS = 20.0
_GRACE = 2.0
_LATE = 0.5
#: Bytes that each process may use beside what the daemon had.
MEMORY = 1 << 30
#: The share of the time that the course under the other policy has, at most.
_HALF = 0.5
#: Characters of what a plugin says of its failure.
_LONGEST = 500
_FOR_OPERATORS = (
    "a what-if is for operators (service.operators): it shows all users' jobs and takes seconds to compute"
)
_NOTHING = "the what-if had no answer in time, or its process broke off"
_BROKEN_OFF = "the daemon ended, or read its configuration again, before the what-if was done"
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class OtherPolicies(Protocol):
    """Makes schedulers that begin with what another one knows (:mod:`headway.daemon.other_policy`)."""

    def scheduler(self, known: Scheduler, policy: str | None, options: Mapping[str, Any]) -> Scheduler:
        """A scheduler that drives, and has been told of nothing yet but the cluster. ``policy`` and its
        ``options``: as in a configuration; None: the policy that is configured. Uses ``known`` up. Raises
        :class:`UserError` for what a configuration could not have."""


@dataclass(eq=False)
class _Running:
    """A process that works on an answer."""

    pid: int
    inlet: int
    as_of: float
    #: When it is ended, on the monotonic clock.
    deadline: float
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: bool = False

    def said(self) -> bytes:
        """All that it says, until it ends or takes too long."""
        said = b""
        with os.fdopen(self.inlet, "rb", buffering=0) as answers:
            while (left := self.deadline - time.monotonic()) > 0:
                if not select.select([answers], [], [], left)[0]:
                    break
                more = answers.read(65536)
                if not more:
                    break
                said += more
        return said

    def end(self) -> None:
        """End it, and what it has forked. Called by any thread."""
        with self._lock:
            if not self._over:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)

    def bury(self) -> None:
        """End it and wait until it is gone."""
        self.end()
        with self._lock, contextlib.suppress(ChildProcessError):
            self._over = True
            os.waitpid(self.pid, 0)


class WhatIfs:
    """The what-ifs of one run. Asked on the scheduler's thread; answers come from a thread of their own."""

    def __init__(
        self,
        policies: OtherPolicies | None = None,
        clock: Callable[[], float] | None = None,
        seconds: float = SECONDS,
        memory: int = MEMORY,
    ) -> None:
        """``policies``: None: there are no others here. ``clock``: the cluster's time (absolute seconds);
        None: that of the last step. ``seconds`` of wall time for one answer, ``memory`` bytes for each of its
        processes."""
        self._policies = policies
        self._clock = clock
        self._seconds = seconds
        self._memory = memory
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._thread: threading.Thread | None = None
        self._closing = False

    def ask(self, wanted: WhatIf, peer: Peer, scheduler: Scheduler, future: Future[Reply]) -> None:
        """Have it worked out; the reply comes later. Cancelling ``future`` ends the process."""
        if future.cancelled():
            return
        if (refusal := self._refusal(peer, scheduler)) is not None:
            _answer(future, refusal)
            return
        try:
            running = self._fork(wanted, scheduler)
        except OSError as error:
            _answer(future, Reply("failed", f"no process could be made for the what-if: {error.strerror}"))
            return
        with self._lock:
            self._running = running
        future.add_done_callback(lambda done: running.end() if done.cancelled() else None)
        self._thread = threading.Thread(
            target=self._wait_for, args=(running, future), name="headway-what-if", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End what is under way; its asker is told so."""
        with self._lock:
            self._closing = True
            running, thread = self._running, self._thread
        if running is not None:
            running.end()
        if thread is not None:
            thread.join(_GRACE)

    def _refusal(self, peer: Peer, scheduler: Scheduler) -> Reply | None:
        if not peer.operator:
            return Reply("refused", _FOR_OPERATORS)
        with self._lock:
            if self._running is not None:
                return Reply("failed", "another what-if is being worked out; try again when it is done")
        if self._policies is None:
            return Reply("failed", "no other policies are known here")
        if scheduler.state.cluster.wiring is not None:
            return Reply("failed", "there is no what-if where nodes are booted in partitions")
        return None

    def _fork(self, wanted: WhatIf, scheduler: Scheduler) -> _Running:
        as_of = scheduler.state.now
        now = max(as_of, self._clock() if self._clock is not None else as_of)
        parent, end = os.getpid(), time.monotonic() + self._seconds
        work = _Work(scheduler, self._policies, wanted, now, self._memory)
        pid, inlet = apart.begin(lambda outlet: _work(work, end, outlet, parent))
        with contextlib.suppress(OSError):
            # It does the same: whichever comes first.
            os.setpgid(pid, pid)
        return _Running(pid, inlet, as_of, end + 2 * _GRACE)

    # ------------------------------------------------------------------ the thread that waits

    def _wait_for(self, running: _Running, future: Future[Reply]) -> None:
        said = running.said()
        running.bury()
        with self._lock:
            self._running = None
        try:
            reply = protocol.read_reply(said)
        except msgspec.DecodeError:
            reply = Reply("failed", _BROKEN_OFF if self._closing else _NOTHING, as_of=running.as_of)
        _answer(future, reply)


def _answer(future: Future[Reply], reply: Reply) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(reply)


# ---------------------------------------------------------------------- the forked process


@dataclass(frozen=True)
class _Work:
    scheduler: Scheduler
    policies: OtherPolicies | None
    wanted: WhatIf
    now: float
    memory: int


class _Followed(msgspec.Struct):
    """What a course's own process says at its end."""

    course: Course = msgspec.field(default_factory=Course)
    #: What is wrong with the policy that was asked for; "": nothing.
    wrong: str = ""


def _ends_with(parent: int) -> None:
    """This process ends when its parent does."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _work(work: _Work, end: float, outlet: int, parent: int) -> None:
    """Write the answer."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    _ends_with(parent)
    as_of = work.scheduler.state.now
    try:
        reply = _worked_out(work, end)
    except Exception as error:
        reply = Reply("failed", f"the what-if failed, which is a mistake of headway's: {error}", as_of=as_of)
    apart.write_all(outlet, protocol.write(msgspec.structs.replace(reply, as_of=as_of)))


def _worked_out(work: _Work, end: float) -> Reply:
    wanted = work.wanted
    waiting = waiting_jobs(Inquiry(work.scheduler))
    jobs = [ForeseenJob(job.id, job.pool.name, job.user, job.processors, job.submit_time) for job in waiting]
    names = [job.id for job in jobs]
    # What is wrong with the policy is said at once.
    middle = time.monotonic() + (end - time.monotonic()) * _HALF
    other = _in_a_process(work, names, middle, wanted.policy)
    if other.wrong:
        return Reply("unknown", other.wrong)
    present = _in_a_process(work, names, end, None)
    report = compared(wanted.policy, work.now, jobs, present.course, other.course, wanted.most)
    return Reply("accepted", present.wrong, found=report)


def _in_a_process(work: _Work, jobs: list[str], end: float, policy: str | None) -> _Followed:
    """The course under a policy (None: as it is planned), from a process that ends with it."""
    parent = os.getpid()
    pid, inlet = apart.begin(lambda outlet: _follow(work, jobs, end, policy, outlet, parent))
    running = _Running(pid, inlet, 0.0, end + _GRACE)
    said = running.said()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    try:
        return msgspec.json.decode(said, type=_Followed)
    except msgspec.DecodeError:
        return _Followed(Course(reached=work.now, ended="its process did not answer in time, or broke off"))


def _follow(work: _Work, jobs: list[str], end: float, policy: str | None, outlet: int, parent: int) -> None:
    """Write what becomes of the jobs."""
    _ends_with(parent)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    found = _Followed(Course(reached=work.now))
    try:
        _limit(work.memory, end)
        scheduler, events = _begun(work, policy)
        follow(scheduler, work.now, events, jobs, found.course, end)
    except UserError as error:
        found.wrong = str(error)
    except OutOfTime:
        found.course.ended = "a step took longer than there was time for the answer"
    except MemoryError:
        found.course.ended = f"the {work.memory >> 20} MB of memory for the answer were used up"
    except Exception as error:
        found.course.ended = f"a step failed: {type(error).__name__}: {error}"
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, limits)
    found.course.ended = found.course.ended[:_LONGEST]
    apart.write_all(outlet, msgspec.json.encode(found))


def _begun(work: _Work, policy: str | None) -> tuple[Scheduler, list[Event]]:
    """The scheduler, and what it is told first. One that does not drive is told to another that does."""
    known = work.scheduler
    if policy is None and not known.monitors:
        return known, []
    assert work.policies is not None
    made = work.policies.scheduler(known, policy, _options(work.wanted) if policy is not None else {})
    return made, told_anew(known.state)


def _options(wanted: WhatIf) -> dict[str, Any]:
    try:
        return msgspec.json.decode(wanted.options, type=dict[str, Any]) if wanted.options else {}
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(f"what-if: options: expected an object in JSON: {error}") from error


def _limit(memory: int, end: float) -> None:
    """From now on so much memory beside what there is, and the time until ``end`` (monotonic clock)."""
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = now + memory
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))
    left = end - time.monotonic()
    seconds = max(1, int(left + _GRACE) + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    apart.end_by_alarm(left + _LATE)
