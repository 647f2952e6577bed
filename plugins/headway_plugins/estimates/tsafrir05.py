"""The modal model of users' runtime estimates: few round values carry nearly all jobs.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP 2005 (LNCS 3834). A histogram
of estimates is drawn from the number of jobs, the largest allowed estimate and, if they are known, the shares
of some (:mod:`.modal`); then each job gets one that is not below its runtime (:mod:`.pairing`).

Decisions: without a ``maximum`` it is the longest runtime, in whole hours (up); a runtime beyond the maximum
counts as one of that length. Fitting takes the largest estimate and the twenty most popular ones: the
share of the largest, and the nineteen largest shares beside it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from headway.errors import UserError
from headway.hookspecs import Plugin, hookimpl
from headway.inputs.durations import WholeSeconds, as_seconds
from headway.plugins import Traits
from headway.workload import EstimateModel, Estimates, RunJobs
from headway_plugins.estimates.modal import (
    HOUR,
    PAPER,
    PUBLISHED_CODE,
    Mode,
    Pair,
    histogram,
    modes_by_power,
)
from headway_plugins.estimates.model import EstimateOptions
from headway_plugins.estimates.pairing import paired, raised
from headway_plugins.estimates.ranks import HEAD

#: The model is made for workloads of at least so many jobs.
FEW = 500
#: Digits of a fitted share, per cent.
_DIGITS = 6


class Tsafrir05Options(EstimateOptions):
    """The options of :class:`Tsafrir05Model`."""

    maximum: WholeSeconds | None = Field(
        None,
        ge=60,
        description="T_max, the largest allowed estimate (18h); default: the longest runtime in hours",
    )
    pairs: tuple[tuple[WholeSeconds, float], ...] = Field(
        (), description="known estimates with their shares in percent: [[18h, 23.8], [15m, 10.6]]"
    )
    constants: Literal["paper", "published-code"] = Field(
        "paper", description="the fitted constants: as the paper prints them, or as in the authors' program"
    )
    head_mass: float = Field(89.0, gt=0, lt=100, description="share of the 20 popular estimates, in percent")
    modes: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="K, the number of different estimates; default: by the number of jobs",
    )
    modes_by: Literal["table", "power"] = Field(
        "table", description="source of K: the paper's Table 3, or its power law alpha x jobs ^ beta"
    )
    alpha: float = Field(1.1, gt=0, le=100, description="of the power law")
    beta: float = Field(0.5, gt=0, le=1, description="of the power law")
    shape: float | None = Field(
        None, gt=1, le=1000, description="a, how early the times bend upwards; default: by K"
    )

    too_short: Literal["refuse", "raise"] = Field(
        "refuse",
        description="where too few estimates are long enough for the jobs: refuse the draw, or raise each "
        "estimate that is too short to the next larger estimate that the model gave",
    )

    @field_validator("pairs", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or not all(
            isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value
        ):
            raise ValueError("a list of pairs [time, per cent]")
        return tuple((as_seconds(time), share) for time, share in value)

    @model_validator(mode="after")
    def _known(self) -> Tsafrir05Options:
        if self.pairs and self.maximum is None:
            raise ValueError("a maximum where there are pairs")
        return self


class Tsafrir05Model:
    """The model as :class:`headway.workload.EstimateModel`."""

    Options = Tsafrir05Options

    def estimates(self, rng: np.random.Generator, jobs: RunJobs, options: Tsafrir05Options) -> Estimates:
        longest = float(jobs.runtime.max())
        maximum = options.maximum or max(math.ceil(longest / HOUR), 1) * HOUR
        found = modal_histogram(len(jobs), maximum, rng, options)
        values = np.repeat([float(mode.seconds) for mode in found], [mode.jobs for mode in found])
        notes = [f"{len(found)} different estimates, the largest {values[-1]:.0f} s"]
        if len(jobs) < FEW:
            notes.append(f"the model is made for {FEW} jobs or more, these are {len(jobs)}")
        if options.too_short == "raise":
            values, number = raised(jobs.runtime, values)
            if number:
                notes.append(
                    f"{number:,} of {len(jobs):,} estimates were raised, since too few were long enough"
                )
        return Estimates(paired(rng, jobs.runtime, values), notes=tuple(notes))

    def fitted(self, jobs: RunJobs) -> dict[str, Any] | None:
        """The maximum, the number of estimates, and the popular ones with their shares."""
        seconds = np.rint(jobs.estimate)
        values, number = np.unique(seconds[seconds > 0], return_counts=True)
        if not len(values):
            raise UserError("estimate model tsafrir05: expected jobs with estimates, found none")
        share = 100.0 * number / number.sum()
        order = np.argsort(-number[:-1], kind="stable")[: HEAD - 1]
        chosen = [len(values) - 1, *order.tolist()]
        return {
            "maximum": int(values[-1]),
            "modes": len(values),
            "pairs": [[int(values[at]), _down(float(share[at]))] for at in chosen],
        }


def modal_histogram(
    jobs: int, maximum: int, rng: np.random.Generator, options: Tsafrir05Options
) -> list[Mode]:
    """The histogram that the options ask for; ``maximum`` in seconds."""
    constants = PAPER if options.constants == "paper" else PUBLISHED_CODE
    k = options.modes
    if k is None and options.modes_by == "power":
        k = modes_by_power(jobs, options.alpha, options.beta)
    return histogram(
        jobs,
        maximum,
        rng,
        pairs=[Pair(time, share) for time, share in options.pairs],
        k=k,
        a=options.shape,
        constants=replace(constants, head_mass=options.head_mass),
    )


def _down(share: float) -> float:
    """Shortened, and never more, so that all shares together stay below 100."""
    return math.floor(share * 10**_DIGITS) / 10**_DIGITS


class Tsafrir05(Plugin):
    """The estimate model "tsafrir05": few round values, the largest allowed one among the favourites."""

    traits = Traits(paper="Tsafrir, Etsion and Feitelson, JSSPP 2005")

    @hookimpl
    def register_estimates(self) -> dict[str, EstimateModel]:
        return {"tsafrir05": Tsafrir05Model()}
