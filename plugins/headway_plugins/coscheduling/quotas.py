"""Accounts of users' reservations and their limits, which reservations and metajobs have in common.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 3: limits on the number, the size and the duration of reservations, and
"a global limit on the number of node-seconds devoted to user-settable reservations in a configurable time
window". The paper gives no values; the defaults are ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pydantic

from headway.model import Reservation
from headway.state import State


class Limits(pydantic.BaseModel):
    """What an account may have; nodes are processors on a flat pool."""

    model_config = pydantic.ConfigDict(extra="forbid")

    max_reservations: int = pydantic.Field(default=5, ge=0, description="most reservations at a time")
    max_nodes: int | None = pydantic.Field(
        default=None, ge=0, description="most nodes of a reservation; default: a quarter of the pool"
    )
    max_duration: float = pydantic.Field(
        default=43200.0, gt=0, description="longest duration of a reservation, in seconds"
    )
    max_node_seconds: float | None = pydantic.Field(
        default=None, ge=0, description="most node-seconds in the window; default: a tenth of the pool's"
    )


class AccountLimits(Limits):
    """The limits of an account, and the users that belong to it."""

    users: list[str] = pydantic.Field(
        default_factory=list, description="users that may reserve on this account"
    )


class QuotaOptions(pydantic.BaseModel):
    """Options of users' reservations."""

    model_config = pydantic.ConfigDict(extra="forbid")

    limits: Limits = pydantic.Field(
        default_factory=Limits, description="limits of accounts that are not named"
    )
    accounts: dict[str, AccountLimits] = pydantic.Field(default_factory=dict, description="limits by account")
    window: float = pydantic.Field(
        default=7 * 86400.0,
        gt=0,
        description="seconds ahead in which node-seconds count and by whose end a reservation must be over",
    )

    def limits_of(self, account: str) -> Limits:
        """What the account may have."""
        return self.accounts.get(account, self.limits)

    def account_of(self, user: str, named: str = "", *, operator: bool = False) -> str:
        """The account whose limits count; LookupError says why there is none.

        ``named``: the account that the user asks for; "": the user's own.
        """
        if not named or named == user:
            mine = (name for name, limits in self.accounts.items() if user in limits.users)
            return next(mine, user)
        limits = self.accounts.get(named)
        if limits is None or not (user in limits.users or operator):
            raise LookupError(f"{user} does not belong to an account {named!r}")
        return named


def size_of(reservation: Reservation) -> int:
    """What a reservation counts for in limits."""
    return len(reservation.nodes) or reservation.processors


def of_users(
    state: State, options: QuotaOptions, known: Collection[str] = ()
) -> Iterator[tuple[str, Reservation]]:
    """Account and reservation of all that headway made for users and that is not over.

    ``known``: names that are left out, because the caller knows their accounts itself. A reservation of
    another plugin counts for the account of its user.
    """
    for name, one in state.reservations.items():
        if one.ours and not one.job_id and one.users and one.end > state.now and name not in known:
            yield options.account_of(one.users[0]), one
