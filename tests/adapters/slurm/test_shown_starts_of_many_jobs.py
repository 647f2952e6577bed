"""How many commands the shown starts of 50,000 jobs cost."""

from __future__ import annotations

import random

from headway_adapters.slurm.shown_starts import Pacing

JOBS, RATE = 50_000, 10.0
NOW = 1_800_000_000.0


def looks(
    pacing: Pacing, plan: dict[str, float], shown: dict[str, int], seconds: int, first: int
) -> list[int]:
    """The commands of each look, one a second; what they write is shown."""
    counts = []
    for second in range(first, first + seconds):
        due = pacing.due(plan, shown, NOW + second, float(second))
        shown.update((key, time) for key, time in due if time is not None)
        counts.append(len(due))
    return counts


def a_plan() -> dict[str, float]:
    draw = random.Random(1)
    return {str(number): NOW + draw.randrange(3600, 10**6) for number in range(JOBS)}


def test_a_plan_that_stands_still_costs_no_command() -> None:
    plan = a_plan()
    shown = {key: round(start) for key, start in plan.items()}
    assert looks(Pacing(RATE), plan, shown, 5, 0) == [0] * 5


def test_a_plan_that_is_new_or_moves_costs_no_more_than_the_rate() -> None:
    plan, shown, pacing = a_plan(), dict[str, int](), Pacing(RATE)
    counts = looks(pacing, plan, shown, 5, 0)
    assert max(counts) <= RATE
    assert sum(counts) == 5 * RATE
    # The next to start are shown first.
    soonest = sorted(plan, key=plan.__getitem__)
    assert set(shown) == set(soonest[: len(shown)])
    moved = {key: start + 3600.0 for key, start in plan.items()}
    shown.update((key, round(start)) for key, start in plan.items())
    assert max(looks(pacing, moved, shown, 5, 5)) <= RATE
