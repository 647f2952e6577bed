"""PBS, as one of its users: ``qstat``, ``qsub``, ``qdel``; and ``qalter`` to make a waiting job smaller."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.adapter.user_side import Allocation, Submission
from headway.errors import Failure
from headway_adapters.pbs import PbsAdapter, writer
from headway_adapters.pbs.client import PbsClient
from headway_adapters.pbs.listings import Listings
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.pbs.reader import notes_of
from headway_adapters.polling.remarks import noted
from headway_adapters.transport import Result, Transport
from headway_adapters.user_side.base import QueueUser, own_host
from headway_adapters.user_side.words import checked


class PbsUser(QueueUser):
    """See :class:`headway.adapter.user_side.UserSide`. ``options``: ``queue``, "workq" without it, and the
    options of the adapter."""

    grain = 1.0
    gone = ("Unknown Job", "Job has finished", "Request invalid for state of job")
    ending = ("qdel",)
    default = "workq"
    kinds = (PbsOptions, PbsAdapter, PbsClient)

    _client: PbsClient

    def __init__(self, options: Mapping[str, Any], transport: Transport | None = None) -> None:
        # A job's own path does not lead to PBS's commands; that of its submission does.
        submitted_with = os.environ.get("PBS_O_PATH")
        if "bin_dir" not in options and submitted_with and shutil.which("qstat") is None:
            program = shutil.which("qstat", path=submitted_with)
            options = {**options, "bin_dir": os.path.dirname(program)} if program else options
        super().__init__(options, transport)

    def submission(self, job: Submission) -> tuple[str, ...]:
        return submission(job, self.queue)

    def submitted(self, result: Result) -> str:
        return writer.job(result.text.strip())

    def shrinking(self, job: str, seconds: float) -> tuple[str, ...]:
        return shrinking(job, seconds)

    def postponing(self, job: str) -> Sequence[Sequence[str]]:
        raise Failure("in PBS only operators can put a running job back into the queue")

    def releasing(self, job: str) -> Sequence[str]:
        return ("qrls", job)

    def checked_id(self, job: str) -> str:
        return writer.job(job)

    def allocation(self, environment: Mapping[str, str]) -> Allocation | None:
        return allocation(environment, os.uname().nodename)

    def notes(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        job = environment.get("PBS_JOBID")
        if not job:
            return {}
        record = Listings(self._client, torque=False).asked([job], False, set())[0].get(job)
        if record is None:
            raise Failure(f"qstat: expected the attributes of job {job}, found nothing")
        return noted(notes_of(record))[1]

    def elsewhere(
        self, argv: Sequence[str], allocation: Allocation, environment: Mapping[str, str]
    ) -> tuple[tuple[str, ...], ...]:
        return elsewhere(argv, allocation, environment)


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
    lines = _lines(file)
    return Allocation(job, tuple(Counter(lines).items()), own_host(lines, here) or lines[0])


def elsewhere(
    argv: Sequence[str], allocation: Allocation, environment: Mapping[str, str]
) -> tuple[tuple[str, ...], ...]:
    """``pbsdsh`` counts the lines of the file of nodes. A job's own path does not lead to it; that of the
    submission does. Raises :class:`Failure`."""
    lines = _lines(environment.get("PBS_NODEFILE", ""))
    paths = [environment.get(name, "") for name in ("PATH", "PBS_O_PATH")]
    program = shutil.which("pbsdsh", path=os.pathsep.join(path for path in paths if path))
    if program is None:
        raise Failure("expected pbsdsh in PATH or PBS_O_PATH, to run workers on other nodes; found none")
    return tuple((program, "-n", str(lines.index(host)), "--", *argv) for host in allocation.others)


def _lines(file: str) -> list[str]:
    """The file of nodes: a host for each chunk."""
    try:
        lines = Path(file).read_text().split()
    except OSError as error:
        raise Failure(f"PBS_NODEFILE {file}: {error.strerror}") from error
    if not lines:
        raise Failure(f"PBS_NODEFILE {file}: expected the names of hosts, found none")
    return lines
