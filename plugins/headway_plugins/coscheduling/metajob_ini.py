"""The INI form of a metajob: the paper's file.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5. A section ``[metajob]``; times are ``HH:MM_MM/DD/YYYY``; the
machines are a dictionary in Python's notation, which is parsed as a literal and never evaluated.

Ours:

- ``timezone`` is the zone of the times (``America/Los_Angeles``, ``UTC``, ``-08:00``); without it they are in
  the zone that the caller gives, which is the zone of the submitting host. A time that a change of the clock
  skips is refused; of a time that comes twice the first is meant.
- ``stages_list_string`` is the list of a pipeline's stages.
- ``metajob_id`` names the metajob; without it the caller gives the name.
- A value goes on until its brackets are closed, whether or not its lines are indented.
"""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from headway.errors import UserError, nearest
from headway_plugins.coscheduling.metajob import Metajob, mistakes, of_record

_TIME = "%H:%M_%m/%d/%Y"
_BOOLEANS = configparser.ConfigParser.BOOLEAN_STATES
_USAGES = ("multiple", "single", "pipeline")
#: Keys of a machine: the file's, the record's, and what it must be.
_MACHINE = {
    "username_string": ("user", str),
    "account_string": ("account", str),
    "email_notify": ("email", str),
    "min_int": ("min", int),
    "max_int": ("max", int),
}
_STAGE = {
    "machine": ("machine", str),
    "nodes_int": ("nodes", int),
    "duration": ("duration", float),
    "offset": ("offset", float),
    "transfer": ("transfer", float),
}
#: Fields of the file, and of the record if :func:`mistakes` names it otherwise.
_FIELDS = {
    "total_nodes": "total",
    "machine_preference": "preference",
    "machine_preference_reorder": "reorder",
    "duration": "duration",
    "earliest_start": "earliest",
    "latest_end": "latest",
    "usage_pattern": "usage",
    "machines_dict_string": "machines",
    "stages_list_string": "stages",
    "timezone": "",
    "metajob_id": "id",
}
_OPTIONAL = ("machine_preference", "machine_preference_reorder", "timezone", "metajob_id")


def read(text: str, *, name: str, zone: tzinfo, where: str = "metajob") -> Metajob:
    """The metajob of a file's text; ``name`` and ``zone`` count where the file gives none.

    Raises :class:`UserError` with a line for each field that is missing or wrong.
    """
    fields = _fields(text, where)
    wrong: list[str] = []
    usage = fields.get("usage_pattern", "").strip()
    not_used = ("total_nodes", "duration") if usage == "pipeline" else ("stages_list_string",)
    for field in _FIELDS:
        if field not in fields and field not in (*_OPTIONAL, *not_used):
            if field == "machines_dict_string" and usage == "pipeline":
                continue
            wrong.append(f"{field}: missing")
    for field in fields:
        if field not in _FIELDS:
            wrong.append(f"{field}: there is no such field.{nearest(field, _FIELDS)}")
    record = _record(fields, zone, wrong)
    if wrong:
        raise UserError("\n".join(f"{where}: {line}" for line in wrong))
    metajob = of_record({"id": name, **record})
    wrong = [_in_the_file(line) for line in mistakes(metajob)]
    if wrong:
        raise UserError("\n".join(f"{where}: {line}" for line in wrong))
    return metajob


def write(metajob: Metajob, zone: str = "UTC") -> str:
    """The file of a metajob; :func:`read` gives the metajob back, if its times are whole minutes."""
    clock = _zone(zone)

    def time(seconds: float) -> str:
        return datetime.fromtimestamp(seconds, clock).strftime(_TIME)

    machines = {
        name: {field: getattr(machine, ours) for field, (ours, _) in _MACHINE.items()}
        for name, machine in metajob.machines.items()
    }
    rows: dict[str, Any] = {
        "metajob_id": metajob.id,
        "machine_preference": ", ".join(metajob.preference),
        "machine_preference_reorder": "yes" if metajob.reorder else "no",
        "earliest_start": time(metajob.earliest),
        "latest_end": time(metajob.latest),
        "timezone": zone,
        "usage_pattern": metajob.usage,
        "machines_dict_string": machines,
    }
    if metajob.usage == "pipeline":
        rows["stages_list_string"] = [
            {field: getattr(stage, ours) for field, (ours, _) in _STAGE.items()} for stage in metajob.stages
        ]
    else:
        rows.update(total_nodes=metajob.total, duration=_seconds(metajob.duration))
    return "\n".join(["[metajob]", *(f"{field} = {value}" for field, value in rows.items()), ""])


def _seconds(value: float) -> str:
    return str(int(value) if value == int(value) else value)


# ---------------------------------------------------------------------- fields


def _fields(text: str, where: str) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(_indented(text))
    except configparser.Error as error:
        raise UserError(f"{where}: {str(error).replace(chr(10), ' ')}") from None
    if "metajob" not in parser:
        raise UserError(f"{where}: expected a section [metajob], found {parser.sections() or 'none'}")
    return dict(parser["metajob"])


