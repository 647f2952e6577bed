"""Fair tree as one would do it by hand: sort the children, go down, count. Slow and plain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf

from headway_plugins.accounts.tree import Entry, Tree


def account_by_account(tree: Tree, used: Mapping[int, float]) -> dict[int, float]:
    """The same with ties as Slurm ranks them: each account's users before those of the next account."""
    children, level_fs = _standing(tree, used)
    users = [node for node, entry in enumerate(tree.entries) if entry.user]
    factor: dict[int, float] = {}
    shown = len(users)
    place = {node: at for at, (node, _) in enumerate(tree.walk())}

    def visit(account: int, ties: bool) -> None:
        nonlocal shown
        siblings = children.get(account, [])
        entries = tree.entries
        value = {child: level_fs(child, siblings, account) for child in siblings}
        in_turn = sorted(siblings, key=lambda n: (-value[n], not entries[n].user, place[n]))
        before = None
        for child in in_turn:
            ties = ties if before is None else value[child] == value[before]
            before = child
            if not entries[child].user:
                visit(child, ties)
                continue
            if not ties:
                shown = len(users) - len(factor)
            factor[child] = shown / len(users)

    visit(0, False)
    return factor


def tree_and_factors(rows: Iterable[str]) -> tuple[Tree, dict[int, float], dict[int, float]]:
    """A tree, what its users' nodes have used, and their factors, of what Slurm printed.

    ``rows``: those of ``sshare -a -h -P -o account,user,rawshares,rawusage,levelfs,fairshare``, in which
    accounts are set in below the ones above them.
    """
    entries: list[Entry] = []
    told: dict[tuple[str, str], tuple[float, float]] = {}
    above: list[str] = []
    for row in rows:
        account, user, raw, usage, _, factor = row.split("|")
        shares = None if raw == "parent" else float(raw or 0)
        depth, name = len(account) - len(account.lstrip()), account.strip()
        if user:
            entries.append(Entry(name, user, name, shares))
            told[name, user] = float(usage), float(factor)
            continue
        del above[depth:]
        if above:
            entries.append(Entry(name, parent=above[-1], shares=shares))
        above.append(name)
    tree = Tree(entries, in_order=True)
    nodes = {tree.association(*whose): values for whose, values in told.items()}
    known = {node: values for node, values in nodes.items() if node is not None}
    return (
        tree,
        {node: usage for node, (usage, _) in known.items()},
        {node: factor for node, (_, factor) in known.items()},
    )


def by_hand(tree: Tree, used: Mapping[int, float]) -> dict[int, float]:
    """Node of a user -> factor; ``used``: what each user's node has used."""
    children, level_fs = _standing(tree, used)
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


def _standing(
    tree: Tree, used: Mapping[int, float]
) -> tuple[dict[int, list[int]], Callable[[int, list[int], int], float]]:
    """The children of each account, and the level fair share of a node, its siblings and the account."""
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

    return children, level_fs
