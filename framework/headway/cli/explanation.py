"""What ``headway explain`` found, from the daemon, the cluster or the journal: for a person, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headway.adapter import StartsWait
from headway.cli.common import wall_clock
from headway.errors import Failure
from headway.inquiry.reports import BeforeReport, JobReport, PlanAccuracy, PlanHistory, SoonerReport
from headway.service.protocol import Explain, Explained, OutageReport

if TYPE_CHECKING:
    from headway.inquiry import Inquiry
    from headway.state import Job

#: Seconds in which the daemon tells what it knows of a job, after the cycle that goes on; and for which a
#: daemon is waited for that is not there.
_ANSWER_PATIENCE, _ABSENCE_PATIENCE = 10.0, 0.5


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a job waits, and what is known of its start: what ``headway explain --json`` prints. Times are
    seconds since 1970, of a recorded dry run seconds of its own clock."""

    #: The whole id, as the batch system has it.
    id: str
    #: "daemon", "cluster" (a fresh look at it) or "journal" (the last recorded run, at its end).
    says: str
    #: For a person.
    sentences: tuple[str, ...] = ()
    #: The time of the daemon's cycle that this is the state after.
    as_of: float | None = None
    #: None: it is an array, or not in the cluster's queue any more.
    job: JobReport | None = None
    #: The jobs before it; None: it is in no queue.
    before: BeforeReport | None = None
    #: What the daemon planned for it over time, and how good such plans were lately.
    plan_history: PlanHistory | None = None
    plan_accuracy: PlanAccuracy | None = None
    #: What would let it start now.
    sooner: tuple[SoonerReport, ...] = ()
    starts_waiting: tuple[StartsWait, ...] = ()
    #: Clusters that do not answer.
    outages: tuple[OutageReport, ...] = ()
    #: What the journal says about the job, in sentences, and why its last start failed, if it did.
    history: tuple[str, ...] = ()
    last_failure: str = ""


@dataclass(frozen=True)
class Told:
    """An explanation, and what of it is printed for a person."""

    explanation: Explanation
    lines: list[str]
    #: It is the first in its queue, and the daemon planned no start: a policy books it once other jobs could
    #: be backfilled. A fresh look foretells its start.
    is_unplanned_head: bool = False
    #: Of a scheduler of this process.
    job: Job | None = None

    def with_lines(self, more: Sequence[str]) -> Told:
        """The same with more sentences."""
        lines = [*self.lines, *more]
        explanation = msgspec.structs.replace(self.explanation, sentences=tuple(lines))
        return replace(self, lines=lines, explanation=explanation)


def from_daemon(
    path: Path | None, job_id: str, *, several: bool, alone: bool = False
) -> tuple[Told | None, str]:
    """What the daemon at this socket says of a job; None if it says nothing, and why, if there may be a
    daemon. ``several``: starts that wait are told with the name of their cluster. ``alone``: the cluster
    cannot be looked at instead."""
    from headway.service.client import ask

    if path is None:
        return None, ""
    try:
        reply = ask(path, Explain(job_id), timeout=_ANSWER_PATIENCE, patience=_ABSENCE_PATIENCE)
    except Failure as error:
        return None, str(error)
    found = reply.found
    if not isinstance(found, Explained) or reply.as_of is None:
        return None, f"the daemon has no answer ({reply.reason or reply.outcome})"
    job = found.job
    unplanned = job is not None and job.position is not None and job.planned_start is None
    lines = [*found.sentences, *found.remembered]
    if unplanned:
        fresh = "" if alone else "; `headway explain --fresh` foretells one"
        lines.append(f"The daemon has planned no start for it yet{fresh}.")
    explanation = Explanation(
        found.id, "daemon", tuple(lines), reply.as_of, job, found.before, found.plan_history,
        found.plan_accuracy, found.sooner, found.starts_waiting, found.outages,
    )  # fmt: skip
    lines += [f"{f'{wait.cluster}: ' if several else ''}{wait.sentence}." for wait in found.starts_waiting]
    lines += [
        f"{outage.cluster} has not answered since {wall_clock(outage.since)}: {outage.message}."
        for outage in found.outages
    ]
    lines.append(f"So says the daemon, as of its cycle at {wall_clock(reply.as_of)}.")
    return Told(explanation, lines, unplanned and job is not None and job.position == 1), ""


def looked_up(inquiry: Inquiry, job_id: str, says: str) -> Told:
    """What a scheduler of this process says of a job after its last step."""
    from headway.inquiry.arrays import array_lines
    from headway.inquiry.before import before
    from headway.inquiry.jobs import job_report
    from headway.inquiry.sentences import find_job, job_lines
    from headway.inquiry.sooner import sooner

    job = find_job(inquiry.scheduler, job_id)
    if job is None:
        lines = array_lines(inquiry, job_id)
        return Told(Explanation(job_id, says, tuple(lines)), lines)
    helps = sooner(inquiry, job)
    ahead = before(inquiry, job)
    lines = job_lines(inquiry, job, helps, ahead)
    explanation = Explanation(
        job_id, says, tuple(lines), None, job_report(inquiry, job), ahead, sooner=tuple(helps)
    )
    return Told(explanation, lines, job=job)
