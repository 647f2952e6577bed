"""PBS, as one of its users: ``qstat``, ``qsub``, ``qdel``; and ``qalter`` to make a waiting job smaller."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway.errors import Failure
from headway.model import Placement
from headway.user_side import Allocation, Submission
from headway_adapters.pbs import PbsAdapter, writer
from headway_adapters.pbs.client import PbsClient
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.transport import Result
from headway_adapters.user_side.base import QueueUser, own_host
from headway_adapters.user_side.words import checked


class PbsUser(QueueUser):
    """See :class:`headway.user_side.UserSide`. ``options``: ``queue``, "workq" without it, and those of the
    adapter."""

    grain = 1.0
    gone = ("Unknown Job", "Job has finished", "Request invalid for state of job")
    ending = ("qdel",)
    default = "workq"
    kinds = (PbsOptions, PbsAdapter, PbsClient)

    def submission(self, job: Submission) -> tuple[str, ...]:
        return submission(job, self.queue)

    def submitted(self, result: Result) -> str:
        return writer.job(result.text.strip())

    def shrinking(self, job: str, seconds: float) -> tuple[str, ...]:
        return shrinking(job, seconds)

    def checked_id(self, job: str) -> str:
        return writer.job(job)

    def allocation(self, environment: Mapping[str, str]) -> Allocation | None:
        return allocation(environment, os.uname().nodename)

    def on_each_node(self, argv: Sequence[str], placement: Placement) -> tuple[str, ...]:
        # Once on each host of the job.
        return ("pbsdsh", "-u", "--", *argv)


def submission(job: Submission, queue: str) -> tuple[str, ...]:
    """``qsub`` of a program, without a script."""
    checked(job)
    memory = f":mem={-(-job.memory // 1024)}kb" if job.memory else ""
    return (
        "qsub", "-N", job.name[:15], "-q", queue, "-l", f"select={job.processors}:ncpus=1{memory}",
        "-l", f"walltime={writer.walltime(job.walltime)}", "-j", "oe", "-o", job.output, "-r", "n",
        *(["-A", job.account] if job.account else []), "--", *job.argv,
    )  # fmt: skip


def shrinking(job: str, seconds: float) -> tuple[str, ...]:
    """Make a waiting job one of one processor."""
    limit = f"walltime={writer.walltime(seconds)}"
    return ("qalter", "-l", "select=1:ncpus=1", "-l", limit, writer.job(job))


def allocation(environment: Mapping[str, str], here: str) -> Allocation | None:
    """What PBS_* and the file of nodes say; ``here`` is this host. Raises :class:`Failure`."""
    job, file = environment.get("PBS_JOBID"), environment.get("PBS_NODEFILE")
    if not job or not file:
        return None
    try:
        lines = Path(file).read_text().split()
    except OSError as error:
        raise Failure(f"PBS_NODEFILE {file}: {error.strerror}") from error
    if not lines:
        raise Failure(f"PBS_NODEFILE {file}: expected the names of hosts, found none")
    return Allocation(job, tuple(Counter(lines).items()), own_host(lines, here) or lines[0])
