"""Several clusters as one: an adapter that composes adapters.

Each cluster's adapter lives on a thread of its own: it describes, waits, applies and is closed
there, so a cluster that hangs holds up only itself. What they tell is merged in the order of
time; decisions go to the cluster that their job, pool, node or reservation belongs to, under its own
names (:mod:`headway_adapters.federation.names`).

Decisions that we took:

- A cluster's thread waits only while the engine waits. What it told is taken in, and what follows
  from it is applied, before it is asked again.
- The first wait lasts until every cluster has told its jobs, at most ``patience`` seconds.
- Applying takes at most ``patience`` seconds. A cluster that has not answered by then has taken the
  order (outcome "accepted"); what became of it is said by its events, as always.
- A cluster that does not answer at the start is asked again after 2, 4, ... 30 s. When it answers it
  joins: its pools come as ``PoolChanged``, its nodes as ``NodeUp``, its reservations as
  ``ReservationMade``, and only then its jobs. That all clusters are silent at the start is a failure.
  Until its jobs are told it is silent (:mod:`headway_adapters.federation.silence`).
- Later outages are the adapters' own matter: they wait for their cluster and tell that it is silent.
- What one cluster can carry out, the federation offers; a decision that its cluster cannot carry out
  is refused with the names of both. Nodes of several clusters in one ``PowerUp`` or ``PowerDown`` are
  shared out; in any other decision that is refused. Jobs go to another cluster by ``Route``
  (:mod:`headway_adapters.federation.live_routes`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any

import msgspec
import structlog

from headway import decisions as d
from headway import events as ev
from headway.adapter import (
    Check,
    ClusterAdapter,
    CommandCount,
    KnownReplica,
    Oddity,
    Outage,
    Outcome,
    StartsWait,
)
from headway.daemon.clock import RunClock
from headway.errors import Failure, HeadwayError, UserError
from headway.inputs.trail import NOTHING, current, ids_of
from headway.model import ClusterDescription
from headway.model.sites import Intake, Sites
from headway.model.transfers import Transfers
from headway_adapters.federation.before import ToldBefore
from headway_adapters.federation.composition import (
    Composition,
    described_together,
    failure_of,
    together,
)
from headway_adapters.federation.emulated import EmulatedFederation
from headway_adapters.federation.handlers import Handlers
from headway_adapters.federation.hours import Hours
from headway_adapters.federation.intake_checks import check_intakes
from headway_adapters.federation.live_checks import check_transfers
from headway_adapters.federation.live_copies import LiveCopies
from headway_adapters.federation.live_routes import LiveRoutes, Settled
from headway_adapters.federation.member import Member
from headway_adapters.federation.names import LICENCE, POOL, Elsewhere, Names
from headway_adapters.federation.passage import Passage
from headway_adapters.federation.silence import Silences, outage_of
from headway_adapters.polling.bell import Bell

#: How long the federation waits for one cluster before it goes on without it.
PATIENCE = 10.0
#: Between two glances at the clock, seconds.
_LONGEST_SLEEP = 5.0
#: How long the clusters' threads have to end.
_LEAVE = 5.0


class Federation(ToldBefore):
    """Several clusters as one. See the module's text."""

    #: What stands for it in emulation.
    Emulated = EmulatedFederation

    def __init__(
        self,
        members: Mapping[str, ClusterAdapter],
        *,
        log: Any = None,
        clock: Callable[[], float] | None = None,
        patience: float = PATIENCE,
        sites: Callable[[Mapping[str, Sequence[str]]], Sites | None] | None = None,
        transfers: Transfers | None = None,
        intakes: Mapping[str, Intake] | None = None,
    ) -> None:
        """``members``: the clusters' adapters by name, each new: it was not called before.

        ``clock`` tells the time in absolute seconds and never goes back. ``sites``: what is configured of the
        sites, from the names of each cluster's pools; None: nothing. ``transfers``: how their datasets are
        copied. ``intakes``: how jobs of other clusters are submitted at each cluster.
        """
        self._log = log if log is not None else structlog.get_logger("headway.federation")
        self._clock = clock if clock is not None else RunClock(log=self._log)
        self._patience = patience
        self._names = Names()
        self._bell = Bell()
        self._members = {
            name: Member(name, adapter, self._bell.stir, self._clock, self._log)
            for name, adapter in members.items()
        }
        self._handlers = Handlers(self._members, self._names)
        self.moves = any(member.adapter.moves for member in self._members.values())
        self.shows_starts = any(member.adapter.shows_starts for member in self._members.values())
        self.suspended_lend = all(member.adapter.suspended_lend for member in self._members.values())
        self._copies = LiveCopies(
            transfers or Transfers(), self._names.cluster_of_job, self._bell.stir, self._log, self._clock
        )
        self.capabilities = self._copies.capabilities.union(
            *(member.adapter.capabilities for member in self._members.values())
        )
        self._composition = Composition(self._members, self._names, self.capabilities)
        self._sites_of = sites
        #: The calendars of the sites.
        self._hours = Hours((), 0.0)
        self._intakes = intakes or {}
        self._routes = LiveRoutes(
            self._members, self._intakes, poke=self._bell.stir, log=self._log, clock=self._clock,
            patience=patience, carry=self._handlers.carry,
        )  # fmt: skip
        self._passage = Passage(
            self._names, trusted=lambda name: name in self._routes.able, is_open=self._routes.open,
            noticed=self._routes.look,
        )  # fmt: skip
        self._silences = Silences()
        #: What joined after the start, until it is told.
        self._joining: list[ev.Event] = []
        #: Refusals of our own, until they are told.
        self._refused: list[ev.Event] = []
        self._now = float("-inf")
        self._first = True
        self._closed = False

    # ------------------------------------------------------------------ describe

    def describe(self) -> ClusterDescription:
        for member in self._members.values():
            member.start()
        end = time.monotonic() + self._patience
        found: list[Member] = []
        silent: dict[str, str] = {}
        for name, member in self._members.items():
            member.asked.wait(max(0.0, end - time.monotonic()))
            if member.description is not None:
                found.append(member)
            elif isinstance(member.error, UserError):
                raise UserError(f"clusters.{name}: {member.error}") from member.error
            else:
                silent[name] = str(member.error or f"no answer within {self._patience:g} s")
        if not found:
            raise Failure(
                "no cluster answers: " + "; ".join(f"{name}: {said}" for name, said in silent.items())
            )
        for name, said in silent.items():
            self._log.error(
                "a cluster does not answer; the other clusters go on without it", cluster=name, error=said
            )
        parts = [self._join(member) for member in found]
        sites = None
        if self._sites_of is not None:
            sites = self._sites_of({part.name: [pool.name for pool in part.pools] for part in parts})
        if sites is not None:
            self._hours = Hours(sites.sites, self._clock())
        self._copies.begin(sites)
        whole = described_together(tuple(self._members), parts, suspended_lend=self.suspended_lend)
        pools = tuple(self._hours.of(self._names.cluster_of(pool.name), pool) for pool in whole.pools)
        return msgspec.structs.replace(whole, pools=pools, sites=sites)

    def _join(self, member: Member) -> ClusterDescription:
        """A cluster's description in the federation's names; from now on it takes part."""
        description = member.description
        assert description is not None
        if len(description.pools) == 1:
            self._names.only_pool[member.name] = description.pools[0].name
        outward = self._names.outward(member.name)
        member.joined = True
        self._routes.look()
        return ClusterDescription(
            name=member.name,
            pools=tuple(self._composition.among(member, outward.renamed(pool)) for pool in description.pools),
            nodes=tuple(outward.renamed(node) for node in description.nodes),
            reservations=tuple(outward.renamed(one) for one in description.reservations),
            licences=tuple((outward.rename(LICENCE, name), n) for name, n in description.licences),
            switches=tuple(outward.renamed(one) for one in description.switches),
            shares_out=description.shares_out,
            moves_take_time=description.moves_take_time,
            suspended_lend=description.suspended_lend,
            numbered=description.numbered,
        )

    def replicas_before(self, known: Sequence[KnownReplica]) -> None:
        self._copies.remember(known)

    # ------------------------------------------------------------------ wait

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        # The first cycle should see every job; Copy asks no second time.
        until = time.monotonic() + self._patience if self._first else 0.0
        events: list[ev.Event] = []
        told = False
        while not self._closed:
            for member in self._members.values():
                told = self._take_in(member, events) or told
            if copied := self._copies.take(max(self._clock(), self._now)):
                events, told = [*events, *copied], True
            told = self._take_routes(events) or told
            if self._joining:
                # Its jobs must find its pools and nodes: they come a cycle later.
                events += self._joining
                self._joining = []
                return self._moment(events)
            running = [member for member in self._members.values() if member.joined and not member.ended]
            if not running and not events and all(member.ended for member in self._members.values()):
                return None
            patient = time.monotonic() < until and (
                self._copies.recovering or any(not member.begun for member in running)
            )
            if self._bell.woken or ((told or self._refused) and not patient):
                self._bell.woken = False
                self._first = False
                return self._moment(events)
            for member in running:
                if not member.waiting and not member.outbox:
                    member.let_wait()
            if changed := self._hours.reach(self._clock()):
                return self._moment([*events, *changed])
            left = deadline - self._clock() if deadline is not None else float("inf")
            left = min(left, self._hours.next_time - self._clock())
            if left <= 0 and not patient:
                return self._moment(events)
            # Should the clock be stepped forward meanwhile, no cluster need say anything.
            left = min(left, _LONGEST_SLEEP)
            self._bell.sleep(min(left, until - time.monotonic()) if patient else left)
        return None

    def _take_in(self, member: Member, events: list[ev.Event]) -> bool:
        """Add what a cluster has told to ``events``; whether the engine should hear of it."""
        heard = False
        while member.outbox:
            told = member.outbox.popleft()
            if told.error is not None:
                raise told.error
            if told.joins:
                if member.joined:
                    continue
                part = self._join(member)
                now = max(self._clock(), self._now)
                self._joining += [
                    ev.PoolChanged(now, self._hours.of(member.name, pool)) for pool in part.pools
                ]
                self._joining += [ev.NodeUp(now, node) for node in part.nodes]
                self._joining += [ev.ReservationMade(now, one) for one in part.reservations]
                pools = [pool.name for pool in part.pools]
                self._log.info("a cluster joins", cluster=member.name, pools=pools, nodes=len(part.nodes))
                continue
            member.waiting = False
            member.ended = told.ended
            if told.ended:
                member.begun = heard = True
                continue
            assert told.now is not None
            self._now = max(self._now, told.now)
            # Before it has told its jobs it was woken for nothing.
            heard = heard or bool(told.events) or not member.begun
            events += self._silences.begins(member, told.now)
            member.begun = True
            outward = self._outward(member, told.events)
            self._handlers.told(member, outward)
            events += outward
        return heard

    def _take_routes(self, events: list[ev.Event]) -> bool:
        """Add what became of jobs that go to another cluster; whether the engine should hear of it."""
        before = len(events)
        for news in self._routes.news():
            if isinstance(news, Settled):
                self._passage.settled(news)
                continue
            events += self._passage.stays(news.original)
            if news.decision is not None:
                self._refuse(news.decision, news.why, max(self._now, self._clock()))
        return len(events) > before

    def _outward(self, member: Member, events: Sequence[ev.Event]) -> list[ev.Event]:
        outward = self._names.outward(member.name)
        for event in events:
            if isinstance(event, ev.ReservationMade):
                # Jobs that name it may come before it.
                outward.renamed(event)
        found = self._passage.through(member.name, events)
        for at, event in enumerate(found):
            if isinstance(event, ev.PoolChanged):
                pool = self._hours.of(member.name, self._composition.among(member, event.pool))
                found[at] = msgspec.structs.replace(event, pool=pool)
            elif isinstance(event, ev.ClusterSilent | ev.ClusterAnswers):
                found[at] = self._silences.of(member.name, event)
            elif isinstance(event, ev.ReservationEnded):
                self._names.forget(event.reservation_id)
            elif isinstance(event, ev.DecisionFailed) and isinstance(event.decision, d.Reserve):
                self._names.not_made(event.decision.reservation.id)
        return found

    def _moment(self, events: list[ev.Event]) -> tuple[float, Sequence[ev.Event]]:
        self._now = max(self._now, self._clock())
        events += self._silences.not_begun(self._members.values(), self._now)
        events += self._refused
        self._refused = []
        self._copies.note(events)
        return self._now, ev.in_order(events)

    def wake(self) -> None:
        self._bell.wake()

    # ------------------------------------------------------------------ apply

    def apply(self, now: float, decisions: Sequence[d.Decision]) -> Sequence[Outcome]:
        self._now = max(self._now, now)
        outcomes: list[list[Outcome]] = [[] for _ in decisions]
        #: Cluster -> places in ``decisions``, and the decisions in its names.
        shares: dict[str, tuple[list[int], list[d.Decision]]] = {}
        for at, decision in enumerate(decisions):
            try:
                if self._copies.takes(decision):
                    outcomes[at].append(Outcome(True))
                    continue
                if (outcome := _sent_away(decision, self._names, self._routes)) is not None:
                    outcomes[at].append(outcome)
                    if not outcome.accepted:
                        self._refuse(decision, outcome.message, now)
                    continue
                for name, own in self._routed(decision):
                    places, share = shares.setdefault(name, ([], []))
                    places.append(at)
                    share.append(own)
            except Elsewhere as error:
                outcomes[at].append(Outcome(False, str(error)))
                self._refuse(decision, str(error), now)
        trail = current() if ids_of(decisions) else NOTHING
        futures = {
            name: self._members[name].order(now, share, trail.of(places))
            for name, (places, share) in shares.items()
        }
        wait_for(futures.values(), self._patience)
        for name, (places, _) in shares.items():
            future = futures[name]
            if future.done():
                answers = future.result()
            else:
                said = f"{name} has not answered within {self._patience:g} s; its events will tell"
                answers = [Outcome(True, said)] * len(places)
            for at, outcome in zip(places, answers, strict=True):
                outcomes[at].append(outcome)
        for decision, answers in zip(decisions, outcomes, strict=True):
            if isinstance(decision, d.Reserve) and not answers[0].accepted:
                self._names.not_made(decision.reservation.id)
        return [together(answers) for answers in outcomes]

    def _routed(self, decision: d.Decision) -> list[tuple[str, d.Decision]]:
        """The clusters that carry it out, each with the decision in its own names.

        Raises :class:`Elsewhere` if none can, or if it would need several.
        """
        found = []
        for name, part in self._composition.parts(decision):
            try:
                found.append((name, self._names.inward(name).renamed(part)))
            except Elsewhere as error:
                kind = type(decision).__name__
                raise Elsewhere(f"{kind}: {error}; jobs and nodes stay in their cluster") from None
        return found

    def _refuse(self, decision: d.Decision, message: str, now: float) -> None:
        self._log.warning("the federation refused", decision=type(decision).__name__,
                          job=getattr(decision, "job_id", None), error=message)  # fmt: skip
        self._refused.append(ev.DecisionFailed(now, failure_of(decision), message))

    # ------------------------------------------------------------------ the rest

    def check(self) -> list[Check]:
        def of(member: Member) -> list[Check]:
            try:
                found = member.adapter.check()
            except HeadwayError as error:
                found = [Check("cluster", False, str(error))]
            return [msgspec.structs.replace(one, subject=f"{member.name}: {one.subject}") for one in found]

        with ThreadPoolExecutor(max(1, len(self._members)), thread_name_prefix="check") as pool:
            found = [check for found in pool.map(of, self._members.values()) for check in found]
        found += [*self._handlers.check(), *check_intakes(self._members, self._intakes)]
        return [*found, *check_transfers(self._copies.transfers, self._sites_of)]

    def looked(self, job_id: str) -> tuple[float, float] | None:
        name, local = self._names.job_place(job_id)
        member = self._members.get(name)
        return member.adapter.looked(local) if member is not None else None

    def outages(self) -> Sequence[Outage]:
        found = []
        for name, member in self._members.items():
            if (outage := outage_of(member)) is not None:
                found.append(outage)
            found += [msgspec.structs.replace(one, cluster=name) for one in member.adapter.outages()]
        return found

    def oddities(self) -> Sequence[Oddity]:
        found = [
            msgspec.structs.replace(one, cluster=name)
            for name, member in self._members.items()
            for one in member.adapter.oddities()
        ]
        return [*self._copies.oddities(), *found, *self._routes.oddities()]

    def starts_waiting(self) -> Sequence[StartsWait]:
        return [
            msgspec.structs.replace(one, cluster=name)
            for name, member in self._members.items()
            for one in member.adapter.starts_waiting()
        ]

    def commands_run(self) -> Sequence[CommandCount]:
        return [
            msgspec.structs.replace(one, cluster=name)
            for name, member in self._members.items()
            for one in member.adapter.commands_run()
        ]

    def vital_signs(self) -> Sequence[Check]:
        return [
            msgspec.structs.replace(one, subject=f"{name}: {one.subject}")
            for name, member in self._members.items()
            for one in member.adapter.vital_signs()
        ]

    def show_starts(self, planned: Iterable[tuple[str, float]]) -> None:
        own: dict[str, list[tuple[str, float]]] = {name: [] for name in self._members}
        for job, start in planned:
            cluster, local = self._names.job_place(job)
            if cluster in own:
                own[cluster].append((local, start))
        for name, member in self._members.items():
            if member.adapter.shows_starts:
                member.adapter.show_starts(own[name])

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._routes.close()
        self._handlers.close()
        for member in self._members.values():
            member.close()
        self._copies.close()
        end = time.monotonic() + _LEAVE
        for member in self._members.values():
            member.join(end - time.monotonic())
        self._bell.close()


def _sent_away(decision: d.Decision, names: Names, routes: LiveRoutes) -> Outcome | None:
    """Begin a route to another cluster; None for every other decision."""
    if not isinstance(decision, d.Route):
        return None
    source, target = names.job_place(decision.job_id), names.cluster_of(decision.pool)
    if source[0] == target:
        return None
    return routes.order(decision, source, target, names.inward(target).rename(POOL, decision.pool))
