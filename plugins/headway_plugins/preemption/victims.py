"""The jobs whose places are taken: a set of jobs without which the waiting job fits, at the least cost.

The question whether it fits is the view's, whatever decides there (processors, memory, generic resources,
features, reservations, bookings of other jobs). The search knows only its answers, and that what fits without
some jobs fits without more of them. It is exact as long as its questions suffice, and else the best that it
has found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway.state import Job

#: ``(cost, job)``; what the least cost is asked of.
Candidate = tuple[float, Job]


def cheapest(
    candidates: Sequence[Candidate], fits: Callable[[Sequence[Job]], bool], questions: int = 500
) -> list[Job] | None:
    """A set of candidates of the least cost without which it fits; None if it does not fit without all.

    Costs are not negative; no set contains a job that is not needed. At most ``questions`` are asked after a
    first set was found.
    """
    first = in_turn(candidates, fits)
    if first is None:
        return None
    ranked = _cheapest_first(candidates)[::-1]
    costs = {job.id: cost for cost, job in candidates}
    best = _Best(first, sum(costs[job.id] for job in first), questions)
    _search([job for _, job in ranked], [cost for cost, _ in ranked], 0, [], 0.0, fits, best)
    return best.jobs


def in_turn(candidates: Sequence[Candidate], fits: Callable[[Sequence[Job]], bool]) -> list[Job] | None:
    """The candidates by cost until it fits, less candidates that are not needed, the dearest first."""
    ranked = [job for _, job in _cheapest_first(candidates)]
    if not fits(ranked):
        return None
    low, high = 0, len(ranked)
    while low < high:
        middle = (low + high) // 2
        if fits(ranked[:middle]):
            high = middle
        else:
            low = middle + 1
    chosen = ranked[:low]
    for job in reversed(chosen[:]):
        rest = [other for other in chosen if other is not job]
        if fits(rest):
            chosen = rest
    return chosen


class _Best:
    """The best set so far, and how many questions are left."""

    def __init__(self, jobs: list[Job], cost: float, questions: int) -> None:
        self.jobs, self.cost, self.questions = jobs, cost, questions


def _search(
    jobs: Sequence[Job], costs: Sequence[float], at: int, chosen: list[Job], cost: float,
    fits: Callable[[Sequence[Job]], bool], best: _Best,
) -> None:  # fmt: skip
    """Depth first, the dearest first: without it if the other candidates do, then with it."""
    if best.questions <= 0 or cost >= best.cost:
        return
    best.questions -= 1
    if fits(chosen):
        best.jobs, best.cost = list(chosen), cost
        return
    if at == len(jobs):
        return
    best.questions -= 1
    if fits([*chosen, *jobs[at + 1 :]]):
        _search(jobs, costs, at + 1, chosen, cost, fits, best)
    _search(jobs, costs, at + 1, [*chosen, jobs[at]], cost + costs[at], fits, best)


def _cheapest_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By cost; at equal cost the job that came last is first."""
    youngest_first = sorted(candidates, key=lambda candidate: candidate[1].seq, reverse=True)
    return sorted(youngest_first, key=lambda candidate: candidate[0])
