"""What becomes of decisions: starts together, the others one by one, each with an answer.

Some are the batch system's; others are carried out by the site's commands (frequencies, power), by the
agents on the nodes (tiers) or by a move that takes a while. :meth:`Orders.carry_out` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, cast

import msgspec

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome
from headway.adapter.migration import ON_NODES
from headway.inputs.trail import ids_of
from headway_adapters.polling.actuators import Actuators
from headway_adapters.polling.agents import Agents
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.flights import Flights
from headway_adapters.polling.look import DetailT, PayloadT
from headway_adapters.polling.moves import Moves
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.routes import Routes
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.polling.system import BatchSystem
from headway_adapters.polling.words import Unfit

#: What a job that is being moved is not told by others.
_NOT_WHILE_MOVED = (d.Suspend, d.Resume, d.Resize, d.Signal)
#: Beyond so many limits on record those of jobs that are gone are forgotten.
_LIMITS = 1000


class Orders(Generic[DetailT, PayloadT]):
    """Carries decisions out. On the adapter's thread."""

    def __init__(
        self, system: BatchSystem[DetailT, PayloadT], overlay: Overlay[DetailT],
        flights: Flights[PayloadT], routes: Routes, commands: Commands, moves: Moves, actuators: Actuators,
        agents: Agents, told: list[ev.Event], *, soon: Callable[[], None], log: Any,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``told``: events that the next answer of the adapter has. ``soon``: makes the next look come soon.
        ``clock``: absolute seconds."""
        self._system = system
        self._overlay = overlay
        self._flights = flights
        self._routes = routes
        self._commands = commands
        self._moves = moves
        self._actuators = actuators
        self._agents = agents
        self._told = told
        self._soon = soon
        self._log = log
        self._clock = clock
        #: Job that waits -> a limit that was ordered for it and that no start was decided with yet.
        self._limits: dict[str, float] = {}

    def apply(self, now: float, decisions: Sequence[d.Decision]) -> list[Outcome]:
        """Carry decisions out in order, starts that follow each other together; tell what is refused."""
        ids = dict(zip(map(id, decisions), ids_of(decisions), strict=False))
        trail: dict[str, list[str]] = {}
        for decision in decisions:
            if (job_id := getattr(decision, "job_id", None)) and id(decision) in ids:
                trail.setdefault(job_id, []).append(ids[id(decision)])
        self._commands.trail = trail
        try:
            outcomes = self._in_order(now, decisions)
        finally:
            self._commands.trail = {}
        refused = [
            (cast(d.AnyDecision, decision), outcome.message)
            for decision, outcome in zip(decisions, outcomes, strict=True)
            if not outcome.accepted
        ]
        self.tell_refused(refused, now, ids)
        return outcomes

    def _in_order(self, now: float, decisions: Sequence[d.Decision]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        at = 0
        while at < len(decisions):
            stop = at
            while stop < len(decisions) and isinstance(decisions[stop], d.Start):
                stop += 1
            if stop > at:
                starts = [x for x in decisions[at:stop] if isinstance(x, d.Start)]
                outcomes += self.start_all(starts)
                at = stop
            else:
                outcomes.append(self.carry_out(decisions[at], now))
                at += 1
        return outcomes

    def tell_refused(
        self, refused: Sequence[tuple[d.AnyDecision, str]], now: float, ids: Mapping[int, str] | None = None
    ) -> None:
        """Tell what the batch system refused and why; of elements of one array (cancelled meanwhile, say)
        the log tells in one line. ``ids``: of decisions, by Python's own id of each."""
        lines: dict[tuple[str, str, str], list[tuple[str | None, str, str | None]]] = {}
        for number, (decision, message) in enumerate(refused):
            self._told.append(ev.DecisionFailed(time=now, decision=decision, message=message))
            job_id: str | None = getattr(decision, "job_id", None)
            job = self._overlay.known(job_id) if job_id else None
            array = job.job.array_id if job is not None else ""
            alike = (array, message.replace(job_id, "")) if job_id and array else ("", str(number))
            lines.setdefault((type(decision).__name__, *alike), []).append(
                (job_id, message, (ids or {}).get(id(decision)))
            )
        for (name, _, _), told in lines.items():
            job_id, message, named = told[0]
            more: dict[str, Any] = {"elements": len(told)} if len(told) > 1 else {}
            if named is not None:
                more["id"] = named
            self._log.warning(f"{self._system.system} refused", decision=name, job=job_id, error=message,
                              **more)  # fmt: skip

    # ------------------------------------------------------------------ starts

    def start_all(self, starts: Sequence[d.Start]) -> list[Outcome]:
        """Ask for starts, each job once."""
        outcomes: dict[int, Outcome] = {}
        first: dict[str, int] = {}
        repeated: dict[int, int] = {}
        fresh: list[int] = []
        for index, start in enumerate(starts):
            earlier = first.setdefault(start.job_id, index)
            if earlier != index:
                if starts[earlier].placement == start.placement:
                    repeated[index] = earlier
                else:
                    outcomes[index] = Outcome(False, f"job {start.job_id} is started twice at once")
            elif start.job_id in self._flights:
                outcomes[index] = Outcome(True, "its start is on its way already")
            else:
                fresh.append(index)
        launches = self._system.start_all([starts[index] for index in fresh]) if fresh else []
        for index, launch in zip(fresh, launches, strict=True):
            outcomes[index] = launch.outcome
            if launch.outcome.accepted:
                known = self._overlay.known(starts[index].job_id)
                restarts = known.restarts if known is not None else 0
                limit = self._planned_limit(starts[index].job_id, known)
                self.took_off(starts[index], cast(PayloadT, launch.payload), restarts, limit=limit)
        outcomes.update((index, outcomes[earlier]) for index, earlier in repeated.items())
        return [outcomes[index] for index in range(len(starts))]

    def took_off(
        self, start: d.Start, payload: PayloadT, restarts: int, asked: float | None = None,
        limit: float | None = None,
    ) -> None:  # fmt: skip
        """A start is on its way. ``asked``: when it was decided, if that was before this run. ``limit``: the
        job's limit that it was decided with, seconds."""
        self._flights.fly(start, payload, restarts, asked, limit)
        self._agents.start(start)

    def _planned_limit(self, job_id: str, known: SnapshotJob | None) -> float | None:
        """The limit that a start was decided with: the one that was told, or one that was ordered since."""
        ordered = self._limits.pop(job_id, 0.0)
        return None if known is None else max(known.job.request.walltime, ordered)

    def _ordered_limit(self, decision: d.SetTimeLimit) -> None:
        """A job has another limit from now on, which the next look shows."""
        job_id, flight = decision.job_id, self._flights.get(decision.job_id)
        if flight is not None:
            flight.limit = max(flight.limit or 0.0, decision.walltime)
            return
        if len(self._limits) >= _LIMITS:
            self._limits = {key: limit for key, limit in self._limits.items() if self._overlay.known(key)}
        known = self._overlay.known(job_id)
        if known is not None and known.state == "pending":
            self._limits[job_id] = decision.walltime

    # ------------------------------------------------------------------ all others

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        """Any decision but a start."""
        if type(decision) not in self._system.capabilities:
            return Outcome(False, self._system.lacks(type(decision)))
        if why := self._barrier(decision):
            return Outcome(False, why)
        if isinstance(decision, d.Migrate | d.Checkpoint):
            return self._move(decision)
        if isinstance(decision, d.SwapTiers):
            return self._agents.swap(decision)
        if isinstance(decision, d.Signal):
            return self._signal_running(decision)
        if isinstance(decision, d.Route):
            return self._route(decision, now)
        problem = self._act(decision)
        if problem is not None:
            return Outcome(not problem, problem)
        outcome = self._system.carry_out(decision, now)
        if outcome.accepted and isinstance(decision, d.SetTimeLimit):
            self._ordered_limit(decision)
        return outcome

    def _barrier(self, decision: d.Decision) -> str:
        """Why a decision does not fit what is under way; "" if it does."""
        if isinstance(decision, d.PowerDown):
            occupants = self._occupants()
            for node in decision.nodes:
                if node in occupants:
                    return f"node {node} is not idle: job {occupants[node]} has it"
        jobs: tuple[str, ...] = ()
        if isinstance(decision, d.SwapTiers):
            jobs = (decision.job_id, decision.other_job_id)
        elif isinstance(decision, _NOT_WHILE_MOVED):
            jobs = (decision.job_id,)
        return next((f"job {job} is being moved" for job in jobs if job in self._moves), "")

    def _occupants(self) -> dict[str, str]:
        """Node -> a job that runs there or is on its way there."""
        found = {node: key for key, f in self._flights.items() for node, _ in f.decision.placement}
        shown = self._overlay.shown
        for key, job in shown.jobs.items() if shown is not None else ():
            if job.state in ON_NODES:
                found.update((node, key) for node, _ in job.placement)
        return found

    def _move(self, decision: d.Migrate | d.Checkpoint) -> Outcome:
        known = self._overlay.known(decision.job_id)
        if known is not None and known.job.request.parts:
            return Outcome(False, f"job {decision.job_id} has several parts, which are not moved")
        return self._moves.begin(decision, known, self._agents.tier_of(decision.job_id))

    def _signal_running(self, decision: d.Signal) -> Outcome:
        """A job that waits gets none: some batch systems would end it in its queue for that."""
        job = self._overlay.known(decision.job_id)
        if job is None or job.state not in ("starting", "running"):
            return Outcome(False, f"job {decision.job_id} does not run")
        return self.signal(decision.job_id, decision.signal)

    def _route(self, decision: d.Route, now: float) -> Outcome:
        """Send a job that waits to another pool; a look tells when it is there."""
        job_id, pool = decision.job_id, decision.pool
        job, last = self._overlay.known(job_id), self._overlay.snapshot
        if job is None or job.state != "pending":
            return Outcome(False, f"job {job_id} does not wait")
        if job_id in self._flights:
            return Outcome(False, f"a start of job {job_id} is on its way")
        if job_id in self._routes:
            return Outcome(True, f"job {job_id} is on its way to another pool already")
        if last is None or pool not in last.pools or not self._system.drives(pool):
            return Outcome(False, f"{pool!r} is not a pool that headway drives")
        outcome = self._system.carry_out(decision, now)
        if outcome.accepted:
            self._routes.ordered(decision)
        return outcome

    def _act(self, decision: d.Decision) -> str | None:
        """Have the site's commands do it: "" or why not; None: it is the batch system's to do."""
        options = self._actuators.options
        if isinstance(decision, d.SetFrequency):
            return self._set_frequency(decision)
        if isinstance(decision, d.PowerDown) and options.power_down is not None:
            return self._actuators.power_down(decision)
        if isinstance(decision, d.PowerUp) and options.power_up is not None:
            return self._actuators.power_up(decision)
        return None

    def _set_frequency(self, decision: d.SetFrequency) -> str:
        flight = self._flights.get(decision.job_id)
        if flight is not None:
            # Done once it is seen to run.
            flight.decision = msgspec.structs.replace(flight.decision, frequency=decision.frequency)
            return ""
        job = self._overlay.known(decision.job_id)
        if job is None or job.state not in ON_NODES:
            return f"job {decision.job_id} does not run"
        return self._actuators.set_frequency(decision, job.placement)

    # ------------------------------------------------------------------ what the moves need

    def order(self, decision: d.Decision) -> Outcome:
        """Carry out what a move needs. A start that is refused, now or later, is told to its move alone."""
        self._soon()
        if isinstance(decision, d.Start):
            return self.start_all([decision])[0]
        if type(decision) not in self._system.capabilities:
            return Outcome(False, self._system.lacks(type(decision)))
        return self._system.carry_out(decision, self._clock())

    def signal(self, job_id: str, name: str) -> Outcome:
        """Send all processes of a running job a signal."""
        try:
            argv = self._system.signalling(job_id, name)
        except Unfit as error:
            return Outcome(False, str(error))
        return self._commands.run_steps([argv])
