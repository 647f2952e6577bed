"""Shows events to the plugins with the hook ``observe``: each plugin sees the events that it looks at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter
from typing import Any

from headway.events import Event
from headway.plugins.calls import HookCaller
from headway.plugins.contract import traits_of
from headway.state import State

_Told = Sequence[tuple[str, Callable[..., Any]]]


class Observers:
    """The plugins that observe, by what they are shown (trait ``observes``)."""

    def __init__(self, hook: HookCaller, plugins: Mapping[str, Any]) -> None:
        self._hook = hook
        self._wanted: dict[str, tuple[type[Event], ...] | None] = {
            name: traits_of(plugins[name]).observes for name, _ in hook.implementations
        }
        #: Kind of event -> the plugins that are told, in configured order.
        self._told: dict[type[Event], _Told] = {}

    def __bool__(self) -> bool:
        return any(wanted is None or wanted for wanted in self._wanted.values())

    def shows(self, *kinds: type[Event]) -> bool:
        """Whether a plugin is shown events of one of these kinds."""
        return any(self._who_wants(kind) for kind in kinds)

    def tell_some(self, events: Sequence[Event], state: State, names: Collection[str]) -> None:
        """Show them to these plugins alone."""
        for event in events:
            for name, function in self._who_wants(type(event)):
                if name in names:
                    self._hook.call(name, function, event, state)

    def tell(self, events: Sequence[Event], state: State) -> None:
        """Show the events to all observing plugins, one event after the other."""
        seconds, answered = self._hook.seconds, self._hook.answered
        began = perf_counter()
        for event in events:
            told = self._told.get(type(event))
            if told is None:
                told = self._told[type(event)] = self._who_wants(type(event))
            for name, function in told:
                try:
                    function(event, state)
                except Exception as error:
                    self._hook.failed(name, error)
                else:
                    answered.add(name)
                # One plugin's end is the next plugin's beginning.
                ended = perf_counter()
                seconds[name] += ended - began
                began = ended

    def _who_wants(self, kind: type[Event]) -> _Told:
        return [
            (name, function)
            for name, function in self._hook.implementations
            if (wanted := self._wanted[name]) is None or issubclass(kind, wanted)
        ]
