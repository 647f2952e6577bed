"""Ways to divide nodes over machines, from the first preference on.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling
Strategies for Parallel Processing, 2005, section 5: "Nodes are preferentially distributed to the least
loaded systems. If the initial distribution [...] is not possible [...], a new distribution is generated,
giving more nodes to the more heavily loaded clusters."

Ours: all vectors (n_1 .. n_k) with min_i <= n_i <= max_i and the sum ``total``, in descending lexicographic
order, where machine 1 is the least loaded. With a ``step`` each machine first has the most that it can, then
``step`` nodes fewer each time, as long as the machines behind it can take the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

#: The least and the most nodes of each machine.
Bounds = Sequence[tuple[int, int]]


def distributions(bounds: Bounds, total: int, step: int = 1) -> Iterator[tuple[int, ...]]:
    """The vectors one by one; none if ``total`` cannot be divided."""
    # least[i], most[i]: what the machines from i on can take.
    least, most = [0], [0]
    for low, high in reversed(bounds):
        least.append(least[-1] + low)
        most.append(most[-1] + high)
    least.reverse()
    most.reverse()

    def choices(at: int, rest: int) -> range:
        low, high = bounds[at]
        return range(min(high, rest - least[at + 1]), max(low, rest - most[at + 1]) - 1, -step)

    if not bounds or not least[0] <= total <= most[0]:
        return
    chosen: list[int] = []
    open_: list[Iterator[int]] = [iter(choices(0, total))]
    while open_:
        value = next(open_[-1], None)
        if value is None:
            open_.pop()
            if chosen:
                chosen.pop()
            continue
        if len(chosen) == len(bounds) - 1:
            yield (*chosen, value)
            continue
        chosen.append(value)
        open_.append(iter(choices(len(chosen), total - sum(chosen))))
