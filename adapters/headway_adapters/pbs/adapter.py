"""The PBS adapter: looks, tells what happened, starts jobs on chosen vnodes, confirms the starts.

The control protocol: the administrator switches the server's own scheduling off (``qmgr -c "set server
scheduling = False"``), so PBS starts nothing by itself. A start is ``qrun -H '(vnode:ncpus=4)+...' JOB``;
the next looks confirm by the job's state and ``exec_vnode`` that it runs. Looking, waiting and
confirming are every adapter's (:mod:`headway_adapters.polling`).

``qrun`` checks nothing: it starts a held job, and puts a job on a vnode that is full, without a word. So
the adapter checks once more itself, against its last look: the job is queued, it is not held, the
vnodes are usable and have that many processors and that much memory left, all that is on its way
counted. For the same reason a job in the background is started like any other, on vnodes that others have;
with agents on the nodes each tier has room of its own (:mod:`headway_adapters.polling.room`).

Each command takes a privileged port for a minute, so a look takes two of them, and starts beyond a budget
(:mod:`headway_adapters.pbs.budget`) have their turn after a later look.

Nothing needs to be taken over or held, and so nothing has to be undone when a start does not happen.
The jobs' ends come from PBS's history (``job_history_enable``); a job that is gone without a word there
has vanished.

An outage (server down, hanging, or talking nonsense) is not news about jobs: all that comes
of it is `ClusterSilent`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway import decisions as d
from headway.adapter import Check, Outcome, Seen, StartsWait
from headway.model import ClusterDescription, NodeDescription, SwitchDescription
from headway_adapters.pbs import checks, reader, world, writer
from headway_adapters.pbs.client import PbsClient
from headway_adapters.pbs.confirmations import Confirmations
from headway_adapters.pbs.fence import PbsFence
from headway_adapters.pbs.give_back import PbsGivingBack
from headway_adapters.pbs.look import PbsLook
from headway_adapters.pbs.looking import Looking
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.pbs.placement_sets import placement_sets
from headway_adapters.pbs.starting import Later, Starting
from headway_adapters.pbs.turns import Turns
from headway_adapters.polling import Launch, Look, PollingAdapter, validated
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.transport import Transport

CAPABILITIES: frozenset[type[d.Decision]] = frozenset(
    {
        d.Start, d.Hold, d.Release, d.Kill, d.Cancel, d.Requeue, d.Suspend, d.Resume, d.SetTimeLimit,
        d.Resize, d.Signal, d.Route,
    }
)  # fmt: skip


#: A job's number, with that of an element or the brackets of an array, without the server's name.
_NUMBER = re.compile(r"[0-9]+(?:\[[0-9]*\])?")


class PbsAdapter(PollingAdapter[reader.Detail, Later | None]):
    """A PBS cluster. See the module's text for how it is driven."""

    system = "pbs"
    title = "PBS"
    counts_restarts = True
    drains = True
    oversubscribes = True
    Options = PbsOptions
    gives_back = PbsGivingBack

    _client: PbsClient

    #: The capabilities of every configuration; an instance may have more or, with Torque, fewer.
    capabilities = CAPABILITIES

    def __init__(
        self,
        options: PbsOptions | Mapping[str, Any],
        *,
        read_only: bool = False,
        log: Any = None,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``read_only``: monitor mode; no command that changes anything is ever run.

        Raises :class:`UserError` for options that are wrong.
        """
        self.options = validated(PbsOptions, options)
        client = PbsClient(self.options, read_only=read_only, transport=transport)
        super().__init__(
            client, self.options, actuators=self.options.actuators, agents=self.options.agents,
            read_only=read_only, log=log, clock=clock,
        )  # fmt: skip
        self.capabilities = _adjusted(self.capabilities, self.options)
        self._confirmations = Confirmations()
        self._turns = Turns(self.system, self.options.commands_per_minute, log=self._log)
        self._looking = Looking(client, self.options, self.flights, self._learn, clock=self._clock)
        self._starting = Starting(
            client, self.guard, self.overlay, self.flights, self.commands, self._turns,
            lambda: self._torque, confirm_soon=self._looker.confirm_soon, clock=self._clock,
        )  # fmt: skip

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[d.Decision]]:
        able = super().capable_of(cluster, options)
        return _adjusted(able, validated(PbsOptions, options)) if options else able

    @classmethod
    def full_job_id(cls, given: str, cluster: str) -> str:
        return f"{given}.{cluster}" if _NUMBER.fullmatch(given) and cluster else given

    # ------------------------------------------------------------------ several daemons

    def epoch_seen(self) -> Seen:
        fence = self._client.fence
        return fence.seen() if isinstance(fence, PbsFence) and not self._torque else Seen()

    # ------------------------------------------------------------------ looking

    def learn(self) -> str:
        self._looking.world = self._learn()
        return self._looking.world.name

    def _learn(self) -> world.World:
        return world.learn(self._client, self.options, self.words)

    @property
    def _torque(self) -> bool:
        return self._looking.world is not None and self._looking.world.torque

    def switches(self, nodes: Mapping[str, NodeDescription]) -> tuple[SwitchDescription, ...]:
        learned = self._looking.world
        return placement_sets(learned.group_keys, nodes) if learned is not None else ()

    def look(self, before: Snapshot | None) -> PbsLook:
        return self._looking.look(before)

    def drives(self, pool: str) -> bool:
        return pool in self.options.queues

    # ------------------------------------------------------------------ starts

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[Later | None]]:
        return self._starting.start_all(starts)

    def given_up(self, job: SnapshotJob, detail: reader.Detail | None) -> str:
        if job.held_by in ("user", "administrator"):
            return f"it was held before it started ({job.reason})"
        return ""

    def tend(self, look: Look[reader.Detail], in_flight: set[str]) -> None:
        self._starting.tend(look)

    def starts_waiting(self) -> Sequence[StartsWait]:
        return self._turns.waiting()

    # ------------------------------------------------------------------ other decisions

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        job_id = getattr(decision, "job_id", "")
        known, detail = self.overlay.known(job_id), self.overlay.detail(job_id)
        if isinstance(decision, d.Suspend) and known is not None and known.state == "suspended":
            return Outcome(True, "it is suspended already")
        if isinstance(decision, d.Resume) and known is not None and known.state == "running":
            return Outcome(True, "it runs already")
        seen = self.overlay.as_it_is
        look = seen if isinstance(seen, PbsLook) else PbsLook(Snapshot(now))
        reservation = ""
        if isinstance(decision, d.Reserve):
            if why_not := self._confirmations.why_not(now):
                return Outcome(False, why_not)
            reservation = look.reservations.get(decision.reservation.id, "")
        elif isinstance(decision, d.Unreserve | d.Bind):
            reservation = look.reservations.get(decision.reservation_id, "")
        try:
            plan = writer.plan(
                decision,
                now=now,
                torque=self._torque,
                running_on=known.placement if known is not None else (),
                hosts=look.hosts,
                processors={name: node.processors for name, node in look.snapshot.nodes.items()},
                reservation=reservation,
                notes=self.overlay.as_written(job_id, detail.notes if detail is not None else ""),
                pending=detail,
            )
        except writer.Unfit as error:
            return Outcome(False, str(error))
        outcome = self.commands.run_steps(plan.steps, already=plan.already, denials=plan.denials)
        if isinstance(decision, d.Reserve):
            self._confirmations.heard(outcome, self.now())
        return self.overlay.remember(plan.noted, job_id, outcome)

    def signalling(self, job_id: str, name: str) -> tuple[str, ...]:
        return writer.signal(job_id, name)

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        return writer.offline(node, reason, torque=self._torque)

    def undrain(self, node: str) -> tuple[str, ...]:
        return writer.online(node, torque=self._torque)

    def check(self) -> list[Check]:
        return [*checks.run(self._client, self.options, self._clock), *self.check_agents()]


def _adjusted(able: frozenset[type[d.Decision]], options: PbsOptions) -> frozenset[type[d.Decision]]:
    """Capabilities as the options add to them and take from them."""
    if options.flavour == "torque":
        return able - {d.Resize}
    able = able | {d.Annotate} if options.notes else able
    return able | {d.Reserve, d.Unreserve, d.Bind} if options.reservations else able
