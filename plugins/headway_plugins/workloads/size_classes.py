"""Sizes of which the shares of classes and the mean are published, and nothing else.

X. Liu, B. Chen, X. Qiu, Y. Cai, K. Huang: Scheduling Parallel Jobs Using Migration and Consolidation in the
Cloud. 2012, section 3.1 and Table 1: what the models of Feitelson 1996 and of Jann and others 1997 gave them.
The models' own parameters were not to be had. So each class (1, 2, 3-4, 5-8, ... processors) has its
published share, and inside a class size s has the weight s^-1.5 (the harmonic law of order 1.5 of
Feitelson 1996), ten times that for powers of two, times s^t, where t is what the published mean needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from headway.inputs.extras import need_report

Floats = NDArray[np.float64]

#: The largest size of each class but the last one.
CLASSES = (1, 2, 4, 8, 16, 32, 64, 128)
#: The machine for which the shares and the mean are published.
PUBLISHED_FOR = 320
#: Order of the harmonic law, and how many times as popular a power of two is.
ORDER = 1.5
POWER_OF_TWO = 10.0


@dataclass(frozen=True)
class SizeClasses:
    """Published shares of the classes, in percent, and the published mean."""

    shares: tuple[float, ...]
    mean: float

    def probabilities(self, processors: int) -> Floats:
        """Of sizes 1 to ``processors``. On a smaller machine than the published one the classes above it
        are left out; on a larger one the last class goes on."""
        return _probabilities(self, processors, _tilt(self))

    def draw(self, rng: np.random.Generator, count: int, processors: int) -> Floats:
        """Processors of so many jobs."""
        all_sizes = np.arange(1, processors + 1, dtype=np.float64)
        return rng.choice(all_sizes, size=count, p=self.probabilities(processors))


def class_of(sizes: Floats) -> NDArray[np.intp]:
    """The index of each size's class."""
    return np.searchsorted(CLASSES, sizes)


def _probabilities(classes: SizeClasses, processors: int, tilt: float) -> Floats:
    size = np.arange(1, processors + 1, dtype=np.float64)
    power = 2.0 ** np.rint(np.log2(size)) == size
    weight = size ** (tilt - ORDER) * np.where(power, POWER_OF_TWO, 1.0)
    kind = class_of(size)
    within = np.bincount(kind, weight, len(classes.shares))
    probability = weight / within[kind] * np.asarray(classes.shares)[kind]
    found: Floats = probability / probability.sum()
    return found


@cache
def _tilt(classes: SizeClasses) -> float:
    need_report("a workload of size classes")
    from scipy.optimize import brentq

    size = np.arange(1, PUBLISHED_FOR + 1)

    def surplus(tilt: float) -> float:
        return float(size @ _probabilities(classes, PUBLISHED_FOR, tilt)) - classes.mean

    return float(brentq(surplus, -60.0, 60.0))
