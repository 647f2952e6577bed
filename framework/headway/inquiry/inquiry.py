"""One scheduler between two of its steps: what every report and every sentence is made from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headway.decisions import Decision, Start
from headway.scheduler import Scheduler, plain_clock
from headway.state import Domain, Job, State, Status
from headway.state.queues import stands_in
from headway.view.owed import Check, all_of_them

#: Whether the asking user may know of a job.
Sees = Callable[[Job], bool]
#: What a job is called of which the asking user may not know.
HIDDEN = "another user's job"
#: How sentences of plugins name a job; a point behind it ends the sentence.
_NAMED_JOB = re.compile(r"\b[Jj]ob ([^\s,;:()'\"]*[^\s,;:()'\".])")


def everything(_: Job) -> bool:
    """Every job may be seen."""
    return True


def seen_by(user: str | None) -> Sees:
    """What a user sees who may know of the own jobs only; None: a user who may know of all."""
    if user is None:
        return everything

    def own(job: Job) -> bool:
        return job.user == user

    return own


@dataclass(eq=False)
class Inquiry:
    """What is asked of a scheduler between two steps. It is of no use after the next step."""

    scheduler: Scheduler
    #: Writes a time for a person.
    clock: Callable[[float], str] = plain_clock
    #: Decisions that the scheduler made and that are not carried out: what would be done now.
    wished: Sequence[Decision] = ()
    #: Of the other jobs, those are named that the asking user may see.
    sees: Sees = everything
    #: All jobs that the asking user may see, in any order; None: that is to be asked of each job.
    seen: Collection[Job] | None = None
    #: Is called before a booking is made that a policy owes; raises :class:`headway.view.owed.Enough` once
    #: no more are to be made.
    check: Check = all_of_them
    #: The jobs whose bookings were not made because it was enough: by id the words for why.
    unfinished: dict[str, str] = field(default_factory=dict)
    #: Domain -> the processors of no job of its queue, of the first, of the first two, ..., as far as these
    #: were asked for. Questions after one cycle may share it.
    sums: dict[str, list[int]] = field(default_factory=dict)

    @property
    def sees_all(self) -> bool:
        return self.sees is everything

    @property
    def state(self) -> State:
        return self.scheduler.state

    def queue(self, domain: Domain) -> Sequence[Job]:
        """The jobs of a queue in the order in which the last cycle served them; behind these, the jobs that
        came since."""
        found = self._queues.get(domain.name)
        if found is None:
            found = self._queues[domain.name] = served_order(self.scheduler, domain)
        return found

    @cached_property
    def _queues(self) -> dict[str, Sequence[Job]]:
        return {}

    @cached_property
    def wished_starts(self) -> dict[str, Start]:
        """The wished starts by job id."""
        return {decision.job_id: decision for decision in self.wished if isinstance(decision, Start)}

    @cached_property
    def suspended(self) -> tuple[Job, ...]:
        """The jobs that are suspended, in the order in which they came."""
        state, suspended = self.state, Status.SUSPENDED
        if state.cluster.suspended_lend and (state.nodes.lenders.any() or not len(state.nodes)):
            # A job that lends its processors is in no list of running jobs.
            return tuple([job for job in state.jobs.values() if job.status is suspended])
        found = {
            job
            for domain in state.domains.values()
            for job in (*(entry[3] for entry in domain.running), *domain.background.values())
            if job.status is suspended
        }
        return tuple(sorted(found, key=lambda job: job.seq))

    def ids(self, jobs: Iterable[Job]) -> tuple[str, ...]:
        """The ids of those of the jobs that the asking user may know of."""
        return tuple([job.id for job in jobs if self.sees(job)])

    def called(self, job: Job) -> str:
        """What a job is called in a sentence: ``job 12``, or :data:`HIDDEN`."""
        return f"job {job.id}" if self.sees(job) else HIDDEN

    def told(self, text: str) -> str:
        """A plugin's or a batch system's sentence, in which no job is named that the user may not know of."""
        if self.sees_all:
            return text
        jobs = self.state.jobs

        def may_be_named(name: str) -> bool:
            job = jobs.get(name)
            return job is None or self.sees(job)

        return without_jobs(text, may_be_named)

    def said(
        self, job: Job, question: str, clock: Callable[[float], str] = plain_clock
    ) -> Iterator[tuple[str, str]]:
        """What plugins answer to a question about a job (hook ``explain``), each with its name."""
        for name, answer in self.scheduler.explanations(job, question, clock):
            if answer:
                yield name, self.told(str(answer))


def jobs_named(text: str) -> list[str]:
    """What stands in a sentence where a job's id would stand."""
    return _NAMED_JOB.findall(text)


def without_jobs(text: str, may_be_named: Callable[[str], bool]) -> str:
    """A sentence in which no job is named that may not be. ``may_be_named`` is asked about each of
    :func:`jobs_named`, also about words that are no id."""
    return _NAMED_JOB.sub(lambda found: found[0] if may_be_named(found[1]) else HIDDEN, text)


def served_order(scheduler: Scheduler, domain: Domain) -> Sequence[Job]:
    """See :meth:`Inquiry.queue`: where no plugin orders the queues anew, the queue as it is."""
    if not scheduler.reorders:
        return domain.queue
    waiting = dict.fromkeys(domain.queue)
    served = [job for job in scheduler.views[domain.name].queue if job in waiting]
    return list(dict.fromkeys([*served, *waiting]))


def first_served(scheduler: Scheduler, domain: Domain) -> Job:
    """The first job of :func:`served_order`, which is not made for that; the queue is not empty."""
    queue = domain.queue
    if scheduler.reorders:
        for job in scheduler.views[domain.name].queue:
            if job.status is Status.PENDING and stands_in(queue, job):
                return job
    return queue[0]
