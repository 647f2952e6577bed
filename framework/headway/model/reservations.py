"""Advance reservations: capacity promised for a time."""

from __future__ import annotations

import msgspec

#: How the id of a reservation begins that headway keeps for one job; the job's id follows. The name
#: alone tells, so it is recognised after a restart and in a batch system that stores only names.
FOR_JOB = "job_"


class Reservation(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Capacity that is kept free from ``start`` until ``end`` for the users and accounts that it names.

    On a flat pool it takes ``processors``; on a node pool it takes whole ``nodes``.
    A job may use it when it names the reservation (:attr:`JobDescription.reservation`), or when it
    is the only job that headway keeps it for (:attr:`job_id`).
    """

    id: str
    #: Absolute seconds; ``end`` is exclusive.
    start: float
    end: float
    pool: str = ""
    processors: int = 0
    nodes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    #: What is kept of the cluster's licences, such as ``(("matlab", 2),)``; there may be nothing else.
    licences: tuple[tuple[str, int], ...] = ()
    #: True when headway made it (and so may change or remove it).
    ours: bool = False
    reason: str = ""

    @property
    def only_licences(self) -> bool:
        """It is made of licences alone, so its jobs may run anywhere."""
        return bool(self.licences) and not self.nodes and not self.processors

    @property
    def job_id(self) -> str:
        """The job that headway keeps it for, which alone may use it; "" if users made it."""
        return self.id[len(FOR_JOB) :] if self.ours and self.id.startswith(FOR_JOB) else ""
