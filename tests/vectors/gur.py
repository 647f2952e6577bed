"""Runs a case of the vectors of GUR: see :func:`answer`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from headway.errors import UserError
from headway_plugins.coscheduling import recovery
from headway_plugins.coscheduling.calls import (
    Answer,
    Call,
    Carried,
    Failed,
    Found,
    Granted,
    TimedOut,
)
from headway_plugins.coscheduling.distributions import distributions
from headway_plugins.coscheduling.metajob import of_record
from headway_plugins.coscheduling.options import SearchOptions, SiteFacts
from headway_plugins.coscheduling.queue_plan import Busy, Queued
from headway_plugins.coscheduling.search import Done, Search
from headway_plugins.coscheduling.site_book import SiteBook
from headway_plugins.coscheduling.site_policy import SitePolicy


def answer(case: dict[str, Any]) -> Any:
    """What the product says of a case; kinds and fields are those of the vectors' description."""
    return KINDS[case.get("kind", "search")](given(case))


def given(value: Any) -> Any:
    """The value without the fields that are null, which stand for their defaults."""
    if isinstance(value, dict):
        return {name: given(part) for name, part in value.items() if part is not None}
    return [given(part) for part in value] if isinstance(value, list) else value


def book_of(site: dict[str, Any]) -> SiteBook:
    return SiteBook(
        site["nodes"],
        [Busy(*row) for row in site.get("busy", ())],
        [Queued(*row) for row in site.get("queue", ())],
        grain=site.get("grain", 0),
        min_duration=site.get("min_duration", 0),
        fixed=site.get("fixed", False),
        policy=SitePolicy(**(site.get("policy") or {})),
        refuse_after=site.get("refuse_after"),
    )


