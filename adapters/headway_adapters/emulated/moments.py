"""The moments of an emulation, one after another: what happens at each, and when there is none any more.

At one instant all completions come first, then changes, then arrivals in file order; what is started
with no work left completes in a further round at the same instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop

from headway import events as ev
from headway_adapters.emulated.arrivals import INFINITY
from headway_adapters.emulated.dependencies import Dependencies
from headway_adapters.emulated.execution import Execution
from headway_adapters.emulated.failures import Failures
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.partitions import Partitions
from headway_adapters.emulated.tiers import Tiers

_JobSubmitted = ev.JobSubmitted
#: Seconds within which all that happens is one instant where processors are shared.
_INSTANT = 1e-6
#: At most so many further rounds at one instant for what decisions changed.
_FURTHER_ROUNDS = 100
#: Seconds in which nothing ran nor came, after which a waiting job counts as waiting for ever, whatever
#: plugins want to be woken for: longer than from any window of a calendar to its next one.
_PATIENCE = 400 * 86400.0

Moment = tuple[float, Sequence[ev.Event]]


class Moments:
    """Lets the machine go on from moment to moment."""

    def __init__(
        self, machine: Machine, complete: Callable[[Execution, float, list[ev.Event]], None], tiers: Tiers,
        dependencies: Dependencies, failures: Failures, partitions: Partitions | None, *, tells_later: bool,
    ) -> None:  # fmt: skip
        """``complete`` ends an execution that has done its work. ``tells_later``: what happens is known only
        after a while."""
        self._machine = machine
        self._complete = complete
        self._tiers = tiers
        self._dependencies = dependencies
        self._failures = failures
        self._partitions = partitions
        self._tells_later = tells_later
        #: What is not further apart is one instant: sums of times have rounding.
        self._instant = _INSTANT if tiers.told else 0.0
        #: Some news changes what the scheduler may do, so it is told in a further round at this instant.
        self.urgent = False
        #: How many such rounds there were at the instant of the last one.
        self._further = (-INFINITY, 0)
        #: When a job last ran or was still to come.
        self._alive_at = machine.now

    def next_told(self, deadline: float | None) -> Moment | None:
        """The next moment that is to be told."""
        moment = self.next(deadline)
        if self._partitions is None:
            return moment
        # That a partition came further on its way is no news.
        while moment is not None and not moment[1] and (deadline is None or moment[0] < deadline):
            moment = self.next(deadline)
        return moment

    def next(self, deadline: float | None) -> Moment | None:
        """The next moment at which something happens, and what; None: nothing happens any more."""
        machine = self._machine
        if (news := self.news_first()) is not None:
            return machine.now, news
        agenda, arrivals = machine.agenda, machine.arrivals
        if agenda.moved:
            agenda.drop_void()
        now = min(arrivals.time, agenda.heap[0][0] if agenda.heap else INFINITY)
        alive = arrivals.time < INFINITY or machine.running
        if not alive or deadline is not None or now == INFINITY:
            moment = self._other_moment(now, deadline)
            if moment is None:
                return self.last_news()
            now = moment
        return self.at(now)

    def reach(self, now: float, *, alive: bool = False) -> None:
        """The clock has come to ``now``, and nothing happened here; ``alive``: a job ran or was to come."""
        self._machine.now = now
        if alive:
            self._alive_at = now

    @property
    def has_news(self) -> bool:
        """Whether something is true already that was not told."""
        return bool(self._machine.news)

    def take_news(self) -> list[ev.Event]:
        """What is true already and was not told: it counts as told."""
        news, self._machine.news = self._machine.news, []
        return news

    @property
    def waits(self) -> bool:
        """Whether a job waits."""
        return bool(self._machine.submitted)

    def news_first(self) -> Sequence[ev.Event] | None:
        """What is told in a further round at this instant; None: nothing has to be."""
        if self.urgent and self._further_round():
            # Before what ends at once: the subjobs that came compete for what was left in their round.
            return self.take_news()
        return None

    @property
    def next_time(self) -> float:
        """When something happens next, and infinity if nothing does."""
        machine = self._machine
        if machine.agenda.moved:
            machine.agenda.drop_void()
        heap = machine.agenda.heap
        return min(machine.arrivals.time, heap[0][0] if heap else INFINITY)

    @property
    def alive(self) -> bool:
        """Whether a job runs or is still to come."""
        return self._machine.arrivals.time < INFINITY or bool(self._machine.running)

    def over(self, deadline: float | None) -> bool:
        """Whether nothing runs or comes, and no waiting job can start any more, although the scheduler waits
        for ``deadline``."""
        return not self.alive and self._other_moment(self.next_time, deadline) is None

    def at(self, now: float) -> tuple[float, list[ev.Event]]:
        """What happens at this moment: nothing happens before it."""
        machine = self._machine
        arrivals = machine.arrivals
        if now < machine.now:
            now = machine.now
        machine.now = now
        if arrivals.time < INFINITY or machine.running:
            self._alive_at = now
        events = machine.news
        machine.news = []
        self._happen(now, events)
        if self._tiers.used:
            self._tiers.settle()
            self._take_news(events)
        if arrivals.chained:
            # What ended at this instant may have brought further ones.
            arrivals.due(now + self._instant)
        if arrivals.time <= now + self._instant:
            self._arrive(now + self._instant, events)
        return now, events

    def _happen(self, now: float, events: list[ev.Event]) -> None:
        """What is on the agenda for now."""
        heap, until = self._machine.agenda.heap, now + self._instant
        while heap and heap[0][0] <= until:
            _, _, _, what, argument = heappop(heap)
            if type(what) is Execution:
                if what.version != argument:
                    continue
                self._complete(what, now, events)
                if self._partitions is not None:
                    self._take_news(events)
            else:
                what(argument)
                self._take_news(events)

    def _take_news(self, events: list[ev.Event]) -> None:
        if self._machine.news:
            events.extend(self._machine.news)
            self._machine.news = []

    def _arrive(self, until: float, events: list[ev.Event]) -> None:
        """The jobs that come by then."""
        arrivals, submitted = self._machine.arrivals, self._machine.submitted
        jobs, at, arrival = arrivals.jobs, arrivals.next, arrivals.time
        job = jobs[at].job
        while arrival <= until:
            submitted[job.id] = (at, job)
            if job.dependencies:
                job = self._dependencies.left(job)
                submitted[job.id] = (at, job)
            events.append(_JobSubmitted(arrival, job))
            at += 1
            if at == len(jobs):
                arrival = INFINITY
                break
            job = jobs[at].job
            arrival = job.submit_time
        arrivals.time = arrival
        arrivals.next = at
        if arrivals.chained:
            arrivals.taken()

    def _other_moment(self, now: float, deadline: float | None) -> float | None:
        """The next moment where the machine's next one (``now``) may not be it: the scheduler waits for an
        earlier one, something is urgent, or nothing runs or comes any more. None: there is none."""
        machine = self._machine
        last = machine.arrivals.time == INFINITY
        if deadline is not None and deadline < now:
            if now == INFINITY and not machine.submitted and not machine.running:
                return None
            if deadline - self._alive_at > _PATIENCE and last and self._deserted():
                return None
            return deadline
        if now == INFINITY or (last and not machine.running and not machine.news and self._over(deadline)):
            return None
        return now

    def _further_round(self) -> bool:
        """Whether news is told at this same instant: a plugin that never rests must not stop the clock."""
        self.urgent = False
        instant, rounds = self._further
        self._further = (self._machine.now, rounds + 1 if instant == self._machine.now else 1)
        return self._further[1] <= _FURTHER_ROUNDS

    def _over(self, deadline: float | None) -> bool:
        """Nothing runs or arrives: whether no waiting job can start any more."""
        if self._tells_later or (self._partitions is not None and self._partitions.busy):
            return False
        if not self._machine.submitted:
            return True
        # All nodes are up and nothing but their failures lies ahead.
        return deadline is None and self._only_failures()

    def _deserted(self) -> bool:
        """Whether nothing runs or will happen but what plugins want to be woken for."""
        machine = self._machine
        if machine.running or machine.news or (self._partitions is not None and self._partitions.busy):
            return False
        if any((job.begin_time or 0.0) > machine.now for _, job in machine.submitted.values()):
            return False
        return self._only_failures()

    def _only_failures(self) -> bool:
        return all(entry[3] == self._failures.fail for entry in self._machine.agenda.heap)

    def last_news(self) -> Moment | None:
        """What is still to be told where nothing happens any more; None: nothing is."""
        machine = self._machine
        if machine.news and self._further_round():
            events, machine.news = machine.news, []
            return machine.now, events
        return None
