"""Copies of the datasets that jobs lack where they wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway.decisions import Copy
from headway.model.sites import datasets_of
from headway.state import Job, State


def wanted_copies(jobs: Iterable[Job], state: State) -> Iterator[Copy]:
    """Copies to the sites of waiting jobs, each from where it comes soonest; as many at a time as a store
    takes."""
    catalogue = state.catalogue
    assert catalogue is not None
    for job in jobs:
        if job.bound_for or not (needs := datasets_of(job.description.attributes)):
            continue
        site = catalogue.site_of(job.pool.name)
        store = catalogue.store(site)
        for name in catalogue.missing(needs, site):
            if name not in catalogue.datasets or store is None or (name, site) in catalogue.copies:
                continue
            source = catalogue.nearest(name, site)
            coming = sum(1 for _, target in catalogue.copies if target == site)
            full = store.most_copies and coming >= store.most_copies
            if source is not None and not full and not catalogue.why_no_copy(name, source, site):
                yield Copy(name, site, source, f"job {job.id} reads it and waits there")
