"""Licences: what the whole cluster has of something that belongs to no node, and which jobs may have it."""

from __future__ import annotations

from collections.abc import Callable

from headway import events as ev
from headway.model import JobDescription
from headway.resources.profile import Profile, next_after
from headway_adapters.emulated.faults import LicenceChange
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.reservations import Reservations


class Licences:
    """How much there is, as time goes on."""

    def __init__(
        self,
        machine: Machine,
        reservations: Reservations,
        inside: Callable[[JobDescription], str],
        changes: list[LicenceChange],
    ) -> None:
        """``inside``: the reservation that takes nothing from a job."""
        self._machine, self._reservations, self._inside = machine, reservations, inside
        self._total = dict(machine.cluster.licences)
        begin = machine.now
        for change in changes:
            machine.agenda.at(max(change.at, begin), self._change, change)

    def set_total(self, licence: str, total: int) -> None:
        """There is so much of it from now on."""
        self._total[licence] = total

    def _change(self, change: LicenceChange) -> None:
        self.set_total(change.licence, change.total)
        self._machine.news.append(ev.LicencesChanged(self._machine.now, change.licence, change.total))

    def lacking(self, job: JobDescription) -> str:
        """Why a job cannot have its licences from now until its limit; "" if it can."""
        now, own = self._machine.now, self._inside(job)
        end = max(now + job.request.walltime, next_after(now))
        for name, amount in job.request.licences:
            free = max(self._free(name, own).minimum(now, end), 0)
            if free < amount:
                return f"job {job.id} needs {amount} of licence {name!r}, {free} are free"
        return ""

    def _free(self, name: str, own: str) -> Profile:
        """How much of it is there over time if no job ends before what is reserved is over."""
        now = self._machine.now
        used: dict[str, int] = {}
        for execution in self._machine.running.values():
            inside = self._inside(execution.job)
            for licence, amount in execution.job.request.licences:
                if licence == name:
                    used[inside] = used.get(inside, 0) + amount
        profile = Profile(now, self._total.get(name, 0) - sum(used.values()))
        for reservation in self._reservations.kept.values():
            kept = sum(amount for licence, amount in reservation.licences if licence == name)
            if kept and reservation.id != own:
                left = max(kept - used.get(reservation.id, 0), 0)
                profile.reserve(max(reservation.start, now), reservation.end, left)
        return profile
