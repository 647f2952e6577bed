"""Plugins: found, configured, ordered, called.

Plugins are found by entry point (group ``headway.plugins``) and in files (``--plugin FILE.py``).
pluggy holds them and checks their hooks against :mod:`headway.hookspecs`; :class:`HookCaller` then
calls the hooks that a cycle needs without pluggy's own overhead, in the configured order, timing
each plugin and catching what it raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.plugins.calls import HookCaller, Problem
    from headway.plugins.catalogue import (
        GROUP,
        PRESETS,
        Catalogue,
        PluginInfo,
        check_needs_of,
        make_plugin,
        options_of,
    )
    from headway.plugins.configured import PluginConfig, Preset
    from headway.plugins.contract import options_model, traits_of
    from headway.plugins.enabled import Plugins
    from headway.plugins.traits import Again, Study, Traits

__all__ = [
    "GROUP",
    "PRESETS",
    "Again",
    "Catalogue",
    "HookCaller",
    "PluginConfig",
    "PluginInfo",
    "Plugins",
    "Preset",
    "Problem",
    "Study",
    "Traits",
    "check_needs_of",
    "make_plugin",
    "options_model",
    "options_of",
    "traits_of",
]

__getattr__ = late(
    __name__,
    {
        ".calls": "HookCaller Problem",
        ".catalogue": "GROUP PRESETS Catalogue PluginInfo check_needs_of make_plugin options_of",
        ".configured": "PluginConfig Preset",
        ".contract": "options_model traits_of",
        ".enabled": "Plugins",
        ".traits": "Again Study Traits",
    },
)
