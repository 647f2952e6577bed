"""``headway replay``: a recorded run again."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.common import console


@click.command("replay")
@click.argument("journal_path", metavar="JOURNAL")
@click.option("--run", "run_id", type=int, help="Which run; default: the last.")
@click.option("--plugin", "plugin_files", multiple=True, type=click.Path(path_type=Path),
              help="A file with plugins that the run used. Repeatable.")  # fmt: skip
def command(journal_path: str, run_id: int | None, plugin_files: tuple[Path, ...]) -> None:
    """Give a journal's events to a new scheduler and compare its decisions with the recorded ones.

    Exit code 0 if all are the same, 1 if any differs.
    """
    from headway.cli.common import wall_clock
    from headway.journal import Journal
    from headway.plugins import Catalogue
    from headway.replay import replay

    with Journal.open(journal_path, create=False, read_only=True) as journal:
        found = replay(journal, Catalogue(plugin_files), run_id)
    screen = console()
    screen.print(
        f"run {found.run.id} ({found.run.info.mode}): {found.cycles} cycles, {found.events} events, "
        f"{found.decisions} decisions; {len(found.differences)} cycles differ"
    )
    if found.cut_short:
        screen.print("the run was killed before its last cycle's decisions were written; that cycle is left out")
    for difference in found.differences[:20]:
        when = wall_clock(difference.now) if difference.now > 1e8 else f"{difference.now:.0f}"
        screen.print(f"cycle {difference.seq} at {when}:", markup=False)
        for title, decisions in (("recorded", difference.recorded), ("repeated", difference.repeated)):
            for decision in decisions:
                screen.print(f"  {title}: {decision}", markup=False)
            if not decisions:
                screen.print(f"  {title}: nothing")
    if len(found.differences) > 20:
        screen.print(f"... and {len(found.differences) - 20} more")
    if found.differences:
        raise SystemExit(1)
