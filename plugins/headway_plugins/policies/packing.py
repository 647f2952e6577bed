"""Which waiting jobs fill the free processors best: subset sums with bitsets.

The packing problems of LOS (E. Shmueli and D. Feitelson: Backfilling with lookahead to optimize the
packing of parallel jobs. JPDC 65(9), 2005) and of Delayed-LOS and Hybrid-LOS (R. Kumar, Z. Shae,
H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a Parallel Processing
Environment. 2012): *Basic_DP* and *Reservation_DP*.

A job counts either nothing or its full size towards a freeze, so the reachable sums can be held as
sets of integers, and a set of integers as one Python integer: bit ``n`` is set when the sum ``n`` is
reachable, and adding a job of size ``s`` is ``reach |= reach << s``. Jobs that run past the freeze
are added first, under the freeze's capacity, the others after them under the free processors; the
highest bit is the best total. This is exact, and costs one shift a job.

Among several subsets of the best total, the subset with the earliest jobs is taken: the first job if
any best subset contains it, and so on. It is found from the front, asking for each job whether the
jobs behind it can still complete the best total.
"""

from __future__ import annotations

from collections.abc import Sequence


def basic(sizes: Sequence[int], free: int) -> list[int]:
    """Basic_DP: positions of the jobs whose sizes sum to the most, at most ``free``."""
    return pack(sizes, [0] * len(sizes), free, ())


def pack(sizes: Sequence[int], crossed: Sequence[int], free: int, freezes: Sequence[int]) -> list[int]:
    """Reservation_DP, for any number of freezes: positions of the best subset, in order.

    ``freezes`` are the capacities of the freezes (processors that may run past each of them), by
    time, earliest first. ``crossed[i]`` says how many of them job ``i`` runs past: a job that
    runs past a later freeze runs past the earlier freezes too. The chosen sizes sum to the most that
    is at most ``free`` while the jobs that run past freeze ``k`` sum to at most ``freezes[k]``.
    """
    capacities = (free, *(min(free, max(freeze, 0)) for freeze in freezes))
    if free <= 0 or not sizes:
        return []
    reach = _reachable(sizes, crossed, range(len(sizes)), capacities)
    best = reach.bit_length() - 1
    if best == 0:
        return []
    if len(freezes) <= 1:
        return _earliest_of_two(sizes, crossed, capacities, best)
    return _earliest(sizes, crossed, capacities, best)


def _reachable(
    sizes: Sequence[int], crossed: Sequence[int], jobs: Sequence[int] | range, capacities: Sequence[int]
) -> int:
    """Sums that subsets of ``jobs`` can have. ``capacities[k]``: of jobs that cross k freezes or more."""
    reach = 1
    for level in range(len(capacities) - 1, -1, -1):
        if capacities[level] < 0:
            return 0
        mask = (1 << (capacities[level] + 1)) - 1
        reach &= mask
        for job in jobs:
            if crossed[job] == level:
                reach |= (reach << sizes[job]) & mask
    return reach


def _earliest_of_two(
    sizes: Sequence[int], crossed: Sequence[int], capacities: Sequence[int], best: int
) -> list[int]:
    """The subset of total ``best`` with the earliest jobs, for no freeze or a single freeze.

    ``past[i]`` are the sums that the jobs from ``i`` on that run past the freeze can have;
    ``ending[i]`` the sums that the other jobs can have, mirrored (bit ``best - n`` for the sum n), so that a
    pair with a given total is found by one shift and one "and".
    """
    count = len(sizes)
    freeze = capacities[1] if len(capacities) > 1 else 0
    mask = (1 << (freeze + 1)) - 1
    past, ending = [1] * (count + 1), [1 << best] * (count + 1)
    for job in range(count - 1, -1, -1):
        if crossed[job]:
            past[job] = past[job + 1] | ((past[job + 1] << sizes[job]) & mask)
            ending[job] = ending[job + 1]
        else:
            past[job] = past[job + 1]
            ending[job] = ending[job + 1] | (ending[job + 1] >> sizes[job])
    chosen: list[int] = []
    left = best
    for job in range(count):
        size = sizes[job]
        if size > left:
            continue
        after = left - size
        room = freeze - size if crossed[job] else freeze
        if room < 0:
            continue
        if (ending[job + 1] >> (best - after)) & past[job + 1] & ((1 << (room + 1)) - 1):
            chosen.append(job)
            left, freeze = after, room
            if not left:
                break
    return chosen


def _earliest(
    sizes: Sequence[int], crossed: Sequence[int], capacities: Sequence[int], best: int
) -> list[int]:
    """As :func:`_earliest_of_two` for any number of freezes; quadratic in the number of jobs."""
    rooms = list(capacities)
    chosen: list[int] = []
    left = best
    for job in range(len(sizes)):
        size = sizes[job]
        if size > left:
            continue
        after = [room - size if level <= crossed[job] else room for level, room in enumerate(rooms)]
        if min(after) < 0:
            continue
        if (_reachable(sizes, crossed, range(job + 1, len(sizes)), after) >> (left - size)) & 1:
            chosen.append(job)
            left -= size
            rooms = after
            if not left:
                break
    return chosen
