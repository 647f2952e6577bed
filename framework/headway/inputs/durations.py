"""Durations as people write them, and as an option has them."""

from __future__ import annotations

from typing import Annotated

import pydantic

from headway.inputs.spans import EXPECTED, as_seconds, seconds_of

__all__ = ["EXPECTED", "WholeSeconds", "as_seconds", "seconds_of"]

#: An option in whole seconds, at least 1 and at most ten years.
WholeSeconds = Annotated[int, pydantic.BeforeValidator(as_seconds), pydantic.Field(ge=1, le=3660 * 86400)]
