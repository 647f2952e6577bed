"""What a workload's users ask for while their jobs wait or run.

A command about a job's time goes with its work: the user knows what the job needs. So the decision that
answers it, and says so (``asked``), changes both; a decision that answers none changes the limit alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway import events as ev
from headway.workload.jobs import TraceCommand
from headway_adapters.emulated.machine import Machine


class Commands:
    """Tells users' elastic commands, and knows which of them a decision answers."""

    def __init__(self, machine: Machine, commands: Sequence[TraceCommand], latency: float) -> None:
        """``latency``: seconds from a decision until it takes effect."""
        self._machine = machine
        self._latency = latency
        #: Commands about a job's time that were told and are not answered yet, by job: (time, ET or RT).
        self._about_time: dict[str, list[tuple[float, str]]] = {}
        for command in commands:
            machine.agenda.at(command.time, self._tell, command)

    def _tell(self, command: TraceCommand) -> None:
        now = self._machine.now
        if command.command in ("ET", "RT"):
            self._about_time.setdefault(command.job_id, []).append((now, command.command))
        self._machine.news.append(
            ev.ElasticCommandReceived(now, command.job_id, command.command, command.amount)
        )

    def answered(self, job_id: str, kind: str) -> bool:
        """Whether a command of this kind is what a decision that is carried out now answers.

        Commands are answered in the instant in which they come; a command that was not has been refused.
        """
        told = self._about_time.get(job_id)
        if told is None:
            return False
        told[:] = [command for command in told if command[0] + self._latency >= self._machine.now]
        for at, (_, command) in enumerate(told):
            if command == kind:
                del told[at]
                return True
        return False
