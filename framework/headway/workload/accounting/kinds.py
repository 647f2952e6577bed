"""Which batch system's accounting a text is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.inputs import text_of
from headway.workload.accounting import lsf, pbs, slurm
from headway.workload.accounting.ended import Ended


def is_accounting(text: str) -> bool:
    """Whether a text, or how it begins, is of one of the kinds, or was meant to be."""
    first = _first(text)
    return bool(
        pbs.LINE.match(first)
        or lsf.LINE.match(first)
        or lsf.LISTING.match(first)
        # A comment of the standard format may have any words.
        or (not first.startswith(";") and any(name in re.split(r"[|\s]+", first) for name in slurm.IDS))
    )


def parse_accounting(text: str, source: str, *, zoned: bool = False) -> list[Ended]:
    """The jobs that ended, by their ends; :class:`UserError`, led by ``source`` and the line, for what is
    wrong. ``zoned``: so are times that say no zone, such as Slurm's are unless it is asked for others."""
    first = _first(text)
    if lsf.LISTING.match(first):
        raise UserError(
            f"{source}: expected lsb.acct, found a listing of bacct or bhist, whose times have no years"
        )
    kind: Callable[[list[str], str], list[Ended]] = partial(slurm.of_slurm, zoned=zoned)
    if pbs.LINE.match(first):
        kind = pbs.of_pbs
    elif lsf.LINE.match(first):
        kind = lsf.of_lsf
    # Only line feeds end a line: what users write may have other characters that Python takes for an end.
    return sorted(kind(text.lstrip("\ufeff").split("\n"), source), key=lambda one: one.end)


def history_of(path: Path, context: Mapping[str, Any] | None) -> list[Ended]:
    """The jobs of a file that an option ``history`` names, by their ends; ValueError for its validator.
    ``context`` is that of the validation. Times must say their zone: they are compared with the clock."""
    try:
        return parse_accounting(text_of(path, context), str(path), zoned=True)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"history: {path} cannot be read: {error}") from error
    except UserError as error:
        raise ValueError(str(error)) from error


def _first(text: str) -> str:
    """The first line that is not blank."""
    return text.lstrip("\ufeff\r\n ").partition("\n")[0].rstrip("\r")
