"""What belongs to no node: ``scontrol -o show licenses``, and the licences of a job or a reservation."""

from __future__ import annotations

import re
from functools import lru_cache

from headway_adapters.slurm import values
from headway_adapters.slurm.reader.documents import records

_ITEM = re.compile(r"([^:*=,;|\s]+)(?:[:*=]([0-9]+))?")


@lru_cache(maxsize=4096)
def licences(text: str) -> tuple[tuple[str, int], ...] | None:
    """``matlab:2,fluent`` -> name and amount, by name; a remote one is ``name@server``.

    None for what is no such list, such as a choice (``matlab:1|fluent:1``).
    """
    found: dict[str, int] = {}
    for item in re.split("[,;]", text):
        if not item.strip():
            continue
        match = _ITEM.fullmatch(item.strip())
        if match is None:
            return None
        if amount := int(match.group(2) or 1):
            found[match.group(1)] = found.get(match.group(1), 0) + amount
    return tuple(sorted(found.items()))


def read_licences(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """How much this cluster's jobs may have of each licence, and how much they have now.

    What others have of a remote licence beyond their share (``LastDeficit``, from Slurm 23.02 on) is no
    longer there for this cluster, as Slurm itself reckons. Reserved amounts are their reservations' own.
    """
    total: dict[str, int] = {}
    used: dict[str, int] = {}
    for record in records(text, "LicenseName", ("Total", "Used")):
        name, amount = record["LicenseName"], values.number(record.get("Total", ""))
        if amount is None:
            continue
        there = values.integer(amount, 0xFFFFFFFD) - values.integer(record.get("LastDeficit", ""))
        total[name] = max(there, 0)
        used[name] = values.integer(record.get("Used", ""))
    return total, used
