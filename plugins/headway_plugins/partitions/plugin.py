"""Where jobs get their partitions, and which partitions are kept booted.

After Y. Aridor, T. Domany, O. Goldshmidt, Y. Kliteynik, J. Moreira and E. Shmueli: "Open Job Management
Architecture for the Blue Gene/L Supercomputer", 2005. The two ways in which job managers drove that machine
are an option:

``on-demand`` (the paper's LoadLeveler)
    a partition is made for each job, by the allocator, and given back after it.
``prepared`` (its SLURM)
    jobs run on the blocks of a halving tree, which stay booted and are given back only when another block
    needs what they have. A job gets a block that is ready and idle; else a block that conflicts with no
    active block; else a block that conflicts only with idle blocks, which are given back first. The lowest
    number on ties.

Queue policies are unchanged: a job starts, and is booked, only where a partition exists for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import pydantic

from headway.decisions import Decision, PowerDown, PowerUp, Start
from headway.errors import UserError
from headway.events import DecisionFailed, Event, JobEnded, JobStarted, PartitionChanged
from headway.hookspecs import Plugin, hookimpl
from headway.model import JobDescription, Placement
from headway.partitions.torus import Box, Geometry, Shape
from headway.plugins import Again, Traits
from headway.resources import Offer
from headway.results import RunResult
from headway.results.section import Section
from headway.state import Job, PoolState, State
from headway.view import View
from headway_plugins.partitions.allocator import Allocator
from headway_plugins.partitions.blocks import torus_tree
from headway_plugins.partitions.idle import IdleTime
from headway_plugins.partitions.occupancy import Held, Occupancy, connection_of
from headway_plugins.partitions.picture import section
from headway_plugins.partitions.stages import stage_seconds


class Partitions(Plugin):
    """Place jobs on wired partitions of a torus."""

    traits = Traits(
        observes=(JobStarted, JobEnded, PartitionChanged, DecisionFailed),
        ask_again=Again.DOMAIN,
        paper=(
            "Y. Aridor et al.: Open Job Management Architecture for the Blue Gene/L Supercomputer: "
            "Case Studies with LoadLeveler and SLURM, 2005"
        ),
    )

    class Options(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")

        blocks: Literal["on-demand", "prepared"] = pydantic.Field(
            default="on-demand", description="a partition for each job, or blocks that stay booted"
        )
        fit: Literal["first", "best"] = pydantic.Field(
            default="first",
            description="on demand: the first place that fits, or the place that takes the fewest links",
        )

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options or Partitions.Options())
        self._geometry: Geometry
        self._occupancy: Occupancy
        self._allocators: dict[str, Allocator] = {}
        self._trees: dict[str, _Tree] = {}
        self._placements: dict[Box, Placement] = {}
        #: Blocks that were ordered and not given back: midplanes and links by their nodes.
        self._booted: dict[tuple[str, ...], tuple[int, int]] = {}
        self._idle = IdleTime()
        #: What the midplanes were last looked at for, and what was seen: cause, idle and used midplanes.
        self._looked: tuple[tuple[int, int, JobDescription | None], tuple[str, int, int]]
        self._looked = (-1, -1, None), ("no demand", 0, 0)
        self._counts = {"boots": 0, "failed_boots": 0, "given_back": 0, "starts": 0}
        #: When each start was decided that is not confirmed.
        self._asked: dict[str, float] = {}
        self._overhead = self._ran = 0.0
        self._began: dict[str, float] = {}

    # ------------------------------------------------------------------ hooks

    @hookimpl
    def startup(self, state: State) -> None:
        wiring = state.cluster.wiring
        if wiring is None:
            raise UserError(
                "plugin 'partitions': expected a machine of wired partitions (emulation.torus), found "
                f"the cluster {state.cluster.name!r} without one"
            )
        self._geometry = Geometry(wiring)
        self._occupancy = Occupancy(self._geometry, state)
        state.watch(self._occupancy)

    @hookimpl
    def admit_job(self, job: Job) -> str | None:
        attributes = job.description.attributes or {}
        said = attributes.get("connection")
        if said not in (None, "mesh", "torus"):
            return f"expected the connection mesh or torus, found {said!r}"
        shape = self._shape(job)
        if isinstance(shape, str):
            return shape
        connection = connection_of(job, self._geometry.torus.connection)
        if self.options.blocks == "prepared" and (
            shape is not None or connection != self._geometry.torus.connection
        ):
            return (
                f"prepared blocks are wired as a {self._geometry.torus.connection} and have shapes of their "
                "own: ask for a number of compute nodes alone"
            )
        if shape is not None:
            if shape[0] * shape[1] * shape[2] * self._geometry.torus.unit < job.processors:
                return f"a partition of shape {shape} has fewer than {job.processors} compute nodes"
            if self._allocator(connection).fit(0, shape=shape, rotate=bool(attributes.get("rotate"))) is None:
                return f"no partition of shape {shape} exists on this machine"
        elif not self._exists(job, connection):
            return f"no partition for {job.processors} compute nodes exists on this machine"
        return None

    @hookimpl
    def place(self, job: Job, offer: Offer, view: View) -> Placement | tuple[()]:
        box = self._fit(job, *self._occupancy.at(offer, view))
        if box is None:
            return ()
        known = self._placements.get(box)
        if known is None:
            names, table = self._geometry.nodes_of(box), view.nodes
            known = self._placements[box] = tuple(
                [(name, int(table.total[table.index[name]])) for name in names]
            )
            table.keep(known)
            self._occupancy.know(known, box.connection, self._geometry.masks(box))
        return known

    @staticmethod
    def same_answer(job: Job) -> Any:
        """What decides where a job is placed, beside its request."""
        attributes = job.description.attributes or {}
        shape = attributes.get("shape")
        return (
            attributes.get("connection"),
            tuple(shape) if isinstance(shape, list) else shape,
            bool(attributes.get("rotate")),
        )

    @hookimpl
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        if self.options.blocks != "prepared":
            return None
        found: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Start):
                nodes = tuple([name for name, _ in decision.placement])
                if nodes not in self._booted:
                    found += self._boot(decision, nodes, state)
            found.append(decision)
        return found

    @hookimpl
    def decided(self, decisions: Sequence[Decision], state: State) -> None:
        for decision in decisions:
            if isinstance(decision, Start):
                self._asked[decision.job_id] = state.now
                self._counts["starts"] += 1
                self._counts["boots"] += self.options.blocks == "on-demand"
            elif isinstance(decision, PowerUp):
                box = self._geometry.box_of(decision.nodes, self._geometry.torus.connection)
                if isinstance(box, Box):
                    self._booted[tuple(decision.nodes)] = self._geometry.masks(box)
                    self._counts["boots"] += 1
            elif isinstance(decision, PowerDown):
                self._counts["given_back"] += self._booted.pop(tuple(decision.nodes), None) is not None

    @hookimpl
    def observe(self, event: Event) -> None:
        if isinstance(event, JobStarted):
            asked = self._asked.pop(event.job_id, None)
            if asked is not None:
                self._overhead += event.time - asked
            self._began[event.job_id] = event.time
        elif isinstance(event, JobEnded):
            self._asked.pop(event.job_id, None)
            began = self._began.pop(event.job_id, None)
            if began is not None:
                self._ran += event.time - began
        elif isinstance(event, PartitionChanged):
            if event.state == "deallocating" and event.reason:
                self._counts["failed_boots"] += 1
            if event.state == "ready" and event.nodes not in self._booted:
                # It was there before this run.
                box = self._geometry.box_of(event.nodes, self._geometry.torus.connection)
                if isinstance(box, Box):
                    self._booted[event.nodes] = self._geometry.masks(box)
        elif isinstance(event, DecisionFailed) and isinstance(event.decision, PowerUp):
            self._booted.pop(tuple(event.decision.nodes), None)

    @hookimpl
    def control(self, state: State) -> None:
        table = state.nodes
        for pool in state.pools.values():
            if pool.flat:
                continue
            queue = pool.domain.queue
            first = queue[0].description if queue else None
            told = self._occupancy.changes, table.told, first
            if told != self._looked[0]:
                usable = self._occupancy.usable(table)
                free = self._occupancy.free_now(table) & usable
                idle = free.bit_count()
                used = usable.bit_count() - idle
                self._looked = told, (self._cause(pool, free, idle), idle, used)
            self._idle.change(state.now, *self._looked[1], first.id if first is not None else "")

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"partitions": self._figures}

    @hookimpl
    def register_report_sections(self, results: Sequence[RunResult]) -> list[Section]:
        return [
            Section(f"The machine: {result.label}", html)
            for result in results
            if result.cluster.wiring is not None and (html := section(result))
        ]

    def _figures(self, result: RunResult) -> dict[str, Any]:
        starts = max(self._counts["starts"], 1)
        total = self._overhead + self._ran
        return {
            **self._counts,
            "boots_per_job": self._counts["boots"] / starts,
            "seconds_to_first_instruction": self._overhead / starts,
            "midplane_hours": self._idle.figures(),
            "stage_seconds": {
                str(size): stages
                for size, stages in stage_seconds(result.partitions, self._geometry.torus.unit).items()
            },
            "worst_moment": msgspec.structs.asdict(self._idle.worst) if self._idle.worst else {},
        } | ({"overhead_share": self._overhead / total} if total else {})

    # ------------------------------------------------------------------ where

    def _allocator(self, connection: str) -> Allocator:
        if connection not in self._allocators:
            self._allocators[connection] = Allocator(self._geometry, connection)
        return self._allocators[connection]

    def _tree(self, connection: str) -> _Tree:
        if connection not in self._trees:
            self._trees[connection] = _Tree(self._geometry, connection)
        return self._trees[connection]

    def _shape(self, job: Job) -> Shape | str | None:
        """The shape that a job asks for; a sentence if it is none."""
        said = (job.description.attributes or {}).get("shape")
        if said is None:
            return None
        if (
            not isinstance(said, list | tuple)
            or len(said) != 3
            or not all(isinstance(n, int) and n > 0 for n in said)
        ):
            return f"expected a shape of three extents in midplanes, found {said!r}"
        return said[0], said[1], said[2]

    def _exists(self, job: Job, connection: str) -> bool:
        if self.options.blocks == "prepared":
            return self._tree(connection).size_class(self._midplanes(job)) > 0
        return self._allocator(connection).least(self._midplanes(job)) > 0

    def _midplanes(self, job: Job) -> int:
        return -(-job.processors // self._geometry.torus.unit)

    def _fit(self, job: Job, busy: int, held: Held) -> Box | None:
        """The box that a job gets, midplanes being in use and partitions having links as said."""
        attributes = job.description.attributes or {}
        connection = connection_of(job, self._geometry.torus.connection)
        if self.options.blocks == "prepared":
            return self._tree(connection).choose(
                self._midplanes(job), busy, held, self._booted, self._idle_blocks()
            )
        shape = self._shape(job)
        return self._allocator(connection).fit(
            self._midplanes(job),
            busy,
            held.full,
            shape=shape if isinstance(shape, tuple) else None,
            rotate=bool(attributes.get("rotate")),
            best=self.options.fit == "best",
        )

    def _idle_blocks(self) -> list[tuple[int, int]]:
        """Blocks that are booted, or are being booted, and have no job: their midplanes and links."""
        used = self._occupancy.used
        return [masks for masks in self._booted.values() if not masks[0] & used]

    def _boot(self, start: Start, nodes: tuple[str, ...], state: State) -> list[Decision]:
        """The orders that come before a start on a block that is not booted."""
        job = state.jobs[start.job_id]
        mine, wires = self._occupancy.masks_of(job, start.placement)
        orders: list[Decision] = []
        for other, (theirs, links) in self._booted.items():
            if theirs & mine or self._geometry.without_room([links]) & wires:
                orders.append(PowerDown(other, f"idle, and job {start.job_id} needs another block"))
        orders.append(PowerUp(nodes, f"for job {start.job_id}"))
        return orders

    # ------------------------------------------------------------------ what is idle

    def _cause(self, pool: PoolState, free: int, idle: int) -> str:
        queue = pool.domain.queue
        job = queue[0] if queue else None
        if job is None:
            return "no demand"
        midplanes = self._midplanes(job)
        if idle < midplanes:
            return "too few"
        everything = (1 << self._geometry.size) - 1
        busy = everything & ~free
        full = self._occupancy.held().full
        connection = connection_of(job, self._geometry.torus.connection)
        shape = self._shape(job)
        allocator = self._allocator(connection)
        turn = bool((job.description.attributes or {}).get("rotate"))
        own = shape if isinstance(shape, tuple) else None
        if self.options.blocks == "prepared":
            tree = self._tree(connection)
            if tree.first(midplanes, busy, full) is not None:
                return "policy"
            return "shape" if tree.first(midplanes, busy, 0) is None else "wiring"
        if allocator.fit(midplanes, busy, full, shape=own, rotate=turn) is not None:
            return "policy"
        return "shape" if allocator.fit(midplanes, busy, 0, shape=own, rotate=turn) is None else "wiring"


class _Tree:
    """The blocks of a halving tree by size."""

    def __init__(self, geometry: Geometry, connection: str) -> None:
        self._geometry = geometry
        blocks = [
            box
            for level in torus_tree(geometry.shape, connection)
            for box in level
            if geometry.possible(box.shape, connection)
        ]
        self._blocks: dict[int, list[tuple[Box, int, int]]] = {}
        for box in blocks:
            self._blocks.setdefault(box.size, []).append((box, *geometry.masks(box)))
        self._sizes = sorted(self._blocks)

    def size_class(self, midplanes: int) -> int:
        """The smallest size of a block that is large enough; 0: there is none."""
        at = bisect_left(self._sizes, midplanes)
        return self._sizes[at] if at < len(self._sizes) else 0

    def first(self, midplanes: int, busy: int, full: int) -> Box | None:
        """The first block of the size class that fits."""
        for box, nodes, links in self._blocks.get(self.size_class(midplanes), ()):
            if not (nodes & busy or links & full):
                return box
        return None

    def choose(
        self,
        midplanes: int,
        busy: int,
        held: Held,
        booted: dict[tuple[str, ...], tuple[int, int]],
        idle: list[tuple[int, int]],
    ) -> Box | None:
        """A ready block, else a free block that conflicts with no active block, else a block that conflicts
        with idle blocks only; the lowest number of each."""
        full = held.full
        idle_nodes = 0
        for nodes, _ in idle:
            idle_nodes |= nodes
        active = held.full_with([links for _, links in idle])
        ready = set(booted.values())
        best: tuple[int, Box] | None = None
        for box, nodes, links in self._blocks.get(self.size_class(midplanes), ()):
            if nodes & busy or links & full:
                continue
            if (nodes, links) in ready:
                return box
            rank = 2 if nodes & idle_nodes or links & active else 1
            if best is None or rank < best[0]:
                best = rank, box
        return best[1] if best is not None else None
