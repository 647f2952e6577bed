"""Fair tree with ties as a running Slurm ranks them, which is not what its documentation says.

As seen on Slurm 22.05.8 and 24.11.5 (``sshare -a`` of random trees with many ties). Slurm goes through the
tree from the root down, siblings by their level fair share, the largest first, and counts users:

- Siblings that tie: users before accounts, and accounts in the order in which Slurm lists them, which is by
  name. The children of accounts that tie are not merged: each account's users come before the next account's.
- The children of an account without shares of its own are siblings of that account, and stand in its place.
- A user that ties with the sibling before has the same rank as the user that was ranked last.
- The first child of an account that ties with the sibling before has that rank, too, whatever the child's own
  level fair share is. A first child that is an account passes it on to its own first child.

So of accounts that tie, the first user of the next account has the rank of the last user of the account
before, whatever that user has used.

Left open: from a start of slurmctld on, 22.05 orders accounts that tie as its database does; after a change
of shares, by name. 24.11 orders them by name always, and so does this plugin. Names are compared as
``name/``, as 24.11 does (``a-b`` before ``a``; 22.05: after it). Where the running Slurm's accounts are used,
its own order counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway_plugins.accounts.tree import Floats, Shape


def ranked_as_slurm(shape: Shape, level_fs: Floats) -> Floats:
    """Each user's factor, 1 for the first; 0 for accounts. Arrays have a value a node."""
    before, tied = _in_turn(shape, level_fs)
    users = np.flatnonzero(shape.is_user)
    users = users[np.argsort(before[users])]
    count = len(users)
    earlier = np.maximum.accumulate(np.where(tied[users], 0, np.arange(count)))
    found = np.zeros(len(level_fs))
    found[users] = (count - earlier) / max(count, 1)
    return found


def _in_turn(shape: Shape, level_fs: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """How many users come before each node, and whether the node ties with what comes before it."""
    before = np.zeros(len(level_fs))
    tied = np.zeros(len(level_fs), np.bool_)
    for level in shape.levels:
        keys = (shape.place[level], ~shape.is_user[level], -level_fs[level], shape.parent[level])
        nodes = level[np.lexsort(keys)]
        above, value, size = shape.parent[nodes], level_fs[nodes], shape.users[nodes]
        first = np.ones(len(nodes), np.bool_)
        first[1:] = above[1:] != above[:-1]
        same = np.zeros(len(nodes), np.bool_)
        same[1:] = value[1:] == value[:-1]
        tied[nodes] = np.where(first, tied[above], same)
        earlier = np.cumsum(size) - size
        family = np.maximum.accumulate(np.where(first, np.arange(len(nodes)), 0))
        before[nodes] = before[above] + earlier - earlier[family]
    return before, tied
