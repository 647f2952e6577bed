"""``headway check``: is everything there?"""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from headway.cli.common import console, plugin_option, required_config_option
from headway.errors import HeadwayError, UserError


@click.command("check")
@required_config_option
@plugin_option
def command(config_path: Path, plugin_files: tuple[Path, ...]) -> None:
    """Check configuration, plugins, journal and cluster; change nothing.

    Exit code 0 if all is in order, 2 if the configuration is wrong, 1 if something else is missing.
    """
    from headway.adapter import Check
    from headway.config import adapter_class, live_adapter, load_config
    from headway.engine import Mode
    from headway.plugins import Catalogue, Plugins

    config = load_config(config_path)
    checks = [Check("configuration", True, f"{config_path}: mode {config.mode}")]
    catalogue = Catalogue(plugin_files)
    configs = catalogue.enabled(config.plugin_configs())
    kind = adapter_class(config.cluster.adapter, f"{config.source}: cluster.adapter")
    capabilities = kind.capabilities
    plugins = Plugins.load(configs, catalogue, capabilities)
    if not plugins.implementations("schedule"):
        raise UserError(f"{config.source}: plugins: no policy is enabled (such as easy)")
    checks.append(Check("plugins", True, ", ".join(plugins.by_name)))
    checks.append(
        Check("capabilities", True, f"{config.cluster.adapter}: {', '.join(sorted(c.__name__ for c in capabilities))}")
    )
    checks.append(_journal(config.journal))
    if config.mode is not Mode.DRY_RUN and getattr(kind, "Options", None) is not None:
        try:
            with live_adapter(config, read_only=True) as adapter:
                checks.extend(adapter.check())
        except UserError:
            raise
        except HeadwayError as error:
            checks.append(Check("cluster", False, str(error)))
    else:
        checks.append(Check("cluster", True, "emulated"))
    table = Table(show_header=False, box=None, pad_edge=False)
    for item in checks:
        table.add_row("[green]ok[/]" if item.ok else "[red]FAIL[/]", item.subject, _escape(item.detail))
        if not item.ok and item.remedy:
            table.add_row("", "", f"→ {_escape(item.remedy)}")
    console().print(table)
    if not all(item.ok for item in checks):
        raise SystemExit(1)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _journal(url: str):  # type: ignore[no-untyped-def]
    """Whether the journal can be written, without making it."""
    import os

    from headway.adapter import Check
    from headway.journal import Journal

    path = Path(url)
    if "://" in url or path.exists():
        try:
            with Journal.open(url, create=False, read_only=True) as journal:
                return Check("journal", True, f"{url}: {len(journal.runs())} runs")
        except HeadwayError as error:
            return Check("journal", False, str(error))
    directory = path.resolve().parent
    if not directory.is_dir():
        return Check("journal", False, f"{url}: directory {directory} does not exist", f"mkdir -p {directory}")
    if not os.access(directory, os.W_OK):
        return Check("journal", False, f"{url}: directory {directory} is not writable", "run as the service's user")
    return Check("journal", True, f"{url}: will be made")
