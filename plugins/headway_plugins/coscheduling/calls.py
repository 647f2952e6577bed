"""What a search asks of a site, and what a site answers: the border between the search and the world.

The operations are from section 3 of K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with
User-Settable Reservations, Job Scheduling Strategies for Parallel Processing, 2005. Times are seconds since
the epoch.

| call | means | answers | |---|---|---| | `set` | reserve at the earliest time that has room; a name that is
there is the same reservation again | `Granted`, `Denied`, `TimedOut` | | `cancel` | give the reservation
back; a name that is not there is no error | `Carried`, `Failed`, `TimedOut` | | `show` | all reservations of
the metajob at the site | `Shown`, `TimedOut` | | `bind` | only this job may run in the reservation, and the
job only there | `Carried`, `Failed`, `TimedOut` | | `wait` | no site: let `seconds` pass | `Waited` |
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["set", "cancel", "show", "bind", "wait"]


class Call(msgspec.Struct, frozen=True):
    """One request to one site."""

    kind: Kind
    site: str = ""
    #: Of the reservation.
    name: str = ""
    nodes: int = 0
    #: False: the site may grant fewer nodes, at least 1.
    exact: bool = True
    duration: float = 0.0
    #: The earliest start, and the latest end.
    earliest: float = 0.0
    latest: float = 0.0
    account: str = ""
    user: str = ""
    email: str = ""
    #: Of ``bind`` and ``wait``: the metajob.
    job: str = ""
    #: Of ``wait``.
    seconds: float = 0.0
    #: The first try is 1. Before a later try of ``cancel`` or ``bind`` the driver lets some time pass.
    attempt: int = 1


class Granted(msgspec.Struct, frozen=True, tag="granted"):
    """The reservation exists."""

    start: float
    nodes: int


class Denied(msgspec.Struct, frozen=True, tag="denied"):
    """There is no reservation; ``reason`` is the site's rule, such as ``place`` or ``budget``."""

    reason: str


class TimedOut(msgspec.Struct, frozen=True, tag="timed-out"):
    """It is not known whether the call was carried out."""


class Carried(msgspec.Struct, frozen=True, tag="carried"):
    """A ``cancel`` or ``bind`` was carried out."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A ``cancel`` or ``bind`` was not carried out."""

    message: str = ""


class Found(msgspec.Struct, frozen=True):
    """A reservation that a site has."""

    name: str
    nodes: int
    start: float
    end: float
    state: str = "HELD"
    account: str = ""


class Shown(msgspec.Struct, frozen=True, tag="shown"):
    """What a site has."""

    reservations: tuple[Found, ...] = ()


class Waited(msgspec.Struct, frozen=True, tag="waited"):
    """The time has passed; ``changed``: a competitor changed a site's book since the search began."""

    changed: bool


Answer = Granted | Denied | TimedOut | Carried | Failed | Shown | Waited


def metajob_of(name: str) -> str:
    """The id of the metajob whose reservation has this name, ``<id>-<round>-<machine>``; "": not such a name.

    An id has no hyphen, so ``m1`` never meets the reservations of ``m12``.
    """
    parts = name.split("-", 2)
    return parts[0] if len(parts) == 3 and parts[1].isdigit() and parts[2] else ""
