"""The adapters of the real clusters that a configuration names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydantic

from headway.config.adapters import INSTALLED, Adapters, ClusterConfig
from headway.config.site import Config
from headway.errors import UserError
from headway.inputs.validation import explain_validation
from headway.model import ClusterDescription

#: The adapter that makes one cluster of several.
FEDERATION = "federation"


def emulated_adapter(cluster: ClusterDescription) -> Any:
    """The class that emulates a cluster: of a cluster with sites, what stands for a federation."""
    return INSTALLED.get("emulated") if cluster.sites is None else INSTALLED.get(FEDERATION).Emulated


def live_adapter(config: Config, *, read_only: bool, clock: Callable[[], float] | None = None) -> Any:
    """The adapter of a real cluster, with validated options; of several, a federation of theirs.

    ``read_only``: it must change nothing. ``clock``: what all of them tell the time by, absolute seconds that
    never go back; by default each a :class:`headway.daemon.clock.RunClock` of its own.
    """
    if not config.clusters:
        return _live_adapter(config.adapters, config.cluster, f"{config.source}: cluster", read_only, clock)
    members: dict[str, Any] = {}
    try:
        for name, cluster in config.clusters.items():
            where = f"{config.source}: clusters.{name}"
            members[name] = _live_adapter(config.adapters, cluster, where, read_only, clock)
    except BaseException:
        for member in members.values():
            member.close()
        raise
    return config.adapters.get(FEDERATION, f"{config.source}: clusters")(
        members, clock=clock, sites=config.sites, transfers=config.live_transfers(read_only=read_only),
        intakes=config.intakes(),
    )  # fmt: skip


def _live_adapter(
    adapters: Adapters, cluster: ClusterConfig, where: str, read_only: bool,
    clock: Callable[[], float] | None,
) -> Any:  # fmt: skip
    kind, options = live_options(adapters, cluster, where)
    return kind(options, read_only=read_only, clock=clock)


def live_options(adapters: Adapters, cluster: ClusterConfig, where: str) -> tuple[Any, pydantic.BaseModel]:
    """The adapter class of a real cluster, and its validated options; ``where`` they stand, for messages."""
    kind = adapters.get(cluster.adapter, f"{where}.adapter")
    model = getattr(kind, "Options", None)
    if model is None:
        raise UserError(
            f"{where}.adapter: expected a real cluster's adapter (such as slurm), found "
            f"{cluster.adapter!r}; emulation is `headway dry-run`, or mode: dry-run"
        )
    try:
        options = model.model_validate(cluster.options)
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, f"{where}.options", model)) from error
    return kind, options
