"""LSF, as one of its users: ``bjobs`` and its like, ``bsub``, ``bkill``; and ``bmod`` to make a waiting job
smaller. ``bsub`` hands its words to a shell, so they are quoted."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence

from headway.adapter.user_side import Allocation, Submission
from headway.errors import Failure
from headway_adapters.lsf import LsfAdapter, listing, writer
from headway_adapters.lsf.client import LsfClient
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling.remarks import noted
from headway_adapters.polling.words import Unfit
from headway_adapters.transport import Result
from headway_adapters.transport.quoting import quote
from headway_adapters.user_side.base import QueueUser, own_host
from headway_adapters.user_side.words import checked

_SUBMITTED = re.compile(r"Job <([0-9]+)> is submitted")


class LsfUser(QueueUser):
    """See :class:`headway.adapter.user_side.UserSide`. ``options``: ``queue``, "normal" without it, and the
    options of the adapter."""

    grain = 60.0
    gone = ("already finished", "No matching job found", "is not found")
    ending = ("bkill",)
    default = "normal"
    kinds = (LsfOptions, LsfAdapter, LsfClient)

    def submission(self, job: Submission) -> tuple[str, ...]:
        return submission(job, self.queue)

    def submitted(self, result: Result) -> str:
        found = _SUBMITTED.search(result.text)
        if found is None:
            raise Failure(f"bsub: expected the number of the job, found {result.text[:80]!r}")
        return writer.job(found[1])

    def shrinking(self, job: str, seconds: float) -> tuple[str, ...]:
        return shrinking(job, seconds)

    def postponing(self, job: str) -> Sequence[Sequence[str]]:
        return (("brequeue", "-H", job),)

    def releasing(self, job: str) -> Sequence[str]:
        return ("bresume", job)

    def checked_id(self, job: str) -> str:
        return writer.job(job)

    def allocation(self, environment: Mapping[str, str]) -> Allocation | None:
        return allocation(environment, os.uname().nodename)

    def notes(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        job, element = environment.get("LSB_JOBID"), environment.get("LSB_JOBINDEX", "0")
        if not job:
            return {}
        key = writer.job(job if element == "0" else f"{job}[{element}]")
        result = self._client.run(("bjobs", "-UF", key))
        if not result.ok:
            raise self._failure(result)
        told = listing.read_long(result.text, Calendar(time.time()), set()).get(key)
        return noted(told.description)[1] if told is not None else {}

    def elsewhere(
        self, argv: Sequence[str], allocation: Allocation, environment: Mapping[str, str]
    ) -> tuple[tuple[str, ...], ...]:
        return elsewhere(argv, allocation, environment)


def submission(job: Submission, queue: str) -> tuple[str, ...]:
    """``bsub``. A job that LSF starts again is noticed: its workers are others."""
    checked(job)
    if job.memory:
        raise Unfit(
            "memory cannot be asked for: whether LSF counts it for a host or for a job depends on the site"
        )
    return (
        "bsub", "-J", job.name, "-q", queue, "-n", str(job.processors), "-W", writer.minutes(job.walltime),
        "-o", job.output.replace("%", "%%"), *(["-P", job.account] if job.account else []),
        quote(job.argv).decode("utf-8", "surrogateescape"),
    )  # fmt: skip


def shrinking(job: str, seconds: float) -> tuple[str, ...]:
    """Make a waiting job one of one processor."""
    return ("bmod", "-n", "1", "-W", writer.minutes(seconds), writer.job(job))


def allocation(environment: Mapping[str, str], here: str) -> Allocation | None:
    """What LSB_* says; ``here`` is this host. Raises :class:`Failure` if it cannot be read."""
    job, said = environment.get("LSB_JOBID"), environment.get("LSB_MCPU_HOSTS", "").split()
    if not job or not said:
        return None
    if len(said) % 2 or not all(word.isdecimal() for word in said[1::2]):
        raise Failure(f"LSB_MCPU_HOSTS: expected hosts and numbers in turn, found {' '.join(said)!r}")
    placement = tuple(zip(said[::2], map(int, said[1::2]), strict=True))
    return Allocation(job, placement, own_host(said[::2], here) or said[0])


def elsewhere(
    argv: Sequence[str], allocation: Allocation, environment: Mapping[str, str]
) -> tuple[tuple[str, ...], ...]:
    """``blaunch``, or ``lsrun`` where there is none. Raises :class:`Failure`."""
    path = environment.get("PATH")
    if (program := shutil.which("blaunch", path=path)) is not None:
        return ((program, "-z", " ".join(allocation.others), *argv),)
    if (program := shutil.which("lsrun", path=path)) is not None:
        # It would take options of what it runs for its own.
        return tuple((program, "-m", host, "--", *argv) for host in allocation.others)
    raise Failure("expected blaunch or lsrun in PATH, to run workers on other nodes; found none")
