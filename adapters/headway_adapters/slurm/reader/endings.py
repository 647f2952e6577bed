"""How jobs ended that the listing no longer shows: accounting, or ``scontrol show job``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headway.errors import Failure
from headway_adapters.slurm import values
from headway_adapters.slurm.reader.arrays import elements_in
from headway_adapters.slurm.reader.documents import node_names, records, timestamp
from headway_adapters.slurm.reader.states import JOB_STATES

#: Elements of an array that are read; Slurm allows four millions at most.
_MOST_ELEMENTS = 4_000_001


@dataclass(frozen=True)
class Ending:
    """How a job ended, as accounting or ``scontrol show job`` tells it."""

    state: str
    outcome: str
    exit_code: int | None = None
    start_time: float | None = None
    end_time: float | None = None
    nodes: tuple[str, ...] = ()


def read_sacct(text: str) -> dict[str, Ending]:
    """``sacct -n -P -X -o JobID,State,ExitCode,Start,End,NodeList``; the last line of a job counts.

    Elements of an array that ended together are one line, ``12_[3-5]``; a line that cannot be read tells
    nothing.
    """
    found: dict[str, Ending] = {}
    for line in text.split("\n"):
        fields = line.split("|")
        if len(fields) < 6:
            continue
        try:
            ending = _ending(fields[1], fields[2], fields[3], fields[4], fields[5])
        except (Failure, ValueError, OverflowError):
            continue
        if ending is not None:
            for key in _named(*fields[0].partition("_")[::2]):
                found[key] = ending
    return found


#: Parts of Slurm's answers about a job that it does not know (any more).
_GONE = ("Invalid job id", "not found")
#: What must stand once, or everywhere alike: a job's user may write a "Key=" into its name.
_TOLD = ("JobId", "JobState", "ExitCode", "StartTime", "EndTime", "NodeList", "ArrayJobId", "ArrayTaskId")


def says_gone(answer: str) -> bool:
    """Whether a failed ``scontrol show job`` says that there is no such job."""
    return any(sign in answer for sign in _GONE)


def read_job_text(text: str) -> dict[str, Ending]:
    """``scontrol -o show job``, by job. A record that can be read in two ways tells nothing."""
    found: dict[str, Ending] = {}
    for record in records(text, "JobId", unique=_TOLD):
        try:
            ending = _ending(
                record.get("JobState", ""), record.get("ExitCode", ""), record.get("StartTime", ""),
                record.get("EndTime", ""), record.get("NodeList", ""),
            )  # fmt: skip
        except (Failure, ValueError, OverflowError):
            continue
        if ending is not None:
            array, task = record.get("ArrayJobId"), record.get("ArrayTaskId", "")
            for key in _named(array, task) if array and task else (record["JobId"],):
                found[key] = ending
    return found


def _named(job_id: str, tasks: str) -> Iterable[str]:
    """The jobs that ``12`` with the elements ``3-5`` (in brackets, or none) are."""
    listed = tasks.strip("[]")
    if not listed:
        return (job_id,)
    return [f"{job_id}_{task}" for task in elements_in(job_id, listed, _MOST_ELEMENTS, set())]


def _ending(state: str, code: str, start: str, end: str, nodes: str) -> Ending | None:
    words = values.words(state.split(" by ")[0])
    known = JOB_STATES.get(words[0]) if words else None
    if known is None:
        return None
    returned, _, signal = code.partition(":")
    exit_code = None
    if returned.isdecimal():
        exit_code = 128 + int(signal) if signal.isdecimal() and int(signal) else int(returned)
    listed = nodes if nodes not in ("None assigned", "(null)") else ""
    return Ending(
        state=known[0],
        outcome=known[1],
        exit_code=exit_code,
        start_time=timestamp(start),
        end_time=timestamp(end),
        nodes=node_names(listed),
    )
