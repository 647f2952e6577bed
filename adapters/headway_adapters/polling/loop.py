"""Waiting for what happens: looks taken in, and what the actuators, agents and moves bring about."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic

from headway import decisions as d
from headway import events as ev
from headway.errors import Superseded
from headway_adapters.polling import differ, submissions
from headway_adapters.polling.actuators import Actuators
from headway_adapters.polling.agents import Agents
from headway_adapters.polling.bell import Bell
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.flights import Flights
from headway_adapters.polling.heartbeat import Heart
from headway_adapters.polling.licences import other_amounts
from headway_adapters.polling.look import DetailT, Look, PayloadT
from headway_adapters.polling.looker import Looker
from headway_adapters.polling.moves import Moves
from headway_adapters.polling.notes import Notes
from headway_adapters.polling.oddities import Oddities
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.routes import Routes
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.polling.system import BatchSystem
from headway_adapters.polling.wishes import Wishes

#: What is said of a job that was started outside headway.
STARTED_WITHOUT_US = "a job started that headway did not start"


class Loop(Generic[DetailT, PayloadT]):
    """The loop of one adapter. On the adapter's thread."""

    def __init__(
        self, system: BatchSystem[DetailT, PayloadT], looker: Looker[DetailT], overlay: Overlay[DetailT],
        flights: Flights[PayloadT], routes: Routes, wishes: Wishes[DetailT, PayloadT], commands: Commands,
        actuators: Actuators, agents: Agents, moves: Moves, notes: Notes, bell: Bell, heart: Heart,
        told: list[ev.Event],
        *, read_only: bool, log: Any, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``told``: events that the next answer has. ``read_only``: nothing is adopted, confirmed or tended.
        ``clock``: absolute seconds."""
        self._system = system
        self._looker = looker
        self._overlay = overlay
        self._flights = flights
        self._routes = routes
        self._wishes = wishes
        self._commands = commands
        self._actuators = actuators
        self._agents = agents
        self._moves = moves
        self._notes = notes
        self._bell = bell
        self._heart = heart
        self._told = told
        self._read_only = read_only
        self._log = log
        self._clock = clock
        self.oddities = Oddities(system.system, clock)
        #: A look was taken in since the last sign of life.
        self._goes_on = False
        #: Nodes and reservations as :meth:`describe` gave them, until the first look after it.
        self._described: Snapshot | None = None
        #: How much of each licence there was when the engine was told last.
        self._told_licences: Mapping[str, int] = {}
        #: Whether the system is silent, as the engine was told last.
        self._silent = False
        #: The time that was told last.
        self._now = -math.inf

    def describe(self, look: Look[DetailT]) -> Snapshot:
        """The cluster as it is told at first."""
        if self._read_only:
            # Nothing is done meanwhile, so this is the first look as well: one at a large cluster takes time.
            self._looker.has_looked(look)
        self._actuators.adopt(look.snapshot)
        shown = self._actuators.show(look.snapshot)
        # A description knows no power states: the first look tells which nodes are not on.
        self._described = replace(shown, power={})
        self._told_licences = shown.licences
        self._notes.odd(look.notes)
        return shown

    # ------------------------------------------------------------------ waiting

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]]:
        """As :meth:`headway.adapter.ClusterAdapter.wait`."""
        while True:
            if self._commands.lost:
                raise Superseded(self._commands.lost)
            if self._goes_on:
                # What the look told has been dealt with: a daemon that fails over it gives no sign of life.
                self._heart.beat()
                self._goes_on = False
            self._advance()
            moment = time.monotonic()
            # A look comes before what is told already: a plugin that asks again and again for what is refused
            # would otherwise never see that the cluster has changed.
            raw = self._overlay.raw
            self._looker.begin_if_due(moment, raw.snapshot if raw is not None else None)
            if self._looker.is_done:
                events = self._take_in()
                if events is not None:
                    return self._tell(events)
                if not self._told:
                    continue
            # The clock may be stepped while we sleep: each look, which does not depend on it, asks it anew.
            left = math.inf if deadline is None else deadline - self._clock()
            if self._looker.is_vain:
                left = math.inf
            elif self._is_time_to_tell(left):
                return self._tell([])
            dues = (self._actuators.due, self._moves.due, self._agents.due)
            pauses = [due for due in dues if due is not None]
            self._bell.sleep(min(self._looker.pause(moment, left), *pauses, math.inf))

    def _is_time_to_tell(self, left: float) -> bool:
        """Something is to be told, the bell woke us, or the deadline (``left`` seconds away) has passed."""
        if self._told:
            return True
        if self._bell.woken:
            self._bell.woken = False
            return True
        # A passed deadline waits a little for a look that is under way.
        return left <= 0 and not self._looker.may_answer_soon

    def _tell(self, events: Sequence[ev.Event]) -> tuple[float, Sequence[ev.Event]]:
        if self._told:
            events = ev.in_order([*events, *self._told])
            self._told.clear()
        self._now = max(self._now, self._clock(), max((event.time for event in events), default=-math.inf))
        return self._now, events

    def _advance(self) -> None:
        """Let moves, agents and actuators go on, and tell what became of their work."""
        with self._notes.unforeseen("the moves that are under way"):
            self._told += self._moves.advance()
        if not self._read_only:
            told, swapped = self._agents.advance()
            self._told += told
            if swapped:
                # The look that follows tells it.
                self._looker.at_once()
        changes = self._actuators.advance()
        for event in changes.events:
            if isinstance(event, ev.JobFrequencyChanged):
                self._wishes.forget(event.job_id)
            elif isinstance(event, ev.DecisionFailed) and isinstance(event.decision, d.SetFrequency):
                self._wishes.not_kept(event.decision.job_id)
            self._told.append(event)
        if changes.acted:
            self._commands.changes += 1
            self._looker.changed()
        before = self._overlay.shown
        if changes.moved and before is not None:
            self._overlay.nodes_changed()
            assert self._overlay.shown is not None
            self._told += differ.diff_nodes(before, replace(self._overlay.shown, time=self._clock()))

    # ------------------------------------------------------------------ a look

    def _take_in(self) -> Sequence[ev.Event] | None:
        """Take in a look that is done; None when it brought nothing to tell."""
        look = self._looker.finish(self._flights.begin_anew)
        self._tell_silence()
        if look is None:
            return None
        self._notes.odd(look.notes)
        first = self._overlay.raw is None
        flying = set(self._flights)
        look, old = self._lay_over(look)
        shown = self._overlay.show(self._moves)
        events = self._differences(old, shown, look)
        if not self._read_only:
            events = self._see_through(look, shown, events, flying, first=first)
            self._goes_on = True
        self._looker.schedule(starts_on_their_way=bool(self._flights))
        if not events and not first and not self._told:
            return None
        return ev.in_order(events)

    def _tell_silence(self) -> None:
        """Say that the system does not answer, and with the first look after that that it does."""
        outage = self._looker.outage
        if self._silent == (outage is not None):
            return
        self._silent = outage is not None
        if outage is not None:
            self._told.append(ev.ClusterSilent(outage.since, reason=outage.message))
        else:
            self._told.append(ev.ClusterAnswers(self._clock()))

    def _lay_over(self, look: Look[DetailT]) -> tuple[Look[DetailT], Snapshot | None]:
        """Give the overlay a look, completed from the look before. Answers it so, and what was shown before,
        with jobs whose move ended by this look where they are now."""
        old, before = self._overlay.shown, self._overlay.raw
        raw = before.snapshot if before is not None else None
        look = look.kept_from(raw)
        submitted = submissions.first_submitted(look.snapshot, raw, self._wishes.submitted)
        look = replace(look, snapshot=submitted)
        if not self._read_only:
            self._actuators.looked(look.snapshot)
        self._overlay.take(look)
        if not self._read_only:
            with self._notes.unforeseen("the moves that are under way"):
                assert self._overlay.snapshot is not None
                old = self._moves.looked(self._overlay.snapshot, old)
        return look, old

    def _differences(self, old: Snapshot | None, shown: Snapshot, look: Look[DetailT]) -> list[ev.Event]:
        """What happened since the look before (not yet in order)."""
        events = [*self._moves.told(), *self._routes.looked(differ.diff_jobs(old, shown), old, shown)]
        since = old if old is not None else self._described
        self._described = None
        if since is not None:
            self._tell_gone(since, shown)
            events += differ.diff_pools(since, shown)
            events += differ.diff_nodes(since, shown)
            events += differ.diff_reservations(since, shown)
        events += self._licence_news(shown)
        events += self._system.news(look)
        return events

    def _tell_gone(self, old: Snapshot, new: Snapshot) -> None:
        """Say which of headway's pools were deleted: a next start would refuse the configuration."""
        for name, known in old.pools.items():
            if name not in new.pools and (known.open or self._system.rules(name)):
                self._log.warning(
                    "a pool is gone", pool=name, remedy="remove it from cluster.options before the next start"
                )

    def _licence_news(self, shown: Snapshot) -> Iterator[ev.Event]:
        """Other amounts of licences than were told before."""
        for name, total in other_amounts(self._told_licences, shown.licences).items():
            yield ev.LicencesChanged(shown.time, name, total)
        self._told_licences = shown.licences

    def _see_through(
        self, look: Look[DetailT], shown: Snapshot, events: list[ev.Event], flying: set[str], *, first: bool
    ) -> list[ev.Event]:
        """Confirm starts, keep house, and give back the events with the frequencies that go with starts.
        ``flying``: starts that were on their way when the look began."""
        if first:
            self._wishes.adopt(look)
            flying = set(self._flights)
        else:
            late = {event.job_id for event in events if isinstance(event, ev.JobReleasing)} - flying
            if late:
                # A start that is not ours, seen with the job itself: it happens, or is taken back.
                self._wishes.adopt(look, late)
                flying |= late & set(self._flights)
        events = [self._wishes.with_frequency(event, shown) for event in events]
        if first:
            self._wishes.go_on(shown)
            self._actuators.go_on_waking()
        else:
            self._count_strangers(events, shown)
        for flight, job in self._flights.confirm(look, flying):
            with self._notes.unforeseen("the frequency of a start", job=job.job.id):
                self._wishes.started(flight.decision, job)
            with self._notes.unforeseen("the limit of a start", job=job.job.id):
                self._wishes.keep_limit(flight, job)
        with self._notes.unforeseen("the housekeeping after a look"):
            # What was asked for since the look began is not in it.
            self._system.tend(look, flying | set(self._flights))
        assert self._overlay.snapshot is not None
        self._agents.looked(self._overlay.snapshot, self._flights)
        for event in events:
            if isinstance(event, ev.JobEnded | ev.JobRequeued):
                self._actuators.job_ended(event.job_id)
                self._wishes.forget(event.job_id)
        return events

    def _count_strangers(self, events: Iterable[ev.Event], shown: Snapshot) -> None:
        """Tell of starts that were not headway's."""
        for event in events:
            if not isinstance(event, ev.JobStarted) or event.job_id in self._flights:
                continue
            job = shown.jobs.get(event.job_id)
            if job is not None and self._system.rules(job.job.pool):
                where = ", ".join(node for node, _ in event.placement[:3])
                self.oddities.saw(STARTED_WITHOUT_US, f"job {event.job_id} of {job.job.user} on {where}")
                self._log.warning(STARTED_WITHOUT_US, job=event.job_id, user=job.job.user, nodes=where)
