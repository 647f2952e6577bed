"""Jobs that go to another cluster, or come from one: what Slurm's commands do for it.

The request is rebuilt from what slurmctld knows of the job: changes since its submission count, and what
stands in ``#SBATCH`` lines of the script does not, so that no line of it means a job, a node or a partition
of the other cluster. The script itself goes by standard input. The environment is not known to slurmctld: the
copy has its user's (``--export=NONE``).
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from headway.adapter import Outcome
from headway.errors import Failure
from headway.model import JobDescription, Request
from headway.model.sites import GOES_ON, MOVABLE, Intake
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.remarks import MARK, noted, remarks, unwritable
from headway_adapters.polling.resubmission import (
    LEAVING,
    ROUTED,
    Label,
    Mark,
    Parcel,
    Standing,
)
from headway_adapters.polling.words import Unfit
from headway_adapters.slurm import marker, reader, values, writer
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.world import World

#: The lines by which a script asks its batch system for something, and where it reads no more of them.
_DIRECTIVE = re.compile(rb"^#(SBATCH|PBS|BSUB)\b", re.MULTILINE)
_FIRST_COMMAND = re.compile(rb"^[ \t]*[^#\s]", re.MULTILINE)
USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
_MIB = 1 << 20
#: How long Slurm has a job wait that went back to the queue, and a few seconds of grace.
_AFTER_REQUEUE = 125.0


class SlurmResubmission:
    """:class:`headway_adapters.polling.resubmission.Resubmission` of Slurm."""

    def __init__(
        self, options: SlurmOptions, client: SlurmClient, commands: Commands,
        overlay: Overlay[reader.Detail], world: Callable[[], World | None],
    ) -> None:  # fmt: skip
        self._options = options
        self._client = client
        self._commands = commands
        self._overlay = overlay
        self._world = world

    # ------------------------------------------------------------------ what is there

    def standing(self, job_ids: Collection[str]) -> Mapping[str, Standing]:
        """As :meth:`Resubmission.standing`."""
        found = {}
        for record in self._records():
            one = _standing(record)
            if one is not None and (one.job_id in job_ids or one.mark or one.label or one.came):
                found[one.job_id] = one
        missing = [job_id for job_id in job_ids if job_id not in found]
        if missing:
            world = self._world()
            endings = self._client.endings(missing, accounting=world is not None and world.accounting)
            found.update((job_id, Standing(job_id, "", "unknown")) for job_id in endings.unclear)
            for job_id, ending in endings.found.items():
                # One that has not ended is no single job, or came after the listing.
                state = ending.state if ending.state == "ended" else "unknown"
                cancelled = ending.outcome == "cancelled"
                found[job_id] = Standing(job_id, "", state, ran=bool(ending.nodes), cancelled=cancelled)
        return found

    def _records(self) -> Sequence[reader.JobRecord]:
        (shown,) = self._client.look([("squeue", "--json", "-a", "-t", "all")])
        return reader.decode(shown.stdout, "squeue: the listing of jobs", set()).jobs or ()

    # ------------------------------------------------------------------ a job that leaves

    def parcel(self, job_id: str) -> Parcel:
        """As :meth:`Resubmission.parcel`."""
        records = self._records()
        record = next((one for one in records if str(values.integer(one.job_id)) == job_id), None)
        known, detail = self._overlay.known(job_id), self._overlay.detail(job_id)
        if record is None or known is None or detail is None or known.state != "pending":
            raise Unfit(f"job {job_id} does not wait")
        if known.releasing:
            raise Unfit(f"job {job_id}: a start of it is on its way")
        if why := _why_not(known.job, record, detail):
            raise Unfit(f"job {job_id}: {why}")
        if any(job_id in re.findall(r"[0-9]+", values.text(one.dependency)) for one in records):
            raise Unfit(f"job {job_id}: other jobs wait for it")
        comment = reader.said_by_user(values.text(record.comment))[0]
        if why := unwritable(comment):
            raise Unfit(f"job {job_id}: {why}")
        result = self._client.run(("scontrol", "write", "batch_script", writer.job(job_id), "-"))
        if not result.ok or not result.stdout.startswith(b"#!"):
            why = result.complaint() if not result.ok else "it does not begin with #!"
            raise Unfit(f"job {job_id}: its script cannot be had: {why}")
        tasks = values.integer(record.tasks)
        each = reader.processors_per_task(record, values.integer(record.cpus, 1))
        return Parcel(
            known.job, result.stdout, comment, tasks, each, detail.least_nodes, detail.most_nodes,
            values.text(record.current_working_directory), values.text(record.standard_output),
            values.text(record.standard_error), detail.restarts,
        )  # fmt: skip

    def cancel(self, job_id: str) -> Outcome:
        """As :meth:`Resubmission.cancel`."""
        return self._commands.run_steps([("scancel", "--state=PENDING", writer.job(job_id))])

    def unmark(self, job_id: str) -> Outcome:
        """As :meth:`Resubmission.unmark`."""
        record = self._record(job_id)
        comment = values.text(record.admin_comment)
        mark = marker.held(nodes_open=marker.says_nodes_open(comment), came=marker.origin(comment))
        return self._update(job_id, f"AdminComment={mark}")

    # ------------------------------------------------------------------ a job that comes

    def submit(self, parcel: Parcel, pool: str, label: Label, intake: Intake) -> Outcome:
        """As :meth:`Resubmission.submit`."""
        user = parcel.job.user
        if USER.fullmatch(user) is None or (user == "root" != self._client.user):
            raise Unfit(f"jobs of user {user!r} stay where they are")
        if intake.submit_as:
            before = [word.replace("{user}", user) for word in intake.submit_as]
        elif user == self._client.user:
            before = []
        else:
            raise Unfit(
                f"jobs of user {user} need site.submit_as at the cluster that they go to; without it only "
                f"jobs of {self._client.user} go"
            )
        program = os.path.join(self._options.bin_dir, "sbatch") if self._options.bin_dir else "sbatch"
        argv = [*before, program, *_options(parcel, pool, label, intake.account)]
        try:
            result = self._commands.feed(argv, _without_directives(parcel.script))
        except Failure as error:
            return Outcome(False, str(error))
        return Outcome(True) if result.ok else self._commands.refused(result)

    def mark(self, job_id: str, mark: Mark) -> Outcome:
        """As :meth:`Resubmission.mark`."""
        record = self._record(job_id)
        comment = values.text(record.admin_comment)
        if not marker.is_ours(comment):
            return Outcome(False, f"job {job_id} has an AdminComment that is not headway's")
        pin = marker.parse(comment)
        open_ = (
            marker.says_nodes_open(comment)
            or reader.forgets_nodes(record)
            or (pin is not None and not pin.most)
        )
        came = marker.origin(comment) if mark.kind == LEAVING else ""
        text = marker.of_route(mark, came=came, nodes_open=open_)
        planned = reader.shown_of(record)
        begin = [writer.begin_before(planned, time.time())] if planned is not None else []
        return self._update(job_id, "Priority=0", *begin, f"AdminComment={text}")

    def settle(self, job_id: str) -> Outcome:
        """As :meth:`Resubmission.settle`."""
        record = self._record(job_id)
        comment = values.text(record.admin_comment)
        mark = marker.route(comment)
        if mark is None or not mark.name:
            return Outcome(False, f"job {job_id} is no copy any more")
        text = marker.held(nodes_open=marker.says_nodes_open(comment), came=f"{mark.name}@{mark.submitted}")
        words = ["Priority=0", f"AdminComment={text}"]
        said, word = reader.said_by_user(values.text(record.comment))
        if word:
            # The submit filter's word for the hold with which the copy came.
            words.append(f"Comment={said}")
        return self._update(job_id, *words)

    # ------------------------------------------------------------------ both

    def _record(self, job_id: str) -> reader.JobRecord:
        for record in self._records():
            if str(values.integer(record.job_id)) == job_id:
                return record
        raise Failure(f"Slurm lists no job {job_id}")

    def _update(self, job_id: str, *words: str) -> Outcome:
        return self._commands.run_steps([("scontrol", "update", f"JobId={writer.job(job_id)}", *words)])


def _standing(record: reader.JobRecord) -> Standing | None:
    """A job for routes; None for elements of arrays and parts of heterogeneous jobs, which never go."""
    if values.integer(record.array_job_id) or values.integer(record.het_job_id):
        return None
    state, outcome = reader.job_state(record.job_state, record.nodes, set())
    comment = values.text(record.admin_comment)
    label = None
    if state == "pending":
        words, _ = remarks(noted(reader.said_by_user(values.text(record.comment))[0])[0])
        label = reader.unmarked_label(record, words)
    mark = marker.route(comment)
    return Standing(
        str(values.integer(record.job_id)),
        values.text(record.user_name),
        "running" if state not in ("pending", "ended") else state,
        ran=bool(values.text(record.nodes))
        or values.integer(record.restart_cnt) > (mark.restarts if mark is not None else 0),
        cancelled=state == "ended" and outcome == "cancelled",
        mark=mark,
        label=label,
        came=marker.origin(comment).partition("@")[0],
    )


def _why_not(job: JobDescription, record: reader.JobRecord, detail: reader.Detail) -> str:
    """Why a waiting job stays with its cluster; "" if it may go."""
    words, _ = remarks(noted(reader.said_by_user(values.text(record.comment))[0])[0])
    said = {name: text for name, _, text in (word.strip().partition("=") for word in words)}
    # Its user may have gone on with words of other meaning.
    allowed = says(said, MOVABLE)
    goes_on = any(says(said, word) for word in GOES_ON)
    request = job.request
    obstacles = (
        (not allowed, f"its user does not allow it (comment {MARK}{MOVABLE}=yes)"),
        (bool(job.array_id), "it is an element of an array"),
        (bool(request.parts), "it is a heterogeneous job"),
        (bool(job.dependencies) or bool(detail.dependency), "it depends on other jobs"),
        (bool(request.required_nodes or request.excluded_nodes), "it names nodes"),
        (bool(job.reservation), "it is submitted to a reservation"),
        (record.batch_flag in (False, 0), "it is interactive and has no script"),
        (job.begin_time is not None and not _of_slurm(job.begin_time, record), "it has a begin time"),
        (job.held, "it is held"),
        (
            detail.restarts > 0 and not goes_on,
            "it ran before and went back to the queue, and its user does not say that it may begin again "
            f"elsewhere (comment {MARK}{', '.join(sorted(GOES_ON))})",
        ),
        (
            any(values.text(one) for one in (record.tres_per_job, record.tres_per_socket,
                                             record.tres_per_task)),
            "it asks for generic resources otherwise than by the node",
        ),
    )  # fmt: skip
    return next((why for holds, why in obstacles if holds), "")


def _of_slurm(begin: float, record: reader.JobRecord) -> bool:
    """Whether Slurm gave a job its begin time because it went back to the queue, which counts as submitted
    then."""
    back = values.seconds(record.submit_time)
    return values.integer(record.restart_cnt) > 0 and back is not None and begin <= back + _AFTER_REQUEUE


def says(said: Mapping[str, str], word: str) -> bool:
    """Whether a comment has a word with any value but "no"."""
    return word in said and said[word].split()[:1] != ["no"]


def _options(parcel: Parcel, pool: str, label: Label, account: str) -> Iterator[str]:
    """What ``sbatch`` is asked for: every value stands behind its option's name."""
    job, request = parcel.job, parcel.job.request
    yield from ("--parsable", "--hold", "--export=NONE", f"--partition={writer.name(pool, 'a partition')}")
    yield f"--comment={_labelled(parcel.comment, label)}"
    yield f"--job-name={job.name}"
    yield f"--time={writer.minutes(request.walltime)}"
    if chosen := account or job.account:
        yield f"--account={writer.name(chosen, 'an account')}"
    yield from _size(parcel)
    yield from _amounts(request)
    for option, text in (("chdir", parcel.directory), ("output", parcel.output), ("error", parcel.error)):
        if text:
            yield f"--{option}={text}"


