"""What a plugin wrote to a user, made safe for a mail command.

A user can have words of their own in a letter (a job's name), so nothing in it commands a mailer:

- A user's name begins with a letter, a digit or ``_``. A name with a comma, a blank, ``/``, ``|`` or ``!``
  would be several addresses, a file or a program for some mailers. Such a letter is refused.
- The subject is one line without control characters, and does not begin with ``-``. So it adds no header to
  the mail and is no option of the command.
- In the text a line that begins with ``~`` (a command of ``mail``) and a line ``.`` (the end of the text) get
  a blank before them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headway.decisions import Tell
from headway.errors import Failure

#: Characters of a subject, and of a text.
MOST_SUBJECT, MOST_TEXT = 200, 16_000
_USER = re.compile(r"\w[\w.@+\\-]{0,127}")
_CUT = "... (cut)"
_COMMANDS_A_MAILER = re.compile(r"^(?=~|\.$)", re.MULTILINE)


@dataclass(frozen=True)
class Letter:
    """A letter that can be sent."""

    user: str
    subject: str
    #: UTF-8; ends with a line feed.
    text: bytes


def letter_of(tell: Tell) -> Letter:
    """The letter; :class:`Failure` if its user's name could mean something else to a mailer."""
    if not isinstance(tell.user, str) or not _USER.fullmatch(tell.user):
        raise Failure(
            f"expected a user's name of at most 128 letters, digits and . _ @ + \\ -, which begins with a "
            f"letter or digit; found {str(tell.user)[:200]!r}"
        )
    subject = " ".join(_plain(str(tell.subject)[: 4 * MOST_SUBJECT]).split()).lstrip("- ")
    text = str(tell.text)[: 4 * MOST_TEXT].replace("\r\n", "\n").replace("\r", "\n")
    text = _COMMANDS_A_MAILER.sub(" ", _bounded(_plain(text, "\n\t").rstrip(), MOST_TEXT))
    return Letter(tell.user, _bounded(subject, MOST_SUBJECT) or "(no subject)", f"{text}\n".encode())


def _plain(text: str, kept: str = "") -> str:
    """The text with a blank for each character that is not printed, but for those that are ``kept``."""
    return "".join(c if c.isprintable() or c in kept else " " for c in text)


def _bounded(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - len(_CUT)] + _CUT
