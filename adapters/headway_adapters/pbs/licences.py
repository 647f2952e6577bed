"""What PBS counts for the whole server: ``resources_available`` of the server, what jobs ask for of it. Pure.

A site makes such a resource with ``qmgr -c "create resource matlab type=long,flag=q"`` and gives the server
some of it; a job asks for it with ``qsub -l matlab=2``. PBS's own scheduler keeps to that, ``qrun`` does not
look at it.

* Only a site's own resources with the flag ``q``, ``n`` or ``f`` are counted, as by PBS itself: of others
  PBS compares each job with the server alone. Where PBS does not tell the flags, all are counted.
* Amounts are whole: of ``1.5`` there is 1, and a job that asks for ``0.7`` gets 1. Sizes are bytes.
* What a script of PBS's own scheduler tells (``server_dyn_res``) is not known outside of that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Mapping
from typing import Any

from headway_adapters.pbs import values
from headway_adapters.pbs.cluster import mapping

#: The command that tells the site's own resources.
LIST = ("qmgr", "-c", "list resource")
_COUNTED = frozenset("qnf")
_RESOURCE = re.compile(r"Resource ([A-Za-z][A-Za-z0-9_-]*)\s*")


def available(servers: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """What the server has of each resource, as it writes that."""
    return mapping(next(iter(servers.values()), {}).get("resources_available"))


def flags(text: str) -> dict[str, str]:
    """``qmgr -c "list resource"``: the site's own resources, each with its flags."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        match = _RESOURCE.fullmatch(line)
        if match is not None:
            name = match[1]
            found[name] = ""
        elif name and line[:1].isspace() and line.partition("=")[0].strip() == "flag":
            found[name] = line.partition("=")[2].strip()
    return found


def totals(there: Mapping[str, Any], known: Mapping[str, str] | None, notes: set[str]) -> dict[str, int]:
    """How much there is of what is counted. ``known``: the flags; None: they could not be asked for."""
    found = {}
    for name, value in there.items():
        if known is not None and name not in known:
            continue
        total = _whole(value, math.floor)
        if total is None:
            continue
        if known is not None and not _COUNTED & set(known[name]):
            notes.add(
                f"resource {name!r} of the server has no flag q: PBS does not count what jobs have of it, "
                f'nor does headway (qmgr -c "set resource {name} flag=q")'
            )
            continue
        found[name] = total
    return found


def uncounted(there: Mapping[str, Any], known: Mapping[str, str]) -> bool:
    """Whether the server has some of a resource without the flag that makes PBS count it."""
    return any(name in known and not _COUNTED & set(known[name]) for name in there)


def asked(listed: Mapping[str, Any], counted: Container[str]) -> tuple[tuple[tuple[str, int], ...], str]:
    """What a job asks for of what is counted, by name; and why that cannot be counted ("" if it can)."""
    found, unfit = [], ""
    for name, value in sorted(listed.items()):
        if name not in counted:
            continue
        amount = _whole(value, math.ceil)
        if amount is None:
            unfit = f"it asks for {name}={values.text(value)[:40]}, which is no amount that can be counted"
        elif amount:
            found.append((name, amount))
    return tuple(found), unfit


def _whole(value: Any, rounded: Callable[[float], int]) -> int | None:
    try:
        number = float(values.text(value))
    except ValueError:
        return values.size(value)
    return rounded(number) if 0 <= number <= values.LARGEST else None
