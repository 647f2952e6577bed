"""Calls of hooks: in the configured order, timed, with what plugins raise caught."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from headway.errors import UserError
from headway.plugins.enabled import Plugins


@dataclass
class Problem:
    """A plugin that raised: for the log."""

    plugin: str
    hook: str
    message: str
    #: "" for what it wanted and could not have.
    traceback: str
    #: Where it raised, as file:line; "" if it did not.
    place: str = ""


#: Hooks of which a :class:`UserError` is an answer: it is not caught.
_REFUSING = ("startup", "inform")


class HookCaller:
    """Calls a hook of the plugins that implement it; records which plugin raised and each plugin's time."""

    def __init__(
        self,
        plugins: Plugins,
        hook: str,
        problems: list[Problem],
        seconds: dict[str, float],
        answered: set[str] | None = None,
    ) -> None:
        self.hook = hook
        self.implementations = plugins.implementations(hook)
        self._problems = problems
        #: Seconds spent in each plugin, over all hooks.
        self.seconds = seconds
        #: The plugins that answered this hook at least once.
        self.answered: set[str] = answered if answered is not None else set()
        for name, _ in self.implementations:
            seconds.setdefault(name, 0.0)

    def __bool__(self) -> bool:
        return bool(self.implementations)

    def leave_out(self, name: str) -> None:
        """This plugin is not called from now on."""
        self.implementations = [one for one in self.implementations if one[0] != name]

    def each(self, *args: Any) -> Iterator[tuple[str, Any]]:
        """``(plugin, answer)`` for every answer other than None; a plugin is called when its turn comes."""
        for name, function in self.implementations:
            answer = self.call(name, function, *args)
            if answer is not None:
                yield name, answer

    def first(self, *args: Any) -> Any:
        """The first answer other than None."""
        return next((answer for _, answer in self.each(*args)), None)

    def all(self, *args: Any) -> list[tuple[str, Any]]:
        """``(plugin, answer)`` for every answer other than None."""
        return list(self.each(*args))

    def call(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """One plugin's answer; None if it raised."""
        began = perf_counter()
        try:
            answer = function(*args)
        except Exception as error:
            if self.hook in _REFUSING and isinstance(error, UserError):
                raise
            self.failed(name, error)
            return None
        else:
            self.answered.add(name)
            return answer
        finally:
            self.seconds[name] += perf_counter() - began

    def failed(self, name: str, error: Exception) -> None:
        self._problems.append(problem_of(name, self.hook, error))


def problem_of(plugin: str, hook: str, error: Exception) -> Problem:
    """An exception that a plugin raised in a hook, with where it was raised."""
    told = "".join(traceback.format_exception(error))
    return Problem(plugin, hook, f"{type(error).__name__}: {error}", told, _place_of(error))


def _place_of(error: Exception) -> str:
    """Where an exception was raised, as file:line; "" if it was not raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
