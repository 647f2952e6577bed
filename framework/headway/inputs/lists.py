"""Lists that users write for a command: CSV with a header, of which the columns are known."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from headway.errors import UserError, nearest


def lines_of(
    path: Path, columns: Sequence[str], needed: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a file: number, and column -> text without space around it.

    Raises :class:`UserError` if it cannot be read or is no CSV, for a column that is not one of ``columns``,
    for a ``needed`` column that is not there, and for a line with more or fewer fields.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            found = [column.strip() for column in rows.fieldnames or ()]
            rows.fieldnames = found
            for column in found:
                if column not in columns:
                    raise UserError(f"{path}: there is no column {column!r}.{nearest(column, columns)}")
            for column in needed:
                if column not in found:
                    raise UserError(
                        f"{path}: expected a column {column!r}, found {', '.join(found) or 'none'}"
                    )
            for row in rows:
                if None in row or None in row.values():
                    raise UserError(
                        f"{path}, line {rows.line_num}: expected {len(found)} fields, found another number"
                    )
                yield rows.line_num, {key: str(value).strip() for key, value in row.items()}
    except OSError as error:
        raise UserError(f"{path}: the list cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not CSV: {error}") from error
