"""Hand control back to Slurm: release the jobs that headway holds, and only those.

``python -m headway_adapters.slurm.give_back batch [more partitions]``, after headway was stopped and
the submit filter switched off. A job is headway's when its AdminComment says so; the holds of
users and of administrators stay. A node list that headway left is replaced by what the job's
user had asked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

from headway.errors import HeadwayError, UserError
from headway_adapters.slurm import reader, writer
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions


def give_back(client: SlurmClient, partitions: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Release each job that headway holds in these partitions: its id, and what went wrong ("" if
    nothing did). Raises :class:`headway.errors.Failure` when Slurm does not answer."""
    queue, listed = client.look(
        [("squeue", "--json", "-a", "-t", "all"), ("scontrol", "-o", "show", "partition", "-a")]
    )
    site = reader.Site(managed=partitions, array_limit=1_000_000)
    known = reader.read_partitions(listed.text)
    for name in partitions:
        if name not in known:
            raise UserError(f"Slurm has no partition {name!r}. Known: {', '.join(sorted(known)) or 'none'}.")
    found = reader.read_jobs(queue.stdout, time.time(), site, known, reader.Nodes(), set())
    done: set[str] = set()
    for job_id, detail in found.details.items():
        if not (detail.held and detail.ours and detail.managed) or detail.record in done:
            continue
        if found.jobs[job_id].held_by == "user":
            continue
        done.add(detail.record)
        record = writer.record(detail.record)
        update = ["scontrol", "update", f"JobId={record}", "AdminComment="]
        if detail.pin is not None:
            update.append(f"ReqNodeList={writer.nodes(detail.pin.asked)}")
            if detail.pin.most:
                update.append(f"NumNodes={detail.pin.least}-{detail.pin.most}")
        problem = ""
        for argv in (update, ["scontrol", "release", record]):
            result = client.run(argv)
            if not result.ok:
                problem = result.complaint()
                break
        yield record, problem


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 0: all released, 1: some could not be, 2: wrong usage."""
    partitions = tuple(sys.argv[1:] if argv is None else argv)
    try:
        if not partitions:
            raise UserError("usage: python -m headway_adapters.slurm.give_back PARTITION...")
        for name in partitions:
            writer.name(name, "a partition")
        client = SlurmClient(SlurmOptions(partitions=partitions), read_only=False)
        failed = 0
        for job_id, problem in give_back(client, partitions):
            print(f"job {job_id}: {problem or 'released'}")
            failed += bool(problem)
        return 1 if failed else 0
    except writer.Unfit as error:
        print(error, file=sys.stderr)
        return UserError.exit_code
    except HeadwayError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
