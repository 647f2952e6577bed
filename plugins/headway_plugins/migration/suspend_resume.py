"""``suspend-resume``: a move whose nodes stay the same: the job stands still for a moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from headway.adapter import Check
from headway.adapter.migration import Machine, MigrationHandler, Move, Reported
from headway.decisions import Migrate, Requeue, Resume, Suspend
from headway.hookspecs import hookimpl
from headway.plugins import Traits
from headway_plugins.migration.pause import Pause, Times


class SuspendResumeOptions(BaseModel):
    """All times are seconds."""

    model_config = ConfigDict(extra="forbid")
    stop: Annotated[float, Field(gt=0, le=86400)] = Field(
        default=60.0,
        description="seconds within which a job must stand still",
    )
    resume: Annotated[float, Field(gt=0, le=86400)] = Field(
        default=300.0,
        description="seconds within which a job must run again; after that it goes back to its queue",
    )


class SuspendResume:
    """Moves a job whose nodes stay the same: stops it, sees that it stands, lets it run again.

    A job's memory does not leave its nodes, so moves to other nodes are left to the next handler.
    """

    name = "suspend-resume"
    Options = SuspendResumeOptions
    traits = Traits(needs=(Suspend, Resume, Requeue), gives=(Migrate,))

    def __init__(self, options: SuspendResumeOptions | None = None) -> None:
        self.options = options or SuspendResumeOptions()

    @hookimpl
    def migrate(self) -> MigrationHandler:
        return self

    def check(self) -> Sequence[Check]:
        return [Check("migration: suspend-resume", True, "needs nothing but the batch system's suspend")]

    def suits(self, move: Move) -> str:
        if not move.target or move.restart:
            return "suspend-resume saves nothing and restarts nothing"
        source, target = ({node for node, _ in one} for one in (move.source, move.target))
        return "" if source == target else "the job's memory does not leave its nodes"

    def machine(self, move: Move) -> Machine:
        return Pause(move, Times(stop=self.options.stop, resume=self.options.resume))

    def perform(self, move: Move, task: str) -> Reported:
        return Reported(task, True)

    def stop(self) -> None:
        """Nothing takes long."""

    def tidy(self, alive: frozenset[str]) -> Sequence[str]:
        return []

    def for_cluster(self, cluster: str) -> MigrationHandler:
        return self  # It remembers nothing of jobs.

    def carry(self, job: str, there: MigrationHandler, job_there: str, user: str) -> str:
        return ""  # It keeps nothing.
