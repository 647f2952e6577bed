"""What estimate models share: options that refuse unknown keys, rounding, and no fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from headway.workload import RunJobs

Floats = NDArray[np.float64]

MINUTE, HOUR = 60.0, 3600.0


class EstimateOptions(BaseModel):
    """The options of an estimate model."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RoundedOptions(EstimateOptions):
    """The options of a model whose estimates can be rounded as people do."""

    rounding: bool = Field(
        False,
        description="true: round estimates below an hour to 5 minutes and estimates below 5 hours to an "
        "hour, never below the runtime",
    )


def whole(estimate: Floats, runtime: Floats, rounding: bool) -> Floats:
    """Whole seconds, at least 1 and at least the runtime; rounded as :class:`RoundedOptions` says."""
    found = np.ceil(np.maximum(estimate, np.maximum(runtime, 1.0)))
    if not rounding:
        return found
    step = np.where(found < HOUR, 5 * MINUTE, np.where(found < 5 * HOUR, HOUR, 1.0))
    nearest = np.maximum(np.floor(found / step + 0.5), 1.0) * step
    return np.where(nearest < runtime, np.ceil(runtime / step) * step, nearest)


class Unfitted:
    """A model that has nothing to fit."""

    def fitted(self, jobs: RunJobs) -> dict[str, Any] | None:
        return None
