"""How often one user may ask the daemon: so many requests at once, and so many a second after that.

Whatever is asked costs a cycle, a line in the log and a row in the journal, so what one user can ask for
is bounded: a token bucket for each user id. What is refused here is counted and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

#: Users that are remembered; users that have asked for nothing lately are forgotten first.
_MOST_USERS = 1000


@dataclass(frozen=True)
class Allowance:
    """``burst`` requests at once, and ``rate`` a second in the long run."""

    burst: int
    rate: float


#: Of a user, and of an operator.
USERS = Allowance(20, 1.0)
OPERATORS = Allowance(200, 20.0)


class Limits:
    """The buckets of all users. Not for several threads."""

    def __init__(
        self,
        users: Allowance = USERS,
        operators: Allowance = OPERATORS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock``: seconds that never go back."""
        self.users = users
        self.operators = operators
        self._clock = clock
        #: User -> requests that are left, and when that was so.
        self._left: dict[Hashable, tuple[float, float]] = {}

    def of(self, operator: bool) -> Allowance:
        return self.operators if operator else self.users

    def take(self, user: Hashable, operator: bool) -> bool:
        """Whether this user, by id or name, may ask once more now."""
        allowance, now = self.of(operator), self._clock()
        left, at = self._left.pop(user, (float(allowance.burst), now))
        left = min(allowance.burst, left + (now - at) * allowance.rate)
        granted = left >= 1.0
        # The last in the dict is the user that asked last.
        self._left[user] = (left - 1.0 if granted else left, now)
        if len(self._left) > _MOST_USERS:
            del self._left[next(iter(self._left))]
        return granted
