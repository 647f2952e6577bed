"""A plugin that decides what a file says: lines such as ``copy era5 b a`` and ``drop era5 b``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from headway.decisions import Copy, Drop
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits


class Options(BaseModel):
    """Where the wishes stand."""

    model_config = ConfigDict(extra="forbid")

    path: Path


class Wishes(Plugin):
    """Decides each line of a file once."""

    Options = Options
    traits = Traits(needs=(Copy, Drop))

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._done = 0

    @hookimpl
    def startup(self, state: Any) -> None:
        self._again(state, 0.0)

    @hookimpl
    def react(self, state: Any) -> list[Copy | Drop]:
        self._again(state, 0.1)
        lines = self.options.path.read_text().splitlines()[self._done :]
        self._done += len(lines)
        words = [line.split() for line in lines]
        return [Copy(*rest) if kind == "copy" else Drop(*rest) for kind, *rest in words]

    def _again(self, state: Any, seconds: float) -> None:
        state.wake_at(max(state.now, 0.0) + seconds, next(iter(state.pools.values())))
