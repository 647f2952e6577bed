"""Where the log goes, and how a line of it looks."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from headway.cli.printable import printable
from headway.inputs import journald
from headway.inputs.trail import current

if TYPE_CHECKING:
    from headway.config import LogConfig

Entry = MutableMapping[str, Any]


def set_up_log(config: LogConfig, *, journal: str = journald.SOCKET) -> None:
    """Send the log to standard error, as configured: standard output is for results.

    Where standard error is systemd's journal, an entry has fields instead of a time stamp. ``journal``: the
    socket that takes such entries.
    """
    import structlog

    streams = journald.is_stream(os.environ)
    fields = streams and config.format == "console" and os.path.exists(journal)
    makers: list[Any] = [structlog.contextvars.merge_contextvars, _cycle, structlog.processors.add_log_level]
    if not streams or config.format == "json":
        # The journal has the time of each entry.
        makers.append(structlog.processors.TimeStamper(fmt="iso"))
    makers.append(_printable_values)
    if config.format == "json":
        makers += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    elif streams:
        plain = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, pad_level=False)
        makers += [structlog.processors.format_exc_info, _Fields(plain) if fields else _Prefixed(plain)]
    else:
        colors = config.format == "console" and sys.stderr.isatty()
        makers.append(structlog.dev.ConsoleRenderer(colors=colors))
    structlog.configure(
        processors=makers,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(config.level.upper())),
        logger_factory=(
            (lambda *_: journald.JournalLog(journal)) if fields else structlog.PrintLoggerFactory(sys.stderr)
        ),
        cache_logger_on_first_use=False,
    )


def _cycle(logger: Any, method: str, entry: Entry) -> Entry:
    """A log entry with the cycle that it belongs to."""
    if (cycle := current().cycle) and "cycle" not in entry:
        entry["cycle"] = cycle
    return entry


def _printable_values(logger: Any, method: str, entry: Entry) -> Entry:
    """A log entry whose texts a terminal can show."""
    for key, value in entry.items():
        if isinstance(value, str):
            entry[key] = printable(value)
    return entry


class _Fields:
    """The last processor where an entry has fields: its text, its level, and what it says."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __call__(self, logger: Any, method: str, entry: Entry) -> tuple[tuple[Any, ...], dict[str, Any]]:
        level = str(entry.pop("level", method))
        values = {key: value for key, value in entry.items() if key != "event"}
        return (str(self._plain(logger, method, entry)), level, values), {}


class _Prefixed:
    """The last processor where lines go to the journal's stream."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __call__(self, logger: Any, method: str, entry: Entry) -> str:
        level = str(entry.pop("level", method))
        return journald.prefixed(str(self._plain(logger, method, entry)), level)
