"""In which order groups of tests are handed to the workers of `make test`.

What stays together is a group, in most cases a file. A worker that is free takes the next one, so that a run
takes least if it begins with the groups that take longest and ends with many short ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdist.scheduler import LoadGroupScheduling


@dataclass(frozen=True)
class Group:
    """Tests that stay together; ``long``: some of them take a minute."""

    name: str
    tests: int
    long: bool = False


def in_turn(groups: Sequence[Group]) -> list[str]:
    """Their names, the group that takes longest first."""
    return [group.name for group in sorted(groups, key=lambda group: (not group.long, -group.tests))]


class Turns(LoadGroupScheduling):  # type: ignore[misc]
    """Groups of tests as `--dist loadgroup` hands them out, and a run that ends if a worker crashes.

    The worker in its place gets one group. If that has a single test, the worker waits with it for the next
    group, or to hear that there is none.
    """

    def schedule(self) -> None:
        super().schedule()
        super().schedule()

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        # If the worker crashed later, a group that is done would have another turn, in which nothing is left
        # to report: the worker that gets it would hear of no further group. It would also be counted again
        # at the end of each test.
        group = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][group].values()):
            del self.assigned_work[node][group]

    def _reschedule(self, node: Any) -> None:
        # Of two workers that crash at once the first to be replaced is ready while the second still collects.
        if node in self.registered_collections:
            super()._reschedule(node)
