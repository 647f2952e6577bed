"""Fair share as it was before fair tree: 2 ** -(usage / shares).

After Slurm's page "Classic Fairshare Algorithm" (slurm.schedmd.com/classic_fair_share.html). Shares are
normalised down the tree: a node's part of its siblings' shares times what the node above has. Its *effective
usage* is its own part of all usage, and, below the first level, what it answers for of the account's::

    effective = own + (effective of the account - own) x part of the siblings' shares

The factor is ``2 ** -(effective / shares / dampening)``: 1 without usage, 1/2 for a node below the root that
has used exactly its share. No shares: 0. A user without shares of their own (``parent``) stands as the
account does.
"""

from __future__ import annotations

import numpy as np
import pydantic

from headway_plugins.accounts.counting import DecayOptions
from headway_plugins.accounts.tree import Floats, Shape
from headway_plugins.priority.fair_share import FairShare


class ClassicOptions(DecayOptions):
    """Options of classic fair share."""

    dampening: float = pydantic.Field(
        default=1.0, gt=0, le=1e6, description="dampening factor: the larger it is, the less usage matters"
    )


def normalised_shares(shape: Shape) -> Floats:
    """Each node's part of the whole machine; the root has all of it."""
    shares = shape.part.copy()
    for level in shape.levels:
        above = shares[shape.parent[level]]
        shares[level] = np.where(shape.joint[level], above, shares[level] * above)
    return shares


def effective_usage(shape: Shape, total: Floats) -> Floats:
    """Each node's part of all usage, with what it answers for; the root's is 1 if anything was used."""
    own = total / total[0] if total[0] > 0 else np.zeros_like(total)
    effective = own.copy()
    for depth, level in enumerate(shape.levels):
        above = effective[shape.parent[level]]
        if depth:
            effective[level] += (above - own[level]) * shape.part[level]
        effective[level] = np.where(shape.joint[level], above, effective[level])
    return effective


class Classic(FairShare):
    """Fair share as 2 ** -(usage / shares): half at exactly the share."""

    Options = ClassicOptions
    judges_accounts = True

    def shares_and_usage(self, shape: Shape, total: Floats) -> tuple[Floats, Floats]:
        return normalised_shares(shape), effective_usage(shape, total)

    def judge(self, total: Floats) -> Floats:
        shape = self.tree.shape()
        shares, used = normalised_shares(shape), effective_usage(shape, total)
        ratio = np.divide(used, shares, out=np.full_like(used, np.inf), where=shares > 0)
        return np.exp2(-ratio / self.options.dampening)
