"""``headway dry-run``: what would have happened, or what will.

The room :mod:`headway.dry_run` has what is no matter of the command line.
:mod:`~headway.cli.dry_run.emulated` and :mod:`~headway.cli.dry_run.copied` run it,
:mod:`~headway.cli.dry_run.told` says how it went.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from headway.cli.as_json import figured_json
from headway.cli.asking import Duration
from headway.cli.common import (
    adapter_option,
    config_option,
    examples,
    plugin_option,
    prepare_directory,
    warn,
)
from headway.cli.dry_run.copied import run_copy
from headway.cli.dry_run.emulated import run_workload
from headway.cli.estimate_options import estimates_option, estimates_set_option
from headway.cli.log_output import set_up_log
from headway.cli.numbers import FiniteRange
from headway.cli.rules import single_options
from headway.dry_run.asked import EXPORTS, Asked
from headway.dry_run.site import Site, configured
from headway.errors import UserError
from headway.inputs.extras import need_report
from headway.inputs.log import set_up_later

COUNT = click.IntRange(min=1)
FACTOR = FiniteRange(min=0, min_open=True)


@click.command(
    "dry-run",
    epilog=examples(
        "headway dry-run --trace log.swf.gz                 EASY, the trace's machine",
        "headway dry-run --trace log.swf --policy fcfs --out out     with a report",
        "headway dry-run --trace log.swf --first 5000 --scale-arrivals 0.8",
        "headway dry-run --workload ccr --set load=1.1     a model's jobs",
        "headway dry-run --trace log.swf --estimates f-model --estimates-set f=3",
        "headway dry-run -c site.yaml --trace log.swf       the site's configuration",
        "headway dry-run -c site.yaml --from-cluster        the live queue's future",
    ),
)
@click.option("--trace", "trace_path", type=click.Path(path_type=Path),
              help="Trace, in any format of docs/workloads.md: .swf, .cwf, .json, sacct; or "
                   "sample:fortnight, which comes with headway.")  # fmt: skip
@click.option("--workload", metavar="MODEL",
              help="Draw the jobs from a workload model; `headway generate` lists the models.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="An option of the model. Repeatable.")  # fmt: skip
@estimates_option
@estimates_set_option
@config_option
@click.option("--from-cluster", is_flag=True,
              help="Start from a copy of the configured cluster's queue and nodes.")  # fmt: skip
@click.option("--processors", type=COUNT, metavar="N",
              help="Processors of a machine without nodes. Default: as configured, else the size in the "
                   "trace's header.")  # fmt: skip
@click.option("--policy", metavar="NAME",
              help="Policy or preset instead of the configured policy; other plugins stay enabled. Default: "
                   "easy.")  # fmt: skip
@click.option("--with", "further", multiple=True, metavar="NAME",
              help="Enable this plugin, too, after the others (such as fairness). Repeatable.")  # fmt: skip
@plugin_option
@adapter_option
@click.option("--energy", "energy", metavar="PROFILE",
              help="Energy profile: an installed profile (chandio2014, present-day) or a file. Adds power "
                   "and energy to the results.")  # fmt: skip
@click.option("--licences", "licences_path", type=click.Path(path_type=Path), metavar="FILE",
              help="CSV file with the licences that jobs need: job_id,licence,amount. emulation.licences "
                   "gives the totals.")  # fmt: skip
@click.option("--data", "data_path", type=click.Path(path_type=Path), metavar="FILE",
              help="CSV file with the datasets that jobs read: job_id,datasets, names with spaces between "
                   "them.")  # fmt: skip
@click.option("--switches", "switches_path", type=click.Path(path_type=Path), metavar="FILE",
              help="CSV file with the most switches of each job: job_id,switches,wait (for the placement "
                   "tree).")  # fmt: skip
@click.option("--cpu", "cpu_path", type=click.Path(path_type=Path), metavar="FILE",
              help="CSV file with the CPU use of each job's processes: job_id,cpu (for policies that share "
                   "processors). Default: drawn.")  # fmt: skip
@click.option("--limit", type=COUNT, metavar="N", help="Run only the first N accepted jobs.")
@click.option("--first", type=COUNT, metavar="N", help="Filter: the first N jobs of the trace.")
@click.option("--last", type=COUNT, metavar="N", help="Filter: the last N jobs of the trace.")
@click.option("--window", nargs=2, type=float, metavar="START END",
              help="Filter: jobs submitted in this window, seconds after the first submission.")  # fmt: skip
@click.option("--scale-arrivals", type=FACTOR, metavar="FACTOR",
              help="Filter: multiply the times between arrivals (below 1: more load).")  # fmt: skip
@click.option("--scale-runtimes", type=FACTOR, metavar="FACTOR",
              help="Filter: multiply runtimes and estimates (above 1: more load).")  # fmt: skip
@click.option("--scale-sizes", type=FACTOR, metavar="FACTOR",
              help="Filter: multiply the jobs' processors, up to the machine's.")  # fmt: skip
@click.option("--feedback", type=click.Choice(["none", "chains"]), default="none", show_default=True,
              help="chains: users submit their next job as long after the end of their last job as in the "
                   "trace (fields 17 and 18, else inferred). Run beside the open replay.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), metavar="N",
              help="Seed of all random draws. Default: as configured, else 0.")  # fmt: skip
@click.option("--draws", type=COUNT, default=1, metavar="N",
              help="Number of runs, each with other random draws (latencies, faults); the run nearest to "
                   "the middle of all is reported. Default: 1.")  # fmt: skip
@click.option("--cycle", type=Duration((86400.0, "a day")), metavar="TIME",
              help="Batch mode: start jobs only at multiples of this time (10s, 1m). "
              "Default: as configured, else at every event.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="DIRECTORY",
              help="Write jobs.csv, decisions.csv, metrics.json, schedule.swf, report.html.")  # fmt: skip
@click.option("--export", multiple=True, type=click.Choice([*EXPORTS]),
              help="Write a file that this program reads, too: evalys.csv. Repeatable.")  # fmt: skip
@click.option("--journal", "journal_path", metavar="JOURNAL",
              help="Record the run in this journal, a file or a URL (for `headway replay`).")  # fmt: skip
@click.option("--strict", is_flag=True, help="Stop at the first broken line of the trace.")
@single_options
@click.option("-v", "--verbose", is_flag=True,
              help="Print each line that was skipped or corrected, and each job that was "
                   "refused.")  # fmt: skip
@figured_json("headway.cli.figured:RunReport")
def command(**given: Any) -> None:
    """Run a trace, a model's workload, or a copy of the live queue, in the emulated cluster.

    Prints a summary; --out writes each job and decision, the metrics and a report, too. Filters are
    applied in the order in which they are listed below. The same input and seed give the same schedule.

    At the end stands how far the run may be trusted: which rules of the evaluation of schedulers
    (docs/trust.md) its workload and the run itself break.
    """
    try:
        asked = Asked.of(given)
    except UserError as error:
        raise click.UsageError(str(error)) from error
    if asked.outputs.out is not None:
        need_report("--out")
        prepare_directory(asked.outputs.out)
    config = configured(asked)
    if asked.work.from_cluster:
        set_up_log(config.log)
    else:
        set_up_later(partial(set_up_log, config.log))
    site = Site.of(asked, config, warn)
    if asked.work.from_cluster:
        run_copy(asked, site)
    else:
        run_workload(asked, site)
