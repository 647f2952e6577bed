"""``headway replay``: a recorded run again."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.common import adapter_option, examples, plugin_files_option, say, when


@click.command(
    "replay",
    epilog=examples(
        "headway replay journal.sqlite             the last run",
        "headway replay journal.sqlite --run 3     an earlier one",
    ),
)
@click.argument("journal_path", metavar="JOURNAL")
@click.option("--run", "run_id", type=int, help="Number of the run to repeat. Default: the last run.")
@plugin_files_option("A Python file with plugins that the run used. Repeatable.")
@adapter_option
def command(
    journal_path: str, run_id: int | None, plugin_files: tuple[Path, ...], adapter_files: tuple[Path, ...]
) -> None:
    """Run a journal again and report decisions that differ.

    A new scheduler gets the recorded events; its decisions are compared with the recorded ones. JOURNAL
    is a SQLite file or a database URL; it is only read. Exit code 0 if all decisions are the same, 1 if
    any differs.
    """
    from headway.config import Adapters
    from headway.daemon.replay import other_rule, replay
    from headway.journal import Journal
    from headway.plugins import Catalogue

    adapters = Adapters.with_files(adapter_files)
    with Journal.open(journal_path, create=False, read_only=True) as journal:
        found = replay(journal, Catalogue(plugin_files), run_id, adapters=adapters)
    differ = len(found.differences)
    verdict = f"{differ} {'cycle differs' if differ == 1 else 'cycles differ'}"
    if not differ:
        verdict = "all decisions are the same"
    say(
        f"run {found.run.id} ({found.run.info.mode}): {found.cycles} cycles, {found.events} events, "
        f"{found.decisions} decisions; {verdict}"
    )
    if found.cut_short:
        say("the run was killed before its last cycle's decisions were written; that cycle is left out")
    for difference in found.differences[:20]:
        say(f"cycle {difference.seq} at {when(difference.now)}:")
        for title, decisions in (("recorded", difference.recorded), ("repeated", difference.repeated)):
            for decision in decisions:
                say(f"  {title}: {decision}")
            if not decisions:
                say(f"  {title}: nothing")
    if differ > 20:
        say(f"... and {differ - 20} more")
    if differ and (rule := other_rule(found.run)):
        say(rule)
    if differ:
        raise SystemExit(1)
