"""Jobs as ``qstat -f -F dsv -D SEPARATOR`` lists them. Pure, but for the choice of a separator.

Of PBS's forms this is the only one in which no text of a user can pass for something else. In the text
form line breaks of an account or a variable are printed as they are, so that one job's value can hold a
whole record of another's; in JSON a backslash or a byte beyond ASCII makes the document invalid, and
line breaks in the names of variables stand there as they are, too. Here:

* attributes are separated by a word that we choose anew for each command (:func:`separator`), so no user
  can have written it into a job; where a value holds it nevertheless, PBS puts a backslash before it;
* line breaks are written ``\\n``, but a byte that cannot be printed is written ``^`` and the byte plus
  64, and for byte 202 that is a line break again. So a line break ends nothing by itself: a record
  begins where ``Job Id: ID`` ends what stands before a separator *and* the attribute behind it is
  ``Job_Name``, which is the first attribute of every record and never the second.

What cannot be understood raises :class:`headway_adapters.pbs.documents.Malformed`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

from headway_adapters.pbs.documents import JobRecord, Malformed, job_record
from headway_adapters.polling.readings import digest

_HEAD = "Job Id: "
_FIRST = "Job_Name="
#: No letter of a separator is one that ``^`` and a byte's sum can give (only 32 to 127 are printed as
#: they are, so the sums are 0 to 95 and 192 to 255 modulo 256): it is there only if it was written there.
_LETTERS = "abcdefghijklmnop"
#: What stands for the separator where no value holds one; PBS prints no such byte as it is.
_MARK = "\x1f"
#: Values that are kept for jobs that have them in common.
_MOST_VALUES = 200_000
_BREAKS = {"n": "\n", "f": "\f"}
_PLAIN = frozenset(JobRecord.__struct_fields__)
_MAPS = tuple(name for name in ("Resource_List", "resources_used") if name in _PLAIN)


def separator() -> str:
    """A word that no user can know beforehand (64 bits), no end of which is a beginning of it."""
    return f"|{''.join(secrets.choice(_LETTERS) for _ in range(16))}"


def form(between: str) -> tuple[str, ...]:
    """The options of ``qstat`` for this form, with a separator."""
    return ("-F", "dsv", "-D", between)


def separator_of(argv: tuple[str, ...]) -> str:
    """The separator that a command was given."""
    return argv[argv.index("-D") + 1]


class Parsed:
    """The records of the last listing, by the text that they were read from: most do not change."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[bytes, JobRecord]] = {}
        #: Values that many jobs have in common, once each.
        self._values: dict[str, str] = {}

    def records(self, texts: Mapping[str, bytes]) -> dict[str, JobRecord]:
        """What each job's text says. ``texts``: job id -> its attributes, between :data:`_MARK`."""
        found: dict[str, tuple[bytes, JobRecord]] = {}
        for job_id, text in texts.items():
            key = digest(text)
            known = self._before.get(job_id)
            found[job_id] = known if known is not None and known[0] == key else (key, self._read(text))
        self._before = found
        if len(self._values) > _MOST_VALUES:
            self._values = {}
        return {job_id: record for job_id, (_, record) in found.items()}

    def _read(self, text: bytes) -> JobRecord:
        fields: dict[str, Any] = {}
        escapes = _escapes(_MARK)
        for piece in (_FIRST + text.decode("utf-8", errors="replace")).split(_MARK):
            _put(fields, piece, escapes)
        same = self._values.setdefault
        for name, value in fields.items():
            if isinstance(value, str):
                fields[name] = same(value, value)
            else:
                fields[name] = {same(key, key): same(each, each) for key, each in value.items()}
        return job_record(fields)


