"""The measurements of the paper on open job management for Blue Gene/L, and what it says of its two cycles.

Y. Aridor, T. Domany, O. Goldshmidt, Y. Kliteynik, J. Moreira, E. Shmueli: Open Job Management Architecture
for the Blue Gene/L Supercomputer: Case Studies with LoadLeveler and SLURM. JSSPP 2005, sections 3 to 5.

The times of a partition's stages are the paper's own (Table 1) and go into the emulated machine; so the table
shows that the cycle adds up, and says nothing about hardware. What is new is measured: the two cycles
and divisions of labour on the same jobs. The paper has no figures of these; the workloads are ours: jobs of
1 to 4,096 nodes on its prototype of 4,096 nodes, Poisson arrivals, exponential run times of a mean that is
varied, submitted so that blocks on demand are busy 0.7 of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headway.emulation import emulate
from headway.errors import UserError
from headway.experiment.campaign import Row, Task, select
from headway.experiment.judging import verdict
from headway.experiment.plots import line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, paired
from headway.model import JobDescription, Request
from headway.partitions.cycle import PRESETS
from headway.partitions.description import TorusConfig
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult
from headway.workload.jobs import TraceJob

#: The prototype: 2x2x2 midplanes of 512 nodes.
SHAPE, MIDPLANE = (2, 2, 2), 512
#: Table 1: seconds of stages 1-3, 4, 5-8 and 9-10.
TABLE_1 = {512: (1, 26, 14, 10), 1024: (1, 36, 15, 11), 2048: (2, 38, 19, 11)}
STAGES = ("prepare", "boot", "load", "halt")
TOTAL, SHARE = "total", "share of overhead"
#: Run times beside which the overhead is looked at, in seconds: "longer than a few minutes".
RUNS = (0.0, 300.0, 600.0, 3600.0)
#: What counts as small: of all time that a job has its partition.
SMALL = 0.05
#: Scenario: nodes and run time of jobs that are all there at once.
AT_ONCE = ((512, 100.0), (1024, 100.0), (2048, 100.0), (2048, 50.0))
FREE, FIRST = "all free", "last first instruction"
#: Mean run times of the workloads on which the cycles are compared, in seconds.
MEANS = (10.0, 60.0, 300.0, 1200.0, 3600.0)
#: Up to which mean jobs count as short beside booting, in seconds.
SHORT = 60.0
#: How busy blocks on demand are kept.
LOAD = 0.7
POWERS, ANY = "sizes that are powers of two", "any sizes"
RESPONSE, BOOTS, HELD = "mean response", "boots per job", "midplane hours in use"
ON_DEMAND, PREPARED = "on demand", "prepared"
BLOCKS = {ON_DEMAND: "on-demand", PREPARED: "prepared"}


def job(number: int, submit: float, nodes: int, runtime: float) -> TraceJob:
    """A job whose user estimates exactly."""
    request = Request(processors=nodes, walltime=max(runtime, 1.0))
    return TraceJob(JobDescription(id=str(number), submit_time=submit, request=request), runtime)


def run(
    jobs: Sequence[TraceJob], policy: str = "fcfs", stages: str = "loadleveler", **options: Any
) -> RunResult:
    """The jobs on the prototype."""
    cluster = TorusConfig(shape=SHAPE, proxy_stages=stages).description()  # type: ignore[arg-type]
    plugins = [PluginConfig(policy), PluginConfig("partitions", options)]
    return emulate(cluster, jobs, plugins, Catalogue(), label=policy)


def measured(result: RunResult) -> Mapping[str, Any]:
    """The figures of the plugin ``partitions``."""
    found: Mapping[str, Any] = result.contributed["partitions"](result)
    return found


# ---------------------------------------------------------------------- rows


def run_table(nodes: int, runtimes: Sequence[float]) -> list[Row]:
    """One job alone, once for each run time."""
    rows = []
    for runtime in runtimes:
        result = run([job(1, 0.0, nodes, runtime)])
        stages = measured(result)["stage_seconds"][str(nodes)]
        begin, end = result.partitions[0].time, result.partitions[-1].time
        values = {name: stages[name] for name in STAGES}
        values[TOTAL] = end - begin - runtime
        values[SHARE] = (end - begin - runtime) / (end - begin)
        rows.append(Row(f"run time {runtime:g} s", float(nodes), "LoadLeveler cycle", 1, values))
    return rows


def run_at_once(stages: str) -> list[Row]:
    """Four jobs at once, under one division of labour."""
    result = run([job(n, 0.0, *each) for n, each in enumerate(AT_ONCE, 1)], stages=stages)
    begins = [one.start_time for one in result.jobs if one.start_time is not None]
    if len(begins) < len(AT_ONCE):
        raise UserError(
            f"division of labour {stages}: expected {len(AT_ONCE)} jobs that ran, found {len(begins)}"
        )
    values = {FREE: max(step.time for step in result.partitions), FIRST: max(begins)}
    return [Row("at once", 0, stages, 1, values)]


def workload(mean: float, sizes: str, count: int, seed: int) -> list[TraceJob]:
    """Jobs whose partitions on demand would be busy :data:`LOAD` of the time, if they never waited."""
    rng = np.random.default_rng((int(mean), sizes == ANY, seed))
    most = SHAPE[0] * SHAPE[1] * SHAPE[2] * MIDPLANE
    if sizes == POWERS:
        nodes = MIDPLANE << rng.integers(0, 4, count)
    else:
        nodes = rng.integers(1, most + 1, count)
    runtimes = np.rint(rng.exponential(mean, count))
    busy = np.ceil(nodes / MIDPLANE) * (runtimes + sum(TABLE_1[2048]))
    gaps = rng.exponential(float(busy.mean()) * MIDPLANE / (LOAD * most), count)
    submits = np.rint(np.cumsum(gaps))
    return [
        job(number, float(submit), int(size), float(runtime))
        for number, (submit, size, runtime) in enumerate(zip(submits, nodes, runtimes, strict=True))
    ]


def run_cycles(mean: float, sizes: str, count: int, seed: int) -> list[Row]:
    """One workload in both cycles."""
    jobs = workload(mean, sizes, count, seed)
    rows = []
    for name, blocks in BLOCKS.items():
        result = run(jobs, policy="easy", blocks=blocks)
        found = measured(result)
        ends = [one.end_time - one.job.submit_time for one in result.jobs if one.end_time is not None]
        values = {
            RESPONSE: float(np.mean(ends)), BOOTS: found["boots_per_job"],
            HELD: found["midplane_hours"]["busy"],
        }  # fmt: skip
        rows.append(Row(sizes, mean, name, seed, values))
    return rows


# ---------------------------------------------------------------------- claims


class OpenJobManagementReproduction:
    """Table 1, sections 3.2, 4 and 5, and the two cycles beside each other."""

    title = "Open job management for Blue Gene/L (Aridor and others 2005)"
    published = Published(system="", intervals=False)

    def __init__(self, jobs: int = 400, means: Sequence[float] = MEANS) -> None:
        """``jobs``: of each workload on which the cycles are compared; ``means``: their mean run times, in
        seconds."""
        if jobs < 10:
            raise UserError(f"--set jobs: expected at least 10, found {jobs}")
        if not means or min(means) <= 0:
            raise UserError(f"--set means: expected run times above 0 s, found {means}")
        self._jobs, self._means = jobs, tuple(float(mean) for mean in means)

    def run(self, context: Context) -> list[Claim]:
        table = context.collect(
            "table-1",
            [_task(run_table, _keys_of(nodes), nodes, RUNS) for nodes in TABLE_1],
            "table 1",
        )
        at_once = context.collect(
            "at-once",
            [_task(run_at_once, (("at once", 0.0, stages, 1),), stages) for stages in PRESETS],
            "four jobs at once",
        )
        cycles = context.collect(
            "cycles",
            [_task(run_cycles, tuple((sizes, mean, name, seed) for name in BLOCKS),
                   mean, sizes, self._jobs, seed)
             for sizes in (POWERS, ANY) for mean in self._means for seed in context.seeds],
            (self._jobs, LOAD),
        )  # fmt: skip
        for sizes, name in ((POWERS, "powers-of-two"), (ANY, "any-sizes")):
            some = [row for row in cycles if row.scenario == sizes]
            line_plot(some, [RESPONSE, BOOTS, HELD], context.out / f"{name}.png",
                      x_label="mean run time (s)", title=sizes)  # fmt: skip
        return [*self._table(table), *self._managers(at_once), *self._cycles(cycles)]

    # ------------------------------------------------------------------ Table 1

    def _table(self, rows: Sequence[Row]) -> list[Claim]:
        empty = {nodes: _values(rows, "run time 0 s", nodes) for nodes in TABLE_1}
        total = {nodes: found[TOTAL] for nodes, found in empty.items()}
        same = all(
            tuple(empty[nodes][name] for name in STAGES) == seconds and total[nodes] == sum(seconds)
            for nodes, seconds in TABLE_1.items()
        )
        boot = {nodes: found["boot"] for nodes, found in empty.items()}
        first, last = min(TABLE_1), max(TABLE_1)
        grown = [100.0 * (of[last] / of[first] - 1) for of in (total, boot)]
        managing = {nodes: found["prepare"] + found["halt"] for nodes, found in empty.items()}
        largest = all(found["boot"] == max(found[name] for name in STAGES) for found in empty.values())
        claims = [
            Claim("E1, Table 1", "each row sums to its total: 51, 63, 70 s",
                  _each(total, "{:g}") + " s" + "; every stage as printed" * same,
                  _holds(same)),
            Claim("E2", "times depend weakly on the size: 512 to 2048 nodes take 37 % more, boots 46 % more",
                  f"{grown[0]:.0f} % more, boots {grown[1]:.0f} %",
                  _holds(max(grown) < 100.0 * (last / first - 1))),
            Claim("E3", "booting is the largest part: 51.0, 57.1, 54.3 %",
                  _each({n: 100.0 * boot[n] / total[n] for n in total}, "{:.1f}") + " %", _holds(largest)),
            Claim("E4", "resource management proper (stages 1-3 and 9-10) takes less time than booting",
                  _each(managing, "{:g}") + " s, boots " + _each(boot, "{:g}") + " s",
                  _holds(all(managing[n] < boot[n] for n in managing))),
        ]  # fmt: skip
        shares = {
            runtime: [_values(rows, f"run time {runtime:g} s", nodes)[SHARE] for nodes in TABLE_1]
            for runtime in RUNS if runtime
        }  # fmt: skip
        from_on = {nodes: total[nodes] * (1 - SMALL) / SMALL for nodes in total}
        small = [runtime for runtime, found in shares.items() if max(found) <= SMALL]
        claims.append(
            Claim("E5", "the overhead is of the order of a minute, small for jobs longer than a few minutes",
                  "; ".join(f"{runtime:g} s: {_each(dict(enumerate(100 * s for s in found)), '{:.1f}')} %"
                            for runtime, found in shares.items())
                  + f"; below 5 % from {_each(from_on, '{:.0f}')} s on",
                  "yes" if len(small) == len(shares) else "in part" if small else "no")
        )  # fmt: skip
        return claims

    # ------------------------------------------------------------------ what each manager does

    def _managers(self, rows: Sequence[Row]) -> list[Claim]:
        free, first = (
            {row.variant: row.values[name] for row in rows} for name in (FREE, FIRST)
        )  # fmt: skip
        worst = "slurm"
        return [
            Claim("E6", "LoadLeveler and SLURM, with other divisions of labour, on the same Bridge unchanged",
                  f"{len(rows)} divisions, and both cycles below, over one bridge: all jobs ran",
                  _holds(len(rows) == len(PRESETS))),
            Claim("E7, section 3.2", "a single-threaded scheduler that waits for boots schedules no other "
                                     "job",
                  f"four jobs at once: the last begins at {first['loadleveler']:g} s and all is free at "
                  f"{free['loadleveler']:g} s; if the scheduler waits for boots {first[worst]:g} and "
                  f"{free[worst]:g} s",
                  _holds(first[worst] > first["loadleveler"])),
        ]  # fmt: skip

    # ------------------------------------------------------------------ prepared blocks

    def _cycles(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        fewer = [_less(rows, BOOTS, sizes, mean) for sizes in (POWERS, ANY) for mean in self._means]
        claims.append(
            Claim("E8, section 4", "prepared blocks minimise the number of boots",
                  f"{min(i.mean for i in fewer):.0f} to {max(i.mean for i in fewer):.0f} % fewer boots a job",
                  verdict(fewer))
        )  # fmt: skip
        for sizes, said in (
            (POWERS, "they are for jobs that are short beside booting, and sizes that are powers of two"),
            (ANY, "(sizes that are rounded up to a power of two are assumed away)"),
        ):
            gains = {mean: _less(rows, RESPONSE, sizes, mean) for mean in self._means}
            short = [gain for mean, gain in gains.items() if mean <= max(min(self._means), SHORT)]
            claims.append(
                Claim(f"E9, {sizes}", said,
                      "mean response shorter by " + ", ".join(
                          f"{gain.mean:.1f} ± {gain.half:.1f} % ({mean:g} s)"
                          for mean, gain in gains.items()),
                      verdict(short) if sizes == POWERS else "not claimed")
            )  # fmt: skip
        return claims


def _task(function: Callable[..., list[Row]], keys: tuple[Any, ...], *arguments: Any) -> Task:
    return Task(keys, function, arguments)


def _keys_of(nodes: int) -> tuple[tuple[str, float, str, int], ...]:
    return tuple((f"run time {runtime:g} s", float(nodes), "LoadLeveler cycle", 1) for runtime in RUNS)


def _values(rows: Sequence[Row], scenario: str, nodes: int) -> Mapping[str, float]:
    [found] = [row.values for row in rows if row.scenario == scenario and row.x == nodes]
    return found


def _less(rows: Sequence[Row], metric: str, sizes: str, mean: float) -> Interval:
    """By how much it is less with prepared blocks, in percent, workload by workload."""
    on_demand, prepared = (select(rows, metric, scenario=sizes, variant=name, x=mean) for name in BLOCKS)
    change = paired(prepared, on_demand)
    return Interval(-change.mean, change.half, change.count)


def _each(values: Mapping[Any, float], shown: str) -> str:
    return ", ".join(shown.format(value) for value in values.values())


def _holds(found: bool) -> str:
    return "yes" if found else "no"
