"""``headway demo``: no set-up, no input."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from headway.cli.as_json import figured_json
from headway.cli.collecting import note
from headway.cli.common import (
    console,
    examples,
    prepare_directory,
    say,
)
from headway.cli.log_output import set_up_log
from headway.inputs.extras import need_report

POLICIES = ("fcfs", "easy", "conservative")
PROCESSORS = 320


@click.command(
    "demo",
    epilog=examples(
        "headway demo                        the month, into demo-out/",
        "headway demo --days 7 --seed 2      another week",
        "headway demo --out /tmp/demo        the results somewhere else",
    ),
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("demo-out"), show_default=True,
              help="Directory for the report and the tables.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True,
              help="Seed of the generated jobs.")  # fmt: skip
@click.option("--days", type=click.IntRange(min=1, max=366), default=30, show_default=True,
              help="Length of the workload, days.")  # fmt: skip
@figured_json("headway.cli.figured:RunsReport")
def command(out: Path, seed: int, days: int) -> None:
    """A generated month on 320 processors under FCFS, EASY and conservative backfilling.

    Prints a comparison, and writes a report (report.html) and, for each policy, its jobs, decisions,
    metrics and schedule. The same seed gives the same jobs and the same schedules.
    """
    from headway.cli.screen import job_progress, new_progress
    from headway.config import LogConfig
    from headway.emulation import emulate
    from headway.metrics import Figures
    from headway.model import ClusterDescription
    from headway.plugins import Catalogue, PluginConfig

    need_report("headway demo")
    from headway.report import compare_table, write_html, write_outputs
    from headway.report.quantities import number

    prepare_directory(out)
    set_up_log(LogConfig())
    catalogue = Catalogue()
    model = catalogue.get("month")().register_workloads()["month"]
    jobs = model.generate(np.random.default_rng(seed), model.Options(processors=PROCESSORS, days=days)).jobs
    cluster = ClusterDescription.flat(PROCESSORS, name="demo")
    results = []
    with new_progress() as progress:
        for policy in POLICIES:
            with job_progress(policy, jobs, progress) as advance:
                results.append(
                    emulate(
                        cluster,
                        jobs,
                        [PluginConfig(policy)],
                        catalogue,
                        label=policy,
                        seed=seed,
                        keep_decisions=True,
                        on_cycle=advance,
                        about={"workload": f"generated month, seed {seed}", "days": str(days)},
                    )
                )
    length = f"{days} {'day' if days == 1 else 'days'}"
    say(f"{number(len(jobs))} generated jobs, {length}, {PROCESSORS} processors, seed {seed}\n")
    figures = [Figures(result) for result in results]
    note(metrics={found.result.label: found.summary for found in figures})
    console().print(compare_table([each.summary for each in figures]))
    for result, found in zip(results, figures, strict=True):
        write_outputs(result, out / result.label, formats=("csv", "json", "swf"), figures=found)
    report = out / "report.html"
    write_html(report, results, title=f"headway demo: {length} under three policies", figures=figures)
    say(f"\nreport: {report}")
    say(f"tables: {out}/{{{','.join(POLICIES)}}}/ with jobs.csv, decisions.csv, metrics.json, schedule.swf")
