"""What protection costs, and which levels a job gets for the slack that it has.

T. Xie, X. Qin, A. Sung: Enhancing Security of Real-Time Applications on Grids Through Dynamic Scheduling.
JSSPP 2005, Tables 1 to 3 and equations (2), (7) to (10), (12); steps 5 to 15 of Figure 3.

Three services, in the order in which ties are broken: encryption, integrity, authentication. Each has a
ladder of options, a level in (0, 1] each. An option costs a fixed number of seconds, or the data to protect
over its speed; the services run one after the other, so the costs add up. Decisions on what the paper leaves
open:

- MB are 10^6 bytes, and all costs are seconds (the paper adds milliseconds to seconds).
- A range may begin and end anywhere: options below its lower end are never taken. A range above the ladder's
  top means the top (the paper's ciphers end at 0.9, its requirements at 1.0).
- The services are raised in order of decreasing weight (step 5 says so, its example is the other way round).
- Raising one service after the other need not find the best sum; :func:`raise_exactly` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import product
from typing import Annotated, Any

import pydantic

from headway.errors import UserError
from headway.inputs.strict_yaml import parse_yaml
from headway.inputs.validation import explain_validation

#: In the order in which ties of weight are broken.
SERVICES = ("encryption", "integrity", "authentication")
#: Seconds: what a comparison of times forgives to rounding.
ROUNDING = 1e-6
#: Of comparisons of levels.
_EPSILON = 1e-9

Level = Annotated[float, pydantic.Field(gt=0, le=1)]


@dataclass(frozen=True)
class Option:
    """An algorithm of a service."""

    level: float
    name: str
    #: Bytes a second; None: its cost does not grow with the data.
    speed: float | None = None
    #: Of each job.
    seconds: float = 0.0

    def cost(self, volume: float) -> float:
        """Seconds that it takes to protect ``volume`` bytes."""
        return self.seconds + (volume / self.speed if self.speed is not None else 0.0)


#: The options of a service, levels rising.
Ladder = tuple[Option, ...]
#: A number a service, in the order of :data:`SERVICES`: a step of each ladder.
Steps = tuple[int, int, int]


@dataclass(frozen=True)
class Profile:
    """The ladders of the three services, in the order of :data:`SERVICES`."""

    name: str
    ladders: tuple[Ladder, Ladder, Ladder]
    weights: tuple[float, float, float]
    #: Whether real data may be protected by it.
    protects: bool = True


@dataclass(frozen=True)
class Need:
    """What a job may be given: of each service the part of its ladder that is acceptable, never empty."""

    #: Bytes to protect.
    volume: float
    ladders: tuple[Ladder, Ladder, Ladder]
    weights: tuple[float, float, float]
    #: How many times as fast as the profile's the machine is.
    speed: float = 1.0

    @property
    def lowest(self) -> Steps:
        return (0, 0, 0)

    @property
    def highest(self) -> Steps:
        encryption, integrity, authentication = self.ladders
        return (len(encryption) - 1, len(integrity) - 1, len(authentication) - 1)

    def cost(self, steps: Steps) -> float:
        """c(s), equation (9): seconds."""
        return sum(
            ladder[step].cost(self.volume) for ladder, step in zip(self.ladders, steps, strict=True)
        ) / self.speed  # fmt: skip

    def level(self, steps: Steps) -> float:
        """SL of a task, equation (2): the weighted sum of the levels."""
        return sum(
            weight * ladder[step].level
            for weight, ladder, step in zip(self.weights, self.ladders, steps, strict=True)
        )

    def options(self, steps: Steps) -> dict[str, Option]:
        """What is meant by them, by the names of the services."""
        return {
            service: ladder[step]
            for service, ladder, step in zip(SERVICES, self.ladders, steps, strict=True)
        }  # fmt: skip

    def only(self, steps: Steps) -> Need:
        """The same job with no choice left."""
        one, two, three = ((ladder[s],) for ladder, s in zip(self.ladders, steps, strict=True))
        return Need(self.volume, (one, two, three), self.weights, self.speed)


def raise_in_turn(need: Need, slack: float) -> Steps | None:
    """The levels that fit into ``slack`` seconds, raised one service after the other, the largest weight
    first.

    None: not even the lowest fit. (Steps 5 to 15 of Figure 3.)
    """
    steps = list(need.lowest)
    cost = need.cost(need.lowest)
    if cost > slack + ROUNDING:
        return None
    for service in sorted(range(len(SERVICES)), key=lambda v: -need.weights[v]):
        ladder = need.ladders[service]
        while steps[service] + 1 < len(ladder):
            at = steps[service]
            more = (ladder[at + 1].cost(need.volume) - ladder[at].cost(need.volume)) / need.speed
            if cost + more > slack + ROUNDING:
                break
            cost += more
            steps[service] += 1
    return steps[0], steps[1], steps[2]


def raise_exactly(need: Need, slack: float) -> Steps | None:
    """The levels with the largest weighted sum that fit into ``slack`` seconds, of equals the cheapest;
    None: none.
    """
    best: Steps | None = None
    best_level = best_cost = 0.0
    for level, steps in _by_level(need.ladders, need.weights):
        if best is not None and level < best_level - _EPSILON:
            break
        cost = need.cost(steps)
        if cost <= slack + ROUNDING and (best is None or cost < best_cost):
            best, best_level, best_cost = steps, level, cost
    return best


RAISES = {"in-turn": raise_in_turn, "exact": raise_exactly}


@lru_cache(maxsize=4096)
def _by_level(
    ladders: tuple[Ladder, Ladder, Ladder], weights: tuple[float, float, float]
) -> tuple[tuple[float, Steps], ...]:
    """All combinations, best first."""
    need = Need(0.0, ladders, weights)
    one, two, three = (range(len(ladder)) for ladder in ladders)
    found = [(need.level(steps), steps) for steps in product(one, two, three)]
    return tuple(sorted(found, key=lambda entry: -entry[0]))


def undominated(options: Iterable[Option], volume: float = 1e9) -> Ladder:
    """The options worth having, levels rising: no other option has as high a level for as little.

    On what is left the cost of ``volume`` bytes rises with the level, which raising needs.
    """
    kept: list[Option] = []
    for option in sorted(options, key=lambda o: (-o.level, o.cost(volume))):
        if not kept or option.cost(volume) < kept[-1].cost(volume):
            kept.append(option)
    return tuple(reversed(kept))


def part_of(ladder: Ladder, lowest: float, highest: float) -> Ladder:
    """The options of a range of levels. If it holds none: the next option above it, or the ladder's top."""
    inside = tuple(o for o in ladder if lowest - _EPSILON <= o.level <= highest + _EPSILON)
    above = tuple(o for o in ladder if o.level > highest)[:1]
    return inside or above or ladder[-1:]


