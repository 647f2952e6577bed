"""``headway generate``: a workload from a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import printed_json
from headway.cli.common import examples, plugin_files_option, say
from headway.cli.estimate_options import asked_model, estimates_option, estimates_set_option
from headway.errors import UserError, nearest

if TYPE_CHECKING:
    from headway.workload import Workload


@click.command(
    "generate",
    epilog=examples(
        "headway generate                                       the models and their options",
        "headway generate lublin -o log.swf.gz --set jobs=10000",
        "headway generate lublin-cwf --seed 3 --set load=0.9 --set p_dedicated=0.5",
        "headway generate ccr --seed 1                          a data centre's month of 22,385 jobs",
        "headway generate lublin --estimates tsafrir05          with estimates like users'",
    ),
)
@click.argument("model", required=False)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True,
              help="Seed of all random draws.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path),
              help="File to write, .swf or .cwf, plain or .gz. Default: MODEL.swf, or MODEL.cwf for "
                   "requested starts or elastic commands.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="An option of the model. Repeatable.")  # fmt: skip
@estimates_option
@estimates_set_option
@plugin_files_option("A Python file with plugins that have models. Repeatable.")
@printed_json
def command(
    model: str | None,
    seed: int,
    output: Path | None,
    settings: tuple[str, ...],
    estimates: str | None,
    estimate_settings: tuple[str, ...],
    plugin_files: tuple[Path, ...],
) -> None:
    """Draw a workload from MODEL and write it; without MODEL, list the models and their options.

    Files are in the Standard Workload Format, or in the Cloud Workload Format, which has requested starts
    and elastic commands as well. The same model, options and seed give the same file.
    """
    from headway.cli.plugins import list_models
    from headway.dry_run.models import drawn
    from headway.experiment.campaign import workload_models
    from headway.plugins import Catalogue
    from headway.workload import estimated_workload, format_to_write

    catalogue = Catalogue(plugin_files)
    if model is None:
        models = workload_models(catalogue)
        if settings or estimates or output is not None:
            raise click.UsageError(f"which model? {nearest('', models).strip()}")
        list_models(models)
        say("`headway generate MODEL --set KEY=VALUE` draws a workload and writes it to a file.")
        return
    if output is not None:
        format_to_write(output)  # before the work
    chosen = asked_model(catalogue, estimates, estimate_settings)
    workload = drawn(catalogue, model, settings, seed)
    if chosen is not None:
        workload = estimated_workload(workload, chosen, seed)
    called = " ".join([f"headway generate {model} --seed {seed}", *(f"--set {one}" for one in settings)])
    if estimates:
        called += " ".join(
            ["", f"--estimates {estimates}", *(f"--estimates-set {s}" for s in estimate_settings)]
        )
    path, found = write_workload(output, model, workload, [f"made by: {called}"])
    size = f", {workload.processors:,} processors" if workload.processors else ""
    jobs = len(workload.jobs)
    said = f"{path}: {jobs:,} {'job' if jobs == 1 else 'jobs'}{size}, seed {seed}"
    say(said + (f", {found}" if found else ""))
    for note in workload.notes:
        say(note)


def write_workload(
    output: Path | None, name: str, workload: Workload, notes: Sequence[str]
) -> tuple[Path, str]:
    """Write a workload to ``output``, else to ``name`` with the ending that it needs.

    Gives the file, and what it has of requested starts and commands. Raises :class:`UserError` if the
    format has no place for something that the workload has, or it has no jobs.
    """
    from headway.version import __version__
    from headway.workload import CloudTrace, format_to_write, to_cloud_records, write_trace
    from headway.workload.formats import without_a_place
    from headway.workload.swf import with_notes

    lost = without_a_place(workload.jobs)
    if lost:
        raise UserError(f"{name}: no trace format can hold {', '.join(lost)}; nothing was written")
    if not workload.jobs:
        raise UserError(f"{name}: the model drew no jobs; nothing was written")
    records, start, commands = to_cloud_records(workload.jobs, workload.commands)
    header = ["; Version: 2.2", f"; Computer: none, the workload model {name} of headway {__version__}"]
    header += [f"; MaxJobs: {len(records)}", f"; MaxRecords: {len(records) + len(commands)}"]
    if workload.processors is not None:
        header += [f"; MaxNodes: {workload.processors}", f"; MaxProcs: {workload.processors}"]
    header = with_notes(header, [*notes, *workload.notes])
    fields = {} if workload.processors is None else {"MaxProcs": str(workload.processors)}
    trace = CloudTrace(name, header, fields, records=records, requested_start=start, commands=tuple(commands))
    path = output if output is not None else Path(f"{name}.{'cwf' if trace.extensions else 'swf'}")
    form = format_to_write(path)
    if beyond := form.loses(trace):
        raise UserError(f"{path}: {form.about} cannot hold {beyond}; give a file that ends in .cwf")
    write_trace(path, trace)
    return path, trace.extensions
