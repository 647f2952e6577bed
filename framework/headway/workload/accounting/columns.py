"""The columns that ``sacct`` prints, in any order and in each of its layouts.

- ``-P``, ``-p`` and ``--delimiter``: a separator between the columns, with ``-p`` one behind the last, too.
- Neither: columns of fixed widths, which a line of dashes below the header tells.

Several outputs may follow each other, each with its header.

What users write (names, comments) may have the separator in it. Then a line has too many fields, and is
read in each way that puts them into the columns of free text. A reader takes such a line only if all ways
that make sense agree in what is no free text, so that no job's name can tell anything about another column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement

from headway.errors import UserError
from headway.workload.left_out import LeftOut

#: Columns of which one is enough to tell that a line is a header.
IDS = ("JobIDRaw", "JobID")
#: Of these another one must be there: words in a file that is no output of sacct are not taken for a header.
_BESIDE = frozenset(
    ("JobName", "User", "Account", "Group", "Submit", "Start", "End", "Elapsed", "ElapsedRaw", "Timelimit",
     "TimelimitRaw", "NCPUS", "AllocCPUS", "ReqCPUS", "NNodes", "State", "Partition", "QOS", "Comment")
)  # fmt: skip
#: Columns that hold what a user has written.
FREE = frozenset({"JobName", "Comment", "AdminComment", "SystemComment", "SubmitLine", "WorkDir", "Extra",
                  "Container", "WCKey", "Reservation", "Constraints", "Licenses"})  # fmt: skip
#: Ways to read a line that are looked at.
_MOST_WAYS = 200

Row = dict[str, str]
#: The ways to read a line as columns.
Split = Callable[[str], list[Row]]


def is_header(line: str) -> bool:
    """Whether a line names columns of sacct."""
    words = set(re.split(r"[^A-Za-z]+", line))
    return not line.lstrip().startswith((";", "#")) and bool(words & set(IDS)) and bool(words & _BESIDE)


def rows(
    lines: Sequence[str], left: LeftOut, check: Callable[[Sequence[str], str], None]
) -> Iterator[tuple[int, list[Row]]]:
    """Each job's line: its number, and the ways to read it.

    ``check`` is called with the columns of each header and its place, and raises :class:`UserError` if they
    are too few.
    """
    split: Split | None = None
    header = ""
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r")
        if not line.strip() or (split and _is_rule(line)):
            continue
        if line == header:
            continue
        if is_header(line) and (split is None or _names(line) is not None):
            below = lines[number].rstrip("\r") if number < len(lines) else ""
            names, split = _layout(line, below, left.place(number))
            check(names, left.place(number))
            header = line
            continue
        ways: list[Row] = []
        with left.line(number):
            ways = _ways(line, split, header, left.place(number))
        if ways:
            yield number, ways


def _ways(line: str, split: Split | None, header: str, place: str) -> list[Row]:
    if split is None:
        raise UserError(f"{place}: expected the header of sacct, found {line[:40]!r}")
    found = split(line)
    if not found:
        named = _names(header)
        assert named is not None
        names, separator = named
        raise UserError(f"{place}: expected {len(names)} fields, found {len(line.split(separator))}")
    return found


def _is_rule(line: str) -> bool:
    return "-" in line and set(line) <= {"-", " "}


def _names(header: str) -> tuple[list[str], str] | None:
    """The columns that a header names, and what separates them; None if it is no list of names."""
    found = re.match(r"[A-Za-z]+([^A-Za-z]+)", header)
    separator = found.group(1) if found else "|"
    names = header.removesuffix(separator).split(separator)
    return (names, separator) if all(re.fullmatch(r"[A-Za-z_%]+\d*", name) for name in names) else None


def _layout(header: str, below: str, place: str) -> tuple[list[str], Split]:
    if _is_rule(below):
        return _of_widths(header, below)
    named = _names(header)
    if named is None or not named[1].strip(" "):
        raise UserError(
            f"{place}: expected columns with a separator (sacct -P) or above a line of dashes, "
            f"found {header[:60]!r}"
        )
    return named[0], _separated(*named)


def _of_widths(header: str, below: str) -> tuple[list[str], Split]:
    # sacct counts bytes, and names may have letters of several.
    spans = [found.span() for found in re.finditer("-+", below)]
    width = spans[-1][1]

    def cells(line: str) -> list[str]:
        data = line.encode()
        if len(data.rstrip()) != width == len(line.rstrip()):  # a line of another encoding
            return [line[begin:end].strip() for begin, end in spans]
        return [data[begin:end].decode("utf-8", "replace").strip() for begin, end in spans]

    names = cells(header)
    return names, lambda line: [dict(zip(names, cells(line), strict=True))]


def _separated(names: list[str], separator: str) -> Split:
    free = [at for at, name in enumerate(names) if name in FREE]

    def split(line: str) -> list[Row]:
        fields = line.split(separator)
        more = len(fields) - len(names)
        if more > 0 and fields[-1] == "":  # as -p writes it
            fields, more = fields[:-1], more - 1
        if more == 0:
            return [dict(zip(names, fields, strict=True))]
        if more < 0 or not free:
            return []
        found: list[Row] = []
        for places in combinations_with_replacement(free, more):
            if len(found) == _MOST_WAYS:
                return []
            found.append(dict(zip(names, _joined(fields, places, separator, len(names)), strict=True)))
        return found

    return split


def _joined(fields: list[str], places: Sequence[int], separator: str, columns: int) -> list[str]:
    """The fields as columns; fields in ``places`` take as many further fields as there are."""
    found: list[str] = []
    at = 0
    for column in range(columns):
        width = 1 + places.count(column)
        found.append(separator.join(fields[at : at + width]))
        at += width
    return found
