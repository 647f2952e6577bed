"""Slurm, as one of its users: ``squeue`` and ``scontrol show``, ``sbatch``, ``scancel``; and ``scontrol
update`` for one thing alone, to make a waiting job smaller."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.adapter.user_side import Allocation, Submission
from headway.decisions import Annotate
from headway.errors import Failure, UserError
from headway_adapters.polling.adapter import validated
from headway_adapters.polling.remarks import noted
from headway_adapters.slurm import SlurmAdapter, hostlist, writer
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.reader import records
from headway_adapters.transport import Result, Transport
from headway_adapters.user_side.base import CommandUser
from headway_adapters.user_side.words import checked, queue_name

#: Of the submitter's environment a worker needs no more; SLURM_* comes by itself.
_EXPORT = "HOME,PATH,LANG"
_COUNTS = re.compile(r"([0-9]+)(?:\(x([0-9]+)\))?")


class SlurmUser(CommandUser):
    """See :class:`headway.adapter.user_side.UserSide`. ``options``: ``queue`` (a partition; without it the
    default partition), and the options of the adapter."""

    grain = 60.0
    gone = (*writer.ALREADY, "Invalid job id")
    ending = ("scancel",)
    hears = True

    def __init__(self, options: Mapping[str, Any], transport: Transport | None = None) -> None:
        given = {key: value for key, value in options.items() if key != "queue"}
        queue = options.get("queue") or ""
        if not queue:
            probe = validated(SlurmOptions, {**given, "partitions": ["any"]})
            reading = SlurmClient(probe, read_only=True, transport=transport)
            queue = default_partition(reading.look([("scontrol", "-o", "show", "partition")])[0].text)
        made = validated(SlurmOptions, {**given, "partitions": [queue_name(queue)]})
        adapter = SlurmAdapter(made, read_only=True, transport=transport)
        super().__init__(adapter, SlurmClient(made, read_only=False, transport=transport), queue)

    def submission(self, job: Submission) -> tuple[str, ...]:
        return submission(job, self.queue)

    def submitted(self, result: Result) -> str:
        return writer.job(result.text.strip().split(";")[0])

    def shrinking(self, job: str, seconds: float) -> tuple[str, ...]:
        return shrinking(job, seconds)

    def postponing(self, job: str) -> Sequence[Sequence[str]]:
        # It was submitted as one that Slurm does not start again by itself.
        return ("scontrol", "update", f"JobId={job}", "Requeue=1"), ("scontrol", "requeuehold", job)

    def releasing(self, job: str) -> Sequence[str]:
        return ("scontrol", "release", job)

    def checked_id(self, job: str) -> str:
        return writer.job(job)

    def allocation(self, environment: Mapping[str, str]) -> Allocation | None:
        return allocation(environment)

    def notes(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        if not environment.get("SLURM_JOB_ID"):
            return {}
        return noted(self._comment(environment["SLURM_JOB_ID"]))[1]

    def note(self, environment: Mapping[str, str], key: str, value: str) -> None:
        job = environment.get("SLURM_JOB_ID", "")
        plan = writer.plan(Annotate(writer.job(job), key, value), now=0.0, comment=self._comment(job))
        for argv in plan.steps:
            self._must(self._client.run(argv))

    def _comment(self, job: str) -> str:
        """What is written at the job in which this process runs, of an array its own element."""
        # Not of "scontrol show job", where a comment's own words look like the next keys.
        result = self._client.run(("squeue", "--noheader", f"--jobs={writer.job(job)}", "--format=%k"))
        if not result.ok:
            raise self._failure(result)
        comment = result.text.strip()
        return "" if comment in ("(null)", "N/A") else comment

    def elsewhere(
        self, argv: Sequence[str], allocation: Allocation, environment: Mapping[str, str]
    ) -> tuple[tuple[str, ...], ...]:
        others = allocation.others
        count = len(others)
        return ((
            "srun", f"--nodelist={','.join(others)}", f"--nodes={count}", f"--ntasks={count}",
            "--ntasks-per-node=1", "--overcommit", "--cpu-bind=none", "--kill-on-bad-exit=0", *argv,
        ),)  # fmt: skip


def default_partition(text: str) -> str:
    """The default one of ``scontrol -o show partition``. Raises :class:`UserError` if there is none."""
    found = records(text, "PartitionName")
    for record in found:
        if record.get("Default") == "YES":
            return record["PartitionName"]
    known = ", ".join(sorted(record["PartitionName"] for record in found)) or "none"
    raise UserError(f"--queue: Slurm has no default partition; expected one of its partitions: {known}")


def submission(job: Submission, queue: str) -> tuple[str, ...]:
    """``sbatch``: the program must be a script, which the console script of headway is."""
    checked(job)
    return (
        "sbatch", "--parsable", f"--job-name={job.name}", f"--partition={queue}",
        f"--ntasks={job.processors}", f"--time={writer.minutes(job.walltime)}", f"--export={_EXPORT}",
        f"--output={job.output.replace('%', '%%')}", "--open-mode=append", "--no-requeue",
        *([f"--account={job.account}"] if job.account else []),
        *([f"--mem-per-cpu={-(-job.memory // 2**20)}M"] if job.memory else []), *job.argv,
    )  # fmt: skip


def shrinking(job: str, seconds: float) -> tuple[str, ...]:
    """Make a waiting job one of one processor."""
    return (
        "scontrol", "update", f"JobId={writer.job(job)}", "NumTasks=1", "NumCPUs=1", "NumNodes=1-1",
        f"TimeLimit={writer.minutes(seconds)}",
        # One that was put back Slurm would leave for two minutes.
        "StartTime=now",
    )  # fmt: skip


def allocation(environment: Mapping[str, str]) -> Allocation | None:
    """What SLURM_* says. Raises :class:`Failure` if it cannot be read."""
    job, names = environment.get("SLURM_JOB_ID"), environment.get("SLURM_JOB_NODELIST")
    if not job or not names:
        return None
    try:
        nodes = hostlist.expand(names)
    except ValueError as error:
        raise Failure(f"SLURM_JOB_NODELIST: {error}") from error
    counts: list[int] = []
    for part in environment.get("SLURM_JOB_CPUS_PER_NODE", "").split(","):
        found = _COUNTS.fullmatch(part.strip())
        if found is None:
            raise Failure(f"SLURM_JOB_CPUS_PER_NODE: expected numbers such as 4(x2),1, found {part!r}")
        counts += [int(found[1])] * int(found[2] or 1)
    if len(counts) != len(nodes):
        raise Failure(f"expected processors for each of {len(nodes)} nodes, found {len(counts)}")
    here = environment.get("SLURMD_NODENAME") or nodes[0]
    return Allocation(job, tuple(zip(nodes, counts, strict=True)), here)
