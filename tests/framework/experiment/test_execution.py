"""Tasks in this process and in others: what fails or dies costs the others nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign_tasks import broken, deadly, deadly_once, row, task, wrong

from headway.errors import UserError
from headway.experiment.execution import Failed, here, run_tasks


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_that_fails_does_not_end_the_others(workers: int) -> None:
    tasks = [task(row, 0), task(wrong, 1), task(broken, 2), task(row, 3)]
    found = dict(here(workers)(tasks))
    assert found[0] == row(0) and found[3] == row(3)
    first, second = found[1], found[2]
    assert isinstance(first, Failed) and isinstance(second, Failed)
    assert (first.place, first.message, first.trace) == ("w, 0, seed 1", "1 is wrong", "")
    assert second.message == "ZeroDivisionError: 2" and "in broken" in second.trace


def test_a_process_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    tasks = [task(row, n) for n in range(6)]
    tasks[2] = task(deadly_once, 2, str(tmp_path / "died"))
    assert dict(here(2)(tasks)) == {n: row(n) for n in range(6)}
    assert (tmp_path / "died").exists()


def test_a_task_that_kills_its_process_is_found_and_the_others_are_not_blamed() -> None:
    found = dict(here(2)([task(row, 0), task(deadly, 1), task(row, 2), task(row, 3)]))
    lost = found.pop(1)
    assert found == {n: row(n) for n in (0, 2, 3)}
    assert isinstance(lost, Failed) and "killed twice" in lost.message


@pytest.mark.parametrize("workers", [1, 2])
def test_where_one_failure_ends_all_its_error_is_raised(workers: int) -> None:
    with pytest.raises(UserError, match="1 is wrong"):
        run_tasks([task(row, 0), task(wrong, 1)], workers=workers)
