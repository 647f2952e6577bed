"""LSF's shared resources: what several hosts have together, and what each has some of by itself. Pure.

``lshosts -s`` lists the resources whose amounts are configured, ``lsload -s`` the resources of which an
*elim* tells how much there is. What jobs have reserved (``rusage``) comes off both: LSF reckons so, and so do
we.

* A resource of which there is one instance is counted for the whole cluster, as a licence; its jobs run on
  the hosts that have it.
* One that is configured host by host belongs to these hosts, like memory.
* Of others (several instances for several hosts each) it is noted that they are not kept.
* An instance without a number (``-``: its elim says nothing) has nothing, and so has what was counted before
  and is not listed now: a job that asks for it waits.

A reservation with a ``duration`` is given back while its job runs; from then on the elim is to see what the
job has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

#: The commands that list them.
STATIC = ("lshosts", "-s")
DYNAMIC = ("lsload", "-s")
#: What they say where there is none.
NONE = "No shared resources"
#: What stands for the number of an instance that has none now.
UNKNOWN = "-"
#: No amount is larger.
_LARGEST = 1 << 53


@dataclass(frozen=True)
class Instance:
    """How much these hosts have together."""

    amount: int
    hosts: frozenset[str]


@dataclass(frozen=True)
class Shared:
    """The shared resources of a cluster."""

    #: Counted for the whole cluster.
    licences: Mapping[str, Instance] = field(default_factory=dict)
    #: Resource -> host -> how much it has.
    by_host: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def at(self, host: str) -> tuple[tuple[str, int], ...]:
        """What a host has by itself."""
        there = ((name, amounts.get(host, 0)) for name, amounts in sorted(self.by_host.items()))
        return tuple((name, amount) for name, amount in there if amount)


NOTHING = Shared()


def shared(static: str, dynamic: str, before: Shared = NOTHING) -> Shared:
    """``lshosts -s`` and ``lsload -s``; ``before``: what was counted until now."""
    configured, measured = instances(static), instances(dynamic)
    listed = {**configured, **measured}
    licences = {name: Instance(0, one.hosts) for name, one in before.licences.items() if name not in listed}
    by_host = {name: dict.fromkeys(had, 0) for name, had in before.by_host.items() if name not in listed}
    for name, found in listed.items():
        if len(found) == 1:
            licences[name] = found[0]
        elif name not in measured and all(len(one.hosts) == 1 for one in found):
            by_host[name] = {host: one.amount for one in found for host in one.hosts}
    return Shared(licences, by_host)


def instances(text: str) -> dict[str, list[Instance]]:
    """One of the two listings: resource, value, the hosts that have it together, on one or several lines."""
    rows: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        words = line.split()
        if not words or words[:2] == ["RESOURCE", "VALUE"]:
            continue
        if line[:1].isspace():
            if rows:
                rows[-1][2].extend(words)
        elif len(words) > 2:
            rows.append((words[0], words[1], words[2:]))
    found: dict[str, list[Instance]] = {}
    for name, value, hosts in rows:
        amount = _there(value)
        if amount is not None:
            found.setdefault(name, []).append(Instance(amount, frozenset(hosts)))
    return found


def _there(value: str) -> int | None:
    """How much an instance has: 0 where LSF has no number for it now; None for a word, which is no amount."""
    if value == UNKNOWN:
        return 0
    try:
        float(value)
    except ValueError:
        return None
    return whole(value, math.floor) or 0


def whole(text: str, rounded: Callable[[float], int]) -> int | None:
    """A number as a whole one, the largest for larger ones; None for what is none that can be counted."""
    try:
        number = float(text)
    except ValueError:
        return None
    return rounded(min(number, _LARGEST)) if number >= 0 else None
