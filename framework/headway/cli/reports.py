"""What commands print with ``--json``, where no room of the framework has the shape already."""

from __future__ import annotations

import msgspec

from headway.adapter import Check


class CheckReport(msgspec.Struct, frozen=True):
    """What ``headway check`` found."""

    mode: str
    #: Nothing is missing that this mode needs.
    in_order: bool
    checks: tuple[Check, ...]


class DifferenceReport(msgspec.Struct, frozen=True):
    """A cycle whose decisions came out otherwise; the decisions in words."""

    cycle: int
    #: In the run's clock: since the epoch, or since a dry run's begin.
    time: float
    recorded: tuple[str, ...]
    repeated: tuple[str, ...]


class ReplayReport(msgspec.Struct, frozen=True):
    """What ``headway replay`` found."""

    run: int
    mode: str
    cycles: int
    events: int
    decisions: int
    #: The daemon was killed in the run's last cycle, which is left out.
    cut_short: bool
    differences: tuple[DifferenceReport, ...]
    #: What headway does otherwise than when the run was recorded; "": nothing.
    other_rule: str


class OptionReport(msgspec.Struct, frozen=True):
    """An option of a plugin, as a person writes it into YAML."""

    name: str
    type: str
    #: None: it must be given.
    default: str | None
    meaning: str


class PluginReport(msgspec.Struct, frozen=True):
    """An installed plugin, or a preset, which stands for several."""

    name: str
    summary: str
    paper: str
    #: Where it comes from; "": a preset.
    source: str
    hooks: tuple[str, ...]
    #: Names of the decisions without which the plugin cannot work.
    needs: tuple[str, ...]
    options: tuple[OptionReport, ...]
    #: The plugins of a preset.
    stands_for: tuple[str, ...] = ()


class Installed(msgspec.Struct, frozen=True):
    """What ``headway plugins`` lists; of one name: that plugin or preset alone."""

    plugins: tuple[PluginReport, ...]
    presets: tuple[PluginReport, ...]
    adapters: tuple[str, ...]
    #: Plugins and formats that cannot be loaded here, and why.
    not_loadable: tuple[str, ...]
