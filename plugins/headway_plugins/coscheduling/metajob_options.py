"""Options of the plugin ``metajobs``.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005. The paper gives no values; the defaults are ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic

from headway_plugins.coscheduling.machines import MachineOptions
from headway_plugins.coscheduling.options import SearchOptions
from headway_plugins.coscheduling.quotas import QuotaOptions

MachineName = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")]


class MetajobOptions(QuotaOptions):
    """Options of metajobs; `limits`, `accounts` and `window` as those of `reservations`."""

    machines: dict[MachineName, MachineOptions] = pydantic.Field(
        min_length=1, description="what the machines in users' metajobs stand for"
    )
    budget: float = pydantic.Field(
        default=0.1,
        gt=0,
        le=1,
        description="largest share of a pool's node-seconds in the window that users' reservations may have",
    )
    lead: float = pydantic.Field(
        default=300.0,
        ge=0,
        le=86400,
        description="seconds from now in which no metajob starts; longer than a round of the search takes",
    )
    answer_timeout: float = pydantic.Field(
        default=120.0, gt=0, description="seconds that a site may take to answer, more than its poll_interval"
    )
    patience: float = pydantic.Field(
        default=900.0,
        ge=0,
        description="seconds that a site may be silent until its part of a metajob counts as lost, and that "
        "its nodes may be down after it answers again",
    )
    on_loss: Literal["keep", "cancel_all", "replan"] = pydantic.Field(
        default="keep",
        description="what becomes of the other parts when a site loses one, unless the user says it",
    )
    max_metajobs: int = pydantic.Field(
        default=10, ge=0, description="most metajobs of a user that are not over"
    )
    max_searches: int = pydantic.Field(default=100, ge=1, description="most metajobs that are searched for")
    search: SearchOptions = pydantic.Field(
        default_factory=lambda: SearchOptions(go_on=True, repeat=True), description="how a place is searched"
    )
    seed: int = pydantic.Field(default=0, ge=0, description="of the random wait between two searches")
