"""How a polled batch system and its adapter are: what the parts of the adapter know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from headway.adapter import Check, CommandCount, Condition, Oddity, Outage
from headway_adapters.polling.agents import Agents
from headway_adapters.polling.client import CommandClient
from headway_adapters.polling.heartbeat import Heart
from headway_adapters.polling.looker import Looker
from headway_adapters.polling.loop import Loop
from headway_adapters.polling.overlay import Overlay


class PollingCondition(Condition):
    """The condition of an adapter that has these parts."""

    #: The word for the system in the log.
    system: ClassVar[str]
    _client: CommandClient
    _looker: Looker[Any]
    _heart: Heart
    agents: Agents
    overlay: Overlay[Any]
    _loop: Loop[Any, Any]

    def outages(self) -> Sequence[Outage]:
        down = self._looker.outage
        return () if down is None else (down,)

    def oddities(self) -> Sequence[Oddity]:
        return (*self._loop.oddities.shown(), *self.agents.oddities(self.system))

    def commands_run(self) -> Sequence[CommandCount]:
        return self._client.counted.told(self.system)

    def vital_signs(self) -> Sequence[Check]:
        return (self._looker.vital_sign(), *self._heart.vital_signs())

    def measured_watts(self) -> Mapping[str, float]:
        return self.overlay.shown.watts if self.overlay.shown is not None else {}
