"""What is left over time of what is counted for the whole cluster, as a view reckons with it in a cycle.

A licence belongs to no pool, so what is booked in any pool takes from it. Nothing of this is made where
no job asks for licences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headway.resources.profile import Profile, next_after
from headway.state.licences import keeping, licence_profile
from headway.view.ahead import coarsened

if TYPE_CHECKING:
    from headway.state import Job, State
    from headway.view.booking import Booking

_INF = float("inf")


class LicencesAhead:
    """What running jobs, reservations and bookings leave of each licence."""

    def __init__(self, state: State, bookings: Iterable[Booking], resolution: float = 0.0) -> None:
        """``resolution``: ends are rounded up to multiples of so many seconds; 0: they are exact."""
        self._state = state
        self._resolution = resolution
        #: Name, and the reservation that the asking job is in if that keeps some of it.
        self._profiles: dict[tuple[str, str], Profile] = {}
        #: Name, start, end, amount.
        self._taken: list[tuple[str, float, float, int]] = []
        for booking in bookings:
            if booking.start != _INF:
                self.take(booking.job, booking.start, booking.start + booking.job.expected_runtime)

    def fits(self, job: Job, start: float, end: float) -> bool:
        """Whether the job can have all its licences during [start, end)."""
        return all(profile.minimum(start, end) >= amount for profile, amount in self._for(job))

    def earliest(self, job: Job, after: float) -> float:
        """The first time from ``after`` on at which it can have them for as long as it is expected to run."""
        wanted = list(self._for(job))
        while True:
            start = after
            for profile, amount in wanted:
                start = profile.earliest(amount, job.expected_runtime, start)
            if start in (after, _INF):
                return start
            after = start

    def times(self, job: Job) -> list[float]:
        """When there is more or less of what the job needs."""
        return [time for profile, _ in self._for(job) for time in profile.times]

    def take(self, job: Job, start: float, end: float) -> None:
        """The job has its licences during [start, end)."""
        for name, amount in job.request.licences:
            self._take(name, start, end, amount)

    def give_back(self, job: Job) -> None:
        """A job that runs has its licences no longer; a reservation's licences are kept again."""
        state = self._state
        if state.licences is None or state.inside(job):
            return
        for name, amount in job.request.licences:
            if job in state.licences.holders.get(name, ()):
                self._take(name, state.now, max(job.expected_end, next_after(state.now)), -amount)

    def _take(self, name: str, start: float, end: float, amount: int) -> None:
        self._taken.append((name, start, end, amount))
        for (other, _), profile in self._profiles.items():
            if other == name:
                profile.reserve(start, end, amount)

    def _for(self, job: Job) -> Iterator[tuple[Profile, int]]:
        state = self._state
        inside = state.inside(job)
        for name, amount in job.request.licences:
            own = inside if inside and any(r.id == inside for r, _ in keeping(state, name)) else ""
            profile = self._profiles.get((name, own))
            if profile is None:
                profile = licence_profile(state, name, own)
                if self._resolution:
                    profile = coarsened(profile, self._resolution)
                self._profiles[name, own] = profile
                for other, start, end, taken in self._taken:
                    if other == name:
                        profile.reserve(start, end, taken)
            yield profile, amount
