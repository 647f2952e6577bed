"""PBS's little languages: ``select``, ``place``, ``exec_vnode``, Torque's ``nodes`` and ``exec_host``. Pure.

A *chunk* is what must be had on one vnode: ``2:ncpus=4:mem=1gb`` asks for two chunks of four
processors. PBS knows the chunks by their order, so we keep it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

import msgspec

from headway_adapters.pbs import values

#: Resources of a chunk that say how the job uses what it gets; no vnode gives them out.
_NOT_GIVEN_OUT = frozenset({"mpiprocs", "ompthreads", "nchunk"})
_ITEM = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)=(.*)", re.DOTALL)
_COUNT = re.compile(r"[0-9]{1,9}")
#: Resources of a chunk that can be written as they were read.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.:=@/-]*")
#: More chunks than this are none that a machine could have.
MOST_CHUNKS = 100_000


class Chunk(msgspec.Struct, frozen=True):
    """What is asked for on one vnode."""

    ncpus: int
    #: Bytes; 0: not stated.
    memory: int = 0
    #: Further resources that are counted: name -> amount (bytes for a size).
    amounts: tuple[tuple[str, int], ...] = ()
    #: Further resources that a vnode has or has not: name -> value ("" for a property of Torque's).
    wants: tuple[tuple[str, str], ...] = ()


class Place(msgspec.Struct, frozen=True):
    """How chunks may lie."""

    #: "free", "pack", "scatter" or "vscatter".
    arrangement: str = "free"
    #: "shared", "excl", "exclhost", or "" for what the vnodes say.
    sharing: str = ""
    #: A resource of which all vnodes must have the same value.
    group: str = ""


class Share(msgspec.Struct, frozen=True):
    """What a job has on one vnode."""

    processors: int = 0
    #: Bytes.
    memory: int = 0
    amounts: tuple[tuple[str, int], ...] = ()


def split(text: str, mark: str) -> list[str]:
    """Parts of ``text`` between ``mark``, which does not count within quotes."""
    if '"' not in text and "'" not in text:
        return text.split(mark)
    parts, part, quote = [], "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == mark:
            parts.append(part)
            part = ""
            continue
        part += letter
    parts.append(part)
    return parts


def of_other_size(text: str, processors: int) -> str:
    """A ``select`` of so many processors, one a chunk, whose chunks ask for what the chunks of ``text`` ask
    for.

    Raises ValueError where it asks for chunks of several kinds, or of more than one processor: what these
    would become, only their user knows.
    """
    chunks = set(parse_select(text))
    if len(chunks) > 1:
        raise ValueError("it asks for chunks of several kinds")
    if chunks.pop().ncpus != 1:
        raise ValueError("its chunks have more than one processor")
    first = split(text.strip(), "+")[0]
    count, colon, rest = first.partition(":")
    if not _COUNT.fullmatch(count):
        rest = first
    elif not colon:
        rest = "ncpus=1"
    if not _PLAIN.fullmatch(rest):
        raise ValueError("its chunks ask for something that is not plain words")
    return f"{processors}:{rest}"


@lru_cache(maxsize=4096)
def parse_select(text: str, most: int = MOST_CHUNKS) -> tuple[Chunk, ...]:
    """The chunks of ``2:ncpus=4:mem=1gb+ncpus=1``, one entry each, in order.

    ``most``: as many as the cluster could ever hold; more are not counted out, since a user may ask
    for any number. Raises ValueError.
    """
    chunks: list[Chunk] = []
    for part in split(text.strip(), "+"):
        items = split(part, ":")
        count = 1
        if _COUNT.fullmatch(items[0]):
            count = int(items.pop(0))
        if len(chunks) + count > most:
            raise ValueError(f"{text[:60]!r}: more chunks than there are processors")
        chunks += [_chunk(items, text)] * count
    if not chunks:
        raise ValueError(f"{text[:60]!r} asks for nothing")
    return tuple(chunks)


def _chunk(items: list[str], text: str) -> Chunk:
    ncpus, memory = 1, 0
    amounts: dict[str, int] = {}
    wants: dict[str, str] = {}
    for item in items:
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(f"{item[:40]!r} in {text[:60]!r} is no resource")
        name, value = match.group(1), match.group(2).strip("\"'")
        if name in _NOT_GIVEN_OUT:
            continue
        if name == "ncpus":
            if not _COUNT.fullmatch(value):
                raise ValueError(f"{item[:40]!r} in {text[:60]!r} is no number of processors")
            ncpus = int(value)
        elif name == "mem":
            found = values.size(value)
            if found is None:
                raise ValueError(f"{item[:40]!r} in {text[:60]!r} is no size")
            memory = found
        else:
            amount = values.size(value)
            if amount is None:
                wants[name] = value
            elif amount:
                amounts[name] = amount
    return Chunk(ncpus, memory, tuple(sorted(amounts.items())), tuple(sorted(wants.items())))


@lru_cache(maxsize=1024)
def parse_place(text: str) -> Place:
    """``scatter:excl:group=switch``; words that we do not know are left out."""
    arrangement, sharing, group = "free", "", ""
    for word in text.strip().split(":"):
        if word in ("free", "pack", "scatter", "vscatter"):
            arrangement = word
        elif word in ("shared", "excl", "exclhost"):
            sharing = word
        elif word.startswith("group="):
            group = word[len("group=") :]
    return Place(arrangement, sharing, group)


@lru_cache(maxsize=16384)
def parse_exec_vnode(text: str) -> tuple[tuple[str, Share], ...]:
    """``(v[0]:ncpus=4:mem=1024kb+w:ncpus=2)+(v[0]:ncpus=1)``: vnode -> share, the first one first.

    Raises ValueError.
    """
    found: dict[str, Share] = {}
    for part in text.replace("(", "").replace(")", "").split("+"):
        name, *items = part.split(":")
        if not name:
            raise ValueError(f"{text[:60]!r} names no vnode")
        chunk = _chunk(items, text)
        ncpus = chunk.ncpus if any(item.startswith("ncpus=") for item in items) else 0
        _add(found, name, Share(ncpus, chunk.memory, chunk.amounts))
    return tuple(found.items())


def _add(found: dict[str, Share], name: str, share: Share) -> None:
    known = found.get(name)
    if known is not None:
        amounts = dict(known.amounts)
        for resource, amount in share.amounts:
            amounts[resource] = amounts.get(resource, 0) + amount
        share = Share(
            known.processors + share.processors, known.memory + share.memory, tuple(sorted(amounts.items()))
        )
    found[name] = share


@lru_cache(maxsize=16384)
def parse_exec_host(text: str) -> tuple[tuple[str, Share], ...]:
    """``n1/0*4+n2/0`` and Torque's ``n1/0-3+n1/5,7``: node -> share. Raises ValueError."""
    found: dict[str, Share] = {}
    for part in text.split("+"):
        name, slash, rest = part.partition("/")
        if not name:
            raise ValueError(f"{text[:60]!r} names no node")
        count = 1 if slash else 0
        _, star, times = rest.partition("*")
        if star:
            count = values.integer(times)
        elif slash:
            count = 0
            for piece in rest.split(","):
                low, dash, high = piece.partition("-")
                count += values.integer(high) - values.integer(low) + 1 if dash else 1
        _add(found, name, Share(max(count, 0)))
    return tuple(found.items())


