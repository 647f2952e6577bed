"""The processors that jobs take: on a flat pool a number, on nodes shares of each domain on them.

A job that is starting, running or suspended has an entry in the running list of every domain whose
processors it takes; the lists are sorted by expected end.

A job in the background has its processors behind the jobs that have them in front: it is in no running list
and takes nothing of what is free, so nothing of what policies reckon with. :attr:`Domain.background` has it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from heapq import heappush

from headway.model import Placement
from headway.resources import takes_processors_alone
from headway.state.facts import Facts
from headway.state.records import Domain, Job, RunningEntry
from headway.state.watchers import tell_gave, tell_took

#: The tier in which a job runs unless a decision sent it elsewhere.
FOREGROUND = "foreground"
BACKGROUND = "background"


def occupy(state: Facts, job: Job, placement: Placement, start: float) -> None:
    """The job takes its processors, from ``start`` (absolute seconds) on."""
    domain = job.domain
    job.start_time = start
    job.expected_end = expected_end(job, start)
    if job.tier != FOREGROUND:
        _occupy_behind(state, job, placement)
        return
    if domain.flat:
        entry = (job.expected_end, job.seq, job.processors, job)
        insort(domain.running, entry)
        job.entries = ((domain, entry),)
        if state.predict is not None:
            note_predicted(domain, entry)
        domain.free -= job.processors
        domain.touch()
        if state.watchers:
            tell_took(state, job)
        return
    job.placement = placement
    job.taken = job.request
    shares = state.nodes.take(job.taken, placement)
    entries = []
    for name, (processors, usable) in shares.items():
        there = state.domains.get(name)
        if there is None:
            continue
        entry = (job.expected_end, job.seq, processors, job)
        insort(there.running, entry)
        entries.append((there, entry))
        if state.predict is not None:
            note_predicted(there, entry)
        there.free -= usable
        there.touch()
    job.entries = entries
    _note_unknown(state, job)
    if state.tenants is not None:
        state.tenants.enter(job, placement)
    if state.watchers:
        tell_took(state, job)


def _note_unknown(state: Facts, job: Job) -> None:
    """Remember that the job takes its processors of a node as soon as that node is described."""
    if state.nodes.locate(job.placement).known < len(job.placement):
        for name, _ in job.placement:
            if name not in state.nodes.index:
                state.on_unknown.setdefault(name, set()).add(job.id)


def _occupy_behind(state: Facts, job: Job, placement: Placement) -> None:
    domain = job.domain
    job.behind, job.entries = True, ()
    domain.background[job.id] = job
    if not domain.flat:
        job.placement = placement
        job.taken = job.request
        state.nodes.take_behind(job.taken, placement)
        _note_unknown(state, job)
        if state.tenants is not None:
            state.tenants.enter(job, placement)
    domain.news.due = True
    if state.watchers:
        tell_took(state, job)


def expected_end(job: Job, start: float) -> float:
    """When a job that began at ``start`` is expected to end, by its progress if that is known; if it
    was told to go, when it is to be gone."""
    if job.gone_by is not None:
        return job.gone_by
    pace = job.pace
    if pace is None:
        return start + job.paused + job.expected_runtime
    left = max(0.0, job.expected_runtime - pace.done)
    if pace.rate > 0.0:
        return pace.since + left / pace.rate
    # It stands still. If it is not known until when, it goes on at once, and :func:`overdue` looks again.
    return (pace.since if pace.resumes is None else pace.resumes) + left


def release(state: Facts, job: Job) -> None:
    """The job gives back what it has taken; nothing happens if that is nothing."""
    entries = job.entries
    if entries is None:
        return
    job.entries = None
    if state.watchers:
        tell_gave(state, job)
    if job.lends:
        _end_lending(state, job)
        return
    if job.behind:
        _release_behind(state, job)
        return
    if state.tenants is not None:
        state.tenants.leave(job)
    leave_running(entries)
    if job.taken is not None:
        shares = state.nodes.give_back(job.taken, job.placement)
        job.taken = None
        for name, (_, usable) in shares.items():
            if name in state.domains:
                state.domains[name].free += usable
        job.placement = ()


def leave_running(entries: Iterable[tuple[Domain, RunningEntry]]) -> None:
    """A job is in its domains' running lists no longer; flat ones have its processors again."""
    for domain, entry in entries:
        running = domain.running
        del running[bisect_left(running, entry)]
        if domain.flat:
            domain.free += entry[2]
        domain.touch()


