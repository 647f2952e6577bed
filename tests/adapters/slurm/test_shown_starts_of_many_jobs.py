"""How many commands the shown starts of 50,000 jobs cost."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest
import structlog
from test_slurm_reader import NOW as LOOKED
from test_slurm_reader import read
from test_slurm_shown_starts import Client, held

from headway_adapters.polling.commands import Commands
from headway_adapters.polling.look import Look
from headway_adapters.polling.notes import Notes
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.slurm import shown_starts as module
from headway_adapters.slurm.shown_starts import Pacing, ShownStarts

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


class Site:
    """Slurm with 50,000 jobs that headway holds, looked at once a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = read(held(job_id=15))
        (self._detail,), (job,) = found.details.values(), found.jobs.values()
        keys = [str(number) for number in range(1, JOBS + 1)]
        self.details = {key: replace(self._detail, record=key) for key in keys}
        # A look asks of a job by whom it is held.
        self.jobs = dict.fromkeys(keys, job)
        self.client, self.seconds, log = Client(), 0.0, structlog.get_logger()
        commands = Commands(self.client, "Slurm", log)  # type: ignore[arg-type]
        self.shown = ShownStarts(commands, Notes("slurm", log), Pacing(RATE), on=True)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.seconds))

    def look(self, plan: dict[str, float]) -> int:
        """The commands of a look a second later; the next look shows what they write."""
        self.seconds += 1.0
        ran = len(self.client.ran)
        self.shown.plan(plan.items())
        self.shown.tend(Look(Snapshot(LOOKED + self.seconds, self.jobs), self.details), set())
        for update in self.client.ran[ran:]:
            self.show(update["JobId"], round(plan[update["JobId"]]), update["AdminComment"])
        return len(self.client.ran) - ran

    def show(self, key: str, start: int, mark: str) -> None:
        found = read(held(job_id=15, eligible_time=start, admin_comment=mark))
        self.details[key] = replace(found.details["15"], record=key)


def test_looks_at_fifty_thousand_jobs_run_no_more_commands_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    site, draw = Site(monkeypatch), random.Random(2)
    plan = {key: LOOKED + draw.randrange(3600, 10**6) for key in site.details}
    new = [site.look(plan) for _ in range(3)]
    assert new == [RATE] * 3
    # Once all jobs show their time, a plan that stands still costs nothing.
    for key, start in plan.items():
        detail = site.details[key]
        if detail.shown is None:
            site.details[key] = replace(detail, shown=module.marker.Shown(round(start), detail.begin))
    assert [site.look(plan) for _ in range(2)] == [0, 0]
    moved = {key: start + 7200.0 for key, start in plan.items()}
    moving = [site.look(moved) for _ in range(4)]
    # What was saved up is spent first.
    assert moving[-1] == RATE
    assert sum(moving) <= (3 + 3) * RATE
