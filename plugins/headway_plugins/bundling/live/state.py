"""What the manager knows of its bundle, and what must outlive it."""

from __future__ import annotations

from typing import Any

import msgspec

from headway_plugins.bundling.model import Interval, Member

#: Bundle: nothing runs and subjobs are looked for; the application runs; it is being moved (and runs, or was
#: stopped for it); its processes are being stopped; it is over and jobs are still there; all is done.
STATUSES = ("waiting", "running", "moving", "halting", "ending", "done")


class Subjob(msgspec.Struct):
    """A job that the bundle asked for; number 0 is the placeholder, J_0. Times are absolute seconds."""

    number: int
    processors: int
    #: Seconds.
    walltime: float
    #: When it was decided.
    asked: float
    #: The batch system's id; "": not submitted yet, or not known whether it was.
    job: str = ""
    #: "asked", "queued", "started" (its workers were not heard of yet), "ready", "leaving", "ended";
    #: "postponed": the placeholder was put back into the queue until all is done.
    state: str = "asked"
    submitted: float | None = None
    started: float | None = None
    #: When its limit ends.
    end: float | None = None
    placement: tuple[tuple[str, int], ...] = ()
    #: Why it waits, in the batch system's words, or what else became of it.
    reason: str = ""
    #: The most processes on a processor of it for which it has memory; 0: that was not stated.
    load: int = 0

    @property
    def member(self) -> Member:
        """The subjob as plans see it. It must have started."""
        assert self.end is not None
        processors = sum(count for _, count in self.placement) or self.processors
        return Member(min(processors, self.processors), self.end)

    @property
    def keys(self) -> list[str]:
        """Its processors' names in a layout."""
        found = [f"{self.number}/{node}/{index}" for node, count in self.placement for index in range(count)]
        return found[: self.processors]


class State(msgspec.Struct):
    """A bundle. Times are absolute seconds, shares 0 to 1."""

    status: str = "waiting"
    subjobs: list[Subjob] = []
    #: Numbers of the subjobs on which the application runs.
    members: list[int] = []
    #: Processor -> processes on it, counted from 1.
    layout: dict[str, tuple[int, ...]] = {}
    #: The number of the last order to the workers, and whether it was to stop all.
    launch: int = 0
    halted: bool = True
    signals: int = 0
    signal: str = ""
    #: How often the application was started, and when last.
    executions: int = 0
    began: float | None = None
    #: The plan that is followed, and the share that was done when it began.
    intervals: list[Interval] = []
    base: float = 0.0
    #: The share that the last complete checkpoint holds, and when it was made.
    saved: float = 0.0
    saved_at: float | None = None
    migrations: int = 0
    #: First start of the application, and its end.
    first_start: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    message: str = ""
    #: What happened: (time, text).
    notes: list[tuple[float, str]] = []

    @property
    def completion(self) -> float:
        """T_c, of the plan that is followed; infinite: there is none."""
        last = self.intervals[-1] if self.intervals else None
        return float("inf") if last is None or last.migrating else last.end

    def subjob(self, number: int) -> Subjob:
        return self.subjobs[number]

    @property
    def placeholder(self) -> Subjob | None:
        return self.subjobs[0] if self.subjobs else None


class BundleReport(msgspec.Struct, frozen=True):
    """What ``headway bundle status --json`` tells of a bundle."""

    #: The fields of :class:`State`.
    state: dict[str, Any] | None = None
    #: What is done, from 0 to 1.
    share: float | None = None
    #: Whether its manager runs.
    managed: bool | None = None
    #: How it ended; None: it has not.
    result: dict[str, Any] | None = None
    #: Why nothing is known.
    error: str | None = None


#: By the bundles' names.
Reports = dict[str, BundleReport]