def _without_directives(script: bytes) -> bytes:
    """The script, whose directives are comments; what it writes into other scripts stays."""
    command = _FIRST_COMMAND.search(script)
    end = command.start() if command is not None else len(script)
    return _DIRECTIVE.sub(rb"# \1", script[:end]) + script[end:]


def _labelled(comment: str, label: Label) -> str:
    """The comment with the label as its first word, and with no earlier one."""
    words = comment.removeprefix(MARK)
    kept = re.sub(rf"(?:^|(?<=,)){ROUTED}=[^,\s]*,?", "", words)
    return f"{MARK}{label.word},{kept}"


def _size(parcel: Parcel) -> Iterator[str]:
    request = parcel.job.request
    if parcel.least_nodes:
        most = f"-{parcel.most_nodes}" if parcel.most_nodes > parcel.least_nodes else ""
        yield f"--nodes={parcel.least_nodes}{most}"
    tasks, each = parcel.tasks, parcel.processors_per_task
    if not tasks or tasks * max(each, 1) != request.processors:
        # Rounded up to cores, or to what its nodes need: as many as it has.
        tasks, each = (request.processors, 1) if not tasks or request.processors % tasks else (
            tasks, request.processors // tasks)  # fmt: skip
    yield f"--ntasks={tasks}"
    if each > 1:
        yield f"--cpus-per-task={each}"
    if request.processors_per_node and request.processors_per_node % max(each, 1) == 0:
        yield f"--ntasks-per-node={request.processors_per_node // max(each, 1)}"
    if request.exclusive:
        yield "--exclusive"


def _amounts(request: Request) -> Iterator[str]:
    least = dict(request.least_sizes)
    if memory := request.memory_per_node or least.get("memory", 0):
        yield f"--mem={math.ceil(memory / _MIB)}M"
    elif request.memory_per_processor:
        yield f"--mem-per-cpu={math.ceil(request.memory_per_processor / _MIB)}M"
    if disk := least.get("disk", 0):
        yield f"--tmp={math.ceil(disk / _MIB)}M"
    if request.gres_per_node:
        yield "--gres=" + ",".join(f"{name}:{count}" for name, count in request.gres_per_node)
    if request.features:
        yield "--constraint=" + "&".join(request.features)
    if request.licences:
        yield "--licenses=" + ",".join(f"{name}:{count}" for name, count in request.licences)
    if request.switches:
        yield f"--switches={request.switches}"
