"""What a search over five sites costs, each with 10,000 queued jobs, and what `explain` costs there.

The search plans the five queues. The policy `conservative` has booked the same queues, a job has come since,
and `explain` tells why a job far down waits. Both are measured in turns.

`make bench ARGS="-s -k metajob"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import sys
from statistics import median
from time import process_time

import numpy as np
import pytest
from building import described, plugged
from gur_sites import metajob, search

from headway.events import Event, JobStarted, JobSubmitted
from headway.model import ClusterDescription, PoolDescription
from headway.scheduler import Scheduler
from headway.service import Peer
from headway.service import protocol as p
from headway.service.answers import Answers
from headway_plugins.coscheduling.emulated_sites import EmulatedSites
from headway_plugins.coscheduling.local_batch import arrivals_of
from headway_plugins.coscheduling.queue_plan import Busy
from headway_plugins.coscheduling.site_book import SiteBook
from headway_plugins.policies.conservative import Conservative
from headway_plugins.workloads.lublin import LublinModel, LublinOptions

pytestmark = pytest.mark.benchmark

SITES, JOBS, NODES = 5, 10_000, 1024
TURNS = 5


def sites() -> EmulatedSites:
    """Sites that are full for an hour, with a queue of the model `lublin` and limits of `tsafrir05`."""
    books = {}
    for number in range(SITES):
        rng = np.random.default_rng(number)
        workload = LublinModel().generate(
            rng, LublinOptions.model_validate({"jobs": JOBS, "processors": NODES})
        )
        queue = [one.job for one in arrivals_of(rng, workload.jobs, NODES)]
        busy = [Busy(-600, 600 * one, NODES // 8) for one in range(1, 9)]
        books[f"S{number}"] = SiteBook(NODES, busy, queue)
    return EmulatedSites(books, now=queue[-1].submit)


class Queues:
    """The same queues in a scheduler, which has booked all jobs."""

    def __init__(self, there: EmulatedSites) -> None:
        pools = tuple(PoolDescription(name, NODES) for name in there.books)
        self._scheduler = Scheduler(ClusterDescription("five", pools), plugged(Conservative()))
        self._answers, now = Answers(), there.now
        self._now, self._last, self._late = now, list[str](), 0
        events: list[Event] = []
        for name, book in there.books.items():
            for at in range(1, 9):
                one = described(f"{name}:r{at}", NODES // 8, 600.0 * (at + 1), now - 600, pool=name)
                events += [JobSubmitted(now, one), JobStarted(now - 600, one.id)]
            for job in book.queue:
                waits = described(f"{name}:{job.id}", job.nodes, job.limit, job.submit, pool=name)
                events.append(JobSubmitted(now, waits))
            self._last.append(waits.id)
        assert self._scheduler.step(now, events) == []

    def arrive(self) -> None:
        """A job comes to each queue."""
        self._late += 1
        self._now += 1.0
        pools = list(self._scheduler.state.pools)
        jobs = [described(f"{pool}:n{self._late}", 64, 3600.0, self._now, pool=pool) for pool in pools]
        assert self._scheduler.step(self._now, [JobSubmitted(self._now, job) for job in jobs]) == []

    def explain(self) -> None:
        """Why a job far down in each queue waits."""
        for job in self._last:
            reply = self._answers.reply(p.Explain(job), Peer("root", True), self._scheduler)
            assert reply.found is not None and reply.found.job.waits_because == "booking"


@pytest.mark.parametrize("option", ["vector first", "window_first", "grant_up_to"])
def test_metajob_over_five_sites(option: str) -> None:
    """A second is aimed at, and the time of an `explain`."""
    books = sites()
    now = int(books.now)
    wanted = metajob(400, 7200, (now, now + 2000 * 86400), **{name: (1, 256) for name in books.books})
    options = {} if option == "vector first" else {option: True, "max_distributions": 50}
    queues = Queues(books)
    searches, explains = [], []
    for _ in range(TURNS):
        there = books.copy()
        queues.arrive()
        began = process_time()
        done = there.run(search(wanted, there, **options))
        between = process_time()
        queues.explain()
        searches.append(between - began)
        explains.append(process_time() - between)
        assert done.outcome == "SUCCESS"
        assert sum(part.nodes for part in done.parts) == wanted.total
    print(
        f"\nmetajob, {SITES} sites with {JOBS:,} queued jobs each, {option}: {median(searches):.2f} s; "
        f"{done.outcome}, {there.costs.calls:,} calls, {done.rounds} rounds, {done.tried} divisions; "
        f"explain of a job of each of {SITES} queues: {median(explains):.2f} s, of one "
        f"{median(explains) / SITES:.3f} s",
        file=sys.__stderr__,
    )
