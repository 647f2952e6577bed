"""Tables and figures of the reproduction of the Wave Scheduler's paper, both clocks side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from headway.experiment.campaign import Row, select
from headway.experiment.plots import line_plot
from headway.experiment.statistics import interval
from headway.report.atomic import writing
from headway_plugins.reproductions.wave_runs import (
    ASKED,
    BINS,
    FAILURE,
    MIGRATIONS,
    PLAIN,
    RING,
    SHOWN,
    SLOWDOWN,
    STRIP,
    SUBMITTED,
    VARIATIONS,
    WAVES,
    WORK,
    label,
    scenario,
    variants,
)
from headway_plugins.wave.options import Clock
from headway_plugins.wave.policies import POLICIES
from headway_plugins.wave.zones import NIGHT, ZONES, Target

CLOCKS = (
    "The same policies by two clocks. *One clock* (`clock: shared`): all hosts of the policies without "
    "wavezones have their night at the same time, as if they were in one time zone; the published curves "
    "come out so alone. *Zones* (`clock: zones`): every host lives by the clock of its time zone, for every "
    "policy. Only this comparison is fair: by one clock the wave policies have hosts with different nights "
    "*and* know them, in zones all policies have such hosts. So the part of a published gain that is gone in "
    "zones comes from the hosts' different nights, and any policy that may move has it.\n"
)
CELL = "Cells: failed jobs, %/slowdown/migrations; a dash: over 95 % fail, so means rest on few jobs.\n"


def mean(rows: Sequence[Row], metric: str, at: str, name: str, x: float) -> float:
    """The mean over the seeds in which enough jobs are done; NaN if there are none."""
    found = [value for value in select(rows, metric, scenario=at, variant=name, x=x) if value == value]
    return interval(found).mean


def cell(rows: Sequence[Row], at: str, name: str, x: float) -> str:
    """Failure, slowdown and migrations."""
    failure = mean(rows, FAILURE, at, name, x)
    if failure > 95:
        return f"{failure:.1f}/-/-"
    slow, moves = (mean(rows, metric, at, name, x) for metric in (SLOWDOWN, MIGRATIONS))
    return f"{failure:.1f}/{slow:.2f}/{moves:.1f}"


def tables(
    by_free: Sequence[Row], by_clients: Sequence[Row], rules: Sequence[Row], other: Sequence[Row]
) -> str:
    """The page of tables, as Markdown."""
    parts = ["# Wave Scheduler: failures, slowdowns, migrations\n", CLOCKS, CELL]
    for title, rows, fixed, letter in (
        ("Free time, c = 20 % (Figures 5, 7, 9, 10, 11, 13)", by_free, "c", "f"),
        ("Clients, f = 15 % (Figures 8, 12)", by_clients, "f", "c"),
    ):
        xs = sorted({row.x for row in rows})
        parts.append(f"## {title}\n")
        parts.append(_table(
            ["policy", "clock", *(f"{letter} = {x:g} %" for x in xs)],
            [[name, clock, *(cell(rows, scenario(fixed, clock), name, x) for x in xs)]
             for clock in (Clock.SHARED, Clock.ZONES)
             for name in (label(*one) for one in variants(clock))],
        ))  # fmt: skip
    xs = sorted({row.x for row in rules})
    parts.append("## Rules for the target wavezone, c = 20 %, ring\n")
    parts.append(_table(
        ["policy", "rule", *(f"f = {x:g} %" for x in xs)],
        [[name, rule, *(cell(rules, "rules", f"{name}, {rule}", x) for x in xs)]
         for name in WAVES for rule in Target],
    ))  # fmt: skip
    parts.append("## Variations, f = 15 %, c = 20 %, zones\n")
    parts.append("The slowdown from submission counts the time before the first execution, too.\n")
    parts.append(_table(
        ["variation", "policy", "failed/slowdown/migrations", "slowdown from submission",
         "work lost, h a job", "hosts asked"],
        [[what, name, cell(other, what, name, 15),
          *(f"{mean(other, metric, what, name, 15):.2f}" for metric in (SUBMITTED, WORK, ASKED))]
         for what in VARIATIONS for name in POLICIES],
    ))  # fmt: skip
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def write_tables(path: Path, text: str) -> None:
    """The page, whole or as before."""
    with writing(path) as stream:
        stream.write(text)


# ---------------------------------------------------------------------- figures


def side_by_side(rows: Sequence[Row], fixed: str, metric: str) -> list[Row]:
    """Ring alone: a metric of one clock and of the zones as two; wave policies are the same in both."""
    names = {Clock.SHARED: f"{metric}, one clock", Clock.ZONES: f"{metric}, zones"}
    found = []
    for name in (*PLAIN, *WAVES):
        for row in rows:
            if row.scenario != scenario(fixed, Clock.ZONES) or row.variant != label(name, RING):
                continue
            zones = row.values[metric]
            shared = zones if name in WAVES else _value(rows, metric, scenario(fixed, Clock.SHARED), row)
            values = {names[Clock.SHARED]: shared, names[Clock.ZONES]: zones}
            found.append(Row("", row.x, name, row.seed, values))
    return found


def _value(rows: Sequence[Row], metric: str, at: str, like: Row) -> float:
    key = at, like.x, like.variant, like.seed
    return next(row.values[metric] for row in rows if row.key == key)


def plots(by_free: Sequence[Row], by_clients: Sequence[Row], out: Path) -> None:
    """Figures 5, 7 to 13."""
    free, share = "free time by day, %", "clients, %"
    shared = [row for row in by_free if row.scenario == scenario("c", Clock.SHARED)]
    for number, metric in ((5, SLOWDOWN), (7, FAILURE), (9, MIGRATIONS)):
        line_plot(_finite(shared, metric), [metric], out / f"figure-{number}.png", x_label=free,
                  title=f"Figure {number}: one clock, c = 20 %")  # fmt: skip
    crowded = [row for row in by_clients if row.scenario == scenario("f", Clock.SHARED)]
    line_plot(crowded, [FAILURE], out / "figure-8.png", x_label=share, title="Figure 8: one clock, f = 15 %")
    for number, metric, rows, fixed in (
        (10, SLOWDOWN, by_free, "c"), (11, FAILURE, by_free, "c"), (12, FAILURE, by_clients, "f"),
        (13, MIGRATIONS, by_free, "c"),
    ):  # fmt: skip
        both = side_by_side(rows, fixed, metric)
        names = list(both[0].values)
        line_plot([row for row in both if all(value == value for value in row.values.values())], names,
                  out / f"figure-{number}.png", x_label=free if fixed == "c" else share,
                  title=f"Figure {number}: {'c = 20 %' if fixed == 'c' else 'f = 15 %'}, ring")  # fmt: skip


def _finite(rows: Sequence[Row], metric: str) -> list[Row]:
    return [row for row in rows if row.values[metric] == row.values[metric]]


def histogram_plot(rows: Sequence[Row], path: Path) -> None:
    """Figure 6: shares of the jobs by slowdown; a panel for each clock."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("Figure 6: slowdowns of jobs that are done, f = 15 %, c = 20 %, ring", fontsize=10)
    for at, clock in enumerate((Clock.SHARED, Clock.ZONES)):
        axes = figure.add_subplot(1, 2, at + 1)
        names = [name for name, search in variants(clock) if search is RING]
        width = (BINS[1] - BINS[0]) / (len(names) + 1)
        for number, name in enumerate(names):
            at_clock = scenario("f, c", clock)
            shares = [mean(rows, bin_, at_clock, label(name, RING), 15) for bin_ in rows[0].values]
            axes.bar([low + number * width for low in BINS[:-1]], shares, width, align="edge", label=name)
        axes.set_title("one clock" if clock is Clock.SHARED else "zones", fontsize=9)
        axes.set_xlabel("slowdown", fontsize=9)
        axes.set_ylabel("jobs, %", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3, axis="y")
        axes.legend(fontsize=7)
    figure.savefig(path, dpi=110)


