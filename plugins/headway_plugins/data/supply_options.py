"""The options of the plugins that bring jobs and their data together."""

from __future__ import annotations

from typing import Literal

import pydantic


class SupplyOptions(pydantic.BaseModel):
    """Options of every plugin that has data copied: all of ``staging``."""

    model_config = pydantic.ConfigDict(extra="forbid")

    parallel: int = pydantic.Field(
        default=4,
        ge=1,
        description="copies on their way at a time, in all; of each store its `copies` is the limit",
    )
    retry: float = pydantic.Field(
        default=60.0,
        gt=0,
        allow_inf_nan=False,
        description="seconds until a copy that failed is tried again; doubled at each failure",
    )
    longest_retry: float = pydantic.Field(
        default=3600.0, gt=0, allow_inf_nan=False, description="longest wait between two tries, in seconds"
    )
    learning: bool = pydantic.Field(
        default=True,
        description="expect of a link what its last 20 copies took (median), instead of its bandwidth",
    )


class GreedyOptions(SupplyOptions):
    """Options of ``data-greedy``."""

    movable: Literal["asked", "all"] = pydantic.Field(
        default="asked",
        description="jobs that may be sent to other clusters: with the attribute movable, or all (without "
        "movable=no)",
    )
    window: int = pydantic.Field(
        default=100, ge=1, le=10_000, description="jobs that are planned, from the front of the queues"
    )
    interval: float = pydantic.Field(
        default=300.0, gt=0, allow_inf_nan=False, description="seconds after which the plan is made anew"
    )
    max_overtakes: int | None = pydantic.Field(
        default=None,
        ge=0,
        description="jobs from behind it in the queue that may start before a planned job; null: any number",
    )


class GeneticOptions(GreedyOptions):
    """Options of ``data-ga``."""

    evaluations: int = pydantic.Field(
        default=5000, ge=50, le=1_000_000, description="plans that are compared for each snapshot"
    )
    cycle_evaluations: int | None = pydantic.Field(
        default=250,
        ge=1,
        description="plans of 100 jobs that are compared in one cycle, of more jobs fewer; the next one goes "
        "on; null: all in one",
    )
    mutation: float = pydantic.Field(
        default=0.8, ge=0, le=1, description="probability with which each string of a child mutates"
    )
    parents: int = pydantic.Field(default=10, ge=1, description="plans that have children")
    children: int = pydantic.Field(default=50, ge=1, description="children of a generation")

    @pydantic.model_validator(mode="after")
    def _fit(self) -> GeneticOptions:
        if self.parents > self.children:
            raise ValueError(f"at most {self.children} parents, as many as children; found {self.parents}")
        return self
