"""Options that the plugins of this folder have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pydantic

from headway.durations import as_seconds
from headway.inputs import InputFiles

#: Seconds above zero, written as ``7d``, ``1h30m`` or a number.
Seconds = Annotated[float, pydantic.BeforeValidator(as_seconds), pydantic.Field(gt=0, le=1e11)]

#: A weight, a share, a rate: finite, and not so large that sums overflow.
Weight = Annotated[float, pydantic.Field(ge=0, le=1e12, allow_inf_nan=False)]


def text_of(path: Path, info: pydantic.ValidationInfo) -> str:
    """The text of a file that an option names, relative to the configuration; ValueError if there is none."""
    context = info.context or {}
    files = context.get("files") or InputFiles()
    try:
        return files.text(path, context.get("beside"))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"a file that can be read, found {path}: {error}") from error
