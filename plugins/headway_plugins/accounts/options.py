"""Options that the plugins of this folder have in common."""

from __future__ import annotations

from typing import Annotated, Any

import pydantic

from headway.inputs.durations import as_seconds
from headway.plugins.traits import Required

#: Seconds above zero, written as ``7d``, ``1h30m`` or a number.
Seconds = Annotated[float, pydantic.BeforeValidator(as_seconds), pydantic.Field(gt=0, le=1e11)]

#: What an option says that is to be as the running batch system has it.
FROM_SLURM = "from-slurm"


def _unless_from_slurm(value: Any, validated: pydantic.ValidatorFunctionWrapHandler) -> Any:
    return value if value == FROM_SLURM else validated(value)


def is_from_slurm(value: object) -> bool:
    """Whether an option is to be as the running batch system has it."""
    return value == FROM_SLURM


def required(*values: object) -> frozenset[Required]:
    """What a plugin with these options requires: the batch system's policy if an option is taken from it."""
    return frozenset({"policy"}) if any(map(is_from_slurm, values)) else frozenset()


#: With a type: that, or :data:`FROM_SLURM`.
OrFromSlurm = pydantic.WrapValidator(_unless_from_slurm)

#: A weight, a share, a rate: finite, and not so large that sums overflow.
Weight = Annotated[float, pydantic.Field(ge=0, le=1e12, allow_inf_nan=False)]
