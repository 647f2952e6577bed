"""The accounts of a site and the users in them, with their shares.

A tree. Its inner nodes are accounts, whose names are unique; its leaves are associations, a user in an
account. A user may be in several accounts. Shares are relative to the siblings' shares. A node without shares
of its own (``parent``, as Slurm's Fairshare=parent) is no sibling. If it is a user, the user has a part in
what the account has. If it is an account, its nodes are siblings of the account's own siblings.

A job belongs to the association of its user in the account that it names, else in its group, else in the
user's default account, else in the first account that names the user. What is not listed is added: an unknown
account below the root, an unknown user in its account.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError, nearest

Floats = NDArray[np.float64]

ROOT = "root"
#: Whose jobs are that say no user.
NOBODY = "(nobody)"


@dataclass(frozen=True)
class Entry:
    """A node of the tree as a site wrote it down."""

    #: The name of the account; of an association, that of the account that the user is in.
    account: str
    #: "" for an account itself.
    user: str = ""
    #: The account above; "" for the root. An association's is its account.
    parent: str = ROOT
    #: None: what the account above has, together with all its nodes without shares of their own.
    shares: float | None = 1.0
    #: Of the factor ``association``; any scale.
    priority: float = 0.0
    #: Percent of what the account above has used; None: the shares say.
    target: float | None = None
    #: What a target means: "target", "ceiling" (not more), "floor" (not less) or "cap" (never more).
    bound: str = "target"
    #: The user's account where a job names none.
    default: bool = False
    #: Where it was written, such as ``shares.yaml: physics.users``.
    where: str = ""


@dataclass(frozen=True)
class Shape:
    """The tree as arrays, a value a node. Node 0 is the root; a node's parent stands before it."""

    #: The node that the shares are a part of: the next account above that has shares of its own.
    parent: NDArray[np.intp]
    is_user: NDArray[np.bool_]
    #: The nodes without shares of their own.
    joint: NDArray[np.bool_]
    #: As written down; 0 for joint nodes.
    shares: Floats
    #: Of the siblings' shares, this node's part, 0 to 1.
    part: Floats
    #: The nodes by their distance from the root, along :attr:`parent`; the root itself left out.
    levels: tuple[NDArray[np.intp], ...]
    #: The account that each node is in, and the nodes by their distance from the root along these.
    within: NDArray[np.intp]
    depths: tuple[NDArray[np.intp], ...]
    #: The place of each node in :meth:`Tree.walk`.
    place: NDArray[np.intp]

    @cached_property
    def above(self) -> tuple[NDArray[np.intp], ...]:
        """The accounts that the nodes of each of :attr:`depths` are in."""
        return tuple(self.within[depth] for depth in self.depths)

    @cached_property
    def unused(self) -> Floats:
        """What the level fair share of each node is while nothing was used: infinite with shares, else 0."""
        return np.where(self.part > 0, np.inf, 0.0)

    @cached_property
    def any_joint(self) -> bool:
        """Whether there is a node without shares of its own."""
        return bool(self.joint.any())

    @cached_property
    def users(self) -> Floats:
        """How many users each node is or has below it, along :attr:`parent`."""
        total = self.is_user.astype(np.float64)
        for level in reversed(self.levels):
            total += np.bincount(self.parent[level], total[level], len(total))
        return total

    @cached_property
    def paths(self) -> tuple[NDArray[np.intp], ...] | None:
        """All users, what is above them, and so on up to below the root; None if they are not all equally
        far from it, or accounts are as far."""
        if not self.levels or not self.is_user[self.levels[-1]].all():
            return None
        if any(self.is_user[level].any() for level in self.levels[:-1]):
            return None
        found = [self.levels[-1]]
        for _ in self.levels[1:]:
            found.append(self.parent[found[-1]])
        return tuple(found)

    def sums(self, own: Floats) -> Floats:
        """Of each node what it and all nodes below it have."""
        total = own.copy()
        for depth, above in zip(reversed(self.depths), reversed(self.above), strict=True):
            total += np.bincount(above, total[depth], len(total))
        return total

    def of_parent(self, total: Floats) -> Floats:
        """Of what the node above has, each node's part; 0 where that is nothing. The root has all."""
        above = total[self.parent]
        return np.divide(total, above, out=np.zeros(len(total)), where=above > 0)


