"""Which batch system's accounting a text is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.inputs import text_of
from headway.inputs.log import logger
from headway.workload.accounting.records import trace_of
from headway.workload.ended import Ended
from headway.workload.format import Format, first_lines, installed
from headway.workload.left_out import LeftOut
from headway.workload.trace import RECORD, Trace


def is_accounting(text: str) -> bool:
    """Whether a text, or how it begins, is of one of the kinds, or was meant to be."""
    return _kind(text) is not None


def parse_accounting(
    text: str, source: str, *, zoned: bool = False, left: LeftOut | None = None
) -> list[Ended]:
    """The jobs that ended, by their ends; ``source`` leads messages.

    A broken line is a :class:`UserError` unless ``left`` takes it. ``zoned``: so are times that say no zone,
    such as Slurm's are unless it is asked for others.
    """
    kind = _kind(text)
    if kind is None or kind.ended is None:
        raise UserError(f"{source}: expected a batch system's accounting, such as sacct -P prints it")
    lines = text.removeprefix("\ufeff").split("\n")
    found = kind.ended(lines, left if left is not None else LeftOut(source, strict=True), zoned)
    return sorted(found, key=lambda one: one.end)


def accounted_trace(text: str, source: str, *, strict: bool = True) -> Trace:
    """The jobs of a text that ran; errors as :func:`parse_accounting`, and if there is none."""
    left = LeftOut(source, strict)
    return trace_of(parse_accounting(text, source, left=left), left)


def history_of(path: Path, context: Mapping[str, Any] | None) -> list[Ended]:
    """The jobs of a file that an option ``history`` names, by their ends; ValueError for its validator.
    ``context`` is that of the validation. Times must say their zone: they are compared with the clock.

    Broken lines are left out, and said in the log; a file of nothing else is an error."""
    left = LeftOut(str(path))
    try:
        found = parse_accounting(text_of(path, context), str(path), zoned=True, left=left)
        broken = [issue for issue in left.issues if issue.kind == RECORD]
        if broken and not found:
            raise left.nothing("jobs that ended")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"history: {path} cannot be read: {error}") from error
    except UserError as error:
        raise ValueError(str(error)) from error
    if broken:
        first = f"line {broken[0].line_number}: {broken[0].text}"
        logger("headway.workload").warning(
            "broken lines of a history are left out", file=str(path), lines=len(broken), first=first
        )
    return found


def _kind(text: str) -> Format | None:
    lines = first_lines(text[: 1 << 16])
    kinds = (one for one in installed().values() if one.ended is not None and one.begins(lines))
    return next(kinds, None)
