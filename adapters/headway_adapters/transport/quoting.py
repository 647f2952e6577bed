"""Argument vectors as one line for a POSIX shell: the only place that writes such a line.

SSH has no argument vectors: a server hands one line to the user's login shell. So each word is
quoted such that the shell gives back exactly that word. Decisions: a word stays bare only if it
consists of characters that no shell treats specially (fewer than in shlex.quote: not ``=``,
which zsh expands at a word's beginning); NUL, which no argument can hold, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.errors import Failure

_BARE = re.compile(r"[A-Za-z0-9_@%+:,./-]+")
#: Linux takes no single argument of 128 KiB, and the line is one argument of the shell.
LONGEST = (1 << 17) - 1024


def quote(argv: Sequence[str]) -> bytes:
    """The line from which a shell makes ``argv`` again.

    Raises :class:`Failure` for what cannot be said: no word at all, a NUL, text that has no
    encoding, more than 127 KiB.
    """
    if not argv:
        raise Failure("an empty command cannot be run")
    for word in argv:
        if "\0" in word:
            raise Failure(f"{argv[0]!r}: an argument holds a NUL character: {word[:60]!r}")
    try:
        # As everywhere in Python: bytes that were no UTF-8 come back as they were.
        line = " ".join(_quoted(word) for word in argv).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise Failure(f"{argv[0]!r}: an argument cannot be encoded: {error}") from error
    if len(line) > LONGEST:
        raise Failure(f"{argv[0]!r}: {len(line)} bytes of arguments, more than {LONGEST} at once")
    return line


def _quoted(word: str) -> str:
    if _BARE.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"
