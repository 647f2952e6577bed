"""What goes wrong in the emulated cluster, so that the control path is tested."""

from __future__ import annotations

import pydantic


class LicenceChange(pydantic.BaseModel):
    """There is another amount of something that belongs to no node."""

    model_config = pydantic.ConfigDict(extra="forbid")

    #: Seconds of the run's clock.
    at: float
    licence: str
    total: int = pydantic.Field(ge=0)


class Faults(pydantic.BaseModel):
    """Node failures, failing boots, dying proxies, slow commands, failing commands, other amounts of
    licences. All off by default."""

    model_config = pydantic.ConfigDict(extra="forbid")

    #: Mean seconds between failures of one node (exponential); 0: nodes do not fail.
    node_mtbf: float = pydantic.Field(default=0.0, ge=0)
    #: Mean seconds until a failed node is back (exponential).
    node_repair: float = pydantic.Field(default=3600.0, gt=0)
    #: Jobs on a failed node go back to the queue (True) or end (False).
    requeue: bool = False
    #: Probability that a node that is woken is broken; it is repaired after ``node_repair``.
    wake_failure_rate: float = pydantic.Field(default=0.0, ge=0, lt=1)
    #: Probability that a partition does not boot; three further boots are tried, then its nodes are drained
    #: and repaired after ``node_repair``, and the job is treated as on a failed node.
    boot_failure_rate: float = pydantic.Field(default=0.0, ge=0, lt=1)
    #: Mean seconds from the start of a job's proxy to its death, of which the job dies (exponential); 0:
    #: none dies.
    proxy_mtbf: float = pydantic.Field(default=0.0, ge=0)
    #: Seconds from a command until it takes effect.
    latency: float = pydantic.Field(default=0.0, ge=0)
    #: Probability that a command is refused.
    failure_rate: float = pydantic.Field(default=0.0, ge=0, lt=1)
    #: Between several clusters: probability that a copy of a dataset breaks, at any of its bytes.
    copy_failure_rate: float = pydantic.Field(default=0.0, ge=0, lt=1)
    #: When there is more or less of a licence than before.
    licences: list[LicenceChange] = pydantic.Field(default_factory=list)
