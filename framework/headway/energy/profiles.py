"""Energy profiles: YAML files, and installed ones by name.

A profile says what each class of nodes draws at which frequency::

    name: example
    calibrate: {class: thin, watts: 40}      # of a busy processor at the class's fastest level
    classes:
      - name: thin
        frequency: 3.0e9                     # hertz, at level 0
        levels:                              # fractions of it, and volts
          0: {frequency: 1.0, voltage: 1.3}
          1: {frequency: 0.9, voltage: 1.2}

The order of the classes is that in which an energy-aware placement tries them. ``calibrate`` sets one
A*C (P = A*C*v^2*f) for all classes that state none; without it A*C is 1e-9 there and figures are
relative, not joules.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import msgspec
import pydantic

from headway.errors import UserError, nearest
from headway.inputs.entry_points import entry_points
from headway.inputs.strict_yaml import parse_yaml
from headway.inputs.validation import explain_validation
from headway.model import ClusterDescription, EnergyProfile, FrequencyLevel, NodeClass, SleepState

#: Installed profiles: each entry point is the path of a YAML file.
PROFILES = "headway.energy"

#: A*C where nothing calibrates it: hertz become gigahertz.
_RELATIVE = 1e-9

Watts = Annotated[float, pydantic.Field(ge=0)]


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)


class _Level(_Part):
    #: A fraction of the class's frequency.
    frequency: float = pydantic.Field(gt=0, le=1)
    voltage: float = pydantic.Field(gt=0, le=100)


class _Transition(_Part):
    seconds: float = pydantic.Field(ge=0, le=86400)
    joules: float = pydantic.Field(ge=0)


class _Sleep(_Part):
    name: str = "asleep"
    power: Watts
    enter: _Transition
    leave: _Transition


class _Class(_Part):
    name: str = pydantic.Field(min_length=1)
    frequency: float = pydantic.Field(gt=0, le=1e12)
    levels: dict[int, _Level] = pydantic.Field(min_length=1)
    speed: float = pydantic.Field(default=1.0, gt=0, le=1e6)
    capacitance: float | None = pydantic.Field(default=None, gt=0)
    static_power: Watts = 0.0
    idle_power: Watts = 0.0
    node_power: Watts = 0.0
    sleep: _Sleep | None = None

    @pydantic.field_validator("levels")
    @classmethod
    def _complete_and_falling(cls, levels: dict[int, _Level]) -> dict[int, _Level]:
        for number in range(len(levels)):
            if number not in levels:
                raise ValueError(
                    f"levels 0 to {max(levels)} without a gap (level {number} is missing), found "
                    f"{', '.join(map(str, sorted(levels)))}"
                )
        for number in range(1, len(levels)):
            faster, level = levels[number - 1], levels[number]
            if level.frequency >= faster.frequency:
                raise ValueError(
                    f"frequencies that fall from level to level, found {level.frequency:g} at level {number} "
                    f"after {faster.frequency:g}"
                )
            if level.voltage > faster.voltage:
                raise ValueError(
                    f"voltages that do not rise as frequencies fall, found {level.voltage:g} V at level "
                    f"{number} after {faster.voltage:g} V"
                )
        return levels


class _Calibration(_Part):
    class_: str = pydantic.Field(alias="class")
    watts: float = pydantic.Field(gt=0)


class _Profile(_Part):
    name: str = pydantic.Field(min_length=1)
    #: Where the figures come from.
    source: str = ""
    calibrate: _Calibration | None = None
    sensitivity: float = pydantic.Field(default=1.0, ge=0, le=1)
    classes: list[_Class] = pydantic.Field(min_length=1)

    @pydantic.model_validator(mode="after")
    def _names(self) -> _Profile:
        names = [kind.name for kind in self.classes]
        if len(set(names)) < len(names):
            raise ValueError(f"classes: each name once, found {', '.join(names)}")
        calibrated = self.calibrate.class_ if self.calibrate is not None else names[0]
        if calibrated not in names:
            raise ValueError(f"calibrate.class: one of the classes {', '.join(names)}, found {calibrated!r}")
        return self

    def built(self) -> EnergyProfile:
        """The profile as the rest of headway knows it."""
        unit = _RELATIVE
        if self.calibrate is not None:
            kind = next(k for k in self.classes if k.name == self.calibrate.class_)
            fastest = kind.levels[0]
            unit = self.calibrate.watts / (fastest.voltage**2 * fastest.frequency * kind.frequency)
        return EnergyProfile(
            self.name,
            tuple(_node_class(kind, unit) for kind in self.classes),
            sensitivity=self.sensitivity,
            absolute=self.calibrate is not None or all(k.capacitance is not None for k in self.classes),
        )


def _node_class(kind: _Class, unit: float) -> NodeClass:
    sleep = None
    if kind.sleep is not None:
        enter, leave = kind.sleep.enter, kind.sleep.leave
        sleep = SleepState(
            kind.sleep.name, kind.sleep.power, enter.seconds, enter.joules, leave.seconds, leave.joules
        )
    return NodeClass(
        kind.name,
        tuple(
            # 0.7 of 3 GHz is 2.1 GHz, and not 2,099,999,999.9999998 Hz.
            FrequencyLevel(round(kind.frequency * level.frequency, 6), level.voltage)
            for _, level in sorted(kind.levels.items())
        ),
        speed=kind.speed,
        capacitance=kind.capacitance if kind.capacitance is not None else unit,
        static_power=kind.static_power,
        idle_power=kind.idle_power,
        node_power=kind.node_power,
        sleep=sleep,
    )


def profile_names() -> list[str]:
    """The names of the installed profiles."""
    return sorted(entry.name for entry in entry_points(group=PROFILES))


def load_profile(name: str, where: str = "energy.profile", beside: Path | None = None) -> EnergyProfile:
    """The profile of that name, or of that file (relative to ``beside``).

    Raises :class:`UserError`, led by ``where``, if there is none or it is wrong.
    """
    for entry in entry_points(group=PROFILES):
        if entry.name == name:
            path = Path(entry.load())
            break
    else:
        path = (beside / name) if beside is not None else Path(name)
        if not path.suffix:
            raise UserError(f"{where}: no energy profile is called {name!r}.{nearest(name, profile_names())}")
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        known = ", ".join(profile_names())
        raise UserError(f"{where}: expected a file or one of {known}; found no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{where}: {path} cannot be read: {error}") from error
    try:
        return _Profile.model_validate(data).built()
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, str(path), _Profile)) from error


def with_energy(
    cluster: ClusterDescription,
    profile: EnergyProfile,
    assign: Mapping[str, str] | None = None,
    where: str = "energy.classes",
) -> ClusterDescription:
    """The cluster with a profile: each node has its class and the time that it takes to wake.

    ``assign``: pattern of node (or flat pool) names -> class, the first that matches; a node whose
    description names a class keeps it. Raises :class:`UserError` for a class that the profile has not.
    """
    assign = assign or {}
    classes = {kind.name: kind for kind in profile.classes}
    for pattern, name in assign.items():
        if name not in classes:
            raise UserError(
                f"{where}: {pattern}: no class of profile {profile.name!r} is called {name!r}."
                f"{nearest(name, classes)}"
            )
    for node in cluster.nodes:
        if node.node_class and node.node_class not in classes:
            raise UserError(
                f"node {node.name}: no class of profile {profile.name!r} is called {node.node_class!r}."
                f"{nearest(node.node_class, classes)}"
            )

    def of(name: str, own: str) -> str:
        if own in classes:
            return own
        matching = (kind for pattern, kind in assign.items() if fnmatchcase(name, pattern))
        return next(matching, profile.classes[0].name)

    nodes = []
    for node in cluster.nodes:
        kind = of(node.name, node.node_class)
        sleep = classes[kind].sleep
        wake = node.wake_time or (sleep.leave_time if sleep is not None else 0.0)
        nodes.append(msgspec.structs.replace(node, node_class=kind, wake_time=wake))
    pools = tuple(
        msgspec.structs.replace(p, node_class=of(p.name, p.node_class)) if p.flat else p
        for p in cluster.pools
    )
    stated = msgspec.structs.replace(profile, assign=tuple(assign.items()))
    return msgspec.structs.replace(cluster, nodes=tuple(nodes), pools=pools, energy=stated)
