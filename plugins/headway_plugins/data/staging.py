"""Data first: a job waits until the store of its site has its datasets, which are copied there meanwhile.

A job names its datasets (attribute ``data``). While one of them is missing at its site the job is in no
queue, behind a barrier that names it. T. Phan, K. Ranganathan, R. Sion (JSSPP 2005) let a node wait while
data arrive; here the job waits and its node serves other jobs. What is copied when: :mod:`.supply`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from headway.decisions import Copy, Decision, Drop
from headway.events import Event
from headway.hookspecs import hookimpl
from headway.model.sites import DATA
from headway.plugins import Traits
from headway.results import RunResult
from headway.state import Job, State
from headway_plugins.data.supply import OBSERVED, Supplied, Supply
from headway_plugins.data.supply_options import SupplyOptions


class Staging(Supplied):
    """Copy the datasets of waiting jobs to their sites; a job waits until its data are there."""

    Options: type[SupplyOptions] = SupplyOptions
    traits = Traits(needs=(Copy,), uses=(Drop,), words=frozenset({DATA}), observes=OBSERVED)

    #: What the plugin is called in messages.
    _NAME: ClassVar[str] = "staging"

    def __init__(self, options: SupplyOptions | None = None) -> None:
        super().__init__(options or self.Options())

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._supply = Supply(
            state, self.options, capabilities, self._NAME, in_turn=self.in_turn, roams=self.roams
        )

    @property
    def supply(self) -> Supply:
        """What jobs read, and the copies for them."""
        assert self._supply is not None
        return self._supply

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return self.supply.kept()

    @hookimpl
    def restore(self, saved: Mapping[str, Any]) -> None:
        self.supply.take_up(saved)

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        self.supply.note(event, state)

    def roams(self, job: Job) -> bool:
        """Whether a job may go to other sites."""
        return False

    @hookimpl
    def react(self, state: State) -> Iterable[Decision] | None:
        self.supply.let_in(state)
        return None

    def in_turn(self, jobs: list[Job]) -> Sequence[Job]:
        """The jobs for which data are copied, in the order in which they will need them."""
        return sorted(jobs, key=lambda job: job.order)

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"staging": self.told}

    def told(self, result: RunResult) -> dict[str, float]:
        """The figures of the copies."""
        return self.supply.figures()
