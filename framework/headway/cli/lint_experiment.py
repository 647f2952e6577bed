"""``headway lint-experiment``: the rule book on a definition, or on results."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.as_json import printed_json
from headway.cli.common import console, policy_file_option, warn
from headway.inputs.extras import need_report


@click.command("lint-experiment")
@click.argument("what", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Exit with 2 if a rule is broken or not answered.")
@click.option("--definition-only", is_flag=True, help="Do not draw or read the workloads.")
@policy_file_option
@printed_json
def command(what: Path, strict: bool, definition_only: bool, plugin_files: tuple[Path, ...]) -> None:
    """Tell which rules of the evaluation of schedulers a campaign keeps and which it breaks.

    FILE is a campaign's definition (its workloads are drawn or read for the first seed, nothing is run), or a
    directory with the results of `headway compare`.
    """
    need_report("headway lint-experiment")
    from headway.cli.rules import show_rules
    from headway.experiment.answers import refuse_breaches
    from headway.experiment.definition import load_campaign
    from headway.experiment.folder import read_results
    from headway.experiment.rulebook import evidence_of, judge
    from headway.experiment.seen import looked_at

    if what.is_dir():
        campaign, rows = read_results(what)
        catalogue = campaign.catalogue()
        evidence = evidence_of(campaign, catalogue, rows=rows)
    else:
        campaign = load_campaign(what, plugin_files=plugin_files)
        catalogue = campaign.catalogue()
        workloads = [] if definition_only else list(looked_at(campaign, catalogue, warn))
        evidence = evidence_of(campaign, catalogue, workloads=workloads)
    found = judge(evidence)
    show_rules(console(), found)
    if strict:
        refuse_breaches(found, what)
