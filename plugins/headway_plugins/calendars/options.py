"""Windows by name, with the time zone that they are in and the holidays that they know: options."""

from __future__ import annotations

from typing import Annotated

import pydantic

from headway.inputs.time_zones import TimeZone
from headway_plugins.calendars.windows import Dates, Window

#: Such a name can be a reservation's in every batch system.
_Name = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]


class WindowsOptions(pydantic.BaseModel):
    """What says when windows are."""

    model_config = pydantic.ConfigDict(extra="forbid")

    zone: TimeZone = pydantic.Field(default="UTC", description="time zone of all times of day")
    holidays: dict[str, Dates] = pydantic.Field(
        default={}, description="name of a holiday -> its date or dates"
    )
    windows: dict[_Name, Window] = pydantic.Field(
        min_length=1,
        description="name of a window -> from, to or for, days, nth, except, pool, nodes, processors, "
        "users, accounts",
    )

    @pydantic.model_validator(mode="after")
    def _known_days(self) -> WindowsOptions:
        for name, window in self.windows.items():
            try:
                window.check(self.holidays)
            except ValueError as error:
                raise ValueError(f"windows: {name}: {error}") from error
        return self

    def refuse_parts(self, why: str) -> None:
        """Raise ValueError for a window of a part of the machine, or with users."""
        for name, window in self.windows.items():
            for key in ("pool", "nodes", "processors", "users", "accounts"):
                if getattr(window, key):
                    raise ValueError(f"windows: {name}: {why}: expected no {key}")
