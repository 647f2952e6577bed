"""``headway convert``: a workload in another format."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.as_json import printed_json
from headway.cli.common import examples, plugin_files_option, say, tell_issues
from headway.cli.estimate_options import asked_model, estimates_option, estimates_set_option
from headway.errors import UserError


@click.command(
    "convert",
    epilog=examples(
        "headway convert log.swf.gz log.cwf                 all jobs as batch jobs",
        "headway convert log.cwf log.swf                    if nothing is lost by it",
        "headway convert sacct.txt log.swf                  a site's own jobs",
        "headway convert log.cwf log.swf --drop-extensions  the jobs alone",
        "headway convert log.swf new.swf --estimates tsafrir05 --estimates-set maximum=18h",
    ),
)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--drop-extensions", is_flag=True,
              help="Drop what OUT cannot hold, such as requested starts in .swf.")  # fmt: skip
@estimates_option
@estimates_set_option
@click.option("--add", is_flag=True, help="Add estimates only to the jobs that have none.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True,
              help="Seed of the estimate model.")  # fmt: skip
@plugin_files_option("A Python file with plugins that have estimate models. Repeatable.")
@click.option("--strict", is_flag=True, help="Stop at the first broken line of IN.")
@click.option("-v", "--verbose", is_flag=True, help="Print each line of IN that was skipped or corrected.")
@printed_json
def command(
    source: Path,
    target: Path,
    drop_extensions: bool,
    estimates: str | None,
    estimate_settings: tuple[str, ...],
    add: bool,
    seed: int,
    plugin_files: tuple[Path, ...],
    strict: bool,
    verbose: bool,
) -> None:
    """Write the workload IN as OUT, in the format of its ending: .swf (the Standard Workload Format), .cwf
    (the Cloud Workload Format) or .json (Batsim's), plain or with .gz, .bz2 or .xz behind it. IN may also
    be a trace of the Grid Workloads Archive (.gwf), or a batch system's accounting: the text of sacct, the
    logs of a PBS or Torque server, LSF's lsb.events and lsb.acct, Grid Engine's accounting.

    Where OUT cannot hold something of IN, such as the requested starts and elastic commands of .cwf in
    .swf, nothing is written unless --drop-extensions says that it may be lost. With --estimates MODEL all
    jobs get a model's estimates, with --add only the jobs that have none; runtimes beyond an estimate that is
    replaced are cut to it: the batch system ended the job there.
    """
    from headway.plugins import Catalogue
    from headway.workload import (
        ADD,
        REPLACE,
        estimated_trace,
        format_to_write,
        read_trace,
        write_trace,
    )

    if add and estimates is None:
        raise click.UsageError("--add goes with --estimates MODEL")
    chosen = asked_model(Catalogue(plugin_files), estimates, estimate_settings)
    form = format_to_write(target)
    if target.exists() and source.exists() and target.samefile(source):
        raise UserError(f"{target}: expected another file than IN, found IN itself; nothing was written")
    trace = read_trace(source, strict=strict)
    tell_issues(trace, verbose)
    lost = form.loses(trace)
    if lost and not drop_extensions:
        raise UserError(
            f"{target}: {form.about} cannot hold {lost} of {source}; nothing was written (--drop-extensions "
            "drops these)"
        )
    notes: list[str] = []
    if chosen is not None:
        before = len(trace.header)
        trace = estimated_trace(trace, chosen, seed, ADD if add else REPLACE)
        notes = [line.removeprefix("; Note: ") for line in trace.header[before:]]
    write_trace(target, trace)
    jobs = f"{len(trace):,} {'job' if len(trace) == 1 else 'jobs'}"
    kept = "" if lost else trace.extensions
    said = f"{target}: {jobs}" + (f", {kept}" if kept else "")
    say(said + (f"; dropped: {lost}" if lost else ""))
    for note in notes:
        say(note)
