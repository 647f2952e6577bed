"""What a job would ask for, in the words of batch systems: the options of ``headway when`` and ``holes``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import click

from headway.inputs.spans import seconds_of

_CLOCK = re.compile(r"(?:(\d{1,4})-)?(\d{1,4})(?::(\d{1,4}))?(?::(\d{1,4}))?")
_MEMORY = re.compile(r"(\d{1,15})(?:([KMGTP])(?:i?B)?)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@/-]{0,199}")
_LONGEST = 3660 * 86400


class TimeLimit(click.ParamType):
    """``2h``, ``1h30m``, ``2d``, and as sbatch takes it ``2:00:00``, ``30:00``, ``1-12``; in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        # A number without a unit is minutes in one place and seconds in another.
        found = None if text.isdigit() else (_clock(text) if "-" in text or ":" in text else seconds_of(text))
        if found is None:
            self.fail(f"expected a time such as 2h, 90m, 2:00:00 or 1-12:00:00; found {value!r}", param, ctx)
        if not 0 < found <= _LONGEST:
            self.fail(f"expected a time above 0 and at most ten years, found {value!r}", param, ctx)
        return float(found)


def _clock(text: str) -> int | None:
    """Seconds of ``D-H[:M[:S]]``, ``H:M:S`` or ``M:S``; None if it is none of these."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    days, *rest = found.groups()
    fields = [int(field) for field in rest if field is not None]
    if days is not None:
        fields += [0] * (3 - len(fields))
    hours, minutes, seconds = [0] * (3 - len(fields)) + fields
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds


class Memory(click.ParamType):
    """``16G``, ``512M``, and as sbatch takes it ``4000`` (M); in bytes."""

    name = "memory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = _MEMORY.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"expected an amount such as 16G, 512M or 4000 (M); found {value!r}", param, ctx)
        size = int(found[1]) << 10 * (1 + "KMGTP".index((found[2] or "M").upper()))
        if size > 1 << 60:
            self.fail(f"expected at most 1024P, found {value!r}", param, ctx)
        return size


class Amounts(click.ParamType):
    """``gpu:2``, ``gpu:a100:2``, ``matlab:1,fluent``: names with amounts, 1 where none is said.

    With ``typed`` a name of two words counts under its first word as well, as adapters count what nodes have.
    """

    name = "amounts"

    def __init__(self, example: str, typed: bool = False) -> None:
        self.example = example
        self.typed = typed

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[str, int], ...]:
        if isinstance(value, tuple):
            return value
        found: dict[str, int] = {}
        for item in str(value).split(","):
            words = item.strip().split(":")
            amount = int(words.pop()) if len(words) > 1 and re.fullmatch(r"\d{1,9}", words[-1]) else 1
            wrong = not all(map(_NAME.fullmatch, words)) or len(words) > (2 if self.typed else 1)
            if wrong or amount < 1:
                self.fail(f"expected names and amounts such as {self.example}; found {item!r}", param, ctx)
            for name in {words[0], ":".join(words)}:
                found[name] = found.get(name, 0) + amount
        return tuple(sorted(found.items()))


class Features(click.ParamType):
    """``new``, ``new&ib``: features that each node must have."""

    name = "features"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in re.split("[&,]", str(value)))
        if not all(map(_NAME.fullmatch, names)):
            self.fail(
                f"expected features that nodes must all have, such as new&ib; found {value!r}", param, ctx
            )
        return names


TIME_LIMIT, MEMORY = TimeLimit(), Memory()
_COUNT = click.IntRange(1, 10**9)

#: What both commands have.
_OPTIONS = (
    click.option("-p", "--pool", "--partition", "pool", default="", help="The partition or queue."),
    click.option("-N", "--nodes", type=_COUNT, help="Number of nodes."),
    click.option("-n", "--processors", "--ntasks", "processors", type=_COUNT, help="Processors in all."),
    click.option("--processors-per-node", "--ntasks-per-node", "processors_per_node", type=_COUNT,
                 help="Processors on each node."),
    click.option("--mem", "memory_per_node", type=MEMORY, help="Memory on each node, such as 16G."),
    click.option("--mem-per-processor", "--mem-per-cpu", "memory_per_processor", type=MEMORY,
                 help="Memory for each processor."),
    click.option("--gres", "gres_per_node", type=Amounts("gpu:2 or gpu:a100:2", typed=True),
                 help="Generic resources on each node, such as gpu:a100:2."),
    click.option("-C", "--constraint", "features", type=Features(),
                 help="Features of the nodes, such as new&ib."),
    click.option("-L", "--licenses", "licences", type=Amounts("matlab:2,fluent"),
                 help="Licences, such as matlab:2."),
    click.option("--exclusive", is_flag=True, help="Whole nodes, shared with no other job."),
)  # fmt: skip


def wanted_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what a job would ask for; their values are fields of the request to the daemon."""
    return reduce(lambda function, option: option(function), reversed(_OPTIONS), command)


def named(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were named: the request has the defaults of the others."""
    return {name: value for name, value in options.items() if value is not None}