@lru_cache(maxsize=4096)
def parse_nodes(text: str, most: int = MOST_CHUNKS) -> tuple[Chunk, ...]:
    """Torque's ``nodes``: ``2:ppn=4:bigmem+n17:ppn=1``, a chunk for each node; ``most`` as with
    :func:`parse_select`. Raises ValueError."""
    chunks: list[Chunk] = []
    for part in text.strip().partition("#")[0].split("+"):
        first, *items = part.split(":")
        count, wants = 1, {}
        if _COUNT.fullmatch(first):
            count = int(first)
        elif first:
            wants["host"] = first
        else:
            raise ValueError(f"{text[:60]!r} asks for nothing")
        ncpus, amounts = 1, {}
        for item in items:
            name, equals, value = item.partition("=")
            if not equals:
                wants[name] = ""
            elif name == "ppn":
                ncpus = values.integer(value)
            elif name in ("gpus", "mics"):
                amounts[name] = values.integer(value)
            else:
                raise ValueError(f"{item[:40]!r} in {text[:60]!r} is not known")
        if ncpus < 1:
            raise ValueError(f"{text[:60]!r} asks for nothing that can be had")
        if len(chunks) + count > most:
            raise ValueError(f"{text[:60]!r}: more chunks than there are processors")
        chunks += [Chunk(ncpus, 0, tuple(sorted(amounts.items())), tuple(sorted(wants.items())))] * count
    return tuple(chunks)


