"""Fair tree as one would do it by hand: sort the children, go down, count. Slow and plain."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from headway_plugins.priority.tree import Tree


def by_hand(tree: Tree, used: Mapping[int, float]) -> dict[int, float]:
    """Node of a user -> factor; ``used``: what each user's node has used."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(tree.shape().parent.tolist()):
        if node:
            children.setdefault(parent, []).append(node)

    def total(node: int) -> float:
        return used.get(node, 0.0) + sum(total(child) for child in children.get(node, ()))

    def level_fs(node: int, siblings: list[int], above: int) -> float:
        shares = sum(tree.entries[one].shares for one in siblings)
        part = tree.entries[node].shares / shares if shares else 0.0
        whole = total(above)
        if not whole or not total(node):
            return inf if part else 0.0
        return part / (total(node) / whole)

    users = [node for node, entry in enumerate(tree.entries) if entry.user]
    factor: dict[int, float] = {}

    def visit(accounts: list[int], shared: float | None) -> None:
        """The children of accounts that are equal, as siblings of each other; ``shared``: the rank of a user
        beside these accounts that is equal to them."""
        valued = [
            (level_fs(child, children[account], account), child)
            for account in accounts
            for child in children.get(account, ())
        ]
        for value in sorted({value for value, _ in valued}, reverse=True):
            equal = [child for found, child in valued if found == value]
            rank = len(users) - len(factor) if shared is None else shared
            beside = [child for child in equal if tree.entries[child].user]
            for child in beside:
                factor[child] = rank / len(users)
            if below := [child for child in equal if not tree.entries[child].user]:
                visit(below, rank if beside else shared)
            shared = None

    visit([0], None)
    return factor
