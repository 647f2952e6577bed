"""Phase 1: which jobs to take on. A 0-1 knapsack, solved exactly.

Zhou and others 2005, section 3.1: maximise the rewards of the chosen jobs, their work within a capacity.
Three exact ways:

:func:`by_profits`
    the paper's dynamic programme over whole rewards: f[v] is the least work with which exactly v is earned
:func:`subset_sum`
    where each job's reward is its whole work: which sums can be reached
:func:`by_dominance`
    dynamic programming over the pairs (reward, work) that no other pair beats, after all jobs that every
    optimum has, or none has, are settled by the bound of the fractional problem; rewards and works of any
    kind

:func:`select` takes the way that is faster for what it is given (``docs/papers/two_phase_rendering.md`` has
the figures, beside HiGHS).

Decision on ties, the same in all: of the sets that earn most, the set of least work; of these the set that
does without later jobs (strict improvement in index order, choices walked back from the last job).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Sums that a table of reachable ones may have; jobs x sums for which the whole table is made.
_SUMS, _CELLS = 20_000_000, 1_000_000_000
#: Jobs x rewards that a table of choices may have, and up to which it is quicker than pairs.
_TABLE, _QUICK = 4_000_000_000, 200_000_000
#: Pairs that are followed at most, over all jobs; from one job to the next in any case; and from one job to
#: the next for a first good set.
_PAIRS, _LEAST_PAIRS, _FIRST_PAIRS = 10_000_000, 1000, 100
_CLOSE = 1e-9


@dataclass(frozen=True)
class Selection:
    """The chosen jobs, by number, ascending."""

    chosen: tuple[int, ...]
    reward: float
    work: float
    #: By how much the optimum may be higher at most; 0: this is it.
    gap: float = 0.0


def _checked(work: Sequence[float] | Floats, reward: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    works, rewards = np.asarray(work, np.float64), np.asarray(reward, np.float64)
    if works.shape != rewards.shape or works.ndim != 1:
        raise ValueError(
            f"expected a work and a reward of each job, found {len(works)} works and {len(rewards)} rewards"
        )
    for name, values in (("work", works), ("reward", rewards)):
        wrong = ~((values > 0) & (values < math.inf))
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(f"job {at}: expected a {name} above 0, found {values[at]:g}")
    return works, rewards


def _found(chosen: Sequence[int], works: Floats, rewards: Floats, gap: float = 0.0) -> Selection:
    numbers = tuple(sorted(int(one) for one in chosen))
    taken = list(numbers)
    return Selection(numbers, float(rewards[taken].sum()), float(works[taken].sum()), gap)


def select(work: Sequence[float] | Floats, reward: Sequence[float] | Floats, capacity: float) -> Selection:
    """The jobs that earn most with their works within the capacity (processor-seconds).

    Where rewards are works that are not whole, they count as the next whole seconds. Raises ValueError for
    works or rewards that are not above 0.
    """
    works, rewards = _checked(work, reward)
    if (works == rewards).all():
        return _full(works, capacity)
    settled = _settle(works, rewards, capacity)
    if settled.whole and len(settled.core) * float(rewards[settled.core].sum()) <= _QUICK:
        core = settled.core
        rest = by_profits(works[core], rewards[core], settled.capacity)
        return _found([*settled.fixed.tolist(), *core[list(rest.chosen)].tolist()], works, rewards)
    return _narrowed(works, rewards, capacity, settled, _PAIRS)


def _full(works: Floats, capacity: float) -> Selection:
    """Rewards are works."""
    whole = np.ceil(works)
    rounded = float((whole - works).sum())
    if len(works) * _sums(whole, capacity) <= _CELLS:
        found = subset_sum(whole, capacity)
        return _found(found.chosen, works, works, rounded)
    # All up to about where the window is full are taken, and of the jobs around there the best sum.
    full = int(np.searchsorted(np.cumsum(whole), capacity, side="right"))
    best: Selection | None = None
    for around in (6, 9, 12):
        first, last = max(0, full - around), min(len(works), full + around)
        taken = float(whole[:first].sum())
        found = subset_sum(whole[first:last], min(capacity - taken, _SUMS * _unit(whole[first:last])))
        gap = math.floor(capacity) - taken - found.work
        if best is None or gap < best.gap:
            best = _found([*range(first), *(first + at for at in found.chosen)], works, works, gap)
        if not gap:
            break
    assert best is not None
    return _found(best.chosen, works, works, min(best.gap, float(works.sum()) - best.work) + rounded)


def _unit(whole: Floats) -> int:
    return int(np.gcd.reduce(whole.astype(np.int64))) if len(whole) else 1


def _sums(whole: Floats, capacity: float) -> int:
    """How many sums of whole works there can be within the capacity."""
    return math.floor(min(float(whole.sum()), max(capacity, 0.0)) / _unit(whole))


# ---------------------------------------------------------------------- the paper's


def by_profits(
    work: Sequence[float] | Floats, reward: Sequence[float] | Floats, capacity: float
) -> Selection:
    """Dynamic programming over whole rewards. Raises ValueError if they are not whole, or too large for
    that."""
    works, rewards = _checked(work, reward)
    if (rewards % 1 != 0).any():
        raise ValueError(f"expected whole rewards, found {rewards[rewards % 1 != 0][0]:g}")
    whole = rewards.astype(np.int64)
    if len(whole) * float(whole.sum()) > _TABLE:
        raise ValueError(
            f"expected jobs x rewards of at most {_TABLE}, found {len(whole) * int(whole.sum())}"
        )
    most = int(whole.sum())
    least = np.full(most + 1, np.inf)
    least[0] = 0.0
    choices: list[NDArray[np.uint8]] = []
    reached = 0
    for weight, profit in zip(works.tolist(), whole.tolist(), strict=True):
        with_it = least[: reached + 1] + weight
        reached += profit
        without = least[profit : reached + 1]
        better = with_it < without
        np.copyto(without, with_it, where=better)
        choices.append(np.packbits(better))
    left = int(np.flatnonzero(least <= capacity)[-1]) if capacity >= 0 else 0
    chosen = []
    for number in range(len(works) - 1, -1, -1):
        profit = int(whole[number])
        at = left - profit
        bits = choices[number]
        if at >= 0 and at >> 3 < len(bits) and bits[at >> 3] >> (7 - (at & 7)) & 1:
            chosen.append(number)
            left = at
    return _found(chosen, works, rewards)


def subset_sum(work: Sequence[float] | Floats, capacity: float) -> Selection:
    """Where rewards are whole works: the largest sum within the capacity. Raises ValueError if works are not
    whole, or too large for a table of their sums."""
    works, _ = _checked(work, work)
    if (works % 1 != 0).any():
        raise ValueError(f"expected whole works, found {works[works % 1 != 0][0]:g}")
    whole, unit, size = works.astype(np.int64), _unit(works), _sums(works, capacity)
    if size > _SUMS:
        raise ValueError(f"expected at most {_SUMS} sums, found {size}")
    reachable = np.zeros(size + 1, bool)
    reachable[0] = True
    # The job with which a sum was reached first.
    by: NDArray[np.int32] = np.full(size + 1, -1, np.int32)
    highest = 0
    for number, weight in enumerate((whole // unit).tolist()):
        end = min(highest, size - weight)
        if end < 0:
            continue
        new = np.flatnonzero(reachable[: end + 1] & ~reachable[weight : weight + end + 1]) + weight
        reachable[new] = True
        by[new] = number
        highest = max(highest, weight + end)
        if reachable[size]:
            # More cannot be earned, and a later job changes nothing about how this was reached.
            break
    left = int(np.flatnonzero(reachable)[-1])
    chosen = []
    while left:
        number = int(by[left])
        chosen.append(number)
        left -= int(whole[number]) // unit
    return _found(chosen, works, works)


# ---------------------------------------------------------------------- pairs that no other beats


class _Fraction:
    """The fractional problem over some jobs: what could be earned if jobs could be divided."""

    def __init__(self, works: Floats, rewards: Floats) -> None:
        self._order: Ints = np.argsort(-rewards / works, kind="stable")
        self._works, self._rewards = works, rewards
        self.works: Floats = np.concatenate([[0.0], np.cumsum(works[self._order])])
        self.rewards: Floats = np.concatenate([[0.0], np.cumsum(rewards[self._order])])
        #: Reward for a unit of work of the job at each place; behind the last nothing.
        self.rate: Floats = np.append(rewards[self._order] / works[self._order], 0.0)

    def bound(self, capacity: Floats) -> Floats:
        """The most that can be earned within each capacity."""
        at = np.searchsorted(self.works, capacity, side="right") - 1
        return self.rewards[at] + self.rate[at] * (capacity - self.works[at])

    def last_rate(self, capacity: float) -> float:
        """Reward for a unit of work of the job that is divided; 0 if all fit."""
        return float(self.rate[int(np.searchsorted(self.works, capacity, side="right")) - 1])

    def greedy(self, capacity: float) -> float:
        """What is earned if each job that fits is taken, from the best rate on."""
        earned, left = 0.0, capacity
        for number in self._order.tolist():
            if self._works[number] <= left:
                left -= float(self._works[number])
                earned += float(self._rewards[number])
        return earned


def by_dominance(
    work: Sequence[float] | Floats, reward: Sequence[float] | Floats, capacity: float, *, pairs: int = _PAIRS
) -> Selection:
    """Dynamic programming over pairs (reward, work) that no other pair beats in both.

    If more than ``pairs`` of them, over all jobs, would have to be followed, the pairs of the least bounds
    are given up, and ``gap`` says how much that can have cost.
    """
    works, rewards = _checked(work, reward)
    return _narrowed(works, rewards, capacity, _settle(works, rewards, capacity), pairs)


def _narrowed(works: Floats, rewards: Floats, capacity: float, settled: _Settled, pairs: int) -> Selection:
    """What is best: first a good set from few pairs, by which more jobs are settled; then all pairs that may
    be better."""
    near = _by_pairs(works, rewards, settled, _FIRST_PAIRS)
    if not near.gap:
        return near
    rest = _settle(works, rewards, capacity, near.reward)
    return _by_pairs(works, rewards, rest, max(_LEAST_PAIRS, pairs // max(1, len(rest.core))))


@dataclass(frozen=True)
class _Settled:
    """What is known without a search."""

    #: Jobs that every optimum has, and jobs of which it is not known.
    fixed: Ints
    core: Ints
    #: What the fixed jobs leave.
    capacity: float
    #: What the core earns at least.
    surely: float
    whole: bool
    slack: float


def _settle(works: Floats, rewards: Floats, capacity: float, known: float = 0.0) -> _Settled:
    """What follows from bounds; ``known``: what some set earns."""
    whole = bool((rewards % 1 == 0).all())
    able = np.flatnonzero(works <= capacity)
    if not len(able):
        return _Settled(able, able, capacity, 0.0, whole, 0.0)
    fractional = _Fraction(works[able], rewards[able])
    surely = max(fractional.greedy(capacity), known)
    bound = float(fractional.bound(np.array([capacity]))[0])
    slack = _CLOSE * max(bound, 1.0)
    # What a job costs the bound if it is not as the divided optimum has it.
    loss = rewards[able] - fractional.last_rate(capacity) * works[able]
    missed = bound - np.abs(loss)
    if whole:
        missed = np.floor(missed + slack)
    settled = missed < surely - slack
    fixed, core = able[settled & (loss > 0)], able[~settled]
    left = capacity - float(works[fixed].sum())
    return _Settled(fixed, core, left, surely - float(rewards[fixed].sum()), whole, slack)


def _by_pairs(works: Floats, rewards: Floats, settled: _Settled, most: int) -> Selection:
    """What is best of the jobs that are not settled, with the jobs that are in every optimum; from each job
    to the next ``most`` pairs are followed at most."""
    core, capacity, surely = settled.core, settled.capacity, settled.surely
    whole, slack = settled.whole, settled.slack
    profit, weight = np.zeros(1), np.zeros(1)
    steps: list[tuple[Ints, Bools]] = []
    lost = -math.inf
    for at, number in enumerate(core.tolist()):
        own_work, own_reward = float(works[number]), float(rewards[number])
        room = weight + own_work <= capacity * (1 + 1e-12)
        kept = len(profit)
        all_profit = np.concatenate([profit, profit[room] + own_reward])
        all_weight = np.concatenate([weight, weight[room] + own_work])
        origin = np.concatenate([np.arange(kept), np.flatnonzero(room)])
        taken = np.arange(len(origin)) >= kept
        # By work, then by reward; of equal pairs the pair without the job first.
        order = np.lexsort((taken, -all_profit, all_weight))
        ranked = all_profit[order]
        best = np.maximum.accumulate(ranked)
        unbeaten = np.append(True, ranked[1:] > best[:-1])
        order = order[unbeaten]
        left = _Fraction(works[core[at + 1 :]], rewards[core[at + 1 :]])
        could = all_profit[order] + left.bound(np.maximum(capacity - all_weight[order], 0.0))
        if whole:
            could = np.floor(could + slack)
        hopeful = could >= surely - slack
        order, could = order[hopeful], could[hopeful]
        if len(order) > most:
            given_up = np.argpartition(could, len(order) - most)[: len(order) - most]
            lost = max(lost, float(could[given_up].max()))
            order = np.delete(order, given_up)
        steps.append((origin[order], taken[order]))
        profit, weight = all_profit[order], all_weight[order]
    # Unbeaten pairs are in order of work and of reward; a bound of equals may have been given up.
    at = int(np.argmax(profit))
    value = float(profit[at])
    chosen = settled.fixed.tolist()
    for number, (origin, taken) in zip(core[::-1].tolist(), reversed(steps), strict=True):
        if taken[at]:
            chosen.append(number)
        at = int(origin[at])
    return _found(chosen, works, rewards, max(0.0, lost - value))
