"""The lines of a text file, whatever its encoding."""

from __future__ import annotations

from headway.workload.left_out import LeftOut
from headway.workload.packed import Source
from headway.workload.trace import ENCODING


def lines_of(source: Source, left: LeftOut) -> list[str]:
    """A file's lines, without a byte order mark; a line that is not UTF-8 is read as Latin-1, and noted.

    Only line feeds end a line: what users write may have other characters that Python takes for an end.
    """
    data = source.data().removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return [_decoded(line, number, left) for number, line in enumerate(data.split(b"\n"), 1)]


def _decoded(line: bytes, number: int, left: LeftOut) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        left.note(number, ENCODING, f"expected UTF-8, found {found}")
        return line.decode("latin-1")
