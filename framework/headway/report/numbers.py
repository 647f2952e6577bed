"""How the files of a run write numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Whole numbers below this are exact as floats.
_EXACT = 2.0**53


def in_short(value: float | None) -> str:
    """A whole number without a decimal point, another as short as can be read back; empty if none."""
    if value is None or math.isnan(value):
        return ""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))


def in_short_all(values: NDArray[np.float64] | NDArray[np.int64]) -> list[str]:
    """As :func:`in_short`, of many."""
    whole = (values == np.trunc(values)) & (np.abs(values) < _EXACT)
    integers = np.where(whole, values, 0.0).astype(np.int64).tolist()
    if whole.all():
        return list(map(str, integers))
    return [
        str(integer) if is_whole else in_short(value)
        for value, integer, is_whole in zip(values.tolist(), integers, whole.tolist(), strict=True)
    ]
