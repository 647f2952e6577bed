"""Estimates first, runtimes from them: log-uniform estimates and gamma-distributed accuracies.

W. Cirne and F. Berman: A Comprehensive Model of the Supercomputer Workload. 4th IEEE Workshop on Workload
Characterization, 2001, as D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP
2005, section 2, tell of it: runtime = accuracy x estimate, so the jobs' own runtimes are not looked at, and
are replaced. No parameters are published there, so none is a default here. An accuracy above 1 is drawn
again.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from headway.errors import UserError
from headway.hookspecs import Plugin, hookimpl
from headway.inputs.durations import WholeSeconds
from headway.plugins import Traits
from headway.workload import EstimateModel, Estimates, RunJobs
from headway_plugins.estimates.model import EstimateOptions, Unfitted

#: So often accuracies above 1 are drawn again.
_TRIES = 1000


class CirneBermanOptions(EstimateOptions):
    """The options of :class:`CirneBermanModel`."""

    shape: float = Field(gt=0, le=1000, description="shape of the accuracies' gamma distribution")
    scale: float = Field(gt=0, le=1000, description="scale of that distribution; the mean is shape x scale")
    shortest: WholeSeconds = Field(description="the shortest estimate")
    longest: WholeSeconds = Field(description="the longest estimate")

    @model_validator(mode="after")
    def _rising(self) -> CirneBermanOptions:
        if self.shortest > self.longest:
            raise ValueError("the shortest estimate at most as long as the longest")
        return self


class CirneBermanModel(Unfitted):
    """The model as :class:`headway.workload.EstimateModel`; runtimes are replaced, too."""

    Options = CirneBermanOptions

    def estimates(self, rng: np.random.Generator, jobs: RunJobs, options: CirneBermanOptions) -> Estimates:
        low, high = np.log(options.shortest), np.log(options.longest)
        estimate = np.rint(np.exp(rng.uniform(low, high, len(jobs))))
        accuracy = rng.gamma(options.shape, options.scale, len(jobs))
        for _ in range(_TRIES):
            again = np.flatnonzero(accuracy > 1)
            if not len(again):
                break
            accuracy[again] = rng.gamma(options.shape, options.scale, len(again))
        else:
            raise UserError(
                f"estimate model cirne-berman: expected accuracies of at most 1, but with shape "
                f"{options.shape:g} and scale {options.scale:g} nearly no accuracy is"
            )
        notes = ("the runtimes are drawn, too",)
        return Estimates(estimate, runtime=np.rint(accuracy * estimate), notes=notes)


class CirneBerman(Plugin):
    """The estimate model "cirne-berman": log-uniform estimates, runtimes by a gamma-distributed accuracy."""

    traits = Traits(paper="after Cirne and Berman, 2001")

    @hookimpl
    def register_estimates(self) -> dict[str, EstimateModel]:
        return {"cirne-berman": CirneBermanModel()}
