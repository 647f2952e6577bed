"""Users' estimates by the f-model: uniform between the runtime and f + 1 times that.

A. Mu'alem and D. Feitelson: Utilization, Predictability, Workloads, and User Runtime Estimates in
Scheduling the IBM SP2 with Backfilling. IEEE TPDS 12(6), 2001, section 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits
from headway.workload import EstimateModel, Estimates, RunJobs
from headway_plugins.estimates.model import RoundedOptions, Unfitted, whole

Floats = NDArray[np.float64]


class FModelOptions(RoundedOptions):
    """The options of :class:`FModelModel`."""

    f: float = Field(
        1.0,
        ge=0,
        le=1000,
        description="estimates are drawn uniformly between the runtime and f + 1 times the runtime",
    )


class FModelModel(Unfitted):
    """The model as :class:`headway.workload.EstimateModel`."""

    Options = FModelOptions

    def estimates(self, rng: np.random.Generator, jobs: RunJobs, options: FModelOptions) -> Estimates:
        return Estimates(whole(estimates(rng, jobs.runtime, options.f), jobs.runtime, options.rounding))


class FModel(Plugin):
    """The estimate model "f-model": uniform between the runtime and f + 1 times that."""

    traits = Traits(paper="Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 4")

    @hookimpl
    def register_estimates(self) -> dict[str, EstimateModel]:
        return {"f-model": FModelModel()}


def estimates(rng: np.random.Generator, runtime: Floats, f: float) -> Floats:
    """Whole seconds, never less than the runtime; ``f`` of 0: the runtimes themselves."""
    if f == 0:
        return runtime
    found: Floats = np.maximum(np.rint(runtime * rng.uniform(1.0, f + 1.0, len(runtime))), runtime)
    return found
