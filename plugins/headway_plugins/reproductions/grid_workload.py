"""What Medernach says of a grid site, beside the arithmetic of the paper's tables, other logs, and the model.

E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005. The site's own log is
LPC-EGEE-2004 of the Parallel Workloads Archive; with ``--traces`` it is looked for, and what needs it is not
run without it. Three parts: what the printed tables say of each other; the most active users of the archive's
logs that are at hand, whose silences should be two exponentials; and two dry runs of our own on 140
processors with the site's discipline: bursts against a Poisson process of the same rate, and a reserve for
short jobs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headway.emulation import emulate
from headway.errors import UserError
from headway.experiment.campaign import Key, Row, Task, select
from headway.experiment.judging import held, verdict
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult
from headway.workload import Column, Trace, read_trace
from headway.workload.group_study import group_study, normalised_wait
from headway_plugins.grid.estimation import exact_silence, fitted_shape
from headway_plugins.grid.fitted_log import fit_log
from headway_plugins.grid.flow_share import max_min
from headway_plugins.grid.login_logout import LoginLogoutModel, LoginLogoutOptions
from headway_plugins.grid.lpc import GROUPS, PROCESSORS, QUEUES

DAY = 86400.0
LOADS = (0.3, 0.6, 0.9)
#: Seconds: the largest estimate of a short job.
SHORT = 900.0
LOG = "LPC-EGEE-2004"

#: The columns of the tables, as :mod:`headway.workload.group_study` names them.
_QUEUE_FIGURES = (
    "jobs", "mean_runtime", "runtime_sd", "runtime_cv", "mean_wait", "wait_sd", "wait_cv", "normalised_wait",
)  # fmt: skip
_GROUP_FIGURES = (
    "jobs", "mean_runtime", "runtime_sd", "mean_wait", "wait_sd", "wait_cv", "normalised_wait", "mean_gap",
    "gap_sd", "gap_cv",
)  # fmt: skip


def _table(figures: Sequence[str], lines: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    return {name: dict(zip(figures, line, strict=True)) for name, line in lines.items()}


#: Tables 2 to 5 by queue and by group; times in seconds.
PRINTED_QUEUES = _table(_QUEUE_FIGURES, {
    "Test": (45_760, 31.0, 373.6, 12.0, 33_335.9, 148_326.4, 4.4, 2.35e-2),
    "Short": (81_963, 149.5, 1230.5, 8.2, 1249.7, 27_621.8, 22.1, 1.02e-4),
    "Long": (32_879, 2943.2, 11_881.2, 4.0, 535.1, 5338.8, 9.9, 5.53e-6),
    "Day": (19_275, 6634.8, 25_489.2, 3.8, 466.8, 8170.7, 17.5, 3.65e-6),
    "Infinite": (49_060, 10_062.2, 30_824.5, 3.0, 1753.9, 24_439.8, 13.9, 3.55e-6),
})  # fmt: skip
PRINTED_GROUPS = _table(_GROUP_FIGURES, {
    "Biomed": (108_197, 5417.0, 22_942.2, 781.5, 16_398.8, 20.9, 1.58e-5, 223.6, 5194.5, 23.22),
    "Dteam": (94_474, 222.0, 3673.6, 1424.1, 26_104.5, 18.3, 6.79e-5, 256.2, 2385.4, 9.31),
    "LHCb": (9709, 2072.0, 7783.4, 217.7, 2000.7, 9.1, 1.08e-5, 2474.6, 39_460.5, 15.94),
    "Atlas": (7979, 13_071.0, 28_788.8, 2332.8, 13_052.1, 5.5, 2.23e-5, 2824.1, 60_789.4, 21.52),
    "Dzero": (1332, 213.0, 393.9, 90.7, 546.3, 6.0, 31.9e-5, 5018.7, 50_996.6, 10.16),
})  # fmt: skip
#: Jobs that the site received.
RECEIVED = 230_474
#: What figures that are no times or counts are printed to; they are cut off, not rounded.
_LAST_DIGIT = {"runtime_cv": 0.1, "wait_cv": 0.1, "gap_cv": 0.01}


class GridWorkloadReproduction:
    """The statements of Medernach 2005."""

    title = "Workload analysis of a cluster in a grid environment (Medernach 2005)"
    published = Published(system="", workloads=4, jobs=230_474)

    def __init__(self, jobs: str = "5000") -> None:
        if not str(jobs).isdigit() or not 100 <= int(jobs) <= 1_000_000:
            raise UserError(f"--set jobs: expected a number from 100 to 1,000,000, found {jobs!r}")
        self._jobs = int(jobs)

    def run(self, context: Context) -> list[Claim]:
        claims = printed_claims()
        claims += self._logs(context)
        claims += self._bursts(context)
        return claims

    # ------------------------------------------------------------------ logs

    def _logs(self, context: Context) -> list[Claim]:
        paths = sorted(context.traces.glob("*.swf*")) if context.traces else []
        own = [path for path in paths if path.name.startswith(LOG)]
        claims = [claim for path in own for claim in site_claims(read_trace(path))]
        if not own:
            claims.append(
                Claim("section 3", "all figures of groups and queues", f"needs the log {LOG}", "not run")
            )
        others = [path for path in paths if path not in own]
        if not others:
            claims.append(
                Claim("Figures of R_0", "two exponentials", "no log at hand (--traces DIR)", "not run")
            )
        tasks = [Task((_users_key(path),), users_of, (path,)) for path in others]
        rows = context.collect("users", tasks, "users") if tasks else []
        return claims + [claim for row in rows for claim in user_claims(row)]

    # ------------------------------------------------------------------ dry runs

    def _bursts(self, context: Context) -> list[Claim]:
        runs = [
            *(Run("arrivals", load, arrivals, seed) for load in LOADS for seed in context.seeds
              for arrivals in ("login-logout", "poisson")),
            *(Run("reserve", 0.9, "reserve", seed) for seed in context.seeds),
        ]  # fmt: skip
        tasks = [Task((run,), dry_run, (self._jobs, *run)) for run in runs]
        rows = context.collect("dry-runs", tasks, ("grid-workload", self._jobs))
        more, said = [], []
        for load in LOADS:
            bursts, flat = (
                select(rows, "mean wait", scenario="arrivals", variant=kind, x=load)
                for kind in ("login-logout", "poisson")
            )
            more.append(_paired(bursts, flat))
            said.append(f"load {load:g}: {interval(bursts)} s against {interval(flat)} s")
        without = {
            name: select(rows, name, scenario="arrivals", variant="login-logout", x=0.9)
            for name in ("mean wait of short jobs", "utilisation")
        }
        kept = {name: select(rows, name, scenario="reserve") for name in without}
        short = _paired(without["mean wait of short jobs"], kept["mean wait of short jobs"])
        lost = 100 * (1 - np.mean(kept["utilisation"]) / np.mean(without["utilisation"]))
        return [
            Claim(
                "section 5 (ours)",
                "arrivals in bursts wait longer than a Poisson process of the same rate",
                f"{self._jobs:,} jobs, mean wait: " + "; ".join(said),
                verdict(more),
            ),
            Claim(
                "discussion (ours)",
                "a reserve of 5 % shortens the waits of jobs of at most 900 s",
                f"load 0.9: {interval(without['mean wait of short jobs'])} s without, "
                f"{interval(kept['mean wait of short jobs'])} s with it; utilisation falls by {lost:.2f} %",
                verdict([short]),
            ),
        ]


class Run(NamedTuple):
    """The key of a dry run: what is varied, the load, kind of arrivals or "reserve", and the seed."""

    scenario: str
    load: float
    kind: str
    seed: int


def dry_run(jobs: int, scenario: str, load: float, kind: str, seed: int) -> list[Row]:
    """So many jobs under the site's scheduler, with a reserve for short jobs where the kind is that."""
    reserve = kind == "reserve"
    options = LoginLogoutOptions.model_validate(
        {"jobs": jobs, "load": load, "arrivals": "login-logout" if reserve else kind}
    )
    drawn = LoginLogoutModel().generate(np.random.default_rng(seed), options).jobs
    plugins = [PluginConfig("maui-grid"), *([PluginConfig("reserve-short")] if reserve else [])]
    found = emulate(
        ClusterDescription.flat(PROCESSORS), drawn, plugins, Catalogue(), label="grid", cycle=60.0
    )
    return [Row(scenario, load, kind, seed, _measured(found))]


