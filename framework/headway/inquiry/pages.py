"""A part of a long list, made in a short time: nobody who asks may delay the scheduler's next step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from time import perf_counter, thread_time
from typing import TypeVar

Item = TypeVar("Item")
Report = TypeVar("Report")

#: Reports of a page, at most.
MOST = 500
#: Seconds of processor time that the making of a page may take: then it ends before it is full.
SECONDS = 0.02
#: Nodes that the reports of a page may name together: then it ends as well.
NODES = 20_000


def page(
    items: Iterator[Item],
    report: Callable[[Item], Report],
    first: int,
    count: int,
    *,
    nodes: Callable[[Report], int] = lambda _: 0,
    seconds: float = SECONDS,
) -> tuple[tuple[Report, ...], int | None]:
    """At most ``count`` reports from the place ``first`` on, and where the next page begins (None: nowhere).

    At least one report is made, and no further one once that has taken ``seconds``, or once the reports name
    more nodes (``nodes``) than :data:`NODES`.
    """
    made: list[Report] = []
    # To ask for the thread's own time takes longer than many a report.
    end, passed, named = math.inf, math.inf, 0
    for item in islice(items, first, None):
        if made and (
            len(made) >= min(count, MOST)
            or named > NODES
            or (perf_counter() >= passed and thread_time() >= end)
        ):
            return tuple(made), first + len(made)
        if not made:
            end, passed = thread_time() + seconds, perf_counter() + seconds
        made.append(report(item))
        named += nodes(made[-1])
    return tuple(made), None
