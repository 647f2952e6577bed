"""Errors with a message for a person.

:class:`UserError` is a mistake that the person at the keyboard can mend (exit code 2);
:class:`Failure` is something that went wrong outside (exit code 1); :class:`Damaged` is a journal
that cannot be trusted (exit code 3); :class:`Superseded` says that another daemon drives (exit
code 4). The command line prints the message alone, without a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class HeadwayError(Exception):
    """The base of all errors raised on purpose."""

    exit_code = 1


class UserError(HeadwayError):
    """A file, key, option or name that is wrong: the message says where, what was expected, what found."""

    exit_code = 2


class Mistakes:
    """Several mistakes of a user, told as one :class:`UserError` with a line each."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """What is done here goes on after a mistake, which is told by :meth:`tell`."""
        try:
            yield
        except UserError as error:
            # It may be several already.
            self._lines.update(dict.fromkeys(str(error).split("\n")))

    def tell(self) -> None:
        """Raise :class:`UserError` if there were any."""
        if self._lines:
            raise UserError("\n".join(self._lines))


class Failure(HeadwayError):
    """The world did not cooperate: a batch system that does not answer, a full disk."""


class Held(Failure):
    """Another process has what only one can have; the message names it. Trying again may help."""


class Damaged(Failure):
    """What was written down cannot be trusted any more: trying again does not help, a person must decide."""

    exit_code = 3


class Superseded(HeadwayError):
    """Another daemon drives the cluster: this one must change nothing any more, and give nothing back."""

    exit_code = 4


class StateError(HeadwayError):
    """A decision or event that contradicts what the scheduler knows; the message says how."""


def nearest(name: str, known: Iterable[str], listed: bool = True) -> str:
    """A hint for a misspelt name: `` Did you mean 'easy'?``, else the list of what there is.

    Capital letters are as good as small ones. Without ``listed`` there is no list: the caller names another
    place that has it.
    """
    names = sorted(known)
    folded: dict[str, list[str]] = {}
    for one in names:
        folded.setdefault(one.casefold(), []).append(one)
    alike = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    close = [one for key in alike for one in folded[key]][:3]
    if close:
        return " Did you mean " + " or ".join(repr(c) for c in close) + "?"
    if not listed:
        return ""
    return " Known: " + (", ".join(names) if names else "none") + "."
