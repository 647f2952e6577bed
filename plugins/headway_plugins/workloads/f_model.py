"""Users' estimates by the f-model: uniform between the runtime and f + 1 times that.

A. Mu'alem and D. Feitelson: Utilization, Predictability, Workloads, and User Runtime Estimates in
Scheduling the IBM SP2 with Backfilling. IEEE TPDS 12(6), 2001, section 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def estimates(rng: np.random.Generator, runtime: Floats, f: float) -> Floats:
    """Whole seconds, never less than the runtime; ``f`` of 0: the runtimes themselves."""
    if f == 0:
        return runtime
    found: Floats = np.maximum(np.rint(runtime * rng.uniform(1.0, f + 1.0, len(runtime))), runtime)
    return found
