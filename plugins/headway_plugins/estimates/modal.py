"""How many of so many jobs have which estimate: the modal histogram of users' runtime estimates.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP 2005 (LNCS 3834), sections 3-6.
A *mode* is one estimate and the share of the jobs that have it. Of K modes the 20 most popular, the *head*,
have 89 % of the jobs; the others are the *tail*. Symbols: N jobs, T_max the largest allowed estimate,
F_K (:func:`modes`), F_tim (:func:`times`), F_pop (:func:`shares`), F_log (:mod:`.ranks`).

What the paper leaves open, as decided here:

- Table 3's fifth point is 10,000 jobs (printed "10,0000"). Beyond its last one, 250,000 jobs, K stays 565.
- "Rounded to minutes if not colliding": in ascending order a time becomes the nearest free minute between 0
  and T_max, else the nearest free second. T_max itself is never rounded, so K different times come out.
- Head times replace the nearest of the K times, pair by pair from the closest on; ties: the smaller ones.
- A small T_max gives fewer than 20 multiples of the paper's steps: multiples of 2 minutes and 1 minute
  follow, and then the head is shorter. Without a tail the head has all jobs.
- A mode that is given replaces the nearest head time that is not given, never T_max, and the nearest share.
  If the share of T_max is given, the other shares of the head fill 89 % beside it (as in the authors'
  published code; else a share near T_max's usual share would stay without its time). If those that
  are given have 89 % or more, the rest of the head vanishes, and the tail has what is left.
- Shares become counts by rounding half up, at least 1; what is left over goes one by one to the modes that
  are not given, from the largest on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway_plugins.estimates.ranks import HEAD, Draws, popularity

Floats = NDArray[np.float64]

MINUTE, HOUR = 60, 3600

#: Jobs, and the number of modes: Table 3, straight lines between.
_POINTS = ((0, 0), (20, 10), (200, 20), (1_000, 35), (10_000, 90), (70_000, 340), (250_000, 565))

#: Seconds: the estimates that are popular in all logs.
JOINT = (
    *(minutes * MINUTE for minutes in (5, 10, 15, 20, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)),
)
#: Seconds: multiples of these fill the head up.
_STEPS = (
    *(hours * HOUR for hours in (200, 100, 50, 10, 5, 2, 1)),
    *(minutes * MINUTE for minutes in (20, 10, 5, 2, 1)),
)

#: Seconds: the smallest maximum that makes sense.
LEAST_MAXIMUM = MINUTE


@dataclass(frozen=True)
class Constants:
    """The fitted constants: as the paper prints them, unless others are given."""

    #: a = 1 + ``shape_factor`` K ^ ``shape_power``.
    shape_factor: float = 12.1
    shape_power: float = -0.6
    #: Share of the head's rank j: ``head_factor`` e ^ (``head_rate`` j) + ``head_base``, per cent.
    head_factor: float = 14.05
    head_rate: float = -0.18
    head_base: float = 0.46
    #: Share of the tail's rank i: in proportion to ``tail_factor`` i ^ ``tail_power``.
    tail_factor: float = 795.6
    tail_power: float = -2.27
    #: Per cent of the jobs in the head.
    head_mass: float = 89.0


#: As the paper prints them, and as in the authors' program of the Parallel Workloads Archive.
PAPER = Constants()
PUBLISHED_CODE = Constants(
    shape_factor=12.1039, shape_power=-0.6026, head_factor=14.0491, head_rate=-0.177531, head_base=0.462513,
    tail_power=-2.267,
)  # fmt: skip


class Permuting(Draws, Protocol):
    """What is used of :class:`numpy.random.Generator`."""

    def permutation(self, x: int, /) -> Any:
        """The numbers from 0 to ``x`` - 1 in random order."""
        ...


@dataclass(frozen=True)
class Mode:
    """An estimate, and how many jobs have it."""

    seconds: int
    jobs: int


@dataclass(frozen=True)
class Pair:
    """A mode that is given: its time (seconds) and its share of the jobs (per cent)."""

    seconds: int
    share: float


def modes(jobs: int) -> int:
    """F_K: the number of different estimates of so many jobs, by the paper's Table 3."""
    x, y = zip(*_POINTS, strict=True)
    return _half_up(float(np.interp(jobs, x, y)))


def modes_by_power(jobs: int, factor: float = 1.1, power: float = 0.5) -> int:
    """F_K by the paper's power law. Its later fit in the published code: 0.653566, 0.547761."""
    return _half_up(factor * jobs**power)


def shape(k: int, constants: Constants = PAPER) -> float:
    """a(K): how early the times bend upwards."""
    return 1.0 + constants.shape_factor * float(k) ** constants.shape_power


def curve(x: Floats | float, a: float) -> Any:
    """f(x) = (a - 1) x / (a - x): rises from 0 to 1."""
    return (a - 1.0) * x / (a - x)


