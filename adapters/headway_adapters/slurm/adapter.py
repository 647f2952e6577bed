"""The Slurm adapter: looks, tells what happened, carries decisions out, confirms starts.

The control protocol: every job of a managed partition is held as administrator, so Slurm starts
nothing by itself. A start pins the job to its nodes and releases it; the next looks confirm that
it runs. One that stays pending is held again and its node list is given back, so that nothing
ever starts later than it was decided.

The holder of a job. An administrator's hold (``JobHeldAdmin``) is headway's unless its AdminComment
begins with the hold marker (option ``hold_marker``, "hold"). To have headway leave a job alone, an
operator writes ``scontrol update JobId=J AdminComment="hold: why"``, and ends that with
``AdminComment=``. A user's hold (``JobHeldUser``: ``sbatch --hold``, ``scontrol hold``) is
respected until the user releases the job; then headway takes it over by holding it itself.
The submit filter's hold looks like a user's and is told apart by its AdminComment, or by the filter's
word at the end of the user's comment. A running job is held, too: that changes nothing until it is
requeued, and then Slurm does not start it by itself, whether headway is there or not.

An outage (slurmctld down, hanging, or talking nonsense) is not news about jobs: all that comes
of it is `ClusterSilent`. Looking, waiting and confirming are every adapter's
(:mod:`headway_adapters.polling`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headway import decisions as d
from headway import events as ev
from headway.adapter import Check, Oddity, Outcome, Seen
from headway.model import NodeDescription, SwitchDescription
from headway_adapters.polling import Flight, Launch, Look, PollingAdapter, validated
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.slurm import checks, reader, world, writer
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.custody import Custody
from headway_adapters.slurm.give_back import SlurmGivingBack
from headway_adapters.slurm.handback import Handback, Pinned
from headway_adapters.slurm.intake import SlurmIntake
from headway_adapters.slurm.looking import Looking, SlurmLook
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.policy import Policy
from headway_adapters.slurm.power import Power
from headway_adapters.slurm.refusals import Refusals
from headway_adapters.slurm.resubmission import SlurmResubmission
from headway_adapters.slurm.shown_starts import Pacing, ShownStarts
from headway_adapters.slurm.starting import Starting
from headway_adapters.slurm.unmet import Unmet
from headway_adapters.transport import Transport

#: What slurmctld gives as the reason of a node on which a job was launched that it has already.
_TWICE = "duplicate jobid"

CAPABILITIES: frozenset[type[d.Decision]] = frozenset(
    {
        d.Start, d.Hold, d.Release, d.Kill, d.Cancel, d.Requeue, d.Suspend, d.Resume, d.SetTimeLimit,
        d.Annotate, d.Resize, d.Signal, d.Reserve, d.Unreserve, d.Route,
        d.Bind,
    }
)  # fmt: skip


class SlurmAdapter(PollingAdapter[reader.Detail, Pinned]):
    """A Slurm cluster. See the module's text for how it is driven."""

    system = "slurm"
    title = "Slurm"
    counts_restarts = True
    drains = True
    enters_reservations = True
    shares_out = True
    suspended_lend = True
    Options = SlurmOptions
    gives_back = SlurmGivingBack

    _client: SlurmClient

    #: The capabilities of every configuration; an instance may have more.
    capabilities = CAPABILITIES

    @classmethod
    def full_job_id(cls, given: str, cluster: str) -> str:
        # As squeue shows what waits of an array: 36_[0-2%1].
        return given.partition("_[")[0]

    def __init__(
        self,
        options: SlurmOptions | Mapping[str, Any],
        *,
        read_only: bool = False,
        log: Any = None,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``read_only``: monitor mode; no command that changes anything is ever run.

        Raises :class:`UserError` for options that are wrong.
        """
        self.options = validated(SlurmOptions, options)
        client = SlurmClient(self.options, read_only=read_only, transport=transport)
        super().__init__(
            client, self.options, actuators=self.options.actuators, agents=self.options.agents,
            read_only=read_only, log=log, clock=clock,
        )  # fmt: skip
        if self.options.power:
            self.capabilities = self.capabilities | {d.PowerDown, d.PowerUp}
        refusals, unmet = Refusals(), Unmet()
        self._policy = Policy(client, self.options.policy_interval)
        self._looking = Looking(
            client, self._learn, self._policy, refusals, unmet, log=self._log, clock=self._clock
        )
        self._handback = Handback(self.overlay, self.commands, refusals, unmet, self._log)
        self._shown = ShownStarts(
            self.commands, self.notes, Pacing(self.options.show_rate), on=self.options.show_starts
        )
        self._starting = Starting(
            self.options, lambda: self._looking.world, self.guard, self.overlay, self.commands,
            self._handback, self.moving, self._shown, self._log,
        )  # fmt: skip
        self._custody = Custody(
            self.commands, self._handback, self.notes, poll_interval=self.options.poll_interval, log=self._log
        )
        self.intake = SlurmIntake(self.options, client)
        self.resubmission = (
            None
            if read_only
            else SlurmResubmission(
                self.options, client, self.commands, self.overlay, lambda: self._looking.world
            )
        )
        self.shows_starts = self.options.show_starts and not read_only
        self._power = Power(self.commands, self.actuators, self._log)

    # ------------------------------------------------------------------ several daemons

    def epoch_seen(self) -> Seen:
        return self._client.fence.seen() or Seen(self._client.highest_mark())

    # ------------------------------------------------------------------ looking

    def learn(self) -> str:
        self._looking.world = self._learn()
        return self._looking.world.name

    def _learn(self) -> world.World:
        notes: set[str] = set()
        learned = world.learn(self._client, self.options, self.words, notes)
        self.notes.odd(notes)
        return learned

    def switches(self, nodes: Mapping[str, NodeDescription]) -> tuple[SwitchDescription, ...]:
        return self._looking.world.switches if self._looking.world is not None else ()

    def look(self, before: Snapshot | None) -> Look[reader.Detail]:
        return self._looking.look(before)

    def tell_policy(self) -> None:
        self._policy.need()

    def news(self, look: Look[reader.Detail]) -> Iterable[ev.Event]:
        policy = look.policy if isinstance(look, SlurmLook) else None
        return self._policy.news(policy, look.snapshot.time)

    def tend(self, look: Look[reader.Detail], in_flight: set[str]) -> None:
        if self.options.power:
            self._power.tend(look.snapshot)
        self._custody.tend(look, in_flight)
        self._shown.tend(look, in_flight)

    def show_starts(self, planned: Iterable[tuple[str, float]]) -> None:
        self._shown.plan(planned)

    def rules(self, pool: str) -> bool:
        return pool in self.options.partitions

    def oddities(self) -> Sequence[Oddity]:
        last = self.overlay.snapshot
        twice = [name for name, node in last.nodes.items() if _TWICE in node.reason.lower()] if last else []
        if last is None or not twice:
            return super().oddities()
        what = "nodes that Slurm drained because a job was started twice on them (Duplicate jobid)"
        return (*super().oddities(), Oddity(self.system, what, len(twice), last.time, ", ".join(twice[:5])))

    def drives(self, pool: str) -> bool:
        return pool in self.options.partitions

    # ------------------------------------------------------------------ starts

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[Pinned]]:
        return self._starting.start_all(starts)

    def adopt(self, look: Look[reader.Detail]) -> Iterable[tuple[d.Start, Pinned, int]]:
        for key, job in look.snapshot.jobs.items():
            detail = look.details.get(key)
            if job.releasing and detail is not None and detail.pin is not None:
                tier = "background" if detail.behind else "foreground"
                start = d.Start(key, job.pinned, "asked for before this run began", tier)
                home = job.job.pool if detail.behind else ""
                pins = tuple(part.pin for _, part in detail.parts)
                pinned = Pinned(detail.pin, True, pins, detail if pins else None, home)
                yield start, pinned, detail.pin.restarts

    def given_up(self, job: SnapshotJob, detail: reader.Detail | None) -> str:
        if detail is not None and detail.refused:
            return f"Slurm says that its nodes can never run it ({job.reason})"
        if detail is not None and detail.held:
            return f"it was held before it started ({job.reason})"
        if detail is not None and detail.unmet:
            return f"Slurm says that its dependency {detail.dependency} is not met"
        return ""

    def take_back(self, flight: Flight[Pinned], *, late: bool) -> bool:
        return self._handback.take_back(flight, late=late)

    def extra_patience(self, start: d.Start) -> float:
        job, learned = self.overlay.known(start.job_id), self._looking.world
        if job is None or not job.job.request.parts or learned is None:
            return 0.0
        # Slurm's backfill scheduler starts them, which looks around now and then.
        return 2 * learned.backfill_interval

    # ------------------------------------------------------------------ other decisions

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        if isinstance(decision, d.PowerDown | d.PowerUp):
            return self._power.change(decision, self.overlay.snapshot)
        job_id = getattr(decision, "job_id", "")
        known, detail = self.overlay.known(job_id), self.overlay.detail(job_id)
        if detail is not None and detail.route is not None and not isinstance(decision, d.Cancel):
            return Outcome(False, f"job {job_id} is on its way between clusters")
        existing = None
        if isinstance(decision, d.Resize) and known is not None and known.job.request.parts:
            return Outcome(False, f"job {job_id} has several components: Slurm does not shrink such a job")
        if isinstance(decision, d.Route) and known is not None and known.job.request.parts:
            return Outcome(False, f"job {job_id} has several components, which Slurm would move one by one")
        if isinstance(decision, d.Reserve) and self.overlay.snapshot is not None:
            existing = self.overlay.snapshot.reservations.get(decision.reservation.id)
        elif isinstance(decision, d.Bind) and self.overlay.snapshot is not None:
            existing = self.overlay.snapshot.reservations.get(decision.reservation_id)
        try:
            plan = writer.plan(
                decision,
                now=now,
                hold_marker=self.options.hold_marker,
                reservation_user=self.options.reservation_user,
                reservation_exists=existing is not None and existing.ours,
                running_nodes=tuple(node for node, _ in known.placement) if known is not None else (),
                waits=detail is not None and detail.managed,
                came=detail.came if detail is not None else "",
                shown=detail.shown if detail is not None else None,
                comment=self.overlay.as_written(job_id, detail.comment if detail is not None else ""),
                comment_free=detail is None or detail.comment_free or isinstance(decision, d.Release),
            )
        except writer.Unfit as error:
            return Outcome(False, str(error))
        gone = (writer.NO_RESERVATION,) if isinstance(decision, d.Unreserve) else ()
        outcome = self.commands.run_steps(plan.steps, already=(*writer.ALREADY, *gone))
        return self.overlay.remember(plan.noted, job_id, outcome)

    def signalling(self, job_id: str, name: str) -> tuple[str, ...]:
        return writer.signal(job_id, name)

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        return writer.drain(node, reason)

    def undrain(self, node: str) -> tuple[str, ...]:
        return writer.undrain(node)

    def check(self) -> list[Check]:
        return [*checks.run(self._client, self.options, self._clock), *self.check_agents()]