def _indented(text: str) -> str:
    """The text, with a blank before each line that lies within brackets."""
    depth = 0
    lines = []
    for line in text.splitlines():
        lines.append(f" {line}" if depth > 0 and line.strip() else line)
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", line)
        if depth > 0 or "=" in bare:
            depth += sum(bare.count(one) for one in "{[(") - sum(bare.count(one) for one in "}])")
            depth = max(depth, 0)
    return "\n".join(lines)


def _record(fields: Mapping[str, str], zone: tzinfo, wrong: list[str]) -> dict[str, Any]:
    """The fields of the record; what is wrong is added to ``wrong``."""
    record: dict[str, Any] = {}

    def take(field: str, convert: Callable[[str], Any]) -> None:
        if field in fields:
            try:
                value = convert(fields[field].strip())
            except ValueError as error:
                wrong.append(f"{field}: {error}")
            else:
                if _FIELDS[field]:
                    record[_FIELDS[field]] = value

    clocks = [zone]
    take("timezone", lambda value: clocks.append(_zone(value)))
    take("metajob_id", str)
    take("total_nodes", lambda value: _number(value, int))
    take("duration", lambda value: _number(value, float))
    take("earliest_start", lambda value: _time(value, clocks[-1]))
    take("latest_end", lambda value: _time(value, clocks[-1]))
    take("usage_pattern", _usage)
    take("machine_preference", lambda value: [one.strip() for one in value.split(",") if one.strip()])
    take("machine_preference_reorder", _boolean)
    take("machines_dict_string", _machines)
    take("stages_list_string", _stages)
    return record


def _in_the_file(line: str) -> str:
    """A line of :func:`mistakes` with the field's name in the file."""
    field, _, rest = line.partition(":")
    names = {ours: theirs for theirs, ours in _FIELDS.items() if ours}
    return f"{names.get(field, field)}:{rest}"


def _number(value: str, kind: type[int] | type[float]) -> float:
    try:
        return kind(value)
    except ValueError:
        what = "a whole number" if kind is int else "a number of seconds"
        raise ValueError(f"expected {what}, found {value!r}") from None


def _boolean(value: str) -> bool:
    if value.lower() not in _BOOLEANS:
        raise ValueError(f"expected yes or no, found {value!r}")
    return _BOOLEANS[value.lower()]


def _usage(value: str) -> str:
    if value not in _USAGES:
        raise ValueError(f"expected one of {', '.join(_USAGES)}, found {value!r}")
    return value


def _zone(value: str) -> tzinfo:
    offset = re.fullmatch(r"(?:UTC)?([+-])(\d\d):?(\d\d)", value)
    if offset:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))
    try:
        return UTC if value == "UTC" else ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"expected a time zone such as America/Los_Angeles or -08:00, found {value!r}"
        ) from None


def _time(value: str, zone: tzinfo) -> float:
    try:
        local = datetime.strptime(value, _TIME)
    except ValueError:
        raise ValueError(
            f"expected a time HH:MM_MM/DD/YYYY such as 07:00_11/09/2004, found {value!r}"
        ) from None
    seconds = local.replace(tzinfo=zone).timestamp()
    if datetime.fromtimestamp(seconds, zone).replace(tzinfo=None) != local:
        raise ValueError(f"there is no time {value} in the zone {zone}: the clock is set forward over it")
    return seconds


def _literal(value: str, kind: type[Any], what: str) -> Any:
    try:
        found = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise ValueError(
            f"expected {what}, with numbers and quoted texts; a quote or a bracket may be missing"
        ) from None
    if not isinstance(found, kind):
        raise ValueError(f"expected {what}, found {value[:40]!r}")
    return found


def _machines(value: str) -> dict[str, Any]:
    found = _literal(value, dict, "a dictionary of machines")
    return {str(name): _entry(fields, _MACHINE, f"{name}") for name, fields in found.items()}


def _stages(value: str) -> list[Any]:
    found = _literal(value, list, "a list of stages")
    return [_entry(fields, _STAGE, f"stage {number}") for number, fields in enumerate(found, 1)]


def _entry(fields: Any, known: Mapping[str, tuple[str, type[Any]]], where: str) -> dict[str, Any]:
    """A machine or a stage, with the names of the record."""
    if not isinstance(fields, dict):
        raise ValueError(f"{where}: expected a dictionary, found {fields!r}")
    record: dict[str, Any] = {}
    for field, value in fields.items():
        if field not in known:
            raise ValueError(f"{where}: there is no {field!r}.{nearest(str(field), known)}")
        ours, kind = known[field]
        good: tuple[type[Any], ...] = (int, float) if kind is float else (kind,)
        if not (isinstance(value, good) and not isinstance(value, bool)) and not (
            field == "offset" and value is None
        ):
            raise ValueError(f"{where}: {field}: expected {_WORDS[kind]}, found {value!r}")
        record[ours] = value
    needed = ("min_int", "max_int") if known is _MACHINE else ("machine", "nodes_int", "duration")
    for field in needed:
        if field not in fields:
            raise ValueError(f"{where}: {field}: missing")
    return record


_WORDS: dict[type[Any], str] = {str: "a text", int: "a whole number", float: "a number"}
