"""The partition manager: where jobs get their partitions, and which partitions are booted.

After Y. Aridor, T. Domany, O. Goldshmidt, Y. Kliteynik, J. Moreira and E. Shmueli: "Open Job Management
Architecture for the Blue Gene/L Supercomputer", 2005, on two kinds of machine:

- a machine whose nodes are handed out in wired blocks, a torus of midplanes: :mod:`.plugin`;
- a machine whose nodes sleep and wake, such as by Slurm's power saving, on a fat tree or in a row:
  :mod:`.sleeping`.

On both an option chooses between a partition for each job (``blocks: on-demand``, the paper's LoadLeveler)
and blocks that stay booted (``blocks: prepared``, its SLURM). Queue policies are unchanged: a job starts, and
is booked, only where a partition exists for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import pydantic

from headway.decisions import Decision, PowerDown, PowerUp
from headway.errors import UserError
from headway.events import Event
from headway.hookspecs import Plugin, hookimpl
from headway.inputs.durations import as_seconds
from headway.model import ClusterDescription, Placement
from headway.plugins import Again, Traits
from headway.resources import Offer
from headway.results import RunResult
from headway.results.section import Section
from headway.state import Job, State
from headway.view import View
from headway_plugins.partitions.plugin import Partitions as Wired
from headway_plugins.partitions.sleeping import OBSERVED, SleepingNodes
from headway_plugins.placement.topology.options import SwitchOptions

_Seconds = Annotated[
    float, pydantic.BeforeValidator(as_seconds), pydantic.Field(ge=0, le=1e9, allow_inf_nan=False)
]


class PartitionOptions(Wired.Options, SwitchOptions):
    """Options of ``partitions``."""

    unit: int = pydantic.Field(
        default=1, ge=1, description="nodes that sleep, prepared: number of nodes of the smallest blocks"
    )
    keep: _Seconds | None = pydantic.Field(
        default=None,
        description="nodes that sleep: seconds for which a partition without a job stays on (default, on "
        "demand: 0; prepared: for ever)",
    )
    depth: int = pydantic.Field(
        default=50,
        ge=1,
        description="nodes that sleep: number of jobs at the head of a queue for which nodes are woken",
    )


class Partitions(Plugin):
    """Place jobs on partitions: wired ones of a torus, or blocks of nodes that sleep."""

    Options = PartitionOptions
    traits = Traits(
        uses=(PowerUp,),
        observes=(*(Wired.traits.observes or ()), *OBSERVED),
        ask_again=Again.DOMAIN,
        paper=Wired.traits.paper,
    )

    def __init__(self, options: PartitionOptions | None = None) -> None:
        super().__init__(options or PartitionOptions())
        self._wired = Wired(self.options)
        #: What sees to nodes that sleep; None on a torus.
        self._sleeping: SleepingNodes | None = None

    def _lacks(self, cluster: ClusterDescription, capabilities: frozenset[type]) -> str:
        """What the plugin needs and this cluster has not."""
        power = {PowerUp, PowerDown} <= capabilities
        nodes = bool(cluster.nodes) and (power or bool(self.options.described(cluster.switches)))
        if cluster.wiring is not None or nodes:
            return ""
        return (
            "expected a machine of wired partitions (emulation.torus), or nodes that headway can put to "
            "sleep and wake (cluster.options.power: true, or actuators; in emulation an energy profile) or "
            f"that are on switches, found the cluster {cluster.name!r} with neither"
        )

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        if lacking := self._lacks(state.cluster, capabilities):
            raise UserError(f"plugin 'partitions': {lacking}")
        if state.cluster.wiring is not None:
            # Where nodes sleep it also depends on which nodes wake.
            self.traits = replace(self.traits, ask_again=Again.ROOM, same_answer=self._wired.same_answer)
            self._wired.startup(state)
            return
        options = self.options
        switches = options.described(state.cluster.switches)
        power = {PowerUp, PowerDown} <= capabilities
        prepared = options.blocks == "prepared"
        keep = options.keep if options.keep is not None else (float("inf") if prepared else 0.0)
        self._sleeping = SleepingNodes(
            state, switches, prepared=prepared, unit=options.unit, keep=keep, depth=options.depth, power=power
        )

    @hookimpl
    def admit_job(self, job: Job) -> str | None:
        return (self._sleeping or self._wired).admit_job(job)

    @hookimpl
    def place(self, job: Job, offer: Offer, view: View) -> Placement | tuple[()]:
        return (self._sleeping or self._wired).place(job, offer, view)

    @hookimpl
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        return None if self._sleeping is not None else self._wired.revise(decisions, state)

    @hookimpl
    def decided(self, decisions: Sequence[Decision], state: State) -> None:
        if self._sleeping is not None:
            self._sleeping.decided(decisions)
        else:
            self._wired.decided(decisions, state)

    @hookimpl
    def observe(self, event: Event) -> None:
        (self._sleeping or self._wired).observe(event)

    @hookimpl
    def control(self, state: State) -> list[Decision] | None:
        if self._sleeping is not None:
            return self._sleeping.control(state)
        self._wired.control(state)
        return None

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"partitions": self._figures}

    def _figures(self, result: RunResult) -> dict[str, Any]:
        if self._sleeping is not None:
            return self._sleeping.figures(result)
        figures: dict[str, Any] = self._wired.register_metrics()["partitions"](result)
        return figures

    @hookimpl
    def register_report_sections(self, results: Sequence[RunResult]) -> list[Section]:
        return self._wired.register_report_sections(results)

    @hookimpl
    def explain(self, job: Job, question: str) -> str | None:
        """What a job waits for."""
        if question != "placement" or self._sleeping is None:
            return None
        return self._sleeping.why_not_placed(job)
