"""What a pipeline is: filters in a row, the streams between them, and the parameters that it is run with.

L. F. Goes and others: AnthillSched. JSSPP 2005, section 2. A filter is a phase of the program, of which
several copies may run; a stream leads from a filter to the next one, and the last filter may stream back
to the first. A file of YAML describes it::

    program: id3
    parameters: {minimum_node_size: [0.5, 1, 2]}      # the values that controlled runs are planned for
    filters:
      - {name: read, data_nodes: 4}                   # its data lie on 4 nodes: more copies would idle
      - {name: count, stream: labeled}                # what leads to the next one; default: round-robin
      - {name: decide, to: read, stream: broadcast}   # to: only where it is not the next one
    command: [./id3, "--minimum", "{minimum_node_size}"]
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal

import pydantic

from headway.errors import UserError, nearest
from headway.inputs.strict_yaml import parse_yaml, read_mapping

Value = bool | int | float | str
Parameters = dict[str, Value]

#: Filters and parameters are named in environment variables.
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_PLACE = re.compile(r"\{(" + _NAME + r")\}")


@dataclass(frozen=True)
class Filter:
    """A phase of a pipeline."""

    name: str
    #: Whether every copy of its successor gets every datum.
    broadcast: bool = False
    #: On how many nodes the data lie that it reads; None: it reads none, or they are everywhere.
    data_nodes: int | None = None


@dataclass(frozen=True)
class Pipeline:
    """A program of filters, the first one first."""

    program: str
    filters: tuple[Filter, ...]
    #: Parameter -> the values that controlled runs are planned for.
    parameters: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    #: How it is called; ``{parameter}`` stands for a parameter's value.
    command: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its filters."""
        return tuple(one.name for one in self.filters)

    @property
    def broadcasts(self) -> tuple[bool, ...]:
        """Whether the stream behind each filter is a broadcast."""
        return tuple(one.broadcast for one in self.filters)

    @property
    def caps(self) -> tuple[int | None, ...] | None:
        """The nodes with each filter's data, None of a filter that reads none; None if none does."""
        caps = tuple(one.data_nodes for one in self.filters)
        return None if caps.count(None) == len(caps) else caps

    def combinations(self) -> list[Parameters]:
        """All combinations of the parameters' values, one controlled run each, the last parameter's values
        changing first."""
        return [
            dict(zip(self.parameters, values, strict=True)) for values in product(*self.parameters.values())
        ]

    def called(self, parameters: Parameters) -> list[str]:
        """The command with these values. Raises :class:`UserError` if there is no command."""
        if not self.command:
            raise UserError(f"pipeline {self.program}: expected a command, found none: it cannot be run")
        return [_PLACE.sub(lambda found: shown(parameters[found[1]]), word) for word in self.command]

    def checked(self, parameters: dict[str, Any], place: str) -> Parameters:
        """A combination of values for all of its parameters; :class:`UserError` if it is none."""
        for name in parameters:
            if name not in self.parameters:
                raise UserError(
                    f"{place}: {self.program} has no parameter {name!r}.{nearest(name, self.parameters)}"
                )
        for name in self.parameters:
            if name not in parameters:
                raise UserError(f"{place}: expected a value for the parameter {name!r}, found none")
            if not isinstance(parameters[name], bool | int | float | str):
                raise UserError(f"{place}: {name}: expected a number or a word, found {parameters[name]!r}")
        return {name: parameters[name] for name in self.parameters}


def shown(value: Value) -> str:
    """A parameter's value as a program's argument."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def said(parameters: Parameters) -> str:
    """A combination for a person."""
    return ", ".join(f"{name} {shown(value)}" for name, value in parameters.items()) or "no parameters"


class _FilterOptions(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    name: str = pydantic.Field(pattern=f"^{_NAME}$", max_length=100)
    to: str = ""
    stream: Literal["round-robin", "labeled", "broadcast"] = "round-robin"
    data_nodes: int | None = pydantic.Field(None, ge=1)


class _PipelineOptions(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    program: str = pydantic.Field(min_length=1, max_length=200)
    filters: list[_FilterOptions] = pydantic.Field(min_length=1, max_length=1000)
    parameters: dict[str, list[Value]] = {}
    command: list[str] = []


def read_pipeline(path: Path) -> Pipeline:
    """The pipeline that a file describes. Raises :class:`UserError` that says where it is wrong."""
    return _described(read_mapping(path, "the pipeline", _keys()), str(path))


def parsed_pipeline(text: str, source: str) -> Pipeline:
    """The same, of a text that is there already."""
    data = parse_yaml(text, source)
    if not isinstance(data, dict):
        raise UserError(f"{source}: expected keys {_keys()}; found {type(data).__name__}")
    return _described(data, source)


def _keys() -> str:
    return ", ".join(_PipelineOptions.model_fields)


def _described(data: Any, path: str) -> Pipeline:
    from headway.inputs.validation import explain_validation

    try:
        options = _PipelineOptions.model_validate(data)
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, path, _PipelineOptions)) from error
    for name, values in options.parameters.items():
        if not re.fullmatch(_NAME, name):
            raise UserError(f"{path}: parameters: expected a name of letters and digits, found {name!r}")
        if not values or len({shown(value) for value in values}) < len(values):
            raise UserError(f"{path}: parameters: {name}: expected different values, found {values}")
    for word in options.command:
        for found in _PLACE.finditer(word):
            if found[1] not in options.parameters:
                hint = nearest(found[1], options.parameters)
                raise UserError(f"{path}: command: there is no parameter {found[1]!r}.{hint}")
    planned = {name: tuple(some) for name, some in options.parameters.items()}
    return Pipeline(options.program, _in_a_row(options.filters, path), planned, tuple(options.command))


def _in_a_row(filters: list[_FilterOptions], path: str) -> tuple[Filter, ...]:
    """The filters in the order in which data reach them, the first of the list first."""
    place = f"{path}: filters"
    by_name: dict[str, _FilterOptions] = {}
    for one in filters:
        if one.name in by_name:
            raise UserError(f"{place}: {one.name!r} is there twice")
        by_name[one.name] = one
    following = {one.name: after.name for one, after in pairwise(filters)}
    for one in filters:
        if one.to:
            if one.to not in by_name:
                raise UserError(
                    f"{place}: {one.name}: there is no filter {one.to!r}.{nearest(one.to, by_name)}"
                )
            following[one.name] = one.to
    first = filters[0].name
    row, here = [first], following.get(first)
    while here is not None and here != first:
        if here in row:
            raise UserError(
                f"{place}: {row[-1]} streams back to {here}: only the last filter may, and to the first "
                f"({first})"
            )
        row.append(here)
        here = following.get(here)
    missing = [name for name in by_name if name not in row]
    if missing:
        raise UserError(f"{place}: nothing streams to {', '.join(missing)}: the row is {', '.join(row)}")
    last = by_name[row[-1]]
    if last.stream == "broadcast" and len(row) > 1 and here is None:
        raise UserError(f"{place}: {last.name}: expected a filter to broadcast to (to: {first}), found none")
    return tuple(Filter(name, by_name[name].stream == "broadcast", by_name[name].data_nodes) for name in row)
