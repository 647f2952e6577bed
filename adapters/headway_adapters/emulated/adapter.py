"""A discrete-event cluster in virtual time, behind the interface of a batch system.

The cluster checks every start itself (it is the machine, the scheduler only believes to know it)
and refuses what breaks its rules with a :class:`~headway.events.DecisionFailed`: see :mod:`.guard`.

What happens when stands in :mod:`.moments`; what it does stands in the file that is named after it: starts,
ends, holds, suspension, limits, sizes, rates, reservations, sleep, failures, commands. :mod:`.machine` is
what they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec
import numpy as np

from headway import decisions as dec
from headway import events as ev
from headway.adapter import Check, ClusterAdapter, Outcome
from headway.emulation.delays import Delays
from headway.emulation.direct import Course
from headway.model import ClusterDescription
from headway.model.bundles import Oversubscription
from headway.results import Activity, CapacityChange, JobResult, NodePower, PartitionStep
from headway.workload.jobs import Begun, Follows, TraceCommand, TraceJob
from headway.workload.sharing import Sharing
from headway_adapters.emulated import faults as _faults
from headway_adapters.emulated.binding import Binding
from headway_adapters.emulated.bundles import Bundles
from headway_adapters.emulated.commands import Commands
from headway_adapters.emulated.dependencies import Dependencies
from headway_adapters.emulated.ends import Ends
from headway_adapters.emulated.execution import Execution
from headway_adapters.emulated.failures import Failures
from headway_adapters.emulated.guard import Guard
from headway_adapters.emulated.holds import Holds
from headway_adapters.emulated.limits import Limits
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.moments import Moments
from headway_adapters.emulated.partitions import UNABLE, Partitions, dedicated
from headway_adapters.emulated.physics import Physics
from headway_adapters.emulated.rates import Rates
from headway_adapters.emulated.recorded import Recorded
from headway_adapters.emulated.reservations import Reservations
from headway_adapters.emulated.routes import Routes
from headway_adapters.emulated.saving import Saving
from headway_adapters.emulated.sizes import Sizes
from headway_adapters.emulated.sleep import Sleep
from headway_adapters.emulated.starts import Starts
from headway_adapters.emulated.suspension import Suspension
from headway_adapters.emulated.telling import Telling
from headway_adapters.emulated.tiers import Tiers

_Start = dec.Start
_ACCEPTED = Outcome(accepted=True)
#: Moves that count from their decision on: their confirmation is no news that the scheduler waits for.
_FORESEEN = (dec.SwapTiers, dec.Migrate)


class EmulatedAdapter(ClusterAdapter):
    """The emulated cluster as an adapter."""

    Faults = _faults.Faults

    capabilities = frozenset({
        dec.Start, dec.Hold, dec.Release, dec.Suspend, dec.Resume, dec.Requeue, dec.Kill, dec.Cancel,
        dec.SetTimeLimit, dec.Resize, dec.Reserve, dec.Unreserve, dec.SwapTiers, dec.Migrate,
        dec.SubmitSubjob, dec.Signal, dec.Route, dec.Bind,
    })  # fmt: skip
    #: Where jobs can be suspended at all.
    suspended_lend = True

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[dec.Decision]]:
        """Frequencies and sleep need an energy profile; partitions are booted and given back as nodes are
        woken and put to sleep, and keep jobs where they are."""
        if cluster.wiring is not None:
            return cls.capabilities.difference(UNABLE) | {dec.PowerDown, dec.PowerUp}
        if cluster.energy is None:
            return cls.capabilities
        return cls.capabilities | {dec.SetFrequency, dec.PowerDown, dec.PowerUp}

    def __init__(
        self, cluster: ClusterDescription, jobs: Sequence[TraceJob], *,
        commands: Sequence[TraceCommand] = (), chains: Mapping[str, Follows] | None = None,
        physics: Sequence[Physics] = (), faults: _faults.Faults | None = None, start: float | None = None,
        rng: np.random.Generator | None = None, running: Sequence[Begun] = (), sharing: Sharing | None = None,
        power: Mapping[str, str] | None = None, delays: Delays | None = None, sharing_seed: int = 0,
        oversubscription: Oversubscription | None = None, happens: Sequence[ev.Event] = (),
    ) -> None:  # fmt: skip
        """``jobs`` in order of submission, ``commands`` their users' elastic commands; ``rng`` draws
        the faults. ``chains``: jobs that come when others have ended, by id (:mod:`.chains`).

        ``running`` are jobs of the workload that run already when the emulation begins; ``start`` is when it
        begins (default: the first submission). ``power`` are the power states of nodes that are not on then;
        without an energy profile it says nothing. ``delays``: how long starts take, and what happens until
        it is known; by default no time. ``sharing``: what it costs jobs to share processors
        (:mod:`headway.workload.sharing`), drawn by ``sharing_seed``; with it estimates bound work, and how
        far jobs are is told. ``oversubscription``: what it costs an application to run on fewer processors
        than it has processes, and to be moved (:mod:`headway.model.bundles`). ``happens``: :mod:`.recorded`.

        Raises ValueError for jobs out of order, :class:`UserError` for faults that the cluster cannot have.
        """
        self.capabilities = self.capable_of(cluster)
        self.suspended_lend = {dec.Suspend, dec.Resume} <= self.capabilities
        self._faults = faults or _faults.Faults()
        self._immediate = self._faults.latency == 0 and self._faults.failure_rate == 0
        self._rng = rng if rng is not None else np.random.default_rng(0)
        self._machine = machine = Machine(cluster, dedicated(cluster, jobs), start, chains)
        self._delays = delays
        self._telling = None if delays is None else Telling(machine.agenda, delays, known=start is not None)
        self._rates = Rates(machine, physics)
        said = Commands(machine, commands, self._faults.latency)
        self._bundles = bundles = Bundles(machine, oversubscription or Oversubscription())
        ends = Ends(machine, said, bundles)
        failures = Failures(machine, ends, self._faults, self._rng)
        reservations, dependencies, saving = Reservations(machine), Dependencies(machine), Saving(machine)
        guard = Guard(machine, reservations, dependencies, self._faults.licences)
        #: Lets pending jobs go to other pools.
        self.routes = Routes(machine)
        self._recorded = Recorded(machine, guard, reservations, happens)
        self._tiers = tiers = Tiers(machine, guard, self._rates, sharing, Random(sharing_seed))
        self._starts = starts = Starts(machine, guard, self._rates, tiers, bundles)
        if running:
            starts.begin_with(running)
        sleep = Sleep(machine, failures)
        sleep.begin_asleep(power or {})
        #: What carries out a decision; it returns why not, or "".
        self._actions = _actions(machine, starts, ends, sleep, self._rates, said, tiers, bundles)
        self._actions |= _of_queues(machine, reservations, self.routes) | {dec.Signal: saving.signal}
        self._partitions = None
        if cluster.wiring is not None:
            self._partitions = Partitions(machine, starts, ends, guard, failures, self._faults, self._rng)
            self._partitions.begin_with([begun.job_id for begun in running])
            able = {**self._actions, **self._partitions.actions(ends)}
            self._actions = {kind: action for kind, action in able.items() if kind not in UNABLE}
        self._start, self._saving = self._actions[dec.Start], saving
        #: Its time: a federation lets several clusters go on together by it.
        self.moments = Moments(
            machine, ends.complete, tiers, dependencies, failures, self._partitions,
            tells_later=self._telling is not None,
        )  # fmt: skip

    def use_handlers(self, handlers: Iterable[Any], gives: frozenset[type[dec.Decision]]) -> None:
        """Moves need no handler here, and jobs that a handler suits can be saved."""
        if dec.Checkpoint in gives and dec.Requeue in self._actions:
            self._saving.use(handlers)
            self._actions[dec.Checkpoint] = self._saving.checkpoint
            self.capabilities = self.capabilities | {dec.Checkpoint}

    def tell_policy(self) -> None:
        """It is told where it was recorded, and nowhere else."""
        if not self._recorded.tells_policy:
            super().tell_policy()

    # ------------------------------------------------------------------ what is told

    def describe(self) -> ClusterDescription:
        return msgspec.structs.replace(self._machine.cluster, suspended_lend=self.suspended_lend)

    def check(self) -> list[Check]:
        machine = self._machine
        size = ", ".join(
            f"{p.name}: {p.processors or machine.nodes.count(p.name)[0]} processors"
            for p in machine.cluster.pools
        )
        return [Check("emulated cluster", True, f"{size}; {len(machine.arrivals.jobs)} jobs")]

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        telling, moments = self._telling, self.moments
        if telling is None:
            return moments.next_told(deadline)
        while True:
            moment = moments.next(deadline)
            if moment is None:
                return None
            now, happened = moment
            events = telling.told(now, happened)
            if events or (deadline is not None and now >= deadline):
                return now, events

    # ------------------------------------------------------------------ what is done

    def apply(self, now: float, decisions: Sequence[dec.Decision]) -> Sequence[Outcome]:
        machine = self._machine
        if not self._immediate:
            for decision in decisions:
                if self._rng.random() < self._faults.failure_rate:
                    machine.agenda.at(now + self._faults.latency, self._fail_to_carry_out, decision)
                else:
                    machine.agenda.at(now + self._faults.latency, self._carry_out, decision)
            return [_ACCEPTED] * len(decisions)
        outcomes = []
        begins = self._begins(now, decisions) if self._delays is not None else None
        for decision in decisions:
            if type(decision) is _Start:  # the common case first
                if begins is not None:
                    machine.agenda.at(next(begins), self._carry_out, decision)
                    outcomes.append(_ACCEPTED)
                    continue
                refusal = self._start(decision)
                if refusal:
                    outcomes.append(machine.refuse(decision, refusal))
                    self.moments.urgent = True
                else:
                    outcomes.append(_ACCEPTED)
            else:
                told = len(machine.news)
                outcome = self._carry_out(decision)
                outcomes.append(outcome)
                if len(machine.news) > told and not (outcome.accepted and self._foreseen(decision)):
                    self.moments.urgent = True
        if self._tiers.used:
            self._tiers.settle()
        return outcomes

    def _foreseen(self, decision: dec.Decision) -> bool:
        """Whether the scheduler knows already what has become of it."""
        return isinstance(decision, _FORESEEN) and decision.job_id not in self._bundles

    def _begins(self, now: float, decisions: Sequence[dec.Decision]) -> Iterator[float]:
        """When each of the starts begins."""
        assert self._delays is not None
        return iter(self._delays.begin(now, [d for d in decisions if isinstance(d, _Start)]))

    def _carry_out(self, decision: Any) -> Outcome:
        action = self._actions.get(type(decision))
        if action is None:
            refusal = f"the emulated cluster cannot carry out {type(decision).__name__}"
        else:
            refusal = action(decision)
        return self._machine.refuse(decision, refusal) if refusal else _ACCEPTED

    def _fail_to_carry_out(self, decision: dec.Decision) -> None:
        self._machine.refuse(decision, "injected failure: the command was refused")

    def take_over(self, course: Course) -> None:
        """Go on from where a run is that began without this machine, on which nothing has happened."""
        self.moments.reach(course.now, alive=True)
        self._starts.take_over(course)

    def submit(self, job: TraceJob) -> None:
        """A further job, which was unknown when the emulation began.

        Raises ValueError when it is submitted in the past or before a job of the workload.
        """
        self._machine.arrivals.add(job, self._machine.now)

    # ------------------------------------------------------------------ what comes out

    @property
    def now(self) -> float:
        """Seconds of the run's clock."""
        return self._machine.now

    @property
    def running(self) -> Mapping[str, Execution]:
        """What runs, by job id."""
        return self._machine.running

    @property
    def capacity(self) -> list[CapacityChange]:
        """Changes of the usable processors so far."""
        return self._machine.capacity

    @property
    def activities(self) -> list[Activity]:
        """What jobs did before they changed, where there is an energy profile."""
        return self._machine.activities

    @property
    def power(self) -> list[NodePower]:
        """Changes of nodes' power states so far."""
        return self._machine.power.log if self._machine.power is not None else []

    @property
    def partitions(self) -> list[PartitionStep]:
        """What became of partitions so far, on a machine that has them."""
        return self._partitions.steps if self._partitions is not None else []

    @property
    def unsubmitted(self) -> Mapping[str, Follows]:
        """Jobs that have not come because the jobs that they follow have not ended."""
        return self._machine.arrivals.held_back

    def reconsider(self, execution: Execution) -> None:
        """What has a say in a running job's rate has changed: ask it again, move the job's completion."""
        self._rates.reconsider(execution)

    def results(self) -> list[JobResult]:
        """One record for each job submitted so far, in order of submission; subjobs are in their jobs'."""
        return self._machine.results()


