"""What LSF prints of its hosts, queues, daemons and reservations -> plain records. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from headway_adapters.lsf import values
from headway_adapters.lsf.documents import cell, records, table
from headway_adapters.lsf.listing import LIMITS, run_limit
from headway_adapters.lsf.values import Calendar


@dataclass(frozen=True)
class HostState:
    """A host as ``bhosts`` shows it."""

    name: str
    status: str
    #: Slots; 0: no limit is set.
    slots: int
    #: Slots in use.
    used: int
    #: Why an administrator closed it, where that is told.
    comment: str = ""


def read_hosts(text: str) -> dict[str, HostState]:
    """``bhosts -w``, or ``bhosts -l``."""
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].split()[0] == "HOST":
        found = [
            {"HOST_NAME": line[len("HOST ") :].strip(), **_paired(lines[at + 1], lines[at + 2])}
            for at, line in enumerate(lines[:-2])
            if line.startswith("HOST ")
        ]
    else:
        found = table(text)
    return _host_states(found)


def _paired(header: str, cells: str) -> dict[str, str]:
    return dict(zip(header.split(), cells.split(), strict=False))


def read_hosts_json(data: bytes) -> dict[str, HostState]:
    """``bhosts -o "host_name status max njobs comments" -json``."""
    listed = records(data, "bhosts: the listing of hosts")
    return _host_states([{key: cell(record, key) for key in record} for record in listed])


def _host_states(listed: list[dict[str, str]]) -> dict[str, HostState]:
    found = {}
    for row in listed:
        name, status = row.get("HOST_NAME", ""), row.get("STATUS", "")
        if name and status:
            found[name] = HostState(
                name, status, values.integer(row.get("MAX", "")), values.integer(row.get("NJOBS", "")),
                row.get("COMMENTS", "").strip().strip('"'),
            )  # fmt: skip
    return found


@dataclass(frozen=True)
class Queue:
    """A queue, as far as we need it. Times are seconds; None: no limit."""

    name: str
    #: ``Open:Active``, ``Open:Inact_Adm``, ...
    status: str = ""
    #: As written: names of hosts and groups, ``all``, ``none``, ``~name``.
    hosts: tuple[str, ...] = ("all",)
    default_limit: float | None = None
    limit: float | None = None
    #: Its limits of job slots, as LSF writes them: ``MAX 20``, ``JL/U 2``, ...
    slot_limits: tuple[str, ...] = ()
    #: LSF serves queues of a higher one first.
    priority: int = 0

    @property
    def inactive(self) -> bool:
        """LSF starts none of its jobs by itself."""
        return ":Inact" in self.status

    @property
    def window_closed(self) -> bool:
        """Its run window is closed."""
        return self.status.endswith("Inact_Win")


#: The columns of a queue's limits of job slots: of all jobs, a user's, a processor's and a host's.
_SLOT_LIMITS = ("MAX", "JL/U", "JL/P", "JL/H")


def read_queues(text: str) -> dict[str, Queue]:
    """``bqueues -l``."""
    found: dict[str, Queue] = {}
    for block in re.split(r"^QUEUE: ", text, flags=re.MULTILINE)[1:]:
        lines = block.split("\n")
        name = lines[0].strip()
        status, hosts, priority = "", ("all",), 0
        slot_limits: tuple[str, ...] = ()
        default: float | None = None
        limit: float | None = None
        of_default = False
        for at, line in enumerate(lines):
            if line.startswith("PRIO ") and at + 1 < len(lines):
                shown = _paired(line, lines[at + 1])
                status = shown.get("STATUS", "")
                limited = (key for key in _SLOT_LIMITS if shown.get(key, "-") != "-")
                slot_limits = tuple(f"{key} {shown[key]}" for key in limited)
                priority = int(text) if (text := shown.get("PRIO", "")).isdecimal() else 0
            elif line.startswith("DEFAULT LIMITS"):
                of_default = True
            elif line.startswith("MAXIMUM LIMITS"):
                of_default = False
            elif line.startswith("HOSTS:"):
                hosts = tuple(line[len("HOSTS:") :].split())
            elif "RUNLIMIT" in line and at + 1 < len(lines):
                match = LIMITS.match(f"{line}\n{lines[at + 1]}")
                if match is not None and of_default:
                    default = run_limit(match)
                elif match is not None:
                    limit = run_limit(match)
        found[name] = Queue(name, status, hosts, default, limit, slot_limits, priority)
    return found


def read_groups(text: str) -> dict[str, tuple[str, ...]]:
    """``bmgroup -r -w``: host groups and their members, groups inside groups taken apart."""
    lines = [line for line in text.splitlines() if line.strip()]
    found: dict[str, tuple[str, ...]] = {}
    for line in lines[1:]:
        cells = line.split()
        found[cells[0].rstrip("/")] = tuple(cells[1:])
    return found


@dataclass(frozen=True)
class System:
    """Which LSF this is."""

    #: Such as ``volclava 2.2``.
    title: str
    cluster: str
    #: IBM (Platform) LSF, not one of its open-source relatives.
    ibm: bool


_CLUSTER = re.compile(r"^My cluster name is (\S+)", re.MULTILINE)
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")


def read_system(text: str) -> System | None:
    """``lsid``; None when that is not what it says."""
    lines = text.strip().splitlines()
    cluster = _CLUSTER.search(text)
    if not lines or cluster is None:
        return None
    first = lines[0]
    version = _VERSION.search(first)
    low = first.lower()
    ibm = ("lsf" in low or "ibm" in low or "platform" in low) and "lava" not in low
    kind = next(
        (name for name in ("volclava", "openlava") if name in low), "IBM Spectrum LSF" if ibm else "LSF"
    )
    return System(f"{kind} {version.group(0)}" if version is not None else kind, cluster.group(1), ibm)


# ---------------------------------------------------------------------- reservations


class Booking(msgspec.Struct, frozen=True):
    """An advance reservation as ``brsvs`` shows it."""

    name: str
    kind: str
    owner: str
    hosts: tuple[str, ...]
    start: float
    end: float


_BOOKED_HOST = re.compile(r"(\S+):[0-9]+/[0-9]+")
_WINDOW = re.compile(
    r"(?:([0-9]{4})/)?([0-9]+)/([0-9]+)/([0-9]+)/([0-9]+)-(?:([0-9]{4})/)?([0-9]+)/([0-9]+)/([0-9]+)/([0-9]+)"
)


def read_reservations(text: str, times: Calendar, notes: set[str]) -> dict[str, Booking]:
    """``brsvs``: a reservation may go on over several lines, one a host. Recurring ones are left out."""
    found: dict[str, Booking] = {}
    parts: list[list[str]] = []
    for line in text.splitlines()[1:]:
        if line[:1].strip():
            parts.append(line.split())
        elif line.strip() and parts:
            parts[-1] += line.split()
    for cells in parts:
        window = next((match for cell in cells if (match := _WINDOW.fullmatch(cell)) is not None), None)
        hosts = tuple(match.group(1) for cell in cells if (match := _BOOKED_HOST.fullmatch(cell)) is not None)
        if window is None or len(cells) < 4 or not hosts:
            notes.add(f"reservation {cells[0]} has no single time or no hosts and is left out")
            continue
        numbers = [int(part) if part else None for part in window.groups()]
        start, end = (_moment(numbers[at : at + 5], times) for at in (0, 5))
        if start is None or end is None:
            notes.add(f"reservation {cells[0]} has a time that cannot be read and is left out")
            continue
        found[cells[0]] = Booking(cells[0], cells[1], cells[2], hosts, start, end)
    return found


def _moment(numbers: list[int | None], times: Calendar) -> float | None:
    year, month, day, hour, minute = numbers
    assert month is not None and day is not None and hour is not None and minute is not None
    return times.date(year, month, day, hour, minute)
