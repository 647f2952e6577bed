"""What may stand in the words of a submission, whatever the batch system."""

from __future__ import annotations

import re

from headway.adapter.user_side import Submission
from headway.errors import UserError
from headway_adapters.polling.words import Unfit, matching

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}")


def checked(job: Submission) -> Submission:
    """``job``, in which nothing can be taken for something else. Raises :class:`Unfit`."""
    matching(job.name, _NAME, "the name of a job")
    if job.account:
        matching(job.account, _ACCOUNT, "the name of an account")
    if job.processors < 1:
        raise Unfit(f"{job.processors} processors cannot be asked for")
    for word in (*job.argv, job.output):
        if any(character in word for character in "\0\n\r"):
            raise Unfit(f"{word[:60]!r} cannot stand in a command")
    if not job.argv or not job.argv[0].startswith("/") or not job.output.startswith("/"):
        raise Unfit("a program and an output are named by absolute paths")
    return job


def queue_name(name: str) -> str:
    """A queue's name, checked. Raises :class:`UserError`."""
    if _ACCOUNT.fullmatch(name) is None:
        raise UserError(f"--queue: expected the name of a queue, found {name[:60]!r}")
    return name
