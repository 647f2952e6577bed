"""``requeue``: a job that moves is ended, put back into its queue, and begins anew on the target."""

from __future__ import annotations

from collections.abc import Sequence

from headway.adapter import Check
from headway.adapter.migration import Machine, MigrationHandler, Move, Reported
from headway.decisions import Migrate, Requeue, Start
from headway.hookspecs import hookimpl
from headway.plugins import Traits
from headway_plugins.migration.options import LeaveOptions
from headway_plugins.migration.relocation import Relocation, Way, same_nodes


class RequeueMove:
    """Moves a job by ending it and beginning it anew on the target. Always possible; what it did is lost.

    It is asked last if it stands last in the configuration: after the handlers that save something.
    """

    name = "requeue"
    Options = LeaveOptions
    traits = Traits(needs=(Requeue, Start), gives=(Migrate,))

    def __init__(self, options: LeaveOptions | None = None) -> None:
        self.options = options or LeaveOptions()

    @hookimpl
    def migrate(self) -> MigrationHandler:
        return self

    def check(self) -> Sequence[Check]:
        return [Check("migration: requeue", True, "needs nothing; the work of the job so far is lost")]

    def suits(self, move: Move) -> str:
        possible = move.target and not same_nodes(move)
        return "" if possible else "requeue saves nothing, so it moves jobs to other nodes only"

    def machine(self, move: Move) -> Machine:
        return Relocation(move, Way(leave_seconds=self.options.leave))

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