def times(k: int, maximum: int, a: float) -> list[int]:
    """F_tim: ``k`` different times (seconds) that rise to ``maximum``, whole minutes where they are free."""
    if maximum < k:
        raise UserError(
            f"estimates: expected a maximum of at least {k} s for {k} different estimates, found {maximum} s"
        )
    found: set[int] = set()
    for raw in (maximum * curve(np.arange(1, k) / k, a)).tolist():
        minute = MINUTE * _half_up(raw / MINUTE)
        if 0 < minute < maximum and minute not in found:
            found.add(minute)
        else:
            found.add(next(s for s in _around(_half_up(raw)) if 0 < s < maximum and s not in found))
    return [*sorted(found), maximum]


def head_times(maximum: int) -> list[int]:
    """The popular times of a site with this maximum (seconds): T_max, then the others from the shortest on.

    20 of them, or fewer where T_max has not so many minutes.
    """
    if maximum < LEAST_MAXIMUM:
        raise UserError(f"estimates: expected a maximum of at least {LEAST_MAXIMUM} s, found {maximum} s")
    found = [maximum, *(time for time in JOINT if time < maximum)]
    for step in _STEPS:
        for time in range(maximum // step * step, 0, -step):
            if len(found) < HEAD and time not in found and time < maximum:
                found.append(time)
    return [maximum, *sorted(found[1:])]


def shares(k: int, constants: Constants = PAPER) -> tuple[list[float], list[float]]:
    """F_pop: the shares of the head and of the tail of ``k`` modes, per cent, by popularity; 100 together."""
    return _shares(k, min(HEAD, k), constants)


def _shares(k: int, head: int, constants: Constants) -> tuple[list[float], list[float]]:
    ranks = np.arange(2, head + 1)
    small = constants.head_factor * np.exp(constants.head_rate * ranks) + constants.head_base
    first = constants.head_mass - float(small.sum())
    if k and first <= 0:
        raise UserError(
            f"estimates: head_mass: expected more than the {small.sum():.4g} % of the popular estimates but "
            f"the first, found {constants.head_mass:g} %"
        )
    found = [first, *small.tolist()]
    if k <= head:
        return [share * 100.0 / constants.head_mass for share in found], []
    tail = constants.tail_factor * np.arange(HEAD + 1, HEAD + 1 + k - head) ** constants.tail_power
    return found, (tail * (100.0 - constants.head_mass) / tail.sum()).tolist()


def with_heads(all_times: Sequence[int], heads: Sequence[int]) -> list[int]:
    """The times (ascending, T_max last), where the times of ``heads`` replace the nearest times, sorted."""
    there = set(all_times)
    new = [head for head in heads if head not in there]
    kept = set(heads)
    old = [time for time in all_times if time not in kept]
    gone = {time for _, time in _nearest_pairs(new, old)}
    return sorted((there - gone) | set(heads))


def with_given_times(heads: Sequence[int], pairs: Sequence[Pair]) -> list[int]:
    """Head times, T_max first, where each given time replaces the nearest time that is not given."""
    given = [pair.seconds for pair in pairs]
    free = [time for time in heads[1:] if time not in given]
    gone = {time for _, time in _nearest_pairs([time for time in given if time not in heads], free)}
    return [heads[0], *sorted(({*heads[1:]} - gone) | ({*given} - {heads[0]}))]


def with_given_shares(
    head: Sequence[float], tail: Sequence[float], pairs: Sequence[Pair], maximum: int, constants: Constants
) -> tuple[list[float], list[float], dict[int, int]]:
    """Shares of head and tail by rank when some are given, and the rank of each time that is."""
    default: list[float] = list(head)
    owner: dict[int, int] = {}
    mass = constants.head_mass if tail else 100.0
    of_maximum = next((pair.share for pair in pairs if pair.seconds == maximum), None)
    if of_maximum is not None:
        factor = max(mass - of_maximum, 0.0) / sum(default[1:]) if len(default) > 1 else 1.0
        default = [of_maximum, *(share * factor for share in default[1:])]
        owner[0] = maximum
    for pair in sorted((p for p in pairs if p.seconds != maximum), key=lambda p: (-p.share, p.seconds)):
        at = min(
            (at for at in range(1, len(default)) if at not in owner),
            key=lambda at: (abs(default[at] - pair.share), at),
        )
        default[at], owner[at] = pair.share, pair.seconds
    if pairs:
        used = sum(pair.share for pair in pairs)
        rest = sum(share for at, share in enumerate(default) if at not in owner)
        factor = max(mass - used, 0.0) / rest if rest > 0 else 0.0
        default = [share if at in owner else share * factor for at, share in enumerate(default)]
        left = 100.0 - sum(default)
        tail = [share * left / sum(tail) for share in tail]
    fixed = 0 if of_maximum is not None else 1
    order = sorted(range(fixed, len(default)), key=lambda at: (-default[at], at))
    order = [*range(fixed), *order]
    ranks = {owner[at]: rank for rank, at in enumerate(order, start=1) if at in owner}
    return [default[at] for at in order], list(tail), ranks


def counts(bins: Sequence[tuple[int, float, bool]], jobs: int) -> list[Mode]:
    """So many jobs on modes (time, share in per cent, whether it is given), ascending in time.

    Modes without a share are left out; one that is given has its rounded share, if there are others.
    """
    bins = [one for one in bins if one[1] > 0]
    number = {
        time: _half_up(share * jobs / 100) if given else max(1, _half_up(share * jobs / 100))
        for time, share, given in bins
    }
    # Modes that are not given give and take, from the largest on.
    free = [time for time, _, given in sorted(bins, key=lambda one: (-one[1], one[0])) if not given]
    free.sort(key=lambda time: (-number[time], time))
    order = free or [time for time, share, _ in sorted(bins, key=lambda one: (-one[1], one[0]))]
    left = jobs - sum(number.values())
    while left:
        step = 1 if left > 0 else -1
        able = order if step > 0 else [time for time in order if number[time] > 1]
        if not able:
            # No mode can give any more: the smallest go.
            smallest = order.pop()
            left += number.pop(smallest)
            continue
        whole, some = divmod(abs(left), len(able))
        if step > 0:
            for at, time in enumerate(able):
                number[time] += whole + (at < some)
            left = 0
        else:
            givers = able[:-left]
            for time in givers:
                number[time] -= 1
            left += len(givers)
    return [Mode(time, n) for time, n in sorted(number.items()) if n > 0]


def checked_pairs(pairs: Sequence[Pair], maximum: int, most: int = HEAD) -> None:
    """Raises :class:`UserError` for pairs that no histogram can have."""
    if len(pairs) > most:
        raise UserError(f"estimates: pairs: expected at most {most}, found {len(pairs)}")
    seen: set[int] = set()
    for pair in pairs:
        if pair.seconds in seen:
            raise UserError(f"estimates: pairs: the time {pair.seconds} s is there twice")
        seen.add(pair.seconds)
        if not 0 < pair.seconds <= maximum:
            raise UserError(
                f"estimates: pairs: expected times above 0 and up to the maximum of {maximum} s, "
                f"found {pair.seconds} s"
            )
        if not 0 < pair.share <= 100:
            raise UserError(
                f"estimates: pairs: expected shares above 0 and up to 100 %, found {pair.share:g}"
            )
    total = sum(pair.share for pair in pairs)
    if total > 100 + 1e-9:
        raise UserError(f"estimates: pairs: expected shares of at most 100 % together, found {total:g} %")


def histogram(
    jobs: int,
    maximum: int,
    draws: Permuting,
    *,
    pairs: Sequence[Pair] = (),
    k: int | None = None,
    a: float | None = None,
    constants: Constants = PAPER,
) -> list[Mode]:
    """Estimates of so many jobs, ascending in time; drawn from ``draws`` alone.

    ``maximum`` is T_max (seconds), ``pairs`` are modes that are known, the share of T_max among them if it is
    known; ``k`` the number of modes and ``a`` the shape of the times, instead of the model's own. Raises
    :class:`UserError` for what contradicts itself.
    """
    if jobs < 1:
        raise UserError(f"estimates: expected at least 1 job, found {jobs}")
    k = max(k if k is not None else modes(jobs), 1)
    heads = head_times(maximum)[: min(HEAD, k)] if k < HEAD else head_times(maximum)
    checked_pairs(pairs, maximum, len(heads))
    heads = with_given_times(heads, pairs)
    body = times(k, maximum, a if a is not None else shape(k, constants))
    tail_times = [time for time in with_heads(body, heads) if time not in set(heads)]
    head, tail = _shares(len(heads) + len(tail_times), len(heads), constants)
    head, tail, given = with_given_shares(head, tail, pairs, maximum, constants)
    at = {time: ttr for ttr, time in enumerate(heads)}
    ranks = popularity(draws, {at[time]: rank for time, rank in given.items()}, len(heads))
    bins = [(time, head[rank - 1], time in given) for time, rank in zip(heads, ranks, strict=True)]
    order = np.asarray(draws.permutation(len(tail_times))).tolist()
    bins += [(time, tail[place], False) for time, place in zip(tail_times, order, strict=True)]
    return counts(bins, jobs)


def _half_up(value: float) -> int:
    return int(np.floor(value + 0.5))


def _around(second: int) -> Iterator[int]:
    yield second
    for distance in count(1):
        yield second + distance
        yield second - distance


def _nearest_pairs(new: Sequence[int], old: Sequence[int]) -> list[tuple[int, int]]:
    """Each of ``new`` with another of ``old``, the closest pairs first; ties: the smaller ones."""
    found: dict[int, int] = {}
    taken: set[int] = set()
    for _, here, there in sorted((abs(one - other), one, other) for one in new for other in old):
        if here not in found and there not in taken:
            found[here] = there
            taken.add(there)
    return list(found.items())
