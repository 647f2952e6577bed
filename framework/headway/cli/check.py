"""``headway check``: is everything there?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from headway.cli.common import console, examples, plugin_option, required_config_option, set_up_log
from headway.errors import HeadwayError, UserError

if TYPE_CHECKING:
    from headway.adapter import Check, ClusterAdapter
    from headway.config import Config
    from headway.plugins import Catalogue, PluginConfig

#: Characters of a check's detail that are shown.
_LONGEST = 600


@click.command(
    "check",
    epilog=examples("headway check -c site.yaml    before `headway run`, as the service's user"),
)
@required_config_option
@plugin_option
def command(config_path: Path, plugin_files: tuple[Path, ...]) -> None:
    """Check configuration, plugins, journal and cluster, and change nothing.

    Each line is one thing that `headway run` needs; under what is missing stands what to do about it.
    Exit code 0 if all is in order, 2 if the configuration is wrong, 1 if something else is missing.
    """
    from headway.adapter import Check
    from headway.config import live_adapter, load_config
    from headway.emulation import validated_faults
    from headway.engine import Mode
    from headway.model import ClusterDescription
    from headway.plugins import Catalogue, Plugins

    config = load_config(config_path)
    set_up_log(config.log)
    checks = [Check("configuration", True, f"{config_path}: mode {config.mode}")]
    catalogue = Catalogue(plugin_files)
    configs = catalogue.enabled(config.plugin_configs())
    stand_in = config.with_energy(ClusterDescription.flat(1))
    catalogue.check_energy(configs, stand_in)
    capabilities = config.capabilities(stand_in)
    plugins = Plugins.load(configs, catalogue, capabilities)
    if not plugins.implementations("schedule"):
        raise UserError(f"{config.source}: plugins: no policy is enabled (such as easy)")
    validated_faults(config.emulation.faults, f"{config.source}: emulation.faults")
    checks.append(Check("plugins", True, ", ".join(plugins.by_name)))
    for what, hook in (("policy", "schedule"), ("placement", "place")):
        first, *others = [name for name, _ in plugins.implementations(hook)] or [""]
        if others:
            later = ", ".join(others)
            checks.append(Check(what, True, f"{first}; only where it gives no answer: {later}"))
    if stand_in.energy is not None:
        profile = stand_in.energy
        classes = ", ".join(kind.name for kind in profile.classes)
        unit = "" if profile.absolute else "; not calibrated, so its figures are relative"
        checks.append(Check("energy", True, f"profile {profile.name}, classes {classes}{unit}"))
    able = ", ".join(sorted(capability.__name__ for capability in capabilities))
    adapters = ", ".join(dict.fromkeys(cluster.adapter for _, cluster in config.clusters_by_place()))
    checks.append(Check("capabilities", True, f"{adapters}: {able}"))
    checks.append(_journal(config.journal))
    if config.mode is not Mode.DRY_RUN:
        try:
            with live_adapter(config, read_only=True) as adapter:
                checks.extend(adapter.check())
                checks.extend(_lacking(configs, catalogue, adapter))
        except UserError:
            raise
        except HeadwayError as error:
            checks.append(Check("cluster", False, str(error)))
    else:
        checks.append(_trace(config))
    table = Table(show_header=False, box=None, pad_edge=False)
    for overflow in ("ellipsis", "ellipsis", "fold"):
        table.add_column(overflow=overflow)
    for item in checks:
        table.add_row("[green]ok[/]" if item.ok else "[red]FAIL[/]", item.subject, _shown(item.detail))
        if not item.ok and item.remedy:
            table.add_row("", "", f"→ {_shown(item.remedy)}")
    console().print(table)
    if not all(item.ok for item in checks):
        raise SystemExit(1)


def _lacking(configs: list[PluginConfig], catalogue: Catalogue, adapter: ClusterAdapter) -> list[Check]:
    """What a plugin needs and this cluster cannot carry out, though others of its kind can."""
    from headway.adapter import Check
    from headway.plugins import Plugins

    try:
        Plugins.load(configs, catalogue, adapter.capabilities)
    except UserError as error:
        return [Check("plugins", False, str(error), "take that plugin out; see what this cluster can")]
    return []


def _shown(text: str) -> str:
    """One short paragraph, whatever a command printed."""
    from rich.markup import escape

    line = "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))
    return escape(line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…")


def _trace(config: Config) -> Check:
    """The trace that `headway run` would run in mode dry-run."""
    from headway.adapter import Check

    if config.emulation.trace is None:
        return Check("trace", True, "none configured; `headway dry-run --trace FILE` names one")
    path = config.trace_path()
    if not path.is_file() or not os.access(path, os.R_OK):
        return Check("trace", False, f"{path}: cannot be read", "correct emulation.trace")
    return Check("trace", True, str(path))


def _journal(url: str) -> Check:
    """Whether the journal can be written, without making it."""
    from headway.adapter import Check
    from headway.journal import Journal

    path = Path(url)
    if "://" in url or path.exists():
        try:
            with Journal.open(url, create=False, read_only=True) as journal:
                runs = len(journal.runs())
                return Check("journal", True, f"{url}: {runs} {'run' if runs == 1 else 'runs'}")
        except HeadwayError as error:
            return Check("journal", False, str(error))
    directory = path.resolve().parent
    if not directory.is_dir():
        found = f"{url}: directory {directory} does not exist"
        return Check("journal", False, found, f"mkdir -p {directory}")
    if not os.access(directory, os.W_OK):
        found = f"{url}: directory {directory} is not writable"
        return Check("journal", False, found, "run as the service's user")
    return Check("journal", True, f"{url}: will be made")
