"""Estimates from a uniform accuracy, with a share of exact ones: the phi-model ("feit").

D. G. Feitelson and others, as D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP
2005, section 2, tell of it: runtime / estimate is uniform, but for a peak at 100 % and a hump of very low
accuracies. The paper states neither the peak's share nor how the hump is made.

Decisions: the share phi is an option, by default the share of the jobs' own estimates whose accuracy is at
least 99 % (0 if none is known); the hump is one of the jobs shorter than 90 s, whose accuracy is then
uniform up to 10 %, and off by default.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from headway.hookspecs import Plugin, hookimpl
from headway.inputs.durations import WholeSeconds
from headway.plugins import Traits
from headway.workload import EstimateModel, Estimates, RunJobs
from headway_plugins.estimates.model import RoundedOptions, Unfitted, whole

#: Seconds, and accuracy: of the jobs that the hump is made of.
HUMP_RUNTIME, HUMP_ACCURACY = 90.0, 0.1
#: An accuracy from here on counts as exact.
EXACT = 0.99


class FeitelsonOptions(RoundedOptions):
    """The options of :class:`FeitelsonModel`."""

    phi: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of exact estimates; default: the share among the jobs' own estimates",
    )
    hump: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of jobs with an accuracy of at most 10 %, among jobs shorter than 90 s",
    )
    maximum: WholeSeconds = Field(86400, description="the longest estimate; longer ones are cut to it")


class FeitelsonModel(Unfitted):
    """The model as :class:`headway.workload.EstimateModel`."""

    Options = FeitelsonOptions

    def estimates(self, rng: np.random.Generator, jobs: RunJobs, options: FeitelsonOptions) -> Estimates:
        runtime, count = jobs.runtime, len(jobs)
        phi = options.phi
        notes: tuple[str, ...] = ()
        if phi is None:
            known = ~np.isnan(jobs.estimate)
            phi = float((runtime[known] >= EXACT * jobs.estimate[known]).mean()) if known.any() else 0.0
            notes = (f"phi {phi:.4f}: the share of the jobs' own estimates that are exact",)
        accuracy = 1.0 - rng.random(count)
        low = (runtime < HUMP_RUNTIME) & (rng.random(count) < options.hump)
        accuracy[low] *= HUMP_ACCURACY
        accuracy[~low & (rng.random(count) < phi)] = 1.0
        found = np.minimum(runtime / accuracy, options.maximum)
        return Estimates(whole(found, runtime, options.rounding), notes=notes)


class Feitelson(Plugin):
    """The estimate model "feit": uniform accuracies, and a share of exact estimates."""

    traits = Traits(paper="after Tsafrir, Etsion and Feitelson, JSSPP 2005, section 2")

    @hookimpl
    def register_estimates(self) -> dict[str, EstimateModel]:
        return {"feit": FeitelsonModel()}
