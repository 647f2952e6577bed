"""What the commands that speak to the daemon share: times, durations, asking."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli import common
from headway.cli.as_json import json_option, say_json
from headway.errors import Failure, UserError
from headway.inputs.spans import EXPECTED, seconds_of

if TYPE_CHECKING:
    from headway.service.protocol import AnyRequest, Reply


#: Seconds of ten years, and some days.
LONGEST = 3660 * 86400.0


class Duration(click.ParamType):
    """``30m``, ``1h30m``, ``2d``, ``45`` (seconds), as seconds above zero."""

    name = "duration"

    def __init__(self, longest: tuple[float, str] = (LONGEST, "ten years")) -> None:
        """``longest``: in seconds, and what a person calls it."""
        self.longest = longest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        seconds = seconds_of(value) if isinstance(value, str) else None
        if seconds is None:
            self.fail(f"expected {EXPECTED}; found {value!r}", param, ctx)
        longest, said = self.longest
        if not 0 < seconds <= longest:
            self.fail(f"expected a time above 0 and at most {said}, found {value!r}", param, ctx)
        return float(seconds)


class Moment(click.ParamType):
    """``14:30``, ``2026-03-01T14:30``, ``+2h`` (from now), ``now``, as seconds since the epoch."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = self._moment(value, param, ctx)
        if found > time.time() + LONGEST:
            self.fail(f"expected a time in the next ten years, found {value!r}", param, ctx)
        return found

    def _moment(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        now = datetime.now().astimezone()
        if text == "now":
            return now.timestamp()
        if text.startswith("+"):
            return now.timestamp() + Duration().convert(text[1:], param, ctx)
        if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text):
            try:
                hour, minute, second = (int(part) for part in f"{text}:00".split(":")[:3])
                # Without its zone, so that the next day's is that day's.
                moment = datetime.now().replace(hour=hour, minute=minute, second=second, microsecond=0)
            except ValueError:
                moment = None
            if moment is not None:
                if moment.timestamp() <= time.time():
                    moment += timedelta(days=1)
                return moment.timestamp()
        else:
            try:
                return datetime.fromisoformat(text).timestamp()
            except ValueError:
                pass
        expected = "a time such as 14:30, 2026-03-01T14:30, +2h (from now) or now"
        self.fail(f"expected {expected}; found {value!r}", param, ctx)


class JobId(click.ParamType):
    """A job's id, as the batch system has it: any text but blanks."""

    name = "job"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail(f"expected the id of a job, found {value!r}", param, ctx)
        return str(value)


#: How long a report may take, seconds: the daemon gives it beside its work.
_REPORT_PATIENCE = 15.0

DURATION, MOMENT = Duration(), Moment()


#: The socket that the daemon's unit makes for users, who may not read the configuration.
SOCKET = Path("/run/headway/headway.sock")
#: For so many seconds a daemon decides on a request, where its configuration is not known.
_TIMEOUT = 30.0


def daemon_of(config_path: Path | None, adapter_files: tuple[Path, ...] = ()) -> tuple[Path, float]:
    """The daemon's socket, and the seconds in which it decides on a request.

    Of the configuration that is named, by ``-c`` or in the environment; else of the first of the usual places
    that this user can read; else of the daemon whose socket is :data:`SOCKET`. Of adapters, only those of
    ``adapter_files`` are loaded: the daemon has the configuration's. :class:`UserError` where there is none.
    """
    path = config_path if config_path is not None else common.readable_config()
    if path is None:
        if not SOCKET.exists():
            raise UserError(
                f"expected -c FILE, HEADWAY_CONFIG in the environment, or a daemon at {SOCKET}; found no "
                f"configuration that can be read ({', '.join(map(str, common.CONFIGS))}), and no such socket"
            )
        return SOCKET, _TIMEOUT
    from headway.config import Adapters, load_config

    config = load_config(path, Adapters.with_files(adapter_files) if adapter_files else None)
    socket = config.socket_path()
    if socket is None:
        raise UserError(
            f"{config.source}: service.socket: expected a path, because the journal is no file; found none"
            if config.service.enabled
            else f"{config.source}: service.enabled: the daemon of this configuration has no socket"
        )
    return socket, config.service.timeout


def ask_daemon(config_path: Path | None, adapter_files: tuple[Path, ...], request: AnyRequest) -> Reply:
    """The daemon's reply (:func:`daemon_of`); :class:`Failure` if it refused or did not decide."""
    from headway.service.client import ask
    from headway.service.protocol import Elastic, Plugin, Reserve, Unreserve

    socket, timeout = daemon_of(config_path, adapter_files)
    # A report needs no cycle: a client that waits longer for it waits for a daemon that hangs.
    decides = isinstance(request, Elastic | Reserve | Unreserve | Plugin)
    reply = ask(socket, request, timeout=timeout + 15.0 if decides else _REPORT_PATIENCE + request.takes)
    if reply.outcome in ("refused", "failed"):
        said = "refused" if reply.outcome == "refused" else "no answer"
        raise Failure(f"{said}: {reply.reason}" if reply.reason else said)
    return reply


outcome_option = json_option("headway.service.protocol:Outcome", "Print what became of it as JSON.")


def tell(reply: Reply, as_json: bool) -> None:
    """Print what became of a request."""
    if as_json:
        from headway.service.protocol import Outcome

        say_json(Outcome(reply.outcome, reply.reason))
        return
    common.say(f"{reply.outcome}: {reply.reason}" if reply.reason else reply.outcome)
