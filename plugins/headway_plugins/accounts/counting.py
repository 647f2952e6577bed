"""Options of plugins that count what accounts and users use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic

from headway.inputs.time_zones import TimeZone
from headway.workload.accounting import Ended, history_of
from headway_plugins.accounts.calendar import Period
from headway_plugins.accounts.options import OrFromSlurm, Seconds, Weight, is_from_slurm
from headway_plugins.accounts.tree import Entry, Tree
from headway_plugins.accounts.tree_files import configured


class CountingOptions(pydantic.BaseModel):
    """What all kinds of fair share can be told."""

    model_config = pydantic.ConfigDict(extra="forbid")

    accounts: Annotated[dict[Any, Any] | None, OrFromSlurm] = pydantic.Field(
        default=None,
        description="the tree of accounts: account -> shares, users, accounts (see "
        "docs/operators/policy.md); from-slurm: the running Slurm's tree and its usage up to "
        "the first start",
    )
    file: Path | None = pydantic.Field(
        default=None,
        description="a file with that tree: YAML, or what `sacctmgr dump CLUSTER` writes",
    )
    unknown_shares: Weight = pydantic.Field(
        default=1.0, description="shares of each account and user that the tree does not list"
    )
    reset: Period = pydantic.Field(
        default="none", description="forget all usage daily, weekly (Sunday), monthly, quarterly or yearly"
    )
    zone: TimeZone = pydantic.Field(default="UTC", description="the time zone in which these periods begin")
    billing: dict[str, Weight] = pydantic.Field(
        default={"processors": 1.0},
        description="units that a job is billed each second: for a processor, a GiB of memory, a generic "
        "resource",
    )
    qos: dict[str, Weight] = pydantic.Field(
        default={}, description="QOS -> factor on the units that its jobs are billed"
    )
    period: Seconds = pydantic.Field(
        default=300.0, description="how often the fair share of all users is computed anew"
    )
    history: Path | None = pydantic.Field(
        default=None,
        description="a file with the jobs that ended before the first start: the output of sacct -P with "
        "SLURM_TIME_FORMAT=%s, PBS' "
        "server logs or LSF's lsb.acct",
    )

    _entries: list[Entry] = pydantic.PrivateAttr(default_factory=list)
    _past: list[Ended] = pydantic.PrivateAttr(default_factory=list)

    @pydantic.model_validator(mode="after")
    def _read(self, info: pydantic.ValidationInfo) -> CountingOptions:
        self._entries = configured(self.accounts, self.file, info)
        if self.history is not None:
            if is_from_slurm(self.accounts):
                raise ValueError(
                    "no history beside accounts: from-slurm, because Slurm reports the usage itself"
                )
            self._past = history_of(self.history, info.context)
        return self

    @property
    def past(self) -> list[Ended]:
        """The jobs of ``history``."""
        return self._past

    def tree(self, entries: Sequence[Entry] | None = None) -> Tree:
        """The accounts that the options list, or the batch system's accounts in its order."""
        return Tree(
            self._entries if entries is None else entries,
            unknown_shares=self.unknown_shares,
            in_order=entries is not None,
        )


class DecayOptions(CountingOptions):
    """With a half-life."""

    half_life: Seconds | None = pydantic.Field(
        default=7 * 86400.0,
        description="half-life of usage, such as 7d; null: usage does not decay",
    )
