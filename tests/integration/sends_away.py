"""A plugin that sends each job of cluster north to cluster south, once in a run."""

from __future__ import annotations

from collections.abc import Iterable

from headway.decisions import Decision, Route
from headway.hookspecs import hookimpl
from headway.state import State


class SendsAway:
    """Jobs of north go south."""

    def __init__(self) -> None:
        self.sent: set[str] = set()

    @hookimpl
    def react(self, state: State) -> Iterable[Decision] | None:
        for job in list(state.jobs.values()):
            if job.pool.name == "north:batch" and job.id not in self.sent and job.status.value == "pending":
                self.sent.add(job.id)
                yield Route(job.id, "south:batch", "it is empty there")
