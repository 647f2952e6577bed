"""In which order groups of tests are handed to the workers of `make test`.

What stays together is a group, in most cases a file. A worker that is free takes the next one, so that a run
takes least if it begins with the groups that take longest and ends with many short ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Tests that stay together; ``long``: some of them take a minute."""

    name: str
    tests: int
    long: bool = False


def in_turn(groups: Sequence[Group]) -> list[str]:
    """Their names, the group that takes longest first."""
    return [group.name for group in sorted(groups, key=lambda group: (not group.long, -group.tests))]
