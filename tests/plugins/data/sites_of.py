"""Federations with data for tests of plugins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from building import Run, traced

from headway import decisions as d
from headway import events as ev
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Dataset, Link, PoolDescription, Site, Sites
from headway.model.sites import datasets_of
from headway.workload.jobs import TraceJob


def federated(
    *sites: Site, links: Iterable[Link] = (), datasets: Iterable[Dataset] = (), size: int = 4
) -> ClusterDescription:
    """Sites with a flat pool ``SITE:q`` each."""
    placed = tuple(msgspec.structs.replace(site, pools=(f"{site.name}:q",)) for site in sites)
    pools = tuple(PoolDescription(f"{site.name}:q", size) for site in sites)
    return ClusterDescription("all", pools, sites=Sites(placed, tuple(links), tuple(datasets)))


def job(
    name: str, data: str = "", seconds: float = 100, submit: float = 0, *, processors: int = 1,
    movable: bool = False, **more: Any,
) -> TraceJob:  # fmt: skip
    """A job ``SITE:NUMBER`` of the pool of its site; ``data``: names with commas between them."""
    attributes = {**({"data": data} if data else {}), **({"movable": "yes"} if movable else {})}
    pool = f"{name.partition(':')[0]}:q"
    return traced(name, processors, seconds, submit, pool=pool, attributes=attributes or None, **more)


def told(run: Run, *kinds: type[ev.Event]) -> list[ev.Event]:
    """Events of these kinds."""
    return [event for event in run.adapter.told if isinstance(event, kinds)]


def decided(run: Run, *kinds: type[d.Decision]) -> list[tuple[float, d.Decision]]:
    """Decisions of these kinds with their times."""
    return [(now, decision) for now, decision in run.decisions if isinstance(decision, kinds)]


class DataAreThere:
    """Fails when a job starts where its data are not, or when a store has more than it can hold."""

    @hookimpl
    def decided(self, decisions: Any, state: Any) -> None:
        catalogue = state.catalogue
        for decision in decisions:
            if isinstance(decision, d.Start):
                started = state.jobs[decision.job_id]
                site = catalogue.site_of(started.pool.name)
                assert not catalogue.missing(datasets_of(started.description.attributes), site)
        for site in catalogue.sites:
            assert catalogue.room(site) >= 0


def why(run: Run, name: str) -> str:
    """Why a job waits at the end of a run."""
    state = run.scheduler.state
    return state.why_waiting(state.jobs[name])
