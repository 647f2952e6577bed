"""Sites and metajobs for the tests of searches over several sites: by hand, by chance, and with faults."""

from __future__ import annotations

import random
from typing import Any

from headway_plugins.coscheduling.calls import Answer, Call, Failed, Shown, TimedOut
from headway_plugins.coscheduling.emulated_sites import EmulatedSites
from headway_plugins.coscheduling.metajob import Machine, Metajob
from headway_plugins.coscheduling.options import SearchOptions
from headway_plugins.coscheduling.queue_plan import Busy, Queued
from headway_plugins.coscheduling.search import Done, Search
from headway_plugins.coscheduling.site_book import SiteBook

#: 07:00 PST and 09:30 PST on 9 November 2004.
SEVEN, HALF_PAST_NINE = 1100012400, 1100021400


def site(nodes: int, *busy: tuple[int, int, int], **facts: Any) -> SiteBook:
    """A site with running jobs ``(start, end, nodes)``."""
    return SiteBook(nodes, [Busy(*row) for row in busy], **facts)


def metajob(
    total: int, duration: int, window: tuple[int, int], *, name: str = "m", usage: Any = "multiple",
    reorder: bool = True, **machines: tuple[int, int],
) -> Metajob:  # fmt: skip
    """A metajob whose preference is the order of ``machines``, each with min and max."""
    return Metajob(
        name, usage, *window, total, duration, tuple(machines), reorder,
        {one: Machine(*bounds) for one, bounds in machines.items()},
    )  # fmt: skip


def search(wanted: Metajob, sites: EmulatedSites, draw: float = 0.5, **options: Any) -> Search:
    return Search(wanted, SearchOptions(**options), sites.facts, draw)


def after_trials(done: Done) -> list[list[Any]]:
    """The log without the rows of trials."""
    return [row for row in done.log if row[0] != "P"]


def random_sites(rng: random.Random, least: int) -> tuple[EmulatedSites, Metajob]:
    """Up to four small sites and a metajob over them, min from ``least`` on; a solution is not certain."""
    books, machines = {}, {}
    for number in range(rng.randint(1, 4)):
        nodes = rng.randint(1, 8)
        starts = [rng.randint(0, 60) for _ in range(rng.randint(0, 4))]
        busy = [(start, start + rng.randint(1, 40), rng.randint(1, nodes)) for start in starts]
        low = rng.randint(least, min(3, nodes))
        books[f"S{number}"] = site(nodes, *busy)
        machines[f"S{number}"] = (low, rng.randint(max(low, 1), nodes))
    names = list(machines)
    rng.shuffle(names)
    fewest, most = (sum(bounds[at] for bounds in machines.values()) for at in (0, 1))
    start, duration = rng.randint(0, 10), rng.randint(1, 30)
    wanted = metajob(
        rng.randint(max(fewest, 1), most), duration, (start, start + duration + rng.randint(0, 60)),
        reorder=rng.random() < 0.7, **{name: machines[name] for name in names},
    )  # fmt: skip
    return EmulatedSites(books), wanted


def best_start(sites: EmulatedSites, wanted: Metajob) -> int | None:
    """The earliest start over all ways to divide the nodes, by trying every second."""
    for start in range(int(wanted.earliest), int(wanted.latest - wanted.duration) + 1):
        low = high = 0
        for name, machine in wanted.machines.items():
            free = max(min(free_nodes(sites.books[name], start, wanted.duration), machine.max), 0)
            if free < machine.min:
                break
            low, high = low + machine.min, high + free
        else:
            if low <= wanted.total <= high:
                return start
    return None


def free_nodes(book: SiteBook, start: int, duration: float) -> int:
    """Nodes of a site that no running job has from ``start`` on for ``duration``."""
    moments = {start, *(one.start for one in book.busy if start <= one.start < start + duration)}
    return book.nodes - max(
        sum(one.nodes for one in book.busy if one.start <= moment < one.end) for moment in moments
    )


def random_queue(rng: random.Random) -> SiteBook:
    """A site with running jobs, a queue in a fixed order, and some system reservations."""
    nodes = rng.randint(4, 12)
    running: list[Busy] = []
    left = nodes
    while left and rng.random() < 0.8:
        taken = rng.randint(1, left)
        running.append(Busy(-rng.randint(0, 20), rng.randint(1, 60), taken))
        left -= taken
    queue = [
        Queued(f"q{n}", rng.randint(1, nodes), rng.randint(1, 60), -rng.randint(0, 50), rng.randint(0, 3))
        for n in range(rng.randint(1, 8))
    ]
    return SiteBook(nodes, running, queue)


class Faulty:
    """Sites that lose answers, do things late, and do not cancel; each by chance."""

    def __init__(self, sites: EmulatedSites, rng: random.Random, rate: float) -> None:
        self.sites, self._rng, self._rate = sites, rng, rate
        self._late: list[Call] = []
        #: Names of reservations that the site never cancels.
        self.stuck: set[str] = set()

    def carry_out(self, call: Call) -> Answer:
        if call.kind == "cancel" and (call.name in self.stuck or self._rng.random() < self._rate / 5):
            self.stuck.add(call.name)
            return Failed("not now")
        if call.kind == "cancel" and self._rng.random() < self._rate:
            return TimedOut()
        if call.kind == "set" and self._rng.random() < self._rate:
            return self._lost(call)
        answer = self.sites.carry_out(call)
        if isinstance(answer, Shown):
            self.arrive()
        return answer

    def _lost(self, call: Call) -> Answer:
        what = self._rng.choice(["never", "kept", "late"])
        if what == "kept":
            self.sites.carry_out(call)
        elif what == "late":
            self._late.append(call)
        return TimedOut()

    def arrive(self) -> None:
        """What was late reaches its site."""
        late, self._late = self._late, []
        for call in late:
            self.sites.carry_out(call)

    def run(self, searching: Search, calls: int | None = None) -> None:
        """The search to its end, or so many calls of it."""
        while calls != 0 and isinstance(call := searching.next(), Call):
            searching.answer(call, self.carry_out(call))
            calls = None if calls is None else calls - 1


def names(sites: EmulatedSites, metajob_id: str = "m") -> set[str]:
    """The reservations that a metajob has."""
    return {one.name for one in sites.of_metajob(metajob_id)}


def rows(*text: str) -> list[list[Any]]:
    """Rows of a log: ``M A 11 0``."""
    return [[int(word) if word.lstrip("-").isdigit() else word for word in row.split()] for row in text]
