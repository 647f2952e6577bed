"""The checkable statements of the paper on pitfalls, on real traces.

E. Frachtenberg, D. G. Feitelson: Pitfalls in Parallel Job Scheduling Evaluation. JSSPP 2005. The paper has no
experiment of its own: it says what goes wrong. Each statement that a number can show is measured here with
the numbers that the rule book (:mod:`headway.experiment.rulebook`) judges by.

Whole logs (``logs``) run under EASY on machines of their own size; ``windows`` parts of 5,000 jobs of each,
one behind the other, under EASY and conservative backfilling. The effects of load and of estimates are
shown on the part of CTC-SP2 that the paper on unfairness metrics takes, on 430 processors: its load of 0.80
is reached in four ways. Runtimes are cut to the estimates throughout. A log is one sample: intervals, where
there are any, are over 30 batches of its jobs, and are only told where neighbouring batches do not depend
on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from headway.errors import UserError
from headway.experiment.campaign import Campaign, Row, Scenario, Variant, drawn, select, workload_facts
from headway.experiment.method import Method, Trim
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.rulebook.definitions import LEVELS
from headway.experiment.statistics import BATCHES
from headway.plugins import Catalogue, PluginConfig
from headway.report.quantities import duration
from headway.workload import Column, Trace, offered_load, read_trace, sizes, write_swf
from headway.workload.trace import WIDTH

EASY, FCFS, CONSERVATIVE = (
    Variant(label, (PluginConfig(name),))
    for label, name in (("EASY", "easy"), ("FCFS", "fcfs"), ("conservative", "conservative"))
)
#: Jobs of a window.
WINDOW = 5000
#: Of neighbouring batches: the correlation up to which they may pass for independent.
INDEPENDENT = 2 / BATCHES**0.5
#: The load that the part of CTC-SP2 is brought to.
LOAD = 0.80
PART_PROCESSORS = 430


@dataclass(frozen=True)
class Log:
    """A log: how its file's name begins, and its machine's processors."""

    name: str
    file: str
    processors: int


LOGS = {
    log.name: log
    for log in (
        Log("KTH", "KTH-SP2-1996-2.1-cln", 100),
        Log("CTC", "CTC-SP2-1996-3.1-cln", 338),
        Log("SP2", "SDSC-SP2-1998-4.2-cln", 128),
        Log("Blue", "SDSC-BLUE-2000-4.1-cln", 1152),
        Log("HPC2N", "HPC2N-2002-2.1-cln", 240),
    )
}

#: Workload models whose sizes and bursts are looked at, with options for about 5,000 jobs on 128 processors.
MODELS: Mapping[str, Mapping[str, object]] = {
    "month": {"processors": 128, "days": 30},
    "lublin": {"processors": 128, "jobs": 5000},
    "lublin-cwf": {"processors": 320, "jobs": 5000},
    "ccr": {"processors": 2090},
}


class PitfallsReproduction:
    """The statements of Frachtenberg and Feitelson 2005."""

    title = "Pitfalls in parallel job scheduling evaluation (Frachtenberg, Feitelson 2005)"
    # The paper has no experiment.
    published: Published | None = None

    def __init__(self, logs: str = "KTH,CTC,SP2,Blue,HPC2N", windows: int = 5) -> None:
        """``logs``: which run as a whole and in windows; ``windows``: how many of each, at least 1."""
        wanted = [name.strip() for name in str(logs).split(",")]
        for name in wanted:
            if name not in LOGS:
                raise UserError(f"--set logs: expected some of {', '.join(LOGS)}, found {name!r}")
        if isinstance(windows, bool) or not isinstance(windows, int) or windows < 1:
            raise UserError(f"--set windows: expected a whole number of at least 1, found {windows!r}")
        self._logs = [LOGS[name] for name in wanted]
        self._windows = windows

    def run(self, context: Context) -> list[Claim]:
        claims = [_length_of_saturated_runs(context)]
        found = {name: _file(context.traces, log) for name, log in LOGS.items()}
        if (path := found["CTC"]) is not None:
            claims += _load_and_estimates(context, read_trace(path))
        else:
            claims.append(
                Claim(
                    "Pitfalls 15, 18, 29",
                    "load and estimates",
                    "needs CTC-SP2-1996 (--traces DIR)",
                    "not run",
                )
            )
        there = {log: path for log in self._logs if (path := found[log.name]) is not None}
        missing = [log.name for log in self._logs if log not in there]
        if missing:
            why = f"needs the traces {', '.join(missing)} (--traces DIR)"
            claims.append(Claim("Pitfalls 3, 22, 23, 27, 31", "whole logs and windows", why, "not run"))
        if there:
            claims += self._whole(context, there)
            claims.append(self._alike(context, there))
            claims.append(_feedback(context, there))
        claims += _looks(context, there)
        return claims

    def _whole(self, context: Context, there: Mapping[Log, Path]) -> list[Claim]:
        scenarios = []
        for log, path in there.items():
            file = context.out / f"{log.name}.swf"
            trace = prepared(read_trace(path))
            write_swf(file, trace.header, trace.records)
            scenarios.append(Scenario(log.name, 1.0, log.processors, trace=str(file)))
        rows = context.run("whole-logs", Campaign((EASY,), tuple(scenarios), context.seeds))
        return claims_of_whole_logs(rows)

    def _alike(self, context: Context, there: Mapping[Log, Path]) -> Claim:
        scenarios = []
        for log, path in there.items():
            trace = prepared(read_trace(path))
            for at in range(min(self._windows, len(trace) // WINDOW)):
                file = context.out / f"{log.name}-{at + 1}.swf"
                part = trace.part(slice(at * WINDOW, (at + 1) * WINDOW))
                write_swf(file, part.header, part.records)
                scenarios.append(Scenario(log.name, at + 1.0, log.processors, trace=str(file)))
        rows = context.run("windows", Campaign((EASY, CONSERVATIVE), tuple(scenarios), context.seeds))
        return claim_of_windows(rows)


def _file(traces: Path | None, log: Log) -> Path | None:
    return next(iter(sorted(traces.glob(f"{log.file}*"))), None) if traces else None


def prepared(trace: Trace) -> Trace:
    """The jobs that ran, their runtimes cut to their estimates."""
    records = trace.records
    part = trace.part((records[:, Column.RUNTIME] > 0) & (sizes(records) > 0))
    cut = part.records.copy()
    given = cut[:, Column.ESTIMATE] > 0
    cut[given, Column.RUNTIME] = np.minimum(cut[given, Column.RUNTIME], cut[given, Column.ESTIMATE])
    return replace(part, records=cut)


def _length_of_saturated_runs(context: Context) -> Claim:
    """Pitfall 25: one processor, a job of 11 s every 10 s."""
    scenarios = []
    for jobs in (100, 200):
        records = np.full((jobs, WIDTH), -1.0)
        records[:, Column.NUMBER] = np.arange(1, jobs + 1)
        records[:, Column.SUBMIT] = 10.0 * np.arange(jobs)
        records[:, [Column.RUNTIME, Column.ESTIMATE]] = 11.0
        records[:, [Column.REQUESTED, Column.ALLOCATED]] = 1.0
        file = context.out / f"saturated-{jobs}.swf"
        write_swf(file, ["; MaxProcs: 1"], records)
        scenarios.append(Scenario("one processor", float(jobs), 1, trace=str(file)))
    rows = context.run("saturated", Campaign((FCFS,), tuple(scenarios), context.seeds))
    (short,), (long,) = (select(rows, "mean wait", x=float(jobs)) for jobs in (100, 200))
    return Claim(
        "Pitfall 25", "beyond saturation results depend on the length of the run",
        f"offered load 1.1: mean wait {short:g} s of 100 jobs, {long:g} s of 200", _yes(long > 1.5 * short),
    )  # fmt: skip


def part_of(trace: Trace) -> Trace:
    """Records 1001 to 6000 of CTC-SP2, prepared."""
    return prepared(trace.part(slice(1000, 6000)))


def _load_and_estimates(context: Context, trace: Trace) -> list[Claim]:
    """Pitfalls 15, 18, 28 and 29 on a part of CTC-SP2."""
    part = part_of(trace)
    own = offered_load(part, PART_PROCESSORS)
    factor = LOAD / own
    stretched = part.stretched(factor)
    runtime = stretched.records[:, Column.RUNTIME]
    files = {"": part}
    for times in (1, 2, 11):
        records = stretched.records.copy()
        records[:, Column.ESTIMATE] = runtime * times
        files[f"runtime x {times}"] = replace(stretched, records=records)
    paths = {}
    for label, one in files.items():
        paths[label] = context.out / f"CTC-part{label.replace(' ', '-')}.swf"
        write_swf(paths[label], one.header, one.records)
    base = Scenario("runtimes", LOAD, PART_PROCESSORS, trace=str(paths[""]), runtime_factor=factor)
    changed = replace(base, runtime_factor=1.0)
    smaller = round(PART_PROCESSORS * own / LOAD)
    scenarios = [
        base,
        replace(changed, label="times between submissions", target_load=LOAD),
        replace(changed, label="sizes", size_factor=factor),
        replace(changed, label=f"a machine of {smaller}", processors=smaller),
        *(Scenario(label, LOAD, PART_PROCESSORS, trace=str(path)) for label, path in paths.items() if label),
    ]
    rows = context.run("load-and-estimates", Campaign((EASY,), tuple(scenarios), context.seeds))
    automatic = Method(warmup=Trim(automatic=True), cooldown=Trim(automatic=True))
    cut = context.run("warm-up", Campaign((EASY,), (base,), context.seeds, automatic))
    size = float(sizes(part.records).mean())
    return claims_of_load(rows, cut, factor, f"a machine of {smaller}", size)


def claims_of_load(
    rows: Sequence[Row], cut: Sequence[Row], factor: float, smaller: str, size: float
) -> list[Claim]:
    """The claims on load, estimates, the start and the end; ``factor``: on runtimes, to reach the load;
    ``size``: mean processors of a job."""
    by = {row.scenario: row.values for row in rows}
    wait = {label: values["mean wait"] for label, values in by.items()}
    arrivals, runtimes = wait["times between submissions"], wait["runtimes"]
    larger = wait["sizes"] / arrivals - 1
    exact, double, eleven = (wait[f"runtime x {times}"] for times in (1, 2, 11))
    ratio = runtimes / arrivals
    (after,) = cut
    return [
        Claim(
            "Pitfall 18", "changing sizes causes packing problems that dominate",
            f"to load {LOAD:g} by arrivals {duration(arrivals)}, by sizes {duration(wait['sizes'])} "
            f"({larger:+.0%}; offered {by['sizes']['offered load']:.3f}), by {smaller} processors "
            f"{duration(wait[smaller])}",
            _yes(larger > 0.1),
        ),
        Claim(
            "Pitfall 18", "changed runtimes are tied to response times, arrivals are the least objectionable",
            f"by runtimes {duration(runtimes)}, {ratio:.3f} times the wait by arrivals, runtimes x "
            f"{factor:.3f}; slowdown of means {by['runtimes']['slowdown of means']:.4f} and "
            f"{by['times between submissions']['slowdown of means']:.4f}",
            _yes(abs(ratio - factor) < 0.02 * factor),
        ),
        Claim(
            "Pitfall 15", "exact estimates change results",
            f"EASY: users' estimates {duration(runtimes)}, exact {duration(exact)} "
            f"({exact / runtimes - 1:+.0%})",
            _yes(abs(exact / runtimes - 1) > 0.1),
        ),
        Claim(
            "Pitfall 15", "estimates that are a multiple of the runtime improve results artificially",
            f"exact {duration(exact)}, x 2 {duration(double)}, x 11 {duration(eleven)}",
            _yes(double < exact and eleven < exact, double < exact or eleven < exact),
        ),
        Claim(
            "Pitfall 29", "jobs that are left at the end are not like the others",
            f"{by['runtimes']['unfinished at last submission']:.0f} jobs of mean size "
            f"{by['runtimes']['processors of unfinished']:.1f} when the last came (all: {size:.1f}), "
            f"queued deficit {by['runtimes']['queued deficit']:.4f}",
            _yes(abs(by["runtimes"]["processors of unfinished"] / size - 1) > 0.1),
        ),
        Claim(
            "Pitfall 28", "the start is not the steady state",
            f"first {after.values['first measured']:.0f} jobs cut off, {after.values['measured jobs']:.0f} "
            f"measured: {duration(runtimes)} becomes {duration(after.values['mean wait'])}",
            _yes(abs(after.values["mean wait"] / runtimes - 1) > 0.1, after.values["mean wait"] != runtimes),
        ),
    ]  # fmt: skip


def claims_of_whole_logs(rows: Sequence[Row]) -> list[Claim]:
    """The claims on utilisation, tails, idle systems and lengths, from whole logs under EASY."""
    loads = [abs(row.values["offered load"] - row.values["achieved load"]) for row in rows]
    told, widths, valid = [], [], []
    for row in rows:
        width = row.values["half width of batches"] / row.values["mean wait"]
        correlation = row.values["correlation of batches"]
        widths.append(width)
        valid.append(abs(correlation) <= INDEPENDENT)
        told.append(f"{row.scenario} ±{width:.0%} (r {correlation:.2f})")
    tops = [row.values["top 1 % of bounded slowdown"] for row in rows]
    idle = [1 - row.values["share waiting"] for row in rows]

    times = [(row, row.values["mean wait prime time"], row.values["mean wait other time"]) for row in rows]
    apart = [abs(day / night - 1) for _, day, night in times]

    def each(text: str, *names: str) -> str:
        return "; ".join(
            f"{row.scenario} " + text.format(*(row.values[name] for name in names)) for row in rows
        )

    return [
        Claim(
            "Pitfall 22", "utilisation equals the offered load unless the system is saturated",
            each("{:.4f} offered, {:.4f} achieved", "offered load", "achieved load"),
            _yes(max(loads) < 0.005, min(loads) < 0.005),
        ),
        Claim(
            "Pitfall 23", "the mean slowdown is ruled by the tail",
            each(
                "mean {:.1f}, median {:.2f}, geometric {:.2f}, top 1 % {:.0%}", "mean bounded slowdown",
                "median bounded slowdown", "geometric mean bounded slowdown", "top 1 % of bounded slowdown",
            ),
            _yes(min(tops) > 0.2, max(tops) > 0.2),
        ),
        Claim(
            "Pitfall 31", "many jobs meet an idle system",
            "no wait: "
            + ", ".join(f"{row.scenario} {share:.0%}" for row, share in zip(rows, idle, strict=True)),
            _yes(min(idle) > 0.25, max(idle) > 0.25),
        ),
        Claim(
            "Pitfall 31", "day and night are not alike",
            "mean wait of jobs that are submitted in prime time, and of others: "
            + ", ".join(f"{row.scenario} {duration(day)}, {duration(night)}" for row, day, night in times),
            _yes(min(apart) > 0.1, max(apart) > 0.1),
        ),
        Claim(
            "Pitfall 27", "thousands of jobs, 30 batches of 5,000, are needed, and perhaps not enough",
            f"mean wait over 30 batches: {', '.join(told)}",
            _yes(not all(valid) or max(widths) > 0.1),
        ),
    ]  # fmt: skip


def claim_of_windows(rows: Sequence[Row]) -> Claim:
    """Pitfall 3, from windows of each log under two policies."""
    change: dict[str, list[float]] = {}
    slower: list[float] = []
    for row in rows:
        if row.variant == "conservative":
            (easy,) = (one for one in rows if one.variant == "EASY" and one.key[:2] == row.key[:2])
            more = row.values["mean wait"] / easy.values["mean wait"] - 1
            change.setdefault(row.scenario, []).append(more)
            slower.append(row.values["mean bounded slowdown"] / easy.values["mean bounded slowdown"] - 1)
    told = ", ".join(f"{name} {min(of):+.0%} to {max(of):+.0%}" for name, of in change.items())
    every = [value for of in change.values() for value in of]
    return Claim(
        "Pitfall 3", "EASY and conservative are alike on some workloads and not on others",
        f"conservative against EASY in {len(every)} windows of {WINDOW:,} jobs: mean wait {told}; bounded "
        f"slowdown {min(slower):+.0%} to {max(slower):+.0%}",
        _yes(min(map(abs, every)) < 0.1 < max(map(abs, every)), max(map(abs, every)) > 0.1),
    )  # fmt: skip


def _feedback(context: Context, there: Mapping[Log, Path]) -> Claim:
    """Pitfall 6: the first window of each log at its own times, and with users that react."""
    scenarios = []
    for log in there:
        file = str(context.out / f"{log.name}-1.swf")
        scenarios += [
            Scenario(log.name, 1.0, log.processors, trace=file),
            Scenario(f"{log.name}, chains", 1.0, log.processors, trace=file, feedback="chains"),
        ]
    rows = context.run("feedback", Campaign((EASY, CONSERVATIVE), tuple(scenarios), context.seeds))
    return claim_of_feedback(rows)


def claim_of_feedback(rows: Sequence[Row]) -> Claim:
    """Pitfall 6, from windows at their own times and with chains of jobs, under two policies."""
    wait = {(row.scenario, row.variant): row.values["mean wait"] for row in rows}
    told, apart = [], []
    for row in rows:
        chained = f"{row.scenario}, chains"
        if row.variant != "EASY" or (chained, "EASY") not in wait:
            continue
        opened, closed = wait[row.scenario, "EASY"], wait[chained, "EASY"]
        apart.append(abs(closed / opened - 1))
        against = [wait[name, "conservative"] / wait[name, "EASY"] - 1 for name in (row.scenario, chained)]
        told.append(
            f"{row.scenario} {duration(opened)} and {duration(closed)} (conservative against EASY "
            f"{against[0]:+.0%} and {against[1]:+.0%})"
        )
    return Claim(
        "Pitfall 6", "a log holds how users reacted to its own schedule, and replayed they do not react",
        f"mean wait of {WINDOW:,} jobs under EASY at the log's times and with chains: {'; '.join(told)}",
        _yes(min(apart) > 0.1, max(apart) > 0.1),
    )  # fmt: skip


def _looks(context: Context, there: Mapping[Log, Path]) -> list[Claim]:
    """Pitfalls 1 and 4: sizes and bursts of models and logs."""
    catalogue = Catalogue()
    seed = context.seeds[0]
    scenarios = [
        Scenario(name, 0.0, int(str(options["processors"])), model=name, options=options)
        for name, options in MODELS.items()
    ]
    scenarios += [Scenario(log.name, 1.0, log.processors, trace=str(path)) for log, path in there.items()]
    rows = []
    for scenario in scenarios:
        facts = workload_facts(scenario, seed, drawn(scenario, seed, catalogue))
        figures = {
            "gap_cv": facts.gap_cv,
            "idc_hour": facts.idc_hour,
            "idc_day": facts.idc_day,
            "powers_of_two": facts.powers_of_two,
            "estimated": facts.estimated,
        }
        values = {name: float("nan") if value is None else value for name, value in figures.items()}
        rows.append(Row(scenario.label, scenario.x, "log" if scenario.trace else "model", seed, values))
    context.record("looks", rows, [(one.label, one.model, dict(one.options)) for one in scenarios])
    return claims_of_looks(rows)


def claims_of_looks(rows: Sequence[Row]) -> list[Claim]:
    """The claims on models beside logs."""
    logs = [row for row in rows if row.variant == "log"]
    models = [row for row in rows if row.variant == "model"]

    def told(name: str, form: str) -> str:
        return ", ".join(f"{row.scenario} {row.values[name]:{form}}" for row in rows)

    calmer = [
        row.values["idc_day"] < min((log.values["idc_day"] for log in logs), default=float("nan"))
        for row in models
    ]
    powers = [log.values["powers_of_two"] for log in logs]
    return [
        Claim(
            "Pitfall 4", "models lack the burstiness of logs",
            f"index of dispersion in days: {told('idc_day', '.1f')}",
            _yes(all(calmer), any(calmer)) if logs else "not run",
        ),
        Claim(
            "Pitfall 1", "production logs favour powers of two",
            f"share of sizes: {told('powers_of_two', '.2f')}",
            _yes(min(powers) > 0.6, max(powers) > 0.6) if logs else "not run",
        ),
        _constants(logs),
    ]  # fmt: skip


def _constants(logs: Sequence[Row]) -> Claim:
    """What the paper states and nothing here can show: which of the logs at hand have estimates is known."""
    have = [log.values["estimated"] > 0 for log in logs]
    return Claim(
        "Pitfalls 15, 16, 24", "11 of the archive's 16 logs have estimates; 2 to 4 levels of "
        "multiprogramming; partitions of 512 (BlueGene/L) and of powers of two from 2 (T3D)",
        f"{sum(have)} of the {len(have)} logs at hand have estimates; rule 16 warns above {LEVELS} levels; "
        "the other constants belong to machines and are not measured",
        "-" if logs else "not run",
    )  # fmt: skip


def _yes(holds: bool, in_part: bool = False) -> str:
    return "yes" if holds else "in part" if in_part else "no"
