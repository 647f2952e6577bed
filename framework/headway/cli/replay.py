"""``headway replay``: a recorded run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.common import adapter_option, examples, plugin_files_option, say, when

if TYPE_CHECKING:
    from headway.cli.reports import ReplayReport
    from headway.daemon.replay import Replay


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
@json_option("headway.cli.reports:ReplayReport")
def command(
    journal_path: str,
    run_id: int | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Run a journal again and report decisions that differ.

    A new scheduler gets the recorded events; its decisions are compared with the recorded ones. JOURNAL
    is a SQLite file or a database URL; it is only read. Exit code 0 if all decisions are the same, 1 if
    any differs.
    """
    from headway.config import Adapters
    from headway.daemon.replay import replay
    from headway.journal import Journal
    from headway.plugins import Catalogue

    adapters = Adapters.with_files(adapter_files)
    with Journal.open(journal_path, create=False, read_only=True) as journal:
        found = replay(journal, Catalogue(plugin_files), run_id, adapters=adapters)
    if as_json:
        say_json(_report(found))
    else:
        _show(found)
    if found.differences:
        raise SystemExit(1)


def _report(found: Replay) -> ReplayReport:
    from headway.cli.reports import DifferenceReport, ReplayReport
    from headway.daemon.replay import other_rule

    differences = tuple(
        DifferenceReport(one.seq, one.now, tuple(map(str, one.recorded)), tuple(map(str, one.repeated)))
        for one in found.differences
    )
    rule = (other_rule(found.run) if differences else None) or ""
    return ReplayReport(
        found.run.id, found.run.info.mode, found.cycles, found.events, found.decisions, found.cut_short,
        differences, rule,
    )  # fmt: skip


def _show(found: Replay) -> None:
    from headway.daemon.replay import other_rule

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
