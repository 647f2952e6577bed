"""What workers and the manager say to each other, over the bundle's link.

A worker tells how it is, and the manager answers with all that it wishes: nothing is lost if a message is,
and either side may begin again at any time.
"""

from __future__ import annotations

import msgspec


class Launch(msgspec.Struct, frozen=True):
    """What is to run on a node now. Another number than before ends all that runs, and starts this."""

    number: int
    #: (process, counted from 0; index of the processor on this node).
    processes: tuple[tuple[int, int], ...] = ()
    #: Variables of all these processes.
    variables: dict[str, str] = {}
    #: Host -> processes on it, for a command that starts them itself.
    hosts: tuple[tuple[str, int], ...] = ()


class Orders(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The manager's answer to a report. Whatever else comes is none: what runs goes on."""

    launch: Launch
    #: How many signals were sent since the launch, and the last signal's name.
    signals: int = 0
    signal: str = ""
    #: The worker is to end, with this exit code.
    leave: int | None = None


class Report(msgspec.Struct, frozen=True):
    """How a worker is."""

    job: str
    node: str
    #: Its whole subjob: (node, processors).
    placement: tuple[tuple[str, int], ...]
    #: Another for each life of a worker.
    life: str
    #: The launch that it carried out last.
    launch: int = 0
    #: Processes of it that run.
    live: int = 0
    #: Process -> exit code (128 + the signal's number), of processes that ended by themselves.
    ended: dict[int, int] = {}
    signals: int = 0
    #: It was told to end by the batch system.
    leaving: bool = False
    #: The number of the first process on this node, for tools that dump processes.
    first: int = 0


class Cancel(msgspec.Struct, frozen=True, tag_field="ask", tag="cancel"):
    """A user's wish: end the bundle."""


class Told(msgspec.Struct, frozen=True, tag_field="ask", tag="report"):
    """A worker's report."""

    report: Report


Message = Told | Cancel