def _measured(result: RunResult) -> dict[str, float]:
    waits = [(job.start_time - job.job.submit_time, job) for job in result.jobs if job.start_time is not None]
    short = [wait for wait, job in waits if job.job.request.walltime <= SHORT]
    ran = sum((job.end_time or 0.0) - (job.start_time or 0.0) for _, job in waits)
    span = max(job.end_time or 0.0 for _, job in waits) - min(job.job.submit_time for _, job in waits)
    return {
        "mean wait": float(np.mean([wait for wait, _ in waits])),
        "mean wait of short jobs": float(np.mean(short)) if short else math.nan,
        "utilisation": ran / (PROCESSORS * span),
    }


def _paired(larger: Sequence[float], smaller: Sequence[float]) -> Interval:
    return interval(np.subtract(larger, smaller).tolist())


# ---------------------------------------------------------------------- the printed tables


def printed_claims() -> list[Claim]:
    """What the printed figures say of each other."""
    return [*_claims_of_runtimes(), *_claims_of_waits(), *_claims_of_tables(), *_claims_of_flows()]


def _claims_of_runtimes() -> list[Claim]:
    biomed, lhcb = GROUPS["lpc-biomed"], GROUPS["lpc-lhcb"]
    variation = {name: line["runtime_sd"] / line["mean_runtime"] for name, line in PRINTED_QUEUES.items()}
    gaps = {group.name: group.gap_deviation / group.mean_gap for group in GROUPS.values()}
    falls = list(variation.values())
    return [
        Claim(
            "G1",
            "Biomed used 6,784.6 CPU-days, about 1.5 h a job",
            f"jobs x mean: {biomed.jobs * biomed.mean_run / DAY:,.1f} CPU-days, "
            f"{biomed.mean_run / 3600:.2f} h",
            held(
                [
                    abs(biomed.jobs * biomed.mean_run / DAY / 6784.6 - 1) <= 0.01,
                    abs(biomed.mean_run / 5400 - 1) <= 0.05,
                ]
            ),
        ),
        Claim(
            "G2", "70 % of Biomed's jobs below 15 min, half below 10 s", "built into the preset", "not run"
        ),
        Claim(
            "G3",
            "LHCb: a job about every 41 min, 34 min long",
            f"{lhcb.mean_gap / 60:.1f} min, {lhcb.mean_run / 60:.1f} min",
            held([abs(lhcb.mean_gap / 60 - 41) <= 1, abs(lhcb.mean_run / 60 - 34) <= 1]),
        ),
        Claim(
            "G4",
            "the variation of runtimes falls as the queue's limit grows",
            ", ".join(f"{name} {value:.2f}" for name, value in variation.items()),
            "yes" if falls == sorted(falls, reverse=True) else "no",
        ),
        Claim(
            "G5",
            "no group's arrivals are a Poisson process",
            "CV " + ", ".join(f"{name} {value:.2f}" for name, value in gaps.items()),
            "yes" if min(gaps.values()) > 1 else "no",
        ),
    ]


