"""Time zones as options name them."""

from __future__ import annotations

import zoneinfo
from typing import Annotated

import pydantic


def _known(value: str) -> str:
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"a time zone such as Europe/Berlin, found {value!r}") from error
    return value


#: An option that names a time zone that is known here.
TimeZone = Annotated[str, pydantic.AfterValidator(_known)]