def _end_lending(state: Facts, job: Job) -> None:
    """A suspended job that lent its processors goes: what it kept is free now."""
    job.lends = False
    if job.taken is not None:
        for name in state.nodes.end_lending(job.taken, job.placement):
            if name in state.domains:
                state.domains[name].touch()
        job.taken = None
        job.placement = ()
    job.domain.touch()


def _release_behind(state: Facts, job: Job) -> None:
    """It takes nothing from jobs in front, so nothing that a policy has concluded about them is touched."""
    domain = job.domain
    if state.tenants is not None:
        state.tenants.leave(job)
    job.behind = False
    domain.background.pop(job.id, None)
    domain.news.due = True
    if job.taken is not None:
        state.nodes.give_back_behind(job.taken, job.placement)
        if not takes_processors_alone(job.taken):
            domain.touch()
        job.taken = None
        job.placement = ()


def move(state: Facts, job: Job, placement: Placement) -> None:
    """A running job is on other nodes, or has a new size."""
    start = job.start_time if job.start_time is not None else state.now
    release(state, job)
    occupy(state, job, placement, start)


def described(state: Facts, node: str, describe: Callable[[], None]) -> list[Job]:
    """A node is known from now on (``describe`` tells the table): the jobs that were told to be on it before
    take their processors there. Returns the jobs that had lent theirs."""
    told = state.on_unknown.pop(node, ())
    jobs = [state.jobs[name] for name in sorted(told) if name in state.jobs]
    return describe_under(state, node, jobs, describe)


def describe_under(state: Facts, node: str, jobs: Iterable[Job], describe: Callable[[], None]) -> list[Job]:
    """A node is described (``describe`` tells the table), and the jobs of ``jobs`` that are on it take their
    processors there anew, in the domain that it is in by then. Returns the jobs that had lent theirs."""
    return under(state, [job for job in jobs if any(name == node for name, _ in job.placement)], describe)


def under(state: Facts, jobs: Iterable[Job], change: Callable[[], None]) -> list[Job]:
    """What there is changes (``change`` does it) under jobs: jobs that have processors give them back before
    that, and take them anew. Returns the jobs that had lent theirs."""
    there = [
        (job, job.placement, job.expected_end, job.start_time) for job in jobs if job.entries is not None
    ]
    lenders = [job for job, *_ in there if job.lends]
    for job, *_ in there:
        release(state, job)
    change()
    for job, placement, end, start in there:
        occupy(state, job, placement, state.now if start is None else start)
        set_expected_end(state, job, end)
    return lenders


def set_expected_end(state: Facts, job: Job, end: float) -> None:
    """Move a running job's expected end (absolute seconds)."""
    job.expected_end = end
    if job.entries is None:
        return
    moved = []
    for domain, entry in job.entries:
        running = domain.running
        del running[bisect_left(running, entry)]
        entry = (end, *entry[1:])
        insort(running, entry)
        moved.append((domain, entry))
        if state.predict is not None:
            note_predicted(domain, entry)
        domain.news.ends_moved()
    job.entries = moved


def limit(state: Facts, job: Job) -> float:
    """When the cluster ends a running job (absolute seconds)."""
    return (job.start_time if job.start_time is not None else state.now) + job.paused + job.estimate


def note_predicted(domain: Domain, entry: RunningEntry) -> None:
    """A job whose end is expected before its limit may outlive that."""
    job = entry[3]
    if job.pace is None and entry[0] < (job.start_time or 0.0) + job.paused + job.estimate:
        heappush(domain.predicted, entry)
