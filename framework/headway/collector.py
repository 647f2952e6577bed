"""Python's cycle collector, while there are very many objects that are in no cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Keep the cycle collector from walking over a whole workload again and again.

    Runs and reports make no reference cycles to speak of; what was there before is set aside.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