def _claims_of_waits() -> list[Claim]:
    """Of waiting times, as printed and as they follow from their formula."""
    waits, queues = _by_formula(PRINTED_GROUPS), _by_formula(PRINTED_QUEUES)
    printed = PRINTED_GROUPS | PRINTED_QUEUES
    off = [
        name
        for name, found in (waits | queues).items()
        if abs(found / printed[name]["normalised_wait"] - 1) > 0.01
    ]
    best = {
        "mean wait": _least(PRINTED_GROUPS, "mean_wait"),
        "printed WT": _least(PRINTED_GROUPS, "normalised_wait"),
        "WT by its formula": min(waits, key=lambda name: waits[name]),
    }
    shortest = f"{PRINTED_GROUPS[best['mean wait']]['mean_wait']} s; LHCb {GROUPS['lpc-lhcb'].mean_wait} s"
    return [
        Claim(
            "WT, groups and queues",
            "the formula of the normalised waiting time",
            f"9 of the 10 printed values follow from their lines, {', '.join(off)} does not: "
            f"{waits['Biomed']:.3g} for 1.58e-5",
            held([name not in off for name in printed]),
        ),
        Claim(
            "G9",
            "worst by WT: queue Test, group Dzero, then Dteam",
            f"worst: {max(queues, key=lambda name: queues[name])}; "
            + ", ".join(sorted(waits, key=lambda name: -waits[name])),
            "yes" if sorted(waits, key=lambda n: -waits[n])[:2] == ["Dzero", "Dteam"] else "no",
        ),
        Claim(
            "best treated",
            "LHCb is the best treated group",
            f"least: mean wait {best['mean wait']} ({shortest}), printed WT {best['printed WT']}, "
            f"WT by its formula {best['WT by its formula']}",
            "yes" if set(best.values()) == {"LHCb"} else "in part" if "LHCb" in best.values() else "no",
        ),
        Claim(
            "WT",
            "does not depend on the number of jobs",
            "work cut into 1, 2, 4, 100 jobs on one processor: 0, 0.25, 0.375, 0.495",
            "no",
        ),
    ]


