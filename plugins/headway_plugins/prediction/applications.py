"""Applications whose runtimes are predicted: what users or the site say about each.

A file of YAML: ``applications:`` and by name the formula, or the formulas of parts that run in turn, and how
to fit them::

    applications:
      ft:
        formula: (N/P)*log(N)
        sizes: {P: nodes}          # this parameter is the job's number of nodes (or: processors)
        match: ^ft\\.               # jobs of such a name belong to it, if they say nothing themselves
      cg:
        parts: {computation: N/P, communication: N*log(P)}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from headway.errors import UserError
from headway.inputs.strict_yaml import parse_yaml
from headway.inputs.validation import explain_validation
from headway_plugins.prediction.formulas import FUNCTIONS, Formula, parse

#: What the whole runtime is called among the responses.
RUNTIME = "runtime"
#: What is meant for us in what a user wrote about a job; and characters of that which are looked at.
MARK, _LONGEST = "scopred:", 1000
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,63}\Z")
PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


class Application(BaseModel):
    """How an application's runtime follows from its parameters."""

    model_config = ConfigDict(extra="forbid")

    formula: str | None = Field(None, description="what the runtime grows with, such as N/P*log(N)")
    parts: dict[str, str] = Field(
        {}, description="instead of formula: part -> formula; the runtime is the sum of the parts"
    )
    sizes: dict[str, Literal["nodes", "processors"]] = Field(
        {}, description="parameters that are the job's number of nodes or processors: {P: nodes}"
    )
    match: str = Field("", description="regular expression for the names of the application's jobs")
    intercept: bool = Field(True, description="add a constant to each formula")
    level: Annotated[float, Field(gt=0.5, lt=1)] = Field(
        0.95, description="confidence level of the intervals"
    )
    min_runtime: float = Field(0.0, ge=0, description="shortest run that counts, in seconds")
    last_runs: int | None = Field(None, ge=2, description="number of the last runs that count; default: all")
    last_days: float | None = Field(
        None, gt=0, description="days during which a run counts; default: all runs"
    )
    min_exact: int = Field(
        3,
        ge=2,
        description="number of runs with exactly the job's parameters from which only these runs count",
    )
    max_leverage: float | None = Field(
        None,
        gt=0,
        description="largest leverage (distance from the recorded runs) at which a prediction is used",
    )
    total: Literal["sum", "root-sum-square"] = Field(
        "sum", description="how the half-widths of the parts combine to the half-width of the whole"
    )

    @field_validator("formula")
    @classmethod
    def _readable(cls, text: str | None) -> str | None:
        if text is not None:
            _parsed(text)
        return text

    @field_validator("parts")
    @classmethod
    def _all_readable(cls, parts: dict[str, str]) -> dict[str, str]:
        for name, text in parts.items():
            if not PARAMETER.match(name) or name == RUNTIME:
                raise ValueError(f"expected names of parts of letters, digits and _, found {name!r}")
            _parsed(text)
        return parts

    @field_validator("match")
    @classmethod
    def _is_expression(cls, text: str) -> str:
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"expected a regular expression: {error}") from error
        return text

    @model_validator(mode="after")
    def _one_kind(self) -> Application:
        if bool(self.formula) == bool(self.parts):
            found = "both" if self.formula else "neither"
            raise ValueError(f"expected either formula or parts, found {found}")
        known = self.parameters
        for name in self.sizes:
            if name not in known:
                raise ValueError(
                    f"sizes: expected parameters of the formulas ({', '.join(known)}), found {name!r}"
                )
        return self

    @property
    def formulas(self) -> dict[str, Formula]:
        """The formula of each response: the whole runtime, or its parts."""
        if self.formula:
            return {RUNTIME: parse(self.formula)}
        return {name: parse(text) for name, text in self.parts.items()}

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters, sorted."""
        return tuple(sorted({name for formula in self.formulas.values() for name in formula.parameters}))


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    applications: dict[str, Application] = Field(min_length=1)

    @field_validator("applications")
    @classmethod
    def _names(cls, found: dict[str, Application]) -> dict[str, Application]:
        for name in found:
            if not NAME.match(name):
                raise ValueError(f"expected names of letters, digits and _ . + -, found {name!r}")
        return found


def parse_applications(text: str, source: str) -> dict[str, Application]:
    """What the text of a file of applications says; :class:`UserError`, led by ``source``, names the key."""
    data = parse_yaml(text, source)
    try:
        return _File.model_validate(data).applications
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, source, _File)) from error


def read_applications(path: Path) -> dict[str, Application]:
    """The applications of a file; :class:`UserError` as above, and for a file that cannot be read."""
    try:
        return parse_applications(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UserError(f"{path}: the applications cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid YAML: {error}") from error


def parse_settings(words: Mapping[str, str], where: str) -> dict[str, float]:
    """Parameters as a user wrote them; :class:`UserError` if a parameter is no number."""
    found = {}
    for name, text in words.items():
        if not PARAMETER.match(name) or name in FUNCTIONS:
            raise UserError(f"{where}: expected a parameter's name, found {name!r}")
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not abs(value) <= 1e300:
            raise UserError(f"{where}: expected a number for {name}, found {text!r}")
        found[name] = value
    return found


def _parsed(text: str) -> Any:
    try:
        return parse(text)
    except UserError as error:
        raise ValueError(f"{error}, found {text!r}") from error


def said_in(comment: str) -> dict[str, str] | None:
    """What a comment says after ``scopred:``, such as ``app=ft;N=33554432``; None: nothing."""
    for word in comment[:_LONGEST].split():
        if word.startswith(MARK):
            words: dict[str, str] = {}
            for item in word[len(MARK) :].split(";"):
                name, _, value = item.partition("=")
                words[name] = value
            words.pop("", None)
            return words
    return None
