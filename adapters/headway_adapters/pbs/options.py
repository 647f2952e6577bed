"""The options of the PBS adapter, as they stand under ``cluster: options:`` in the configuration."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from headway_adapters.polling.actuators import ActuatorOptions
from headway_adapters.polling.agents import AgentOptions
from headway_adapters.polling.heartbeat import HeartbeatOptions
from headway_adapters.transport.options import Seconds

_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class PbsOptions(HeartbeatOptions):
    """All times are seconds."""

    #: Queues whose jobs headway starts. Jobs of other queues on the same vnodes are seen as load and
    #: never touched.
    queues: tuple[str, ...] = Field(min_length=1)
    #: Which PBS it is: "openpbs", "pbspro" (the same commands) or "torque"; auto asks ``qstat --version``.
    flavour: Literal["auto", "openpbs", "pbspro", "torque"] = "auto"
    #: Between two looks at the cluster when nothing was done.
    poll_interval: Seconds = 2.0
    #: From a start to the look that should confirm it.
    confirm_interval: Seconds = 0.2
    #: How long a job whose start was asked for may stay queued; then the start counts as failed.
    start_timeout: Seconds = 15.0
    #: Commands that are run in any minute, looks and starts together: each takes a privileged port of the
    #: machine where it runs for a minute. None: any number (where PBS_AUTH_METHOD is munge).
    commands_per_minute: Annotated[int, Field(ge=30)] | None = 300
    #: Path of pbs.conf; otherwise PBS_CONF_FILE of the environment, otherwise PBS's own default.
    pbs_conf: str | None = None
    #: The server to ask; otherwise the server of pbs.conf.
    server: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")] | None = None
    #: Waiting elements of one job array that are looked at, each as a job of its own.
    array_limit: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    #: The limit that a job without any limit is planned with.
    unlimited_walltime: Annotated[float, Field(gt=0)] = 365 * 86400.0
    #: True: Reserve and Unreserve may be used. PBS's own scheduler runs and confirms reservations; it
    #: leaves the managed queues alone because they are stopped (``started = False``).
    reservations: bool = False
    #: True: jobs can be told something, in a resource of the server that only managers write:
    #: ``qmgr -c "create resource headway_notes type=string, flag=r"``.
    notes: bool = False
    #: The site's own commands for frequencies and power.
    actuators: ActuatorOptions | None = None
    #: How the agents on the nodes are reached. With them there are two tiers: ``qrun -H`` puts background
    #: jobs on vnodes that others have, and the agents make them give way.
    agents: AgentOptions | None = None

    @model_validator(mode="after")
    def _torque_has_no_notes(self) -> PbsOptions:
        if self.notes and self.flavour == "torque":
            raise ValueError("notes: expected OpenPBS or PBS Professional, found flavour torque")
        return self

    @field_validator("queues")
    @classmethod
    def _queues_are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if _QUEUE.fullmatch(name) is None:
                raise ValueError("names of queues (letters, digits, '_', '-', '.')")
        if len(set(value)) != len(value):
            raise ValueError("each queue once")
        return value