def jobs(data: bytes, between: str, parsed: Parsed | None = None) -> dict[str, JobRecord]:
    """A listing: job id -> record, in the listing's order. One that was cut is refused. ``parsed``: the
    records of the listing before, which become those of this one."""
    if not data or data.isspace():
        return {}
    if not data.startswith(_HEAD.encode()):
        raise Malformed(f"qstat: expected a listing of jobs, it begins {data[:60]!r}")
    if not data.endswith(b"\n"):
        raise Malformed("qstat: the listing ends in the middle of a job")
    plain = _plain(data, between)
    if plain is not None:
        return (parsed if parsed is not None else Parsed()).records(plain)
    text = f"\n{data.decode('utf-8', errors='replace')[:-1]}"
    pieces = _pieces(text, between)
    escapes = _escapes(between)
    found: dict[str, dict[str, Any]] = {}
    fields: dict[str, Any] = {}
    for piece, following in zip(pieces, [*pieces[1:], ""], strict=True):
        job_id = _begins(piece) if following.startswith(_FIRST) else None
        if job_id is None:
            _put(fields, piece, escapes)
            continue
        # What stands before the head belongs to the record before.
        _put(fields, piece[: -len(f"\n{_HEAD}{job_id}")], escapes)
        fields = {}
        found.setdefault(job_id, fields)
    if not found:
        raise Malformed(f"qstat: expected a listing of jobs, it begins {data[:60]!r}")
    return {job_id: job_record(fields) for job_id, fields in found.items()}


def _plain(data: bytes, between: str) -> dict[str, bytes] | None:
    """The text of each job behind :data:`_FIRST`, with :data:`_MARK` between its attributes; None for a
    listing in which anything stands that has to be looked at piece by piece: a separator within a value, a
    head that is none."""
    mark, word, head = _MARK.encode(), between.encode(), f"\n{_HEAD}".encode()
    if mark in data or b"\\" + word in data:
        return None
    *heads, last = data.replace(word, mark).split(mark + _FIRST.encode())
    ids: list[str] = []
    texts: list[bytes] = []
    for before in heads:
        rest, found, job_id = before.rpartition(head) if ids else (b"", head, before[len(head) - 1 :])
        if not found or mark in job_id or b"\n" in job_id:
            return None
        ids.append(job_id.decode("utf-8", errors="replace"))
        texts.append(rest)
    if len(set(ids)) < len(ids) or not ids:
        return None
    return dict(zip(ids, [*texts[1:], last[:-1]], strict=True))


def _pieces(text: str, between: str) -> list[str]:
    """What stands between separators; one that PBS marked as a value's own separates nothing."""
    pieces: list[str] = []
    held = ""
    for piece in text.split(between):
        if piece.endswith("\\") and _is_marked(piece):
            held += piece + between
        else:
            pieces.append(held + piece)
            held = ""
    return [*pieces, held] if held else pieces


def _is_marked(piece: str) -> bool:
    """Whether the separator behind a piece has a backslash of its own before it.

    PBS doubles a value's backslashes; but byte 28 is written as ``^`` and one backslash, after that.
    """
    stem = piece.rstrip("\\")
    return (len(piece) - len(stem)) % 2 == 1 or stem.endswith("^")


def _begins(piece: str) -> str | None:
    """What stands as a job's id in the head that ends a piece; the reader looks whether it is one."""
    _before, newline, job_id = piece.rpartition("\n" + _HEAD)
    return job_id if newline else None


def _put(fields: dict[str, Any], piece: str, escapes: re.Pattern[str]) -> None:
    """One attribute; the first of a name counts."""
    name, equals, value = piece.partition("=")
    if not equals:
        return
    if name in _PLAIN:
        fields.setdefault(name, _unescaped(value, escapes))
        return
    within, dot, resource = name.partition(".")
    if dot and within in _MAPS:
        values = fields.setdefault(within, {})
        if isinstance(values, dict):
            values.setdefault(resource, _unescaped(value, escapes))


def _escapes(between: str) -> re.Pattern[str]:
    return re.compile(rf"\\(\\|n|f|{re.escape(between)})")


def _unescaped(value: str, escapes: re.Pattern[str]) -> str:
    if "\\" not in value:
        return value
    return escapes.sub(lambda match: _BREAKS.get(match.group(1), match.group(1)), value)