class Sites:
    """The sites of a case, and what goes wrong there."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.books = {name: book_of(site) for name, site in case["sites"].items()}
        self.now = {name: site.get("now", 0) for name, site in case["sites"].items()}
        self.facts = {name: SiteFacts(fixed=book.fixed) for name, book in self.books.items()}
        self._faults = {(what, number): how for what, number, how in case.get("faults", ())}
        self._counts: dict[str, int] = {}
        self._late: list[Call] = []

    def carry_out(self, call: Call) -> Answer:
        number = self._counts[call.kind] = self._counts.get(call.kind, 0) + 1
        how = self._faults.get((call.kind, number), "")
        if how == "fail":
            return Failed()
        if how.startswith("timeout"):
            if how.endswith("kept"):
                self._do(call)
            elif how.endswith("late"):
                self._late.append(call)
            return TimedOut()
        found = self._do(call)
        if call.kind == "show":
            # It has just been looked for in vain.
            arrived = [late for late in self._late if late.site == call.site]
            for late in arrived:
                self._late.remove(late)
                self._do(late)
        return found

    def _do(self, call: Call) -> Answer:
        return self.books[call.site].answer(call, self.now[call.site])

    def shown(self) -> dict[str, list[Found]]:
        return {name: book.show(self.now[name]) for name, book in self.books.items()}

    def left(self) -> dict[str, list[list[Any]]]:
        rows = {
            name: [[one.name, one.nodes, one.start, one.end, one.state] for one in reservations]
            for name, reservations in self.shown().items()
        }
        return {name: reservations for name, reservations in rows.items() if reservations}


def result(done: Done) -> dict[str, Any]:
    return {
        "outcome": done.outcome,
        "why": done.why,
        "order": done.order,
        "delays": {name: "inf" if delay == float("inf") else delay for name, delay in done.delays.items()},
        "start": done.start,
        "vector": [[part.site, part.nodes, part.start, part.end] for part in done.parts] or None,
        "rounds": done.rounds,
        "tried": done.tried,
        "log": done.log,
        "leaks": [list(leak) for leak in done.leaks],
    }


#: Of a metajob that is refused before any call.
REFUSED = {
    "outcome": "REFUSED", "order": [], "delays": {}, "start": None, "vector": None, "rounds": 0, "tried": 0,
    "log": [], "leaks": [],
}  # fmt: skip


def begin(case: dict[str, Any], metajob: dict[str, Any], sites: Sites) -> Search | dict[str, Any]:
    """The search, or the result of a metajob that is refused before any call."""
    usual = {"usage": "pipeline" if "stages" in metajob else "multiple"}
    try:
        return Search(of_record({**usual, **metajob}), SearchOptions(**case.get("options", {})), sites.facts)
    except UserError as error:
        return {**REFUSED, "why": str(error)}


def step(search: Search | dict[str, Any], sites: Sites) -> bool:
    """One call; False: there is none."""
    if isinstance(search, dict):
        return False
    call = search.next()
    if isinstance(call, Done):
        return False
    search.answer(call, sites.carry_out(call))
    return True


def run(search: Search | dict[str, Any], sites: Sites) -> dict[str, Any]:
    while step(search, sites):
        pass
    if isinstance(search, dict):
        return search
    done = search.next()
    assert isinstance(done, Done)
    return result(done)


def of_search(case: dict[str, Any]) -> dict[str, Any]:
    sites = Sites(case)
    return {**run(begin(case, case["metajob"], sites), sites), "left": sites.left()}


def of_race(case: dict[str, Any]) -> dict[str, Any]:
    sites = Sites(case)
    searches = [begin(case, metajob, sites) for metajob in case["metajobs"]]
    for turn in case["turns"]:
        step(searches[turn], sites)
    while any([step(search, sites) for search in searches]):
        pass
    return {"results": [run(search, sites) for search in searches], "left": sites.left()}


def of_crash(case: dict[str, Any]) -> dict[str, Any]:
    sites = Sites(case)
    search = begin(case, case["metajob"], sites)
    if isinstance(search, dict):
        return {"before": {}, "finished": True, "journal": [], "recovered": [], "left": {}}
    for number in range(1, case["after"] + 1):
        call = search.next()
        if isinstance(call, Done):
            break
        found = sites.carry_out(call)
        if number == case["after"] and case.get("lost"):
            break
        search.answer(call, found)
    before, journal = sites.left(), [list(row) for row in search.journal]
    recovered = []
    for call in recovery.calls(case["metajob"]["id"], journal, sites.shown()):
        bound = ["ok" if isinstance(sites.carry_out(call), Carried) else "refused"]
        row = ["B"] if call.kind == "bind" else ["X"]
        recovered.append([*row, call.site, call.name, *(bound if call.kind == "bind" else [])])
    return {
        "before": before,
        "finished": isinstance(search.next(), Done),
        "journal": journal,
        "recovered": recovered,
        "left": sites.left(),
    }


def of_policy(case: dict[str, Any]) -> list[Any]:
    book = book_of(case["site"])
    return [_request(book, op, now, what) for op, now, what in case["requests"]]


def _request(book: SiteBook, op: str, now: float, what: dict[str, Any]) -> list[Any]:
    if op == "queue":
        job = Queued(*what["job"])
        book.enqueue(job)
        return ["QUEUED", book.starts(now).get(job.id)]
    if op == "show":
        named = what.get("name")
        return [
            [one.name, one.nodes, one.start, one.end, one.state]
            for one in book.show(now)
            if named in (None, one.name)
        ]
    if op == "cancel":
        book.cancel(what["name"])
        return ["ok"]
    if op == "bind":
        return ["ok" if isinstance(book.bind(what["name"], what["job"], now), Carried) else "refused"]
    call = Call(
        "set", name=what["name"], nodes=what["n"], exact=what.get("exact", True), duration=what["duration"],
        earliest=what["earliest"], latest=what["latest"], account=what.get("account", ""),
    )  # fmt: skip
    found = book.set(call, now)
    if op == "test":
        book.cancel(call.name)
    return ["GRANTED", found.start, found.nodes] if isinstance(found, Granted) else ["DENIED", found.reason]


def of_queue(case: dict[str, Any]) -> dict[str, Any]:
    book, now = book_of(case["site"]), case.get("now", case["site"].get("now", 0))
    starts = book.starts(now)
    return {
        "starts": {job.id: starts.get(job.id) for job in book.queue},
        "profile": [list(row) for row in book.profile(now)],
    }


def of_vectors(case: dict[str, Any]) -> list[list[int]]:
    found = distributions(
        [(low, high) for low, high in case["machines"]], case["total"], case.get("node_step") or 1
    )
    return [list(vector) for vector in islice(found, case.get("limit"))]


KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "search": of_search,
    "race": of_race,
    "crash": of_crash,
    "policy": of_policy,
    "queue": of_queue,
    "vectors": of_vectors,
}
