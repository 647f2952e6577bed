"""Chunks of several kinds -> the parts of one request. Pure.

A chunk is what PBS places: on one vnode, or, if it is larger than any, on several vnodes of one host. Chunks
of a kind that stand beside each other in the ``select`` are one part. Chunks of different kinds share vnodes
unless ``place`` or exclusive use keeps them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import msgspec

from headway.model import Placement, Request
from headway.model.parts import placements_of
from headway_adapters.pbs import select, values
from headway_adapters.pbs.hosts import Largest


class Group(msgspec.Struct, frozen=True):
    """The chunks of one part, by their places in the order of the ``select``."""

    chunks: tuple[int, ...]
    #: A chunk may lie on several vnodes of one host.
    spread: bool = False


class Home(msgspec.Struct, frozen=True):
    """Where chunks of a kind may lie."""

    features: tuple[str, ...] = ()
    #: The only vnode; "": any but the excluded ones.
    vnode: str = ""
    excluded: tuple[str, ...] = ()


def parted(
    chunks: Sequence[select.Chunk],
    place: select.Place,
    *,
    whole: bool,
    largest: Largest,
    home: Callable[[select.Chunk], Home],
) -> tuple[Request, tuple[Group, ...]]:
    """The request for these chunks, and which of them each part has.

    ``whole``: vnodes are had whole. ``largest``: the most that a vnode has.
    """
    parts: list[Request] = []
    groups: list[Group] = []
    apart = place.arrangement in ("scatter", "vscatter")
    by_host = largest.processors > 0 and place.arrangement == "scatter"
    for chunk, members in groupby(range(len(chunks)), key=lambda at: chunks[at]):
        its = tuple(members)
        too_large = largest.is_too_small_for(chunk.ncpus, chunk.memory)
        spread = by_host or (too_large and place.arrangement != "vscatter")
        if spread or not chunk.ncpus:
            part = _alone(chunk, home(chunk), spread=spread and chunk.ncpus > 0, whole=whole)
            parts += [part] * len(its)
            groups += [Group((at,), spread and chunk.ncpus > 0) for at in its]
        else:
            parts.append(_of_kind(chunk, len(its), home(chunk), apart=apart, whole=whole))
            groups.append(Group(its))
    if not any(part.processors for part in parts):
        # A job without processors is planned as one of one.
        parts[0] = msgspec.structs.replace(parts[0], processors=1, processors_per_node=1)
    between = "hosts" if by_host else "nodes" if apart or whole else ""
    total = sum(part.processors for part in parts)
    return Request(total, 1.0, parts=tuple(parts), parts_apart=between), tuple(groups)


def _alone(chunk: select.Chunk, home: Home, *, spread: bool, whole: bool) -> Request:
    """One chunk: without processors, or on several vnodes of a host."""
    request = Request(
        chunk.ncpus, 1.0, features=home.features, excluded_nodes=home.excluded, exclusive=whole and spread,
        required_nodes=(home.vnode,) if home.vnode else (),
    )  # fmt: skip
    if spread:
        each = -(-chunk.memory // chunk.ncpus)
        return msgspec.structs.replace(
            request, memory_per_processor=each, gres_per_node=chunk.amounts, one_host=True
        )
    return msgspec.structs.replace(
        request, nodes=1, memory_per_node=chunk.memory, gres_per_node=chunk.amounts
    )


def _of_kind(chunk: select.Chunk, count: int, home: Home, *, apart: bool, whole: bool) -> Request:
    """So many chunks of a kind, each on a vnode (``apart``: of its own)."""
    total = count * chunk.ncpus
    request = Request(
        total, 1.0, features=home.features, excluded_nodes=home.excluded, exclusive=whole,
        required_nodes=(home.vnode,) if home.vnode else (),
    )  # fmt: skip
    if home.vnode and not apart:
        amounts = tuple((name, min(amount * count, values.LARGEST)) for name, amount in chunk.amounts)
        return msgspec.structs.replace(
            request, nodes=1, processors_per_node=total, gres_per_node=amounts,
            memory_per_node=min(chunk.memory * count, values.LARGEST),
        )  # fmt: skip
    if apart:
        return msgspec.structs.replace(
            request, nodes=count, processors_per_node=chunk.ncpus, memory_per_node=chunk.memory,
            gres_per_node=chunk.amounts,
        )  # fmt: skip
    return msgspec.structs.replace(request, **of_chunks(chunk))


def of_chunks(chunk: select.Chunk) -> dict[str, object]:
    """What a request says of each of its chunks, which may share vnodes."""
    if chunk.ncpus <= 1:
        return {"memory_per_processor": chunk.memory, "gres_per_chunk": chunk.amounts}
    return {
        "processors_per_chunk": chunk.ncpus,
        "memory_per_chunk": chunk.memory,
        "gres_per_chunk": chunk.amounts,
    }  # fmt: skip


def lie(
    request: Request,
    groups: Sequence[Group],
    chunks: Sequence[select.Chunk],
    placement: Placement,
    hosts: dict[str, str],
    *,
    whole: bool,
) -> tuple[tuple[tuple[str, select.Chunk], ...], ...]:
    """The vnodes of each chunk, in the chunks' order. Raises ValueError where they do not lie there."""
    found: dict[int, tuple[tuple[str, select.Chunk], ...]] = {}
    for group, own in zip(groups, placements_of(request, placement), strict=True):
        its = tuple(chunks[at] for at in group.chunks)
        if not own:
            raise ValueError("a chunk has no vnode")
        if group.spread:
            lies = select.spread(its, dict(own), hosts)
        elif not its[0].ncpus:
            lies = tuple(((own[0][0], chunk),) for chunk in its)
        else:
            lies = tuple((one,) for one in select.distribute(its, dict(own), whole=whole))
        found.update(zip(group.chunks, lies, strict=True))
    return tuple(found[at] for at in range(len(chunks)))


def lay_back(groups: Sequence[Group], text: str) -> Placement | None:
    """The placement of each part, one after the other, by a job's ``exec_vnode``; None if its chunks are
    others."""
    given = [select.parse_exec_vnode(piece) for piece in text.replace(")+(", ")\n(").split("\n")]
    if len(given) != sum(len(group.chunks) for group in groups):
        return None
    placement: list[tuple[str, int]] = []
    for group in groups:
        own: dict[str, int] = {}
        for at in group.chunks:
            for name, share in given[at]:
                own[name] = own.get(name, 0) + share.processors
        placement += own.items()
    return tuple(placement)
