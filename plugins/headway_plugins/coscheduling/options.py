"""How a search looks for a place, and what it is told of the sites.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005. The paper gives no values; the defaults are ours.
"""

from __future__ import annotations

from typing import Literal

import pydantic


class SearchOptions(pydantic.BaseModel):
    """Options of a search."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    probe: Literal["share", "min", "max"] = pydantic.Field(
        default="share",
        description="nodes of the trial reservation: an equal share of the total within min and max, min, or "
        "max",
    )
    max_distributions: int = pydantic.Field(
        default=500, ge=1, description="most ways to divide the nodes that are tried"
    )
    node_step: int = pydantic.Field(
        default=1, ge=1, description="nodes that move from one way to divide the nodes to the next"
    )
    window_first: bool = pydantic.Field(
        default=False, description="try all ways to divide the nodes at one start time before the next"
    )
    grant_up_to: bool = pydantic.Field(
        default=False, description="ask each site for its max or fewer nodes, and give back what is too many"
    )
    slide: float = pydantic.Field(
        default=300.0,
        gt=0,
        description="seconds to the next start time at a site that accepts only the start that it is given",
    )
    go_on: bool = pydantic.Field(
        default=False,
        description="after max_distributions: go on with grant_up_to where all sites can grant fewer nodes, "
        "otherwise with twice the node_step",
    )
    repeat: bool = pydantic.Field(
        default=False,
        description="repeat a search that found nothing, once, if a site's book changed meanwhile",
    )
    back_off: float = pydantic.Field(
        default=60.0, ge=0, description="longest random wait before the repetition, in seconds"
    )


class SiteFacts(pydantic.BaseModel):
    """What a search must know of a site."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    fixed: bool = pydantic.Field(
        default=False, description="the site accepts only the start that it is given, and finds none itself"
    )
    at_most: bool = pydantic.Field(
        default=True, description="the site can grant fewer nodes than it is asked for"
    )
