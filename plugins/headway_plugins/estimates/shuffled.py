"""The users' own estimates, given to other jobs at random, none below its runtime.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP 2005, section 7 ("shfl"): the
values stay what they were, but no longer say anything of the job beyond its runtime.
"""

from __future__ import annotations

import numpy as np

from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits
from headway.workload import EstimateModel, Estimates, RunJobs
from headway_plugins.estimates.model import EstimateOptions, Unfitted
from headway_plugins.estimates.multiple import own_estimates
from headway_plugins.estimates.pairing import paired


class ShuffledOptions(EstimateOptions):
    """:class:`ShuffledModel` has no options."""


class ShuffledModel(Unfitted):
    """The model as :class:`headway.workload.EstimateModel`; needs the users' estimates."""

    Options = ShuffledOptions

    def estimates(self, rng: np.random.Generator, jobs: RunJobs, options: ShuffledOptions) -> Estimates:
        return Estimates(paired(rng, jobs.runtime, own_estimates("shfl", jobs)))


class Shuffled(Plugin):
    """The estimate model "shfl": the users' estimates at other jobs."""

    traits = Traits(paper="Tsafrir, Etsion and Feitelson, JSSPP 2005, section 7")

    @hookimpl
    def register_estimates(self) -> dict[str, EstimateModel]:
        return {"shfl": ShuffledModel()}
