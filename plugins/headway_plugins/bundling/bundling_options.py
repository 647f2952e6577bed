"""Options of the plugin ``bundling``."""

from __future__ import annotations

from typing import Any

import pydantic


class BundlingOptions(pydantic.BaseModel):
    """Options of elastic job bundling."""

    model_config = pydantic.ConfigDict(extra="forbid", populate_by_name=True)

    omax: int = pydantic.Field(default=8, ge=1, description="most processes on one processor")
    penalty: float = pydantic.Field(
        default=1.0, gt=0, alias="delta",
        description="factor on the runtime of an application that shares processors, beside the degree of "
                    "sharing",
    )  # fmt: skip
    migration: float = pydantic.Field(
        default=120.0,
        ge=1,
        alias="lambda",
        description="seconds that a bulk migration takes; inf: there are no migrations",
    )
    migration_per_process: float = pydantic.Field(
        default=0.0,
        ge=0,
        alias="lambda_per_process",
        description="further seconds for each process, because all images are written and read together",
    )
    min_processors: int = pydantic.Field(
        default=8, ge=2, description="processors of the smallest job that is elastic"
    )
    only: list[str] = pydantic.Field(
        default=[], description="ids of the elastic jobs; empty: all jobs are elastic"
    )
    activation: int = pydantic.Field(
        default=-1,
        ge=-1,
        description="waiting jobs are bundled while more jobs than this are queued; -1: always",
    )
    min_gain: float = pydantic.Field(
        default=0.0,
        ge=0,
        description="seconds; a change that brings the completion forward by no more than this is not made",
    )
    slack: float = pydantic.Field(
        default=1.0, ge=1, description="factor on the time limits of subjobs that are added to a running job"
    )
    release_reservation: bool = pydantic.Field(
        default=False,
        description="the first job of a queue gives up its place if its bundle completes before the job "
        "could start",
    )

    @pydantic.field_validator("only", mode="before")
    @classmethod
    def _one(cls, value: Any) -> Any:
        return [str(value)] if isinstance(value, str | int) else value
