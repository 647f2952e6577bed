"""The LSF adapter: looks, tells what happened, carries decisions out, confirms starts.

The control protocol: the administrator inactivates the managed queues (``badmin qinact QUEUE``). Jobs are
still accepted and stay pending, and LSF starts none of them by itself. ``brun`` starts one on the hosts
that headway chose; the next looks confirm that it runs.

``brun`` obeys. It starts held jobs, jobs whose dependency is not met or whose begin time lies ahead, puts
any number of jobs on a full host, and starts a job again that has ended meanwhile. So each start is
checked here once more: hold, dependency, begin time, free slots and the hosts' states against the
last look, and by one ``bjobs`` right before the ``brun`` that the jobs are still pending. What does not
pass is refused. A job that its user cancels between the two is started by OpenLava's and volclava's
``brun`` all the same: its history, which is asked after each ``brun`` that was answered, tells so, and it is
ended again. A job in the background is started like any other, on slots that others have; with agents on
the hosts each tier has room of its own (:mod:`headway_adapters.polling.room`).

A start that does not happen within ``start_timeout`` is taken back by ``bstop`` and ``bresume``: the job
is pending again, held for a moment between the two. A job may stay forced in LSF's eyes after that
(its manuals do not say); should it start late nevertheless, that is told as any start.

The holder of a job. LSF knows one hold (PSUSP), the user's or an administrator's: it keeps headway away from
the job until ``bresume``. No other word is needed for that.

An outage (mbatchd down, hanging, or talking nonsense) is not news about jobs: all that comes
of it is `ClusterSilent`.
Looking, waiting and confirming are every adapter's (:mod:`headway_adapters.polling`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway import decisions as d
from headway.adapter import Check, Outcome
from headway.errors import Failure
from headway.model import ClusterDescription
from headway_adapters.lsf import checks, writer
from headway_adapters.lsf.client import LsfClient
from headway_adapters.lsf.detail import Detail
from headway_adapters.lsf.flavour import POSSIBLE, Flavour, expected
from headway_adapters.lsf.give_back import LsfGivingBack
from headway_adapters.lsf.looking import Looking, LsfLook
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.lsf.power import PowerSaving
from headway_adapters.lsf.requeues import Requeues
from headway_adapters.lsf.starting import Starting
from headway_adapters.polling import Flight, Launch, Look, PollingAdapter, validated
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.polling.words import Argv
from headway_adapters.transport import Transport


class LsfAdapter(PollingAdapter[Detail, Argv]):
    """An LSF cluster. See the module's text for how it is driven."""

    system = "lsf"
    title = "LSF"
    drains = True
    # Its hosts' CPUs decide how brun splits a job over them, and not what is free there: the split is known
    # beforehand (writer.fills), so that other starts need not wait for it (shares_out).
    oversubscribes = True
    Options = LsfOptions
    gives_back = LsfGivingBack

    _client: LsfClient

    #: Of the most able flavour; an instance has the capabilities of the LSF that it finds.
    capabilities = POSSIBLE

    def __init__(
        self,
        options: LsfOptions | Mapping[str, Any],
        *,
        read_only: bool = False,
        log: Any = None,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``read_only``: monitor mode; no command that changes anything is ever run.

        Asks which LSF this is, since its capabilities depend on it; one that does not answer yet is
        thought to be able to do everything. Raises :class:`UserError` for options that are wrong.
        """
        self.options = validated(LsfOptions, options)
        client = LsfClient(self.options, read_only=read_only, transport=transport)
        super().__init__(
            client, self.options, actuators=self.options.actuators, agents=self.options.agents,
            read_only=read_only, log=log, clock=clock,
        )  # fmt: skip
        self._requeues = Requeues()
        self._saving = PowerSaving(self.options.wake_timeout)
        self._looking = Looking(
            client, self.options, self._ask_flavour, self._requeues, self._saving, words=lambda: self.words,
            log=self._log, clock=self._clock,
        )  # fmt: skip
        self._starting = Starting(
            client, lambda: self._looking.world, lambda: self._flavour, self.guard, self.overlay,
            self.flights, self.commands, log=self._log, clock=self._clock,
        )  # fmt: skip
        self._flavour = expected(self.options)
        try:
            self._ask_flavour()
        except Failure:
            # Told by describe() and check(), which need the answer.
            self._take(self._flavour)

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[d.Decision]]:
        if not options:
            return cls.capabilities
        read = validated(LsfOptions, options)
        return expected(read).capabilities(read)

    def _ask_flavour(self) -> tuple[Flavour, str]:
        """Which LSF this is, and the cluster's name; from then on its capabilities are known."""
        flavour, cluster = checks.flavour(self._client, self.options)
        self._take(flavour)
        return flavour, cluster

    def _take(self, flavour: Flavour) -> None:
        self._flavour = flavour
        self.capabilities = flavour.capabilities(self.options) | self._given

    def lacks(self, kind: type[d.Decision]) -> str:
        return self._flavour.lacks(kind)

    # ------------------------------------------------------------------ looking

    def learn(self) -> str:
        return self._looking.learn().name

    def look(self, before: Snapshot | None) -> LsfLook:
        return self._looking.look(before)

    def tend(self, look: Look[Detail], in_flight: set[str]) -> None:
        self._starting.settle_hidden()

    def drives(self, pool: str) -> bool:
        return pool in self.options.queues

    # ------------------------------------------------------------------ starts

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[Argv]]:
        return self._starting.start_all(starts)

    def given_up(self, job: SnapshotJob, detail: Detail | None) -> str:
        if detail is not None and detail.held:
            return f"it was held before it started ({job.reason})"
        return ""

    def take_back(self, flight: Flight[Argv], *, late: bool) -> bool:
        return self._starting.take_back(flight, late=late)

    # ------------------------------------------------------------------ other decisions

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        job_id = getattr(decision, "job_id", "")
        known, detail = self.overlay.known(job_id), self.overlay.detail(job_id)
        snapshot = self.overlay.snapshot
        existing = None
        if isinstance(decision, d.Reserve) and snapshot is not None:
            existing = snapshot.reservations.get(decision.reservation.id)
        elif isinstance(decision, d.Bind) and snapshot is not None:
            existing = snapshot.reservations.get(decision.reservation_id)
        slots = {name: node.processors for name, node in snapshot.nodes.items()} if snapshot else {}
        try:
            plan = writer.plan(
                decision,
                now=now,
                slots=slots,
                reservation_exists=existing is not None and existing.ours,
                placement=known.placement if known is not None else (),
                pending=known is not None and known.state == "pending",
                ibm=self._flavour.ibm,
                description=self.overlay.as_written(job_id, detail.description if detail is not None else ""),
            )
        except writer.Unfit as error:
            return Outcome(False, str(error))
        if isinstance(decision, (d.PowerDown, d.PowerUp)) and self.actuators.options.dry:
            for argv in plan.steps:
                self.actuators.say_dry(argv)
            return Outcome(True, "dry: only logged")
        outcome = self.commands.run_steps(plan.steps, already=writer.ALREADY)
        self.overlay.remember(plan.noted, job_id, outcome)
        if isinstance(decision, d.Requeue) and outcome.accepted:
            self._requeues.ordered(decision.job_id)
        if isinstance(decision, d.PowerUp) and outcome.accepted:
            self._saving.resumed(decision.nodes, snapshot.power if snapshot is not None else {})
        elif isinstance(decision, d.PowerDown) and outcome.accepted:
            self._saving.suspended(decision.nodes)
        return outcome

    def signalling(self, job_id: str, name: str) -> tuple[str, ...]:
        return writer.signal(job_id, name)

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        return writer.drain(node, reason)

    def undrain(self, node: str) -> tuple[str, ...]:
        return writer.undrain(node)

    def check(self) -> list[Check]:
        return [*checks.run(self._client, self.options, self._clock), *self.check_agents()]
