"""How much of a resource a job asks for."""

from __future__ import annotations

from headway.model import Request

_GIB = 2.0**30


def amount(request: Request, name: str, processors: int) -> float:
    """How much of a resource a request is for: memory in GiB, else pieces of a generic resource."""
    if request.parts:
        return sum(amount(part, name, part.processors) for part in request.parts)
    if name == "memory":
        each = request.memory_per_processor * processors
        each += request.memory_per_chunk * request.chunks(processors)
        return (each or request.memory_per_node * max(request.nodes, 1)) / _GIB
    on_nodes = sum(count for kind, count in request.gres_per_node if kind == name) * max(request.nodes, 1)
    in_chunks = sum(count for kind, count in request.gres_per_chunk if kind == name)
    return float(on_nodes + in_chunks * request.chunks(processors))
