"""``headway profile`` and ``headway size``: the controlled runs of a pipeline, and a job's copies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import printed_json
from headway.cli.common import console, examples, messages, say
from headway.cli.numbers import FiniteRange
from headway.errors import UserError

if TYPE_CHECKING:
    from headway_plugins.pipelines.pipeline import Parameters, Pipeline
    from headway_plugins.pipelines.profiles import Store
    from headway_plugins.pipelines.strategies import Rules, Sized

#: Combinations that are listed unless ``--all`` is given.
_LISTED = 20

pipeline_argument = click.argument("pipeline_path", metavar="PIPELINE", type=click.Path(path_type=Path))
store_option = click.option(
    "--store", "store_path", type=click.Path(path_type=Path), default=Path("profiles.json"),
    show_default=True, help="File with the profiles that controlled runs have measured.",
)  # fmt: skip


@click.command(
    "profile", epilog=examples("headway profile id3.yaml", "headway profile id3.yaml --run --most 10")
)
@pipeline_argument
@store_option
@click.option(
    "--run",
    "carry_out",
    is_flag=True,
    help="Carry out the missing runs on this machine, one after the other.",
)
@click.option("--most", type=click.IntRange(min=1), help="Most runs to carry out.")
@click.option("--all", "every", is_flag=True, help=f"List all missing runs, not only {_LISTED}.")
@printed_json
def profile(pipeline_path: Path, store_path: Path, carry_out: bool, most: int | None, every: bool) -> None:
    """Plan the controlled runs of a pipeline: one for each combination of its parameters, with one copy of
    each filter; tell which are missing, and carry them out."""
    from headway.report.quantities import duration
    from headway_plugins.pipelines.pipeline import read_pipeline, said
    from headway_plugins.pipelines.profiles import Store
    from headway_plugins.pipelines.runs import controlled_run

    pipeline = read_pipeline(pipeline_path)
    store = Store(store_path, pipeline)
    missing = store.missing()
    planned = len(pipeline.combinations())
    say(f"{pipeline.program}: {planned} controlled {_runs(planned)}, {len(missing)} of them missing.")
    walls = [one.wall for one in store.profiles]
    if walls and missing:
        mean = sum(walls) / len(walls)
        say(f"{len(walls)} took {duration(mean)} on average: the missing ones need about "
            f"{duration(mean * len(missing))}, one after the other.")  # fmt: skip
    if not carry_out:
        for parameters in missing if every else missing[:_LISTED]:
            say(f"missing: {said(parameters)}")
        if len(missing) > _LISTED and not every:
            say(f"... and {len(missing) - _LISTED} more (--all).")
        return
    if missing:
        # Before anything is run.
        pipeline.called(missing[0])
    for parameters in missing[:most]:
        found = controlled_run(pipeline, parameters, len(pipeline.filters))
        store.add(found)
        say(f"measured: {said(parameters)}: {duration(found.wall)}")


@click.command("size", epilog=examples("headway size id3.yaml -p minimum_node_size=0.5 --processors 8"))
@pipeline_argument
@store_option
@click.option("-p", "--parameter", "settings", multiple=True, metavar="NAME=VALUE",
              help="A parameter of the job. Repeatable; every parameter of the pipeline is "
                   "needed.")  # fmt: skip
@click.option("--processors", type=click.IntRange(1, 1_000_000),
              help="Number of processors. Default, inside a job: the processors of the job.")  # fmt: skip
@click.option("--strategy", type=click.Choice(["AS", "BS", "NOAS", "OAS", "OBS"]), default="OAS",
              show_default=True,
              help="NOAS is AnthillSched; OAS lets short jobs run with one copy of each filter; BS gives "
                   "all filters the same number of copies, OBS is BS with the same exception; AS puts every "
                   "filter on every processor.")  # fmt: skip
@click.option("--short", type=FiniteRange(min=0), default=5.0, show_default=True,
              help="A job is short if its controlled run took less than this, in seconds.")  # fmt: skip
@click.option("--mode", type=click.Choice(["loop", "final"]), default="loop", show_default=True,
              help="Round the numbers of copies in every iteration, or once at the end.")  # fmt: skip
@click.option("--iterations", type=click.IntRange(min=1), default=10, show_default=True, help="At most.")
@click.option("--weights", type=(FiniteRange(min=0), FiniteRange(min=0)), default=(0.5, 0.5),
              show_default=True, help="Weights of the share of bytes and of the share of time.")  # fmt: skip
@click.option("--cap", is_flag=True,
              help="Limit the copies of a filter to the number of nodes with its data "
                   "(data_nodes).")  # fmt: skip
@click.option("--learn", is_flag=True,
              help="With --run: if the combination has no profile yet, make this run its controlled "
                   "run.")  # fmt: skip
@click.option("--run", "carry_out", is_flag=True,
              help="Run the pipeline's command with the copies in HEADWAY_COPIES.")  # fmt: skip
@printed_json
def size(
    pipeline_path: Path,
    store_path: Path,
    settings: tuple[str, ...],
    processors: int | None,
    strategy: str,
    short: float,
    mode: str,
    iterations: int,
    weights: tuple[float, float],
    cap: bool,
    learn: bool,
    carry_out: bool,
) -> None:
    """Tell how many copies each filter of a pipeline gets, from what controlled runs have measured; with
    --run, in a job, run it so."""
    from headway.inputs.settings import parsed_settings
    from headway_plugins.pipelines.pipeline import read_pipeline
    from headway_plugins.pipelines.profiles import Store
    from headway_plugins.pipelines.runs import become, controlled_run, environment
    from headway_plugins.pipelines.strategies import Rules
    from headway_plugins.pipelines.strategies import size as sized

    if learn and not carry_out:
        raise UserError("--learn: expected --run beside it")
    if not sum(weights) > 0:
        raise UserError("--weights: expected a weight above 0")
    pipeline = read_pipeline(pipeline_path)
    parameters = pipeline.checked(parsed_settings(settings, "--parameter"), "--parameter")
    store = Store(store_path, pipeline)
    count = processors if processors is not None else _given()
    argv = pipeline.called(parameters) if carry_out else []
    if learn and store.find(parameters) is None:
        say(
            "This combination has no profile: this is its controlled run, one copy of each filter.",
            messages(),
        )
        store.add(controlled_run(pipeline, parameters, count))
        return
    rules = Rules(strategy, short, mode, iterations, weights, cap)  # type: ignore[arg-type]
    found = sized(pipeline, parameters, count, store.profiles, rules, store_path)
    if carry_out:
        say(f"copies: {_named(pipeline, found.copies)}. {found.reason}", messages())
        become(argv, environment(pipeline, found.copies, count))
    show(found, pipeline, parameters, count, store, rules)


def show(
    found: Sized, pipeline: Pipeline, parameters: Parameters, processors: int, store: Store, rules: Rules
) -> None:
    """Print the copies, what they follow from, and the words for the environment."""
    from rich.table import Table

    from headway_plugins.pipelines.pipeline import said
    from headway_plugins.pipelines.runs import COPIES
    from headway_plugins.pipelines.sizing import shares

    say(f"{pipeline.program}, {said(parameters)}, on {processors} processors. {found.reason}.")
    table = Table("filter", "copies", "share of bytes", "share of time", box=None, pad_edge=False)
    exact = store.find(parameters)
    for number, (name, copies) in enumerate(zip(pipeline.names, found.copies, strict=True)):
        of = ["", ""]
        if exact is not None:
            nothing = [0.0] * len(exact.seconds)
            of = [
                f"{shares(exact.received, nothing)[number]:.1%}",
                f"{shares(nothing, exact.seconds)[number]:.1%}",
            ]
        table.add_row(name, str(copies), *of)
    console().print(table)
    together = sum(found.copies)
    if together > processors:
        say(f"{together} copies share {processors} processors.")
    say(f"{COPIES}={','.join(map(str, found.copies))}")


def _named(pipeline: Pipeline, copies: Sequence[int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in zip(pipeline.names, copies, strict=True))


def _given() -> int:
    """The processors of the job in which this runs."""
    from headway_plugins.pipelines.runs import allocation

    found = allocation(os.environ)
    if found is None:
        raise UserError("--processors: expected a number: this is no job of a batch system")
    return sum(count for _, count in found.placement)


def _runs(count: int) -> str:
    return "run" if count == 1 else "runs"
