"""The file of users that were fitted to a log: YAML, written by ``headway arrivals fit``.

``model`` is login-logout; ``users`` lists the users, with the rates lambda, delta and mu a second;
``runtimes`` has under ``all``, and under ``groups`` by a group's number, the stages of runtimes. What else an
entry says is for a reader, as is ``fitted``.
"""

from __future__ import annotations

from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from headway.errors import UserError
from headway.inputs.strict_yaml import parse_yaml
from headway.inputs.validation import explain_validation
from headway_plugins.grid.rates import Rates
from headway_plugins.grid.runtimes import StagedRuntimes


class Runtimes(BaseModel):
    """Stages: knots in seconds, and the share of jobs between them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    knots: tuple[float, ...] = Field(max_length=100)
    masses: tuple[float, ...] = Field(max_length=100)

    @pydantic.model_validator(mode="after")
    def _right(self) -> Runtimes:
        try:
            self.stages()
        except UserError as error:
            raise ValueError(str(error)) from error
        return self

    def stages(self) -> StagedRuntimes:
        return StagedRuntimes(self.knots, self.masses)


class FittedUser(BaseModel):
    """A user that submits."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    user: int = Field(ge=-1, lt=10**15)
    group: int = Field(-1, ge=-1, lt=10**15)
    logon: float = Field(alias="lambda", ge=0, le=1e6, allow_inf_nan=False)
    logout: float = Field(alias="delta", ge=0, le=1e6, allow_inf_nan=False)
    submit: float = Field(alias="mu", gt=0, le=1e6, allow_inf_nan=False)
    #: What the fit says of itself.
    fit: dict[str, Any] = Field(default_factory=dict)

    @pydantic.model_validator(mode="after")
    def _right(self) -> FittedUser:
        if not self.logon > 0 and not self.logout > 0:
            raise ValueError("lambda or delta above 0")
        return self

    def rates(self) -> Rates:
        return Rates(self.logon, self.logout, self.submit)


class FileRuntimes(BaseModel):
    """The runtimes of all, and of groups of their own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    all: Runtimes
    groups: dict[int, Runtimes] = Field(default_factory=dict)


class FittedUsers(BaseModel):
    """What a file of fitted users says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Literal["login-logout"]
    fitted: dict[str, Any] = Field(default_factory=dict)
    users: tuple[FittedUser, ...] = Field(min_length=1, max_length=1_000_000)
    runtimes: FileRuntimes

    def runtimes_of(self, group: int) -> StagedRuntimes:
        """Of the jobs of a group."""
        return self.runtimes.groups.get(group, self.runtimes.all).stages()


def read_fitted(text: str, source: str) -> FittedUsers:
    """What a file's text says; :class:`UserError`, led by ``source``, for what is no such file."""
    data = parse_yaml(text, source)
    if not isinstance(data, dict):
        raise UserError(f"{source}: expected the keys model, users and runtimes, found {type(data).__name__}")
    try:
        return FittedUsers.model_validate(data)
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, source, FittedUsers)) from error
