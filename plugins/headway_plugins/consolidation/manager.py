"""KEASY, REASY and MEASY: EASY over two tiers, with jobs that are killed, stay, or are moved.

X. Liu, B. Chen, X. Qiu, Y. Cai, K. Huang: Scheduling Parallel Jobs Using Migration and Consolidation in the
Cloud. 2012, Algorithms 1 to 3.

Each processor has a process in front and a process behind, which lives on the cycles that the first leaves
idle. Jobs that cannot start in front run behind, and are candidates for the front as much as waiting jobs:

1. Candidates, waiting and behind, in queue order: each that fits in front is *deployed*; stop at the first
   candidate that does not fit, or that cannot be deployed.
2. That candidate is the head: EASY's shadow time and extra processors are found for it from the expected ends
   of the jobs in front, and the other candidates are deployed where they delay it by neither.
3. The jobs that still wait, shortest estimate first: each that fits is started behind, on processors whose
   process in front uses less than ``threshold``.

To deploy a job from behind is to swap the tiers of its own processors if they are idle in front. Otherwise
``keasy`` has it begin again on idle processors, ``measy`` moves it there with its progress, for which it
stands still for ``migration_cost`` seconds, and ``reasy`` leaves it where it is. ``reasy`` makes a
reservation for a head that is behind on its own processors.

Steps 1 and 2 follow arrivals and what leaves the front, step 3 follows these and what leaves the background.
The end of a move's pause, and an expected end that has come, are followed by none of them.

Decisions on what the paper leaves open:

- A candidate's runtime in step 2 is what is left of its estimate if it can be swapped, for ``measy`` else
  that and the cost of its move, for ``keasy`` else all of its estimate, because it begins again.
- What is idle, and whether a candidate can be swapped, is as it is at its turn. The head itself is passed
  over.
- All jobs in front that end by the shadow time count for the extra processors, which become fewer only by
  what was really deployed. Times within a microsecond are equal.
- A job in front is expected to end when what is left of its estimate is done at full speed, after what is
  left of its move.
- A job that is killed or moved leaves the background before its new processors are chosen.
- Extra processors are a count, and Dispatch is not confined to them: under ``reasy`` a long job may land
  in front of the head's own processors and so break its reservation, as Algorithm 2 does.
- All processes of a job use the same share of their processors.
- In a domain of several pools a job gets nodes of its pool; a job of several pools is tried in each of them.
  The shadow time and the extra processors of the head are counted over its pool's nodes
  (:mod:`headway_plugins.consolidation.part`); of several pools its own is the pool with the soonest shadow
  time. A job that is moved stays in its pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Literal

import pydantic

from headway.decisions import Migrate, Start, SwapTiers
from headway.errors import UserError
from headway.events import (
    Event,
    JobEnded,
    JobMigrated,
    JobPaceChanged,
    JobResumed,
    JobSuspended,
    JobTierChanged,
)
from headway.hookspecs import Plugin, hookimpl
from headway.model import Placement
from headway.plugins import Study, Traits
from headway.state import ENDS_MOVED, Job, RunningEntry, State, Status
from headway.state.choices import in_any_way, ways
from headway.view import View
from headway.workload.sharing import Sharing
from headway_plugins.consolidation.part import Spared
from headway_plugins.consolidation.single import SingleSlots
from headway_plugins.consolidation.slots import Slots
from headway_plugins.consolidation.usage import Usage

_INF = float("inf")
#: Seconds: times that are no further apart are equal.
_EQUAL = 1e-6
#: Of how many moves the measured cost is the mean.
_MOVES = 50
#: After these a job in front may go at another pace.
_PACES = frozenset((JobPaceChanged, JobTierChanged, JobMigrated))
_order = attrgetter("order")
_PENDING = Status.PENDING
_RUNNING = Status.RUNNING


class ConsolidationOptions(pydantic.BaseModel):
    """Options of the manager."""

    model_config = pydantic.ConfigDict(extra="forbid")

    variant: Literal["keasy", "reasy", "measy"] = pydantic.Field(
        default="measy",
        description="a background job that would come to the foreground on other processors begins again "
        "(keasy), stays where it is (reasy) or is moved (measy)",
    )
    threshold: float = pydantic.Field(
        default=0.96, gt=0, le=1.01,
        description="CPU use of a process, as a share of a processor, from which no job is started behind it",
    )  # fmt: skip
    migration_cost: float = pydantic.Field(
        default=20.0, ge=0, description="seconds for which a job stands still while it is moved"
    )
    measured: bool = pydantic.Field(
        default=True,
        description="use the mean cost of the moves so far instead, once a move has been measured",
    )
    cpu_known: bool = pydantic.Field(
        default=True,
        description="true: the CPU use of processes is known; false: no threshold, and processors in "
        "their order",
    )
    cpu_error: float = pydantic.Field(
        default=0.0, ge=0, lt=1, description="largest relative error of the known CPU use"
    )
    loss: float | None = pydantic.Field(
        default=None, ge=0, lt=1,
        description="in emulation: share of its speed that a foreground job loses; default: drawn, 0.5 to 4 "
                    "%",
    )  # fmt: skip
    efficiency: float | None = pydantic.Field(
        default=None, ge=0, le=1,
        description="in emulation: share of the idle cycles that a background job uses; default: drawn as "
                    "in the paper",
    )  # fmt: skip


class Consolidation(Plugin):
    """EASY over two tiers: KEASY, REASY or MEASY."""

    traits = Traits(
        needs=(SwapTiers,),
        observes=(JobPaceChanged, JobTierChanged, JobMigrated, JobSuspended, JobResumed, JobEnded),
        requires=frozenset({"nodes"}),
        study=Study(backfills=True, levels=2),
        paper=(
            "X. Liu, B. Chen, X. Qiu, Y. Cai, K. Huang: Scheduling Parallel Jobs Using Migration and "
            "Consolidation in the Cloud, 2012, Algorithms 1 to 3"
        ),
    )
    Options = ConsolidationOptions

    def __init__(self, options: ConsolidationOptions | None = None) -> None:
        self.options: ConsolidationOptions = options or ConsolidationOptions()
        self._slots: dict[str, Slots] = {}
        self._usage = Usage(self.options.cpu_known, self.options.cpu_error, 0)
        #: Until when jobs stand still that are being moved, absolute seconds.
        self._pauses: dict[str, float] = {}
        #: Since when jobs stand still that may be being moved; and what moves cost, seconds.
        self._still: dict[str, float] = {}
        self._moving: set[str] = set()
        self._costs: list[float] = []
        #: No job in front that makes progress makes less in a second.
        self._slowest = 1.0

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        if self.options.variant != "reasy" and Migrate not in capabilities:
            raise UserError(
                f"consolidation: {self.options.variant} moves running jobs, and this cluster's adapter "
                "cannot; use the variant reasy"
            )
        self._usage = Usage(self.options.cpu_known, self.options.cpu_error, state.seed)

    @hookimpl
    def register_physics(self) -> Sharing:
        options = self.options
        return Sharing(options.loss, options.efficiency, options.migration_cost)

    @hookimpl
    def checkpoint(self) -> Any:
        return {"costs": self._costs} if self._costs else None

    @hookimpl
    def restore(self, saved: Any) -> None:
        self._costs = [float(cost) for cost in saved["costs"]]

    # ------------------------------------------------------------------ what moves cost, which jobs are slow

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        kind = type(event)
        if kind in _PACES:
            job = state.jobs.get(event.job_id)  # type: ignore[attr-defined]
            pace = job.pace if job is not None and not job.behind else None
            if pace is not None and 0.0 < pace.rate < self._slowest:
                self._slowest = pace.rate
        if kind is JobSuspended:
            self._still[event.job_id] = event.time  # type: ignore[attr-defined]
        elif kind is JobMigrated:
            seconds: float | None = event.seconds  # type: ignore[attr-defined]
            if seconds is not None and not event.restarted:  # type: ignore[attr-defined]
                self._costs = [*self._costs[1 - _MOVES :], seconds]
            elif event.job_id in self._still and not event.restarted:  # type: ignore[attr-defined]
                self._moving.add(event.job_id)  # type: ignore[attr-defined]
        elif kind is JobResumed:
            since = self._still.pop(event.job_id, None)  # type: ignore[attr-defined]
            if since is not None and event.job_id in self._moving:  # type: ignore[attr-defined]
                self._costs = [*self._costs[1 - _MOVES :], event.time - since]
            self._forget(event.job_id)  # type: ignore[attr-defined]
        elif kind is JobEnded and self._still:
            self._forget(event.job_id)  # type: ignore[attr-defined]

    def _forget(self, job_id: str) -> None:
        self._still.pop(job_id, None)
        self._moving.discard(job_id)
        self._pauses.pop(job_id, None)

    @property
    def migration_cost(self) -> float:
        """Seconds for which a job stands still that is moved: measured, else configured."""
        if self._costs and self.options.measured:
            return sum(self._costs) / len(self._costs)
        return self.options.migration_cost

    # ------------------------------------------------------------------ the cycle

    @hookimpl
    def schedule(self, view: View) -> Any:
        slots = self._slots_of(view)
        slots.open()
        if view.fresh not in (0, ENDS_MOVED):
            self._foreground(view, slots)
        if view.queue:
            self._background(view, slots)
        return view.made

    def _slots_of(self, view: View) -> Slots:
        """The processors of the view's domain; the slots of domains that are gone go."""
        domain, single = view.domain, view.nodes.single
        slots = self._slots.get(domain.name)
        if slots is not None and slots.domain is domain and slots.single is single:
            return slots
        for name, old in list(self._slots.items()):
            if name == domain.name or old.domain.pools[0].domain is not old.domain:
                self._slots.pop(name).close()
        kind = SingleSlots if single else Slots
        slots = self._slots[domain.name] = kind(view, self._usage, self.options.threshold)
        return slots

    def _foreground(self, view: View, slots: Slots) -> None:
        """Steps 1 and 2."""
        if not view.domain.free:
            return
        behind = sorted((job for job in view.background.values() if job.status is _RUNNING), key=_order)
        for job in _together(view, view.queue, behind):
            if job.processors > view.domain.free or not self._deploy(view, slots, job, "first in the queue"):
                self._backfill(view, slots, job, behind)
                return

    def _backfill(self, view: View, slots: Slots, head: Job, behind: Sequence[Job]) -> None:
        """Step 2: start what does not delay the head of the queue."""
        domain, now = view.domain, view.now
        if not domain.free:
            return
        reservation: tuple[float, int] | None = None
        shadow, extra = _INF, 0
        fitting: Iterator[Job] = view.fitting()
        # Nothing becomes free in front from here on, so a job that does not fit now never will.
        left = [job for job in behind if job.processors <= domain.free and job.behind]
        for job in _together(view, fitting, left):
            processors = job.processors
            if job is head or processors > domain.free:
                continue
            if reservation is None:
                # Without a candidate it is not needed.
                reservation = shadow, extra = self._reservation(view, slots, head)
                part = slots.part(head.pool)
            past = now + self._runtime(slots, job, now) > shadow + _EQUAL
            if past and not part.admits(job, extra):
                continue
            when = view.clock(shadow)
            why = (
                f"backfilled: needs no processor that job {head.id} will need at {when}"
                if past
                else f"backfilled: ends by {when}, when job {head.id} is to start"
            )
            spared = part.spared(extra) if past else None
            if self._deploy(view, slots, job, why, spared) and past:
                extra -= part.taken(job)
            if not domain.free:
                return

    def _runtime(self, slots: Slots, job: Job, now: float) -> float:
        """How long a candidate would run in front, seconds."""
        if not job.behind:
            return job.expected_runtime
        left = max(0.0, job.expected_runtime - job.done(now))
        variant = self.options.variant
        if variant == "reasy" or slots.idle_in_front(job):
            return left
        return job.expected_runtime if variant == "keasy" else left + self.migration_cost

    def _reservation(self, view: View, slots: Slots, head: Job) -> tuple[float, int]:
        """The head's shadow time, and the processors in front of its pool that it leaves free then; it faces
        that pool."""
        now = view.now
        if head.behind:
            if self.options.variant != "reasy":
                return self._shadow(view, slots, head)
            tenants = view.tenants
            own = set(tenants.nodes_of(head))
            over = [entry for entry in view.running if not own.isdisjoint(tenants.nodes_of(entry[3]))]
            ends = self._ends(over, now)
            return ends[-1][0] if ends else now, slots.idle_outside(head)
        best: tuple[float, int] | None = None
        for pool in ways(head, view.domain):
            faced, head.pool = head.pool, pool
            found = self._shadow(view, slots, head)
            if best is None or found[0] < best[0] - _EQUAL:
                best = found
            else:
                head.pool = faced
        return best if best is not None else (_INF, 0)

    def _shadow(self, view: View, slots: Slots, head: Job) -> tuple[float, int]:
        """As :meth:`_reservation`, in the pool that the head faces, for any of its processors."""
        now, part = view.now, slots.part(head.pool)
        need = head.processors - part.free
        if need <= 0:
            return now, -need
        shadow = _INF
        for end, processors in self._ends(part.running(view.running), now, need):
            if end > shadow + _EQUAL:
                break
            need -= processors
            if shadow == _INF and need <= 0:
                shadow = end
        return shadow, -need if shadow < _INF else view.domain.total

    def _ends(
        self, running: Iterable[RunningEntry], now: float, need: float = _INF
    ) -> list[tuple[float, int]]:
        """When jobs in front are expected to end if they go at full speed from now on, and their processors;
        soonest first, and at least until ``need`` processors are free."""
        pauses, slowest = self._pauses, self._slowest
        ends, enough = [], now
        for end, _, processors, job in running:
            if need <= 0 and now + (end - now) * slowest > enough + _EQUAL:
                # They are in the order of their ends at the pace that they have: no further one ends sooner.
                break
            pace = job.pace
            if pace is not None:
                # As Job.done.
                left = job.expected_runtime - pace.done - (now - pace.since) * pace.rate
            elif job.suspended_since is None:
                left = end - now
            else:
                left = job.expected_runtime - job.done(now)
            begins = max(now, pauses.get(job.id, now)) if pauses else now
            ends.append((begins + left if left > 0.0 else begins, processors))
            if need > 0:
                need -= processors
                enough = max(enough, ends[-1][0])
        ends.sort()
        return ends

    def _deploy(self, view: View, slots: Slots, job: Job, why: str, spared: Spared | None = None) -> bool:
        """Bring a candidate to the front: Algorithm 2. ``spared``: what it may have of the head's nodes."""
        if job.behind:
            if slots.idle_in_front(job) and (spared is None or spared.allows(job.placement)):
                return view.promote(job, f"{why}; the foreground of its own processors is idle") is not None
            variant = self.options.variant
            if variant == "reasy":
                return False
            placement = slots.front(job, view.now, spared)
            if placement is None:
                return False
            restart = variant == "keasy"
            how = "the job begins again there" if restart else "moved there"
            if view.move(job, placement, "foreground", restart=restart, reason=f"{why}; {how}") is None:
                return False
            if not restart:
                self._pauses[job.id] = view.now + self.migration_cost
            return True
        return self._start(view, job, partial(slots.front, job, view.now, spared), "foreground", why)

    def _start(
        self, view: View, job: Job, place: Callable[[], Placement | None], tier: str, why: str
    ) -> bool:
        """Start a job that waits in the first of its pools where it is placed."""

        def attempt() -> Start | None:
            placement = place()
            return None if placement is None else view.start_on(job, placement, tier, why)

        return in_any_way(job, view.domain, attempt) is not None

    def _background(self, view: View, slots: Slots) -> None:
        """Step 3: the waiting jobs, shortest estimate first."""
        if not slots.room_behind():
            return
        for job in view.shortest(slots.room_behind):
            why = "in the background, on the cycles that foreground jobs leave idle"
            self._start(view, job, partial(slots.behind, job, view.now), "background", why)


def _together(view: View, waiting: Iterable[Job], behind: Sequence[Job]) -> Iterable[Job]:
    """Waiting jobs and jobs behind as one queue; jobs behind go first where a plugin ordered the queue."""
    if not behind:
        return waiting
    return _in_order(waiting, behind) if view.queue is view.domain.queue else chain(behind, waiting)


def _in_order(waiting: Iterable[Job], behind: Sequence[Job]) -> Iterator[Job]:
    """Both in queue order, as one."""
    at, count = 0, len(behind)
    for job in waiting:
        while at < count and behind[at].order < job.order:
            yield behind[at]
            at += 1
        yield job
    yield from behind[at:]
