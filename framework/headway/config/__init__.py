"""A site's configuration file, and the adapters that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.config.adapters import ADAPTERS, INSTALLED, Adapters, ClusterConfig
    from headway.config.emulation import EmulationConfig, NodesConfig, TracePoolsConfig
    from headway.config.live import FEDERATION, emulated_adapter, live_adapter, live_options
    from headway.config.site import (
        ClusterName,
        Config,
        CycleSeconds,
        EnergyConfig,
        LogConfig,
        MetricsConfig,
        PluginEntry,
        PoolConfig,
        ServiceConfig,
        load_config,
        parse_config,
    )

__all__ = [
    "ADAPTERS",
    "FEDERATION",
    "INSTALLED",
    "Adapters",
    "ClusterConfig",
    "ClusterName",
    "Config",
    "CycleSeconds",
    "EmulationConfig",
    "EnergyConfig",
    "LogConfig",
    "MetricsConfig",
    "NodesConfig",
    "PluginEntry",
    "PoolConfig",
    "ServiceConfig",
    "TracePoolsConfig",
    "emulated_adapter",
    "live_adapter",
    "live_options",
    "load_config",
    "parse_config",
]

__getattr__ = late(
    __name__,
    {
        ".adapters": "ADAPTERS INSTALLED Adapters ClusterConfig",
        ".emulation": "EmulationConfig NodesConfig TracePoolsConfig",
        ".live": "FEDERATION emulated_adapter live_adapter live_options",
        ".site": "ClusterName Config CycleSeconds EnergyConfig LogConfig MetricsConfig PluginEntry "
        "PoolConfig ServiceConfig load_config parse_config",
    },
)
