"""``headway plugins``: what is installed."""

from __future__ import annotations

import re
import textwrap
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import click
import pydantic

from headway.cli.as_json import json_option, say_json
from headway.cli.common import adapter_option, console, examples, plugin_files_option, say

if TYPE_CHECKING:
    from headway.cli.reports import Installed, PluginReport
    from headway.plugins import Catalogue, PluginInfo, Preset

#: Headings of the list: a plugin stands under the first whose hook it has.
KINDS = {
    "schedule": "Policies: which job starts when",
    "place": "Placement: on which nodes",
    "queue_key": "Order of the queue",
    "order_queue": "Order of the queue",
    "predict_runtime": "Runtime prediction",
    "register_workloads": "Workload models",
    "register_estimates": "Estimate models",
}
OTHERS = "Others"

#: Columns of a text that is easily read.
_WIDEST = 100


@click.command(
    "plugins",
    epilog=examples(
        "headway plugins                     all plugins",
        "headway plugins easy                what it does, its options",
        "headway plugins --plugin mine.py    with the plugins of a file",
    ),
)
@click.argument("name", required=False)
@plugin_files_option("A Python file whose plugins are listed as well. Repeatable.")
@adapter_option
@json_option("headway.cli.reports:Installed")
def command(
    name: str | None, plugin_files: tuple[Path, ...], adapter_files: tuple[Path, ...], as_json: bool
) -> None:
    """List the installed plugins and adapters, or tell about the plugin called NAME."""
    from headway.config import Adapters
    from headway.plugins import Catalogue

    catalogue, adapters = Catalogue(plugin_files), Adapters.with_files(adapter_files)
    if as_json:
        say_json(_report(catalogue, adapters.names(), name))
    elif name is None:
        _list(catalogue, adapters.names())
    elif (preset := catalogue.presets().get(name)) is not None:
        _tell_preset(name, preset)
    else:
        _tell(catalogue.info(name), of_a_file=name in catalogue.from_files)


def by_kind(catalogue: Catalogue) -> dict[str, list[PluginInfo]]:
    """Heading -> the plugins that stand under it, of those that load."""
    groups: dict[str, list[PluginInfo]] = {heading: [] for heading in (*KINDS.values(), OTHERS)}
    for name in catalogue.loadable():
        info = catalogue.info(name)
        kind = next((heading for hook, heading in KINDS.items() if hook in info.hooks), OTHERS)
        groups[kind].append(info)
    return groups


def _list(catalogue: Catalogue, adapters: Sequence[str]) -> None:
    from rich.table import Table

    from headway.workload.format import not_loadable

    groups = by_kind(catalogue)
    width = max((len(name) for name in catalogue.names()), default=0)
    screen = console()
    for heading, members in groups.items():
        if not members:
            continue
        say(heading)
        table = Table(box=None, show_header=False, padding=(0, 0, 0, 2), pad_edge=True)
        table.add_column(no_wrap=True, min_width=width)
        table.add_column()
        for info in members:
            table.add_row(_plain(info.name), _plain(info.summary))
        screen.print(table)
        say("")
    presets = catalogue.presets()
    if presets:
        say("Presets: several plugins under one name")
        table = Table(box=None, show_header=False, padding=(0, 0, 0, 2), pad_edge=True)
        table.add_column(no_wrap=True, min_width=width)
        table.add_column()
        for name, preset in presets.items():
            table.add_row(_plain(name), _plain(preset.summary))
        screen.print(table)
        say("")
    if broken := [*catalogue.not_loadable().values(), *not_loadable().values()]:
        say("Not loadable here")
        for why in broken:
            say(why)
        say("")
    say(f"Adapters (cluster: adapter: NAME): {', '.join(adapters)}")
    say("`headway plugins NAME` describes a plugin.")


def _report(catalogue: Catalogue, adapters: Sequence[str], name: str | None) -> Installed:
    """What is installed; of ``name`` alone, if it is given."""
    from headway.cli.reports import Installed, PluginReport
    from headway.workload.format import not_loadable

    known = catalogue.presets()
    presets = tuple(
        PluginReport(
            one, preset.summary, preset.paper, "", (), (), (),
            tuple(dict.fromkeys(plugin for plugin, _ in preset.plugins)),
        )
        for one, preset in known.items()
        if name in (None, one)
    )  # fmt: skip
    if name is not None:
        plugins = () if name in known else (plugin_report(catalogue.info(name)),)
        return Installed(plugins, presets, (), ())
    every = tuple(plugin_report(catalogue.info(one)) for one in catalogue.loadable())
    broken = (*catalogue.not_loadable().values(), *not_loadable().values())
    return Installed(every, presets, tuple(adapters), tuple(broken))


