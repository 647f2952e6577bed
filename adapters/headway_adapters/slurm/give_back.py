"""Hand control back to Slurm: release the jobs that headway holds, and no others.

A job is headway's when its AdminComment says so; the holds of users and of administrators stay. A node list
that headway left is replaced by what the job's user had asked for, and the reservations that headway keeps
for dedicated jobs are removed: Slurm does not know that they are theirs.

``headway give-back`` does it. ``python -m headway_adapters.slurm.give_back PARTITION...``, which reads no
configuration, still works and goes with the next version.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import structlog

from headway.adapter import Given
from headway.cli.log_output import set_up_log
from headway.config import LogConfig
from headway.errors import HeadwayError, UserError
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.giving_back import PollingGivingBack
from headway_adapters.polling.words import Argv
from headway_adapters.slurm import marker, reader, together, writer
from headway_adapters.slurm.batches import for_all
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.transport import Result

#: What Slurm says of jobs that no node of their partition could ever run, and of jobs that are over.
_NO_FAULT = (
    "Requested partition configuration not available",
    "Requested node configuration is not available",
    "Invalid job id",
    "already finished",
    "already completing or completed",
)
#: Jobs that are given back together.
_AT_ONCE = 64


class SlurmGivingBack(PollingGivingBack):
    """Gives partitions back to Slurm."""

    client: SlurmClient

    def connect(self, options: SlurmOptions, *, read_only: bool) -> SlurmClient:
        self.pools = options.partitions
        self._options = options
        client = SlurmClient(options, read_only=read_only)
        self._commands = Commands(client, "Slurm", structlog.get_logger("headway.slurm"))
        return client

    def left_to_do(self, pools: Sequence[str]) -> Sequence[str]:
        if self._options.heartbeat is not None and set(pools) == set(self.pools):
            return ()
        shown = self.client.run(("scontrol", "show", "config"))
        if shown.ok and "lua" not in reader.config(shown.text).get("JobSubmitPlugins", "").split(","):
            return ()
        listed = ", ".join(pools)
        return (
            f"New jobs of {listed} enter held until job_submit.lua names them no more: take them out of its "
            "table MANAGED.",
        )

    def give_back(self, pools: Sequence[str], go_on: Callable[[], bool]) -> Iterator[Given]:
        client = self.client
        queue, listed, reserved = client.look(
            [
                ("squeue", "--json", "-a", "-t", "all"),
                ("scontrol", "-o", "show", "partition", "-a"),
                ("scontrol", "-o", "show", "reservation"),
            ]
        )
        site = reader.Site(managed=tuple(pools), array_limit=1_000_000, hold_marker=self._options.hold_marker)
        known = reader.read_partitions(listed.text)
        for name in pools:
            if name not in known:
                raise UserError(
                    f"Slurm has no partition {name!r}. Known: {', '.join(sorted(known)) or 'none'}."
                )
        found = reader.read_jobs(queue.stdout, time.time(), site, known, reader.Nodes(), set())
        for reservation in reader.read_reservations(reserved.text, set()).values():
            detail = found.details.get(reservation.job_id)
            if detail is not None and detail.managed and go_on():
                problem = self._unreserve(reservation.job_id, detail)
                yield _given("reservation", reservation.id, "removed", problem)
        kept = sorted(found.kept)
        for at in range(0, len(kept), _AT_ONCE):
            # They run, held for the case that they are requeued.
            if go_on():
                yield from self._release_running(kept[at : at + _AT_ONCE])
        for job_id, job in sorted(found.jobs.items()):
            if job.state == "suspended" and job.job.pool in pools:
                # Slurm does not resume it, whether headway or an administrator suspended it.
                said = f"suspended: scontrol resume {job_id}, once its processors are free"
                yield Given("job", job_id, "left", said)
        yield from self._waiting(found, go_on)

    def _release_running(self, job_ids: Sequence[str]) -> Iterator[Given]:
        results = self.change_alike(job_ids, writer.release_all)
        for job_id in job_ids:
            result = results.get(job_id)
            problem = "" if self.dry_run else "no answer" if result is None else result.complaint()
            yield _given("job", job_id, "released", "" if result is not None and result.ok else problem)

    def _waiting(self, found: reader.Jobs, go_on: Callable[[], bool]) -> Iterator[Given]:
        """Release what waits for headway; Slurm's own hold of what its user holds becomes the user's.

        In the order of their numbers: with priority/basic Slurm starts jobs in the order of their release.
        """
        done: set[str] = set()
        alike: dict[str, reader.Detail] = {}
        for job_id, detail in sorted(found.details.items(), key=lambda each: _number(each[1])):
            if not (detail.ours and detail.managed) or detail.record in done:
                continue
            done.add(detail.record)
            held, by_user = detail.held or detail.asked, found.jobs[job_id].held_by == "user"
            if detail.route is not None:
                yield Given("job", detail.record, "left", f"stays held: {found.jobs[job_id].reason}")
                continue
            plain = held and not by_user and _is_plain(detail)
            if plain:
                alike[detail.record] = detail
            if alike and (not plain or len(alike) == _AT_ONCE):
                if go_on():
                    yield from self._release_many(alike)
                alike = {}
            if not plain and go_on():
                yield from self._one(detail, held=held, by_user=by_user)
        if alike and go_on():
            yield from self._release_many(alike)

    def _one(self, detail: reader.Detail, *, held: bool, by_user: bool) -> Iterator[Given]:
        try:
            record = writer.record(detail.record)
            if not held:
                # Released already, for a start that did not come, or by a giving back that was interrupted.
                problem = self._all(_as_submitted(record, detail, mark=""))
                yield _given("job", record, "as its user submitted it", problem)
            elif by_user:
                yield from self._hand_to_user(record, detail)
            elif detail.parts:
                yield _given("job", record, "released", self._release_parts(record, detail))
            else:
                yield _given("job", record, "released", self._release(record, detail))
        except writer.Unfit as error:
            yield Given("job", detail.record, "failed", str(error))

    def _hand_to_user(self, record: str, detail: reader.Detail) -> Iterator[Given]:
        steps: list[Sequence[str]] = []
        if detail.shown is not None:
            steps.append(writer.show_no_more(detail, detail.shown, time.time()))
        if reader.said_by_user(detail.comment)[1] == reader.USER_HOLD:
            steps.append(("scontrol", "uhold", record))
        for argv in steps:
            if problem := self.change(argv):
                yield _given("job", record, "", problem)

    def _release(self, record: str, detail: reader.Detail) -> str:
        """Release a job, or the rest of an array, as its user submitted it; what went wrong, "" if nothing
        did. It keeps a mark until it is released: all may end between any two commands."""
        mark = marker.held(nodes_open=detail.nodes_open, came=detail.came)
        return self._all(
            _as_submitted(record, detail, mark=mark), ("scontrol", "release", record), unmark=record
        )

    def _release_many(self, details: Mapping[str, reader.Detail]) -> Iterator[Given]:
        """The same for jobs whose mark is all that is to be taken away, with few commands."""
        problems: dict[str, str] = {}

        def do(keys: Iterable[str], write: Callable[[Sequence[str]], Argv]) -> None:
            left = [key for key in keys if key not in problems]
            for key, result in self.change_alike(left, write).items():
                if result is None or not result.ok:
                    problems[key] = "no answer" if result is None else result.complaint()

        for nodes_open in (True, False):
            mark = marker.held(nodes_open=nodes_open)
            # The submit filter's hold, which Slurm calls the user's, would not be found again.
            filtered = [
                k for k, each in details.items() if each.from_filter and each.nodes_open is nodes_open
            ]
            do(filtered, partial(writer.take, mark=mark))
        do(details, writer.release_all)
        self.change_alike([key for key in details if key not in problems], _unmark)
        for key in details:
            yield _given("job", key, "released", problems.get(key, ""))

    def change_alike(
        self, keys: Sequence[str], write: Callable[[Sequence[str]], Argv]
    ) -> Mapping[str, Result | None]:
        """The same command for several jobs; what became of each. Of a dry run nothing."""
        return {} if self.dry_run else for_all(self._commands, keys, write)

    def _release_parts(self, leader: str, detail: reader.Detail) -> str:
        """Release a heterogeneous job as its user submitted it; what went wrong, "" if nothing did."""
        steps = together.restore(detail, leader, [part.pin for _, part in detail.parts], mark=False)
        begin = [writer.begin_before(detail.shown, time.time())] if detail.shown is not None else []
        update = ("scontrol", "update", f"JobId={leader}")
        return self._all(
            steps.leader, *steps.others, (*update, *begin, f"AdminComment={marker.held()}"),
            ("scontrol", "release", leader), unmark=leader,
        )  # fmt: skip

    def _all(self, *argvs: Argv, unmark: str = "") -> str:
        """Run commands until one fails; what went wrong, "" if nothing did. Then take the mark of a job away:
        what becomes of that is no matter, the job may be over by then."""
        problem = next((problem for argv in argvs if (problem := self.change(argv))), "")
        if not problem and unmark:
            self.change(("scontrol", "update", f"JobId={unmark}", "AdminComment="))
        return problem

    def _unreserve(self, job_id: str, detail: reader.Detail) -> str:
        """Remove the reservation of a waiting job; what went wrong, "" if nothing did."""
        if detail.pin is not None and detail.pin.reserved:
            # Slurm keeps a reservation that a job names.
            self.change(("scontrol", "update", f"JobId={writer.job(job_id)}", "ReservationName="))
        return self.change(("scontrol", "delete", f"ReservationName={writer.own_reservation(job_id)}"))


def _number(detail: reader.Detail) -> tuple[int, str]:
    """The place of a job, by the number that Slurm gave it."""
    return int(re.split(r"\D", detail.record, maxsplit=1)[0] or 0), detail.record


def _is_plain(detail: reader.Detail) -> bool:
    """Whether nothing but its mark and its hold is headway's."""
    changed = detail.pin is not None or detail.shown is not None or detail.begins_for_us or detail.listed
    return not changed and not detail.parts and detail.record.isdecimal()


