"""Where the switches of a cluster come from, for plugins that look at them: options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic

from headway.errors import UserError
from headway.inputs import text_of
from headway.model import SwitchDescription
from headway_plugins.placement.topology.files import described, read_switches


class SwitchOptions(pydantic.BaseModel):
    """The switches, if the batch system does not say them, or otherwise."""

    model_config = pydantic.ConfigDict(extra="forbid")

    switches: dict[str, Any] | None = pydantic.Field(
        default=None,
        description="switch -> its nodes (n[1-16], or a list), or {nodes, switches}; default: the switches "
        "that the batch system reports",
    )
    file: Path | None = pydantic.Field(
        default=None,
        description="file with the switches: YAML, Slurm's topology.conf or the output of scontrol show "
        "topology",
    )

    _read: tuple[SwitchDescription, ...] | None = pydantic.PrivateAttr(None)

    @pydantic.model_validator(mode="after")
    def _readable(self, info: pydantic.ValidationInfo) -> SwitchOptions:
        if self.switches is not None and self.file is not None:
            raise ValueError("either switches or file, found both")
        try:
            if self.switches is not None:
                self._read = described(self.switches, "switches")
            elif self.file is not None:
                self._read = read_switches(text_of(self.file, info.context), str(self.file))
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"a file that can be read, found {self.file}: {error}") from error
        except UserError as error:
            raise ValueError(str(error)) from error
        return self

    def described(self, otherwise: tuple[SwitchDescription, ...]) -> tuple[SwitchDescription, ...]:
        """The switches that are configured, else ``otherwise``."""
        return otherwise if self._read is None else self._read
