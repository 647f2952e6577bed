"""Planned starts where Slurm's own commands show them: as the begin time of the job that headway holds.

``squeue --start`` prints the begin time of a held job, and Slurm uses it for nothing while the job is held.
One update writes the time and the mark that tells it from the user's begin time
(:mod:`headway_adapters.slurm.marker`), and the update that pins a job for its start ends it. So headway may
be killed between any two commands: the next run, or ``give_back``, reads in the mark what there was before.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headway_adapters.polling import Look
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.notes import Notes
from headway_adapters.polling.words import Argv, Unfit
from headway_adapters.slurm import marker, reader, writer
from headway_adapters.slurm.client import is_silence
from headway_adapters.transport import Result

#: A time is written again when it moved by more than so many seconds, or by more than this part of the wait,
#: but not for a few seconds.
_MOVED = 300.0
_PART = 0.1
_FEW = 60.0
#: Commands that a long look left no time for come after it: those of so many seconds.
_SAVED = 3.0
#: No time is written that is nearer than this, seconds.
_AHEAD = 60
#: A job without a planned start keeps what is shown for so long: the plan may have it again, seconds.
_GRACE = 60.0
#: Until a job that Slurm did not let change is tried again, seconds.
_AGAIN = 60.0


class Pacing:
    """Which times are worth a command now. By a clock of seconds that its caller gives."""

    def __init__(self, rate: float) -> None:
        """``rate``: commands a second at most, as a mean since the last look."""
        self._rate = rate
        self._left = max(1.0, rate)
        self._asked: float | None = None
        #: Since when a job that shows a time has none in the plan, by the caller's monotonic clock.
        self._without: dict[str, float] = {}

    def due(
        self, planned: Mapping[str, float], shown: Mapping[str, int], now: float, moment: float,
        *, grace: float = _GRACE,
    ) -> list[tuple[str, int | None]]:  # fmt: skip
        """What to write: a key and its time, None: none any more. First what shows no time or is wrong by
        more than :data:`_MOVED`, then the rest; of both the next to start first. ``planned``, ``shown``:
        times by key, as is ``now`` (absolute seconds). ``moment``: a monotonic clock's. ``grace``: how long a
        key without a planned start keeps its time, seconds."""
        wanted: list[tuple[bool, float, str, int | None]] = []
        for key, start in planned.items():
            target = max(round(start), int(now) + _AHEAD)
            if key not in shown:
                if start >= now + _AHEAD:
                    wanted.append((False, target, key, target))
            elif (moved := abs(target - shown[key])) > max(_FEW, min(_MOVED, _PART * (start - now))):
                wanted.append((moved <= _MOVED, min(target, shown[key]), key, target))
        self._without = {key: self._without.get(key, moment) for key in shown if key not in planned}
        wanted += [
            (True, shown[key], key, None) for key, since in self._without.items() if moment >= since + grace
        ]  # fmt: skip
        if not wanted:
            return []
        wanted.sort(key=lambda each: each[:3])
        return [(key, target) for *_, key, target in wanted[: self._take(len(wanted), moment)]]

    def _take(self, most: int, moment: float) -> int:
        """How many commands there may be now, up to ``most``; they are taken from the budget."""
        full = max(1.0, self._rate * _SAVED)
        passed = moment - self._asked if self._asked is not None else 0.0
        self._left = min(full, self._left + max(0.0, passed) * self._rate)
        self._asked = moment
        taken = min(most, int(self._left))
        self._left -= taken
        return taken


@dataclass
class _Seen:
    """What a look shows of the jobs that can show a time, by the records that commands name."""

    details: dict[str, reader.Detail] = field(default_factory=dict)
    planned: dict[str, float] = field(default_factory=dict)
    shown: dict[str, int] = field(default_factory=dict)


class ShownStarts:
    """Shows the planned starts, and takes them away again. On the adapter's thread, but for :meth:`plan`."""

    def __init__(self, commands: Commands, notes: Notes, pacing: Pacing, *, on: bool) -> None:
        """``on``: False: what an earlier run showed is taken away."""
        self._commands = commands
        self._notes = notes
        self._pacing = pacing
        self._on = on
        #: Job -> its planned start (absolute seconds); None: no plan is known yet.
        self._plan: dict[str, float] | None = None if on else {}
        #: What this run wrote last, by the number of the job or array: a look may not show it yet.
        self._written: dict[str, marker.Shown] = {}
        #: Records that Slurm did not let change: when they are tried again (monotonic clock).
        self._refused: dict[str, float] = {}

    def plan(self, planned: Iterable[tuple[str, float]]) -> None:
        """The planned starts of jobs that wait: job, and absolute seconds. May be called from any thread."""
        if self._on:
            self._plan = dict(planned)

    def of(self, detail: reader.Detail) -> marker.Shown | None:
        """The planned start that may be the begin time of a job: it may have been written since the last
        look."""
        return detail.shown or self._written.get(_number(detail.record))

    def tend(self, look: Look[reader.Detail], in_flight: set[str]) -> None:
        """Write what has changed; not for jobs that are ``in_flight``."""
        plan, now, moment = self._plan, look.snapshot.time, time.monotonic()
        listed = {_number(detail.record) for detail in look.details.values()} if self._written else set()
        self._written = {key: each for key, each in self._written.items() if key in listed}
        self._refused = {key: until for key, until in self._refused.items() if until > moment}
        if plan is None:
            return
        seen = self._see(look, plan, in_flight)
        steps: dict[str, Argv] = {}
        for record, target in self._pacing.due(
            seen.planned, seen.shown, now, moment, **({} if self._on else {"grace": 0.0})
        ):
            try:
                steps[record] = self._step(seen.details[record], target, now)
            except Unfit as error:
                self._refused[record] = moment + _AGAIN
                self._notes.odd([f"the planned start of job {record} cannot be shown: {error}"])
        if steps:
            results = self._commands.change(list(steps.values()))
            self._look_into(dict(zip(steps, results, strict=True)), moment)

    def _step(self, detail: reader.Detail, target: int | None, now: float) -> Argv:
        """The command for one record. What it writes is remembered: it may be there without an answer."""
        if target is not None:
            planned = marker.Shown(target, detail.begin)
            argv = writer.show(detail, planned)
            self._written[_number(detail.record)] = planned
            return argv
        shown = detail.shown or self._written[_number(detail.record)]
        return writer.show_no_more(detail, shown, now)

    def _see(self, look: Look[reader.Detail], plan: Mapping[str, float], in_flight: set[str]) -> _Seen:
        """Of the elements of an array that share a record the first to start counts."""
        seen, jobs = _Seen(), look.snapshot.jobs
        busy = {look.details[key].record for key in in_flight if key in look.details} | self._refused.keys()
        for key, detail in look.details.items():
            record, start, shown = detail.record, plan.get(key), detail.shown
            if shown is not None and start is not None and record == key and abs(start - shown.time) <= _FEW:
                # As nearly all jobs of a large queue are.
                continue
            written = bool(self._written) and _number(record) in self._written
            job = jobs.get(key)
            if (start is None and shown is None and not written) or record in busy or job is None:
                continue
            if not _is_free(detail):
                start, shown = None, self._overwritten(detail)
            if start is not None and job.held_by == "headway":
                first = max(start, detail.begin)
                seen.planned[record] = min(first, seen.planned.get(record, first))
            if shown is not None:
                seen.shown[record] = shown.time
            seen.details[record] = detail
        return seen

    def _overwritten(self, detail: reader.Detail) -> marker.Shown | None:
        """The time that this run showed of a job, where an administrator has written his own words over the
        mark since."""
        written = self._written.get(_number(detail.record))
        over = written is not None and detail.held and not detail.mark and detail.begin == written.time
        return written if over else None

    def _look_into(self, results: Mapping[str, Result | None], moment: float) -> None:
        for record, result in results.items():
            if result is None or result.ok or is_silence(result):
                continue
            self._refused[record] = moment + _AGAIN
            self._notes.odd([f"the planned start of job {record} could not be shown: {result.complaint()}"])


def _number(record: str) -> str:
    """The number of a job or array, of a record's name."""
    return record.partition("_")[0]


def _is_free(detail: reader.Detail) -> bool:
    """Whether headway holds a job, as a look shows it, and nothing else is under way with it."""
    if not (detail.held and detail.mark and detail.managed) or detail.from_filter or detail.pin is not None:
        return False
    if detail.asked or detail.unsaid or detail.refused or detail.route is not None:
        return False
    # One command writes the same into all components of a heterogeneous job.
    same = {(part.mark, part.begin, part.pin) for _, part in detail.parts}
    return len(same) < 2
