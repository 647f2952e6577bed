"""Python's cycle collector, while there are very many objects that are in no cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Jobs of emulations that are over, after which what these have left behind is cleared away.
_MANY = 50_000
#: Jobs of emulations since that was done last in this process.
_left = 0


@contextmanager
def quiet_collector(jobs: int = 0) -> Iterator[None]:
    """Keep the cycle collector from walking over a whole workload again and again.

    Runs and reports make few reference cycles, but one keeps a run's whole state: of a run of ``jobs`` jobs
    it is cleared away before a later one begins, once it is worth the walk. What was there before is set
    aside.
    """
    global _left
    if _left > _MANY:
        gc.collect()
        _left = 0
    _left += jobs
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
