"""Federations with data for tests of plugins."""

from __future__ import annotations

from typing import Any

from building import Run, traced_at_home

from headway import decisions as d
from headway.hookspecs import hookimpl
from headway.model.sites import datasets_of
from headway.workload.jobs import TraceJob


def job(
    name: str, data: str = "", seconds: float = 100, submit: float = 0, *, processors: int = 1,
    movable: bool = False, **more: Any,
) -> TraceJob:  # fmt: skip
    """A job ``SITE:NUMBER`` of the pool of its site; ``data``: names with commas between them."""
    attributes = {**({"data": data} if data else {}), **({"movable": "yes"} if movable else {})}
    return traced_at_home(name, processors, seconds, submit, attributes=attributes or None, **more)


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
