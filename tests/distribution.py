"""In which order groups of tests are handed to the workers of `make test`.

What stays together is a group, in most cases a file. A worker that is free takes the next one. Tests of
real batch systems mostly wait, the others mostly compute, so that a run takes least if both go on side by
side from its beginning almost to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Where the last real system is, as a part of the queue: what ends the run are many short groups.
REAL_UNTIL = 0.75


@dataclass(frozen=True)
class Group:
    """Tests that stay together: ``real`` drives a batch system, ``long`` holds some that take a minute."""

    name: str
    tests: int
    real: bool
    long: bool = False


def in_turn(groups: Sequence[Group]) -> list[str]:
    """Their names: real systems spread among the others, of each kind what takes longest first."""
    real = sorted((group for group in groups if group.real), key=_weight)
    others = sorted((group for group in groups if not group.real), key=lambda group: not group.long)
    placed = [(REAL_UNTIL * at / len(real), 0, group.name) for at, group in enumerate(real)]
    placed += [(at / len(others), 1, group.name) for at, group in enumerate(others)]
    return [name for *_, name in sorted(placed, key=lambda one: one[:2])]


def _weight(group: Group) -> int:
    # One that takes a minute is as ten others on a real system.
    return -(group.tests + 10 * group.long)
