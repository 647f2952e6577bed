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


#: The fields of :class:`headway.cli.printed.PrintedTable`.
_OF_A_TABLE = ("title", "columns", "rows")


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
            say_json(
                {
                    "sentences": collected.sentences,
                    "tables": [dict(zip(_OF_A_TABLE, one, strict=True)) for one in collected.tables],
                    **collected.figures,
                }
            )


def printed_json(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--json`` of a command whose report is made of sentences and tables: they are collected instead of
    printed, and the function knows nothing of it. Stands next to the function."""
    return _collected(function, printed_option)


def figured_json(shape: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same with a shape that has numbers beside them, which the command notes
    (:func:`headway.cli.collecting.note`)."""
    option = json_option(shape)
    return lambda function: _collected(function, option)


def _collected(function: Callable[..., Any], option: Callable[[Any], Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, as_json: bool, **given: Any) -> Any:
        with collecting(as_json):
            return function(*args, **given)

    found: Callable[..., Any] = option(run)
    return found


def say_json(report: Any) -> None:
    """Print a report as a line of JSON; what is infinite or no number becomes null (JSON has neither)."""
    import msgspec

    click.echo(msgspec.json.encode(report, enc_hook=_plain))


def _plain(value: Any) -> Any:
    """A number of numpy's, or an array, as plain values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise NotImplementedError(f"expected a value for JSON, found {type(value).__name__}")


def schema_of(command: click.Command) -> dict[str, Any] | None:
    """The JSON schema of what the command prints with ``--json``; None if it has no such option."""
    import msgspec

    for parameter in command.params:
        if isinstance(parameter, JsonOption):
            return msgspec.json.schema(parameter.type_printed())
    return None
