"""Which job has which estimate, if none may be below its job's runtime.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP 2005, section 7 ("random
shuffle"). The paper leaves the order open in which jobs are served: here the longest runtime first, which
makes every possible pairing equally likely, because the estimates that a job may have are among the estimates
that the next one may have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError

Floats = NDArray[np.float64]


def raised(runtime: Floats, estimate: Floats) -> tuple[Floats, int]:
    """The estimates (seconds), in ascending order, so that each job can have one that is not below its
    runtime: each that is below the runtime of its rank is raised to the shortest one that occurs and is not;
    and how many were raised. None could be shorter; fewer may do if some are raised further."""
    known = np.unique(estimate)
    ascending = np.sort(estimate)
    # In order of length each job's runtime as the shortest estimate that is enough for it.
    wanted = known[np.searchsorted(known, np.minimum(np.sort(runtime), known[-1]))]
    found = np.maximum(ascending, wanted)
    return found, int((found > ascending).sum())


def paired(rng: np.random.Generator, runtime: Floats, estimate: Floats) -> Floats:
    """The same estimates (seconds), in the order of the jobs with these runtimes (seconds).

    Runtimes beyond the largest estimate count as if they were equal to it. Raises :class:`UserError` if no
    pairing gives each job an estimate of at least its runtime.
    """
    total = len(runtime)
    if not total:
        return estimate.copy()
    descending = np.sort(estimate)[::-1]
    order = np.argsort(-runtime, kind="stable")
    wanted = np.minimum(runtime[order], descending[0])
    short = np.flatnonzero(descending < wanted)
    if len(short):
        at = int(short[0])
        raise UserError(
            f"estimates: {at + 1:,} jobs run for {wanted[at]:g} s or longer, and only {at:,} estimates are "
            "so long: expected a larger maximum, the share of the jobs that ask for it, or too_short=raise"
        )
    # For each job, how many estimates are long enough: they are the first ones.
    enough = np.searchsorted(-descending, -wanted, side="right")
    first = np.arange(total)
    pick = first + np.floor(rng.random(total) * (enough - first)).astype(np.int64)
    values = descending.tolist()
    for at, k in enumerate(pick.tolist()):
        values[at], values[k] = values[k], values[at]
    found = np.empty(total)
    found[order] = values
    return found
