"""What ``headway limits`` tells: shapes for programs, and the daemon's question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from headway.inquiry.pages import MOST, page
from headway.model.questions import Question
from headway_plugins.limits.use import Holder, unit

#: The question, by the name that the daemon knows it by.
LIMITS = "limits"


class Wanted(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The text of the question: which page."""

    first: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = MOST


class LimitReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A limit, and what is in use of it."""

    #: Whose it is, for a person.
    of: str
    #: What is limited: jobs, processors, nodes, memory, processor_minutes, budget, wall_minutes, walltime, or
    #: resource:NAME; and its unit.
    measure: str
    unit: str
    limit: float
    #: In use by the jobs that run; None: the limit is that of a single job.
    used: float | None = None


class LimitList(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits that jobs came under, and of which the asking user may know."""

    rows: tuple[LimitReport, ...]
    #: Where the next page begins.
    next: int | None = None


def limit_reports(holders: Iterable[Holder], now: float) -> Iterator[LimitReport]:
    """The limits of these at ``now`` (absolute seconds), holder by holder."""
    for holder in holders:
        for measure, limit in holder.limits.items():
            yield LimitReport(holder.label, measure, unit(measure), limit, holder.used(measure, now))
        for measure, limit in holder.single.items():
            yield LimitReport(holder.label, measure, unit(measure), limit)


def limit_page(holders: Iterable[Holder], now: float, question: Question) -> LimitList:
    """A page of the limits of these; :class:`headway.errors.UserError` for a text that asks for none."""
    asked = question.read(Wanted)
    made, then = page(limit_reports(holders, now), lambda one: one, asked.first, asked.count)
    return LimitList(made, then)
