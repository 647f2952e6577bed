"""AnthillSched: copies for each filter of a pipeline, by its shares of bytes and of time.

L. F. Goes and others: AnthillSched: A Scheduling Strategy for Irregular and Iterative I/O-Intensive
Parallel Jobs. JSSPP 2005, section 3 and Figure 2. Of p processors filter j gets p times the mean of its
share of the bytes received and its share of the time, as measured with one copy of each filter. A broadcast
multiplies the bytes that its receiver gets by the receiver's copies, so this is repeated.

Decisions on what the paper leaves open:

- C is declared an array of integers, and assigned real numbers: it is rounded in every iteration
  (``mode="loop"``; bytes depend on whole copies), or once at the end (``mode="final"``). See :func:`rounded`.
- ``iterations`` (m) is 10 by default, and fewer where the copies repeat.
- The successor of the last filter is the first one (the printed index leads to a filter that does not
  exist), and the stream that is asked for a broadcast is the stream between them.
- With fewer processors than filters each filter has one copy; copies share processors.
- Bytes, or times, that are all zero say nothing: the other kind counts alone. If both are, all shares are
  the same.
- A filter whose data lie on D nodes may be capped: copies beyond D would idle. What is left over goes to the
  others by their shares. The paper names the flaw, and no remedy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Mode = Literal["loop", "final"]

#: m.
ITERATIONS = 10
#: Of bytes and of time.
WEIGHTS = (0.5, 0.5)
#: Shares that differ by less are the same: sums of fractions are not exact.
_SAME = 1e-9


def shares(
    received: Sequence[float], seconds: Sequence[float], weights: tuple[float, float] = WEIGHTS
) -> list[float]:
    """Each filter's relative need, from 0 to 1 and 1 all together: of bytes received and seconds spent."""
    all_bytes, all_seconds = sum(received), sum(seconds)
    by_bytes = weights[0] if all_bytes > 0 else 0.0
    by_time = weights[1] if all_seconds > 0 else 0.0
    both = by_bytes + by_time
    if not both > 0:
        return [1.0 / len(received)] * len(received)
    return [
        (by_bytes * b / (all_bytes or 1.0) + by_time * e / (all_seconds or 1.0)) / both
        for b, e in zip(received, seconds, strict=True)
    ]


def rounded(
    wanted: Sequence[float], processors: int, caps: Sequence[int | None] | None = None
) -> tuple[int, ...]:
    """Whole copies, at least a copy of each filter, max(processors, filters) all together.

    Begins with the whole part of what is wanted. Further copies go to the filter that misses most; copies are
    taken from the filter with the least above what it wants; the first filter on ties. Caps may leave
    processors over.
    """
    most = [math.inf if cap is None else max(cap, 1) for cap in caps or [None] * len(wanted)]
    total = max(processors, len(wanted))
    copies = [min(max(1, math.floor(x + _SAME)), m) for x, m in zip(wanted, most, strict=True)]

    def missing(j: int) -> float:
        return round(wanted[j] - copies[j], 9)

    while sum(copies) < total:
        open_ones = [j for j in range(len(wanted)) if copies[j] < most[j]]
        if not open_ones:
            break
        copies[max(open_ones, key=lambda j: (missing(j), -j))] += 1
    while sum(copies) > total:
        copies[min((j for j in range(len(wanted)) if copies[j] > 1), key=lambda j: (missing(j), j))] -= 1
    return tuple(int(count) for count in copies)


def divided(parts: Sequence[float], processors: int, caps: Sequence[int | None] | None = None) -> list[float]:
    """Processors by shares, no filter above its cap; other filters divide what is left by their shares."""
    found = [processors * share for share in parts]
    if not caps:
        return found
    open_ones = set(range(len(parts)))
    left = float(processors)
    while True:
        whole = sum(parts[j] for j in open_ones)
        for j in open_ones:
            found[j] = left * parts[j] / whole if whole > 0 else left / len(open_ones)
        above = {j for j in open_ones if (cap := caps[j]) is not None and found[j] > cap}
        if not above:
            return found
        for j in above:
            found[j] = float(caps[j] or 0)
            left -= found[j]
        open_ones -= above
        if not open_ones:
            return found


def anthill(
    received: Sequence[float],
    seconds: Sequence[float],
    processors: int,
    broadcast: Sequence[bool] = (),
    *,
    iterations: int = ITERATIONS,
    mode: Mode = "loop",
    weights: tuple[float, float] = WEIGHTS,
    caps: Sequence[int | None] | None = None,
) -> tuple[int, ...]:
    """How many copies each filter gets: C.

    ``received``, ``seconds``: beta and E, of each filter in a run with one copy each. ``broadcast``: whether
    the stream from it to its successor, after the last the first, is one. Raises ValueError for what is no
    profile, or no machine.
    """
    steps = history(
        received, seconds, processors, broadcast,
        iterations=iterations, mode=mode, weights=weights, caps=caps,
    )  # fmt: skip
    return rounded(steps[-1], processors, caps)


def history(
    received: Sequence[float],
    seconds: Sequence[float],
    processors: int,
    broadcast: Sequence[bool] = (),
    *,
    iterations: int = ITERATIONS,
    mode: Mode = "loop",
    weights: tuple[float, float] = WEIGHTS,
    caps: Sequence[int | None] | None = None,
) -> list[list[float]]:
    """What each filter would get in each iteration, before it is rounded: real numbers."""
    _check(received, seconds, processors, weights, iterations)
    count = len(received)
    flags = list(broadcast) or [False] * count
    if len(flags) != count:
        raise ValueError(f"expected a stream behind each of {count} filters, found {len(flags)}")
    now = list(received)
    steps: list[list[float]] = []
    before: Sequence[float] = ()
    for _ in range(iterations):
        wanted = divided(shares(now, seconds, weights), processors, caps)
        steps.append(wanted)
        copies: Sequence[float] = rounded(wanted, processors, caps) if mode == "loop" else wanted
        if copies == before:
            break
        before = copies
        for j in range(count):
            if flags[j]:
                receiver = (j + 1) % count
                now[receiver] = received[receiver] * copies[receiver]
    return steps


def _check(
    received: Sequence[float],
    seconds: Sequence[float],
    processors: int,
    weights: tuple[float, float],
    iterations: int,
) -> None:
    if not received or len(received) != len(seconds):
        raise ValueError(
            f"expected bytes and seconds of the same filters, found {len(received)} and {len(seconds)}"
        )
    for what, values in (("bytes", received), ("seconds", seconds), ("weights", weights)):
        for value in values:
            if not 0 <= value < math.inf:
                raise ValueError(f"expected {what} of at least 0, found {value:g}")
    if not sum(weights) > 0:
        raise ValueError("expected a weight above 0")
    if processors < 1:
        raise ValueError(f"expected at least 1 processor, found {processors}")
    if iterations < 1:
        raise ValueError(f"expected at least 1 iteration, found {iterations}")


def balanced(filters: int, processors: int) -> tuple[int, ...]:
    """The Balanced Strategy: as many for each, what is left over for the first filters; one at least."""
    each, more = divmod(processors, filters)
    if not each:
        return (1,) * filters
    return (each + 1,) * more + (each,) * (filters - more)


def all_in_all(filters: int, processors: int) -> tuple[int, ...]:
    """The All-in-all Strategy: a copy of every filter on every processor."""
    return (processors,) * filters
