"""Placement over a tree of switches: fewest leaf switches first, as Slurm's topology/tree.

Slurm: "Topology Guide" and ``--switches`` in sbatch's manual. Where the switches come from: the option
``switches`` or ``file``, else what the batch system says (``ClusterDescription.switches``). Decided here:

- What counts are processors, and nodes for a job that asks for a number of nodes. If these have to give it
  uneven numbers of processors, leaf switches are tried one by one, and for a job with a bound in all
  combinations of so many (:data:`_COMBINATIONS` at most).
- Nodes on which the job must run come with their switches; the rest is added to these nodes.
- Of the last switch the fewest nodes, with the least left over; so a job's GPUs lie on few nodes.
- A job that may lie on N switches at most waits for them as long as it says, at most ``max_wait``, counted
  from its submission or begin time; later it takes any. (Slurm counts from the moment at which it first
  could have started on more.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Annotated, Any

import numpy as np
import pydantic
from numpy.typing import NDArray

from headway.events import Event, JobChanged, JobSubmitted
from headway.hookspecs import Plugin, hookimpl
from headway.inputs.durations import as_seconds, seconds_of
from headway.model import Placement, Request, SwitchDescription
from headway.plugins import Again, Traits
from headway.resources import NodeTable, Offer
from headway.results import RunResult
from headway.results.section import Section
from headway.state import Job, State
from headway.view import View
from headway_plugins.placement.topology.locality import figures, idle_table, locality, section
from headway_plugins.placement.topology.options import SwitchOptions
from headway_plugins.placement.topology.switches import Ints, SwitchTree, fewest

#: So many sets of leaf switches are tried where a job spreads its processors unevenly.
_COMBINATIONS = 2000
_Seconds = Annotated[
    float, pydantic.BeforeValidator(as_seconds), pydantic.Field(ge=0, le=1e9, allow_inf_nan=False)
]


class TreeOptions(SwitchOptions):
    """Options of ``tree``."""

    max_wait: _Seconds | None = pydantic.Field(
        default=300.0,
        description="longest time for which a job waits for few switches; null: as long as the job says, or "
        "without end",
    )
    keep_whole: bool = pydantic.Field(
        default=False,
        description="a job that would fit on an idle switch takes several switches that are in use before "
        "it uses a part of the idle switch",
    )
    connected: bool = pydantic.Field(
        default=False, description="no job lies on switches that nothing connects (as in Slurm)"
    )


class Tree(Plugin):
    """Place jobs on the fewest switches, the fullest of them, and keep to jobs' bounds on their number."""

    Options = TreeOptions
    traits = Traits(
        requires=frozenset({"nodes"}), observes=(JobSubmitted, JobChanged), ask_again=Again.DOMAIN
    )

    def __init__(self, options: TreeOptions | None = None) -> None:
        super().__init__(options or TreeOptions())
        self.traits = replace(self.traits, same_answer=self._wishes, changes_at=self._given_up)
        self._tree = SwitchTree((), ())
        self._table = NodeTable()
        #: By index of the node table: the leaf switch of each node.
        self._leaf: Ints = np.zeros(0, np.int64)
        self._described: tuple[SwitchDescription, ...] = ()

    # ------------------------------------------------------------------ the tree

    @hookimpl
    def startup(self, state: State) -> None:
        self._described = self.options.described(state.cluster.switches)
        self._table = state.nodes
        self._look(state.nodes)
        state.notices.extend(f"topology: {problem}" for problem in self._tree.problems)
        if not self._described:
            state.notices.append(
                "topology: no switches are described, by the batch system or in the options switches and"
                " file of plugin 'tree': jobs are placed on the fewest nodes instead"
            )

    def _look(self, table: NodeTable) -> None:
        """Find out where the nodes are."""
        names = table.names
        if len(self._leaf) != len(names):
            self._tree = SwitchTree(self._described, names)
            self._leaf = self._tree.places(names)
            if not self._described:
                self._leaf = np.zeros(len(names), np.int64)

    # ------------------------------------------------------------------ bounds

    def _patience(self, job: Job, request: Request) -> float:
        """When a job gives up its bound, absolute seconds."""
        wait, longest = _wish(job, request)[1], self.options.max_wait
        if wait is None or (longest is not None and wait > longest):
            wait = longest
        if wait is None:
            return np.inf
        return max(job.submit_time, job.description.begin_time or job.submit_time) + wait

    def _bound(self, job: Job, request: Request, time: float) -> int:
        """On how many switches it may lie if it starts at that time; 0: on any."""
        most = _wish(job, request)[0]
        return most if most and time < self._patience(job, request) else 0

    def _wishes(self, job: Job) -> tuple[tuple[int, float], ...]:
        if not job.request.switches and not job.request.parts and job.description.attributes is None:
            return ()
        wishes = [(request, _wish(job, request)[0]) for request in _parts(job.request)]
        return tuple((most, self._patience(job, request)) for request, most in wishes if most)

    def _given_up(self, job: Job) -> list[float]:
        """When it gives up its bounds."""
        return sorted({time for _, time in self._wishes(job) if time < np.inf})

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobSubmitted | JobChanged):
            told = event.job
            if not (told.request.switches or told.request.parts or told.attributes):
                return
            job = state.jobs.get(told.id)
            if job is not None:
                if (said := job.attribute("switches")) is not None and _read_wish(said) is None:
                    state.notices.append(
                        f"job {job.id}: the mark switches={said!s:.40} is ignored: expected a number of "
                        "switches and optionally a time (2, or 2@10m)"
                    )
                for time in self._given_up(job):
                    if time > state.now:
                        state.wake_at(time, job.pool)

    # ------------------------------------------------------------------ placing

    @hookimpl
    def place(self, job: Job, offer: Offer) -> Placement | None:
        self._look(self._table)
        bound = self._bound(job, offer.request, offer.time)
        placement = self._placed(offer, bound, self._table)
        if placement is None or (bound and self._count(placement, self._table) > bound):
            return ()
        return placement

    def _count(self, placement: Placement, table: NodeTable) -> int:
        """On how many leaf switches it lies."""
        return len({int(self._leaf[table.index[name]]) for name, _ in placement})

    def _placed(self, offer: Offer, bound: int, table: NodeTable) -> Placement | None:
        """On the fewest switches; perhaps on more than the bound."""
        units, need = _units(offer)
        nodes = offer.feasible
        leaf = self._leaf[nodes]
        count = max(len(self._tree.leaves), int(leaf.max()) + 1 if len(leaf) else 0)
        room = np.bincount(leaf, units, count).astype(np.int64)
        named = [table.index[name] for name in offer.request.required_nodes if name in table.index]
        base = sorted(set(self._leaf[named].tolist())) if named else []
        chosen = None
        if self.options.keep_whole and not base:
            chosen = self._beside_whole(offer, room, need, leaf, bound, table)
        if chosen is None:
            last = self._in_use(leaf, nodes, offer, table, count) if self.options.keep_whole else None
            chosen = self._tree.choose(room, need, base, last, connected=self.options.connected)
        if chosen is None or (len(chosen) > 1 and not offer.request.processors_per_node):
            uneven = self._uneven(offer, leaf, units, base, bound or 1, chosen)
            if uneven is not None:
                return uneven
        if chosen is None:
            return None if self.options.connected else offer.take(_ordered(offer, nodes, units, need))
        return self._take(offer, chosen, leaf, units, need)

    def _take(self, offer: Offer, leaves: Ints, leaf: Ints, units: Ints, need: int) -> Placement | None:
        """The job on these leaf switches: of all but the last what they have."""
        order: list[NDArray[np.intp]] = []
        for at in leaves.tolist():
            mine = leaf == at
            order.append(_ordered(offer, offer.feasible[mine], units[mine], need))
            need -= int(units[mine].sum())
        return offer.take(np.concatenate(order))

    def _in_use(
        self, leaf: Ints, nodes: NDArray[np.intp], offer: Offer, table: NodeTable, count: int
    ) -> NDArray[np.bool_]:
        """Which leaf switches have a node that is not idle."""
        size = len(table)
        busy = offer.free.processors[:size] < table.total[:size]
        used = np.zeros(max(count, int(self._leaf.max()) + 1), np.bool_)
        used[self._leaf[busy]] = True
        return used[:count]

    def _beside_whole(
        self, offer: Offer, room: Ints, need: int, leaf: Ints, bound: int, table: NodeTable
    ) -> Ints | None:
        """Leaf switches that are in use already, for a job that is smaller than an idle one."""
        used = self._in_use(leaf, offer.feasible, offer, table, len(room))
        whole = room[~used & (room > 0)]
        if not len(whole) or need >= int(whole.min()):
            return None
        chosen = self._tree.choose(np.where(used, room, 0), need, connected=self.options.connected)
        return chosen if chosen is not None and (not bound or len(chosen) <= bound) else None

    def _uneven(
        self, offer: Offer, leaf: Ints, units: Ints, base: Sequence[int], most: int, chosen: Ints | None
    ) -> Placement | None:
        """A job that asks for a number of nodes on fewer switches, where it may have less of some nodes."""
        request = offer.request
        if not request.nodes or request.processors_per_node or not (units == 0).any():
            return None
        slots = offer.slots[offer.feasible]
        count, total = np.bincount(leaf), np.bincount(leaf, slots)
        others = [at for at in count.nonzero()[0].tolist() if at not in base]
        if not base and most == 1:
            others = [at for at in others if count[at] >= request.nodes and total[at] >= request.processors]
        for more in range(0 if base else 1, most - len(base) + 1):
            if chosen is not None and len(base) + more >= len(chosen):
                break
            if comb(len(others), more) > _COMBINATIONS and more > 1:
                break
            for some in combinations(others, more):
                tried = [*base, *some]
                if count[tried].sum() < request.nodes or total[tried].sum() < request.processors:
                    continue
                inside = np.isin(leaf, tried)
                nodes = offer.feasible[inside]
                if int(np.sort(offer.slots[nodes])[-request.nodes :].sum()) < request.processors:
                    continue
                placement = offer.take(_ordered(offer, nodes, units[inside], request.nodes))
                if placement is not None:
                    return placement
        return None

    # ------------------------------------------------------------------ measures

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"locality": lambda result: figures(result, *self._measured(result))}

    @hookimpl
    def register_job_columns(self) -> dict[str, Callable[[RunResult], Any]]:
        return {
            "switches": lambda result: self._measured(result)[0],
            "fewest_switches": lambda result: self._measured(result)[1],
        }

    @hookimpl
    def register_report_sections(self, results: Sequence[RunResult]) -> list[Section]:
        return [
            Section(f"Locality: {result.label}", section(figures(result, *self._measured(result))))
            for result in results
        ]

    def _measured(self, result: RunResult) -> tuple[Any, Any]:
        """Of each job the leaf switches that it was on, and the fewest possible."""
        known = result.computed.get("locality")
        if known is None:
            idle = Tree(self.options)
            idle._described = self.options.described(result.cluster.switches)
            table = idle_table(result)
            idle._look(table)

            def count(nodes: Sequence[str]) -> int:
                return len({int(idle._leaf[table.index[name]]) for name in nodes if name in table.index})

            def fewest(request: Request, pool: str) -> int | None:
                slots = table.slots(request, table.eligible(request, pool, False), table.whole)
                if request.parts or int(slots.sum()) < request.processors:
                    return None
                placement = idle._placed(Offer(table, request, slots, table.whole), 0, table)
                return None if placement is None else idle._count(placement, table)

            known = result.computed["locality"] = locality(result, count, fewest)
        used, possible = known
        return used, possible

    # ------------------------------------------------------------------ for a person

    @hookimpl
    def explain(self, job: Job, question: str, view: View) -> str | None:
        """Why a job with a bound on switches is placed nowhere now."""
        if question != "placement":
            return None
        table = view.nodes
        self._look(table)
        for request in _parts(job.request):
            bound = self._bound(job, request, view.now)
            if not bound:
                continue
            until = self._patience(job, request)
            said = f"It waits for nodes on at most {_switches(bound)}"
            if until < np.inf:
                said += f" until {view.clock(until)}, then it takes any"
            slots = table.slots(request, table.eligible(request, job.pool.name), table.free)
            if int(slots.sum()) >= request.processors:
                placement = self._placed(Offer(table, request, slots, table.free, view.now), bound, table)
                if placement and (count := self._count(placement, table)) > bound:
                    return f"{said}; on the nodes that are free now it would need {_switches(count)}"
            return said
        return ""


