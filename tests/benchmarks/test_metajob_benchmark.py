"""What a search over five sites costs, each with 10,000 queued jobs.

`make bench ARGS="-s -k metajob"`; the figures are in docs/performance.md.
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np
import pytest
from gur_sites import metajob, search

from headway_plugins.coscheduling.emulated_sites import EmulatedSites
from headway_plugins.coscheduling.local_batch import arrivals_of
from headway_plugins.coscheduling.queue_plan import Busy
from headway_plugins.coscheduling.site_book import SiteBook
from headway_plugins.workloads.lublin import LublinModel, LublinOptions

pytestmark = pytest.mark.benchmark

SITES, JOBS, NODES = 5, 10_000, 1024


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


@pytest.mark.parametrize("option", ["vector first", "window_first", "grant_up_to"])
def test_metajob_over_five_sites(option: str) -> None:
    """A second is aimed at."""
    there = sites()
    now = int(there.now)
    wanted = metajob(400, 7200, (now, now + 2000 * 86400), **{name: (1, 256) for name in there.books})
    options = {} if option == "vector first" else {option: True, "max_distributions": 50}
    began = process_time()
    done = there.run(search(wanted, there, **options))
    spent = process_time() - began
    print(
        f"\nmetajob, {SITES} sites with {JOBS:,} queued jobs each, {option}: {spent:.2f} s; {done.outcome}, "
        f"{there.costs.calls:,} calls, {done.rounds} rounds, {done.tried} divisions",
        file=sys.__stderr__,
    )
    assert done.outcome == "SUCCESS"
    assert sum(part.nodes for part in done.parts) == wanted.total
