"""Hosts of other people: when each is idle, how long it stays so, and how fast it is.

D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005, sections 2.2 and 5.1. A host's *calendar* says for each hour
whether its owner is away. A job that it has accepted runs in idle hours and sleeps otherwise (screensaver).
The paper has an owner's load of up to 30 % in idle hours, but reports a slowdown of exactly 1 for jobs that
always run: by default such load takes nothing away, with ``loads`` a job gets what is left.

Calendars are arrays of (host, hour GMT) with a period of whole days, so a run jumps from change to change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.errors import UserError
from headway_plugins.wave.draws import Hours
from headway_plugins.wave.zones import SAME, ZONES, hour_of, is_night


def in_gmt(local: ArrayLike, zones: Sequence[int]) -> NDArray[np.generic]:
    """Rows of values by local hour as rows by hour GMT: each is turned by its host's zone."""
    table = np.asarray(local)
    hours = (np.arange(table.shape[1])[None, :] - np.asarray(zones, np.int64)[:, None]) % table.shape[1]
    return np.take_along_axis(table, hours, axis=1)


def hours_to_change(idle: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Of each (host, hour) how many hours it is until the host is idle no more, or again; 0: never."""
    hosts, period = idle.shape
    found = np.zeros((hosts, period), np.int32)
    following = np.zeros(hosts, np.int32)
    # The first turn finds what the last hours of the period are followed by.
    for hour in (*reversed(range(period)), *reversed(range(period))):
        same = idle[:, hour] == idle[:, (hour + 1) % period]
        following = np.where(same, following + 1, 1).astype(np.int32)
        found[:, hour] = following
    found[idle.all(axis=1) | ~idle.any(axis=1)] = 0
    return found


class Hosts:
    """Zones and calendars, which never change: which jobs the hosts have is known to the run."""

    def __init__(
        self,
        zones: Sequence[int],
        local: ArrayLike,
        *,
        loads: ArrayLike | None = None,
        claimed: Sequence[int] = (),
    ) -> None:
        """``local``: (host, local hour), idle or not, over a whole number of days that repeat; ``loads``: the
        share of the processor that the owner's own work takes in these hours; ``claimed``: hosts that work
        for others all the time.

        Raises :class:`UserError` for tables of other shapes, and for zones that do not exist.
        """
        table = np.asarray(local, bool).reshape(len(zones), -1)
        if table.shape[1] == 0 or table.shape[1] % ZONES:
            raise UserError(f"calendars: expected a multiple of {ZONES} hours, found {table.shape[1]}")
        if wrong := [zone for zone in zones if zone not in range(ZONES)]:
            raise UserError(f"zone {wrong[0]}: expected 0 to {ZONES - 1}")
        self.zones = [int(zone) for zone in zones]
        self.claimed = tuple(claimed)
        #: Hours after which calendars repeat.
        self.period = table.shape[1]
        idle = in_gmt(table, self.zones).astype(bool)
        self._idle = [row.tobytes() for row in idle]
        self._change = hours_to_change(idle).tolist()
        self._work = None if loads is None else self._summed(idle, loads)

    def __len__(self) -> int:
        return len(self.zones)

    def idle(self, host: int, hour: int) -> bool:
        """Whether the host's owner is away during an hour GMT."""
        return bool(self._idle[host][hour % self.period])

    def night(self, host: int, hour: int) -> bool:
        """Whether it is night where the host is."""
        return is_night(self.zones[host], hour)

    def change(self, host: int, hour: int) -> int | None:
        """The next hour in which the host is idle no more, or again; None: never."""
        ahead: int = self._change[host][hour % self.period]
        return hour + ahead if ahead else None

    def idle_left(self, host: int, hour: int) -> float:
        """Hours that the host stays idle, from the beginning of an hour on; 0 if it is not idle."""
        if not self.idle(host, hour):
            return 0.0
        end = self.change(host, hour)
        return float("inf") if end is None else end - hour

    def work(self, host: int, begin: Hours, end: Hours) -> Hours:
        """What a job gets done on a host that is idle all the time, in hours of a dedicated machine."""
        if self._work is None:
            return end - begin
        return self._until(host, float(end)) - self._until(host, float(begin))

    def completion(self, host: int, begin: Hours, work: Hours, end: int | None) -> Hours | None:
        """When so much work is done on a host that is idle until ``end``; None: not by then.

        Work that ends at the loss of the host is done, also where rounding puts it just behind."""
        if self._work is None:
            found = begin + work
        else:
            found = self._reached(host, float(begin), float(work), end)
        if end is None or found <= end:
            return found
        return end if found <= end + SAME else None

    def _summed(self, idle: NDArray[np.bool_], loads: ArrayLike) -> list[list[float]]:
        """Work that each host can do from hour 0 of its calendar on, at the beginnings of hours."""
        table = np.asarray(loads, float)
        if table.shape != idle.shape or not ((table >= 0) & (table < 1)).all():
            raise UserError(f"loads: expected {idle.shape[0]} rows of {idle.shape[1]} shares below 1")
        speed = np.where(idle, 1.0 - in_gmt(table, self.zones).astype(float), 0.0)
        return np.hstack([np.zeros((len(speed), 1)), speed.cumsum(axis=1)]).tolist()

    def _until(self, host: int, time: float) -> float:
        """Work that the host can do by a time."""
        assert self._work is not None
        summed = self._work[host]
        hour = hour_of(time)
        turns, at = divmod(hour, self.period)
        return turns * summed[-1] + summed[at] + (time - hour) * (summed[at + 1] - summed[at])

    def _reached(self, host: int, begin: float, work: float, end: int | None) -> float:
        """When a host has done so much work, hour by hour; the hour after ``end`` if it has not by then."""
        assert self._work is not None
        summed, hour, time = self._work[host], hour_of(begin), begin
        while end is None or hour < end:
            at = hour % self.period
            speed = summed[at + 1] - summed[at]
            if (hour + 1 - time) * speed >= work - SAME:
                return time + work / speed
            work -= (hour + 1 - time) * speed
            hour += 1
            time = hour
        return hour + 1.0
