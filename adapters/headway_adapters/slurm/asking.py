"""Slurm is asked what it thinks of the dependencies of an array that headway holds.

Slurm counts the rest of an array among the namesakes of an element that has a record of its own, and the
choice of an element's nodes gives it one. So elements of an array with ``singleton`` can be started only once
Slurm has taken that word out of the text of all of them, which it does once a minute for what is held, and
within a second for what is released. The array is therefore released with a begin time far ahead, and held
again as soon as the word is gone. Its AdminComment says so meanwhile: if headway is killed, the next run goes
on from there, and without one Slurm starts the array itself at that begin time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headway_adapters.polling.words import Argv
from headway_adapters.slurm import marker, writer
from headway_adapters.slurm.reader import Detail

#: How far ahead the begin time is, seconds.
_AHEAD = 600
#: How long Slurm has for its answer, seconds: it may be busy.
_PATIENCE = 5.0
#: Until the same array is asked about again: Slurm looks by itself meanwhile, seconds.
_AGAIN = 60.0


class Asking:
    """What was asked when; by the monotonic clock."""

    def __init__(self) -> None:
        self._asked: dict[str, float] = {}

    def steps(self, details: Mapping[str, Detail], now: float, time: float) -> list[Argv]:
        """The commands that end what was answered, and then the commands that ask. ``now``: by the monotonic
        clock;
        ``time``: by Slurm's (absolute seconds)."""
        there = {detail.record: detail for detail in details.values() if detail.asked or detail.unsaid}
        self._asked = {key: at for key, at in self._asked.items() if key in there or now < at + _AGAIN}
        ends = [
            _end(record, detail) for record, detail in there.items()
            if detail.asked and (not detail.unsaid or now >= self._asked.get(record, 0.0) + _PATIENCE)
        ]  # fmt: skip
        asks: list[Argv] = []
        for record, detail in there.items():
            if detail.unsaid and not detail.asked and now >= self._asked.get(record, -_AGAIN) + _AGAIN:
                self._asked[record] = now
                asks += _ask(record, int(time) + _AHEAD, detail.nodes_open)
        return [*ends, *asks]


def _ask(record: str, begin: int, nodes_open: bool) -> Iterable[Argv]:
    named = writer.job(record)
    mark = marker.asked(begin, nodes_open=nodes_open)
    yield "scontrol", "update", f"JobId={named}", f"StartTime={writer.utc(begin)}", f"AdminComment={mark}"
    yield "scontrol", "release", named


def _end(record: str, detail: Detail) -> Argv:
    # What a user changed meanwhile, the begin time or the hold, stays the user's.
    begin = ("StartTime=now",) if detail.begins_for_us else ()
    hold = () if detail.held else ("Priority=0",)
    mark = f"AdminComment={marker.held(nodes_open=detail.nodes_open)}"
    return ("scontrol", "update", f"JobId={writer.record(record)}", *begin, *hold, mark)
