"""How jobs are started on PBS: as many as PBS's connections allow, the others when it is their turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headway import decisions as d
from headway.adapter import Outcome
from headway.errors import Failure
from headway_adapters.pbs import reader, writer
from headway_adapters.pbs.client import PbsClient, is_silence
from headway_adapters.pbs.joined import apart, join
from headway_adapters.pbs.look import PbsLook
from headway_adapters.pbs.turns import Turns
from headway_adapters.polling import Flight, Launch, Look
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.flights import Flights
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.room import Room
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.polling.startable import Guard, lies_ahead
from headway_adapters.polling.words import Argv
from headway_adapters.transport import Result

#: What the starts of one call are known by.
_Key = TypeVar("_Key", int, str)


@dataclass(frozen=True)
class Later:
    """A start that was accepted and whose command is still to be run."""

    argv: Argv
    #: Until PBS sees that the job's begin time is reached; otherwise until it is its turn.
    early: bool = False


class Starting:
    """Starts jobs. On the adapter's thread."""

    def __init__(
        self, client: PbsClient, guard: Guard[reader.Detail], overlay: Overlay[reader.Detail],
        flights: Flights[Later | None], commands: Commands, turns: Turns, torque: Callable[[], bool], *,
        confirm_soon: Callable[[], None], clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``torque``: whether this is one. ``confirm_soon``: makes the next look come soon. ``clock``:
        absolute seconds."""
        self._client = client
        self._guard = guard
        self._overlay = overlay
        self._flights = flights
        self._commands = commands
        self._turns = turns
        self._torque = torque
        self._confirm_soon = confirm_soon
        self._clock = clock

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[Later | None]]:
        """Run as many as PBS's connections allow now; the others have their turn after a later look."""
        launches: dict[int, Launch[Later | None]] = {}
        argvs: dict[int, tuple[str, ...]] = {}
        room = self._room(flight.decision for flight in self._flights.values())
        for index, start in enumerate(starts):
            try:
                argvs[index] = self._plan(start, room)
            except Failure as error:
                launches[index] = Launch(Outcome(False, str(error)))
        before = sum(map(_waits_its_turn, self._flights.values()))
        left = 0 if before else self._client.budget.starts_left()
        now = [index for one in join(list(argvs.items()))[:left] for index in one.starts]
        launches |= self._run_starts({index: (starts[index].job_id, argvs[index]) for index in now})
        waiting = argvs.keys() - launches.keys()
        self._turns.wait(before + len(waiting))
        for index in waiting:
            launches[index] = Launch(Outcome(True, f"it waits for {self._turns.what}"), Later(argvs[index]))
        return [launches[index] for index in range(len(starts))]

    def _run_starts(self, planned: Mapping[_Key, tuple[str, Argv]]) -> dict[_Key, Launch[Later | None]]:
        """Run the commands of some starts; starts on the same vnodes share a command. ``planned``: a job's id
        and its command, for each key."""
        launches: dict[_Key, Launch[Later | None]] = {}
        ready: dict[_Key, Argv] = {}
        for key, (job_id, argv) in planned.items():
            if why := self._given_walltime(job_id):
                launches[key] = Launch(Outcome(False, why))
            else:
                ready[key] = argv
        commands = join(list(ready.items()))
        done = self._commands.change([one.argv for one in commands]) if commands else []
        for one, result in zip(commands, done, strict=True):
            ids = [planned[key][0] for key in one.starts]
            each = apart(result, ids) if result is not None else [None] * len(ids)
            for key, job_id, its in zip(one.starts, ids, each, strict=True):
                launches[key] = self._launched(job_id, ready[key], its)
        return launches

    def _launched(self, job_id: str, argv: tuple[str, ...], result: Result | None) -> Launch[Later | None]:
        """What became of one start whose command was run (None: it was not tried)."""
        if result is not None and (result.ok or is_silence(result)):
            # Unanswered is not refused: the next look tells.
            return Launch(Outcome(True, "" if result.ok else "no answer; the next look will show the result"))
        if result is not None and writer.NOT_WAITING in result.stderr:
            return Launch(Outcome(True, result.complaint()))
        if result is not None and self._is_early(job_id, result):
            # The server looks at its clock now and then: as soon as it has, the job starts.
            return Launch(Outcome(True, "its begin time is now"), Later(argv, early=True))
        return Launch(self._commands.refused(result))

    def _is_early(self, job_id: str, result: Result) -> bool:
        """Whether a start was refused because PBS has not yet seen that its begin time is reached."""
        detail = self._overlay.detail(job_id)
        return detail is not None and detail.letter == "W" and writer.NOT_NOW in result.stderr

    def tend(self, look: Look[reader.Detail]) -> None:
        """Run the starts whose turn it is, and the starts of jobs whose begin time PBS had not seen."""
        for key, flight in self._flights.items():
            detail = look.details.get(key)
            if flight.payload and flight.payload.early and detail is not None and detail.letter == "Q":
                (result,) = self._commands.change([flight.payload.argv])
                if result is not None and result.ok:
                    flight.payload = None
        self._next_turn()

    def _next_turn(self) -> None:
        """Run the starts that wait for PBS's connections, as many as there are now, and look anew whether
        they are possible."""
        waiting = {key: flight for key, flight in self._flights.items() if _waits_its_turn(flight)}
        commands = join([(key, flight.payload.argv) for key, flight in waiting.items() if flight.payload])
        turn = [key for one in commands[: self._client.budget.starts_left()] for key in one.starts]
        others = [flight.decision for key, flight in self._flights.items() if key not in set(turn)]
        room = self._room(others) if turn else None
        planned: dict[str, tuple[str, Argv]] = {}
        for key in turn:
            assert room is not None
            try:
                planned[key] = key, self._plan(waiting[key].decision, room)
            except Failure as error:
                self._flights.failed(key, str(error))
        for key, launch in self._run_starts(planned).items():
            self._flights[key].payload = launch.payload
            if not launch.outcome.accepted:
                self._flights.failed(key, launch.outcome.message)
        # The time to start begins with the command.
        self._flights.begin_anew(waiting)
        self._turns.wait(sum(map(_waits_its_turn, self._flights.values())))
        if planned:
            self._confirm_soon()

    # ------------------------------------------------------------------ whether it is possible

    def _room(self, on_their_way: Iterable[d.Start]) -> Room:
        """What the vnodes have left, by the last look and what is on its way."""
        look = self._overlay.as_it_is
        if not isinstance(look, PbsLook):
            return Room(None, node="vnode", memory=True)
        room = Room(look.snapshot, node="vnode", memory=True, hosts=look.hosts, vnodes=look.vnodes)
        for key, job in look.placed.items():
            # Which tier it is in is known to us alone, not to PBS.
            room.occupy(job, job.placement, look.snapshot.jobs.get(key, job).tier)
        room.expect(on_their_way)
        return room

    def _plan(self, start: d.Start, room: Room) -> Argv:
        job, detail = self._guard.startable(start, self._waits)
        room.admit(start, job, whole=detail.whole, whole_hosts=detail.whole_hosts)
        look = self._overlay.as_it_is
        hosts = look.hosts if isinstance(look, PbsLook) else {}
        argv = writer.start(start, detail, hosts=hosts, torque=self._torque())
        room.occupy(job, start.placement, start.tier)
        return argv

    def _waits(self, job: SnapshotJob, detail: reader.Detail) -> str:
        """Why a job cannot start now."""
        if detail.letter not in ("Q", "W"):
            return job.reason or "it is not queued"
        ahead = lies_ahead(job, self._clock())
        return job.reason or ahead if ahead else ""

    def _given_walltime(self, job_id: str) -> str:
        """Give a shrink-to-fit job its walltime before it starts; why that cannot be done, "" if it is.

        PBS's own scheduler does it; without one the job would run for ever."""
        detail = self._overlay.detail(job_id)
        if detail is None or not detail.shrinks_from:
            return ""
        (given,) = self._commands.change([writer.limit(job_id, detail.shrinks_from)])
        if given is not None and given.ok:
            return ""
        said = given.complaint() if given is not None else "PBS does not answer"
        return f"job {job_id}: it cannot be given a walltime: {said}"


def _waits_its_turn(flight: Flight[Later | None]) -> bool:
    return flight.payload is not None and not flight.payload.early
