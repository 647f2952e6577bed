"""``headway compare``: a campaign."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.table import Table

from headway.cli.common import console, messages, new_progress

METRICS = ("mean wait", "mean bounded slowdown", "slowdown of means", "utilisation")


@click.command("compare")
@click.argument("campaign", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("comparison"), show_default=True,
              help="Directory for rows.csv and the plots.")  # fmt: skip
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    help="Processes; default: all cores.",
)
def command(campaign: Path, out: Path, workers: int) -> None:
    """Run policies x workloads x loads x seeds, and compare them with confidence intervals.

    CAMPAIGN is a YAML file; etc/campaigns/ has examples.
    """
    from headway.experiment import interval, run_campaign
    from headway.experiment.campaign import points, select, write_rows
    from headway.experiment.definition import load_campaign
    from headway.experiment.plots import line_plot

    plan = load_campaign(campaign)
    out.mkdir(parents=True, exist_ok=True)
    with new_progress() as progress:
        task = progress.add_task("emulations", total=plan.size())
        rows = run_campaign(plan, workers=workers, on_done=lambda n: progress.advance(task, n))
    write_rows(out / "rows.csv", rows)
    screen = console()
    table = Table("workload", "x", "policy", *METRICS, box=None, pad_edge=False)
    for scenario, x in points(rows):
        for variant in plan.variants:
            means = [
                interval(select(rows, metric, scenario=scenario, variant=variant.label, x=x))
                for metric in METRICS
            ]
            table.add_row(scenario, f"{x:g}", variant.label, *(str(mean) for mean in means))
    screen.print(table)
    screen.print(
        f"means over {len(plan.seeds)} seeds (traces: one run), ± half of the 95 % confidence interval"
    )
    for scenario in dict.fromkeys(s.label for s in plan.scenarios):
        part = [row for row in rows if row.scenario == scenario]
        if len({row.x for row in part}) > 1:
            name = "".join(c if c.isalnum() else "-" for c in scenario)
            line_plot(part, METRICS, out / f"{name}.png", x_label="load or arrival factor", title=scenario)
    messages().print(f"written: {out}", markup=False)
