"""Slurm's answers as documents: JSON of jobs and nodes, and text of one record a line. Pure."""

from __future__ import annotations

import calendar
import json
import re
import time as clock
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from headway.errors import Failure
from headway_adapters.slurm import hostlist, marker, values

MIB = 1 << 20


class JobRecord(msgspec.Struct, gc=False):
    """The fields of a job in Slurm's JSON that we read; everything may be missing, of any form.

    ``admin_comment`` is without the epoch of the daemon that wrote it."""

    job_id: Any = None
    account: Any = None
    admin_comment: Any = None
    array_job_id: Any = None
    array_task_id: Any = None
    array_max_tasks: Any = None
    array_task_string: Any = None
    comment: Any = None
    het_job_id: Any = None
    het_job_id_set: Any = None
    het_job_offset: Any = None
    cpus: Any = None
    cpus_per_task: Any = None
    current_working_directory: Any = None
    batch_flag: Any = None
    dependency: Any = None
    eligible_time: Any = None
    end_time: Any = None
    excluded_nodes: Any = None
    exclusive: Any = None
    exit_code: Any = None
    features: Any = None
    flags: Any = None
    gres_detail: Any = None
    group_name: Any = None
    hold: Any = None
    job_resources: Any = None
    job_state: Any = None
    licenses: Any = None
    licenses_allocated: Any = None
    max_nodes: Any = None
    maximum_switch_wait_time: Any = None
    memory_per_cpu: Any = None
    memory_per_node: Any = None
    minimum_cpus_per_node: Any = None
    minimum_switches: Any = None
    minimum_tmp_disk_per_node: Any = None
    name: Any = None
    nice: Any = None
    node_count: Any = None
    nodes: Any = None
    partition: Any = None
    priority: Any = None
    qos: Any = None
    required_nodes: Any = None
    restart_cnt: Any = None
    resv_name: Any = None
    shared: Any = None
    sockets_per_node: Any = None
    standard_error: Any = None
    standard_output: Any = None
    start_time: Any = None
    state_description: Any = None
    state_reason: Any = None
    submit_time: Any = None
    suspend_time: Any = None
    pre_sus_time: Any = None
    tasks: Any = None
    tasks_per_node: Any = None
    time_limit: Any = None
    tres_per_job: Any = None
    tres_per_node: Any = None
    tres_per_socket: Any = None
    tres_per_task: Any = None
    tres_req_str: Any = None
    user_name: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.admin_comment, str):
            self.admin_comment = marker.without_epoch(self.admin_comment)


class Listing(msgspec.Struct, gc=False):
    """A listing of jobs, of nodes, or of neither."""

    jobs: list[JobRecord] | None = None
    nodes: list[dict[str, Any]] | None = None
    errors: list[Any] | None = None


class _Raw(msgspec.Struct, gc=False):
    """The same, with records that are not decoded."""

    jobs: list[msgspec.Raw] | None = None
    nodes: list[msgspec.Raw] | None = None
    errors: list[Any] | None = None


class _Loose(msgspec.Struct, gc=False):
    """The same, where some of the records are no records."""

    jobs: list[Any] | None = None
    nodes: list[Any] | None = None
    errors: Any = None


def decode(data: bytes, what: str, notes: set[str]) -> Listing:
    """Slurm's JSON. Raises :class:`Failure` when it is no JSON, or carries an error in the place of data.

    Slurm's commands end with status 0 and an ``errors`` list when slurmctld does not answer. A record that
    is none is left out and noted.
    """
    try:
        try:
            listing = msgspec.json.decode(data, type=Listing)
        except UnicodeDecodeError:
            # Slurm writes the bytes that a user gave as a job's name or comment.
            data = data.decode("utf-8", errors="replace").encode()
            listing = _decode_with_odd_ones(data, what, notes)
        except msgspec.DecodeError:
            listing = _decode_with_odd_ones(data, what, notes)
    except (ValueError, RecursionError) as error:
        raise Failure(f"{what}: not the expected JSON ({error}); it begins {data[:60]!r}") from error
    _tell_errors(listing, what, notes)
    return listing


def raw_jobs(data: bytes, what: str, notes: set[str]) -> Sequence[msgspec.Raw | JobRecord] | None:
    """The jobs of Slurm's JSON, each as its own bytes, for :func:`job_record`; None if it lists none.

    Of JSON that is odd they are records. Raises :class:`Failure` as :func:`decode` does.
    """
    try:
        listing = msgspec.json.decode(data, type=_Raw)
    except (ValueError, RecursionError):
        return decode(data, what, notes).jobs
    _tell_errors(listing, what, notes)
    if listing.jobs is None:
        return None
    found = [raw for raw in listing.jobs if memoryview(raw)[:1] == b"{"]
    if len(found) < len(listing.jobs):
        notes.add(f"{what}: entries that are no records were left out")
    return found


