"""``--json``: what a command prints, for programs. The shape is named once, where the option stands; from it
comes the JSON schema too."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from headway.cli.collecting import COLLECTOR, Collector


class JsonOption(click.Option):
    """The option ``--json`` of a command; the command's parameter is ``as_json``."""

    def __init__(self, *args: Any, shape: str, **kwargs: Any) -> None:
        """``shape``: ``"package.module:Type"``, the type of what is printed (a :class:`msgspec.Struct`, or
        another type that msgspec writes). Loaded only when the schema is asked for."""
        super().__init__(*args, **kwargs)
        self.shape = shape

    def type_printed(self) -> type:
        """The type of what ``--json`` prints."""
        module, _, name = self.shape.partition(":")
        found: type = getattr(importlib.import_module(module), name)
        return found


def json_option(shape: str, said: str = "Print the report as JSON.") -> Callable[[Any], Any]:
    """The option ``--json`` of a command that prints ``shape``, with its line of help."""
    return click.option("--json", "as_json", is_flag=True, cls=JsonOption, shape=shape, help=said)


printed_option = json_option("headway.cli.printed:Printed", "Print sentences and tables as JSON.")


@contextmanager
def collecting(as_json: bool) -> Iterator[None]:
    """With ``as_json``: what is printed in the block becomes a line of JSON at its end
    (:class:`headway.cli.printed.Printed`)."""
    if not as_json:
        yield
        return
    collected, done = Collector(), False
    token = COLLECTOR.set(collected)
    try:
        yield
        done = True
    finally:
        COLLECTOR.reset(token)
        # Of a failure the error says all, unless something was found before it.
        if done or collected:
            from headway.cli.printed import printed

            say_json(printed(collected))


def printed_json(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--json`` of a command whose report is made of sentences and tables: they are collected instead of
    printed, and the function knows nothing of it. Stands next to the function."""

    @wraps(function)
    def run(*args: Any, as_json: bool, **given: Any) -> Any:
        with collecting(as_json):
            return function(*args, **given)

    return printed_option(run)


def say_json(report: Any) -> None:
    """Print a report as a line of JSON; infinite times must not be in it (JSON has none)."""
    import msgspec

    click.echo(msgspec.json.encode(report))


def schema_of(command: click.Command) -> dict[str, Any] | None:
    """The JSON schema of what the command prints with ``--json``; None if it has no such option."""
    import msgspec

    for parameter in command.params:
        if isinstance(parameter, JsonOption):
            return msgspec.json.schema(parameter.type_printed())
    return None
