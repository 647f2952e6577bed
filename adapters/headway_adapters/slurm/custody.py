"""Housekeeping on Slurm: jobs are held for headway, and nothing of past starts stays behind.

What is not held is taken over, the submit filter's holds become headway's, and pins of the past are
cleared. What runs is held, too, so that it does not start by itself if it is requeued.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headway_adapters.polling import Look
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.notes import Notes
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.slurm import marker, reader, writer
from headway_adapters.slurm.asking import Asking
from headway_adapters.slurm.batches import for_all
from headway_adapters.slurm.client import is_silence
from headway_adapters.slurm.handback import Handback, Pinned
from headway_adapters.slurm.looking import SlurmLook
from headway_adapters.transport import Result

#: Jobs that one look's housekeeping touches at most; the rest comes at the next look.
_TEND_AT_ONCE = 500
#: After so many seconds no further command of it begins: starts wait meanwhile, and a held job can.
_TEND_SECONDS = 1.0
#: The longest pause until a job that could not be taken over is tried again, seconds.
_TAKE_AGAIN = 60.0

#: Running jobs that are held with one command.
_HOLD_AT_ONCE = 200
#: Until a running job that is not held in spite of it is asked to be again, seconds.
_HOLD_AGAIN = 30.0
#: Until a job that was first seen to run is held, seconds: Slurm forgets at a hold that its launch has failed
#: meanwhile. By this host's clock, which needs no agreement with Slurm's.
_LAUNCHED = 10.0


@dataclass
class _Round:
    """What is to be done after one look."""

    #: Job or rest of an array -> the mark that it gets when it is taken over.
    takes: dict[str, str] = field(default_factory=dict)
    #: Job -> the command that clears its pin.
    clears: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Heterogeneous job -> the pins of its components.
    parts: dict[str, Pinned] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        return len(self.takes) + len(self.clears) + len(self.parts) >= _TEND_AT_ONCE

    def add(self, key: str, job: SnapshotJob, detail: reader.Detail) -> None:
        """What one job needs, if anything. Raises :class:`writer.Unfit`."""
        if detail.from_filter or detail.unmarked or detail.refused or not detail.held:
            may_mark = detail.comment_free and detail.pin is None and detail.route is None
            mark = ""
            if may_mark:
                mark = marker.held(nodes_open=detail.nodes_open, came=detail.came, shown=detail.shown)
            self.takes.setdefault(writer.record(detail.record), mark)
        elif detail.pin is not None and job.held_by == "headway" and detail.parts:
            pins = tuple(part.pin for _, part in detail.parts)
            self.parts[key] = Pinned(detail.pin, True, pins, detail)
        elif detail.pin is not None and job.held_by == "headway":
            self.clears[key] = writer.restore(key, detail.pin, mark=True)


class Custody:
    """Keeps the jobs of the managed partitions for headway. On the adapter's thread."""

    def __init__(
        self, commands: Commands, handback: Handback, notes: Notes, *, poll_interval: float, log: Any
    ) -> None:
        self._commands = commands
        self._handback = handback
        self._notes = notes
        self._poll_interval = poll_interval
        self._log = log
        self._asking = Asking()
        self._taken: set[str] = set()
        #: When Slurm is asked to hold a running job for the case of a requeue (monotonic clock).
        self._to_stay: dict[str, float] = {}
        #: Jobs and rests of arrays that could not be taken over: when that is tried again (monotonic clock),
        #: and after which pause.
        self._refused: dict[str, tuple[float, float]] = {}

    def tend(self, look: Look[reader.Detail], in_flight: set[str]) -> None:
        """Not for jobs that were ``in_flight`` in this look: what it shows of them is over."""
        if isinstance(look, SlurmLook) and (look.loose or self._to_stay):
            self._hold_running(look)
        now = time.monotonic()
        if steps := self._asking.steps(look.details, now, look.snapshot.time):
            self._commands.change(steps)
        due = self._due(look, in_flight, now)
        for key, pinned in due.parts.items():
            self._handback.restore_parts(key, pinned)
        if due.takes or due.clears:
            self._look_into(self._carry_out(due), due.takes, now)

    def _due(self, look: Look[reader.Detail], in_flight: set[str], now: float) -> _Round:
        """What is to be done, as much as fits into one round."""
        listed = {detail.record for detail in look.details.values()}
        self._refused = {key: again for key, again in self._refused.items() if key in listed}
        found = _Round()
        for key, detail in self._in_order(look):
            job = look.snapshot.jobs.get(key)
            if job is None or not detail.managed or detail.asked or key in in_flight:
                continue
            if self._refused and self._refused.get(detail.record, (0.0, 0.0))[0] > now:
                continue
            try:
                found.add(key, job, detail)
            except writer.Unfit as error:
                self._notes.odd([f"job {key} cannot be taken over: {error}"])
            if found.is_full:
                break
        return found

    def _in_order(self, look: Look[reader.Detail]) -> Iterable[tuple[str, reader.Detail]]:
        """What Slurm refuses again and again does not keep the others waiting."""
        details = list(look.details.items())
        if self._refused:
            details.sort(key=lambda pair: pair[0] in self._refused or pair[1].record in self._refused)
        return details

    def _carry_out(self, due: _Round) -> dict[str, Result | None]:
        """Take over and clear; what became of each."""
        results: dict[str, Result | None] = {}
        for mark in dict.fromkeys(due.takes.values()):
            keys = [key for key, wanted in due.takes.items() if wanted == mark]
            # A list of an array's elements has commas of its own.
            plain = [key for key in keys if "[" not in key]
            write = partial(writer.take, mark=mark)
            results.update(for_all(self._commands, plain, write, seconds=_TEND_SECONDS))
            lists = [key for key in keys if "[" in key]
            results.update(zip(lists, self._commands.change([write([key]) for key in lists]), strict=True))
        results.update(zip(due.clears, self._commands.change(list(due.clears.values())), strict=True))
        return results

    def _look_into(self, results: dict[str, Result | None], takes: dict[str, str], now: float) -> None:
        """Log what was taken over for the first time, and put off what Slurm refuses."""
        for key, result in results.items():
            if result is not None and result.ok:
                if key in takes and key not in self._taken:
                    self._taken.add(key)
                    self._log.info("a job was taken over and is held for headway", job=key)
                self._refused.pop(key, None)
                continue
            if result is None:
                continue
            # What Slurm refuses for ever is not asked for at each look, and what it refuses just now is soon.
            pause = min(2 * self._refused.get(key, (0.0, self._poll_interval / 2))[1], _TAKE_AGAIN)
            self._refused[key] = (now + pause, pause)
            if not is_silence(result):
                self._notes.odd([f"job {key} could not be taken over: {result.complaint()}"])

    def _hold_running(self, look: SlurmLook) -> None:
        """Slurm refuses it for some jobs, such as jobs that are about to end: these are asked for again
        later."""
        now = time.monotonic()
        running = {key for key in look.loose if look.snapshot.jobs[key].state == "running"}
        self._to_stay = {key: self._to_stay.get(key, now + _LAUNCHED) for key in running}
        due = sorted(key for key, at in self._to_stay.items() if at <= now)
        self._to_stay.update(dict.fromkeys(due, now + _HOLD_AGAIN))
        steps = range(0, len(due), _HOLD_AT_ONCE)
        if due:
            self._commands.change([writer.hold_all(due[at : at + _HOLD_AT_ONCE]) for at in steps])
