"""How jobs are started on LSF: checked, looked at once more, then forced to run; and how that is undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway import decisions as d
from headway.adapter import Outcome
from headway.adapter.migration import ON_NODES
from headway.errors import Failure
from headway_adapters.lsf import writer
from headway_adapters.lsf.client import LsfClient, is_silence
from headway_adapters.lsf.detail import Detail
from headway_adapters.lsf.flavour import Flavour
from headway_adapters.lsf.looking import LsfLook, World
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling import Flight, Launch
from headway_adapters.polling.commands import Commands, said
from headway_adapters.polling.flights import Flights
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.room import Room
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.polling.startable import Guard, lies_ahead
from headway_adapters.polling.words import Argv
from headway_adapters.transport import Result


class Starting:
    """Starts jobs. On the adapter's thread."""

    def __init__(
        self, client: LsfClient, world: Callable[[], World | None], flavour: Callable[[], Flavour],
        guard: Guard[Detail], overlay: Overlay[Detail], flights: Flights[Argv],
        commands: Commands, *, log: Any, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``clock``: absolute seconds."""
        self._client = client
        self._world = world
        self._flavour = flavour
        self._guard = guard
        self._overlay = overlay
        self._flights = flights
        self._commands = commands
        self._log = log
        self._clock = clock
        #: Slots that only LSF counts, as they were when no start was on its way to the host.
        self._settled: dict[str, int] = {}

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[Argv]]:
        """Check all, look whether they are still pending, then force them to run."""
        launches: dict[int, Launch[Argv]] = {}
        plans: dict[int, writer.Launching] = {}
        room = self._room()
        for index, start in enumerate(starts):
            try:
                plans[index] = self._plan(start, room)
            except writer.Unfit as error:
                launches[index] = Launch(Outcome(False, str(error)))
        self._settle(plans, launches)
        self._still_pending(starts, plans, launches)
        results = self._commands.change([plan.brun for plan in plans.values()]) if plans else []
        for (index, plan), result in zip(plans.items(), results, strict=True):
            outcome = self._launched(result)
            launches[index] = Launch(outcome, plan.unsettle)
            if not outcome.accepted:
                self._unsettle(starts[index].job_id, plan.unsettle)
        if not self._flavour().ibm:
            self._end_again(starts, [at for at in plans if launches[at].outcome == Outcome(True)], launches)
        return [launches[index] for index in range(len(starts))]

    def _settle(self, plans: dict[int, writer.Launching], launches: dict[int, Launch[Argv]]) -> None:
        """Give jobs of LEAST to MOST slots the number that they start with; take out what LSF refuses."""
        asked = [(index, plan.settle) for index, plan in plans.items() if plan.settle]
        results = self._commands.change([argv for _, argv in asked]) if asked else []
        for (index, _), result in zip(asked, results, strict=True):
            if result is None or not result.ok:
                launches[index] = Launch(self._commands.refused(result))
                del plans[index]

    def _end_again(
        self, starts: Sequence[d.Start], begun: Sequence[int], launches: dict[int, Launch[Argv]]
    ) -> None:
        """End the jobs whose end came between the question whether they are pending and their ``brun``."""
        try:
            again = self._client.started_again([starts[index].job_id for index in begun])
        except Failure as error:
            self._log.warning("whether cancelled jobs were started is not known", error=str(error))
            return
        for index in begun:
            key = starts[index].job_id
            if key not in again:
                continue
            ended = self._commands.change([writer.kill(key)])[0]
            if ended is not None and ended.ok:
                why = f"job {key} was cancelled just before its start, and LSF started it; it is ended again"
                launches[index] = Launch(Outcome(False, why))
            else:
                self._log.error("a job that was cancelled before its start cannot be ended again", job=key,
                                error=said(ended))  # fmt: skip

    def _launched(self, result: Result | None) -> Outcome:
        if result is not None and result.ok:
            return Outcome(True)
        if result is not None and is_silence(result):
            # Unanswered is not refused: the next look tells.
            return Outcome(True, "no answer; the next look will show the result")
        if result is not None and "already started" in result.stderr:
            return Outcome(True, result.complaint())
        return self._commands.refused(result)

    def _still_pending(
        self, starts: Sequence[d.Start], plans: dict[int, writer.Launching], launches: dict[int, Launch[Argv]]
    ) -> None:
        """Take out what is no longer pending: ``brun`` would start even an ended job again."""
        if not plans:
            return
        try:
            rows = self._client.rows([starts[index].job_id for index in plans], Calendar(self._clock()))
        except Failure as error:
            for index in list(plans):
                self._unsettle(starts[index].job_id, plans.pop(index).unsettle)
                launches[index] = Launch(Outcome(False, f"not tried: {error}"))
            return
        for index in list(plans):
            row = rows.get(starts[index].job_id)
            if row is None or row.stat != "PEND":
                self._unsettle(starts[index].job_id, plans.pop(index).unsettle)
                now = "gone" if row is None else row.stat
                why = f"job {starts[index].job_id} is no longer pending, it is {now}"
                launches[index] = Launch(Outcome(False, why))

    # ------------------------------------------------------------------ starts that do not happen

    def take_back(self, flight: Flight[Argv], *, late: bool) -> bool:
        """Stop a job that was forced to run and did not start, and let it be pending again, as it was."""
        key = flight.decision.job_id
        if late and not self._pending_again(key):
            return False
        self._unsettle(key, flight.payload)
        return True

    def _pending_again(self, key: str) -> bool:
        held = self._commands.change([writer.hold(key)])[0]
        if held is None or not held.ok:
            if held is not None and any(word in held.stderr for word in writer.ALREADY):
                return True
            self._log.error("a start that does not happen could not be held again", job=key,
                            error=said(held))  # fmt: skip
            return False
        freed = self._commands.change([writer.release(key)])[0]
        if freed is None or not freed.ok:
            self._log.warning("a job stays held after its start was taken back", job=key,
                              error=said(freed))  # fmt: skip
        return True

    def _unsettle(self, key: str, argv: Argv) -> None:
        """Give a job the numbers of slots back that its user said; nothing where ``argv`` is empty."""
        if not argv:
            return
        given = self._commands.change([argv])[0]
        if given is None or not given.ok:
            self._log.warning("a job keeps the number of slots of a start that did not happen", job=key,
                              error=said(given))  # fmt: skip

    # ------------------------------------------------------------------ whether it is possible

    def settle_hidden(self) -> None:
        """Remember the slots that only LSF counts, of hosts to which no start is on its way."""
        flown_to = {name for flight in self._flights.values() for name, _ in flight.decision.placement}
        kept = {name: count for name, count in self._settled.items() if name in flown_to}
        free = {name: count for name, count in self._hidden().items() if name not in flown_to}
        self._settled = {**free, **kept}

    def _hidden(self) -> Mapping[str, int]:
        look = self._overlay.as_it_is
        return look.hidden if isinstance(look, LsfLook) else {}

    def _room(self) -> Room:
        """Free slots of each usable host by the last look, less what is on its way."""
        seen = self._overlay.snapshot
        room = Room(seen, node="host", processors="slots")
        if seen is None:
            return room
        for job in seen.jobs.values():
            if job.state in ON_NODES:
                room.occupy(job, job.placement, job.tier)
        room.expect(flight.decision for flight in self._flights.values())
        flying: dict[str, int] = {}
        for key, flight in self._flights.items():
            pending = seen.jobs.get(key)
            if pending is not None and pending.state == "pending":
                for name, count in flight.decision.placement:
                    flying[name] = flying.get(name, 0) + count
        for name, count in self._hidden().items():
            # A start that happened after the jobs were listed and before the hosts were counts once.
            others = max(count - flying.get(name, 0), min(count, self._settled.get(name, 0)))
            room.fill(name, others)
        return room

    def _plan(self, start: d.Start, room: Room) -> writer.Launching:
        job, detail = self._guard.startable(start, self._waits)
        room.admit(start, job, whole=job.job.request.exclusive)
        world = self._world()
        cpus = {name: host.processors for name, host in world.static.items()} if world is not None else {}
        plan = writer.start(start, detail, cpus, ibm=self._flavour().ibm)
        room.occupy(job, start.placement, start.tier)
        return plan

    def _waits(self, job: SnapshotJob, detail: Detail) -> str:
        """Why a job cannot start now."""
        return detail.waits or lies_ahead(job, self._clock())