def _switches(count: int) -> str:
    return f"{count} switch" if count == 1 else f"{count} switches"


def _wish(job: Job, request: Request) -> tuple[int, float | None]:
    """On how many switches a job, or its part, is to lie at most (0: it was not said), and for how many
    seconds it waits for that (None: it was not said)."""
    if request.switches:
        return request.switches, request.switches_wait
    return _read_wish(job.attribute("switches")) or (0, None)


def _read_wish(said: Any) -> tuple[int, float | None] | None:
    """``2`` or ``2@10m``; None for anything else."""
    count, _, wait = str(said).partition("@")
    if not (count.isascii() and count.isdecimal() and len(count) < 10 and int(count)):
        return None
    seconds = seconds_of(wait)
    return None if "@" in str(said) and seconds is None else (int(count), seconds)


def _parts(request: Request) -> Sequence[Request]:
    return request.parts or (request,)


def _units(offer: Offer) -> tuple[Ints, int]:
    """What the nodes that could host the job have of what it counts in, and how much of it it needs."""
    request = offer.request
    slots = offer.slots[offer.feasible]
    per_node, chunk = request.processors_per_node, request.processors_per_chunk or 1
    if request.nodes:
        share = per_node or -(-request.processors // (request.nodes * chunk)) * chunk
        return (slots >= share).astype(np.int64), request.nodes
    if per_node:
        return np.where(slots >= per_node, per_node, 0), request.processors
    return slots, request.processors


def _ordered(offer: Offer, nodes: NDArray[np.intp], units: Ints, need: int) -> NDArray[np.intp]:
    """Nodes in order of preference: the fewest that have ``need`` units, with the least left over."""
    able, rest = nodes[units > 0], nodes[units == 0]
    if offer.request.nodes:
        # However many: the fullest of them.
        first = np.argsort(offer.free.processors[able], kind="stable")
    else:
        first = fewest(units[units > 0], need)
        others = np.ones(len(able), np.bool_)
        others[first] = False
        first = np.concatenate([first, others.nonzero()[0]])
    return np.concatenate([able[first], rest])
