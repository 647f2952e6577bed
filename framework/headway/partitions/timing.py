"""How long a step of a partition's life takes at a size."""

from __future__ import annotations

from itertools import pairwise
from math import log2

from headway.model.wiring import Times


def seconds_at(times: Times, nodes: int) -> float:
    """The time at a number of compute nodes, in seconds.

    Between the given sizes linear in the logarithm of the size; below the smallest its time; above the
    largest the last slope goes on (but a time is never below the largest size's).
    """
    if nodes <= times[0][0] or len(times) == 1:
        return times[0][1]
    for (size, seconds), (larger, more) in pairwise(times):
        if nodes <= larger or larger == times[-1][0]:
            found = seconds + (more - seconds) * (log2(nodes) - log2(size)) / (log2(larger) - log2(size))
            return found if nodes <= larger else max(found, more)
    raise AssertionError("unreachable")
