"""The kernel's files: one value a file, under a root that tests replace.

A root is a directory that looks like ``/sys``. Every error names the file and says what the system
said, because "permission denied" and "no such file" have different remedies.
"""

from __future__ import annotations

import os
from pathlib import Path

from headway.errors import Failure

#: The kernel's answer where a file has no value at the moment.
_NO_VALUE = ("<unsupported>", "<unknown>")


def read(path: Path) -> str:
    """A file's value. Raises :class:`Failure`."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror or error}") from error


def read_number(path: Path) -> int:
    """A file's value as a whole number. Raises :class:`Failure`."""
    text = read(path)
    try:
        return int(text)
    except ValueError:
        raise Failure(f"{path}: expected a whole number, found {text[:40]!r}") from None


def number(path: Path) -> int | None:
    """A number where there is one; None where the file is missing, unreadable or has no value."""
    text = word(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def word(path: Path) -> str | None:
    """A value where there is one; None where the file is missing, unreadable or has no value."""
    try:
        text = read(path)
    except Failure:
        return None
    return None if not text or text in _NO_VALUE else text


def write(path: Path, value: object) -> None:
    """Write a value. Raises :class:`Failure`."""
    try:
        # Not created when it is missing: the kernel has no such switch then.
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, f"{value}\n".encode("ascii"))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from error


def cpu_list(text: str) -> tuple[int, ...]:
    """``0-3,8`` or ``0 1 2`` as numbers. Raises :class:`ValueError`."""
    numbers: set[int] = set()
    for part in text.replace(",", " ").split():
        first, dash, last = part.partition("-")
        low = _cpu(first)
        high = _cpu(last) if dash else low
        if high < low:
            raise ValueError(f"{part!r} runs backwards")
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))


def _cpu(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 5:
        raise ValueError(f"{text!r} is not the number of a cpu")
    return int(text)
