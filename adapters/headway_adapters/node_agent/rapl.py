"""Energy counters of the processors: the kernel's powercap files of Intel's RAPL (AMD's too).

A counter (``energy_uj``, microjoules) only grows and begins again at zero after
``max_energy_range_uj``; a reading below the reading before means that it did so once. Twice cannot be
seen: at 262 kJ of range and 250 W that takes 17 minutes, so readings must lie closer together.

Since 2020 only root may read the counters (they leak what others compute). A counter that cannot be
read is left out and said so; it is no error, because the rest of a report is still true.

What is summed: the packages and the memory beside them. Cores and the integrated graphics are parts
of a package, and ``psys`` is the whole board, which contains the packages: both are shown and not
added.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from headway.errors import Failure
from headway_adapters.node_agent import sysfs

ZONES = Path("class/powercap")
_ZONE = re.compile(r"intel-rapl:(\d+)(?::(\d+))?")
#: Beginnings of the names whose energies add up to the processors' and memory's.
_SUMMED = ("package-", "dram")


class Counter(msgspec.Struct, frozen=True):
    """One reading of one counter."""

    zone: str
    name: str
    microjoules: int
    #: Where it begins again at zero; 0 if the kernel does not say.
    range: int


class ZonePower(msgspec.Struct, frozen=True):
    """A zone's energy since the first reading, joules, and its power since the last, watts."""

    zone: str
    name: str
    joules: float
    watts: float | None

    @property
    def summed(self) -> bool:
        return self.name.startswith(_SUMMED)


def used(before: Counter, after: Counter) -> int | None:
    """Microjoules from one reading to the next; None where nothing can be said."""
    if after.microjoules >= before.microjoules:
        return after.microjoules - before.microjoules
    if after.range < before.microjoules:
        return None  # a counter that went back for another reason: the driver was loaded anew
    return after.range - before.microjoules + after.microjoules


class Meter:
    """The energy counters of one node, and their sums since the first reading."""

    def __init__(self, root: Path, *, note: Callable[[str], None] = lambda text: None) -> None:
        """``root``: what is ``/sys`` on a real node. ``note`` is told once what cannot be read."""
        self._zones = root / ZONES
        self._tell = note
        self._noted: set[str] = set()
        self._last: dict[str, tuple[float, Counter]] = {}
        self._sums: dict[str, int] = {}

    def counters(self) -> list[Counter]:
        """What the counters show now; counters that cannot be read are left out."""
        try:
            names = sorted((n for n in os.listdir(self._zones) if _ZONE.fullmatch(n)), key=_order)
        except OSError as error:
            self._note(f"{self._zones}: {error.strerror or error}: this node's energy is not known")
            return []
        if not names:
            self._note(f"{self._zones}: no intel-rapl zones: this node's energy is not known")
        found = []
        for name in names:
            path = self._zones / name
            try:
                microjoules = sysfs.read_number(path / "energy_uj")
            except Failure as error:
                hint = " (only root may read it since Linux 5.10)" if "Permission" in str(error) else ""
                self._note(f"{error}{hint}: its energy is not reported")
                continue
            reach = sysfs.number(path / "max_energy_range_uj") or 0
            found.append(Counter(name, sysfs.word(path / "name") or name, microjoules, reach))
        return found

    def read(self, now: float) -> list[ZonePower]:
        """A reading at ``now`` (seconds of any clock that only goes forward)."""
        readings = []
        for counter in self.counters():
            watts = None
            before = self._last.get(counter.zone)
            if before is not None:
                since, earlier = before
                more = used(earlier, counter)
                if more is None:
                    self._note(
                        f"{counter.zone}: its counter went back without a wrap; energy is counted "
                        "from the new value on"
                    )
                else:
                    self._sums[counter.zone] = self._sums.get(counter.zone, 0) + more
                    if now > since:
                        watts = more / 1e6 / (now - since)
            self._last[counter.zone] = (now, counter)
            joules = self._sums.get(counter.zone, 0) / 1e6
            readings.append(ZonePower(counter.zone, counter.name, joules, watts))
        return readings

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._tell(text)


def total_watts(zones: list[ZonePower]) -> float | None:
    """Power of the packages and their memory; None where no package's is known."""
    summed = [zone.watts for zone in zones if zone.summed]
    known = [watts for watts in summed if watts is not None]
    return sum(known) if known and len(known) == len(summed) else None


def total_joules(zones: list[ZonePower]) -> float | None:
    """Energy of the packages and their memory since the first reading."""
    summed = [zone.joules for zone in zones if zone.summed]
    return sum(summed) if summed else None


def _order(name: str) -> tuple[int, int]:
    found = _ZONE.fullmatch(name)
    assert found is not None
    return int(found[1]), int(found[2] or -1)
