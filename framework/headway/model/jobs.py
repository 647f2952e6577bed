"""What a user asks for: a job and its request."""

from __future__ import annotations

from typing import Any

import msgspec


class Request(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The resources a job asks for.

    ``processors`` is the total over all nodes. The other sizes narrow the choice of nodes; a
    flat pool looks at ``processors`` only. Zero means "not stated".
    """

    processors: int
    #: Seconds; the user's estimate, after which the batch system ends the job.
    walltime: float
    #: Exact number of nodes.
    nodes: int = 0
    #: Processors on each node (exact when ``nodes`` is stated too, else a divisor of the total).
    processors_per_node: int = 0
    #: Processors that must lie on one node together, a divisor of the total: each node has a
    #: multiple of it. Not together with ``processors_per_node``.
    processors_per_chunk: int = 0
    #: Bytes on each node.
    memory_per_node: int = 0
    #: Bytes for each processor.
    memory_per_processor: int = 0
    #: Bytes for each chunk (``processors_per_chunk`` processors, or one).
    memory_per_chunk: int = 0
    #: Generic resources for each node, such as ``(("gpu", 2),)``.
    gres_per_node: tuple[tuple[str, int], ...] = ()
    #: Generic resources for each chunk.
    gres_per_chunk: tuple[tuple[str, int], ...] = ()
    #: Features that each node must have, all of them.
    features: tuple[str, ...] = ()
    #: Nodes that the job must run on, when the user named them.
    required_nodes: tuple[str, ...] = ()
    #: Nodes that the job must not run on.
    excluded_nodes: tuple[str, ...] = ()
    #: Whole nodes, shared with no other job.
    exclusive: bool = False
    #: What each node must have at least (:attr:`NodeDescription.sizes`) and the job takes nothing of, such
    #: as ``(("memory", 2**30),)`` where the batch system gives no memory out.
    least_sizes: tuple[tuple[str, int], ...] = ()
    #: What it needs of what is counted for the whole cluster (:attr:`ClusterDescription.licences`), such as
    #: ``(("matlab", 2),)``, each name once.
    licences: tuple[tuple[str, int], ...] = ()
    #: On how many leaf switches (:class:`headway.model.SwitchDescription`) its nodes may lie at most; 0: on
    #: any number.
    switches: int = 0
    #: Seconds, from when it could have started on, for which it waits for nodes on so few switches; then it
    #: takes any. None: it was not said.
    switches_wait: float | None = None
    #: Parts that start together or not at all (:mod:`headway.model.parts`): then ``processors`` is their sum
    #: and ``walltime`` the longest, and no other size is stated here.
    parts: tuple[Request, ...] = ()
    #: What no two parts may have in common: "nodes" or "hosts" (:attr:`NodeDescription.host`); "": nothing,
    #: several parts may be on one node.
    parts_apart: str = "nodes"
    #: A part all of whose nodes are of one host.
    one_host: bool = False

    def chunks(self, processors: int) -> int:
        """How many of the request's chunks so many processors are."""
        return processors // (self.processors_per_chunk or 1)


class Dependency(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One condition on another job, or on all elements of an array.

    ``kind`` is ``"ended"`` (in any way), ``"completed"`` (successfully), ``"failed"`` (ended in any other
    way), ``"started"`` or ``"singleton"`` (no other job of this name and user runs, and none came before).
    For ``"singleton"`` only jobs count whose id begins with ``job_id``, which is "" on a single cluster;
    elements of one array do not wait for each other.

    ``job_id`` may be an :attr:`JobDescription.array_id`: then all elements must have started or ended.
    ``"completed"`` asks that all elements were successful, ``"failed"`` that at least one element was not.
    """

    kind: str
    job_id: str
    #: Seconds from the start that ``"started"`` asks for.
    delay: float = 0.0


class JobDescription(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A job as it was submitted."""

    id: str
    submit_time: float
    request: Request
    #: The pool it was sent to: a partition, a queue. "" means the cluster's only pool.
    pool: str = ""
    name: str = ""
    user: str = ""
    group: str = ""
    account: str = ""
    qos: str = ""
    #: The batch system's own priority, larger is sooner; None where it has none.
    priority: float | None = None
    array_id: str = ""
    array_index: int | None = None
    dependencies: tuple[Dependency, ...] = ()
    #: True: any single dependency is enough; False: all are needed.
    any_dependency: bool = False
    #: Earliest start, absolute seconds; None: at once.
    begin_time: float | None = None
    #: Held, but not by headway, so not to be started.
    held: bool = False
    #: The name of the reservation that the job asked to run in.
    reservation: str = ""
    #: What one plugin or trace format needs beyond this, such as ``{"requested_start": 36000}``.
    #: JSON values only.
    attributes: dict[str, Any] | None = None
    #: Where it may run as well, in its user's order, if it was sent to several pools; ``pool`` is the first.
    further_pools: tuple[str, ...] = ()

    @property
    def pools(self) -> tuple[str, ...]:
        """All pools in which it may run, in its user's order."""
        return (self.pool, *self.further_pools)
