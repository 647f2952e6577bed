"""``headway estimates``: models of users' runtime estimates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import collecting, printed_json, printed_option
from headway.cli.common import examples, plugin_files_option, say, tell_issues
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.workload import EstimateModel, Trace

_plugin_option = plugin_files_option("A Python file with plugins that have estimate models. Repeatable.")


@click.group(
    "estimates",
    invoke_without_command=True,
    epilog=examples(
        "headway estimates                                   the models and their options",
        "headway estimates fit log.swf.gz -o site.yaml       tsafrir05 with the log's popular estimates",
        "headway estimates fit sacct.txt -o site.yaml --by-queue",
        "headway convert bare.swf new.swf --estimates site.yaml",
    ),
)
@_plugin_option
@printed_option
@click.pass_context
def command(context: click.Context, plugin_files: tuple[Path, ...], as_json: bool) -> None:
    """List the models of users' estimates, or fit one to a trace or to accounting.

    `headway generate`, `convert` and `dry-run` take a model, or the file of a fitted one, with --estimates.
    """
    if context.invoked_subcommand is not None:
        return
    from headway.cli.plugins import list_models
    from headway.experiment.estimates import estimate_models
    from headway.plugins import Catalogue

    with collecting(as_json):
        list_models(estimate_models(Catalogue(plugin_files)))
        say(
            "`headway convert IN OUT --estimates MODEL --estimates-set KEY=VALUE` gives the jobs of IN a "
            "model's estimates."
        )


@command.command("fit")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("--model", default="tsafrir05", show_default=True, help="The model to fit.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True,
              help="Model file to write (.yaml).")  # fmt: skip
@click.option("--by-queue", is_flag=True, help="Fit also the jobs of each queue separately.")
@click.option("--strict", is_flag=True, help="Stop at the first broken line of TRACE.")
@_plugin_option
@printed_json
def fit(
    trace_path: Path, model: str, output: Path, by_queue: bool, strict: bool, plugin_files: tuple[Path, ...]
) -> None:
    """Fit a model to the estimates of TRACE and write it to a file, which --estimates takes.

    TRACE is a workload, or a batch system's accounting: the text of sacct -P with TimelimitRaw, Submit and
    Start, a PBS server's logs, or LSF's lsb.events and lsb.acct one after the other.
    """
    import numpy as np
    import yaml

    from headway.experiment.estimates import named_model
    from headway.plugins import Catalogue
    from headway.report.atomic import writing
    from headway.workload import Column, read_trace, run_jobs

    if output.suffix not in (".yaml", ".yml"):
        raise UserError(f"{output}: expected a file that ends in .yaml")
    kind = named_model(Catalogue(plugin_files), model)
    trace = read_trace(trace_path, strict=strict)
    tell_issues(trace)
    options, jobs = _fitted(kind, model, trace)
    said: dict[str, Any] = {
        "model": model,
        "fitted": {"trace": trace_path.name, "jobs": jobs},
        "options": options,
    }
    lines = [f"{output}: {model} fitted to {jobs:,} jobs of {trace_path}"]
    if by_queue:
        said["queues"] = {}
        queue, names = trace.records[:, Column.QUEUE], trace.queue_names
        for number in np.unique(queue[queue >= 0]).astype(int).tolist():
            part = trace.part(queue == number)
            if not len(run_jobs(part)):
                lines.append(f"queue {names.get(number, number)}: no jobs with an estimate, so no model")
                continue
            own, jobs = _fitted(kind, model, part)
            said["queues"][names.get(number, number)] = own
            lines.append(f"queue {names.get(number, number)}: {jobs:,} jobs")
    with writing(output) as stream:
        stream.write(yaml.safe_dump(said, sort_keys=False))
    for line in lines:
        say(line)


def _fitted(kind: EstimateModel, name: str, trace: Trace) -> tuple[dict[str, Any], int]:
    """The model's options for the jobs of a trace, and how many have told them."""
    from headway.workload.estimate_models import run_jobs

    jobs = run_jobs(trace)
    if not len(jobs):
        raise UserError(f"{trace.path}: expected jobs with a runtime and an estimate, found none")
    found = kind.fitted(jobs)
    if found is None:
        raise UserError(f"estimate model {name}: it has no parameter to fit")
    return found, len(jobs)
