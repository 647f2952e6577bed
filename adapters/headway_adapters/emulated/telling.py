"""What happened in the emulated cluster and is not known yet."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from headway.emulation.delays import Delays
from headway.events import DecisionFailed, ElasticCommandReceived, Event, in_order
from headway_adapters.emulated.agenda import Agenda, nothing

#: These come from headway's own commands and from users' requests, not from a look.
_AT_ONCE = (DecisionFailed, ElasticCommandReceived)
#: What is known within so many seconds is known together: the machine may take them for one instant.
_INSTANT = 1e-6


class Telling:
    """Keeps events until they are known."""

    def __init__(self, agenda: Agenda, delays: Delays, *, known: bool) -> None:
        """``known``: what there is when the emulation begins is known already."""
        self._agenda = agenda
        self._delays = delays
        self._known = known
        self._waiting: list[tuple[float, int, Event]] = []
        self._number = 0

    def __bool__(self) -> bool:
        """Whether something is not told yet."""
        return bool(self._waiting)

    def told(self, now: float, happened: Sequence[Event]) -> Sequence[Event]:
        """What is known at ``now``, at which ``happened`` happens. Called at each moment of the agenda."""
        if self._known:
            self._known = False
            return happened
        known = []
        for event in happened:
            at = now if isinstance(event, _AT_ONCE) else self._delays.told(now, event)
            event = self._delays.stated(event)
            if at <= now:
                known.append(event)
                continue
            self._number += 1
            heappush(self._waiting, (at, self._number, event))
            self._agenda.at(at, nothing, None)
        while self._waiting and self._waiting[0][0] <= now + _INSTANT:
            known.append(heappop(self._waiting)[2])
        return in_order(known)
