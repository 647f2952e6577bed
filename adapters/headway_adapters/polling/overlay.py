"""The last look in three states: as it came, as it is with what only headway knows, and as it is told.

A batch system does not know that a node sleeps through the site's own commands, in which tier a job is, or
that a job which leaves its nodes is being moved. What headway knows of that is laid over each look once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Generic

from headway.adapter import Outcome
from headway_adapters.polling.actuators import Actuators
from headway_adapters.polling.agents import Agents
from headway_adapters.polling.look import DetailT, Look
from headway_adapters.polling.moves import Moves
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob


class Overlay(Generic[DetailT]):
    """What was seen last. Read and written on the adapter's thread."""

    def __init__(self, actuators: Actuators, agents: Agents) -> None:
        self._actuators = actuators
        self._agents = agents
        #: The last look as the batch system gave it.
        self.raw: Look[DetailT] | None = None
        #: The same, with what only the actuators and the agents know.
        self.as_it_is: Look[DetailT] | None = None
        #: The same as it is told: jobs that move are where they were when their move began.
        self.shown: Snapshot | None = None
        #: When the last look but one, and the last one, began.
        self.times: tuple[float, float] | None = None
        #: What the notes of jobs are in that were written since the last look.
        self._written: dict[str, str] = {}

    # ------------------------------------------------------------------ taking a look in

    def take(self, look: Look[DetailT]) -> None:
        """Take a look in. :meth:`show` follows, once the moves have seen it."""
        self.times = (self.shown.time, look.snapshot.time) if self.shown is not None else None
        self.raw = look
        known = self._agents.show(self._actuators.show(look.snapshot))
        self.as_it_is = replace(look, snapshot=known)
        self._written.clear()

    def show(self, moves: Moves) -> Snapshot:
        """The look as it is told from now on."""
        assert self.as_it_is is not None
        self.shown = moves.show(self.as_it_is.snapshot)
        return self.shown

    def nodes_changed(self) -> None:
        """A node fell asleep or woke: show it so before the next look."""
        if self.raw is None or self.as_it_is is None or self.shown is None:
            return
        known = self._actuators.show(self.raw.snapshot)
        now = replace(self.as_it_is.snapshot, nodes=known.nodes, power=known.power)
        self.as_it_is = replace(self.as_it_is, snapshot=now)
        self.shown = replace(self.shown, nodes=known.nodes, power=known.power)

    # ------------------------------------------------------------------ what is asked about it

    def known(self, job_id: str) -> SnapshotJob | None:
        """A job as the batch system showed it at the last look."""
        return self.raw.snapshot.jobs.get(job_id) if self.raw is not None else None

    def detail(self, job_id: str) -> DetailT | None:
        """What the last look showed of a job besides; None for a job that it did not show."""
        if self.raw is None or job_id not in self.raw.snapshot.jobs:
            return None
        return self.raw.details.get(job_id)

    @property
    def snapshot(self) -> Snapshot | None:
        """The cluster as it is, as far as the last look and headway know."""
        return self.as_it_is.snapshot if self.as_it_is is not None else None

    def usable(self, node: str) -> bool:
        """Whether the batch system, at the last look, could start jobs on a node."""
        described = self.raw.snapshot.nodes.get(node) if self.raw is not None else None
        return described is not None and described.available

    # ------------------------------------------------------------------ notes of jobs

    def as_written(self, job_id: str, seen: str) -> str:
        """What a job's notes are in, of which the last look has ``seen``."""
        return self._written.get(job_id, seen)

    def remember(self, noted: str, job_id: str, outcome: Outcome) -> Outcome:
        """``outcome``, after which a job's notes are in ``noted`` if it says anything."""
        if noted and outcome.accepted:
            self._written[job_id] = noted
        return outcome
