"""An elastic job J_e: its state, its intervals, and how far its application is by the users' walltimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headway.decisions import Migrate
from headway_plugins.bundling.cases import Choice
from headway_plugins.bundling.model import EQUAL, Interval, Member, Model, progress


class Elastic(msgspec.Struct, eq=False):
    """A job that may run as a bundle. Times are absolute seconds."""

    job_id: str
    pool: str
    model: Model
    #: False: WAIT; True: RUNNING.
    running: bool = False
    #: What was done at ``since``; what is ahead from then on.
    done: float = 0.0
    since: float = 0.0
    intervals: list[Interval] = []
    #: Subjobs that run, by id, in the order of their starts; the job itself once its application runs there.
    members: dict[str, Member] = {}
    #: What was asked for and has not started yet.
    asked: dict[str, Member] = {}
    choice: Choice | None = None
    asked_at: float = 0.0
    #: Two subjobs that end so close to each other are left in one migration; 0: each is left alone.
    together: float = 0.0
    #: Members that have processes since they were distributed last, when that was, and what was done then.
    using: list[str] = []
    moved_at: float | None = None
    safe: float = 0.0
    #: Whether that move was refused; what the move before it had made safe.
    refused: bool = False
    before: float = 0.0
    #: Subjobs submitted so far.
    numbered: int = 0
    #: It was moved to its own request, or began again there: nothing is asked for any more.
    settled: bool = False
    #: J_0 is held: the application ends on its subjobs, or J_0 is released.
    held: bool = False

    @property
    def completion(self) -> float:
        """T_c, the projected completion."""
        return self.intervals[-1].end

    def progress(self, now: float) -> float:
        """The share of the application that is done, by its walltime."""
        return min(1.0, self.done + progress(self.model, self.intervals, now))

    def adopt(self, now: float, intervals: Sequence[Interval], *, together: float) -> None:
        """Follow another plan from now on."""
        self.done, self.since = self.progress(now), now
        self.intervals, self.together = list(intervals), together
        self.running = True

    def present(self, now: float) -> Interval | None:
        """The interval of this moment; the earlier interval has ended."""
        return next((i for i in self.intervals if i.start <= now + EQUAL < i.end), None)

    def may_grow(self, now: float) -> bool:
        """Whether it runs, is not being moved, and has fewer processors than processes."""
        present = self.present(now)
        return present is not None and not present.migrating and present.processors < self.model.processors

    def must_leave(self, migration: Interval) -> bool:
        """Whether its processes were not yet sent where this migration leaves them."""
        return self.moved_at is None or migration.start > self.moved_at + EQUAL

    def staying(self, end: float) -> dict[str, Member]:
        """The members that are left after the migration that ends at ``end``."""
        soon = end + self.together - EQUAL
        return {
            name: member
            for name, member in self.members.items()
            if member.end > end + EQUAL and member.end >= soon
        }

    def sent(self, now: float, members: Mapping[str, Member], why: str, *, restart: bool = False) -> Migrate:
        """The decision that distributes its processes over these members, from now on."""
        if not self.refused:
            self.before = self.safe
        self.using, self.moved_at, self.refused = list(members), now, False
        self.safe = 0.0 if restart else self.progress(now)
        placement = tuple((name, member.processors) for name, member in members.items())
        return Migrate(self.job_id, placement, why, restart=restart)

    def rest(self) -> Model:
        """What a job that waits has to run: all, or what its last checkpoint leaves."""
        model = self.model
        return model._replace(walltime=(1.0 - self.done) * model.walltime) if self.done else model

    def reset(self, *, late: bool = False) -> None:
        """It waits again, with what its last checkpoint holds.

        ``late``: it reached a limit, so less was done than planned, and plans count on nothing any more.
        """
        safe = 0.0 if late else self.before if self.refused else self.safe
        if (1.0 - safe) * self.model.walltime <= EQUAL:
            safe = 0.0
        self.running, self.settled, self.held, self.refused = False, False, False, False
        self.done = self.safe = self.before = safe
        self.intervals, self.members, self.using, self.moved_at = [], {}, [], None

    # ------------------------------------------------------------------ over a restart

    def saved(self) -> dict[str, Any]:
        """As JSON values, without what its model costs, which options say."""
        model = (self.model.processors, self.model.walltime)
        found: dict[str, Any] = msgspec.to_builtins(self)
        return {**found, "model": model}

    @classmethod
    def restored(cls, saved: Mapping[str, Any], costs: Model) -> Elastic:
        """What :meth:`saved` returned, under the costs of this model."""
        job = msgspec.convert({**saved, "model": [*saved["model"]]}, cls)
        job.model = costs._replace(processors=job.model.processors, walltime=job.model.walltime)
        return job
