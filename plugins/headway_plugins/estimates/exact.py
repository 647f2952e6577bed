"""Perfect estimates: the runtimes themselves ("f0" of the f-model)."""

from __future__ import annotations

import numpy as np

from headway.hookspecs import Plugin, hookimpl
from headway.workload import EstimateModel, Estimates, RunJobs
from headway_plugins.estimates.model import RoundedOptions, Unfitted, whole


class ExactOptions(RoundedOptions):
    """The options of :class:`ExactModel`."""


class ExactModel(Unfitted):
    """The model as :class:`headway.workload.EstimateModel`; whole seconds, at least 1."""

    Options = ExactOptions

    def estimates(self, rng: np.random.Generator, jobs: RunJobs, options: ExactOptions) -> Estimates:
        return Estimates(whole(jobs.runtime, jobs.runtime, options.rounding))


class Exact(Plugin):
    """The estimate model "exact": each job's runtime."""

    @hookimpl
    def register_estimates(self) -> dict[str, EstimateModel]:
        return {"exact": ExactModel()}
