"""Fair share by fair tree, the default algorithm of Slurm.

After R. Cox, L. Morrison: Fair Tree. Brigham Young University, 2014, and Slurm's page "Fair Tree Fairshare
Algorithm" (slurm.schedmd.com/fair_tree.html). Each node of the tree of accounts has a *level fair share*:

    level_fs = part of the siblings' shares / part of the siblings' usage

and no usage is infinite. From the root down siblings are sorted by it, the largest first, and all users are
ranked in that order. A user's factor is (rank from the end) / (number of associations): 1 for the first. So
all users of an account are before all users of a sibling account with a smaller level fair share.

Ties: equal users have the rank of the first of them, and the next user comes behind them all. The children
of equal accounts are sorted as siblings of each other. Of a user and an account that are equal the user is
first, and the first users in the account have that user's rank.

No shares, no claim: the level fair share is 0, whatever was used. A user without shares of their own
(``parent``) comes first in the account, as every user without usage does. The users in an account without
shares of its own are sorted among the siblings of that account.

That is the documentation. Slurm itself does not merge the children of equal accounts: ``ties: as-slurm`` is
what it does, see :mod:`.fair_tree_as_slurm`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from headway_plugins.accounts.counting import DecayOptions
from headway_plugins.accounts.tree import Floats, Shape, level_fair_share
from headway_plugins.priority.fair_share import FairShare
from headway_plugins.priority.fair_tree_as_slurm import ranked_as_slurm


class FairTreeOptions(DecayOptions):
    """Options of fair tree."""

    ties: Literal["as-documented", "as-slurm"] = pydantic.Field(
        default="as-documented",
        description="rank of users whose accounts tie; as-documented: as users of a single account; "
        "as-slurm: account by account, as a running Slurm ranks them (to compare with sshare)",
    )


def ranked(shape: Shape, level_fs: Floats) -> Floats:
    """Each user's factor, 1 for the first and 1/n for the last; 0 for accounts.

    Level by level, because the level at which two users part decides their order. ``group``: accounts that
    are equal all the way up are one group; ``before``: how many users are before all users of the group;
    ``shared``: the same for the first users in it, where a user beside the group is as good (else -1).
    """
    count = len(level_fs)
    if shape.paths is not None:
        return _ranked_by_path(shape.paths, level_fs)
    users = shape.users
    group = np.zeros(count, np.intp)
    before = np.zeros(count)
    shared = np.full(count, -1.0)
    for level in shape.levels:
        above = group[shape.parent[level]]
        account = ~shape.is_user[level]
        order = np.lexsort((account, -level_fs[level], above))
        nodes, above = level[order], above[order]
        value, account = level_fs[nodes], account[order]
        size = users[nodes]
        earlier = np.cumsum(size) - size
        family = np.ones(len(nodes), bool)
        family[1:] = above[1:] != above[:-1]
        other = family.copy()
        other[1:] |= (value[1:] != value[:-1]) | (account[1:] != account[:-1])
        first_of_family = np.maximum.accumulate(np.where(family, np.arange(len(nodes)), 0))
        first_of_equals = np.maximum.accumulate(np.where(other, np.arange(len(nodes)), 0))
        before[nodes] = before[shape.parent[nodes]] + earlier[first_of_equals] - earlier[first_of_family]
        group[nodes] = np.cumsum(other) - 1
        # The first users in an account that is equal to a user; the account comes right behind that user.
        first = value == value[first_of_family]
        inherited = np.where(first, shared[shape.parent[nodes]], -1.0)
        before[nodes] = np.where((inherited >= 0) & ~account, inherited, before[nodes])
        previous = np.maximum(first_of_equals - 1, 0)
        equal = (
            account & (first_of_equals > first_of_family) & (value[previous] == value) & ~account[previous]
        )
        shared[nodes] = np.where(equal, before[nodes[previous]], np.where(account, inherited, -1.0))
    return np.where(shape.is_user, (users[0] - before) / max(users[0], 1.0), 0.0)


def _ranked_by_path(paths: tuple[NDArray[np.intp], ...], level_fs: Floats) -> Floats:
    """The same where all users are at the lowest level: then they are sorted by what is above them, level by
    level from the top, and at last by themselves."""
    largest_first = -level_fs
    keys = [largest_first[nodes] for nodes in paths]
    order = np.lexsort(keys)
    count = len(order)
    other = np.zeros(count, np.bool_)
    for key in keys:
        key = key[order]
        other[1:] |= key[1:] != key[:-1]
    before = np.maximum.accumulate(np.arange(count) * other)
    found = np.zeros(len(level_fs))
    found[paths[0][order]] = (count - before) / count
    return found


class FairTree(FairShare):
    """Fair share by fair tree: users of the account that is most below its share come first."""

    traits = replace(FairShare.traits, paper="R. Cox, L. Morrison: Fair Tree. Brigham Young University, 2014")
    Options = FairTreeOptions
    options: FairTreeOptions

    def judge(self, total: Floats) -> Floats:
        shape = self.tree.shape()
        rank = ranked_as_slurm if self.options.ties == "as-slurm" else ranked
        return rank(shape, level_fair_share(shape, total))
