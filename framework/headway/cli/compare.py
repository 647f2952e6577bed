"""``headway compare``: a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import figured_json
from headway.cli.campaigns import all_failed, place_options, run_in_folder, write_all
from headway.cli.collecting import note
from headway.cli.common import console, examples, messages, policy_file_option, warn
from headway.cli.compare_given import Given, definition_options
from headway.inputs.extras import need_report

if TYPE_CHECKING:
    from headway.cli.campaigns import Ran
    from headway.experiment.rulebook import Evidence, Judged
    from headway.report.table import Table


@click.command(
    "compare",
    epilog=examples(
        "headway compare campaign.yaml --out out                           a campaign's file",
        "headway compare --trace log.swf.gz --policy easy --policy fcfs     one run each, by batches",
        "headway compare --workload month --load 0.7 --load 0.9 --policy easy --policy conservative",
    ),
)
@definition_options
@click.option("--out", type=click.Path(path_type=Path), default=Path("comparison"), show_default=True,
              help="Directory for rows, findings of the rules, plots, and a page with all of "
                   "these.")  # fmt: skip
@click.option("--strict", is_flag=True,
              help="Refuse a campaign that breaks a rule or leaves a question open.")  # fmt: skip
@click.option("--anew", is_flag=True,
              help="Drop the earlier runs in the directory. Default: continue the campaign.")  # fmt: skip
@policy_file_option
@place_options
@figured_json("headway.cli.figured:ComparisonReport")
def command(
    campaign: Path | None,
    out: Path,
    strict: bool,
    anew: bool,
    plugin_files: tuple[Path, ...],
    workers: int | None,
    scheduler: str,
    **said: Any,
) -> None:
    """Run policies x workloads x loads x seeds, compare them with confidence intervals, and say which rules
    of the evaluation of schedulers were kept and which were broken.

    CAMPAIGN is a YAML file; etc/campaigns/ has examples. Without it, options say which traces or models run
    under which policies. Its keys: processors, nodes or torus (as under
    emulation in a configuration), energy (a profile, or profile and classes as there), policies (names, or
    label, plugins and cycle), workloads (model, options and loads, or trace, one of arrival_factors,
    target_loads, runtime_factors and size_factors, resample and limit; label), seeds, first_seed, cycle,
    method.

    The same seeds give the same results, wherever they run. What has run is kept as it ends: the same command
    goes on after an interruption. A run that fails does not end the others; it is named at the end, and run
    again by the next call.
    """
    need_report("headway compare")
    from headway.experiment.answers import refuse_breaches, rules_table
    from headway.experiment.campaign import tasks_of
    from headway.experiment.rulebook import Kind, evidence_of, judge
    from headway.experiment.seen import looked_at
    from headway.experiment.tables import draw_plots
    from headway.report.campaign import write_campaign_page

    given = Given.of(campaign, said, plugin_files)
    plan, catalogue = given.plan, given.plan.catalogue()
    what = campaign or "the command line"
    before = judge(evidence_of(plan, catalogue, workloads=list(looked_at(plan, catalogue, warn))))
    refuse_breaches(before, what, worst=None if strict else Kind.REFUSE)

    found: list[Judged] = []

    def finish(ran: Ran) -> None:
        found.extend(judge(evidence_of(plan, catalogue, rows=ran.rows)))
        call = ["headway", "compare", *given.words, "--out", str(out), *(["--strict"] if strict else [])]
        call += [word for file in plugin_files for word in ("--plugin", str(file))]
        write_all(out, plan, ran, found, text=given.text, folder=given.folder, call=call)

    ran = run_in_folder(
        plan, given.folder, out, workers=workers, scheduler=scheduler, anew=anew, finish=finish
    )
    tables = _show(evidence_of(plan, catalogue, rows=ran.rows), found)
    plots = draw_plots(plan, ran.rows, out)
    write_campaign_page(out / "report.html", f"Campaign {given.name}", [*tables, rules_table(found)], plots)
    messages().print(f"written: {out}", markup=False)
    if ran.failed:
        raise all_failed(out, ran.failed, len(tasks_of(plan)))
    if strict:
        refuse_breaches(found, what)


def _show(evidence: Evidence, found: Sequence[Judged]) -> list[Table]:
    """Print what was found, and note its numbers for ``--json``; the tables."""
    from headway.cli.rules import show_rules
    from headway.experiment.rulebook import excluded
    from headway.experiment.tables import campaign_tables, changes_data, points_data

    tables, left_out = campaign_tables(evidence, found), excluded(found)
    note(points=points_data(evidence, left_out), changes=changes_data(evidence, left_out))
    _print(tables)
    show_rules(console(), found)
    return tables


def _print(tables: Sequence[Table]) -> None:
    from rich.table import Table as ScreenTable

    for table in tables:
        shown = ScreenTable(*table.heads, box=None, pad_edge=False)
        for row in table.rows:
            shown.add_row(*row)
        console().print(shown)
        if table.note:
            console().print(table.note)