def _of_queues(
    machine: Machine, reservations: Reservations, routes: Routes
) -> dict[type[dec.Decision], Callable[[Any], str]]:
    """What carries out decisions that concern no execution."""
    return {
        dec.Reserve: reservations.reserve,
        dec.Unreserve: reservations.unreserve,
        dec.Route: routes.route,
        dec.Bind: Binding(machine, reservations).bind,
    }


def _actions(
    machine: Machine, starts: Starts, ends: Ends, sleep: Sleep, rates: Rates, said: Commands, tiers: Tiers,
    bundles: Bundles,
) -> dict[type[dec.Decision], Callable[[Any], str]]:  # fmt: skip
    """What carries out each kind of decision about jobs and nodes on a machine of nodes."""
    holds, suspension = Holds(machine), Suspension(machine)
    return {
        dec.Start: starts.start,
        dec.Hold: holds.hold,
        dec.Release: holds.release,
        dec.Suspend: suspension.suspend,
        dec.Resume: suspension.resume,
        dec.Requeue: ends.requeue,
        dec.Kill: ends.kill,
        dec.Cancel: ends.kill,
        dec.SetTimeLimit: Limits(machine, said).set_time_limit,
        dec.Resize: Sizes(machine).resize,
        dec.SwapTiers: tiers.swap,
        dec.Migrate: lambda move: (bundles if move.job_id in bundles else tiers).migrate(move),
        dec.SubmitSubjob: bundles.submit,
        dec.SetFrequency: rates.set_frequency,
        dec.PowerDown: sleep.power_down,
        dec.PowerUp: sleep.power_up,
    }
