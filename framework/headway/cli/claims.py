"""``headway claims``: which tables of claims are stale."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import printed_json
from headway.cli.common import console
from headway.cli.reproduce import made
from headway.errors import UserError
from headway.inputs.extras import need_report

if TYPE_CHECKING:
    from headway.experiment.claims_page import Call
    from headway.experiment.reproduction import Reproduction

STYLES = {"up to date": "green", "stale": "red", "not checked": "yellow"}


@click.command("claims")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--write", is_flag=True,
              help="Write today's verdicts into the pages that differ from them.")  # fmt: skip
@click.option(
    "--traces",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    envvar="HEADWAY_TRACES",
    help="Directory of real traces, for the results that need a trace.",
)
@printed_json
def command(folder: Path, write: bool, traces: Path | None) -> None:
    """Say which tables of a paper's claims in FOLDER are stale. Nothing is run.

    The results of headway reproduce in FOLDER are judged again from their rows, and their claims.md
    compared with that. A table in a page of FOLDER stands between <!-- claims: DIRECTORY --> and
    <!-- /claims --> and is the table in that directory's claims.md. Ends with 1 if a table is stale.
    """
    need_report("headway claims")
    from rich.text import Text

    from headway.experiment.stale import State, check_tables
    from headway.report.atomic import writing

    screen = console()
    stale = 0
    for table in check_tables(folder, traces, _experiments):
        if write and table.state is State.STALE and table.today is not None:
            with writing(table.page) as stream:
                stream.write(table.today)
            screen.print(Text(f"{'written':11}", style="green"), table.page, soft_wrap=True)
            continue
        stale += table.state is State.STALE
        where = f"{table.page}:{table.line}" if table.line else str(table.page)
        screen.print(Text(f"{table.state:11}", style=STYLES[table.state]), end=" ")
        screen.print(f"{where}: {table.why}", markup=False, soft_wrap=True, highlight=False)
    if stale:
        screen.print(f"stale tables: {stale}", markup=False, highlight=False)
        raise SystemExit(1)


def _experiments(call: Call) -> Reproduction:
    try:
        return made(call.name, call.settings)
    except UserError as error:
        raise UserError(f"its command `{call}` does not work today: {error}") from error
