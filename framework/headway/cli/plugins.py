"""``headway plugins``: what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from headway.cli.common import console


@click.command("plugins")
@click.argument("name", required=False)
@click.option("--plugin", "plugin_files", multiple=True, type=click.Path(path_type=Path), help="Look into a file, too.")
def command(name: str | None, plugin_files: tuple[Path, ...]) -> None:
    """List the installed plugins, or tell about the one called NAME."""
    from headway.plugins import Catalogue

    catalogue = Catalogue(plugin_files)
    screen = console()
    if name is None:
        table = Table("name", "hooks", "what it does", box=None, pad_edge=False)
        for plugin in catalogue.names():
            info = catalogue.info(plugin)
            table.add_row(plugin, ", ".join(info.hooks), escape(info.summary))
        screen.print(table)
        return
    info = catalogue.info(name)
    screen.print(f"[bold]{name}[/]  ({escape(info.source)})")
    screen.print(escape(info.summary))
    screen.print(f"hooks: {', '.join(info.hooks)}")
    if info.needs:
        screen.print(f"needs: {', '.join(info.needs)}")
    if info.paper:
        screen.print(f"paper: {escape(info.paper)}")
    if info.options is not None and info.options.model_fields:
        table = Table("option", "type", "default", "meaning", title="options", title_justify="left", box=None)
        for key, field in info.options.model_fields.items():
            kind: Any = field.annotation
            default = "required" if field.is_required() else repr(field.get_default(call_default_factory=True))
            table.add_row(key, escape(getattr(kind, "__name__", str(kind))), escape(default), escape(field.description or ""))
        screen.print(table)
    else:
        screen.print("options: none")
    if info.documentation and info.documentation != info.summary:
        screen.print()
        screen.print(escape(info.documentation))
