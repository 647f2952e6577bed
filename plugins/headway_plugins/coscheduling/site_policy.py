"""The policies that keep users' reservations from harming the batch queue.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 3: the number of reservations of an account, the nodes and the duration
of each, and "a global limit on the number of node-seconds devoted to user-settable reservations in a
configurable time window". The paper gives no values.

Ours:

- The window begins now. A reservation ends before the horizon, so that nothing escapes the budget behind it.
- What counts are reservations that are not over, and of the budget their part from now on.
- The first of these rules that a request breaks is the reason of the denial: `request`, `size`, `duration`,
  `count`, `place`, `horizon`, `budget`. The last two are about the earliest place alone: a later place is not
  looked for.
- A request for at most so many nodes is cut to the most that a reservation may have.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import pydantic

_WEEK = 7 * 86400.0


class SitePolicy(pydantic.BaseModel):
    """What users' reservations may have; null: no limit."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    max_per_account: int | None = pydantic.Field(
        default=None, ge=0, description="most reservations of an account at a time"
    )
    max_nodes: int | None = pydantic.Field(default=None, ge=0, description="most nodes of a reservation")
    max_duration: float | None = pydantic.Field(
        default=None, ge=0, description="longest duration of a reservation, in seconds"
    )
    window: float | None = pydantic.Field(
        default=None, gt=0, description="seconds ahead in which node-seconds count (default: 7 days)"
    )
    budget: float | None = pydantic.Field(
        default=None, ge=0, description="most node-seconds of all users' reservations in the window"
    )
    horizon: float | None = pydantic.Field(
        default=None, gt=0, description="seconds ahead by which a reservation is over (default: window)"
    )
    xf_weight: float = pydantic.Field(
        default=0.0,
        ge=0,
        description="weight of the expansion factor in the order of the queue; above 0, a reservation can "
        "delay a queued job",
    )

    @classmethod
    def usual(cls, nodes: int) -> SitePolicy:
        """5 reservations an account, each of a quarter of the nodes and 12 hours, and together a tenth of the
        node-seconds of a week."""
        return cls(
            max_per_account=5, max_nodes=nodes // 4, max_duration=43200.0, window=_WEEK,
            budget=nodes * _WEEK / 10, horizon=_WEEK,
        )  # fmt: skip

    @property
    def seconds_ahead(self) -> float:
        """The window."""
        return _WEEK if self.window is None else self.window

    @property
    def last_end(self) -> float:
        """Seconds from now by which a reservation is over."""
        if self.horizon is not None:
            return self.horizon
        return inf if self.window is None else self.window


def before_the_place(policy: SitePolicy, nodes: int, exact: bool, duration: float, held: int) -> str | None:
    """The rule that forbids the request anywhere; ``held``: reservations of the account."""
    if exact and policy.max_nodes is not None and nodes > policy.max_nodes:
        return "size"
    if policy.max_duration is not None and duration > policy.max_duration:
        return "duration"
    if policy.max_per_account is not None and held >= policy.max_per_account:
        return "count"
    return None


def cut(policy: SitePolicy, nodes: int) -> int:
    """The most nodes that a request for at most ``nodes`` can be granted."""
    return nodes if policy.max_nodes is None else min(nodes, policy.max_nodes)


def node_seconds(spans: Iterable[tuple[float, float, int]], now: float, window: float) -> float:
    """What ``(start, end, nodes)`` take of the window that begins now."""
    return sum(nodes * max(min(end, now + window) - max(start, now), 0.0) for start, end, nodes in spans)


def at_the_place(
    policy: SitePolicy,
    wanted: tuple[float, float, int],
    others: Iterable[tuple[float, float, int]],
    now: float,
) -> str | None:
    """The rule that forbids ``(start, end, nodes)`` beside the other users' reservations."""
    if wanted[1] > now + policy.last_end:
        return "horizon"
    if policy.budget is None:
        return None
    taken = node_seconds([wanted, *others], now, policy.seconds_ahead)
    return "budget" if taken > policy.budget else None
