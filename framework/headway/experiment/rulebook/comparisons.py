"""Rules on what a comparison concludes, and the verdicts themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headway.experiment.campaign import Row
from headway.experiment.rulebook.rule import Evidence, Finding, Kind, Stage, rule
from headway.experiment.rulebook.runs import too_many
from headway.experiment.statistics import Interval, batch_interval, paired
from headway.experiment.steady import saturation

#: By the kind of system: what a verdict may be on. Others are sanity checks.
VERDICT_METRICS: Mapping[str, tuple[str, ...]] = {
    "open": ("mean wait", "mean bounded slowdown"),
    "closed": ("mean wait", "mean bounded slowdown"),
    "static": ("makespan",),
}
#: Of each metric whose mean may be ruled by a few jobs: the figure that must say the same.
BESIDE = {"mean bounded slowdown": "geometric mean bounded slowdown"}
#: Other bounds of the bounded slowdown.
BOUNDS = ("mean bounded slowdown at 1 s", "mean bounded slowdown at 60 s")
#: A mean over its median, and the share of the sum that 1 % of jobs hold, from which a mean is skewed.
SKEWED, TOP = 5.0, 0.2
#: Offered loads of variants may differ by this.
EQUAL = 0.001
#: Share of jobs by which variants may differ in what was not finished.
CENSORED = 0.01
#: Share of jobs that wait not at all, from which the others are shown by themselves.
IDLE = 0.5


@dataclass(frozen=True)
class Verdict:
    """One variant against the first, on one metric, scenario and x."""

    scenario: str
    x: float
    variant: str
    against: str
    metric: str
    #: Percent; negative: less.
    change: Interval
    #: Runs (or batches) in which it is less, and of how many.
    less: int
    of: int
    #: "less", "more", "undecided", "depends on the statistic", or why there is none.
    says: str


def verdicts(
    evidence: Evidence, excluded: Mapping[tuple[str, float, str], str], metrics: Sequence[str] | None = None
) -> list[Verdict]:
    """Each variant against the first: relative changes pair by pair, over seeds, or over the batches of a
    single run (they hold the same jobs)."""
    metrics = VERDICT_METRICS[evidence.campaign.method.system] if metrics is None else metrics
    base = evidence.campaign.variants[0].label
    points = {(scenario, x, variant): rows for scenario, x, variant, rows in evidence.points()}
    found = []
    for (scenario, x, variant), rows in points.items():
        theirs = points.get((scenario, x, base))
        if variant == base or theirs is None:
            continue
        why = excluded.get((scenario, x, variant)) or excluded.get((scenario, x, base)) or ""
        for metric in metrics:
            change, less, of, valid = _change(rows, theirs, metric)
            missing = sum(not math.isfinite(row.values[metric]) for row in (*rows, *theirs))
            says = _word(change)
            other = BESIDE.get(metric)
            if why:
                says = f"excluded: {why}"
            elif of < 2:
                says = "no interval: one run, and no batches of it"
            elif missing:
                says = f"no verdict: {missing} of {2 * len(rows)} runs measured no jobs"
            elif not valid:
                says = "no interval: neighbouring batches depend on each other"
            elif other is not None and says in ("less", "more"):
                beside, _, _, _ = _change(rows, theirs, other)
                says = says if _word(beside) == says else "depends on the statistic"
            found.append(Verdict(scenario, x, variant, base, metric, change, less, of, says))
    return found


def _change(ours: list[Row], theirs: list[Row], metric: str) -> tuple[Interval, int, int, bool]:
    """Percent, pairs with less, pairs, and whether they may pass for independent."""
    if len(ours) > 1:
        a, b = [row.values[metric] for row in ours], [row.values[metric] for row in theirs]
        valid = True
    else:
        a, b = (list(rows[0].batches.get(metric, ())) for rows in (ours, theirs))
        valid = (
            batch_interval([one - other for one, other in zip(a, b, strict=True)]).valid
            if len(a) > 1
            else True
        )
    pairs = list(zip(a, b, strict=True))
    return paired(a, b), sum(one < other for one, other in pairs), len(pairs), valid


def _word(change: Interval) -> str:
    if change.high < 0:
        return "less"
    return "more" if change.low > 0 else "undecided"


@rule(
    "21", "metric out of context",
    "Verdicts are on metrics that mean something in such a system.",
    severity=2, stage=Stage.COMPARISON,
)  # fmt: skip
def metric_in_context(evidence: Evidence) -> Iterator[Finding]:
    system = evidence.campaign.method.system
    yield Finding(Kind.KEPT, f"{system} system: verdicts on {' and '.join(VERDICT_METRICS[system])}")


@rule(
    "22", "utilisation, throughput, makespan in an open system",
    "Utilisation is shown beside the offered load and not judged.",
    severity=3, stage=Stage.COMPARISON,
)  # fmt: skip
def utilisation(evidence: Evidence) -> Iterator[Finding]:
    ceilings: dict[tuple[str, str], float] = {}
    bearable: dict[tuple[str, str], float] = {}
    for scenario, _, variant, rows in evidence.points():
        key = (scenario, variant)
        achieved = max(row.values["achieved load"] for row in rows)
        ceilings[key] = max(ceilings.get(key, 0.0), achieved)
        judged = [saturation(row.values["queued deficit"], row.values["wait rise p"]) for row in rows]
        if not too_many(judged.count("saturated"), len(rows)):
            bearable[key] = max(bearable.get(key, 0.0), _mean(rows, "offered load"))
    for (scenario, variant), most in ceilings.items():
        message = f"utilisation counts what jobs hold; at most {most:.1%} while jobs arrived"
        numbers = {"largest achieved": most}
        if (scenario, variant) in bearable:
            numbers["largest load not saturated"] = bearable[scenario, variant]
            message += f"; not saturated up to an offered load of {bearable[scenario, variant]:.3f}"
        yield Finding(Kind.KEPT, message, scenario, None, variant, numbers)


@rule(
    "23", "means of skewed results",
    "A verdict on a mean that few jobs rule holds for the geometric mean too.",
    severity=3, stage=Stage.COMPARISON,
)  # fmt: skip
def skewed(evidence: Evidence) -> Iterator[Finding]:
    apart = {
        (one.scenario, one.x, one.variant)
        for one in verdicts(evidence, {})
        if one.says == "depends on the statistic"
    }
    for scenario, x, variant, rows in evidence.points():
        mean = _mean(rows, "mean bounded slowdown")
        median = _mean(rows, "median bounded slowdown")
        geometric, top = (
            _mean(rows, "geometric mean bounded slowdown"),
            _mean(rows, "top 1 % of bounded slowdown"),
        )
        bounds = ", ".join(f"{_mean(rows, name):.3g} with {name.split(' at ')[1]}" for name in BOUNDS)
        numbers = {"mean": mean, "median": median, "geometric mean": geometric, "top 1 %": top}
        message = (
            f"bounded slowdown (10 s): mean {mean:.3g}, median {median:.3g}, geometric {geometric:.3g}, "
            f"1 % of jobs hold {top:.0%} ({bounds})"
        )
        if (scenario, x, variant) in apart:
            message = f"the mean and the geometric mean say different things: {message}"
            yield Finding(Kind.WARN, message, scenario, x, variant, numbers)
        elif mean > SKEWED * median or top > TOP:
            yield Finding(Kind.NOTE, message, scenario, x, variant, numbers)
        else:
            yield Finding(Kind.KEPT, message, scenario, x, variant, numbers)


@rule(
    "31", "all jobs averaged together",
    "Where most jobs do not wait, the waiting jobs, classes and prime time are shown separately.",
    severity=2, stage=Stage.COMPARISON,
)  # fmt: skip
def together(evidence: Evidence) -> Iterator[Finding]:
    for scenario, x, variant, rows in evidence.points():
        waiting, mean = _mean(rows, "share waiting"), _mean(rows, "mean wait of those that waited")
        by_class = {name: _mean(rows, f"mean wait {name}") for name in ("SN", "LN", "SW", "LW")}
        # A class without jobs has no mean.
        classes = ", ".join(f"{name} {wait:.0f} s" for name, wait in by_class.items() if wait == wait)
        message = f"{1 - waiting:.0%} of jobs do not wait; the others {mean:.0f} s; by class {classes}"
        day, night = _mean(rows, "mean wait prime time"), _mean(rows, "mean wait other time")
        if day == day or night == night:
            message += f"; submitted in prime time {day:.0f} s, else {night:.0f} s"
        kind = Kind.NOTE if 1 - waiting > IDLE else Kind.KEPT
        yield Finding(kind, message, scenario, x, variant, {"share waiting": waiting, "mean of those": mean})


@rule(
    "G1",
    "not repeatable",
    "All inputs that a repetition of the campaign needs are kept.",
    severity=3,
    stage=Stage.COMPARISON,
)
def repeatable(evidence: Evidence) -> Iterator[Finding]:
    traces = {facts.scenario: facts.digest for facts in evidence.recorded}
    missing = [name for name, digest in traces.items() if not digest]
    if missing:
        yield Finding(Kind.WARN, f"no checksum of the trace of {missing[0]}")
    else:
        yield Finding(Kind.KEPT, f"definition, version, seeds, checksums of {len(traces)} traces are kept")


@rule(
    "E1",
    "verdicts without intervals",
    "No verdict without a confidence interval.",
    severity=3,
    stage=Stage.COMPARISON,
)
def intervals(evidence: Evidence) -> Iterator[Finding]:
    found = verdicts(evidence, {})
    without = [one for one in found if one.says.startswith(("no interval", "no verdict"))]
    for one in without:
        yield Finding(Kind.WARN, f"{one.metric}: {one.says}", one.scenario, one.x, one.variant)
    if found and not without:
        yield Finding(Kind.KEPT, f"{len(found)} verdicts, each with its interval")


@rule(
    "E2", "unpaired comparison",
    "Policies are compared on the same jobs, pair by pair.",
    severity=2, stage=Stage.COMPARISON,
)  # fmt: skip
def pairs(evidence: Evidence) -> Iterator[Finding]:
    found = verdicts(evidence, {})
    if found:
        decided = sum(one.says in ("less", "more") for one in found)
        yield Finding(Kind.KEPT, f"{decided} of {len(found)} paired changes are decided")


@rule(
    "E3", "unequal load",
    "All policies have the same work to do.",
    severity=3, stage=Stage.COMPARISON,
)  # fmt: skip
def equal_load(evidence: Evidence) -> Iterator[Finding]:
    reacting = {one.label for one in evidence.campaign.scenarios if one.feedback}
    found: dict[tuple[str, float, int], dict[str, Row]] = {}
    for row in evidence.rows:
        found.setdefault((row.scenario, row.x, row.seed), {})[row.variant] = row
    base = evidence.campaign.variants[0].label
    loads: dict[tuple[str, float, str], float] = {}
    works: dict[tuple[str, float, str], float] = {}
    for (scenario, x, _), of in found.items():
        for variant, row in of.items():
            key, other = (scenario, x, variant), of.get(base, row)
            by = abs(row.values["offered load"] - other.values["offered load"])
            loads[key] = max(loads.get(key, 0.0), by)
            # Where submissions react, the time in which they come is the policy's, but not the work.
            if scenario in reacting:
                work = other.values["total runtime"]
                by = abs(row.values["total runtime"] - work) / work if work else 0.0
                works[key] = max(works.get(key, 0.0), by)
    for (scenario, x, variant), by in loads.items():
        numbers = {"difference": by}
        reacts = (scenario, x, variant) in works
        if works.get((scenario, x, variant), by) > EQUAL:
            message = f"offered load differs by {by:.3f} from that of {base}: the policy changed the runtimes"
            yield Finding(Kind.EXCLUDE, message, scenario, x, variant, numbers)
        elif variant != base:
            message = f"offered load differs by {by:.1g}"
            message += ": submissions react, the work is the same" if reacts else ""
            yield Finding(Kind.KEPT, message, scenario, x, variant, numbers)


@rule(
    "E4", "censored jobs",
    "About as many jobs are killed at their limit, refused or never finished under each policy.",
    severity=2, stage=Stage.COMPARISON,
)  # fmt: skip
def censored(evidence: Evidence) -> Iterator[Finding]:
    names = ("refused", "never started", "unfinished", "ended at limit")
    by_point: dict[tuple[str, float], dict[str, tuple[float, dict[str, float]]]] = {}
    for scenario, x, variant, rows in evidence.points():
        counts = {name: _mean(rows, name) for name in names}
        all_jobs = _mean(rows, "jobs") + counts["refused"] + counts["never started"] + counts["unfinished"]
        by_point.setdefault((scenario, x), {})[variant] = (all_jobs, counts)
    for (scenario, x), of in by_point.items():
        apart = 0.0
        worst = ""
        for name in names:
            values = [counts[name] for _, counts in of.values()]
            jobs = max(all_jobs for all_jobs, _ in of.values())
            if jobs and (max(values) - min(values)) / jobs >= apart:
                apart, worst = (max(values) - min(values)) / jobs, name
        shown = (
            ", ".join(f"{label} {counts[worst]:.0f}" for label, (_, counts) in of.items()) if worst else ""
        )
        kind = Kind.WARN if apart > CENSORED else Kind.KEPT
        message = f"{worst}: {shown}" if worst else "none"
        yield Finding(kind, message, scenario, x, "", {"difference": apart})


@rule(
    "E5",
    "means that hide their signs",
    "How often a policy wins stands beside each mean.",
    severity=1,
    stage=Stage.COMPARISON,
)
def signs(evidence: Evidence) -> Iterator[Finding]:
    found = [one for one in verdicts(evidence, {}) if one.of > 1]
    if found:
        split = [one for one in found if 0 < one.less < one.of]
        yield Finding(Kind.KEPT, f"of {len(found)} changes {len(split)} have both signs among their pairs")
    for variant, metric, workloads in _over_workloads(verdicts(evidence, {})):
        less, more = (sum(word in says for says in workloads.values()) for word in ("less", "more"))
        message = f"{metric}: less somewhere on {less}, more on {more} of {len(workloads)} workloads"
        yield Finding(Kind.KEPT, message, variant=variant, numbers={"less": less, "more": more})


def _over_workloads(found: Sequence[Verdict]) -> Iterator[tuple[str, str, dict[str, set[str]]]]:
    """Variant, metric, and what the verdicts on each workload say, where there are several."""
    by: dict[tuple[str, str], dict[str, set[str]]] = {}
    for one in found:
        by.setdefault((one.variant, one.metric), {}).setdefault(one.scenario, set()).add(one.says)
    for (variant, metric), workloads in by.items():
        if len(workloads) > 1:
            yield variant, metric, workloads


def _mean(rows: Sequence[Row], metric: str) -> float:
    known = [row.values[metric] for row in rows if row.values[metric] == row.values[metric]]
    return sum(known) / len(known) if known else float("nan")


RULES = (
    metric_in_context, utilisation, skewed, together, repeatable, intervals, pairs, equal_load, censored,
    signs,
)  # fmt: skip
