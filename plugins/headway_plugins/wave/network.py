"""The emulated peer network: jobs on hosts of other people under a policy, from event to event.

D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005, sections 4.1 and 5. What hosts do does not depend on jobs, so each
job has exactly one next event: it is done, its host is lost, its host is idle again, or its wait is over.

What the paper leaves open, and what is done here:

- At one instant: jobs that are done, jobs whose hosts are idle again, then losses and waits that are over
  together, in random order, because each claim changes what the next search finds; then submissions. Within a
  kind by job number. At a whole hour the new hour's calendars count.
- A search skips every claimed host, the job's own, too. The old host is free after the new host is claimed.
- A move takes no time. A job that sleeps is moved as well as any other, and runs on arrival.
- A wait is drawn when the job falls asleep, after the search that failed, and dropped when the job goes on.
- A job without a first host has failed. An adaptive job searches everywhere for an unclaimed host before
  that; if the host that it gets is idle, it runs at once.
- A job that still waits or runs at the end is unfinished: neither done nor failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from heapq import heapify, heappop, heappush

from headway.errors import UserError
from headway_plugins.wave.discovery import (
    Discovery,
    ExpandingRing,
    Global,
    Lowest,
    RandomPoints,
    Request,
)
from headway_plugins.wave.draws import Draws, Hours
from headway_plugins.wave.hosts import Hosts
from headway_plugins.wave.jobs import Course, Job, Outcome
from headway_plugins.wave.options import Clock, LingerCheck, Options, Order, Retry, Search, Start
from headway_plugins.wave.overlay import Overlay
from headway_plugins.wave.policies import Criterion, Policy, Where
from headway_plugins.wave.zones import Wavezones, hour_of

#: The least and the most hours of a wait, and of the time before a failed job is submitted again.
WAIT = 1, 3


class Kind(IntEnum):
    """Events in the order in which they count at one instant."""

    DONE = 0
    RESUME = 1
    #: A loss, a search ahead of a loss, or a wait that is over.
    CHANGE = 2
    SUBMIT = 3


class What(StrEnum):
    """A line of the trace."""

    RUN = "run"
    #: The first host is not idle.
    SLEEP = "sleep"
    #: The host is lost, and the job sleeps there.
    STAY = "stay"
    #: The wait is over, no host was found, and another wait begins.
    AGAIN = "again"
    RESUME = "resume"
    MOVE = "move"
    DONE = "done"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Line:
    """What happened to a job."""

    time: Hours
    job: int
    what: What
    host: int | None
    #: The end of a wait that begins now.
    timer: Hours | None = None


@dataclass(frozen=True)
class Run:
    """What became of the jobs."""

    courses: list[Course]
    searches: int
    #: Hosts that were asked, over all searches.
    asked: int
    #: Everything that happened, if it was asked for.
    trace: list[Line]


def discovery_of(hosts: Hosts, overlay: Overlay | None, options: Options, draws: Draws) -> Discovery:
    """The way to find hosts that the options name. Raises :class:`UserError` if it needs an overlay."""
    if options.discovery is Search.LOWEST:
        return Lowest(len(hosts))
    if options.discovery is Search.GLOBAL:
        return Global(hosts)
    if overlay is None:
        raise UserError(f"discovery {options.discovery}: expected an overlay of the hosts, found none")
    if options.discovery is Search.RANDOM:
        return RandomPoints(overlay, draws, options.tries)
    return ExpandingRing(overlay, draws, options.hops, own=options.start is Start.OWN)


class Network:
    """One run of a policy; hosts and overlay may be shared by many."""

    def __init__(
        self,
        hosts: Hosts,
        overlay: Overlay | None,
        policy: Policy,
        options: Options,
        draws: Draws,
        *,
        traced: bool = False,
    ) -> None:
        """Raises :class:`UserError` for a wave policy on hosts that live by one clock."""
        if options.clock is Clock.SHARED and policy.where is Where.NIGHT:
            raise UserError(f"policy {policy.name}: expected clock zones, found clock {options.clock}")
        self._hosts, self._policy, self._options, self._draws = hosts, policy, options, draws
        self._wavezones = Wavezones(options.wavezones)
        self._discovery = discovery_of(hosts, overlay, options, draws)
        self._claimed = bytearray(len(hosts))
        for host in hosts.claimed:
            self._claimed[host] = 1
        self._trace: list[Line] | None = [] if traced else None
        self._courses: list[Course] = []
        self._events: list[tuple[Hours, Kind, int]] = []
        self._now: Hours = 0
        self._hour = 0

    def run(self, jobs: Sequence[Job]) -> Run:
        """Emulate the jobs, which are numbered in this order. A network runs once."""
        self._courses = [Course(number, job, job.runtime) for number, job in enumerate(jobs)]
        self._events = [(job.submit, Kind.SUBMIT, number) for number, job in enumerate(jobs)]
        heapify(self._events)
        while self._events and self._events[0][0] <= self._options.until:
            self._instant()
        self._now = self._options.until
        for course in self._courses:
            self._pause(course)
        found = self._discovery
        return Run(self._courses, found.searches, found.asked, self._trace or [])

    def _instant(self) -> None:
        """Everything that happens at the next time at which something does."""
        self._now = self._events[0][0]
        self._hour = hour_of(self._now)
        due: tuple[list[Course], ...] = ([], [], [], [])
        while self._events and self._events[0][0] == self._now:
            _, kind, number = heappop(self._events)
            due[kind].append(self._courses[number])
        done, resumed, changed, submitted = due
        for course in done:
            self._done(course)
        for course in resumed:
            self._go(course, What.RESUME)
        if len(changed) > 1 and self._options.order is Order.SHUFFLED:
            changed = [changed[at] for at in self._draws.permutation(len(changed))]
        for course in changed:
            if course.since is None:
                self._woken(course)
            else:
                self._lost(course)
        for course in submitted:
            self._submitted(course)

    # ------------------------------------------------------------------ what happens to a job

    def _submitted(self, course: Course) -> None:
        host = self._search(course, self._policy.criterion)
        if host is None and self._policy.settles:
            host = self._search(course, Criterion.UNCLAIMED)
        if host is None:
            self._fail(course)
            return
        self._claim(course, host)
        if self._hosts.idle(host, self._hour):
            self._go(course, What.RUN)
        else:
            self._sleep(course, What.SLEEP)

    def _done(self, course: Course) -> None:
        assert course.host is not None
        course.left, course.since = 0, None
        self._finish(course, Outcome.DONE, What.DONE)

    def _lost(self, course: Course) -> None:
        """The host is lost, or will be soon."""
        assert course.host is not None
        host = self._search(course, self._policy.criterion) if self._policy.searches_at_loss else None
        if host is not None:
            self._move(course, host)
        elif self._hosts.idle(course.host, self._hour):
            self._until_loss(course)
        elif self._policy.waits:
            self._pause(course)
            self._sleep(course, What.STAY)
        else:
            self._pause(course)
            self._fail(course)

    def _woken(self, course: Course) -> None:
        """The wait is over."""
        assert course.host is not None
        if self._hosts.idle(course.host, self._hour):
            self._go(course, What.RESUME)
            return
        host = self._search(course, self._policy.criterion)
        if host is not None:
            self._move(course, host)
        elif self._policy.searches_again:
            self._sleep(course, What.AGAIN)
        else:
            self._fail(course)

    # ------------------------------------------------------------------ what a job does

    def _search(self, course: Course, criterion: Criterion) -> int | None:
        """A host for the job now; None: none was found."""
        by_night = criterion is Criterion.NIGHT
        return self._discovery.find(self._by_night(course) if by_night else self._anywhere(course, criterion))

    def _anywhere(self, course: Course, criterion: Criterion) -> Request:
        """A search in the whole overlay."""
        hosts, hour, claimed = self._hosts, self._hour, self._claimed

        def unclaimed(host: int) -> bool:
            return not claimed[host]

        def available(host: int) -> bool:
            return not claimed[host] and hosts.idle(host, hour)

        wanted = unclaimed if criterion is Criterion.UNCLAIMED else available
        return Request(wanted, hour, client=course.job.client)

    def _by_night(self, course: Course) -> Request:
        """A search in the target wavezone."""
        hosts, hour, claimed, strict = self._hosts, self._hour, self._claimed, self._options.strict
        zones = self._wavezones
        target = zones.target(self._options.target, hour, self._draws)

        def satisfies(host: int) -> bool:
            return (
                not claimed[host]
                and zones.of(hosts.zones[host]) == target
                and hosts.idle(host, hour)
                and (not strict or hosts.night(host, hour))
            )

        return Request(satisfies, hour, target * zones.size, zones.size, course.job.client)

    def _claim(self, course: Course, host: int) -> None:
        self._claimed[host] = 1
        course.host = host

    def _release(self, course: Course) -> None:
        if course.host is not None:
            self._claimed[course.host] = 0
            course.host = None

    def _move(self, course: Course, host: int) -> None:
        self._pause(course)
        old = course.host
        self._claim(course, host)
        assert old is not None
        self._claimed[old] = 0
        course.migrations += 1
        self._go(course, What.MOVE)

    def _go(self, course: Course, what: What) -> None:
        """The job runs on its host from now on."""
        assert course.host is not None
        course.since = self._now
        if course.first is None:
            course.first = self._now
        course.placements.append((self._now, course.host))
        self._tell(course, what)
        loss = self._hosts.change(course.host, self._hour)
        done = self._hosts.completion(course.host, self._now, course.left, loss)
        if done is not None:
            self._at(done, Kind.DONE, course)
        elif loss is not None:
            ahead = loss - self._options.lead
            early = self._policy.searches_at_loss and ahead > self._now
            self._at(ahead if early else loss, Kind.CHANGE, course)

    def _until_loss(self, course: Course) -> None:
        """The job stays on its host, which will be lost soon."""
        assert course.host is not None
        loss = self._hosts.change(course.host, self._hour)
        assert loss is not None
        self._at(loss, Kind.CHANGE, course)

    def _sleep(self, course: Course, what: What) -> None:
        """The job waits on its host, which is not idle."""
        assert course.host is not None
        timer = self._now + self._wait() if self._policy.has_timer else None
        self._tell(course, what, timer)
        again = self._hosts.change(course.host, self._hour)
        if timer is not None and self._options.linger_check is LingerCheck.END:
            again = None
        if again is not None and (timer is None or again <= timer):
            self._at(again, Kind.RESUME, course)
        elif timer is not None:
            self._at(timer, Kind.CHANGE, course)

    def _wait(self) -> Hours:
        return self._draws.hours(*WAIT) if self._options.linger is None else self._options.linger

    def _pause(self, course: Course) -> None:
        """What has been done counts; the job does not run any more."""
        if course.since is not None and course.host is not None:
            course.left -= self._hosts.work(course.host, course.since, self._now)
            course.since = None

    def _fail(self, course: Course) -> None:
        """No host was found: the job has failed, or is submitted again."""
        placed = course.host is not None
        if self._options.retry is Retry.NO:
            self._finish(course, Outcome.FAILED if placed else Outcome.FAILED_PLACEMENT, What.FAIL)
            return
        self._tell(course, What.FAIL)
        self._release(course)
        course.retries += 1
        if self._options.retry is Retry.SCRATCH:
            course.lost += course.done
            course.left = course.job.runtime
        self._at(self._now + self._draws.hours(*WAIT), Kind.SUBMIT, course)

    def _finish(self, course: Course, outcome: Outcome, what: What) -> None:
        course.outcome, course.end = outcome, self._now
        if outcome is not Outcome.DONE:
            course.lost += course.done
        self._tell(course, what)
        self._release(course)

    def _at(self, time: Hours, kind: Kind, course: Course) -> None:
        heappush(self._events, (time, kind, course.number))

    def _tell(self, course: Course, what: What, timer: Hours | None = None) -> None:
        if self._trace is not None:
            self._trace.append(Line(self._now, course.number, what, course.host, timer))
