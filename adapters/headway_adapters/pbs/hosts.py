"""``place`` speaks of hosts, and a host may have several vnodes: what that leaves of the cluster. Pure.

The scheduler knows vnodes only. Where each host is one vnode there is nothing to say. Otherwise a job is
told which vnodes it may use, so that whatever it gets of them is what PBS means:

* ``pack`` that is larger than any vnode in processors or memory, or a chunk that is: the vnodes of one host;
* ``pack`` of chunks that want different things: the vnodes of one host that has vnodes for all of them;
* ``scatter``: one vnode of each host;
* ``exclhost``: all vnodes of as many hosts as it takes, each whole.

Which host, or which of its vnodes, goes by the job's number (its *turn*), so that jobs spread over the
cluster and each keeps its own from look to look; hosts that are out of service are passed over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from headway.model import NodeDescription

#: Host -> its vnodes that serve a pool.
Hosts = Mapping[str, Sequence[NodeDescription]]


def of_pool(
    nodes: Iterable[NodeDescription], hosts: Mapping[str, str], pool: str
) -> dict[str, list[NodeDescription]]:
    """The hosts of a pool; ``hosts``: vnode -> host."""
    found: dict[str, list[NodeDescription]] = {}
    for node in nodes:
        if pool in node.pools:
            found.setdefault(hosts.get(node.name, node.name), []).append(node)
    return found


def several(hosts: Hosts) -> bool:
    """Whether some host has more than one vnode."""
    return any(len(vnodes) > 1 for vnodes in hosts.values())


class Largest(msgspec.Struct, frozen=True):
    """The most that any vnode has, where hosts have several; zeros where each host is one vnode."""

    processors: int = 0
    #: Bytes; 0: not known.
    memory: int = 0

    def is_too_small_for(self, processors: int, memory: int) -> bool:
        """Whether this lies on several vnodes of one host; memory is divided as the processors are."""
        if not self.processors:
            return False
        return self.processors < processors or (processors > 1 and 0 < self.memory < memory)


def largest(hosts: Hosts) -> Largest:
    """The most that any vnode of these hosts has."""
    nodes = [node for vnodes in hosts.values() for node in vnodes]
    if not nodes:
        return Largest()
    return Largest(max(node.processors for node in nodes), max(node.memory for node in nodes))


def whole(hosts: Hosts, count: int, processors: int, memory: int, turn: int) -> list[str] | None:
    """``count`` hosts, each with so many processors and so much memory (bytes); None if there are fewer."""
    fit = [
        name
        for name, vnodes in sorted(hosts.items())
        if sum(node.processors for node in vnodes) >= processors
        and (not memory or sum(node.memory for node in vnodes) >= memory)
    ]
    in_service = [name for name in fit if all(node.available for node in hosts[name])]
    chosen = in_service if len(in_service) >= count else fit
    if len(chosen) < count:
        return None
    first = turn % len(chosen)
    return sorted([*chosen[first:], *chosen[:first]][:count])


def with_vnodes_for(
    wanted: Sequence[tuple[Collection[str], Collection[str]]], hosts: Hosts, turn: int
) -> str | None:
    """A host that has a vnode for each of ``wanted``; None if there is none.

    ``wanted``: the features of a vnode, and the names that it may not have.
    """

    def has(name: str) -> bool:
        return all(
            any(set(features) <= set(node.features) and node.name not in excluded for node in hosts[name])
            for features, excluded in wanted
        )

    fit = [name for name in sorted(hosts) if has(name)]
    chosen = [name for name in fit if all(node.available for node in hosts[name])] or fit
    return chosen[turn % len(chosen)] if chosen else None


def one_of_each(hosts: Hosts, processors: int, turn: int) -> set[str]:
    """A vnode of each host, one with so many processors where there is one."""
    found = set()
    for vnodes in hosts.values():
        in_order = sorted(vnodes, key=lambda node: node.name)
        fit = [node for node in in_order if node.processors >= processors] or in_order
        usable = [node for node in fit if node.available] or fit
        found.add(usable[turn % len(usable)].name)
    return found
