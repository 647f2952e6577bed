"""Hand control back to Slurm: release the jobs that headway holds, and no others.

``python -m headway_adapters.slurm.give_back batch [more partitions]``, after headway was stopped and
the submit filter switched off. A job is headway's when its AdminComment says so; the holds of
users and of administrators stay. A node list that headway left is replaced by what the job's
user had asked for, and the reservations that headway keeps for dedicated jobs are removed: Slurm
does not know that they are theirs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

from headway.errors import HeadwayError, UserError
from headway.model import FOR_JOB
from headway_adapters.slurm import reader, together, writer
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions

#: What Slurm says of jobs that no node of their partition could ever run, and of jobs that are over.
_NO_FAULT = (
    "Requested partition configuration not available",
    "Requested node configuration is not available",
    "Invalid job id",
    "already finished",
)
#: What is said of a job that an administrator has to resume.
_SUSPENDED = "suspended: scontrol resume"


def give_back(client: SlurmClient, partitions: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Release each job that headway holds in these partitions: its id, and what went wrong ("" if
    nothing did); before that, remove the reservations of waiting jobs.

    Raises :class:`headway.errors.Failure` when Slurm does not answer.
    """
    queue, listed, reserved = client.look(
        [
            ("squeue", "--json", "-a", "-t", "all"),
            ("scontrol", "-o", "show", "partition", "-a"),
            ("scontrol", "-o", "show", "reservation"),
        ]
    )
    site = reader.Site(managed=partitions, array_limit=1_000_000)
    known = reader.read_partitions(listed.text)
    for name in partitions:
        if name not in known:
            raise UserError(f"Slurm has no partition {name!r}. Known: {', '.join(sorted(known)) or 'none'}.")
    found = reader.read_jobs(queue.stdout, time.time(), site, known, reader.Nodes(), set())
    for reservation in reader.read_reservations(reserved.text, set()).values():
        detail = found.details.get(reservation.job_id)
        if detail is not None and detail.managed:
            yield reservation.id, _unreserve(client, reservation.job_id, detail)
    for job_id in sorted(found.kept):
        # It runs, held for the case that it is requeued.
        result = client.run(["scontrol", "release", writer.job(job_id)])
        yield job_id, "" if result.ok else result.complaint()
    for job_id, job in sorted(found.jobs.items()):
        if job.state == "suspended" and job.job.pool in partitions:
            # Slurm does not resume it, whether headway or an administrator suspended it.
            yield job_id, f"{_SUSPENDED} {job_id}, once its processors are free"
    yield from _release_waiting(client, found)


def _release_waiting(client: SlurmClient, found: reader.Jobs) -> Iterator[tuple[str, str]]:
    """Release what waits for headway; Slurm's own hold of what its user holds becomes the user's."""
    done: set[str] = set()
    for job_id, detail in found.details.items():
        held = detail.held or detail.asked
        if not (held and detail.ours and detail.managed) or detail.record in done:
            continue
        if detail.route is not None:
            done.add(detail.record)
            yield detail.record, f"stays held: {found.jobs[job_id].reason}"
            continue
        record = writer.record(detail.record)
        if found.jobs[job_id].held_by != "user":
            done.add(detail.record)
            yield record, _release(client, record, detail)
            continue
        done.add(detail.record)
        steps: list[Sequence[str]] = []
        if detail.shown is not None:
            steps.append(writer.show_no_more(detail, detail.shown, time.time()))
        if reader.said_by_user(detail.comment)[1] == reader.USER_HOLD:
            steps.append(("scontrol", "uhold", record))
        for argv in steps:
            result = client.run(argv)
            if not result.ok:
                yield record, result.complaint()


def _release(client: SlurmClient, record: str, detail: reader.Detail) -> str:
    """Release a job, or the rest of an array, as its user submitted it; what went wrong, "" if nothing
    did."""
    if detail.parts:
        return _release_parts(client, record, detail)
    update = ["scontrol", "update", f"JobId={record}", "AdminComment="]
    if detail.shown is not None:
        update.append(writer.begin_before(detail.shown, time.time()))
    elif detail.begins_for_us:
        update.append("StartTime=now")
    if detail.listed:
        update.append(f"Partition={writer.partitions(detail.listed)}")
    if detail.pin is not None:
        update.append(f"ReqNodeList={writer.nodes(detail.pin.asked)}")
        if detail.pin.most:
            update.append(f"NumNodes={detail.pin.least}-{detail.pin.most}")
    for argv in (update, ["scontrol", "release", record]):
        (answer,) = client.change_all([argv])
        if answer is None or not answer.ok:
            return "no answer" if answer is None else answer.complaint()
    return ""


def _release_parts(client: SlurmClient, leader: str, detail: reader.Detail) -> str:
    """Release a heterogeneous job as its user submitted it; what went wrong, "" if nothing did."""
    steps = together.restore(detail, leader, [part.pin for _, part in detail.parts], mark=False)
    begin = [writer.begin_before(detail.shown, time.time())] if detail.shown is not None else []
    for argv in (steps.leader, *steps.others,
                 ("scontrol", "update", f"JobId={leader}", *begin, "AdminComment="),
                 ("scontrol", "release", leader)):  # fmt: skip
        result = client.run(argv)
        if not result.ok:
            return result.complaint()
    return ""


def _unreserve(client: SlurmClient, job_id: str, detail: reader.Detail) -> str:
    """Remove the reservation of a waiting job; what went wrong, "" if nothing did."""
    if detail.pin is not None and detail.pin.reserved:
        # Slurm keeps a reservation that a job names.
        client.run(["scontrol", "update", f"JobId={writer.job(job_id)}", "ReservationName="])
    result = client.run(["scontrol", "delete", f"ReservationName={writer.own_reservation(job_id)}"])
    return "" if result.ok else result.complaint()


def _is_no_fault(problem: str) -> bool:
    """Whether what went wrong with a job is neither ours nor the operator's to mend."""
    return any(words in problem for words in _NO_FAULT)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 0: all released that Slurm can release, 1: some could not be, 2: wrong usage."""
    partitions = tuple(sys.argv[1:] if argv is None else argv)
    try:
        if not partitions:
            raise UserError("usage: python -m headway_adapters.slurm.give_back PARTITION...")
        for name in partitions:
            writer.name(name, "a partition")
        client = SlurmClient(SlurmOptions(partitions=partitions), read_only=False)
        failed = 0
        for given, problem in give_back(client, partitions):
            if given.startswith(FOR_JOB):
                print(f"reservation {given}: {problem or 'removed'}")
            elif problem.startswith(_SUSPENDED):
                print(f"job {given}: {problem}")
                continue
            elif _is_no_fault(problem):
                print(f"job {given}: left as it is, Slurm refuses to change it ({problem})")
                continue
            else:
                print(f"job {given}: {problem or 'released'}")
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
