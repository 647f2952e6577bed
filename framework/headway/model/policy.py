"""What a batch system says of its site's policy: accounts, shares, usage, weights, limits.

Facts for plugins that decide by them; the framework itself follows none.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Association(msgspec.Struct, frozen=True, omit_defaults=True):
    """An account, or a user in one."""

    #: The account; of a user, the account that the user is in.
    account: str
    #: "" for the account itself.
    user: str = ""
    #: The account above; "" for accounts at the top, and for users.
    parent: str = ""
    #: Relative to the siblings'; None: none of its own, it has a part in what the account above has.
    shares: float | None = 1.0
    #: On any scale.
    priority: float = 0.0
    #: It is the user's where a job names no account.
    default: bool = False
    #: What a user has used until now, as it counts today, billed units x seconds.
    usage: float = 0.0
    #: What was used of processors, below an account as well, as it counts today.
    processor_minutes: float = 0.0


class SitePolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The policy of a site; what is empty or None, the batch system does not say."""

    #: Accounts after the account above them, and before their users.
    associations: tuple[Association, ...] = ()
    #: What limits are of (in the words of the option ``of`` of the plugin ``limits``) -> name -> the limits.
    limits: dict[str, dict[str, dict[str, Any]]] = {}
    #: QOS -> its priority, and the factor on what its jobs are billed.
    qos: dict[str, float] = {}
    qos_billing: dict[str, float] = {}
    #: QOS whose jobs may only start if what they ask for, times that factor, is within the limits of minutes.
    qos_safe: tuple[str, ...] = ()
    #: Pool -> its priority.
    pools: dict[str, float] = {}
    #: Factor of a job's priority -> its weight.
    weights: dict[str, float] = {}
    #: The wait at which age counts in full, and how often priorities are computed, seconds.
    max_age: float | None = None
    period: float | None = None
    #: Small jobs come first; a job's size is processors over minutes.
    favour_small: bool = False
    size_over_time: bool = False
    #: What was used so long ago counts half, seconds; 0: it does not decay.
    half_life: float | None = None
    #: The resources that are counted, by the batch system's names; empty: it does not say.
    resources: tuple[str, ...] = ()
    #: Account, or account:user -> what it may use of these in all, in minutes, as the batch system writes it.
    minutes: dict[str, str] = {}
    #: What limits are of -> name -> ``budget`` or ``wall_minutes`` -> what was used of it until now,
    #: minutes, as it counts today; where the batch system says it.
    used: dict[str, dict[str, dict[str, float]]] = {}
