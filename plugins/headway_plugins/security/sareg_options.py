"""Options of ``sareg`` and ``ns-edf``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pydantic

from headway.errors import UserError
from headway.inputs import text_of
from headway_plugins.security.levels import (
    Profile,
    parse_profile,
    profile_2005,
)


class SaregOptions(pydantic.BaseModel):
    """Which levels there are and how they are chosen."""

    model_config = pydantic.ConfigDict(extra="forbid")

    profile: Path | None = pydantic.Field(
        default=None,
        description="file with the cost of each level, from `headway security measure`; null: the paper's "
        "tables of 2005",
    )
    levels: Literal["in-turn", "exact"] = pydantic.Field(
        default="in-turn",
        description="in-turn: the service with the largest weight is raised first, as in the paper; exact: "
        "the largest weighted sum of levels that fits",
    )

    margin: float = pydantic.Field(
        default=0.0,
        ge=0,
        le=86400,
        description="seconds that are planned for each job in addition to its runtime: on a batch system "
        "the time to start the job and to learn of its end",
    )

    longest: float = pydantic.Field(
        default=86400.0,
        gt=0,
        le=3660 * 86400,
        description="most seconds that the protection of a job may add to its limit; a job that needs more "
        "is refused",
    )

    best_effort: bool = pydantic.Field(
        default=False,
        description="true: a job whose deadline cannot be promised starts at the lowest levels once no job "
        "with a promise needs the processors; false: such a job is refused",
    )

    _read: Profile = pydantic.PrivateAttr()

    @pydantic.model_validator(mode="after")
    def _profile(self, info: pydantic.ValidationInfo) -> SaregOptions:
        if self.profile is None:
            self._read = profile_2005()
            return self
        try:
            text = text_of(self.profile, info.context)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"profile: {self.profile} cannot be read: {error}") from error
        try:
            self._read = parse_profile(text, str(self.profile))
        except UserError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def read(self) -> Profile:
        """The profile."""
        return self._read