# ------------------------------------------------------------------ profiles


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)


class _Option(_Part):
    level: Level
    option: str = pydantic.Field(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/+-]*$")
    #: MB/s.
    speed: float | None = pydantic.Field(default=None, gt=0, le=1e9)
    seconds: float = pydantic.Field(default=0.0, ge=0, le=86400)

    @pydantic.model_validator(mode="after")
    def _costs_something(self) -> _Option:
        if self.speed is None and self.seconds == 0:
            raise ValueError(f"expected a speed (MB/s) or seconds for {self.option}")
        return self


class Weights(_Part):
    """How much a service's level counts; the sum is 1."""

    encryption: float = pydantic.Field(default=0.5, ge=0, le=1)
    integrity: float = pydantic.Field(default=0.3, ge=0, le=1)
    authentication: float = pydantic.Field(default=0.2, ge=0, le=1)

    @pydantic.model_validator(mode="after")
    def _sum(self) -> Weights:
        if abs(sum(self.in_order) - 1) > 1e-6:
            raise ValueError(f"expected weights with the sum 1, found {sum(self.in_order):g}")
        return self

    @property
    def in_order(self) -> tuple[float, float, float]:
        return self.encryption, self.integrity, self.authentication


class _Profile(_Part):
    name: str = pydantic.Field(min_length=1, max_length=100)
    #: What it was measured on, for people.
    measured: dict[str, str] = {}
    protects: bool = True
    weights: Weights = Weights()
    encryption: list[_Option] = pydantic.Field(min_length=1, max_length=100)
    integrity: list[_Option] = pydantic.Field(min_length=1, max_length=100)
    authentication: list[_Option] = pydantic.Field(min_length=1, max_length=100)


def parse_profile(text: str, source: str) -> Profile:
    """A profile from YAML (``2005.yaml`` is an example); dominated options are left out.

    Raises :class:`UserError`, led by ``source``, that says what is wrong.
    """
    try:
        read = _Profile.model_validate(parse_yaml(text, source))
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, source, _Profile)) from error
    one, two, three = (
        undominated(
            Option(o.level, o.option, None if o.speed is None else o.speed * 1e6, o.seconds)
            for o in getattr(read, service)
        )
        for service in SERVICES
    )
    return Profile(read.name, (one, two, three), read.weights.in_order, read.protects)


@lru_cache(maxsize=1)
def profile_2005() -> Profile:
    """The paper's tables."""
    file = files("headway_plugins.security").joinpath("2005.yaml")
    return parse_profile(file.read_text(encoding="utf-8"), str(file))


# ------------------------------------------------------------------ what a job asks for


def need_of(asked: Mapping[str, Any], profile: Profile, where: str, speed: float = 1.0) -> Need:
    """What a job asks for in its attribute ``security``, as what it may be given.

    ``{"bytes": 5e8, "encryption": [0.3, 0.9], "integrity": [0.1, 1.0], "authentication": [0.3, 0.9],
    "weights": {...}}``; a service that is not named may have any level. Raises :class:`UserError`, led by
    ``where``.
    """
    try:
        read = _Asked.model_validate(dict(asked))
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, where, _Asked)) from error
    one, two, three = (
        part_of(ladder, *getattr(read, service))
        for service, ladder in zip(SERVICES, profile.ladders, strict=True)
    )
    weights = profile.weights if read.weights is None else read.weights.in_order
    return Need(read.bytes, (one, two, three), weights, speed)


Range = tuple[Level, Level]


class _Asked(_Part):
    bytes: float = pydantic.Field(default=0.0, ge=0, le=1e18)
    encryption: Range = (_EPSILON, 1.0)
    integrity: Range = (_EPSILON, 1.0)
    authentication: Range = (_EPSILON, 1.0)
    weights: Weights | None = None

    @pydantic.field_validator(*SERVICES)
    @classmethod
    def _upwards(cls, value: Range) -> Range:
        if value[0] > value[1]:
            raise ValueError(
                f"expected a range of levels from low to high, found {value[0]:g} to {value[1]:g}"
            )
        return value


def at_levels(need: Need, levels: Sequence[float]) -> Steps:
    """The steps that have these levels, in the order of :data:`SERVICES`; :class:`ValueError` if there are
    none.
    """
    one, two, three = (
        next(i for i, o in enumerate(ladder) if abs(o.level - level) < _EPSILON)
        if any(abs(o.level - level) < _EPSILON for o in ladder)
        else _no_level(level)
        for ladder, level in zip(need.ladders, levels, strict=True)
    )
    return one, two, three


def _no_level(level: float) -> int:
    raise ValueError(f"no option has the level {level:g}")
