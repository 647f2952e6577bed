"""What is counted while the scheduler runs: after each cycle, in proportion to what happened in it.

The jobs that wait are counted all at once (:mod:`headway.measured.waiting`), so that is done in a small share
of all time. A number of names that users choose is bounded: beyond it they are counted as one.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import cast

from headway.decisions import Decision
from headway.events import ClusterSilent, Event, JobStarted
from headway.inquiry.cycles import Cycle
from headway.measured.counting import OF_CYCLES, OF_STARTS, OF_WAITS, ByName, Sizes
from headway.measured.report import DecisionCount, Measured, OfPool, OfUser, WaitingJobs
from headway.measured.waiting import count_waiting
from headway.scheduler import Scheduler
from headway.state import Job
from headway.version import __version__

#: Pairs of pool and QOS that are told apart, and users.
MOST_PAIRS, MOST_USERS = 200, 100
#: What the rest is counted under.
REST = "other"
#: Waiting jobs are counted at most so often, seconds; and the share of all time that this may take.
EVERY, SHARE = 15.0, 0.002
#: Of planned starts: the job began before it, or not.
EARLY, LATE = "early", "late"


class Measures:
    """What one process has counted, over all its runs. Counted on the scheduler's thread, told on any."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """``clock``: absolute seconds."""
        #: How far the journal of a stand-by is behind, seconds; None: none follows.
        self.journal_lag: float | None = None
        self._leader, self._epoch = True, 0
        self._clock = clock
        self._since = clock()
        self._lock = threading.Lock()
        self._turn: float | None = None
        self._last_cycle: float | None = None
        self._cycles, self._steps = Sizes(OF_CYCLES), Sizes(OF_CYCLES)
        self._events: dict[type[Event], int] = {}
        #: (Kind, whether it was accepted) -> how many.
        self._decisions: dict[tuple[type[Decision], bool], int] = {}
        rest = (REST, REST)
        self._waits: ByName[tuple[str, str]] = ByName(OF_WAITS, MOST_PAIRS, rest)
        self._errors: ByName[tuple[str, str, str]] = ByName(OF_WAITS, 2 * MOST_PAIRS, (*rest, LATE))
        self._starts: ByName[str] = ByName(OF_STARTS, MOST_PAIRS, REST)
        self._plugin_seconds: Mapping[str, float] = {}
        self._waiting: Counter[tuple[str, str]] = Counter()
        self._users: Counter[str] = Counter()
        self._counted_at: float | None = None
        self._count_due = 0.0
        self._jobs = 0

    def leads(self, epoch: int, *, drives: bool) -> None:
        """Whether this daemon drives, and the number that its writes carry; 0: none."""
        self._leader, self._epoch = drives, epoch

    # ------------------------------------------------------------------ the scheduler's thread

    def turned(self) -> None:
        """The loop goes on."""
        self._turn = self._clock()

    def cycle(self, cycle: Cycle, scheduler: Scheduler) -> None:
        """A cycle is over."""
        state, events, since = scheduler.state, self._events, self._since
        with self._lock:
            self._last_cycle = cycle.now
            self._cycles.add(cycle.seconds)
            self._steps.add(cycle.step_seconds)
            self._plugin_seconds = scheduler.seconds
            self._jobs = len(state.jobs)
            for event in cycle.events:
                kind = type(event)
                events[kind] = events.get(kind, 0) + 1
                if kind is JobStarted and event.time >= since:
                    self._began(state.jobs.get(cast(JobStarted, event).job_id), event.time)
            for decision, outcome in zip(cycle.decisions, cycle.outcomes, strict=True):
                key = type(decision), outcome.accepted
                self._decisions[key] = self._decisions.get(key, 0) + 1
        if perf_counter() >= self._count_due:
            self._count_waiting(scheduler)

    def _began(self, job: Job | None, time: float) -> None:
        if job is not None:
            self._waits.add((job.pool.name, job.description.qos), max(0.0, time - job.submit_time))

    def plan_met(self, job: Job, planned: float, started: float) -> None:
        """A job began that was planned to start then; all absolute seconds."""
        if started >= self._since:
            side = EARLY if started < planned else LATE
            with self._lock:
                self._errors.add((job.pool.name, job.description.qos, side), abs(started - planned))

    def start_took(self, cluster: str, seconds: float) -> None:
        """From a decided start until the job ran."""
        with self._lock:
            self._starts.add(cluster, max(0.0, seconds))

    def _count_waiting(self, scheduler: Scheduler) -> None:
        began = perf_counter()
        waiting, users = count_waiting(scheduler.state)
        ended = perf_counter()
        self._count_due = ended + max(EVERY, (ended - began) / SHARE)
        with self._lock:
            self._waiting, self._users, self._counted_at = waiting, users, scheduler.state.now

    # ------------------------------------------------------------------ any thread

    def told(self, *, users: bool = False) -> Measured:
        """What was counted; ``users``: of each user as well."""
        with self._lock:
            return Measured(
                version=__version__,
                mode="",
                cluster="",
                run=0,
                since=self._since,
                last_turn=self._turn,
                last_cycle=self._last_cycle,
                cycle_seconds=self._cycles.told(),
                step_seconds=self._steps.told(),
                plugin_seconds=dict(self._plugin_seconds),
                events={kind.__name__: count for kind, count in self._events.items()},
                decisions=tuple(
                    [
                        DecisionCount(kind.__name__, "accepted" if accepted else "refused", count)
                        for (kind, accepted), count in self._decisions.items()
                    ]
                ),
                waits=tuple([OfPool(pool, qos, seconds) for (pool, qos), seconds in self._waits.told()]),
                plan_errors=tuple(
                    [OfPool(pool, qos, seconds, side) for (pool, qos, side), seconds in self._errors.told()]
                ),
                start_seconds=dict(self._starts.told()),
                waiting=tuple([WaitingJobs(*key, count) for key, count in self._waiting.items()]),
                waiting_as_of=self._counted_at,
                users=self._users_told() if users else (),
                jobs=self._jobs,
                outages_begun=self._events.get(ClusterSilent, 0),
                journal_lag_seconds=self.journal_lag,
                leader=self._leader,
                epoch=self._epoch,
                cpu_seconds=time.process_time(),
                memory_bytes=_resident(),
            )

    def _users_told(self) -> tuple[OfUser, ...]:
        most = self._users.most_common(MOST_USERS)
        rest = self._users.total() - sum(count for _, count in most)
        told = [OfUser(user, count) for user, count in most]
        return (*told, *([OfUser(REST, rest)] if rest else []))


def _resident() -> int | None:
    """Bytes of memory that the process has; None where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
