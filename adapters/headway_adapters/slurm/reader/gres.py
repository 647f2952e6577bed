"""Generic resources as Slurm writes them: ``gpu:a100:4(S:0-1)``."""

from __future__ import annotations

import re
from functools import lru_cache

#: Before a generic resource, where others may stand beside it; from 23.11 on the second.
_PREFIXES = ("gres:", "gres/")


@lru_cache(maxsize=4096)
def gres(text: str) -> tuple[tuple[str, int], ...]:
    """``gpu:a100:4(S:0-1),gpu:2`` or ``gres:gpu:1`` or ``gres/gpu=2``: name -> count.

    A typed resource counts twice: under its name and under ``name:type``.
    """
    found: dict[str, int] = {}
    for item in re.sub(r"\([^)]*\)", "", text).split(","):
        item = item.strip()
        if item.startswith(_PREFIXES):
            item = item[5:]
        item, equals, amount = item.partition("=")
        fields = item.split(":")
        if equals:
            fields.append(amount)
        if not fields[0] or fields[0] in ("(null)", "N/A"):
            continue
        count = 1
        if len(fields) > 1 and fields[-1][:1].isdigit():
            count = _count(fields.pop())
        name = fields[0]
        found[name] = found.get(name, 0) + count
        if len(fields) > 1 and fields[1]:
            typed = f"{name}:{fields[1]}"
            found[typed] = found.get(typed, 0) + count
    return tuple(sorted(found.items()))


def generic(text: str) -> tuple[tuple[str, int], ...]:
    """The generic resources among what a job asks for: of ``cpu=7,gres/gpu=1`` the last.

    From 23.11 on ``--cpus-per-task`` stands there, too (``cpu=8``, at first ``cpu:8``); ``none`` is no name.
    """
    return gres(",".join(item for item in text.split(",") if item.strip().startswith(_PREFIXES)))


def _count(text: str) -> int:
    match = re.match(r"([0-9]+)([KkMmGgTt]?)", text)
    if match is None:
        return 0
    return int(match.group(1)) * 1024 ** " kmgt".index(match.group(2).lower() or " ")
