"""The options of the Slurm adapter, as they stand under ``cluster: options:`` in the configuration."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from headway_adapters.polling.actuators import ActuatorOptions
from headway_adapters.polling.agents import AgentOptions
from headway_adapters.polling.heartbeat import HeartbeatOptions
from headway_adapters.transport.options import AutoYesNo, Seconds


class SlurmOptions(HeartbeatOptions):
    """The options of transport and heartbeat, and these. All times are seconds."""

    #: Partitions whose jobs headway starts. Jobs of other partitions on the same nodes are seen as
    #: load and never touched.
    partitions: tuple[str, ...] = Field(min_length=1)
    #: Between two looks at the cluster when nothing was done.
    poll_interval: Seconds = 2.0
    #: From a start to the look that should confirm it.
    confirm_interval: Seconds = 0.2
    #: How long a released job may stay pending; then it is held again.
    start_timeout: Seconds = 15.0
    #: Path of slurm.conf; otherwise SLURM_CONF of the environment, otherwise Slurm's own default.
    slurm_conf: str | None = None
    #: Between two looks at accounts, QOS and weights, where plugins go by these.
    policy_interval: Seconds = 300.0
    #: Whether ended jobs are looked up with sacct: auto tries it once.
    accounting: AutoYesNo = "auto"
    #: A job whose AdminComment begins with this word is held by an administrator: headway leaves it.
    hold_marker: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")] = "hold"
    #: Pending elements of one job array that are looked at, each as a job of its own.
    array_limit: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    #: The limit that a job without any limit is planned with.
    unlimited_walltime: Annotated[float, Field(gt=0)] = 365 * 86400.0
    #: Whose reservation it is when a plugin's reservation names no users and no accounts.
    reservation_user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")] = "root"
    #: Whether the planned start of each job that headway holds is shown as its begin time, so that
    #: ``squeue --start`` tells it.
    show_starts: bool = False
    #: Planned starts that are written a second at most.
    show_rate: Annotated[float, Field(gt=0, le=1000)] = 10.0
    #: True: headway puts nodes to sleep and wakes them through Slurm's power saving
    #: (Suspend/ResumeProgram are configured).
    power: bool = False
    #: Partition -> the partition over the same nodes that its background jobs are put into.
    background: dict[str, str] = {}
    #: The site's own commands for frequencies and power.
    actuators: ActuatorOptions | None = None
    #: The agents on the nodes: with them there are two tiers.
    agents: AgentOptions | None = None

    @field_validator("partitions")
    @classmethod
    def _partitions_are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            plain = name.replace("_", "a").replace("-", "a").replace(".", "a").isalnum()
            if not plain or name.startswith("-"):
                raise ValueError("names of partitions (letters, digits, '_', '-', '.')")
        if len(set(value)) != len(value):
            raise ValueError("each partition once")
        return value

    @model_validator(mode="after")
    def _background_is_another(self) -> SlurmOptions:
        for front, behind in self.background.items():
            if front not in self.partitions:
                raise ValueError(f"background: a partition of `partitions`, found {front!r}")
            if behind in self.partitions:
                raise ValueError(f"background: a partition that is not in `partitions`, found {behind!r}")
            if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", behind) is None:
                raise ValueError(f"background: names of partitions, found {behind!r}")
        if len(set(self.background.values())) != len(self.background):
            raise ValueError("background: a different partition for each")
        if self.background and self.agents is None:
            raise ValueError(
                "background: cluster.options.agents, which make background jobs give way; found none"
            )
        return self

    @model_validator(mode="after")
    def _one_way_to_sleep(self) -> SlurmOptions:
        if self.power and self.actuators is not None and self.actuators.power_down is not None:
            raise ValueError(
                "power and actuators.power_down: expected only one of the two ways to sleep, found both"
            )
        return self
