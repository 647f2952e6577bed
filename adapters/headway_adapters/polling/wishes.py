"""What an earlier run decided and did not see through: its starts, and the frequencies that it wanted.

The daemon's journal tells it before the first look. A start that is on its way has the rest of its time; a
frequency that was asked for and not set is set, for an execution that is still the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic

import msgspec

from headway import decisions as d
from headway import events as ev
from headway.adapter import WishedFrequency
from headway.adapter.migration import ON_NODES
from headway_adapters.polling import submissions
from headway_adapters.polling.actuators import Actuators
from headway_adapters.polling.flights import Flight, Flights
from headway_adapters.polling.look import DetailT, Look, PayloadT
from headway_adapters.polling.orders import Orders
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.polling.system import BatchSystem

#: Batch systems' limits are whole minutes.
_MINUTE = 60.0


class Wishes(Generic[DetailT, PayloadT]):
    """The wishes of a predecessor, and the frequencies that go with starts."""

    def __init__(
        self, system: BatchSystem[DetailT, PayloadT], orders: Orders[DetailT, PayloadT],
        flights: Flights[PayloadT], actuators: Actuators, told: list[ev.Event], *, start_timeout: float,
        log: Any, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``told``: events that the next answer of the adapter has. ``clock``: absolute seconds."""
        self._system = system
        self._orders = orders
        self._flights = flights
        self._actuators = actuators
        self._told = told
        self._start_timeout = start_timeout
        self._log = log
        self._clock = clock
        #: Job -> when an earlier run decided its start.
        self.asked: Mapping[str, float] = {}
        #: When jobs were submitted, as earlier runs know it.
        self.submitted: submissions.Known = submissions.nobody_knows
        #: Job -> the frequency that an earlier run wanted.
        self.frequencies: dict[str, WishedFrequency] = {}
        #: Jobs whose start was told with a frequency that is being set.
        self._promised: set[str] = set()

    # ------------------------------------------------------------------ starts

    def adopt(self, look: Look[DetailT], only: Collection[str] | None = None) -> None:
        """Go on with the starts that an earlier run asked for; ``only`` of these jobs, if given."""
        for start, payload, restarts in self._system.adopt(look):
            if only is not None and start.job_id not in only:
                continue
            wish = self.frequencies.get(start.job_id)
            if wish is not None and wish.asked is not None and wish.started is None:
                start = msgspec.structs.replace(start, frequency=wish.hertz)
            self._orders.took_off(start, payload, restarts, self.asked.get(start.job_id))
            self._log.info("a start is still on its way since the last run", job=start.job_id)

    # ------------------------------------------------------------------ frequencies

    def with_frequency(self, event: ev.Event, shown: Snapshot) -> ev.Event:
        """A start with the frequency that was asked for with it and is set now.

        Told without, the job would count as running at the nodes' own, and be slowed a second time."""
        if not isinstance(event, ev.JobReleasing | ev.JobStarted) or self._actuators.options.dry:
            return event
        key, job = event.job_id, shown.jobs.get(event.job_id)
        flight, wish = self._flights.get(key), self.frequencies.get(key)
        wanted = None
        if flight is not None:
            if job is not None and job.restarts == flight.restarts:
                wanted = flight.decision.frequency
        elif wish is not None and job is not None and self._same_execution(job, wish):
            wanted = wish.hertz
        if wanted is None:
            return event
        if isinstance(event, ev.JobStarted):
            self._promised.add(key)
        return msgspec.structs.replace(event, frequency=wanted)

    def go_on(self, shown: Snapshot) -> None:
        """Set what an earlier run wanted for jobs that run, and did not come to; tell what it set."""
        for key, wish in self.frequencies.items():
            job = shown.jobs.get(key)
            if job is None:
                continue
            if job.state not in ON_NODES:
                if key in self._flights:
                    self._lengthen(job, wish)
                continue
            if not self._same_execution(job, wish):
                continue
            self._lengthen(job, wish)
            if wish.is_set:
                self._actuators.remember_frequency(key, job.placement)
                self._promised.discard(key)
                self._told.append(ev.JobFrequencyChanged(self._clock(), key, wish.hertz))
                continue
            order = d.SetFrequency(key, wish.hertz, "asked for before this run began")
            self._log.info(
                "a frequency was asked for in the last run and is set now", job=key, hertz=round(wish.hertz)
            )
            self._set(order, job)
        self.frequencies.clear()

    def started(self, start: d.Start, job: SnapshotJob) -> None:
        """A start happened: set the frequency that was asked for with it."""
        if start.frequency is not None:
            self._set(d.SetFrequency(start.job_id, start.frequency, start.reason), job)

    def keep_limit(self, flight: Flight[PayloadT], job: SnapshotJob) -> None:
        """A job that began has the limit that its start was decided with, although its user made it longer
        while the start was under way: what is planned behind it would be late."""
        found, limit = job.job.request.walltime, flight.limit
        if limit is None or found <= limit or found - limit < _MINUTE:
            return
        self._log.warning("a limit was made longer while the job was started, and is set back",
                          job=job.job.id, seconds=found, back=limit)  # fmt: skip
        self._limit(job, limit, "its start was decided with this limit")

    def forget(self, job_id: str) -> None:
        """A job's frequency was set, or its execution is over."""
        self._promised.discard(job_id)

    def not_kept(self, job_id: str) -> None:
        """The frequency that a job's start was told with could not be set."""
        if job_id in self._promised:
            self._promised.discard(job_id)
            self._told.append(ev.JobFrequencyChanged(self._clock(), job_id, None))

    def _set(self, wish: d.SetFrequency, job: SnapshotJob) -> None:
        """Set what a job's start was told with."""
        if problem := self._actuators.set_frequency(wish, job.placement):
            self.not_kept(wish.job_id)
            self._orders.tell_refused([(wish, problem)], self._clock())

    def _lengthen(self, job: SnapshotJob, wish: WishedFrequency) -> None:
        """Give a job the limit that was to go with its frequency, if it has a shorter one."""
        if wish.walltime is None or job.job.request.walltime >= wish.walltime:
            return
        self._log.info(
            "a limit was asked for in the last run and is set now",
            job=job.job.id,
            seconds=round(wish.walltime),
        )
        self._limit(job, wish.walltime, "asked for before this run began")

    def _limit(self, job: SnapshotJob, walltime: float, why: str) -> None:
        order = d.SetTimeLimit(job.job.id, walltime, why)
        outcome = self._orders.carry_out(order, self._clock())
        if not outcome.accepted:
            self._orders.tell_refused([(order, outcome.message)], self._clock())

    def _same_execution(self, job: SnapshotJob, wish: WishedFrequency) -> bool:
        """Whether a job that runs is the execution that the wish was for; one begun anew is not."""
        at = job.start_time
        if wish.started is not None:
            return at is not None and abs(at - wish.started) < 1.0
        if wish.asked is None:
            return False
        if self._system.counts_restarts and job.restarts == 0:
            return True
        # Nothing starts later than its time-out allows, so a later start is another one.
        return at is not None and abs(at - wish.asked) <= self._start_timeout
