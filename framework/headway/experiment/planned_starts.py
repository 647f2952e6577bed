"""Planned starts beside real ones, from a journal; and what a campaign takes along from a real cluster.

E. Frachtenberg and D. G. Feitelson, "Pitfalls in parallel job scheduling evaluation", JSSPP 2005, pitfall 32:
what was only simulated is not known to hold. A daemon has both sides in its journal: when its policy decided
to start a job (the plan), and when the batch system says that the job began. A run that drives has its plans
carried out; a run that watches (monitor) makes plans that are not carried out, and the batch system's own
scheduler starts the jobs. Both are counted apart.

Of a job the first plan counts, until it begins, ends, is held, is requeued, or the start fails. What a run
finds running when it begins was not started under its eyes and is not counted, unless a run of the same kind
before it had planned it. So a real start is never earlier than its plan; a job that began before there was
a plan for it is ``unplanned``: the scheduler that started it was faster than the policy, or the policy would
not have started it yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headway.decisions import Start
from headway.errors import UserError
from headway.events import (
    DecisionFailed,
    JobEnded,
    JobHeld,
    JobRequeued,
    JobStarted,
)
from headway.journal.latencies import LONGEST, Latencies, measured, together
from headway.journal.latency_summary import QUANTILES
from headway.journal.planned import Plan, Tally
from headway.journal.starts_report import PlannedStarts, StartsReport

if TYPE_CHECKING:
    from headway.journal import Journal

#: Runs whose starts are real: their plans are carried out, or only written down.
DRIVE, MONITOR = "drive", "monitor"


class RealCluster(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a campaign takes along from a real cluster: a file that ``headway starts --out`` writes."""

    cluster: str
    #: When the last thing in it happened, absolute seconds; None: there is nothing.
    until: float | None = None
    latencies: Latencies = Latencies()
    #: By :data:`DRIVE` and :data:`MONITOR`.
    starts: dict[str, PlannedStarts] = {}


def _open_plan(journal: Journal, last: Mapping[int, int], carried_out: bool, job_id: str) -> Plan | None:
    """The plan that a job still had after these cycles, the ``last`` of each run that counts: from its
    history alone."""
    plan: Plan | None = None
    for entry in journal.job_history(job_id):
        what, refused = entry.what, entry.outcome is not None and not entry.outcome.accepted
        if entry.seq > last.get(entry.run_id, -1):
            continue
        if isinstance(what, JobStarted | JobEnded | JobHeld | JobRequeued):
            plan = None
        elif isinstance(what, DecisionFailed):
            plan = None if isinstance(what.decision, Start) else plan
        elif isinstance(what, Start):
            plan = None if carried_out and refused else plan or (entry.time, what.placement)
    return plan


def planned_starts(journal: Journal, since: float = 0.0) -> RealCluster | None:
    """What the daemon of this journal has planned and measured; None: it has no run of a real cluster.

    ``since``: plans from then on, absolute seconds; what is older is read only of jobs that were there then.
    Latencies are the newest, however old they are.
    """
    tallies: dict[str, Tally] = {}
    counted: set[str] = set()
    name, until = None, None
    runs = [run for run in journal.runs() if run.info.mode in (DRIVE, MONITOR)]
    at = {run.id: journal.last_before(run.id, since) for run in runs}
    last = {run_id: seq for run_id, seq in at.items() if seq is not None}
    for run in runs:
        mode, driven = run.info.mode, run.info.mode == DRIVE
        name = run.info.cluster.name
        if mode not in tallies:
            # Jobs of an earlier run may begin in a later one.
            before = {one.id: last[one.id] for one in runs if one.info.mode == mode and one.id in last}
            tallies[mode] = Tally(since, partial(_open_plan, journal, before, driven) if before else None)
        span = journal.span(run.id)
        if span is not None and span[1] >= since:
            tallies[mode].run(journal.cycles(run.id, last.get(run.id)), span[0], carried_out=driven)
        if run.ended_at is None or run.ended_at >= since:
            counted.add(mode)
            until = span[1] if span is not None else until
    if name is None:
        return None
    starts = {mode: tally.summary() for mode, tally in sorted(tallies.items()) if mode in counted}
    return RealCluster(name, until, together(measured(journal)), starts)


def report_of(found: RealCluster, since: float | None) -> StartsReport:
    """What ``headway starts`` tells of a journal; ``since``: absolute seconds."""
    summary = found.latencies.summary()
    latencies = {"": summary} if str(summary) else {}
    return StartsReport(found.cluster, since, found.until, found.starts, latencies)


def encoded(found: RealCluster) -> str:
    """The text of its file."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"


def read_real_cluster(path: Path, where: str) -> RealCluster:
    """What :func:`encoded` made; :class:`UserError`, led by ``where``, if the file is something else."""
    expected = "expected a file of `headway starts -c CONFIG --out FILE`"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=RealCluster)
    except OSError as error:
        raise UserError(f"{where}: {path}: {expected}, found {error.strerror or error}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UserError(f"{where}: {path}: {expected}, found something else ({error})") from error
    one = found.latencies
    if any(not 0 <= seconds <= LONGEST for seconds in (*one.start, *one.end, *one.look)):
        raise UserError(f"{where}: {path}: expected latencies from 0 to {LONGEST:g} s, found others")
    if any(len(starts.later) not in (0, len(QUANTILES)) for starts in found.starts.values()):
        raise UserError(f"{where}: {path}: expected {len(QUANTILES)} quantiles (later), found others")
    return found
