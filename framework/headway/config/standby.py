"""``standby:`` two daemons, of which one leads and the other stands by."""

from __future__ import annotations

from typing import Annotated

import pydantic

from headway.config.section import Section
from headway.inputs.durations import as_seconds

#: Of a leader that is silent: how long it is waited for. The renewals of a lease take their part of it.
_Patience = Annotated[
    float, pydantic.BeforeValidator(as_seconds), pydantic.Field(ge=1, le=3600, allow_inf_nan=False)
]
_Alone = Annotated[
    float, pydantic.BeforeValidator(as_seconds), pydantic.Field(ge=0, le=86400, allow_inf_nan=False)
]


class StandbyConfig(Section):
    """Who leads, and what the daemon that stands by waits for."""

    patience: _Patience = pydantic.Field(
        default=5.0, description="seconds without a sign of life of the leader after which the stand-by leads"
    )
    follow: list[str] = pydantic.Field(
        default_factory=list,
        description="command that tells the other daemon's journal, as a list of words (ssh, OTHER, headway, "
        "journal, follow, -c, FILE); for a journal in a file. A database is shared and needs none",
    )
    alone: _Alone = pydantic.Field(
        default=60.0,
        description="seconds after which a stand-by leads that never reached the other daemon since it began",
    )

    @pydantic.model_validator(mode="after")
    def _command_makes_sense(self) -> StandbyConfig:
        if not all(self.follow):
            raise ValueError("follow: expected words, found an empty one")
        return self
