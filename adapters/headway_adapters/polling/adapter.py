"""The loop that every adapter of a real batch system shares: looking, telling, starting, confirming.

A batch system is looked at from time to time; two looks make events (:mod:`headway_adapters.polling.differ`).
:class:`PollingAdapter` does all of that but the system's own words, which a subclass overrides:
:mod:`headway_adapters.polling.system` is that contract. The loop has these parts:

===========================================  ====================================================
:mod:`headway_adapters.polling.looker`       when a look is made, outages, looks that are vain
:mod:`headway_adapters.polling.overlay`      the last look, with what only headway knows
:mod:`headway_adapters.polling.flights`      starts that are on their way
:mod:`headway_adapters.polling.routes`       jobs that go to another pool
:mod:`headway_adapters.polling.wishes`       what an earlier run decided
:mod:`headway_adapters.polling.orders`       what becomes of decisions
:mod:`headway_adapters.polling.commands`     commands that change something
:mod:`headway_adapters.polling.actuators`    the site's commands for frequencies and power
:mod:`headway_adapters.polling.agents`       tiers, by the agents on the nodes
:mod:`headway_adapters.polling.moves`        moves that are under way
===========================================  ====================================================

Looks are taken on a thread of their own, so that a hanging command delays neither the deadline nor a wake.
Everything else runs on the thread that calls :meth:`PollingAdapter.wait` and :meth:`PollingAdapter.apply`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import structlog
from pydantic import BaseModel, ValidationError

from headway import decisions as d
from headway import events as ev
from headway.adapter import (
    Check,
    ClusterAdapter,
    Outcome,
    Seen,
    WishedFrequency,
)
from headway.adapter.migration import MigrationHandler
from headway.daemon.clock import RunClock
from headway.errors import HeadwayError, UserError
from headway.inputs.validation import explain_validation
from headway.model import ClusterDescription
from headway_adapters.polling import submissions
from headway_adapters.polling.actuators import ActuatorOptions, Actuators, capabilities
from headway_adapters.polling.agents import AgentOptions, Agents
from headway_adapters.polling.bell import Bell
from headway_adapters.polling.client import CommandClient
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.condition import PollingCondition
from headway_adapters.polling.flights import Flights
from headway_adapters.polling.hands import Hands
from headway_adapters.polling.heartbeat import Heart, HeartbeatOptions, heartbeat_file
from headway_adapters.polling.look import DetailT, PayloadT
from headway_adapters.polling.looker import Looker, first_look
from headway_adapters.polling.loop import Loop
from headway_adapters.polling.moves import Moves
from headway_adapters.polling.notes import Notes
from headway_adapters.polling.orders import Orders
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.routes import Routes
from headway_adapters.polling.startable import Guard
from headway_adapters.polling.system import BatchSystem, Pace
from headway_adapters.polling.wishes import Wishes

OptionsT = TypeVar("OptionsT", bound=BaseModel)


class PollingAdapter(PollingCondition, BatchSystem[DetailT, PayloadT], ClusterAdapter):
    """A batch system that is looked at through its commands."""

    moves = True

    def __init__(
        self,
        client: CommandClient,
        pace: Pace,
        *,
        actuators: ActuatorOptions | None = None,
        agents: AgentOptions | None = None,
        read_only: bool = False,
        log: Any = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``actuators``: the site's commands for frequencies and power. ``agents``: how the agents on the
        nodes are reached; with them there are two tiers. ``read_only``: monitor mode; nothing
        is adopted, confirmed or tended. ``clock`` tells the time in absolute seconds and never goes back; by
        default a :class:`headway.daemon.clock.RunClock`. Pauses and time-outs do not go by it.
        """
        if actuators is not None and actuators.power_down is not None and not self.drains:
            raise UserError(
                f"cluster.options.actuators.power_down: on {self.title} headway cannot take a node out of "
                "service, so it cannot put nodes to sleep"
            )
        self.read_only = read_only
        #: Attributes of jobs that the configuration names, and that users can say.
        self.words: frozenset[str] = frozenset()
        self._client = client
        self._log = log if log is not None else structlog.get_logger(f"headway.{self.system}")
        self._clock = clock if clock is not None else RunClock(log=self._log)
        #: What migration handlers carry out.
        self._given: frozenset[type[d.Decision]] = frozenset()
        self.capabilities = self.capabilities | capabilities(actuators, drains=self.drains)
        if agents is not None:
            self.capabilities = self.capabilities | {d.SwapTiers}
        self._agent_options = agents
        self._closed = False
        self._make_parts(pace, actuators or ActuatorOptions(), None if read_only else agents)

    def _make_parts(self, pace: Pace, actuators: ActuatorOptions, agents: AgentOptions | None) -> None:
        """``agents``: None also for a run that only looks on: it needs no key, and may not read it."""
        log, clock, told = self._log, self._clock, list[ev.Event]()
        self._bell = Bell()
        hands = Hands(self, self._client, self._bell)
        self.notes = Notes(self.system, log)
        self.commands = Commands(self._client, self.title, log)
        self._looker = Looker(
            self.system, lambda before: self.look(before), self.commands, self._bell, pace, log=log,
            clock=clock,
        )  # fmt: skip
        self.actuators = Actuators(actuators, hands, log=log, clock=clock)
        self.agents = Agents(agents, poke=self._bell.stir, log=log, clock=clock)
        self.moving = Moves(hands, log=log, clock=clock)
        self.overlay: Overlay[DetailT] = Overlay(self.actuators, self.agents)
        self.flights: Flights[PayloadT] = Flights(
            self, self.moving, self.notes, told, start_timeout=pace.start_timeout, log=log, clock=clock
        )
        routes = Routes(timeout=pace.start_timeout, log=log, clock=clock)
        orders = self._orders = Orders(
            self, self.overlay, self.flights, routes, self.commands, self.moving, self.actuators,
            self.agents, told,
            soon=self._looker.confirm_soon, log=log, clock=clock,
        )  # fmt: skip
        self.guard: Guard[Any] = Guard(self, self.overlay, agents=self._agent_options is not None)
        hands.overlay, hands.orders = self.overlay, orders
        self._wishes = Wishes(
            self, orders, self.flights, self.actuators, told, start_timeout=pace.start_timeout, log=log,
            clock=clock,
        )  # fmt: skip
        self._heart = Heart(None, 0.0, log)
        if isinstance(pace, HeartbeatOptions) and not self.read_only:
            self._heart = Heart(heartbeat_file(pace), pace.patience, log)
        self._loop = Loop(
            self, self._looker, self.overlay, self.flights, routes, self._wishes, self.commands,
            self.actuators, self.agents, self.moving, self.notes, self._bell, self._heart, told,
            read_only=self.read_only, log=log, clock=clock,
        )  # fmt: skip

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[d.Decision]]:
        able = cls.capabilities
        if options:
            read = validated(cls.Options, options)
            able = able | capabilities(getattr(read, "actuators", None), drains=cls.drains)
            if getattr(read, "agents", None) is not None:
                able = able | {d.SwapTiers}
            if getattr(read, "power", False):
                able = able | {d.PowerDown, d.PowerUp}
        return able

    @classmethod
    def lacking(cls) -> list[str]:
        words = {"system": "the word for the system in the log", "title": "the system's name for people"}
        unsaid = [f'{name} = "...", {what}' for name, what in words.items() if not hasattr(cls, name)]
        return [*super().lacking(), *unsaid]

    # ------------------------------------------------------------------ before the first look

    def use_handlers(self, handlers: Iterable[MigrationHandler], gives: frozenset[type[d.Decision]]) -> None:
        self.moving.use(handlers)
        self._given = gives
        self.capabilities = self.capabilities | gives

    def tell_words(self, words: Iterable[str]) -> None:
        self.words = frozenset(words)

    def tiers_before(self, tiers: Mapping[str, str]) -> None:
        self.agents.adopt(tiers)

    def moving_before(self, decisions: Mapping[str, d.Decision]) -> None:
        self.moving.adopt(decisions)

    def asked_before(self, starts: Mapping[str, float]) -> None:
        self._wishes.asked = dict(starts)

    def submitted_before(self, known: submissions.Known) -> None:
        self._wishes.submitted = known

    def wished_before(self, wishes: Mapping[str, WishedFrequency]) -> None:
        self._wishes.frequencies = dict(wishes) if d.SetFrequency in self.capabilities else {}

    def highest_epoch(self, *, above: int | None) -> Seen:
        seen, heard = self.epoch_seen(), self._heart.highest_epoch()
        highest = max(seen.epoch, heard)
        if above is None or highest <= above:
            return Seen(highest)
        if heard < highest:
            return seen
        # A daemon that writes a heartbeat has none if it does not write it.
        return Seen(highest, f"it writes its heartbeat {self._heart.path}" if self._heart.is_alive() else "")

    def lead(self, epoch: int, name: str) -> None:
        def superseded(found: int) -> None:
            self.commands.give_up(found)
            self._bell.stir()

        self._heart.lead(epoch, superseded)
        self._client.watch = self._heart.watch
        self._client.lead(epoch, name, superseded, self._log)

    def leave(self) -> None:
        if not self._client.lost:
            with contextlib.suppress(HeadwayError):
                self._client.fence.leave()

    # ------------------------------------------------------------------ the loop

    def now(self) -> float:
        """The time that everything here goes by, absolute seconds; it never goes back."""
        return self._clock()

    def describe(self) -> ClusterDescription:
        name = self.learn()
        look = first_look(self)
        shown = self._loop.describe(look)
        return ClusterDescription(
            name=name,
            pools=tuple(shown.pools.values()),
            nodes=tuple(shown.nodes.values()),
            reservations=tuple(shown.reservations.values()),
            licences=tuple(shown.licences.items()),
            switches=self.switches(shown.nodes),
            enters_reservations=self.enters_reservations,
            shares_out=self.shares_out,
            moves_take_time=True,
            suspended_lend=self.suspended_lend,
            numbered=True,
        )

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        return None if self._closed else self._loop.wait(deadline)

    def apply(self, now: float, decisions: Sequence[d.Decision]) -> Sequence[Outcome]:
        outcomes = self._orders.apply(now, decisions)
        self._looker.confirm_soon()
        self._looker.hold_off()
        return outcomes

    def wake(self) -> None:
        self._bell.wake()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._heart.close()
        self.moving.close()
        self.agents.close()
        self._client.close()
        self.actuators.close()
        self._looker.close()
        self._bell.close()

    # ------------------------------------------------------------------ what is asked about the cluster

    def looked(self, job_id: str) -> tuple[float, float] | None:
        return self.overlay.times

    def check_agents(self) -> list[Check]:
        """Whether the nodes' agents answer; nothing for a site without agents."""
        if self._agent_options is None:
            return []
        try:
            agents = Agents(self._agent_options, poke=self._bell.stir, log=self._log, clock=self._clock)
        except UserError as error:
            return [Check("node agents", False, str(error), "run as the service's user; chmod 600")]
        try:
            return agents.check(self.look(None).snapshot.nodes)
        finally:
            agents.close()


def validated(kind: type[OptionsT], options: OptionsT | Mapping[str, Any]) -> OptionsT:
    """The options as a validated model. Raises :class:`UserError` naming each key that is wrong."""
    if isinstance(options, kind):
        return options
    try:
        return kind.model_validate(dict(cast(Mapping[str, Any], options)))
    except ValidationError as error:
        raise UserError(explain_validation(error, "cluster.options", kind)) from error
