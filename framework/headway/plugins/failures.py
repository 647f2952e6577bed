"""Plugins that fail again and again: what the log is told of them, and what stands at the end of a run.

A plugin that raises in each cycle would fill the log with the same traceback. What fails for the first time
at its place is told in full; after that it is counted, and the count is told at each power of ten, now and
then where a run has no end, and once more at the end of the run.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from headway.errors import Failure
from headway.plugins.calls import Problem
from headway.results import PluginFailure

#: Different problems that are remembered. Of more problems the oldest is forgotten, and told in full again.
_REMEMBERED = 10_000

#: What differs between two cycles in which a plugin wants the same impossible thing.
_CHANGING = re.compile(r"\bjob \S+|\d+")

#: The plugin's name under which the scheduler tells what did not fit its own records. Such a message is
#: about a job or a reservation, so each different message is told.
_RECORDS = "state"


class Told(NamedTuple):
    """What the log is to say of a problem."""

    problem: Problem
    #: How often it happened until now.
    times: int
    #: Whether it is new, so that all of it is said.
    new: bool


@dataclass
class _Counted:
    problem: Problem
    times: int = 0
    #: How often it had happened, and when that was, when the log was told last.
    told: int = 0
    told_at: float = 0.0


def refuse_failed(failures: Iterable[PluginFailure]) -> None:
    """Raise :class:`Failure` if a plugin never answered in a hook: the run is not what was asked for."""
    failed = list(dict.fromkeys(one.plugin for one in failures if one.always))
    if failed:
        which = "plugin" if len(failed) == 1 else "plugins"
        raise Failure(
            f"{which} {', '.join(map(repr, failed))} failed at every call, so the results lack their "
            "effect; the log has the traceback of the first failure"
        )


class Failures:
    """Counts problems, and says what the log is told of each. Does no I/O."""

    def __init__(self, remind: float | None = None) -> None:
        """``remind``: tell of a problem that goes on at least so often, in seconds; None: at powers of ten
        only."""
        self._remind = remind
        self._known: OrderedDict[tuple[str, str, str], _Counted] = OrderedDict()
        #: Exceptions by plugin and hook: how often, and the first of them.
        self._raised: dict[tuple[str, str], tuple[int, Problem]] = {}

    def note(self, problem: Problem, now: float) -> Told | None:
        """Count a problem of the time ``now`` (seconds); what the log is told of it, None if nothing."""
        if problem.traceback:
            which = (problem.plugin, problem.hook)
            before, first = self._raised.get(which, (0, problem))
            self._raised[which] = before + 1, first
        key = _key(problem)
        counted = self._known.pop(key, None) or _Counted(problem)
        self._known[key] = counted
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        counted.problem = problem
        counted.times += 1
        due = self._remind is not None and now - counted.told_at >= self._remind
        if counted.times == 1 or _is_power_of_ten(counted.times) or due:
            counted.told, counted.told_at = counted.times, now
            return Told(problem, counted.times, counted.times == 1)
        return None

    def untold(self) -> Iterator[Told]:
        """At the end of a run: what happened more often than the log was told."""
        for counted in self._known.values():
            if counted.times > counted.told:
                counted.told = counted.times
                yield Told(counted.problem, counted.times, False)

    def of_plugins(self, answered: Mapping[str, AbstractSet[str]]) -> list[PluginFailure]:
        """The plugins that raised, in the order of their first failures.

        ``answered``: by hook, the plugins that answered in it at least once."""
        return [
            PluginFailure(
                plugin, hook, times, first.message, first.place, plugin not in answered.get(hook, ())
            )
            for (plugin, hook), (times, first) in self._raised.items()
        ]


def _key(problem: Problem) -> tuple[str, str, str]:
    if problem.traceback:
        return problem.plugin, problem.hook, problem.place or problem.message
    alike = problem.message if problem.plugin == _RECORDS else _CHANGING.sub("#", problem.message)
    return problem.plugin, problem.hook, alike


def _is_power_of_ten(number: int) -> bool:
    return number == 10 ** (len(str(number)) - 1)
