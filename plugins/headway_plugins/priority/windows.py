"""Fair share in windows, with targets, ceilings and floors, as in Maui.

After the Maui administrator's guide, chapter "Fairshare" (FSINTERVAL, FSDEPTH, FSDECAY, FSTARGET). What was
used is summed in windows of a fixed length. The present window counts in full, the window before ``decay``
times, the window before that ``decay ** 2`` times, and so on, ``depth`` windows in all. A node's use is its
percentage of what the account above has used in that sum. The use is held against the node's target, a
percentage as well:

- ``target``: above it the factor falls, below it rises; ``ceiling``: it only falls, above; ``floor``: it
  only rises, below; ``cap``: as ``ceiling``, and 0 for all below a node that is above it.

Decisions on what is left open: the differences of a user and of the accounts above add up, as Maui adds the
components of its credentials; the factor is ``1/2 + sum / 200``, held to 0..1, so 1/2 is "as it should be".
A node without a target has its part of its siblings' shares as its target. A node without usage has 0 %;
while there is no usage at all, every node has 1/2. Windows begin at multiples of their length, from the epoch
on.
"""

from __future__ import annotations

import numpy as np
import pydantic

from headway_plugins.accounts.counting import CountingOptions
from headway_plugins.accounts.options import Seconds
from headway_plugins.accounts.tree import Floats
from headway_plugins.accounts.usage import Ledger, Windowed
from headway_plugins.priority.fair_share import FairShare


class WindowsOptions(CountingOptions):
    """Options of fair share in windows."""

    interval: Seconds = pydantic.Field(default=86400.0, description="length of a window, such as 1d")
    depth: int = pydantic.Field(default=7, ge=1, le=1000, description="number of windows that count")
    decay: float = pydantic.Field(
        default=0.8, gt=0, le=1, description="weight of a window relative to the next, later window"
    )


class Windows(FairShare):
    """Fair share in decaying windows, with targets, ceilings and floors."""

    Options = WindowsOptions

    def make_ledger(self) -> Ledger:
        return Windowed(self.options.interval, self.options.depth, self.options.decay)

    def judge(self, total: Floats) -> Floats:
        shape = self.tree.shape()
        entries = self.tree.entries
        target = np.array(
            [
                100 * part if e.target is None else e.target
                for e, part in zip(entries, shape.part, strict=True)
            ]
        )
        used = 100 * shape.of_parent(total)
        difference = np.where(total[shape.parent] > 0, target - used, 0.0)
        bound = np.array([entry.bound for entry in entries])
        above_only = (bound == "ceiling") | (bound == "cap")
        difference = np.where(above_only, np.minimum(difference, 0.0), difference)
        difference = np.where(bound == "floor", np.maximum(difference, 0.0), difference)
        difference[0] = 0.0
        difference[shape.joint] = 0.0
        stopped = (bound == "cap") & (difference < 0)
        for level in shape.levels:
            difference[level] += difference[shape.parent[level]]
            stopped[level] |= stopped[shape.parent[level]]
        return np.where(stopped, 0.0, np.clip(0.5 + difference / 200, 0.0, 1.0))
