"""What controlled runs measured: a store of profiles, and what is known of combinations that were not run.

L. F. Goes and others: AnthillSched. JSSPP 2005, section 3. A controlled run has one copy of each filter;
it yields the bytes that each filter received and the seconds that it was busy (waiting left out: in a
pipeline all filters wait for the slowest), and the seconds that it took all together. For a combination of
parameters that was not run, copies are interpolated between the two nearest combinations.

Decisions on what the paper leaves open:

- Nearest: numbers are scaled to 0 to 1 over what is in the store, distances are Euclidean; of the same
  distance the first of them. What is no number must be equal.
- With one number as parameter the two are the neighbours on either side, and beyond the last one that alone.
- What is interpolated is copies, by inverse distances, then rounded; and the seconds of the controlled run,
  by which short jobs are told.

The store is a file of JSON, replaced whole and written by a single job at a time, so jobs that end together
may share it.
"""

from __future__ import annotations

import fcntl
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.errors import Failure, UserError
from headway.report.atomic import writing
from headway_plugins.pipelines.pipeline import Parameters, Pipeline, Value, said

#: What marks the file, and of which make it is.
_MARK, _MAKE = "headway_profiles", 1


@dataclass(frozen=True)
class Profile:
    """One controlled run of a combination of parameters."""

    parameters: Parameters
    #: Bytes received and seconds busy of each filter, in the pipeline's order: beta and E.
    received: tuple[float, ...]
    seconds: tuple[float, ...]
    #: Seconds from its start to its end: W. Of a run that was not timed, the sum of the filters' seconds.
    wall: float


def parsed_profile(data: Any, pipeline: Pipeline, parameters: Parameters, place: str) -> Profile:
    """A profile from ``{"filters": {name: {"bytes": b, "seconds": e}}, "wall": w}``, as programs write it
    (then mostly without ``wall``). Raises :class:`UserError` that says what is wrong."""
    filters = data.get("filters") if isinstance(data, dict) else None
    if not isinstance(filters, dict):
        raise UserError(f'{place}: expected {{"filters": {{...}}}}, found {_short(data)}')
    missing = [name for name in pipeline.names if name not in filters]
    if missing:
        raise UserError(f"{place}: the profile has nothing of {', '.join(missing)}")
    unknown = [str(name) for name in filters if name not in pipeline.names]
    if unknown:
        raise UserError(
            f"{place}: {', '.join(unknown)}: no filter of {pipeline.program} ({', '.join(pipeline.names)})"
        )

    def number(name: str, key: str) -> float:
        of = filters[name]
        return _number(of.get(key) if isinstance(of, dict) else None, f"{place}: {name}: {key}")

    received = tuple(number(name, "bytes") for name in pipeline.names)
    seconds = tuple(number(name, "seconds") for name in pipeline.names)
    wall = _number(data["wall"], f"{place}: wall") if data.get("wall") is not None else sum(seconds)
    return Profile(parameters, received, seconds, wall)