class Tree:
    """Accounts and associations; grows where jobs come of users or accounts that are not listed."""

    def __init__(
        self, entries: Iterable[Entry] = (), *, unknown_shares: float = 1.0, in_order: bool = False
    ) -> None:
        """``in_order``: accounts of the same account stand in the order of ``entries``, else in that of their
        names. Raises :class:`UserError` for what is twice there, belongs to no account or to itself, and for
        shares that are no number from 0 on."""
        self._in_order = in_order
        self.entries: list[Entry] = [Entry(ROOT, parent="")]
        self.unknown_shares = unknown_shares
        #: Whether the site listed accounts, so that an account that is not listed is reported.
        self.listed = False
        self._accounts: dict[str, int] = {ROOT: 0}
        self._users: dict[tuple[str, str], int] = {}
        self._default: dict[str, str] = {}
        self._shape: Shape | None = None
        for entry in _parents_first(entries):
            self.listed = True
            _check(entry)
            if entry.account == ROOT and not entry.user:
                continue
            self._add(entry)

    def __len__(self) -> int:
        return len(self.entries)

    def copy(self) -> Tree:
        """The tree as it is now; what is added to one of the two is not in the other."""
        found = copy.copy(self)
        found.entries = list(self.entries)
        found._accounts, found._users = dict(self._accounts), dict(self._users)
        found._default, found._shape = dict(self._default), self.shape()
        return found

    @property
    def accounts(self) -> dict[str, int]:
        """Account -> node."""
        return self._accounts

    def association(self, account: str, user: str) -> int | None:
        """The node of a user in an account; None if it is not listed."""
        return self._users.get((account, user))

    def node(self, account: str, group: str, user: str) -> tuple[int, str]:
        """Where a job's usage is counted, and "" or what is unknown about it; adds what is missing."""
        user = user or NOBODY
        if not account and (group in self._accounts or user not in self._default):
            account = group
        account = account or self._default.get(user, ROOT)
        found = self._users.get((account, user))
        if found is not None:
            return found, ""
        unknown = ""
        if account not in self._accounts:
            unknown = f"account {account!r}"
            self._add(Entry(account, shares=self.unknown_shares), listed=False)
        elif self.listed:
            unknown = f"user {user!r} in account {account!r}"
        self._add(Entry(account, user, account, self.unknown_shares), listed=False)
        return self._users[account, user], unknown if self.listed else ""

    def priorities(self) -> Floats:
        """Each node's priority; a node without a priority has that of the node above."""
        shape = self.shape()
        found = np.array([entry.priority for entry in self.entries])
        for depth, above in zip(shape.depths, shape.above, strict=True):
            found[depth] = np.where(found[depth] > 0, found[depth], found[above])
        return found

    def shape(self) -> Shape:
        """The tree as it is now, as arrays."""
        if self._shape is None:
            self._shape = self._arrays()
        return self._shape

    def walk(self) -> Iterator[tuple[int, int]]:
        """``(node, depth)`` from the root down, as ``sshare`` prints it: an account, its users by name, then
        the accounts below it."""
        below: dict[int, list[int]] = {}
        for node in range(1, len(self.entries)):
            below.setdefault(self._parent(node), []).append(node)
        stack = [(0, 0)]
        while stack:
            node, depth = stack.pop()
            yield node, depth
            children = sorted(below.get(node, ()), key=self._among_siblings)
            stack.extend((child, depth + 1) for child in reversed(children))

    def _among_siblings(self, node: int) -> tuple[bool, str | int]:
        """Where a node stands among the nodes of its account: users first."""
        entry = self.entries[node]
        if entry.user:
            return False, entry.user
        # As from Slurm 23.11 on, which sorts paths such as /physics/theory/.
        return True, node if self._in_order else f"{entry.account}/"

    def _parent(self, node: int) -> int:
        entry = self.entries[node]
        return self._accounts[entry.account if entry.user else entry.parent]

    def _add(self, entry: Entry, *, listed: bool = True) -> None:
        node = len(self.entries)
        where = f"{entry.where}: " if entry.where else ""
        if entry.user:
            key = (entry.account, entry.user)
            if entry.account not in self._accounts:
                hint = nearest(entry.account, self._accounts)
                raise UserError(
                    f"{where}user {entry.user!r}: expected a listed account, found {entry.account!r}.{hint}"
                )
            if key in self._users:
                raise UserError(f"{where}user {entry.user!r} is in account {entry.account!r} already")
            self._users[key] = node
            if listed and (entry.default or entry.user not in self._default):
                self._default[entry.user] = entry.account
        else:
            if entry.account in self._accounts:
                raise UserError(f"{where}account {entry.account!r} is listed already; names are unique")
            self._accounts[entry.account] = node
        self.entries.append(entry)
        self._shape = None

    def _arrays(self) -> Shape:
        count = len(self.entries)
        within = np.array([0, *map(self._parent, range(1, count))], np.intp)
        joint = np.array([entry.shares is None for entry in self.entries])
        parent = within.copy()
        if joint.any():
            for node in range(1, count):
                if joint[within[node]]:
                    parent[node] = parent[within[node]]
        shares = np.array([entry.shares or 0.0 for entry in self.entries])
        siblings = np.bincount(parent[1:], shares[1:], count)[parent]
        part = np.divide(shares, siblings, out=np.zeros(count), where=siblings > 0)
        part[0] = 1.0
        is_user = np.array([bool(entry.user) for entry in self.entries])
        depths = _by_distance(within)
        levels = _by_distance(parent) if joint.any() else depths
        place = np.zeros(count, np.intp)
        place[[node for node, _ in self.walk()]] = np.arange(count)
        return Shape(parent, is_user, joint, shares, part, levels, within, depths, place)


