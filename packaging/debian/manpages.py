"""Write a manual page of ``headway`` and of each of its commands into a folder: ``manpages.py FOLDER``.

``make man`` and the Debian package are made by it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click_man.core import generate_man_page

from headway import __version__
from headway.cli import cli

#: Text that begins with a dot, such as ".swf": groff would take it for a request.
_NO_REQUEST = re.compile(r"^(?=\.(?![A-Z]))", re.MULTILINE)


def pages(context: click.Context) -> Iterator[tuple[str, str]]:
    """File name and text of the page of a command, and of the pages of the commands below it."""
    command = context.command
    below: dict[str, click.Command] = {}
    if isinstance(command, click.Group):
        found = {name: command.get_command(context, name) for name in command.list_commands(context)}
        below = {name: one for name, one in found.items() if one is not None and not one.hidden}
        # Ours are loaded when they are called, and pages are made of those that are there.
        command.commands.update(below)
    for one in (command, *below.values()):
        # Whole sentences, not their beginnings.
        one.short_help = one.get_short_help_str(limit=200)
    text = _NO_REQUEST.sub(r"\\&", generate_man_page(context, __version__))
    yield f"{context.command_path.replace(' ', '-')}.1", text
    for name, one in below.items():
        yield from pages(click.Context(one, info_name=name, parent=context))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(click.Context(cli, info_name="headway")):
        (folder / name).write_text(text, encoding="utf-8")
