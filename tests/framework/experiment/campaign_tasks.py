"""Tasks that tests give to other processes, which must be able to import them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from headway.errors import UserError
from headway.experiment.campaign import Key, Row, Task


def row(number: int) -> list[Row]:
    return [Row("w", 0.0, "easy", number, {"twice": 2.0 * number})]


def wrong(number: int) -> list[Row]:
    raise UserError(f"{number} is wrong")


def broken(number: int) -> list[Row]:
    raise ZeroDivisionError(number)


def deadly(number: int) -> list[Row]:
    os.kill(os.getpid(), signal.SIGKILL)
    return row(number)


def deadly_once(number: int, mark: str) -> list[Row]:
    """Its process dies, but not if it did so before."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return row(number)


def task(function, number: int, *more: object) -> Task:
    key: Key = ("w", 0.0, "easy", number)
    return Task((key,), function, (number, *more))
