"""What an adapter tells of its cluster and of itself while it runs: for operators, metrics and health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Check(msgspec.Struct, frozen=True):
    """One line of ``headway check``: what was looked at, whether it is in order, what was seen."""

    subject: str
    ok: bool
    detail: str
    #: What to do about it when it is not in order, or how to find out.
    remedy: str = ""
    #: False: nothing speaks against it (``ok`` is True), but it cannot be found out from here.
    known: bool = True
    #: Only driving needs it: what only watches can do without.
    driving: bool = False
    #: Driving can do without it, less well.
    helps: bool = False

    def for_driving(self) -> Check:
        """The same, of something that only driving needs."""
        return msgspec.structs.replace(self, driving=True)


class Outage(msgspec.Struct, frozen=True):
    """A cluster that does not answer."""

    cluster: str
    #: Absolute seconds.
    since: float
    message: str


class Oddity(msgspec.Struct, frozen=True):
    """Something about a cluster that its operator should know, and that is not headway's doing."""

    cluster: str
    what: str
    #: How often since the daemon began; for a state of things, of how many it is true.
    count: int
    #: When it was seen last, absolute seconds.
    last: float
    #: The latest, such as which job where.
    detail: str = ""


class StartsWait(msgspec.Struct, frozen=True):
    """Starts that were decided, have their processors, and are not asked for yet."""

    cluster: str
    starts: int
    #: What they wait for, such as "the budget of commands, 300 a minute".
    what: str

    @property
    def sentence(self) -> str:
        """This for a person."""
        verb = "start waits" if self.starts == 1 else "starts wait"
        return f"{self.starts} {verb} for {self.what}"


class CommandCount(msgspec.Struct, frozen=True):
    """How often a program was run for the batch system since the daemon began, and what became of it."""

    cluster: str
    #: The program's name, such as "scontrol".
    command: str
    #: "done"; "failed" (it said so); "silent" (the batch system did not answer); "unknown" (cut off: it
    #: may have had its effect).
    outcome: str
    count: int
    #: Of all of them together, by the wall clock.
    seconds: float = 0.0


class Condition:
    """How a cluster and its adapter are. All of it may be asked from any thread, and changes nothing."""

    def measured_watts(self) -> Mapping[str, float]:
        """Node -> watts that the batch system measured last, for ``headway status``; only of nodes that it
        measures."""
        return {}

    def outages(self) -> Sequence[Outage]:
        """What does not answer now, for ``headway status``."""
        return ()

    def oddities(self) -> Sequence[Oddity]:
        """What an operator should know, for ``headway status``."""
        return ()

    def starts_waiting(self) -> Sequence[StartsWait]:
        """Starts that wait for something else than processors, for ``headway status`` and ``explain``."""
        return ()

    def commands_run(self) -> Sequence[CommandCount]:
        """The programs that were run for the batch system, for ``headway metrics``."""
        return ()

    def vital_signs(self) -> Sequence[Check]:
        """What ``headway health`` reports about the adapter at work, beside :meth:`outages`."""
        return ()