def job_record(raw: msgspec.Raw) -> JobRecord:
    """One of :func:`raw_jobs`. Raises :class:`Failure` for what is no JSON."""
    try:
        try:
            return msgspec.json.decode(raw, type=JobRecord)
        except UnicodeDecodeError:
            text = bytes(raw).decode("utf-8", errors="replace")
            return msgspec.json.decode(text, type=JobRecord)
    except (ValueError, RecursionError) as error:
        begins = bytes(raw)[:60]
        raise Failure(f"a job's record: not the expected JSON ({error}); it begins {begins!r}") from error


def _tell_errors(listing: Listing | _Raw, what: str, notes: set[str]) -> None:
    """Raise :class:`Failure` for an error in the place of data, and note one beside data."""
    if not listing.errors:
        return
    first = listing.errors[0]
    if isinstance(first, dict):
        parts = [str(first[k]) for k in ("description", "error", "source") if first.get(k)]
        first = ", ".join(parts) or "an error without a description"
    if not listing.jobs and not listing.nodes:
        raise Failure(f"{what}: {first}")
    notes.add(f"{what} reports an error beside its records: {first}")


def _decode_with_odd_ones(data: bytes, what: str, notes: set[str]) -> Listing:
    try:
        return msgspec.json.decode(data, type=Listing)
    except msgspec.ValidationError:
        loose = msgspec.json.decode(data, type=_Loose)
    except msgspec.DecodeError:
        # Python's own reader takes what JSON does not have: NaN, Infinity.
        loose = msgspec.convert(json.loads(data), _Loose)
    jobs = None if loose.jobs is None else [record for record in loose.jobs if isinstance(record, dict)]
    nodes = None if loose.nodes is None else [record for record in loose.nodes if isinstance(record, dict)]
    left_out = len(loose.jobs or ()) + len(loose.nodes or ()) - len(jobs or ()) - len(nodes or ())
    if left_out:
        notes.add(f"{what}: entries that are no records were left out")
    errors = loose.errors if isinstance(loose.errors, list) else [loose.errors] if loose.errors else None
    records = None if jobs is None else msgspec.convert(jobs, list[JobRecord])
    return Listing(jobs=records, nodes=nodes, errors=errors)


def config(text: str) -> dict[str, str]:
    """``scontrol show config`` as a mapping."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip():
            found[key.strip()] = value.strip()
    return found


def backfill_interval(config: dict[str, str]) -> float:
    """Seconds between two rounds of the backfill scheduler, from :func:`config`."""
    match = re.search(r"\bbf_interval=([0-9]+)", config.get("SchedulerParameters", ""))
    return float(match.group(1)) if match else 30.0


#: The longest time between two rounds of Slurm's backfill scheduler with which heterogeneous jobs are
#: started, seconds: until its round has come, a released job holds up the jobs that are released after it in
#: its partition.
_QUICK_ROUND = 5.0


def starts_heterogeneous(config: dict[str, str]) -> bool:
    """Whether this Slurm starts heterogeneous jobs, and soon enough, from :func:`config`."""
    backfills = config.get("SchedulerType", "sched/backfill") == "sched/backfill"
    return backfills and backfill_interval(config) <= _QUICK_ROUND


_PAIR = re.compile(r"(?:^|\s)([A-Za-z_][A-Za-z0-9_/:]*)=")


def records(text: str, first_key: str, unique: Collection[str] = ()) -> list[dict[str, str]]:
    """``scontrol -o show ...``: one record a line, values up to the next ``Key=``.

    A record in which one of the keys ``unique`` stands twice, with two values, is left out.
    """
    found: list[dict[str, str]] = []
    # Not splitlines: a job's name may hold what else counts as the end of a line.
    for line in text.split("\n"):
        marks = list(_PAIR.finditer(line))
        record: dict[str, str] = {}
        twofold = False
        for at, mark in enumerate(marks):
            stop = marks[at + 1].start() if at + 1 < len(marks) else len(line)
            key, value = mark.group(1), line[mark.end() : stop].strip()
            twofold |= record.setdefault(key, value) != value and key in unique
        if first_key in record and not twofold:
            found.append(record)
    return found


def timestamp(text: str) -> float | None:
    """Seconds of ``2026-11-21T07:03:20``, written in UTC (commands run with TZ=UTC); None if unset."""
    try:
        return float(calendar.timegm(clock.strptime(text, "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None


def node_names(value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(name for item in value for name in node_names(item))
    listed = values.text(value)
    if not listed:
        return ()
    try:
        return hostlist.expand(listed)
    except ValueError as error:
        raise Failure(f"Slurm's names of nodes cannot be read: {error}") from error
