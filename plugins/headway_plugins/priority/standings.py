"""The reports of accounts and users, and a page of them for a user's question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from headway.inquiry.pages import page
from headway.model.questions import Question
from headway.state import Job
from headway_plugins.accounts.tree import level_fair_share
from headway_plugins.priority.counting_usage import Standing, UsageCount
from headway_plugins.priority.minutes import minutes_left
from headway_plugins.priority.reports import ShareReport, Shares, Wanted


@dataclass(frozen=True)
class _Node:
    """A node of the tree, by its number, and how many nodes are above it."""

    number: int
    depth: int


def share_reports(
    plugin: UsageCount, standing: Standing, running: Iterable[Job], now: float
) -> tuple[ShareReport, ...]:
    """All accounts and users at ``now`` (absolute seconds), from the root down."""
    report = _reporter(plugin, standing, running, now)
    return tuple(report(_Node(node, depth)) for node, depth in plugin.tree.walk())


def share_page(
    plugin: UsageCount, standing: Standing, running: Iterable[Job], now: float, question: Question
) -> Shares:
    """A page of the accounts and users that the asking user may see."""
    asked = question.read(Wanted)
    seen = None if question.sees_all else _own(plugin, question.user)
    report = _reporter(plugin, standing, running, now)
    made, then = page(_nodes(plugin, seen), report, asked.first, asked.count)
    return Shares(made, then)


def _nodes(plugin: UsageCount, seen: Collection[int] | None) -> Iterator[_Node]:
    """The nodes of the tree from the root down; None: all."""
    for node, depth in plugin.tree.walk():
        if seen is None or node in seen:
            yield _Node(node, depth)


def _own(plugin: UsageCount, user: str) -> Collection[int]:
    """The user in each account, the accounts above, and the root."""
    within, found = plugin.tree.shape().within, {0}
    for node, entry in enumerate(plugin.tree.entries):
        if entry.user == user:
            while node not in found:
                found.add(node)
                node = int(within[node])
    return found


def _reporter(
    plugin: UsageCount, standing: Standing, running: Iterable[Job], now: float
) -> Callable[[_Node], ShareReport]:
    """Makes the report of a node."""
    shape, total, factor = plugin.tree.shape(), standing.usage, standing.factor
    norm_shares, effective = plugin.shares_and_usage(shape, total)
    level = level_fair_share(shape, total)
    limits, left = minutes_left(plugin, running, now)
    whole = total[0]

    def report(one: _Node) -> ShareReport:
        node, entry = one.number, plugin.tree.entries[one.number]
        has_level = bool(node) and entry.shares is not None and bool(np.isfinite(level[node]))
        return ShareReport(
            entry.account,
            entry.user,
            one.depth,
            entry.shares if node else None,
            float(norm_shares[node]) if node or plugin.judges_accounts else 0.0,
            float(total[node]),
            float(total[node] / whole) if whole > 0 else 0.0,
            # The root has all usage, even where no user has used anything yet.
            float(effective[node]) if node else 1.0,
            float(factor[node]) if entry.user or plugin.judges_accounts else None,
            float(level[node]) if has_level else None,
            limits.get(f"{entry.account}:{entry.user}" if entry.user else entry.account, ""),
            {name: int(seconds[node] // 60) for name, seconds in left.items()},
        )

    return report
