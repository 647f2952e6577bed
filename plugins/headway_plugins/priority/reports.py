"""What ``headway shares`` and ``headway priority`` tell: shapes for programs, and the daemon's question."""

from __future__ import annotations

from typing import Annotated

import msgspec

from headway.inquiry.pages import MOST

#: The questions, by the names that the daemon knows them by.
SHARES, PRIORITY = "shares", "priority"


class Wanted(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The text of a question: which page, and of which job (or array; "": of all that may be seen)."""

    first: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = MOST
    job: Annotated[str, msgspec.Meta(max_length=256)] = ""


class ShareReport(msgspec.Struct, frozen=True):
    """An account, or a user in an account: a line of ``sshare -l``."""

    account: str
    #: "": the account itself.
    user: str
    #: Accounts above; 0: the root.
    depth: int
    #: None: no shares of its own (``parent``), or the root.
    shares: float | None
    #: The part of the siblings' shares, or of the whole machine where fair share is classic.
    norm_shares: float
    #: Units x seconds, decayed.
    usage: float
    #: The part of all usage, and of the usage of the account above (or what classic fair share counts).
    norm_usage: float
    effective_usage: float
    #: From 0 to 1; None: accounts have none, unless fair share is classic.
    fair_share: float | None
    #: Part of the shares over part of the usage; None: the root, no shares of its own, or no usage yet.
    level_fair_share: float | None
    #: Minutes of resources that may be used in all, as the batch system writes it.
    minutes_limit: str
    #: Resource -> whole minutes that running jobs may still use.
    minutes_running: dict[str, int]


class Shares(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tree of accounts from the root down."""

    rows: tuple[ShareReport, ...]
    #: Where the next page begins.
    next: int | None = None


class JobPriority(msgspec.Struct, frozen=True):
    """A waiting job's priority: the sum of factors times weights, less ``nice``."""

    id: str
    user: str
    priority: float
    #: Factor -> its value from 0 to 1.
    factors: dict[str, float]
    nice: float


class Priorities(msgspec.Struct, frozen=True, omit_defaults=True):
    """The priorities of jobs that wait, in the order in which they came."""

    #: Factor -> weight.
    weights: dict[str, float]
    jobs: tuple[JobPriority, ...]
    #: Where the next page begins.
    next: int | None = None
