"""What limits a site writes down, and which of them a job is under.

A limit is of something that jobs have in common: their ``user``, ``account``, ``group``, ``qos`` or ``pool``,
their ``own_account`` (that account alone), their ``association`` (a user in an account, as ``physics:ann``),
several of these together (``user+pool``), or nothing (``all``). Under it each value, or each combination, is
counted by itself::

    of:
      user: {"*": {jobs: 10}, ann: {jobs: 20, processors: 64}}
      account: {physics: {processors: 512}}
      user+pool: {"*+debug": {jobs: 1}}

``*`` is every value. Each limit is taken by itself from the most exact line that says it, as PBS, Maui and
Slurm's associations do: above, ann may run 20 jobs on 64 processors, and were ``jobs`` not in her line, 10 as
every user. ``null`` in a line says that there is no such limit, whatever less exact lines say. Of two lines
that fit, the line with the earlier name spelt out is more exact. An account is counted with all accounts
below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any

import pydantic

from headway.errors import nearest
from headway_plugins.accounts.options import Seconds, Weight

#: What limits may be of.
DIMENSIONS = ("user", "account", "own_account", "association", "group", "qos", "pool")
EVERYBODY = "all"
ANY = "*"

_Count = Annotated[int, pydantic.Field(ge=0, le=10**12)]


class Largest(pydantic.BaseModel):
    """How much a single job may ask for."""

    model_config = pydantic.ConfigDict(extra="forbid")

    processors: _Count | None = pydantic.Field(default=None, description="processors of a job")
    nodes: _Count | None = pydantic.Field(default=None, description="nodes of a job")
    memory: Weight | None = pydantic.Field(default=None, description="GiB of memory of a job")
    walltime: Seconds | None = pydantic.Field(default=None, description="time limit of a job, such as 2d")
    processor_minutes: Weight | None = pydantic.Field(
        default=None, description="processors x time limit of a job, in minutes"
    )
    resources: dict[str, Weight | None] = pydantic.Field(default={}, description="generic resources of a job")


class Amounts(pydantic.BaseModel):
    """How much all jobs may have at once, and a single job."""

    model_config = pydantic.ConfigDict(extra="forbid")

    jobs: _Count | None = pydantic.Field(default=None, description="running jobs")
    processors: _Count | None = pydantic.Field(default=None, description="processors of running jobs")
    nodes: _Count | None = pydantic.Field(
        default=None,
        description="nodes of running jobs; a node that several jobs share counts for each of them",
    )
    memory: Weight | None = pydantic.Field(default=None, description="GiB of memory of running jobs")
    processor_minutes: Weight | None = pydantic.Field(
        default=None, description="processors x minutes until the time limits of running jobs"
    )
    budget: Weight | None = pydantic.Field(
        default=None, description="processor-minutes: used so far, and what running jobs may still use"
    )
    wall_minutes: Weight | None = pydantic.Field(
        default=None,
        description="minutes of jobs of any size: run so far, and what running jobs may still run",
    )
    resources: dict[str, Weight | None] = pydantic.Field(
        default={}, description="generic resources of running jobs, such as gpu"
    )
    largest: Largest = pydantic.Field(default=Largest(), description="limits of a single job")


#: Names in the order of the dimensions -> the limits.
Table = Mapping[str, Amounts]


def dimensions_of(key: str) -> tuple[str, ...]:
    """``user+pool`` as a tuple; ValueError if it names what jobs do not have in common."""
    if key == EVERYBODY:
        return ()
    found = tuple(key.split("+"))
    for name in found:
        if name not in DIMENSIONS:
            hint = nearest(name, (*DIMENSIONS, EVERYBODY))
            raise ValueError(
                f"{', '.join(DIMENSIONS)}, a combination such as user+pool, or all, found {key!r}.{hint}"
            )
    if len(set(found)) < len(found):
        raise ValueError(f"each name of a combination once, found {key!r}")
    return found


def names_of(key: str, dimensions: Sequence[str]) -> tuple[str, ...]:
    """``ann+debug`` as a tuple of as many names as there are dimensions."""
    found = tuple(key.split("+")) if len(dimensions) > 1 else (key,)
    if not dimensions:
        if key != ANY:
            raise ValueError(f'"*" for all jobs together, found {key!r}')
        return ()
    if len(found) != len(dimensions) or not all(found):
        example = "+".join([ANY] * len(dimensions))
        raise ValueError(f"{'+'.join(dimensions)}, such as {example}, found {key!r}")
    return found


def inherited(lines: Sequence[Amounts]) -> Amounts:
    """The limits of several lines, the most exact first: each limit from the first line that says it."""
    said: dict[str, Any] = {}
    for line in reversed(lines):
        said = _overlaid(said, line.model_dump(exclude_unset=True))
    return Amounts.model_construct(
        **{
            **said,
            "resources": said.get("resources", {}),
            "largest": Largest.model_construct(**said.get("largest", {})),
        }
    )


def _overlaid(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """What ``over`` says, and what ``under`` says of the rest; tables within are overlaid likewise."""
    return {
        **under,
        **{
            key: _overlaid(under.get(key, {}), value) if isinstance(value, dict) else value
            for key, value in over.items()
        },
    }


class Rule:
    """The limits of one kind of values, such as users."""

    def __init__(self, dimensions: Sequence[str], table: Mapping[str, Amounts]) -> None:
        """Raises ValueError for keys that do not fit."""
        self.dimensions = tuple(dimensions)
        self._table = {names_of(key, self.dimensions): amounts for key, amounts in table.items()}

    def amounts(self, names: tuple[str, ...]) -> Amounts | None:
        """What is allowed these, limit by limit from the most exact line; None if no line fits."""
        lines = [
            found
            for spelt in product(*((name, ANY) for name in names))
            if (found := self._table.get(spelt)) is not None
        ]
        return inherited(lines) if lines else None

    def label(self, names: tuple[str, ...]) -> str:
        """Whose limit it is, for a person."""
        said = [
            f"{what.replace('_', ' ')} {name!r}" for what, name in zip(self.dimensions, names, strict=True)
        ]
        return ", ".join(said) if said else "all jobs together"

    def holders(self, values: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
        """The names that count a job with these values: each account above it as well."""
        yield from product(*(values[name] for name in self.dimensions))
