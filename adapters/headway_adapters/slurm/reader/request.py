"""What a job asks for. Where it gets whole cores, its processors are rounded up to them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.model import Request
from headway_adapters.slurm import marker, values
from headway_adapters.slurm.reader.bounded import fewest_nodes
from headway_adapters.slurm.reader.documents import MIB, JobRecord
from headway_adapters.slurm.reader.gres import generic, gres
from headway_adapters.slurm.reader.licences import licences
from headway_adapters.slurm.reader.nodes import Nodes
from headway_adapters.slurm.reader.partitions import Partition
from headway_adapters.slurm.reader.site import Site
from headway_adapters.slurm.reader.spread import Choice, Spread, Wish
from headway_adapters.slurm.reader.topology import Bounds, bound_of

_NODES = re.compile(r"(?:^|,)node=([0-9]+)")
_MEMORY = re.compile(r"(?:^|,)mem=([0-9.]+)([KMGTP]?)")


@dataclass(frozen=True)
class _Size:
    """How many processors, and how they are shared out; 0: not said."""

    processors: int
    nodes: int
    #: On each node.
    per_node: int
    #: So many lie on one node, since a task has them.
    together: int = 0


class Requests:
    """Reads the requests of one listing."""

    def __init__(
        self, site: Site, partitions: Mapping[str, Partition], nodes: Nodes, bounds: Bounds | None = None
    ) -> None:
        self.site = site
        self.partitions = partitions
        self.nodes = nodes
        self.bounds = bounds or {}
        self.threads = max(nodes.threads.values(), default=1) if site.whole_cores else 1
        self._excluded: dict[str, tuple[str, ...] | None] = {}
        self._spread = Spread(nodes.nodes)
        #: Set where an answer went by the nodes of the listing.
        self.went_by_nodes = False

    def walltime(self, record: JobRecord, pool: str) -> float:
        """Its limit, or the partition's, seconds."""
        # Slurm gives a job its partition's default at submission, and shows of a job without a limit the
        # partition's longest time. So what is shown as infinite is; Slurm 22.05 writes null for that.
        minutes = math.inf if record.time_limit is None else values.number(record.time_limit)
        partition = self.partitions.get(pool)
        if minutes is not None and math.isinf(minutes):
            return self.site.unlimited_walltime
        if minutes is not None:
            # Limits are looked at now and then, so nothing ends with its start.
            return max(minutes, 1) * 60.0
        if partition is not None and partition.default_walltime is not None:
            default = partition.default_walltime
            if not math.isinf(default):
                return default
        if partition is not None and not math.isinf(partition.max_walltime):
            return partition.max_walltime
        return self.site.unlimited_walltime

    def exclusive(self, record: JobRecord, pool: str) -> bool:
        """Whether it gets whole nodes."""
        if self.site.whole_nodes:
            return True
        partition = self.partitions.get(pool)
        if partition is not None and partition.exclusive:
            return True
        shared = values.words(record.shared)
        exclusive = values.words(record.exclusive)
        # "user" and "mcs": shared with the same user only; whole nodes is the careful reading.
        return any(word in ("NONE", "USER", "MCS", "TOPO") for word in shared) or any(
            word in ("TRUE", "USER", "MCS", "TOPO") for word in exclusive
        )

    def read(
        self,
        record: JobRecord,
        pools: Sequence[str],
        asked: tuple[str, ...],
        excluded: tuple[str, ...],
        least: int,
        most: int,
    ) -> tuple[str, Request, dict[str, Any] | None]:
        """Why we cannot express it ("" if we can), the request, and what it has beside.

        ``asked``, ``excluded``, ``least`` and ``most`` are the nodes that its user named and how many.
        ``pools``: where it may run; the shape is that of the first."""
        features, left_out, unfit = self._features(values.text(record.features))
        if left_out:
            excluded = tuple(dict.fromkeys((*excluded, *left_out)))
        exclusive = self.exclusive(record, pools[0])
        choice = Choice(pools[0], features, asked, excluded)
        size = self._size(record, pools, choice, (least, most), exclusive=exclusive)
        wanted = licences(values.text(record.licenses))
        if wanted is None:
            unfit = f"its licences {values.text(record.licenses)!r} cannot be expressed in headway"
        switches, switches_wait = bound_of(record, self.bounds)
        request = Request(
            processors=size.processors,
            walltime=self.walltime(record, pools[0]),
            nodes=size.nodes,
            processors_per_node=size.per_node,
            processors_per_chunk=size.together,
            **self.amounts(record, size.nodes or values.integer(record.node_count, 1) or 1),
            features=features,
            required_nodes=asked,
            excluded_nodes=excluded,
            exclusive=exclusive,
            switches=switches,
            switches_wait=switches_wait,
            licences=wanted or (),
        )
        return unfit, request, {"most_nodes": most} if most > least > 0 else None

    def _features(self, constraint: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """The features that each node must have, the nodes that a choice between features leaves out, and why
        we cannot express the constraint ("" if we can)."""
        if not constraint:
            return (), (), ""
        if "|" not in constraint and not set("[](*!") & set(constraint):
            parts = constraint.replace(",", "&").split("&")
            return tuple(part.strip() for part in parts if part.strip()), (), ""
        without = self._nodes_without(constraint)
        if without is None:
            return (), (), f"its constraint {constraint!r} cannot be expressed in headway"
        return (), without, ""

    def _size(
        self, record: JobRecord, pools: Sequence[str], choice: Choice, bounds: tuple[int, int], *,
        exclusive: bool,
    ) -> _Size:  # fmt: skip
        """How many processors on how many nodes, and how they are shared out."""
        least, most = bounds
        cpus = max(values.integer(record.cpus, 1), 1)
        known = [partition for name in pools if (partition := self.partitions.get(name)) is not None]
        nodes = fewest_nodes(known, cpus, least, most)
        wider = nodes > least
        if wider:
            cpus = max(cpus, nodes)
        per_task = processors_per_task(record, cpus)
        per_node = values.integer(record.tasks_per_node) * per_task
        if least != most or not least:
            wish = self._wish(record, cpus, per_task, per_node, bounds)
            self.went_by_nodes |= bool(wish.gres)
            spread = self._spread.fewest(choice, wish) if wish.gres else 0
            if spread > max(nodes, 1):
                nodes = spread
                cpus = max(cpus, nodes * (per_node or 1)) if wish.grows else cpus
            if spread > 1 and not per_node and cpus % (nodes * per_task) == 0:
                per_node = cpus // nodes
        if wider and not per_node and cpus % nodes == 0:
            # What asks for more nodes bounds what lies on each.
            per_node = cpus // nodes
        if per_node and (cpus % per_node or (nodes and cpus != nodes * per_node)):
            per_node = 0
        cpus, per_node = self._in_whole_cores(cpus, per_node, exclusive=exclusive)
        return self._with_tasks(_Size(cpus, nodes, per_node), per_task, exclusive=exclusive)

    def _in_whole_cores(self, cpus: int, per_node: int, *, exclusive: bool) -> tuple[int, int]:
        """Processors in all and on each node (0: not said). Each node's share is rounded up by Slurm, so the
        total must be."""
        if self.threads <= 1 or exclusive:
            return cpus, per_node
        if per_node:
            rounded = -(-per_node // self.threads) * self.threads
            return cpus // per_node * rounded, rounded
        return -(-cpus // self.threads) * self.threads, 0

    def _with_tasks(self, size: _Size, per_task: int, *, exclusive: bool) -> _Size:
        """The size, with what tasks of several processors say about what lies together."""
        if per_task <= 1 or size.per_node:
            return size
        together = self._together(per_task, size.processors, exclusive)
        if not size.nodes:
            return replace(size, together=together)
        # One task a node is a number a node; several may be spread unevenly, but none is divided.
        if together * size.nodes == size.processors:
            return replace(size, per_node=together)
        if together and size.processors // together < size.nodes:
            return size
        return replace(size, together=together)

    def _together(self, per_task: int, cpus: int, exclusive: bool) -> int:
        """How many of a job's ``cpus`` processors must lie on a node together because a task has so many.

        Slurm divides no task: it gives a job that is sent to too many nodes a task on each of them. Tasks
        that do not fill their cores may share one with a neighbour; they are left as one number.
        """
        if cpus - per_task < (1 if exclusive else self.threads):
            return cpus
        whole = exclusive or per_task % self.threads == 0
        return per_task if whole and cpus % per_task == 0 else 0

    def amounts(self, record: JobRecord, nodes: int) -> dict[str, Any]:
        """Memory and generic resources of a request on ``nodes`` nodes."""
        found: dict[str, Any] = {}
        required = values.text(record.tres_req_str)
        if self.site.memory_managed:
            if per_node := values.integer(record.memory_per_node):
                found["memory_per_node"] = per_node * MIB
            elif per_cpu := values.integer(record.memory_per_cpu):
                found["memory_per_processor"] = per_cpu * MIB
            elif required and (match := _MEMORY.search(required)):
                # No amount stated: Slurm gives the node's whole memory and writes the sum.
                size = float(match.group(1)) * 1024 ** ("KMGTP".index(match.group(2) or "M") - 1)
                found["memory_per_node"] = int(size / nodes) * MIB
        if least := self._least_sizes(record):
            found["least_sizes"] = least
        if wanted := self._gres(record, nodes):
            found["gres_per_node"] = wanted
        return found

    def _gres(self, record: JobRecord, nodes: int) -> tuple[tuple[str, int], ...]:
        """Generic resources on each of ``nodes`` nodes: the most that it has on one of them, or what it asks
        for, what is stated for the job or a task evenly over them."""
        if isinstance(record.gres_detail, list) and any(record.gres_detail):
            has: dict[str, int] = {}
            for text in record.gres_detail:
                for name, count in gres(values.text(text)):
                    has[name] = max(has.get(name, 0), count)
            return tuple(sorted(has.items()))
        if per_node := generic(values.text(record.tres_per_node)):
            return per_node
        if per_socket := generic(values.text(record.tres_per_socket)):
            sockets = values.integer(record.sockets_per_node) or 1
            return tuple((name, count * sockets) for name, count in per_socket)
        return tuple((name, -(-count // nodes)) for name, count in self._gres_in_all(record))

    def _wish(
        self, record: JobRecord, cpus: int, per_task: int, per_node: int, nodes: tuple[int, int]
    ) -> Wish:
        """What decides on how many nodes a job lies."""
        of_tasks = generic(values.text(record.tres_per_task)) and not generic(
            values.text(record.tres_per_job)
        )
        tasks = max(values.integer(record.tasks, 1), 1) if of_tasks else 0
        exact = "EXACT_TASK_COUNT_REQUESTED" in values.words(record.flags)
        return Wish(self._gres_in_all(record), cpus, per_task, per_node, tasks, nodes, exact)

    def _gres_in_all(self, record: JobRecord) -> tuple[tuple[str, int], ...]:
        """Generic resources that a job asks for in all (``--gpus``, ``--gpus-per-task``), and for no node.

        Slurm sums them up itself only where it accounts for them (``AccountingStorageTRES``).
        """
        if generic(values.text(record.tres_per_node)) or generic(values.text(record.tres_per_socket)):
            return ()
        if per_job := generic(values.text(record.tres_per_job)):
            return per_job
        if per_task := generic(values.text(record.tres_per_task)):
            tasks = max(values.integer(record.tasks, 1), 1)
            return tuple((name, count * tasks) for name, count in per_task)
        return generic(values.text(record.tres_req_str))

    def _least_sizes(self, record: JobRecord) -> tuple[tuple[str, int], ...]:
        """What Slurm compares with each node's configuration, and gives nothing of out."""
        sizes = [("disk", values.integer(record.minimum_tmp_disk_per_node) * MIB)]
        if not self.site.memory_managed:
            # An amount for a processor is compared as it is, whatever the job's processors there.
            stated = values.integer(record.memory_per_node) or values.integer(record.memory_per_cpu)
            sizes.append(("memory", stated * MIB))
        return tuple((name, amount) for name, amount in sizes if amount > 0)

    def _nodes_without(self, constraint: str) -> tuple[str, ...] | None:
        """The nodes that do not satisfy ``a&b|c``; None if the constraint is beyond that."""
        self.went_by_nodes = True
        if constraint not in self._excluded:
            result: tuple[str, ...] | None = None
            if not set("[](*!") & set(constraint):
                terms = [set(term.replace(",", "&").split("&")) for term in constraint.split("|")]
                result = tuple(
                    name
                    for name, node in self.nodes.nodes.items()
                    if not any(term <= set(node.features) for term in terms)
                )
            self._excluded[constraint] = result
        return self._excluded[constraint]


def processors_per_task(record: JobRecord, cpus: int) -> int:
    """Processors that a task needs on one node, at least 1.

    Slurm 22.05 leaves them out of its JSON; there they follow from the job's and a node's least.
    """
    if stated := values.integer(record.cpus_per_task):
        return max(stated, 1)
    tasks = max(values.integer(record.tasks), 1)
    share, rest = divmod(cpus, tasks)
    least = values.integer(record.minimum_cpus_per_node)
    return share if rest == 0 and least >= share > 1 and least % share == 0 else 1


def nodes_asked(record: JobRecord) -> tuple[int, int]:
    """The least and most nodes that were asked for; 0: not stated.

    From some version on (24.11 does it, 22.05 does not) Slurm shows the least as the most, too, of a job that
    entered held and states only tasks; a mark says where that is so.
    """
    most = values.integer(record.max_nodes)
    least = values.integer(record.node_count)
    if most == least and marker.says_nodes_open(values.text(record.admin_comment)):
        stated = _NODES.search(values.text(record.tres_req_str))
        if stated is not None and int(stated.group(1)) <= 1:
            return 0, 0
    return (least, most) if most else (0, 0)


def forgets_nodes(record: JobRecord) -> bool:
    """Whether its most nodes are not stated, and Slurm is of a kind that may not show that later."""
    return isinstance(record.max_nodes, dict) and not values.integer(record.max_nodes)
