"""Two or more sites with directories as stores, and commands that a test can break."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from waiting import until

from headway import decisions as d
from headway import events as ev
from headway.adapter import KnownReplica
from headway.model import Dataset, Link, Site, Sites, Store
from headway.model.transfers import Transfers
from headway_adapters.federation.live_copies import LiveCopies
from headway_adapters.federation.names import Elsewhere

TOOL = Path(__file__).with_name("data_tool.sh")
DATA = b"".join(b"%d " % n for n in range(2000))


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def _say(self, message: str, **fields: Any) -> None:
        self.said.append(f"{message} {fields}")

    info = warning = error = _say


class Stores:
    """The sites a, b and c; dataset "era5" is at a from the beginning."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.control = root / "control"
        for name in ("control", "a", "b", "c"):
            (root / name).mkdir()
        self.path("a").write_bytes(DATA)
        self.log = Log()
        self.made: list[LiveCopies] = []

    def path(self, site: str, dataset: str = "era5") -> Path:
        return self.root / site / dataset

    def breaks(self, action: str, mode: str) -> None:
        (self.control / action).write_text(mode)

    def called(self) -> list[str]:
        """The actions that were called, in order."""
        log = self.control / "log"
        return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []

    def reached(self, point: str) -> int:
        """Wait until a command is at a point; its process id."""
        at = self.control / f"at-{point}"
        until(lambda: at.exists() and at.read_text().strip() != "", what=f"a command reaches {point}")
        return int(at.read_text())

    def go_on(self) -> None:
        (self.control / "go").touch()

    def words(self, action: str) -> tuple[str, ...]:
        rest = ("{source}", "{target}") if action == "copy" else ("{store}", "{dataset}")
        return ("sh", str(TOOL), action, str(self.control), *rest)

    def transfers(self, *without: str, **more: Any) -> Transfers:
        stores = {site: str(self.root / site) for site in ("a", "b", "c")}
        commands = {
            name: self.words(name) for name in ("copy", "check", "size", "remove") if name not in without
        }
        return Transfers(**{**commands, "timeout": 20.0, "stores": stores, **more})

    def sites(self, *, copies: int = 4, capacity: int = 0, datasets: int = 1) -> Sites:
        store = Store(capacity, copies)
        sites = tuple(Site(name, (f"{name}:batch",), store=store) for name in ("a", "b", "c"))
        links = tuple(Link(x, y, 1e6) for x in "abc" for y in "abc" if x != y)
        names = ["era5", *(f"grid{n}" for n in range(1, datasets))]
        for name in names[1:]:
            self.path("a", name).write_bytes(DATA)
        return Sites(sites, links, tuple(Dataset(name, len(DATA), ("a",)) for name in names))

    def copies(
        self, transfers: Transfers | None = None, sites: Sites | None = None,
        known: Iterable[KnownReplica] = (), looks: float = 0.05,
    ) -> LiveCopies:  # fmt: skip
        one = LiveCopies(
            transfers or self.transfers(), lambda job: job.partition(":")[0], lambda: None, self.log,
            time.time, looks=looks,
        )  # fmt: skip
        one.remember(list(known))
        one.begin(sites or self.sites())
        self.made.append(one)
        return one

    def close(self) -> None:
        self.go_on()
        for one in self.made:
            one.close()


def told(copies: LiveCopies, *kinds: type[ev.Event], now: float = 5.0) -> list[ev.Event]:
    """All that is told until each of these kinds has come."""
    found: list[ev.Event] = []

    def all_there() -> bool:
        found.extend(copies.take(now))
        return all(any(isinstance(event, kind) for event in found) for kind in kinds)

    until(all_there, what=f"{[kind.__name__ for kind in kinds]} are told")
    return found


def last(events: list[ev.Event], kind: type[ev.Event]) -> Any:
    return [event for event in events if isinstance(event, kind)][-1]


def refused(copies: LiveCopies, decision: d.Decision) -> str:
    """Why a decision is refused; "" if it is taken."""
    try:
        copies.takes(decision)
    except Elsewhere as error:
        return str(error)
    return ""


def gone(pid: int) -> Callable[[], bool]:
    """Whether a process is there no more, or only its entry is."""

    def is_gone() -> bool:
        try:
            return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True

    return is_gone
