"""Options of the plugin ``follow``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pydantic

from headway.inputs.durations import as_seconds
from headway.inputs.time_zones import TimeZone
from headway_plugins.data.supply_options import SupplyOptions
from headway_plugins.preemption.rules import known_signal
from headway_plugins.sites.tariffs import Tariff, read_tariffs

#: What sites are compared by.
Criterion = Literal["calendar", "load", "data", "price", "carbon"]
#: Criteria in seconds; the others are shares.
IN_SECONDS = ("calendar", "load", "data")

Seconds = Annotated[
    float, pydantic.BeforeValidator(as_seconds), pydantic.Field(ge=0, le=3660 * 86400, allow_inf_nan=False)
]
_Value = Annotated[float, pydantic.Field(allow_inf_nan=False)]


class FollowOptions(SupplyOptions):
    """What moves jobs between sites, and how far; and how their data are copied."""

    by: list[Criterion] = pydantic.Field(
        default=["calendar", "load"],
        min_length=1,
        description="what sites are compared by, the most important first: calendar, load, data, price, "
        "carbon; the first that differs by the gain decides",
    )
    movable: Literal["asked", "all"] = pydantic.Field(
        default="asked", description="jobs that may be moved: jobs with the attribute movable, or all"
    )
    price: dict[str, _Value | Path] = pydantic.Field(
        default={},
        description="site -> price of a processor-hour: a number, or a CSV file with columns time, price",
    )
    carbon: dict[str, _Value | Path] = pydantic.Field(
        default={}, description="site -> what a processor-hour emits, as price; column carbon"
    )
    timezone: TimeZone = pydantic.Field(
        default="UTC", description="time zone of times in files that name none"
    )
    gain: Seconds = pydantic.Field(
        default=600.0, description="least gain by calendar, load and data for which a job moves, in seconds"
    )
    share: float = pydantic.Field(
        default=0.1, ge=0, lt=1, description="least gain by price and carbon: a share of what it is here"
    )
    later: Seconds = pydantic.Field(
        default=3600.0,
        description="a job goes nowhere where it is expected to start more seconds later than here",
    )
    most_routes: int = pydantic.Field(default=3, ge=0, description="how often a job is sent on, at most")
    at_a_time: int = pydantic.Field(default=20, ge=1, description="jobs that are on their way at a time")
    every: Seconds = pydantic.Field(
        default=300.0, description="seconds between two looks at jobs that were looked at before"
    )
    depth: int = pydantic.Field(
        default=30, ge=0, description="waiting jobs of each pool that are planned one by one"
    )
    copies: bool = pydantic.Field(
        default=True, description="copy the datasets that jobs lack where they wait"
    )
    when: Literal["immediate", "linger", "adaptive"] | None = pydantic.Field(
        default=None,
        description="what running work does when its site closes: look for another site at once; once after "
        "lingering; again and again; default: it stays",
    )
    leave_above: _Value | None = pydantic.Field(
        default=None, description="running work leaves a site whose price is higher, and no job goes there"
    )
    linger: tuple[Seconds, Seconds] = pydantic.Field(
        default=(3600.0, 10800.0), description="bounds of a uniformly drawn time to linger, in seconds"
    )
    most_lost: Seconds = pydantic.Field(
        default=3600.0, description="a running job that would lose more seconds of its work stays"
    )
    signal: Annotated[str, pydantic.AfterValidator(known_signal)] = pydantic.Field(
        default="TERM", description="the signal on which a job with the attribute saves saves itself"
    )

    _prices: dict[str, Tariff] = pydantic.PrivateAttr({})
    _carbons: dict[str, Tariff] = pydantic.PrivateAttr({})

    @pydantic.field_validator("linger")
    @classmethod
    def _in_order(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] > value[1]:
            raise ValueError(f"the shorter time first, found {value[0]:g} and {value[1]:g}")
        return value

    @pydantic.model_validator(mode="after")
    def _together(self, info: pydantic.ValidationInfo) -> FollowOptions:
        if len(set(self.by)) < len(self.by):
            raise ValueError(f"by: each criterion once, found {', '.join(self.by)}")
        for name in ("price", "carbon"):
            if name in self.by and not getattr(self, name):
                raise ValueError(f"{name}: the {name} of each site, which option by names, found none")
        if self.leave_above is not None and not self.price:
            raise ValueError("price: the price of each site, which leave_above needs, found none")
        self._prices = read_tariffs(self.price, "price", self.timezone, info.context)
        self._carbons = read_tariffs(self.carbon, "carbon", self.timezone, info.context)
        return self

    @property
    def prices(self) -> dict[str, Tariff]:
        """The price of a processor-hour by site."""
        return self._prices

    @property
    def carbons(self) -> dict[str, Tariff]:
        """What a processor-hour emits by site."""
        return self._carbons
