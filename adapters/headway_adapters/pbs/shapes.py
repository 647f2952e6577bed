"""What a job of PBS's asks for (``select`` and ``place``, Torque's ``nodes``) -> our request. Pure.

Choices that PBS leaves to us:

* A job whose ``place`` is ``excl`` or ``exclhost`` has its vnodes whole, however few processors its
  chunks ask for.
* With ``place=scatter`` each chunk gets a vnode of its own, with ``pack`` all get one together. PBS says
  *host* in both: where hosts have several vnodes, see :mod:`headway_adapters.pbs.hosts`. ``free`` chunks
  share vnodes, chunks of several kinds as the parts of one request (:mod:`headway_adapters.pbs.chunk_parts`).
* A resource that no vnode offers is not looked at (PBS's scheduler has a list of the resources that it looks
  at).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headway.model import NodeDescription, Request
from headway_adapters.pbs import hosts, select, values
from headway_adapters.pbs.chunk_parts import Group, Home, of_chunks, parted
from headway_adapters.pbs.cluster import Nodes, feature, mapping
from headway_adapters.pbs.documents import JobRecord
from headway_adapters.pbs.placement_sets import leaf_key

#: So many ways to lay jobs of the same kind on hosts of several vnodes: divisible by all small numbers.
_TURNS = 60


class Shape(msgspec.Struct, frozen=True):
    """A request without what differs between jobs of the same select and place."""

    request: Request
    chunks: tuple[select.Chunk, ...]
    whole: bool
    whole_hosts: bool
    homes: Mapping[int, frozenset[str]]
    #: Why it cannot be expressed; "" if it can.
    unfit: str = ""
    spread: bool = False
    apart: bool = False
    #: Which chunks each part of the request has, where it has parts.
    groups: tuple[Group, ...] = ()
    #: Something about it is noted, at each listing.
    odd: bool = False


class Shapes:
    """The shapes of a listing's jobs, each made once."""

    def __init__(self, nodes: Nodes, notes: set[str], group_keys: tuple[str, ...] = ()) -> None:
        """``notes``: what is odd is added; ``group_keys``: by whose values vnodes are grouped."""
        self._nodes = nodes
        self._notes = notes
        #: The resource whose sets of vnodes are leaf switches.
        self._switch = leaf_key(group_keys, nodes.nodes)
        self._shapes: dict[tuple[str, str, str, int, int], Shape] = {}
        #: Pool -> its hosts, where some have several vnodes.
        self._pools: dict[str, dict[str, list[NodeDescription]]] = {}
        total = sum(node.processors for node in nodes.nodes.values())
        #: Chunks that all vnodes together could hold.
        self._most_chunks = min(total, select.MOST_CHUNKS) or select.MOST_CHUNKS

    def of(self, record: JobRecord, turn: int) -> Shape:
        """A job's shape. ``turn`` spreads jobs of one kind over hosts of several vnodes."""
        listed = mapping(record.Resource_List)
        place = place_of(record)
        pool = values.text(record.queue)
        wanted = values.text(record.schedselect) or values.text(listed.get("select"))
        total = 0
        parse = select.parse_select
        if not wanted:
            # Torque, or a job of an old kind.
            total = values.size(listed.get("mem")) or 0
            wanted = values.text(listed.get("nodes")) or values.text(listed.get("neednodes"))
            parse = select.parse_nodes
            place = place or "scatter"
            if not wanted or values.integer(listed.get("procs")):
                place = "free"
                wanted = values.text(listed.get("procs")) or f"1:ppn={processors_of(record)}"
        # Only where hosts have several vnodes does it matter whose turn it is.
        turn = turn % _TURNS if self._hosts(pool) else 0
        key = (wanted, place, pool, total, turn)
        shape = self._shapes.get(key)
        if shape is None:
            noted, self._notes = self._notes, set()
            try:
                chunks = parse(wanted, self._most_chunks)
            except ValueError as error:
                unfit = f"what it asks for cannot be read: {error}"
                request = Request(processors=processors_of(record), walltime=1.0)
                shape = Shape(request, (), False, False, {}, unfit)
            else:
                shape = self._shaped(chunks, select.parse_place(place), pool, total, turn)
            if self._notes:
                shape = msgspec.structs.replace(shape, odd=True)
                noted |= self._notes
            self._notes = noted
            self._shapes[key] = shape
        return shape

    def _shaped(
        self, chunks: tuple[select.Chunk, ...], place: select.Place, pool: str, total_memory: int, turn: int
    ) -> Shape:
        """``total_memory``: what Torque's job asks for in all, bytes."""
        whole = place.sharing in ("excl", "exclhost") or self._always_whole(place, pool)
        self._note_group(place)
        if self._has_parts(chunks, place, pool):
            return self._parted(chunks, place, pool, whole, total_memory, turn)
        # On a host that is one vnode chunks that lie together all have what each of them wants.
        homes, wants, unfit = self._homes(chunks, one_vnode=place.arrangement == "pack")
        required, without, apart = self._bound(chunks, homes)
        together = len(set(homes.values())) == 1 and len(homes) == len(chunks)
        largest = max(chunk.ncpus for chunk in chunks)
        amounts = self._counted(largest_amounts(chunk.amounts for chunk in chunks))
        on_hosts = self._on_hosts(chunks, place, pool, turn) if not homes and not amounts else None
        if on_hosts is not None:
            names, shape = on_hosts
            without |= self._nodes.nodes.keys() - names
            if "nodes" in shape:
                required = tuple(sorted(names))
        elif place.arrangement == "pack" or len(chunks) == 1 or (together and required):
            shape = self._on_one_vnode(chunks)
        elif place.arrangement == "free" and len(set(chunks)) == 1 and largest > 0 and not required:
            kind = msgspec.structs.replace(chunks[0], amounts=amounts)
            shape = dict(processors=len(chunks) * largest, **of_chunks(kind))
        else:
            shape = _on_a_vnode_each(chunks, amounts)
            if place.arrangement == "scatter" and (its := self._hosts(pool)):
                without |= self._nodes.nodes.keys() - hosts.one_of_each(its, largest, turn)
        if place.group and place.group == self._switch:
            shape["switches"] = 1
        if total_memory:
            shape["memory_per_processor"] = -(-total_memory // shape["processors"])
        for key, value in wants:
            if value == "False":
                without |= self._with_feature(feature(key, "True"))
        request = Request(
            walltime=1.0,
            features=tuple(feature(key, value) for key, value in wants if value != "False"),
            required_nodes=required,
            excluded_nodes=tuple(sorted(without)),
            exclusive=whole,
            **shape,
        )
        return Shape(
            request, chunks, whole, place.sharing == "exclhost", homes, apart or unfit,
            spread=on_hosts is not None, apart=place.arrangement == "scatter",
        )  # fmt: skip

    def _always_whole(self, place: select.Place, pool: str) -> bool:
        """Whether all vnodes of a pool are given whole, whatever the job says."""
        members = [name for name, node in self._nodes.nodes.items() if pool in node.pools]
        forced = set(self._nodes.always_whole)
        if place.sharing != "shared":
            forced |= self._nodes.default_whole
        return bool(members) and forced.issuperset(members)

    def _note_group(self, place: select.Place) -> None:
        if place.group and place.group != self._switch:
            self._notes.add(
                f"place=group={place.group} is not kept: headway looks at the groups of "
                + (f"{self._switch}, of the server's node_group_key" if self._switch else
                   "the server's node_group_key, which names none (or node_group_enable is not true)")
            )  # fmt: skip

    def _bound(
        self, chunks: tuple[select.Chunk, ...], homes: Mapping[int, frozenset[str]]
    ) -> tuple[tuple[str, ...], set[str], str]:
        """The vnodes that chunks name by their ``homes``, the vnodes that they do not lie on, and why that
        cannot be expressed ("" if it can)."""
        if not homes:
            return (), set(), ""
        together = len(set(homes.values())) == 1 and len(homes) == len(chunks)
        if together and len(homes[0]) > 1:
            return (), self._nodes.nodes.keys() - homes[0], ""
        required = tuple(sorted({next(iter(home)) for home in homes.values() if len(home) == 1}))
        if not together and len(required) < len(homes):
            return required, set(), "its chunks name hosts in a way that headway cannot express"
        return required, set(), ""

    def _on_one_vnode(self, chunks: tuple[select.Chunk, ...]) -> dict[str, Any]:
        """The size of a request whose chunks lie together on a vnode."""
        summed: dict[str, int] = {}
        for chunk in chunks:
            for name, amount in chunk.amounts:
                summed[name] = min(summed.get(name, 0) + amount, values.LARGEST)
        processors = max(sum(chunk.ncpus for chunk in chunks), 1)
        return dict(
            processors=processors, nodes=1, processors_per_node=processors,
            memory_per_node=min(sum(chunk.memory for chunk in chunks), values.LARGEST),
            gres_per_node=self._counted(tuple(sorted(summed.items()))),
        )  # fmt: skip

    def _with_feature(self, name: str) -> set[str]:
        """The vnodes that have a feature."""
        return {key for key, node in self._nodes.nodes.items() if name in node.features}

    def _has_parts(self, chunks: tuple[select.Chunk, ...], place: select.Place, pool: str) -> bool:
        """Whether the chunks are parts of one request: of several kinds, without processors, or larger than
        a vnode."""
        several = self._hosts(pool)
        if place.arrangement == "pack" and several and _want_different(chunks):
            return place.sharing != "exclhost"
        if place.arrangement == "pack" or (several and place.sharing == "exclhost"):
            return False
        largest = hosts.largest(several)
        if len(chunks) > 1 and any(largest.is_too_small_for(chunk.ncpus, chunk.memory) for chunk in chunks):
            return place.arrangement != "vscatter"
        return len(set(chunks)) > 1 or any(chunk.ncpus < 1 for chunk in chunks)

    def _parted(
        self,
        chunks: tuple[select.Chunk, ...],
        place: select.Place,
        pool: str,
        whole: bool,
        total_memory: int,
        turn: int,
    ) -> Shape:
        several = self._hosts(pool)
        counted = [msgspec.structs.replace(chunk, amounts=self._counted(chunk.amounts)) for chunk in chunks]
        home: Callable[[select.Chunk], Home] = self._home
        if place.arrangement == "pack":
            home = self._on_one_host([self._home(chunk) for chunk in counted], several, turn)
        request, groups = parted(counted, place, whole=whole, largest=hosts.largest(several), home=home)
        if total_memory and request.processors:
            each = -(-total_memory // request.processors)
            parts = tuple(msgspec.structs.replace(part, memory_per_processor=each) for part in request.parts)
            request = msgspec.structs.replace(request, parts=parts)
        if place.group and place.group == self._switch:
            request = msgspec.structs.replace(request, switches=1)
        return Shape(request, chunks, whole, place.sharing == "exclhost", {}, groups=groups)

    def _home(self, chunk: select.Chunk) -> Home:
        """Where a chunk may lie by what it wants."""
        wants = dict(chunk.wants)
        host, vnode = wants.pop("host", ""), wants.pop("vnode", "")
        allowed = [vnode] if vnode else (self._nodes.at_host(host) or [host]) if host else []
        excluded = self._nodes.nodes.keys() - set(allowed) if len(allowed) > 1 else set[str]()
        for key, value in wants.items():
            if value == "False":
                excluded |= self._with_feature(feature(key, "True"))
        features = tuple(feature(key, value) for key, value in wants.items() if value != "False")
        return Home(features, allowed[0] if len(allowed) == 1 else "", tuple(sorted(excluded)))

    def _on_one_host(
        self, homes: Sequence[Home], its: hosts.Hosts, turn: int
    ) -> Callable[[select.Chunk], Home]:
        """Where chunks of different kinds lie that are to lie on one host; anywhere, if no host has vnodes
        for all of them."""
        name = hosts.with_vnodes_for([(set(home.features), set(home.excluded)) for home in homes], its, turn)
        if name is None:
            return self._home
        others = self._nodes.nodes.keys() - {node.name for node in its[name]}

        def there(chunk: select.Chunk) -> Home:
            home = self._home(chunk)
            return msgspec.structs.replace(home, excluded=tuple(sorted(others.union(home.excluded))))

        return there

    def _on_hosts(
        self, chunks: tuple[select.Chunk, ...], place: select.Place, pool: str, turn: int
    ) -> tuple[set[str], dict[str, Any]] | None:
        """The vnodes of the hosts that a job is bound to, and the size of its request; None where each of
        its chunks lies on a vnode anyway."""
        its = self._hosts(pool)
        if not its:
            return None
        processors = max(sum(chunk.ncpus for chunk in chunks), 1)
        memory = min(sum(chunk.memory for chunk in chunks), values.LARGEST)
        largest = max(chunk.ncpus for chunk in chunks)
        if place.sharing == "exclhost":
            fullest = max(sum(node.processors for node in vnodes) for vnodes in its.values())
            apart = place.arrangement == "scatter"
            count = len(chunks) if apart else -(-processors // fullest)
            each = (largest, 0) if apart or count > 1 else (processors, memory)
            chosen = hosts.whole(its, count, *each, turn)
            if chosen is None:
                return None
            names = {node.name for name in chosen for node in its[name]}
            return names, dict(processors=len(names), nodes=len(names), processors_per_node=1)
        together = place.arrangement == "pack" or len(chunks) == 1
        if not together or not hosts.largest(its).is_too_small_for(processors, memory):
            return None
        chosen = hosts.whole(its, 1, processors, memory, turn)
        if chosen is None:
            return None
        names = {node.name for node in its[chosen[0]]}
        return names, dict(processors=processors, memory_per_processor=-(-memory // processors))

    def _homes(
        self, chunks: tuple[select.Chunk, ...], *, one_vnode: bool
    ) -> tuple[dict[int, frozenset[str]], tuple[tuple[str, str], ...], str]:
        """Where the chunks may lie that name their host or vnode, what all chunks want beside, and why
        that cannot be expressed ("" if it can). ``one_vnode``: all lie on the same."""
        homes: dict[int, frozenset[str]] = {}
        rest: dict[tuple[tuple[str, str], ...], None] = {}
        for at, chunk in enumerate(chunks):
            wants = dict(chunk.wants)
            host, vnode = wants.pop("host", ""), wants.pop("vnode", "")
            rest[tuple(wants.items())] = None
            if vnode:
                homes[at] = frozenset([vnode])
            elif host:
                homes[at] = frozenset(self._nodes.at_host(host) or [host])
        if one_vnode:
            return homes, tuple(dict.fromkeys(want for wants in rest for want in wants)), ""
        unfit = (
            "its chunks ask for different resources, which headway cannot express" if len(rest) > 1 else ""
        )
        return homes, next(iter(rest)), unfit

    def _counted(self, amounts: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        for name, _ in amounts:
            if name not in self._nodes.counted:
                self._notes.add(f"no vnode offers the resource {name!r}: the resource is ignored")
        return tuple((name, amount) for name, amount in amounts if name in self._nodes.counted)

    def _hosts(self, pool: str) -> dict[str, list[NodeDescription]]:
        """The hosts of a pool; none where each is one vnode."""
        found = self._pools.get(pool)
        if found is None:
            found = hosts.of_pool(self._nodes.nodes.values(), self._nodes.hosts, pool)
            self._pools[pool] = found = found if hosts.several(found) else {}
        return found


def _on_a_vnode_each(
    chunks: tuple[select.Chunk, ...], amounts: tuple[tuple[str, int], ...]
) -> dict[str, Any]:
    """The size of a request each of whose chunks has a vnode for itself."""
    largest = max(1, *(chunk.ncpus for chunk in chunks))
    return dict(
        processors=len(chunks) * largest, nodes=len(chunks), processors_per_node=largest,
        memory_per_node=max(chunk.memory for chunk in chunks), gres_per_node=amounts,
    )  # fmt: skip


def _want_different(chunks: Iterable[select.Chunk]) -> bool:
    """Whether chunks that name no host and no vnode want different things."""
    named = any(key in ("host", "vnode") for chunk in chunks for key, _ in chunk.wants)
    return not named and len({chunk.wants for chunk in chunks}) > 1


def place_of(record: JobRecord) -> str:
    """The job's ``place``; "" where it has none."""
    return values.text(mapping(record.Resource_List).get("place"))


def processors_of(record: JobRecord) -> int:
    """The job's ``ncpus`` in all, at least one."""
    return max(values.integer(mapping(record.Resource_List).get("ncpus"), 1), 1)


def largest_amounts(many: Iterable[tuple[tuple[str, int], ...]]) -> tuple[tuple[str, int], ...]:
    """The largest amount of each resource."""
    found: dict[str, int] = {}
    for amounts in many:
        for name, amount in amounts:
            found[name] = max(found.get(name, 0), amount)
    return tuple(sorted(found.items()))
