"""``headway tune``: the best value of a policy's option for a workload, by emulation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import figured_json
from headway.cli.collecting import note
from headway.cli.common import console, messages, policy_file_option, tell_issues
from headway.errors import UserError
from headway.inputs.extras import need_report

if TYPE_CHECKING:
    from rich.console import Console

    from headway.experiment import Campaign, Scenario
    from headway.experiment.campaign import Row
    from headway.experiment.rulebook import Judged

METRICS = ("mean wait", "slowdown of means", "utilisation")

#: Values that are tried: each is a run of the whole workload for each seed.
_MOST_VALUES = 1000

#: In an open system the utilisation is the offered load, whatever the policy does (rule 22,
#: docs/rules.md).
TUNED = METRICS[:2]


@click.command("tune")
@click.argument("policy")
@click.option("--trace", "trace_path", type=click.Path(path_type=Path), help="Tune for this trace.")
@click.option("--workload", help="Tune for this workload model.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option of the model. Repeatable."
)
@click.option(
    "--processors",
    type=click.IntRange(min=1),
    help="Processors of the machine. Default: the size in the trace's header, else 320.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Use only the first N accepted jobs of the trace.")
@click.option("--option", help="Option of the policy. Default: the option that the policy names as tunable.")
@click.option(
    "--values", help="Values of the option, such as 1..20 or 0,3,7. Default: the policy's own range."
)
@click.option(
    "--metric", type=click.Choice(TUNED), default=TUNED[0], show_default=True, help="The metric to optimise."
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=10, show_default=True, help="Number of seeds of the model."
)
@click.option(
    "--against", multiple=True, default=("easy",), show_default=True, help="Policies to compare with."
)
@policy_file_option
@click.option("--workers", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Processes.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory for rows.csv and the plot.")
@figured_json("headway.cli.figured:TuningReport")
def command(
    policy: str,
    trace_path: Path | None,
    workload: str | None,
    settings: tuple[str, ...],
    processors: int | None,
    limit: int | None,
    option: str | None,
    values: str | None,
    metric: str,
    seeds: int,
    against: tuple[str, ...],
    plugin_files: tuple[Path, ...],
    workers: int,
    out: Path | None,
) -> None:
    """Find the best value of an option of POLICY, such as the maximum skip count of delayed-los.

    Example: headway tune delayed-los --workload lublin-cwf --set load=0.9 --set p_small=0.5
    """
    from headway.cli.screen import new_progress

    need_report("headway tune")
    from headway.cli.rules import show_rules
    from headway.experiment import Campaign, Variant
    from headway.experiment.execution import run_campaign
    from headway.experiment.method import Method, Trim
    from headway.experiment.rulebook import evidence_of, excluded, judge
    from headway.experiment.tables import points_data
    from headway.plugins import Catalogue, PluginConfig

    if (trace_path is None) == (workload is None):
        raise click.UsageError("expected either --trace FILE or --workload MODEL")
    files = tuple(str(file.resolve()) for file in plugin_files)
    catalogue = Catalogue(files)
    kind: Any = catalogue.get(policy, "POLICY")
    name, choices = _choices(kind, policy, option, values)
    if trace_path is not None:
        scenario = _of_trace(trace_path, processors, limit)
    else:
        scenario = _of_model(str(workload), processors, settings)
    variants = [Variant(f"{name}={value}", (PluginConfig(policy, {name: value}),)) for value in choices]
    variants += [Variant(other, (PluginConfig(other),)) for other in against]
    both_ends = Method(warmup=Trim(automatic=True), cooldown=Trim(automatic=True))
    plan = Campaign(tuple(variants), (scenario,), tuple(range(1, seeds + 1)), both_ends, files)
    with new_progress() as progress:
        task = progress.add_task("emulations", total=plan.size())
        rows = run_campaign(plan, workers=workers, on_done=lambda n: progress.advance(task, n))
    evidence = evidence_of(plan, catalogue, rows=rows)
    found = judge(evidence)
    note(option=name, points=points_data(evidence, excluded(found)))
    screen = console()
    _show_best(screen, plan, rows, found, policy=policy, name=name, choices=choices, metric=metric)
    show_rules(screen, found)
    if out is not None:
        _write(out, rows, name, policy, scenario.label, against)


def _of_trace(path: Path, processors: int | None, limit: int | None) -> Scenario:
    """A trace on a machine of this size, or of the size that its header names."""
    from headway.experiment import Scenario
    from headway.workload import read_trace

    trace = read_trace(path)
    tell_issues(trace)
    size = processors or trace.max_processors
    if size is None:
        raise UserError(f"{path}: the header names no machine size; give --processors N")
    return Scenario(path.name, 0.0, size, trace=str(path), limit=limit)


def _of_model(model: str, processors: int | None, settings: Sequence[str]) -> Scenario:
    from headway.experiment import Scenario
    from headway.inputs.settings import parsed_settings

    size = processors or 320
    about = {"processors": size, **parsed_settings(settings)}
    return Scenario(model, 0.0, size, model=model, options=about)


def _show_best(
    screen: Console,
    plan: Campaign,
    rows: Sequence[Row],
    found: Sequence[Judged],
    *,
    policy: str,
    name: str,
    choices: Sequence[int],
    metric: str,
) -> None:
    """A line a value and a policy that it is compared with, and the value with the least ``metric``. Values
    that the rules leave out are the best only if no others are left."""
    from rich.table import Table

    from headway.experiment import interval
    from headway.experiment.campaign import select
    from headway.experiment.rulebook import excluded
    from headway.experiment.tables import SECONDS, in_time

    labels = [variant.label for variant in plan.variants]
    means = {label: {m: interval(select(rows, m, variant=label)) for m in METRICS} for label in labels}
    left_out = {variant for _, _, variant in excluded(found)}
    judged = [value for value in choices if f"{name}={value}" not in left_out]
    best = min(judged or choices, key=lambda value: means[f"{name}={value}"][metric].mean)
    note(best=best)
    table = Table(policy, *METRICS, box=None, pad_edge=False)
    for label in labels:
        mark = "  ← best" if label == f"{name}={best}" else " ×" if label in left_out else ""
        cells = (in_time(means[label][m]) if m in SECONDS else str(means[label][m]) for m in METRICS)
        table.add_row(label + mark, *cells)
    screen.print(table)
    screen.print(f"best for {metric}: {name}: {best}" + ("; × left out" if left_out else ""))
    if not judged:
        screen.print("the rules below leave all values out, so this result says little")


def _write(
    out: Path, rows: Sequence[Row], name: str, policy: str, workload: str, against: Sequence[str]
) -> None:
    """The rows, and the metrics over the values as a plot."""
    from headway.experiment.campaign import write_rows
    from headway.experiment.plots import line_plot

    out.mkdir(parents=True, exist_ok=True)
    write_rows(out / "rows.csv", rows)
    line_plot(
        [_along(row, name, policy) for row in rows],
        METRICS,
        out / "tuning.png",
        x_label=name,
        title=f"{policy}, {workload}",
        reference=against,
    )
    messages().print(f"written: {out}", markup=False)


def _along(row: Any, name: str, policy: str) -> Any:
    """The row with the tuned value as its x, for the plot."""
    from dataclasses import replace

    label, _, value = row.variant.partition("=")
    return replace(row, variant=policy, x=float(value)) if label == name and value else row


def _choices(kind: Any, policy: str, option: str | None, values: str | None) -> tuple[str, list[int]]:
    from headway.plugins import options_model, traits_of

    tunable = traits_of(kind).study.tunable
    if not tunable[0] and (option is None or values is None):
        raise UserError(f"{policy!r} names no option to tune; give --option NAME --values 1..20")
    name = option or tunable[0]
    model = options_model(kind)
    known = list(model.model_fields) if model is not None else []
    if name not in known:
        raise UserError(f"--option: {policy!r} has no option {name!r}; it has: {', '.join(known) or 'none'}")
    if values is None:
        return name, list(tunable[1])
    return name, _listed(values)


def _listed(values: str) -> list[int]:
    """The values that ``--values`` names, such as 1..20 or 0,3,7; each once."""
    first, dots, last = values.partition("..")
    try:
        found = range(int(first), int(last) + 1) if dots else [int(value) for value in values.split(",")]
    except ValueError:
        raise UserError(f"--values: expected values such as 1..20 or 0,3,7, found {values[:80]!r}") from None
    if not 0 < len(found[: _MOST_VALUES + 1]) <= _MOST_VALUES:
        raise UserError(
            f"--values: expected 1 to {_MOST_VALUES} values in rising order, found {values[:80]!r}"
        )
    return list(dict.fromkeys(found))
