"""Sites in virtual time that carry out the calls of searches, and count what the searches cost.

Each site is a :class:`.site_book.SiteBook`. A call takes ``latency`` seconds; nothing else moves the clock.
For the experiments of K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations,
Job Scheduling Strategies for Parallel Processing, 2005.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy

import msgspec

from headway.errors import StateError
from headway_plugins.coscheduling import recovery
from headway_plugins.coscheduling.calls import Answer, Call, Found, Granted, Waited, metajob_of
from headway_plugins.coscheduling.local_batch import LocalBatch
from headway_plugins.coscheduling.options import SiteFacts
from headway_plugins.coscheduling.search import Done, Search
from headway_plugins.coscheduling.site_book import SiteBook


class Costs(msgspec.Struct):
    """What the searches have done so far."""

    calls: int = 0
    made: int = 0
    cancelled: int = 0
    #: Nodes of cancelled reservations times the seconds from the making to the cancel.
    held_in_vain: float = 0.0


class EmulatedSites:
    """Some sites and a clock."""

    def __init__(
        self,
        books: Mapping[str, SiteBook],
        now: float = 0.0,
        latency: float = 0.0,
        batches: Iterable[LocalBatch] = (),
    ) -> None:
        """``batches``: the batch systems of books whose jobs go on while the searches run."""
        self.books = dict(books)
        self.now = now
        self.latency = latency
        self._batches = tuple(batches)
        self.costs = Costs()
        #: When each reservation was made, and how large it is.
        self._made: dict[tuple[str, str], tuple[float, int]] = {}
        #: Changes to the books when a metajob's first call came, and changes that are its own.
        self._before: dict[str, int] = {}
        self._own: dict[str, int] = {}

    @property
    def facts(self) -> dict[str, SiteFacts]:
        """What a search must know of the sites."""
        return {name: SiteFacts(fixed=book.fixed) for name, book in self.books.items()}

    def carry_out(self, call: Call) -> Answer:
        """The answer to one call of a search."""
        if call.kind == "wait":
            self.pass_time(call.seconds)
            return Waited(self.changed(call.job))
        self.costs.calls += 1
        self.pass_time(self.latency)
        metajob, before = metajob_of(call.name), self._changes()
        self._before.setdefault(metajob, before)
        answer = self.books[call.site].answer(call, self.now)
        self._own[metajob] = self._own.get(metajob, 0) + self._changes() - before
        key = (call.site, call.name)
        if isinstance(answer, Granted) and key not in self._made:
            self.costs.made += 1
            self._made[key] = (self.now, answer.nodes)
        elif call.kind == "cancel" and key in self._made:
            since, nodes = self._made.pop(key)
            self.costs.cancelled += 1
            self.costs.held_in_vain += nodes * (self.now - since)
        return answer

    def pass_time(self, seconds: float) -> None:
        """Let the batch systems go on."""
        self.now += seconds
        for batch in self._batches:
            batch.advance(self.now)

    def run(self, search: Search) -> Done:
        """The search from here to its end."""
        while isinstance(call := search.next(), Call):
            search.answer(call, self.carry_out(call))
        return call

    def changed(self, metajob: str) -> bool:
        """Whether anything but the metajob's own calls changed a book since its first call."""
        since = self._changes() - self._before.get(metajob, 0)
        return since > self._own.get(metajob, 0)

    def _changes(self) -> int:
        return sum(book.version for book in self.books.values())

    def shown(self) -> dict[str, list[Found]]:
        """All reservations of each site."""
        return {name: book.show(self.now) for name, book in self.books.items()}

    def of_metajob(self, metajob: str) -> list[Found]:
        """What a metajob has."""
        return [one for found in self.shown().values() for one in found if metajob_of(one.name) == metajob]

    def copy(self) -> EmulatedSites:
        """The same books, without batch systems and without latency."""
        return EmulatedSites(deepcopy(self.books), self.now)

    def recover(self, search: Search) -> list[Call]:
        """Clean up after a search that died; what was done."""
        done = recovery.calls(search.metajob.id, search.journal, self.shown())
        for call in done:
            self.carry_out(call)
        return done


def run_in_turn(sites: EmulatedSites, searches: Iterable[Search], turns: Iterable[int]) -> list[Done]:
    """Searches in competition: a call of the search that ``turns`` names, then one of each in turn."""
    running = list(searches)
    for turn in turns:
        _step(sites, running[turn])
    while any([_step(sites, search) for search in running]):
        pass
    return [_done(search) for search in running]


def _step(sites: EmulatedSites, search: Search) -> bool:
    call = search.next()
    if isinstance(call, Call):
        search.answer(call, sites.carry_out(call))
    return isinstance(call, Call)


def _done(search: Search) -> Done:
    done = search.next()
    if isinstance(done, Call):
        raise StateError(f"metajob {search.metajob.id}: expected the end of the search, found {done}")
    return done