def plugin_report(info: PluginInfo) -> PluginReport:
    """What a plugin says of itself, with its options as a person writes them."""
    from headway.cli.reports import OptionReport, PluginReport

    options = tuple(
        OptionReport(
            field.alias or key,
            _shown_type(field.annotation),
            None if field.is_required() else repr(field.get_default(call_default_factory=True)),
            field.description or "",
        )
        for key, field in (info.options.model_fields.items() if info.options is not None else ())
    )
    return PluginReport(info.name, info.summary, info.paper, info.source, info.hooks, info.needs, options)


def _tell_preset(name: str, preset: Preset) -> None:
    say(f"{name}: {preset.summary}", style="bold")
    say("")
    if preset.paper:
        say(f"paper:  {preset.paper}")
    say(f"enable: plugins: [{name}]")
    say("")
    say("It stands for these plugins; its options go to the first plugin:")
    for plugin, options in preset.plugins:
        given = ", ".join(f"{key}: {value}" for key, value in options.items())
        say(f"- {plugin}" + (f": {{{given}}}" if given else ""))


def _tell(info: PluginInfo, *, of_a_file: bool) -> None:
    screen = console()
    say(f"{info.name}: {info.summary}", style="bold")
    say("")
    # What only registers something is there without being enabled.
    acts = any(not hook.startswith("register_") for hook in info.hooks)
    facts = {
        "from": info.source,
        "hooks": ", ".join(info.hooks),
        "needs": ", ".join(info.needs),
        "paper": info.paper,
        "enable": f"--plugin {info.source}" if of_a_file else f"plugins: [{info.name}]" if acts else "",
    }
    for key, value in facts.items():
        if value:
            say(f"{key + ':':<8}{value}")
    if info.options is not None and info.options.model_fields:
        say("options:")
        screen.print(options_table(info.options))
    else:
        say("options: none")
    if info.documentation and info.documentation != info.summary:
        say("")
        for line in reflowed(info.documentation, min(screen.width, _WIDEST)):
            say(line)


def list_models(models: Mapping[str, Any]) -> None:
    """Models by name: what their modules say first, and their options."""
    import inspect
    import sys

    for name, model in sorted(models.items()):
        module = sys.modules.get(type(model).__module__)
        summary = (inspect.getdoc(module) or inspect.getdoc(model) or "").split("\n\n")[0].replace("\n", " ")
        say(f"{name}: {summary}", style="bold")
        if model.Options.model_fields:
            console().print(options_table(model.Options))
        say("")


def options_table(model: type[pydantic.BaseModel]) -> Any:
    """A table of a model's options: key, type, default, meaning."""
    from rich.table import Table

    table = Table("option", "type", "default", "meaning", box=None, padding=(0, 0, 0, 2), pad_edge=True)
    for key, field in model.model_fields.items():
        default = "required" if field.is_required() else repr(field.get_default(call_default_factory=True))
        cells = (field.alias or key, _shown_type(field.annotation), default, field.description or "")
        table.add_row(*map(_plain, cells))
    return table


def _shown_type(kind: Any) -> str:
    """A type as a person writes it into YAML: what was validated beyond it is left out."""
    parts = get_args(kind)
    if get_origin(kind) is Annotated:
        return _shown_type(parts[0])
    if get_origin(kind) is Literal:
        return " | ".join(map(str, parts))
    if isinstance(kind, types.UnionType) or get_origin(kind) is Union:
        return " | ".join(map(_shown_type, parts))
    if parts:
        return f"{get_origin(kind).__name__}[{', '.join(map(_shown_type, parts))}]"
    if kind is type(None):
        return "None"
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return "mapping"
    return getattr(kind, "__name__", str(kind))


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)


def reflowed(text: str, width: int) -> list[str]:
    """A docstring's lines for a page of ``width`` columns.

    Items of lists keep their own lines, and what is indented is left as it is.
    """
    lines: list[str] = []
    for block in re.split(r"\n[ \t]*\n", text):
        if lines:
            lines.append("")
        for part in re.split(r"\n(?=- |[*] )", block):
            if part.startswith(" ") or "\n    " in part:
                lines.extend(part.splitlines())
                continue
            joined = " ".join(part.split())
            hang = "  " if part.startswith(("- ", "* ")) else ""
            lines.extend(textwrap.wrap(joined, width, subsequent_indent=hang, break_long_words=False))
    return lines
