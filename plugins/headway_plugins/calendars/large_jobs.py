"""Windows for large jobs: jobs that need most of the machine start then and at no other time.

After Y. Aridor, T. Domany, O. Goldshmidt, Y. Kliteynik, J. Moreira and E. Shmueli: "Open Job Management
Architecture for the Blue Gene/L Supercomputer", 2005, section 4: the site of the SLURM cycle keeps jobs above
half of the machine in a queue of their own, which runs only at times that it is configured for, such as
weekends. Decisions on what is left open:

- A job is large if it asks for more than a share ``above`` of its pool's processors or nodes, whether these
  can be used at the moment or not.
- While a large job waits for the next window no other job starts whose limit reaches into that window. So
  the machine is empty when it opens, and no job has to be killed. Where no large job waits the machine is
  not emptied.
- In a window large jobs are served first; among themselves, and all other jobs, in the order in which they
  would be served without it. What runs when the window closes runs on.
- A large job outside of a window is in no queue: it delays no other job, and nothing is booked for it.
"""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Sequence

import pydantic

from headway.events import Event, NodeUp, PoolChanged
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Again, Traits
from headway.state import Barrier, Job, PoolState, State
from headway_plugins.calendars.options import WindowsOptions
from headway_plugins.calendars.windows import around

_INF = float("inf")
#: Because of time alone a queued job is asked about again only after so many seconds.
_PAUSE = 60.0
#: What bars: a large job waits for a window, any other job keeps clear of it.
_LARGE, _OTHER = ("large-jobs", "large"), ("large-jobs", "other")


class LargeJobsOptions(WindowsOptions):
    """Options of ``large-jobs``."""

    above: float = pydantic.Field(
        default=0.5, ge=0, lt=1, description="share of the pool above which a job is large"
    )

    @pydantic.model_validator(mode="after")
    def _whole_machine(self) -> LargeJobsOptions:
        self.refuse_parts("a window for large jobs is for the whole machine and all users")
        return self


