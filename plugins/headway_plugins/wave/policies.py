"""The seven policies that the paper compares: where a job may move to, and when it does.

D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005, section 4.1 and Table 1. At first a job gets a host that satisfies
the policy's criterion. When the owner comes back, *immediate* searches at once and fails without a host;
*linger* waits first, goes on if the owner leaves again, and otherwise searches once at the end; *adaptive*
searches at once, and without a host waits and searches again, until the job is done. With *stay* the job
sleeps until the owner leaves again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headway.errors import UserError, nearest


class Where(StrEnum):
    """Where a job may move to."""

    #: It stays on its first host.
    STAY = "stay"
    ANY = "any"
    #: The target wavezone, as of the moment of the search.
    NIGHT = "night"


class When(StrEnum):
    """When a job whose host is lost moves."""

    IMMEDIATE = "immediate"
    LINGER = "linger"
    ADAPTIVE = "adaptive"


class Criterion(StrEnum):
    """Which hosts are good enough."""

    #: Without a foreign job.
    UNCLAIMED = "unclaimed"
    #: Unclaimed and idle.
    AVAILABLE = "available"
    #: Available, in the target wavezone, and in night.
    NIGHT = "night"


@dataclass(frozen=True)
class Policy:
    """A policy is a pair of answers; a job that stays needs no ``when``."""

    name: str
    where: Where
    when: When | None = None

    @property
    def criterion(self) -> Criterion:
        """Of the first host, and of hosts to move to."""
        return {
            Where.STAY: Criterion.UNCLAIMED,
            Where.ANY: Criterion.AVAILABLE,
            Where.NIGHT: Criterion.NIGHT,
        }[self.where]

    @property
    def settles(self) -> bool:
        """Whether a job without such a host takes any unclaimed host at first, and sleeps there."""
        return self.when is When.ADAPTIVE

    @property
    def searches_at_loss(self) -> bool:
        """Whether a job searches as soon as its host is lost."""
        return self.when in (When.IMMEDIATE, When.ADAPTIVE)

    @property
    def waits(self) -> bool:
        """Whether a job that is still on a lost host sleeps there; otherwise it fails."""
        return self.when is not When.IMMEDIATE

    @property
    def has_timer(self) -> bool:
        """Whether a job that sleeps is woken after a while to search."""
        return self.when in (When.LINGER, When.ADAPTIVE)

    @property
    def searches_again(self) -> bool:
        """Whether a search that has failed at the end of a wait is repeated after another wait."""
        return self.when is When.ADAPTIVE


POLICIES = {
    policy.name: policy
    for policy in (
        Policy("no-migration", Where.STAY),
        Policy("migration-immediate", Where.ANY, When.IMMEDIATE),
        Policy("migration-linger", Where.ANY, When.LINGER),
        Policy("migration-adaptive", Where.ANY, When.ADAPTIVE),
        Policy("wave-immediate", Where.NIGHT, When.IMMEDIATE),
        Policy("wave-linger", Where.NIGHT, When.LINGER),
        Policy("wave-adaptive", Where.NIGHT, When.ADAPTIVE),
    )
}


def policy(name: str) -> Policy:
    """The policy of that name. Raises :class:`UserError` if there is none."""
    if name not in POLICIES:
        raise UserError(f"policy {name!r} does not exist.{nearest(name, POLICIES)}")
    return POLICIES[name]
