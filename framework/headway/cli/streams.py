"""The standard streams of a command, whatever the shell left of them."""

from __future__ import annotations

import contextlib
import io
import os
import sys


def open_standard_streams() -> None:
    """Point closed streams (``>&-``) at /dev/null, so that no file that is opened later becomes the
    output; and lose no result over a character that the terminal does not know."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, which is this stream's.
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def drop_output() -> None:
    """Nothing can be written to standard output any more, nor shall Python try it at its end."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