def _unmark(job_ids: Sequence[str]) -> Argv:
    named = ",".join(writer.job(one) for one in job_ids)
    return ("scontrol", "update", f"JobId={named}", "AdminComment=")


def _as_submitted(record: str, detail: reader.Detail, *, mark: str) -> Argv:
    """What headway changed of a job, given back, but for its hold."""
    update = ["scontrol", "update", f"JobId={record}", f"AdminComment={mark}"]
    if detail.from_filter:
        update.append("Priority=0")
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
    return tuple(update)


def _given(kind: str, name: str, said: str, problem: str) -> Given:
    if not problem:
        return Given(kind, name, "given back", said)
    if any(words in problem for words in _NO_FAULT):
        # Neither ours nor the operator's to mend.
        return Given(kind, name, "left", f"left as it is, Slurm refuses to change it ({problem})")
    return Given(kind, name, "failed", problem)


def main(argv: Sequence[str] | None = None) -> int:
    """The command of earlier versions; 0: all released that Slurm can release, 1: some could not be, 2: wrong
    usage."""
    partitions = tuple(sys.argv[1:] if argv is None else argv)
    try:
        if not partitions:
            raise UserError("usage: python -m headway_adapters.slurm.give_back PARTITION...")
        for name in partitions:
            writer.name(name, "a partition")
        print("deprecated: use `headway give-back`", file=sys.stderr)
        # Standard output is for what was given back.
        set_up_log(LogConfig(level="warning"))
        failed = 0
        with SlurmGivingBack(SlurmOptions(partitions=partitions)) as giving:
            for given in giving.give_back(partitions, lambda: True):
                print(given.line)
                failed += given.result == "failed"
        return 1 if failed else 0
    except writer.Unfit as error:
        print(error, file=sys.stderr)
        return UserError.exit_code
    except HeadwayError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