def _claims_of_tables() -> list[Claim]:
    """Whether figures of one table agree with each other."""
    beyond = []
    for queue in QUEUES:
        mean, deviation = (PRINTED_QUEUES[queue.name][name] for name in ("mean_runtime", "runtime_sd"))
        bound = math.sqrt(mean * (queue.most_wall - mean))
        if deviation > bound:
            beyond.append(f"{queue.name} {deviation:g} s above {bound:.1f} s")
    days = {group.name: group.jobs * group.mean_gap / DAY for group in GROUPS.values()}
    group_waits, queue_waits = (
        sum(line["jobs"] * line["mean_wait"] for line in table.values())
        for table in (PRINTED_GROUPS, PRINTED_QUEUES)
    )
    return [
        Claim(
            "Table 1",
            "wall limits end jobs: so deviations have a bound",
            "beyond it: " + "; ".join(beyond),
            "no" if beyond else "yes",
        ),
        Claim(
            "280 days",
            "one length of time for all groups",
            "jobs x mean gap: " + ", ".join(f"{name} {value:.0f} d" for name, value in days.items()),
            held([abs(value / 280 - 1) <= 0.05 for value in days.values()]),
        ),
        Claim(
            "waits",
            "groups and queues are the same jobs",
            f"all waits together: groups {group_waits:.3g} s, queues {queue_waits:.3g} s, of "
            f"{sum(line['jobs'] for line in PRINTED_GROUPS.values()):,} and "
            f"{sum(line['jobs'] for line in PRINTED_QUEUES.values()):,} jobs of the {RECEIVED:,} received",
            held([abs(group_waits / queue_waits - 1) <= 0.01]),
        ),
    ]


def _claims_of_flows() -> list[Claim]:
    """Our own figures: which processors groups demand, and what fair shares make of it."""
    flows = {g.name: g.jobs * g.mean_run / (280 * DAY) for g in GROUPS.values()}
    return [
        Claim(
            "offered flow",
            "(ours) processors that each group keeps busy",
            ", ".join(f"{name} {value:.3g}" for name, value in flows.items())
            + f"; {100 * sum(flows.values()) / PROCESSORS:.1f} % of 140",
            "-",
        ),
        Claim(
            "flow shares",
            "(ours) fair shares cut the group with the largest demand, and no group where all are satisfied",
            "of 140 processors no group is cut"
            if max_min(PROCESSORS, flows) == flows
            else "of 140 processors a group is cut",
            "-",
        ),
        Claim(
            "flow shares, 20 processors",
            "(ours) the same at a site that is too small",
            ", ".join(f"{name} {share:.3g}" for name, share in max_min(20, flows).items()),
            "-",
        ),
    ]


