"""The users' own estimates, multiplied: "X2" of the literature on backfilling.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP 2005, section 8. The paper
doubles estimates for planning and leaves the limit as it is. Here the limit is kept by the runtimes: they are
cut at the users' own estimates before these are replaced (:mod:`headway.workload.estimate_models`).
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from headway.errors import UserError
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits
from headway.workload import EstimateModel, Estimates, RunJobs
from headway_plugins.estimates.model import EstimateOptions, Unfitted


class MultipleOptions(EstimateOptions):
    """The options of :class:`MultipleModel`."""

    factor: float = Field(2.0, gt=0, le=1000, description="factor on the user's estimate")


class MultipleModel(Unfitted):
    """The model as :class:`headway.workload.EstimateModel`; needs the users' estimates."""

    Options = MultipleOptions

    def estimates(self, rng: np.random.Generator, jobs: RunJobs, options: MultipleOptions) -> Estimates:
        return Estimates(own_estimates("x2", jobs) * options.factor)


class Multiple(Plugin):
    """The estimate model "x2": twice what the user said."""

    traits = Traits(paper="Tsafrir, Etsion and Feitelson, JSSPP 2005, section 8")

    @hookimpl
    def register_estimates(self) -> dict[str, EstimateModel]:
        return {"x2": MultipleModel()}


def own_estimates(model: str, jobs: RunJobs) -> np.ndarray:
    """The users' estimates; raises :class:`UserError` if one is not known."""
    unknown = int(np.isnan(jobs.estimate).sum())
    if unknown:
        raise UserError(
            f"estimate model {model}: expected an estimate of each job, found {unknown:,} of {len(jobs):,} "
            "jobs without one"
        )
    return jobs.estimate
