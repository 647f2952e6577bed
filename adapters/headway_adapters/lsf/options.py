"""The options of the LSF adapter, as they stand under ``cluster: options:`` in the configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from headway_adapters.polling.actuators import ActuatorOptions
from headway_adapters.polling.agents import AgentOptions
from headway_adapters.polling.heartbeat import HeartbeatOptions
from headway_adapters.transport.options import AutoYesNo, Seconds


class LsfOptions(HeartbeatOptions):
    """All times are seconds."""

    #: Queues whose jobs headway starts; the administrator inactivates them. Jobs of other queues on
    #: the same hosts are seen as load and never touched.
    queues: tuple[str, ...] = Field(min_length=1)
    #: Between two looks at the cluster when nothing was done.
    poll_interval: Seconds = 2.0
    #: From a start to the look that should confirm it.
    confirm_interval: Seconds = 0.2
    #: How long a job that was forced to run may stay pending; then the start is taken back.
    start_timeout: Seconds = 15.0
    #: Which LSF it is: IBM Spectrum LSF, or a relative (OpenLava, volclava); auto asks lsid.
    flavour: Literal["auto", "ibm", "openlava"] = "auto"
    #: Added to the commands' environment: what LSF's own profile.lsf sets. Needed over SSH, and
    #: where the service's environment lacks it.
    environment: dict[str, str] = Field(default_factory=dict)
    #: Whether the run limit of a running job can be changed: auto asks LSF.
    running_limits: AutoYesNo = "auto"
    #: The limit that a job without any limit is planned with.
    unlimited_walltime: Annotated[float, Field(gt=0)] = 365 * 86400.0
    #: True: headway puts hosts to sleep and wakes them through IBM Spectrum LSF's power saving.
    power: bool = False
    #: How long a host may take to wake through it; then it counts as down.
    wake_timeout: Seconds = 600.0
    #: The site's own commands for frequencies and power.
    actuators: ActuatorOptions | None = None
    #: How the agents on the hosts are reached. With them there are two tiers: ``brun`` puts background
    #: jobs on hosts that others have, and the agents make them give way.
    agents: AgentOptions | None = None

    @field_validator("queues")
    @classmethod
    def _queues_are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            plain = name.replace("_", "a").replace("-", "a").replace(".", "a").isalnum()
            if not plain or not name.isascii() or name.startswith("-"):
                raise ValueError("names of queues (letters, digits, '_', '-', '.')")
        if len(set(value)) != len(value):
            raise ValueError("each queue once")
        return value

    @field_validator("environment")
    @classmethod
    def _environment_is_lsfs(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name.startswith(("LSF_", "LSB_", "EGO_")) or not name.replace("_", "a").isalnum():
                raise ValueError("names of LSF's own variables (LSF_..., LSB_..., EGO_...)")
            if "\0" in text:
                raise ValueError(f"{name}: no NUL character")
        return value

    @model_validator(mode="after")
    def _one_way_to_sleep(self) -> LsfOptions:
        if self.power and self.actuators is not None and self.actuators.power_down is not None:
            raise ValueError(
                "power and actuators.power_down: expected only one of the two ways to sleep, found both"
            )
        return self
