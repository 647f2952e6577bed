"""The batch system's accounts as nodes of a tree."""

from __future__ import annotations

from headway.model import Association, SitePolicy
from headway_plugins.accounts.tree import ROOT, Entry


def entry_of(one: Association) -> Entry:
    """A node of the batch system's accounts as a node of a tree."""
    where = f"account {one.account}" if not one.user else f"account {one.account}, user {one.user}"
    return Entry(
        one.account, one.user, one.account if one.user else one.parent or ROOT, one.shares, one.priority,
        default=one.default, where=where,
    )  # fmt: skip


def same_shares(one: SitePolicy, other: SitePolicy) -> bool:
    """Whether nothing that fair share goes by has changed, except usage."""
    if one.half_life != other.half_life or one.qos_billing != other.qos_billing:
        return False
    return [entry_of(a) for a in one.associations] == [entry_of(a) for a in other.associations]