def _by_formula(table: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The normalised waiting times that follow from the other figures of their lines."""
    return {
        name: normalised_wait(int(line["jobs"]), line["mean_wait"], line["mean_runtime"]) or 0.0
        for name, line in table.items()
    }


def _least(table: Mapping[str, Mapping[str, float]], figure: str) -> str:
    return min(table, key=lambda name: table[name][figure])


# ---------------------------------------------------------------------- logs


def site_claims(trace: Trace) -> list[Claim]:
    """The tables of groups and queues, recomputed from the site's own log."""
    found = group_study(trace, PROCESSORS)
    return [
        *compared("group", found["groups"], PRINTED_GROUPS),
        *compared("queue", found["queues"], PRINTED_QUEUES),
    ]


def compared(
    title: str, rows: Sequence[Mapping[str, Any]], printed: Mapping[str, Mapping[str, float]]
) -> list[Claim]:
    """Each printed line beside the log's: a log numbers its groups and queues, so beside the line whose
    number of jobs is nearest among the remaining jobs, the largest line first."""
    left = list(rows)
    claims = []
    for name in sorted(printed, key=lambda name: -printed[name]["jobs"]):
        line = printed[name]
        said = ", ".join(f"{figure} {value:,}" for figure, value in line.items())
        if not left:
            claims.append(Claim(f"{title} {name}", said, "the log has no such line", "not run"))
            continue
        row = min(left, key=lambda row: abs(math.log(row["jobs"] / line["jobs"])))
        left.remove(row)
        off = [
            f"{figure} {'none' if row[figure] is None else format(row[figure], ',.4g')} for {value:,}"
            for figure, value in line.items()
            if not _same(figure, row[figure], value)
        ]
        same = len(line) - len(off)
        many = f"all {same}" if not off else f"{same} of {len(line)}"
        measured = f"{many} figures are so" + (f"; {', '.join(off)}" if off else "")
        holds = "yes" if not off else "in part" if same else "no"
        claims.append(Claim(f"{title} {row[title]}, {name}", said, measured, holds))
    return claims


def _same(figure: str, found: float | None, printed: float) -> bool:
    """Within a hundredth, or within what it is printed to."""
    return found is not None and abs(found - printed) <= max(0.01 * printed, _LAST_DIGIT.get(figure, 0.0))


def _users_key(path: Path) -> Key:
    return (path.name.split(".")[0], 0.0, "users", 1)


def users_of(path: Path) -> list[Row]:
    """The most active user of a log, its silences against one exponential and two, and how the rates of the
    log's users fall; NaN: the log names no users, or too few."""
    trace = read_trace(path)
    records = trace.records
    submit, user = records[:, Column.SUBMIT], records[:, Column.USER]
    values = dict.fromkeys(("user", "jobs", "one exponential", "two exponentials", "slope", "r2"), math.nan)
    if (user > 0).any():
        numbers, counts = np.unique(user[user > 0], return_counts=True)
        most = numbers[int(np.argmax(counts))]
        own = submit[user == most]
        t = np.geomspace(1.0, 1e5, 60)
        shape = fitted_shape(t, exact_silence(own, float(submit[0]), float(submit[-1]), t))
        line = fit_log(trace)
        values |= {
            "user": float(most), "jobs": float(len(own)), "one exponential": shape.one_error,
            "two exponentials": shape.two_error, "r2": line.r2,
            "slope": math.nan if line.slope is None else line.slope,
        }  # fmt: skip
    scenario, x, variant, seed = _users_key(path)
    return [Row(scenario, x, variant, seed, values)]


def user_claims(row: Row) -> list[Claim]:
    """What the paper says of the most active user, and of the rates of all, beside another log."""
    name, values = row.scenario, row.values
    if math.isnan(values["user"]):
        return [Claim(f"G11, {name}", "two exponentials", "the log names no users", "not run")]
    two, one = values["two exponentials"], values["one exponential"]
    slope = (
        "few users"
        if math.isnan(values["slope"])
        else f"each {values['slope']:.3f} of the one before, R2 {values['r2']:.3f}"
    )
    return [
        Claim(
            f"G11, {name}",
            "R_0 of the most active user is two exponentials",
            f"user {values['user']:.0f}, {values['jobs']:,.0f} jobs: largest error {two:.3f}, of one "
            f"exponential {one:.3f}",
            "yes" if 4 * two < one else "no",
        ),
        Claim(
            f"G12, {name}",
            "rates of users, sorted, are nearly straight in log space",
            slope,
            held([values["r2"] > 0.9]),
        ),
    ]
