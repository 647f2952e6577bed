"""What to do after a crash in the middle of a search.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005: a reservation lasts until it is cancelled, so a search that dies must be
cleaned up.

Ours: each site is shown. What a recorded SUCCESS names is bound, which may be repeated. Everything else of
the metajob is cancelled, whether or not its answer reached the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway_plugins.coscheduling.calls import Call, Found, metajob_of


def promised(journal: Iterable[Sequence[Any]]) -> set[str]:
    """The names of the reservations that belong to a recorded SUCCESS; empty: there was none."""
    return {name for row in journal if row[0] == "success" for name in row[1]}


def calls(metajob: str, journal: Iterable[Sequence[Any]], shown: Mapping[str, Iterable[Found]]) -> list[Call]:
    """The binds and cancels that make the sites agree with the journal.

    ``shown``: the reservations of each site; reservations of other metajobs may be among them. All calls may
    be repeated.
    """
    kept = promised(journal)
    found = []
    for site, reservations in shown.items():
        for one in reservations:
            if metajob_of(one.name) != metajob:
                continue
            if one.name in kept:
                found.append(Call("bind", site, one.name, job=metajob))
            else:
                found.append(Call("cancel", site, one.name))
    return found


def missing(journal: Iterable[Sequence[Any]], shown: Mapping[str, Iterable[Found]]) -> list[str]:
    """Names that belong to a recorded SUCCESS and that no site has: the metajob has lost them."""
    there = {one.name for reservations in shown.values() for one in reservations}
    return sorted(promised(journal) - there)
