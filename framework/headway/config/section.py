"""What every section of a configuration file is."""

from __future__ import annotations

import pydantic


class Section(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", defer_build=True)
