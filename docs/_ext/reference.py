"""The reference of hooks, plugins and commands, made from the code when the site is built.

==========================  ===============================================================================
``.. headway-hooks::``      each hook: its place in a run, signature, docstring, the plugins that have it
``.. headway-plugins::``    each shipped plugin: what it needs and gives, when it is asked again, its options
``.. headway-commands:: X`` each command of a group of ``headway --help``
==========================  ===============================================================================
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

import click
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles
from sphinx_click.ext import ClickDirective

from headway.cli import cli
from headway.cli.groups import GROUPS, OTHERS
from headway.cli.plugins import by_kind, plugin_report
from headway.hookspecs import PROJECT, HookSpecs
from headway.plugins import Catalogue, PluginInfo
from headway.plugins.contract import traits_of
from headway.plugins.hook_names import hook_names, hooks_of

_PART = re.compile(r"^    # -+ (.+)$")


class _Made(SphinxDirective):
    """Text that the code says, read as reStructuredText."""

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        text = StringList(list(self.lines()), source=f"made by {self.name}")
        parent = nodes.container()
        parent.document = self.state.document
        nested_parse_with_titles(self.state, text, parent, self.content_offset)
        return parent.children


def titled(title: str, under: str, anchor: str) -> list[str]:
    return ["", f".. _{anchor}:", "", title, under * len(title), ""]


def fields(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f":{name}: {value}" for name, value in pairs if value] + [""]


def codes(words: Iterable[str]) -> str:
    return ", ".join(f"``{word}``" for word in words)


def escaped(text: str) -> str:
    """Plain text in one line; what stands between single backticks is code."""
    plain = re.sub(r"[*|\\]|_(?=\W|$)", r"\\\g<0>", " ".join(text.split()))
    return re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", plain)


def indented(lines: Iterable[str], by: str = "   ") -> list[str]:
    return [by + line if line else line for line in lines]


def table(rows: Iterable[tuple[str, ...]], widths: str) -> list[str]:
    """A table whose first row is its head."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in rows:
        lines += [f"   {'* -' if not at else '  -'} {cell}" for at, cell in enumerate(row)]
    return [*lines, ""]


def parts_of_a_run() -> dict[str, str]:
    """Hook -> the heading that it stands below in the catalogue of hooks."""
    found, part = {}, ""
    for line in inspect.getsource(HookSpecs).splitlines():
        if heading := _PART.match(line):
            part = heading[1]
        elif hook := re.match(r"    def (\w+)", line):
            found[hook[1]] = part
    return found


class Hooks(_Made):
    """In the order in which a run calls them."""

    def lines(self) -> Iterator[str]:
        having: dict[str, list[str]] = {name: [] for name in hook_names()}
        for plugin, kind in Catalogue().loadable().items():
            for hook in hooks_of(kind):
                having[hook].append(plugin)
        shown = ""
        for name, part in parts_of_a_run().items():
            if part != shown:
                yield from titled(part[0].upper() + part[1:], "-", f"hooks-{nodes.make_id(part)}")
                shown = part
            yield from titled(name, "~", f"hook-{name.replace('_', '-')}")
            hook = getattr(HookSpecs, name)
            asked = inspect.signature(hook)
            asked = asked.replace(parameters=list(asked.parameters.values())[1:])
            first = getattr(hook, f"{PROJECT}_spec")["firstresult"]
            yield f".. py:method:: HookSpecs.{name}{str(asked).replace(chr(39), '')}"
            yield "   :no-index:"
            yield ""
            yield from indented(inspect.cleandoc(hook.__doc__).splitlines())
            yield ""
            answers = "the first answer wins" if first else "all plugins are called, in their order"
            plugins = ", ".join(f":ref:`{one} <plugin-{one}>`" for one in having[name])
            yield from indented(fields([("Answers", answers), ("Plugins", plugins)]))


def section_of_a_plugin(info: PluginInfo, kind: type) -> Iterator[str]:
    traits, report = traits_of(kind), plugin_report(info)
    yield from titled(info.name, "~", f"plugin-{info.name}")
    yield from (info.summary, "")
    acts = any(not hook.startswith("register_") for hook in info.hooks)
    yield from fields(
        [
            ("Enable", f"``plugins: [{info.name}]``" if acts else "it is there without being enabled"),
            ("Hooks", ", ".join(f":ref:`{hook} <hook-{hook.replace('_', '-')}>`" for hook in info.hooks)),
            ("Needs", codes(one.__name__ for one in traits.needs)),
            ("Uses", codes(one.__name__ for one in traits.uses)),
            ("Gives", codes(one.__name__ for one in traits.gives)),
            ("Requires", codes(sorted(traits.requires))),
            ("Words of jobs", codes(sorted(traits.words))),
            ("Asked again", traits.ask_again.value if acts else ""),
            ("Checkpoint", traits.checkpoint if "checkpoint" in info.hooks else ""),
            ("Tuned by", codes(filter(None, traits.study.tunable[:1]))),
            ("Paper", traits.paper),
            ("Class", f"``{info.source}``"),
        ]
    )
    if report.options:
        rows = [("option", "type", "default", "meaning")]
        for one in report.options:
            default = f"``{one.default}``" if one.default else "required"
            rows.append((f"``{one.name}``", f"``{one.type}``", default, escaped(one.meaning)))
        yield from table(rows, "18 20 17 45")
    if info.documentation and info.documentation != info.summary:
        yield from info.documentation.splitlines()


class Plugins(_Made):
    """By kind, as ``headway plugins`` lists them; then the presets."""

    def lines(self) -> Iterator[str]:
        catalogue = Catalogue()
        if missing := catalogue.not_loadable():
            raise self.error(f"each plugin must load here, but: {'; '.join(missing.values())}")
        for heading, members in by_kind(catalogue).items():
            yield from titled(heading, "-", f"plugins-{nodes.make_id(heading)}")
            for info in members:
                yield from section_of_a_plugin(info, catalogue.get(info.name))
        yield from titled("Presets: several plugins under one name", "-", "presets")
        for name, preset in catalogue.presets().items():
            plugins = dict.fromkeys(plugin for plugin, _ in preset.plugins)
            of = ", ".join(f":ref:`{plugin} <plugin-{plugin}>`" for plugin in plugins)
            yield from (f"``{name}``", f"   {preset.summary} Of {of}.", "")


class Commands(ClickDirective):
    """A group of ``headway --help``: its name in :data:`headway.cli.groups.GROUPS`, or ``others``."""

    def run(self) -> list[nodes.section]:
        self.env = self.state.document.settings.env
        context = click.Context(cli, info_name="headway")
        heading = GROUPS.get(self.arguments[0], OTHERS)
        found = []
        for name, _ in cli.by_group(context).get(heading, ()):
            found += self._generate_nodes(name, cli.get_command(context, name), context, "full")
        return found


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("headway-hooks", Hooks)
    app.add_directive("headway-plugins", Plugins)
    app.add_directive("headway-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