def strip_plot(rows: Sequence[Row], path: Path) -> None:
    """The zones over time: where it is night, and where jobs run."""
    names: dict[str, list[Row]] = {}
    for row in rows:
        names.setdefault(row.variant, []).append(row)
    figure = Figure(figsize=(11, 3.6 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    night = np.array(
        [[(int(at / 2) - zone) % ZONES in NIGHT for at in range(STRIP)] for zone in range(ZONES)], float
    )
    for at, (name, jobs) in enumerate(names.items()):
        axes = figure.add_subplot(len(names), 1, at + 1)
        axes.imshow(night, origin="lower", aspect="auto", cmap="Greys", alpha=0.35,
                    extent=(0, STRIP / 2, -0.5, ZONES - 0.5))  # fmt: skip
        for row in jobs:
            zones = np.array(list(row.values.values()))
            # A little beside each other, so that jobs in one zone are seen.
            axes.plot(np.arange(STRIP) / 2 + 0.25, zones + (row.seed / SHOWN - 0.5) * 0.8, linewidth=1.4)
        axes.set_title(f"{name}: {len(jobs)} jobs; grey is night", fontsize=9)
        axes.set_ylabel("zone, hours west", fontsize=9)
        axes.set_yticks(range(0, ZONES, 4))
        axes.tick_params(labelsize=8)
    axes.set_xlabel("hours GMT", fontsize=9)
    figure.savefig(path, dpi=110)
