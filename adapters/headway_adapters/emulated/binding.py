"""Pending jobs are bound to a reservation, or to none."""

from __future__ import annotations

import msgspec

from headway import decisions as dec
from headway import events as ev
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.reservations import Reservations


class Binding:
    """Lets pending jobs run in one reservation alone."""

    def __init__(self, machine: Machine, reservations: Reservations) -> None:
        self._machine, self._reservations = machine, reservations

    def bind(self, decision: dec.Bind) -> str:
        """Returns why not, or ""; doing it twice is no error."""
        machine, name = self._machine, decision.reservation_id
        known = machine.submitted.get(decision.job_id)
        if known is None:
            return f"job {decision.job_id} is not waiting"
        index, job = known
        kept = self._reservations.kept.get(name)
        if name and kept is None:
            return f"reservation {name} is not known"
        if kept is not None and (kept.users or kept.accounts):
            theirs = job.user in kept.users or job.account in kept.accounts
            if not theirs:
                return f"reservation {name} is not for user {job.user!r}"
        if job.reservation != name:
            described = msgspec.structs.replace(job, reservation=name)
            machine.submitted[job.id] = (index, described)
            machine.news.append(ev.JobChanged(machine.now, described))
        return ""
