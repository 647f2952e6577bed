"""How likely it is that a job comes soon, from the silences between each user's jobs so far.

After E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005: users log on, submit a
burst and log off. So a user that submitted just now will probably submit again, and a user that has been
silent for long is gone. The paper fits A(t), the chance of no further job within t, to a log; on line no fit
is needed (ours): the times between a user's jobs are counted in bins of equal steps of the logarithm. A user
that has been silent for s seconds stays so for t more with the chance (gaps longer than s + t, and a half)
over (gaps longer than s, and a half). Users are independent: a job comes unless all users stay silent. A user
with fewer than ``least`` gaps says nothing. The silence that is going on counts as no gap.

It answers the hook ``arrival_chance``, and is kept over a restart.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pydantic
from numpy.typing import NDArray

from headway.events import Event, JobSubmitted
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits
from headway.state import State

#: Ends of the bins, seconds: eight to a factor of two, from a second to 12 years; the last has none.
_ENDS = 2.0 ** (np.arange(29 * 8) / 8.0)


class ArrivalForecastOptions(pydantic.BaseModel):
    """The options of :class:`ArrivalForecast`."""

    model_config = pydantic.ConfigDict(extra="forbid")

    least: int = pydantic.Field(
        default=10,
        ge=1,
        description="number of times between jobs that a user "
        "must have before the user's arrivals are "
        "predicted",
    )
    most_users: int = pydantic.Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="number of users that are remembered; the user that was silent the longest is forgotten "
        "first",
    )


class _User:
    """A user's gaps in a pool."""

    __slots__ = ("bins", "count", "last")

    def __init__(self, last: float) -> None:
        self.last = last
        self.count = 0
        self.bins: NDArray[np.int64] = np.zeros(len(_ENDS) + 1, np.int64)

    def submitted(self, time: float) -> None:
        gap = max(time - self.last, 0.0)
        self.bins[int(np.searchsorted(_ENDS, gap, side="left"))] += 1
        self.count += 1
        self.last = max(time, self.last)

    def stays_silent(self, silent: float, seconds: float) -> float:
        """The chance of no job in so many seconds, after a silence of ``silent``."""
        return (self._longer(silent + seconds) + 0.5) / (self._longer(silent) + 0.5)

    def _longer(self, seconds: float) -> float:
        """Gaps longer than that; inside of a bin in equal parts of the logarithm."""
        at = int(np.searchsorted(_ENDS, seconds, side="left"))
        beyond = float(self.bins[at + 1 :].sum())
        if at == 0 or at == len(_ENDS):
            return beyond + float(self.bins[at]) * (1.0 - min(seconds, 1.0) if at == 0 else 1.0)
        left = math.log(_ENDS[at] / seconds) / math.log(_ENDS[at] / _ENDS[at - 1])
        return beyond + float(self.bins[at]) * left


class ArrivalForecast(Plugin):
    """Tell how likely it is that a job comes soon, from the silences between each user's jobs."""

    Options = ArrivalForecastOptions
    traits = Traits(
        observes=(JobSubmitted,),
        paper="E. Medernach: Workload Analysis of a Cluster in a Grid Environment, JSSPP 2005",
    )

    def __init__(self, options: ArrivalForecastOptions | None = None) -> None:
        super().__init__(options or ArrivalForecastOptions())
        #: Pool and user -> what is known; whose job came last is at the end.
        self._users: dict[tuple[str, str], _User] = {}

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if not isinstance(event, JobSubmitted):
            return
        about = event.job
        pool = about.pool or (next(iter(state.pools)) if len(state.pools) == 1 else "")
        user = self._users.pop((pool, about.user), None)
        if user is None:
            user = _User(about.submit_time)
            if len(self._users) >= self.options.most_users:
                del self._users[next(iter(self._users))]
        else:
            user.submitted(about.submit_time)
        self._users[pool, about.user] = user

    @hookimpl
    def arrival_chance(self, pool: str, seconds: float, state: State) -> float | None:
        silent, known = 1.0, False
        for (where, _), user in self._users.items():
            if where == pool and user.count >= self.options.least:
                known = True
                silent *= user.stays_silent(max(state.now - user.last, 0.0), seconds)
        return 1.0 - silent if known else None

    @hookimpl
    def checkpoint(self) -> Any:
        return [
            [pool, name, user.last, [[int(at), int(user.bins[at])] for at in np.flatnonzero(user.bins)]]
            for (pool, name), user in self._users.items()
        ]

    @hookimpl
    def restore(self, saved: Any) -> None:
        for pool, name, last, bins in saved:
            user = self._users[pool, name] = _User(last)
            for at, count in bins:
                user.bins[at] = count
                user.count += count
