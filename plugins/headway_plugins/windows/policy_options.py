"""Options of the policy for windows with a deadline."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic

from headway.inputs.durations import as_seconds
from headway.inputs.time_zones import TimeZone
from headway_plugins.windows.clock import DAYS, Day, time_of_day
from headway_plugins.windows.dispatch import OrderName
from headway_plugins.windows.staged import CAUTION


class TwoPhaseOptions(pydantic.BaseModel):
    """Options of the policy for windows with a deadline."""

    model_config = pydantic.ConfigDict(extra="forbid")

    opens: str = pydantic.Field(default="20:00", description="time of the day at which the window opens")
    length: Annotated[float, pydantic.BeforeValidator(as_seconds)] = pydantic.Field(
        default=13 * 3600.0,
        ge=1,
        le=86400,
        description="time from the opening to the deadline, at most a day",
    )
    days: list[Day] = pydantic.Field(
        default=list(DAYS), min_length=1, description="days on which the window opens"
    )
    timezone: TimeZone = pydantic.Field(default="UTC", description="time zone of `opens` and `days`")
    order: OrderName = pydantic.Field(
        default="LCPF",
        description="order of the tasks: longest critical path, least work, at random, or by priority; with "
        "PRIO no jobs are selected",
    )
    fill: float | None = pydantic.Field(
        default=None, gt=0, le=1, description="r: share of the window that is filled; null: from `caution`"
    )
    caution: float = pydantic.Field(
        default=CAUTION, ge=0, le=1, description="share of the longest critical path that is left free"
    )
    reselect: Annotated[float, pydantic.BeforeValidator(as_seconds)] = pydantic.Field(
        default=900.0, ge=0, description="least seconds between two choices"
    )
    leftovers: Literal["keep", "kill"] = pydantic.Field(
        default="keep", description="what happens to tasks that run when the window closes"
    )

    @pydantic.field_validator("opens", mode="before")
    @classmethod
    def _clock(cls, value: Any) -> Any:
        if isinstance(value, int):
            # YAML reads 17:30 as a number to the base of 60.
            clock = f"{value // 60:02d}:{value % 60:02d}" if 60 <= value < 1440 else "20:00"
            raise ValueError(f'a time of day in quotes, such as "{clock}", found the number {value}')
        time_of_day(str(value))
        return value
