"""Which jobs may take the place of which, as a site writes it down.

A waiting job (``who``) and a running job (``whom``) meet a rule::

    rules:
      - who: {qos: [urgent]}
        whom: {qos: [standby, low]}
        how: requeue
        exempt: 10m

A property that a selector leaves out may have any value. The first rule that is met counts.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Annotated, Literal

import pydantic

from headway.inputs.durations import as_seconds
from headway.state import Job

#: Seconds from zero on, written as ``7d``, ``1h30m`` or a number.
Seconds = Annotated[float, pydantic.BeforeValidator(as_seconds), pydantic.Field(ge=0, le=1e11)]
_Names = Annotated[list[str], pydantic.Field(min_length=1)]


def known_signal(name: str) -> str:
    if f"SIG{name}" not in signal.Signals.__members__ or name in ("KILL", "STOP", "CONT"):
        raise ValueError(f"expected a signal that a job can catch, such as TERM or USR1, found {name!r}")
    return name


#: What jobs are chosen by.
DIMENSIONS = ("qos", "pool", "account", "group", "user")


class Selector(pydantic.BaseModel):
    """Jobs that have one of the listed values in each listed property."""

    model_config = pydantic.ConfigDict(extra="forbid")

    qos: _Names | None = None
    pool: _Names | None = None
    account: _Names | None = None
    group: _Names | None = None
    user: _Names | None = None

    def fits(self, job: Job) -> bool:
        """Whether it is such a job."""
        told = job.description
        return (
            (self.qos is None or told.qos in self.qos)
            and (self.pool is None or job.pool.name in self.pool)
            and (self.account is None or told.account in self.account)
            and (self.group is None or told.group in self.group)
            and (self.user is None or told.user in self.user)
        )

    def meets(self, other: Selector) -> bool:
        """Whether both selectors could choose the same job."""
        for name in DIMENSIONS:
            mine, its = getattr(self, name), getattr(other, name)
            if mine is not None and its is not None and not set(mine) & set(its):
                return False
        return True

    def __str__(self) -> str:
        said = [
            f"{name} {' or '.join(values)}"
            for name in DIMENSIONS
            if (values := getattr(self, name)) is not None
        ]
        return ", ".join(said) or "any job"


class Rule(pydantic.BaseModel):
    """Which jobs may take the places of which jobs, and how these jobs go."""

    model_config = pydantic.ConfigDict(extra="forbid")

    who: Selector = pydantic.Field(description="waiting jobs that may take the places of running jobs")
    whom: Selector = pydantic.Field(description="running jobs whose places they may take, the victims")
    how: Literal["requeue", "cancel", "suspend"] = pydantic.Field(
        default="requeue",
        description="what happens to a victim: requeue (back to the queue), cancel (ended) or suspend "
        "(stopped until later)",
    )
    exempt: Seconds = pydantic.Field(
        default=0.0, description="seconds that a job must have run before it can be a victim"
    )
    distance: Annotated[float, pydantic.Field(gt=0, le=1e15)] | None = pydantic.Field(
        default=None,
        description="least difference between the waiting job's priority and the victim's; "
        "null: priorities do not matter",
    )
    grace: Seconds = pydantic.Field(
        default=0.0,
        description="seconds between a first signal to a victim and its requeue, end or suspension",
    )
    signal: Annotated[str, pydantic.AfterValidator(known_signal)] = pydantic.Field(
        default="TERM", description="the signal that a victim gets at the beginning of the grace time"
    )

    longest: Annotated[Seconds, pydantic.Field(gt=0)] = pydantic.Field(
        default=43200.0, description="longest total suspension of a job, in seconds"
    )
    again: Seconds = pydantic.Field(
        default=600.0, description="seconds for which a resumed job cannot be a victim"
    )

    @pydantic.model_validator(mode="after")
    def _of_suspension(self) -> Rule:
        for name in ("longest", "again"):
            if name in self.model_fields_set and self.how != "suspend":
                raise ValueError(f"{name}: expected how: suspend beside it, found how: {self.how}")
        return self

    @pydantic.model_validator(mode="after")
    def _used(self) -> Rule:
        if "signal" in self.model_fields_set and not self.grace:
            raise ValueError("signal: expected a grace time beside it, in which jobs can react")
        return self

    def __str__(self) -> str:
        least = "" if self.distance is None else f" by {self.distance:g} of priority"
        return f"{self.who} before {self.whom}{least}"


def check_rules(rules: Sequence[Rule]) -> None:
    """Raise ValueError if jobs could take each other's places for ever.

    Where priorities decide in each rule of a circle, a job that lost its place cannot take it back at once.
    """
    after = [[at for at, other in enumerate(rules) if rule.whom.meets(other.who)] for rule in rules]
    for first in range(len(rules)):
        reached, open_ = set(after[first]), list(after[first])
        while open_:
            for further in after[open_.pop()]:
                if further not in reached:
                    reached.add(further)
                    open_.append(further)
        if first in reached and rules[first].distance is None:
            raise ValueError(
                f"rules.{first} ({rules[first]}): expected rules by which no job can lose its place to one "
                "whose place it may take, found a circle"
            )
