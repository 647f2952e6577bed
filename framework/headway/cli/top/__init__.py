"""``headway top``: what the page of ``headway serve`` shows, in a terminal.

:mod:`~headway.cli.top.board` is the whole picture, without a terminal: its views ask the daemon and draw.
:mod:`~headway.cli.top.app` puts the lines on a terminal; with ``--once`` they are printed.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.asking import Duration, daemon_of
from headway.cli.common import adapter_option, daemon_config_option, examples
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    from headway.cli.top.asking import Ask
    from headway.cli.top.board import Board

#: The views, as they are called on the command line, in their order.
_SHOWN = ("queue", "running", "pools", "nodes", "plan", "cycles", "shares")


@click.command(
    "top",
    epilog=examples(
        "headway top                            look, ? lists the keys, q leaves",
        "headway top --show plan --pool batch",
        "headway top --once --show running      one picture, as text",
    ),
)
@daemon_config_option
@adapter_option
@click.option("--every", type=Duration((3600.0, "an hour")), default="5s", show_default=True, metavar="TIME",
              help="Ask the daemon so often.")  # fmt: skip
@click.option("--show", "shown", type=click.Choice(_SHOWN), default=_SHOWN[0], show_default=True,
              help="Begin with this view.")  # fmt: skip
@click.option("--pool", default="", metavar="POOL", help="Only this pool (partition, queue).")
@click.option("--user", default="", metavar="USER", help="Only jobs of this user.")
@click.option("--mine", is_flag=True, help="Only my jobs.")
@click.option("--once", is_flag=True,
              help="Print one picture as text and end; it is as large as the terminal, or as COLUMNS and "
                   "LINES say.")  # fmt: skip
def command(
    config_path: Path | None,
    adapter_files: tuple[Path, ...],
    every: float,
    shown: str,
    pool: str,
    user: str,
    mine: bool,
    once: bool,
) -> None:
    """Watch the queue, the nodes and the plan in a terminal.

    The running daemon answers from its last cycle, and shows what you may see; the batch system is not asked,
    and nothing can be changed. A terminal of 80 columns and 24 lines is enough.
    """
    from headway.inputs.extras import need_top

    if not once:
        need_top("`headway top`")
        _need_terminal()
    path, _ = daemon_of(config_path, adapter_files)
    from headway.cli.top.asking import by_socket
    from headway.cli.top.board import Board

    board = Board(str(path))
    board.shared.mine, board.shared.points = mine, not once
    for what, value in (("pool", pool), ("user", user)):
        board.shared.want(what, value)
    board.show(shown)
    if once:
        _print_once(board, by_socket(path))
        return
    from headway.cli.top.app import Top

    Top(board, by_socket(path), every).run()


def _need_terminal() -> None:
    """Raises :class:`UserError` where there is no terminal on which lines can be drawn."""
    instead = "; `headway jobs` lists jobs, and `headway top --once` prints one picture as text"
    # Textual draws on standard error.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UserError(f"expected a terminal, found a file or a pipe{instead}")
    term = os.environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        raise UserError(f"expected a terminal that can move its cursor, found TERM={term!r}{instead}")


def _print_once(board: Board, ask: Ask) -> None:
    """One picture; :class:`Failure` if the daemon does not answer."""
    from headway.cli.top.board import driven
    from headway.cli.top.view import Room

    size = shutil.get_terminal_size((80, 24))
    room = Room(max(40, min(size.columns, 1000)), max(8, min(size.lines, 1000)))
    driven(board.look(room), ask)
    while board.lacks(room) and not board.trouble:
        time.sleep(board.patience(1.0))
        driven(board.look(room), ask)
    if board.trouble:
        raise Failure(board.trouble)
    click.echo(board.text(room))