def distribute(
    chunks: tuple[Chunk, ...],
    counts: Mapping[str, int],
    *,
    whole: bool = False,
    homes: Mapping[int, Collection[str]] | None = None,
) -> tuple[tuple[str, Chunk], ...]:
    """A vnode for each chunk, in the chunks' order, out of ``counts`` processors on each vnode.

    Each vnode gets a chunk at least; larger chunks choose first. ``whole``: the vnodes are had whole,
    so that processors may be left over, as they may when the chunks are of different sizes.
    ``homes``: a chunk's place in the order -> the only vnodes that it may lie on. Raises ValueError
    when the chunks do not lie on the vnodes.
    """
    homes = homes or {}
    left = dict(counts)
    given: dict[int, str] = {}
    empty = dict.fromkeys(left)
    order = sorted(range(len(chunks)), key=lambda at: (at not in homes, -chunks[at].ncpus))
    names, cursor, size = list(left), 0, -1
    for at in order:
        need = chunks[at].ncpus
        if need != size:
            cursor, size = 0, need
        allowed = homes.get(at)
        name = next((one for one in empty if left[one] >= need and (not allowed or one in allowed)), None)
        if name is not None:
            del empty[name]
        elif allowed:
            name = next((one for one in names if left[one] >= need and one in allowed), None)
        else:
            while cursor < len(names) and left[names[cursor]] < need:
                cursor += 1
            name = names[cursor] if cursor < len(names) else None
        if name is None:
            raise ValueError(f"a chunk of {need} processors has no vnode among {', '.join(names)}")
        left[name] -= need
        given[at] = name
    if empty:
        raise ValueError(f"no chunk is left for {', '.join(empty)}")
    if not whole and any(left.values()) and len({chunk.ncpus for chunk in chunks}) == 1:
        surplus = ", ".join(name for name, rest in left.items() if rest)
        raise ValueError(f"there are more processors than the chunks ask for on {surplus}")
    return tuple((given[at], chunks[at]) for at in range(len(chunks)))


def spread(
    chunks: tuple[Chunk, ...], counts: Mapping[str, int], hosts: Mapping[str, str], *, apart: bool = False
) -> tuple[tuple[tuple[str, Chunk], ...], ...]:
    """The vnodes of each chunk, in the chunks' order, where a chunk may lie on several vnodes of one host.

    ``counts``: processors on each vnode. ``hosts``: vnode -> host. ``apart``: each chunk on a host of its
    own. Vnodes may be left over. Raises ValueError when the chunks do not lie on the vnodes.
    """
    left = dict(counts)
    taken: set[str] = set()
    given: dict[int, tuple[tuple[str, Chunk], ...]] = {}
    for at in sorted(range(len(chunks)), key=lambda index: -chunks[index].ncpus):
        chunk = chunks[at]
        for host in dict.fromkeys(hosts.get(name, name) for name in left):
            names = [name for name in left if hosts.get(name, name) == host and left[name]]
            if (apart and host in taken) or sum(left[name] for name in names) < chunk.ncpus:
                continue
            # One vnode if one has room, otherwise the fullest share of each.
            alone = [name for name in names if left[name] >= chunk.ncpus]
            parts: list[tuple[str, Chunk]] = []
            missing = chunk.ncpus
            for name in alone[:1] or sorted(names, key=lambda one: -left[one]):
                count = min(left[name], missing)
                if count:
                    memory = -(-chunk.memory * count // chunk.ncpus)
                    parts.append((name, Chunk(count, memory, () if parts else chunk.amounts)))
                    left[name] -= count
                    missing -= count
            given[at] = tuple(parts)
            taken.add(host)
            break
        else:
            raise ValueError(f"a chunk of {chunk.ncpus} processors has no host among {', '.join(left)}")
    return tuple(given[at] for at in range(len(chunks)))