def level_fair_share(shape: Shape, total: Floats) -> Floats:
    """Part of the shares over part of the usage, a node; ``total``: what was used at and below each node."""
    used = shape.of_parent(total)
    found: Floats = np.divide(shape.part, used, out=shape.unused.copy(), where=used > 0)
    if shape.any_joint:
        found[shape.joint] = np.inf
    return found


def _by_distance(parent: NDArray[np.intp]) -> tuple[NDArray[np.intp], ...]:
    """The nodes by their distance from the root, from 1 on; a node's parent stands before it."""
    distance = np.zeros(len(parent), np.intp)
    for node in range(1, len(parent)):
        distance[node] = distance[parent[node]] + 1
    return tuple(np.flatnonzero(distance == one) for one in range(1, int(distance.max()) + 1))


def _check(entry: Entry) -> None:
    where = f"{entry.where}: " if entry.where else ""
    whose = (
        f"user {entry.user!r} in account {entry.account!r}" if entry.user else f"account {entry.account!r}"
    )
    for value, what in ((entry.shares, "shares"), (entry.target, "target")):
        if value is not None and not (math.isfinite(value) and 0 <= value <= 1e12):
            raise UserError(f"{where}{whose}: {what}: expected a number from 0 to 1e12, found {value}")


def _parents_first(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Accounts after the account that they belong to, then the users; :class:`UserError` for a circle."""
    users: list[Entry] = []
    below: dict[str, list[Entry]] = {}
    accounts: dict[str, Entry] = {}
    for entry in entries:
        if entry.user:
            users.append(entry)
        else:
            below.setdefault(entry.parent, []).append(entry)
            accounts.setdefault(entry.account, entry)
    told = 0
    waiting = [*below.get("", ()), *below.get(ROOT, ())]
    while waiting:
        entry = waiting.pop(0)
        told += 1
        yield entry
        if entry.account != ROOT:
            waiting.extend(below.pop(entry.account, ()))
    lost = [entry for parent, group in below.items() if parent not in ("", ROOT) for entry in group]
    for entry in lost:
        where = f"{entry.where}: " if entry.where else ""
        if entry.parent not in accounts:
            hint = nearest(entry.parent, accounts)
            raise UserError(
                f"{where}account {entry.account!r}: expected an account above it that is listed, found "
                f"{entry.parent!r}.{hint}"
            )
    if lost:
        chain = [lost[0].account]
        while (above := accounts[chain[-1]].parent) not in chain:
            chain.append(above)
        circle = [*chain[chain.index(above) :], above]
        where = f"{lost[0].where}: " if lost[0].where else ""
        raise UserError(f"{where}accounts in a circle: {' below '.join(map(repr, circle))}")
    yield from users
