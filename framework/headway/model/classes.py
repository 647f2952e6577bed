"""Narrow and wide, short and long: the four classes in which a workload is looked at.

A. A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. U. Khan, C.-Z. Xu, "A comparative study on
resource allocation and energy efficient job scheduling strategies in large-scale parallel computing
systems", 2014, section 4.2 and table 5: a job is narrow if it asks for one processor, else wide; short
if it runs for an hour at most, else long. Both bounds can be set, because what is narrow on a machine
whose nodes have 64 processors is another matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

#: Short and narrow, long and narrow, short and wide, long and wide.
CLASSES = ("SN", "LN", "SW", "LW")


class ClassBounds(msgspec.Struct, frozen=True):
    """Where narrow and short end; both bounds belong to them."""

    #: Processors.
    narrow: int = 1
    #: Seconds of runtime.
    short: float = 3600.0

    def of(self, processors: ArrayLike, runtime: ArrayLike) -> NDArray[np.int64]:
        """Each job's index in :data:`CLASSES`; -1 without a size, or a runtime (negative or NaN)."""
        # A configuration has bounds, and is read by commands that count nothing.
        import numpy as np

        size, seconds = np.asarray(processors), np.asarray(runtime, np.float64)
        index = 2 * (size > self.narrow).astype(np.int64) + (seconds > self.short)
        # Not "seconds < 0": that would be false for NaN.
        return np.where((size > 0) & (seconds >= 0), index, -1)

    def describe(self) -> dict[str, str]:
        """Each class in words: ``{"SN": "at most 1 processor, at most 3600 s", ...}``."""
        widths = (f"at most {self.narrow} processor{'' if self.narrow == 1 else 's'}", "more")
        lengths = (f"at most {self.short:g} s", "longer")
        return {name: f"{widths[at // 2]}, {lengths[at % 2]}" for at, name in enumerate(CLASSES)}