class LargeJobs(Plugin):
    """Start jobs above a share of the machine only in windows, which others keep clear of."""

    Options = LargeJobsOptions
    traits = Traits(
        observes=(NodeUp, PoolChanged),
        ask_again=Again.DOMAIN,
        paper=(
            "Y. Aridor et al.: Open Job Management Architecture for the Blue Gene/L Supercomputer: "
            "Case Studies with LoadLeveler and SLURM, 2005"
        ),
    )

    def __init__(self, options: LargeJobsOptions) -> None:
        super().__init__(options)
        self._zone = zoneinfo.ZoneInfo(options.zone)
        self._epoch = 0.0
        #: Until when the window is open (0: it is not), and when the next window opens; seconds of the run.
        self._open_until = 0.0
        self._opens = -_INF
        #: The same when the queues were last looked at for it.
        self._applied = (self._open_until, self._opens)
        #: Whether other jobs kept clear at the end of the last step, when the limit of a job that does not
        #: will reach into the window, and when waiting jobs are asked about that; seconds of the run.
        self._clearing = False
        self._reaches = self._woken = _INF
        #: Pool -> all its processors and nodes, also unusable ones.
        self._sizes: dict[str, tuple[int, int]] = {}

    # ------------------------------------------------------------------ when

    def _look(self, now: float) -> None:
        """Find out in which window, and before which window, this moment is."""
        if now < self._changes():
            return
        since = now + self._epoch
        end, opens = around(self.options.windows.values(), since, self._zone, self.options.holidays)
        self._open_until = 0.0 if end is None else end - self._epoch
        self._opens = opens - self._epoch

    def _changes(self) -> float:
        """When the next window opens, or the open window closes."""
        return min(self._opens, self._open_until or _INF)

    # ------------------------------------------------------------------ hooks

    @hookimpl
    def startup(self, state: State) -> None:
        self._epoch = state.epoch

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        self._look(state.now)
        if self._is_large(job, state):
            return None if state.now < self._open_until else Barrier(self._why_large, _LARGE)
        reaches = self._opens - job.estimate
        if state.now > reaches and _a_large_one_waits(state):
            return Barrier(lambda: self._why_other(job), _OTHER)
        self._reaches = min(self._reaches, max(reaches, state.now))
        return None

    @hookimpl
    def react(self, state: State) -> None:
        self._look(state.now)
        if self._applied != (self._open_until, self._opens):
            self._applied = (self._open_until, self._opens)
            self._ask_all(state)
            state.lifted(_LARGE)
            state.lifted(_OTHER)
        clearing = _a_large_one_waits(state)
        if clearing and (not self._clearing or self._woken <= state.now):
            # A job that cannot start any more leaves the queue, so that it holds up no job there.
            self._ask_all(state)
            self._wake(state, max(self._reaches + 1.0, state.now + _PAUSE))
        elif clearing:
            self._wake(state, self._reaches + 1.0)
        elif state.barred.get(_OTHER):
            state.lifted(_OTHER)
        self._clearing = clearing

    @hookimpl
    def observe(self, event: Event) -> None:
        if isinstance(event, NodeUp | PoolChanged):
            self._sizes.clear()

    def _wake(self, state: State, at: float) -> None:
        """Ask about the waiting jobs again when the limit of a job reaches into the window."""
        if at < min(self._woken, self._opens):
            self._woken = at
            for pool in state.pools.values():
                state.wake_at(at, pool)

    def _ask_all(self, state: State) -> None:
        """Ask about all queued jobs, and look again when the window's state changes."""
        self._reaches = self._woken = _INF
        for pool in state.pools.values():
            state.bar_queued(pool)
            if self._changes() < _INF:
                state.wake_at(self._changes(), pool)

    @hookimpl
    def order_queue(self, jobs: Sequence[Job], state: State) -> Sequence[Job] | None:
        if state.now >= self._open_until:
            return None
        large = [self._is_large(job, state) for job in jobs]
        if not any(large):
            return None
        # Stable: among themselves they stay as they are.
        return [job for _, job in sorted(zip(large, jobs, strict=True), key=lambda pair: not pair[0])]

    # ------------------------------------------------------------------ which jobs

    def _is_large(self, job: Job, state: State) -> bool:
        processors, nodes = self._whole(job.pool, state)
        above = self.options.above
        return job.processors > above * processors or (nodes > 0 and job.request.nodes > above * nodes)

    def _whole(self, pool: PoolState, state: State) -> tuple[int, int]:
        """All processors and nodes of a pool, also unusable ones."""
        if pool.flat:
            return pool.total, 0
        if pool.name not in self._sizes:
            mask = state.nodes.pool_mask(pool.name)
            self._sizes[pool.name] = int(state.nodes.total[mask].sum()), int(mask.sum())
        return self._sizes[pool.name]

    def _why_large(self) -> str:
        opens = f"the next window opens at {self._when()}" if self._opens < _INF else "no window is in sight"
        return (
            f"jobs above {self.options.above:.0%} of the machine start only in windows for large jobs; "
            f"{opens}"
        )

    def _why_other(self, job: Job) -> str:
        return (
            f"its limit of {job.estimate:g} s reaches into the window for large jobs that opens at "
            f"{self._when()}, and a large job waits for that window"
        )

    def _when(self) -> str:
        opens = datetime.datetime.fromtimestamp(self._opens + self._epoch, self._zone)
        return opens.strftime("%Y-%m-%d %H:%M %Z")


def _a_large_one_waits(state: State) -> bool:
    """Whether a large job waits for a window: not a job that was cancelled, held or changed since."""
    return any(
        state.jobs.get(job.id) is job and job.barrier is not None and job.barrier.key == _LARGE
        for job in state.barred.get(_LARGE, ())
    )
