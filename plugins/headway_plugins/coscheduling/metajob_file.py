"""The file of a metajob: the paper's INI form, or YAML with the same fields.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5. The INI form is :mod:`.metajob_ini`. Ours is the form in YAML, whose
fields are those of :class:`.metajob.Metajob`: times as ``2026-03-01T14:30`` (of this host, or with a zone) or
seconds since the epoch, durations in seconds or as ``2h30m``.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.inputs.durations import EXPECTED, seconds_of
from headway.inputs.strict_yaml import read_mapping
from headway_plugins.coscheduling import metajob_ini
from headway_plugins.coscheduling.metajob import Metajob, check, of_record

#: What it is called until the scheduler gives it a name.
_NAME = "metajob"


def read_file(path: Path) -> Metajob:
    """The metajob of a file; raises :class:`UserError` with what is wrong and where."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return _yaml(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}") from None
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    return metajob_ini.read(text, name=_NAME, zone=zone, where=str(path))


def _yaml(path: Path) -> Metajob:
    record = dict(read_mapping(path, "a metajob", "usage, earliest, latest, total, duration, machines"))
    try:
        for field in ("earliest", "latest"):
            if field in record:
                record[field] = _moment(field, record[field])
        record = _with_durations(record)
        record["stages"] = [_with_durations(stage) for stage in record.get("stages") or ()]
        record["id"] = _NAME
        metajob = of_record(record)
        check(metajob)
    except UserError as error:
        raise UserError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from None
    return metajob


def _moment(field: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise UserError(f"{field}: expected a time such as 2026-03-01T14:30, found {value!r}") from None
    return moment.timestamp()


def _with_durations(record: Any) -> Any:
    """Durations that are written as texts, in seconds."""
    if not isinstance(record, dict):
        return record
    found = dict(record)
    for field in ("duration", "offset", "transfer"):
        if isinstance(found.get(field), str):
            seconds = seconds_of(found[field])
            if seconds is None:
                raise UserError(f"{field}: expected {EXPECTED}; found {found[field]!r}")
            found[field] = float(seconds)
    return found
