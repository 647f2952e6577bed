"""A start that did not happen: the job is held again and gets what its user had asked for back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway_adapters.polling import Flight
from headway_adapters.polling.commands import Commands, said
from headway_adapters.polling.overlay import Overlay
from headway_adapters.slurm import marker, reader, together, writer
from headway_adapters.slurm.client import is_silence
from headway_adapters.slurm.refusals import Refusals
from headway_adapters.slurm.unmet import Unmet


@dataclass(frozen=True)
class Pinned:
    """What is to be restored when a start does not happen."""

    pin: marker.Pin
    #: The pin is in the job's AdminComment.
    marked: bool
    #: Of a heterogeneous job: its components' pins, the leader's first, and what its users had asked for.
    parts: tuple[marker.Pin | None, ...] = ()
    detail: reader.Detail | None = None
    #: The partition that it belongs to, if it was put into that of background jobs.
    partition: str = ""


class Handback:
    """Undoes starts."""

    def __init__(
        self, overlay: Overlay[reader.Detail], commands: Commands, refusals: Refusals, unmet: Unmet, log: Any
    ) -> None:
        self._overlay = overlay
        self._commands = commands
        self._refusals = refusals
        self._unmet = unmet
        self._log = log

    def take_back(self, flight: Flight[Pinned], *, late: bool) -> bool:
        """Hold a job again and give it its user's node list back; False: it could not be held."""
        key, pinned = flight.decision.job_id, flight.payload
        detail = self._overlay.detail(key)
        refused = not late and detail is not None and detail.refused
        self._learn(flight, refused=refused, unmet=not late and detail is not None and detail.unmet)
        if (late or (detail is not None and not detail.held)) and not self._hold(key):
            return False
        # A slurmctld that was killed may have forgotten the take-over as well; the mark alone would leave the
        # filter's hold, which then counts as the user's.
        take = refused or (not late and detail is not None and detail.from_filter)
        try:
            if pinned.detail is not None:
                return self.restore_parts(key, pinned)
            restore = writer.restore(
                key, pinned.pin, mark=pinned.marked, take=take, partition=pinned.partition
            )
        except writer.Unfit as error:
            # An administrator wrote the mark that the pin was read from.
            self._log.warning("a node list could not be given back", job=key, error=str(error))
            return True
        given = self._commands.change([restore])[0]
        if given is None or not given.ok:
            self._log.warning("a node list could not be given back", job=key, error=said(given))
        return True

    def _learn(self, flight: Flight[Pinned], *, refused: bool, unmet: bool) -> None:
        """Remember what Slurm says keeps a job from starting, so that it is not started in vain again."""
        key = flight.decision.job_id
        job, detail, seen = self._overlay.known(key), self._overlay.detail(key), self._overlay.snapshot
        if refused and job is not None and seen is not None:
            self._refusals.learned(key, job.job.request, flight.decision.placement, seen.nodes)
        if unmet and detail is not None:
            self._unmet.learned(key, detail.dependency)

    def _hold(self, key: str) -> bool:
        held = self._commands.change([writer.hold(key)])[0]
        if held is not None and held.ok:
            return True
        self._log.error("a start that does not happen could not be held again", job=key, error=said(held))
        return False

    def restore_parts(self, leader: str, pinned: Pinned) -> bool:
        """Hold a heterogeneous job and give its components back what was theirs; False: it is not held."""
        assert pinned.detail is not None
        steps = together.restore(pinned.detail, leader, pinned.parts, mark=pinned.marked)
        # What is asked of the leader is asked of all: so it comes first.
        results = self._commands.change([steps.leader])
        if results[0] is not None and results[0].ok:
            results += self._commands.change(steps.others)
        for result in results:
            if result is None or not result.ok:
                self._log.warning("a node list could not be given back", job=leader, error=said(result))
        return results[0] is not None and not is_silence(results[0])
