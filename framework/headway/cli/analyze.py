"""``headway analyze``: what a workload looks like."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import figured_json
from headway.cli.asking import Duration
from headway.cli.collecting import note
from headway.cli.common import (
    console,
    examples,
    messages,
    plugin_files_option,
    prepare_directory,
    say,
    tell_issues,
)
from headway.cli.rules import show_doubts, single_options
from headway.errors import UserError
from headway.inputs.extras import need_report

if TYPE_CHECKING:
    from headway.experiment.single import Trusted
    from headway.workload import Trace
    from headway.workload.analysis import Study


class _Bounds(click.ParamType):
    """Upper bounds, separated by commas, each as the ``one`` type says."""

    name = "list"

    def __init__(self, one: click.ParamType) -> None:
        self._one = one

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        found = tuple(self._one.convert(part.strip(), param, ctx) for part in value.split(","))
        if any(low >= high for low, high in pairwise(found)):
            self.fail(f"expected upper bounds that rise, found {value!r}", param, ctx)
        return found


@click.command(
    "analyze",
    epilog=examples(
        "headway analyze log.swf.gz                         classes, arrivals, load, sizes, estimates",
        "headway analyze log.swf.gz --out study             the same as CSV, JSON and a page with plots",
        "headway analyze log.swf --narrow 64 --short 4h --widths 64,512,4096",
        "headway analyze --workload ccr --set load=1.1      what a workload model draws",
    ),
)
@click.argument("trace_path", metavar="[TRACE]", type=click.Path(path_type=Path), required=False)
@click.option("--workload", metavar="MODEL",
              help="A workload model instead of a trace; `headway generate` lists the models.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="An option of the model. Repeatable.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True,
              help="Seed of what the model draws.")  # fmt: skip
@plugin_files_option("A Python file with plugins that have workload models. Repeatable.")
@click.option("--processors", type=click.IntRange(min=1), metavar="N",
              help="Processors of the machine. Default: the size in the trace's header.")  # fmt: skip
@click.option("--narrow", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
              help="Most processors of a narrow job.")  # fmt: skip
@click.option("--short", type=Duration(), default=3600.0, metavar="TIME",
              help="Longest runtime of a short job: 30m, 1h30m, 45 (s). [default: 1h]")  # fmt: skip
@click.option("--lengths", type=_Bounds(Duration()), metavar="TIMES",
              help="Upper bounds of the lengths in the table of lengths by processors.  "
              "[default: 1m,10m,20m,1h,4h,8h]")  # fmt: skip
@click.option("--widths", type=_Bounds(click.IntRange(min=1)), metavar="NUMBERS",
              help="Upper bounds of the processors in that table. [default: 1,32]")  # fmt: skip
@click.option("--time-zone", "zone", metavar="NAME",
              help="The machine's time zone, such as Europe/Stockholm. Default: the zone in the "
                   "header.")  # fmt: skip
@click.option("--queue", metavar="NAME",
              help="Analyze only the jobs of this queue or partition, by name or number.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="DIRECTORY",
              help="Write a CSV file for each table, analysis.json and analysis.html.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Stop at the first broken line of the trace.")
@single_options
@click.option("-v", "--verbose", is_flag=True, help="Print each line that was skipped or corrected.")
@figured_json("headway.cli.figured:StudyReport")
def command(
    trace_path: Path | None,
    workload: str | None,
    settings: tuple[str, ...],
    seed: int,
    plugin_files: tuple[Path, ...],
    processors: int | None,
    narrow: int,
    short: float,
    lengths: tuple[float, ...] | None,
    widths: tuple[int, ...] | None,
    zone: str | None,
    queue: str | None,
    out: Path | None,
    strict: bool,
    accept: tuple[str, ...],
    strict_method: bool,
    verbose: bool,
) -> None:
    """Tell what a workload looks like: a TRACE in any format that headway reads (docs/workloads.md), such
    as a batch system's accounting, or a model's.

    Short and long, narrow and wide jobs, lengths by processors, arrivals by hour, weekday and day, offered
    load, sizes, and how good users' estimates are. At the end stands which rules of the evaluation of
    schedulers (docs/trust.md) an experiment with this workload would break.
    """
    from headway.experiment.answers import accepted, refuse_without_campaign
    from headway.experiment.facts import facts_of_trace
    from headway.experiment.single import trusted_workload
    from headway.model.classes import ClassBounds
    from headway.workload import filters, read_trace
    from headway.workload.analysis import LENGTH_BOUNDS, WIDTH_BOUNDS, study

    if (trace_path is None) == (workload is None):
        raise click.UsageError("expected either TRACE or --workload MODEL")
    if workload is None and settings:
        raise click.UsageError("--set goes with --workload")
    if out is not None:
        need_report("--out")
        prepare_directory(out)
    if workload is not None:
        trace = _drawn(workload, settings, seed, plugin_files, processors)
    else:
        assert trace_path is not None
        trace = read_trace(trace_path, strict=strict)
        tell_issues(trace, verbose)
    trace = trace if queue is None else filters.queue(trace, queue)
    found = study(
        trace,
        processors=processors,
        bounds=ClassBounds(narrow, short),
        length_bounds=lengths or LENGTH_BOUNDS,
        width_bounds=widths or WIDTH_BOUNDS,
        zone=zone,
    )
    size = processors or trace.max_processors
    trusted = trusted_workload(facts_of_trace(trace, size, recorded=workload is None), accepted(accept))
    _tell(found, trusted, out)
    if strict_method:
        refuse_without_campaign(trusted.judged, trace.path)


def _tell(found: Study, trusted: Trusted, out: Path | None) -> None:
    """Print the study and which rules it breaks; write the files if a directory was given."""
    from headway.report.study import as_json, render_study, write_study

    written: list[Path] = []
    try:
        # Before anything is printed: a reader that goes away early (| head) must not cost the files.
        if out is not None:
            written = write_study(found, out, {"method": trusted.data()})
    finally:
        note(study=as_json(found), method=trusted.data())
        console().print(render_study(found))
        show_doubts(console(), trusted.judged)
    if out is not None:
        say(f"\nresults: {', '.join(path.name for path in written)} in {out}")


def _drawn(
    model: str, settings: tuple[str, ...], seed: int, plugin_files: tuple[Path, ...], processors: int | None
) -> Trace:
    """A model's workload as a trace."""
    from headway.dry_run.models import drawn
    from headway.plugins import Catalogue
    from headway.workload import Trace, to_records

    defaults = {} if processors is None else {"processors": processors}
    workload = drawn(Catalogue(plugin_files), model, settings, seed, defaults)
    if not workload.jobs:
        raise UserError(f"--workload {model}: the model drew no jobs")
    for remark in workload.notes:
        say(remark, messages())
    fields = {"MaxProcs": str(workload.processors)} if workload.processors else {}
    path = " ".join([model, *settings, f"seed={seed}"])
    return Trace(path, fields=fields, records=to_records(workload.jobs))