def _number(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UserError(f"{place}: expected a number of at least 0, found {_short(value)}")
    return float(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Store:
    """The profiles of a pipeline in a file, which need not be there yet."""

    def __init__(self, path: Path, pipeline: Pipeline) -> None:
        """Raises :class:`UserError` if the file is no store, or its profiles are not of these filters."""
        self.path, self.pipeline = path, pipeline
        self.profiles = self._read()

    def find(self, parameters: Parameters) -> Profile | None:
        """The profile of exactly this combination."""
        for profile in self.profiles:
            if profile.parameters == parameters:
                return profile
        return None

    def missing(self) -> list[Parameters]:
        """The combinations that are planned and were not run yet."""
        return [one for one in self.pipeline.combinations() if self.find(one) is None]

    def add(self, profile: Profile) -> None:
        """Keep a profile, in place of a profile of the same combination."""
        with self._alone():
            entries = [
                one for one in self._entries()
                if one.get("program") != self.pipeline.program or one.get("parameters") != profile.parameters
            ]  # fmt: skip
            filters = {
                name: {"bytes": b, "seconds": e}
                for name, b, e in zip(self.pipeline.names, profile.received, profile.seconds, strict=True)
            }
            entries.append(
                {"program": self.pipeline.program, "parameters": profile.parameters, "filters": filters,
                 "wall": profile.wall}
            )  # fmt: skip
            with writing(self.path) as file:
                json.dump({_MARK: _MAKE, "profiles": entries}, file, indent=1)
                file.write("\n")
            self.profiles = self._read()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            file = lock.open("a")
        except OSError as error:
            raise Failure(f"{lock}: cannot be written: {error.strerror or error}") from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _entries(self) -> list[dict[str, Any]]:
        text = self._text()
        return [] if text is None else _entries_of(text, str(self.path))

    def _text(self) -> str | None:
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"{self.path}: the profiles cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UserError(f"{self.path}: not a store of profiles: {error}") from error

    def _read(self) -> list[Profile]:
        text = self._text()
        return [] if text is None else parsed_store(text, str(self.path), self.pipeline)


def parsed_store(text: str, source: str, pipeline: Pipeline) -> list[Profile]:
    """A pipeline's profiles from the text of a store. Raises :class:`UserError` if it is none, or its
    profiles are not of these filters."""
    found = []
    for number, entry in enumerate(_entries_of(text, source), start=1):
        if entry.get("program") != pipeline.program:
            continue
        place = f"{source}, profile {number}"
        parameters = entry.get("parameters")
        if not isinstance(parameters, dict):
            raise UserError(f"{place}: expected parameters, found {_short(parameters)}")
        found.append(parsed_profile(entry, pipeline, pipeline.checked(parameters, place), place))
    return found


def _entries_of(text: str, source: str) -> list[dict[str, Any]]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UserError(f"{source}: not a store of profiles: {error}") from error
    entries = data.get("profiles") if isinstance(data, dict) and data.get(_MARK) == _MAKE else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{source}: expected a store of profiles, found another file")
    return entries


def nearest_two(profiles: Sequence[Profile], parameters: Parameters) -> list[tuple[Profile, float]]:
    """The one or two profiles that a combination lies nearest to, and how much each counts (1 all together).

    None if no profile has the same values where they are no numbers.
    """
    numbers = [name for name, value in parameters.items() if _is_number(value)]
    alike = [
        one for one in profiles
        if all(_same(one.parameters.get(name), value, name in numbers) for name, value in parameters.items())
    ]  # fmt: skip
    spans = {name: _span([one.parameters[name] for one in alike]) for name in numbers}

    def distance(one: Profile) -> float:
        return math.hypot(
            *(
                (float(parameters[name]) - float(one.parameters[name])) / spans[name]  # type: ignore[arg-type]
                for name in numbers
            )
        )

    near = sorted(alike, key=distance)
    if near and distance(near[0]) == 0:
        return [(near[0], 1.0)]
    if len(numbers) == 1:
        (name,) = numbers
        value = float(parameters[name])  # type: ignore[arg-type]
        below = [one for one in near if float(one.parameters[name]) < value]  # type: ignore[arg-type]
        above = [one for one in near if float(one.parameters[name]) > value]  # type: ignore[arg-type]
        near = below[:1] + above[:1]
    near = near[:2]
    if not near:
        return []
    inverse = [1.0 / distance(one) for one in near]
    return [(one, weight / sum(inverse)) for one, weight in zip(near, inverse, strict=True)]


def _is_number(value: Value | None) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: Value | None, other: Value, number: bool) -> bool:
    return _is_number(one) if number else one == other and type(one) is type(other)


def _span(values: Sequence[Value]) -> float:
    numbers = [float(value) for value in values]
    return (max(numbers) - min(numbers) if numbers else 0.0) or 1.0


def unknown(pipeline: Pipeline, parameters: Mapping[str, Value], path: Path | str) -> UserError:
    """That nothing is known of a combination, nor of others near it."""
    return UserError(
        f"{path}: expected a profile of {pipeline.program} with {said(dict(parameters))}, or one near it; "
        "found none (headway profile plans and runs them)"
    )
