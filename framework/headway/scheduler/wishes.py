"""Monitor mode: decisions that nothing carries out, each told once while it could still come about.

A start is told once until its job starts or goes, a route until its job is elsewhere or starts, a copy until
the dataset is there, a removal until it is gone. Decisions of other kinds are told each time they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Any

from headway.decisions import Copy, Decision, Drop, Route, Start
from headway.state import State, Status


def _waits(state: State, job_id: str, *statuses: Status) -> bool:
    job = state.jobs.get(job_id)
    return job is not None and job.status in statuses


def _to_start(state: State, start: Start) -> bool:
    return _waits(state, start.job_id, Status.PENDING, Status.STARTING)


def _to_go(state: State, route: Route) -> bool:
    waits = _waits(state, route.job_id, Status.PENDING, Status.WAITING)
    return waits and state.jobs[route.job_id].pool.name != route.pool


def _to_come(state: State, copy: Copy) -> bool:
    return state.catalogue is not None and not state.catalogue.has(copy.dataset, copy.site)


def _to_be_removed(state: State, drop: Drop) -> bool:
    return state.catalogue is not None and state.catalogue.has(drop.dataset, drop.site)


@dataclass(frozen=True)
class _Once:
    """What makes two decisions of one kind the same wish, and whether a wish may still come about."""

    about: Callable[[Any], Hashable]
    open: Callable[[State, Any], bool]


_ONCE: dict[type[Decision], _Once] = {
    Start: _Once(lambda start: start.job_id, _to_start),
    Route: _Once(lambda route: (route.job_id, route.pool), _to_go),
    Copy: _Once(lambda copy: (copy.dataset, copy.site), _to_come),
    Drop: _Once(lambda drop: (drop.dataset, drop.site), _to_be_removed),
}


class Wishes:
    """The decisions that were told and may still come about."""

    def __init__(self) -> None:
        self._told: dict[tuple[type[Decision], Hashable], Decision] = {}

    def forget(self, state: State) -> None:
        """Leave out what cannot come about any more: it is told anew if it is wished for again."""
        self._told = {key: one for key, one in self._told.items() if _ONCE[key[0]].open(state, one)}

    def is_news(self, decision: Decision) -> bool:
        """Whether a decision is to be told; from now on it was."""
        once = _ONCE.get(type(decision))
        if once is None:
            return True
        key = type(decision), once.about(decision)
        if key in self._told:
            return False
        self._told[key] = decision
        return True

    @property
    def starts(self) -> Collection[str]:
        """The jobs whose start was wished for."""
        return {one.job_id for one in self._told.values() if isinstance(one, Start)}

    def __bool__(self) -> bool:
        return bool(self._told)
