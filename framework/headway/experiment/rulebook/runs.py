"""Rules on single runs: saturation, length, warm-up and cool-down, what was not finished."""

from __future__ import annotations

from collections.abc import Iterator

from headway.experiment.campaign import Row
from headway.experiment.rulebook.rule import Evidence, Finding, Kind, Stage, rule
from headway.experiment.statistics import BATCH_JOBS, BATCHES, batch_interval, interval
from headway.experiment.steady import RISES, SUSPECT, saturation

#: Measured jobs, below which a run is short.
JOBS = BATCH_JOBS
#: Share of the processor-seconds held that no job asked for.
FRAGMENTED = 0.05
#: Metrics that the rules look at.
METRICS = ("mean wait", "mean bounded slowdown")


@rule(
    "25", "saturated workloads",
    "No point at which the machine cannot keep up with what is submitted.",
    severity=3, stage=Stage.RUN,
)  # fmt: skip
def saturated(evidence: Evidence) -> Iterator[Finding]:
    for scenario, x, variant, rows in evidence.points():
        judged = [saturation(row.values["queued deficit"], row.values["wait rise p"]) for row in rows]
        worst = max(rows, key=lambda row: row.values["queued deficit"])
        deficit = worst.values["queued deficit"]
        offered, achieved = _mean(rows, "offered load"), _mean(rows, "achieved load")
        numbers = {"queued deficit": deficit, "offered load": offered, "achieved load": achieved}
        message = (
            f"offered load {offered:.3f}, achieved {achieved:.3f}; at most {deficit:.1%} queued at the end"
        )
        bad = judged.count("saturated")
        if too_many(bad, len(judged)):
            kind, message = Kind.EXCLUDE, f"saturated in {bad} of {len(rows)} runs: {message}"
        elif bad or judged.count("suspect") * 4 > len(judged) or (deficit >= SUSPECT and len(judged) < 4):
            kind, message = Kind.WARN, f"perhaps saturated: {message}"
        else:
            kind = Kind.KEPT
        yield Finding(kind, message, scenario, x, variant, numbers)


def too_many(bad: int, runs: int) -> bool:
    """Whether a point is saturated of which so many runs are: one bad seed of many is a bursty draw, more
    than a quarter of them is the load."""
    return bad * 4 > runs or (bad > 0 and runs < 4)


@rule(
    "26", "internal fragmentation",
    "Jobs hold little that they did not ask for.",
    severity=1, stage=Stage.RUN,
)  # fmt: skip
def fragmentation(evidence: Evidence) -> Iterator[Finding]:
    for scenario, x, variant, rows in evidence.points():
        share = _mean(rows, "internal fragmentation")
        kind = Kind.NOTE if share > FRAGMENTED else Kind.KEPT
        message = f"{share:.1%} of the processor-seconds that jobs held were not asked for"
        yield Finding(kind, message, scenario, x, variant, {"share": share})


@rule(
    "27", "exceedingly short workloads",
    "Enough jobs, and an interval that is narrow enough.",
    severity=3, stage=Stage.RUN,
)  # fmt: skip
def short(evidence: Evidence) -> Iterator[Finding]:
    wanted = evidence.campaign.method.precision
    for scenario, x, variant, rows in evidence.points():
        jobs = sum(row.values["measured jobs"] for row in rows)
        numbers = {"measured jobs": jobs, "runs": float(len(rows))}
        if jobs < JOBS:
            message = f"{jobs:.0f} jobs measured, expected {JOBS}"
            yield Finding(Kind.WARN, message, scenario, x, variant, numbers)
            continue
        found, how = None, f"{len(rows)} runs"
        if len(rows) > 1:
            found = interval([row.values["mean wait"] for row in rows])
        else:
            batches = batch_interval(rows[0].batches.get("mean wait", ()))
            how = f"{BATCHES} batches"
            if batches.interval.count < 2 or not batches.valid:
                message = (
                    f"neighbouring batches of the run depend on each other (r {batches.correlation:.2f})"
                )
                yield Finding(
                    Kind.WARN, message, scenario, x, variant, {**numbers, "r1": batches.correlation}
                )
                continue
            found = batches.interval
        width = found.half / found.mean if found.mean else 0.0
        numbers["half width"] = width
        message = f"mean wait known to ± {width:.0%} from {how} of {jobs:.0f} jobs"
        if width > wanted:
            message = f"inconclusive: {message}, wanted ± {wanted:.0%} (method.precision)"
            yield Finding(Kind.WARN, message, scenario, x, variant, numbers)
        else:
            yield Finding(Kind.KEPT, message, scenario, x, variant, numbers)


@rule(
    "28", "warm-up kept",
    "The start of each run is load and not measured.",
    severity=3, stage=Stage.RUN,
)  # fmt: skip
def warm_up(evidence: Evidence) -> Iterator[Finding]:
    trim = evidence.campaign.method.warmup
    for scenario, x, variant, rows in evidence.points():
        first = _mean(rows, "first measured")
        drifting = [
            row
            for row in rows
            if row.values["wait rise p"] <= RISES and row.values["queued deficit"] < SUSPECT
        ]
        numbers = {"first measured job": first, "unsteady runs": sum(row.values["unsteady"] for row in rows)}
        if not first:
            yield Finding(
                Kind.WARN, f"measured from the first job on (warm-up: {trim})", scenario, x, variant, numbers
            )
        elif numbers["unsteady runs"] * 2 > len(rows):
            message = "no steady state: the rule would cut off half of the waits"
            yield Finding(Kind.WARN, message, scenario, x, variant, numbers)
        elif len(drifting) * 2 > len(rows):
            message = (
                f"waits drift upwards, and nothing is left in the queue at the end ({len(drifting)} runs)"
            )
            yield Finding(Kind.WARN, message, scenario, x, variant, numbers)
        else:
            yield Finding(Kind.KEPT, f"first {first:.0f} jobs not measured", scenario, x, variant, numbers)


@rule(
    "29", "cool-down kept",
    "The end of each run, when nothing arrives any more, is not measured.",
    severity=3, stage=Stage.RUN,
)  # fmt: skip
def cool_down(evidence: Evidence) -> Iterator[Finding]:
    trim = evidence.campaign.method.cooldown
    for scenario, x, variant, rows in evidence.points():
        left = _mean(rows, "unfinished at last submission")
        size = _mean(rows, "processors of unfinished")
        numbers = {"unfinished": left, "processors": size}
        message = f"{left:.0f} jobs of mean size {size:.1f} were not finished when the last came"
        if str(trim) == "none":
            yield Finding(Kind.WARN, f"measured to the last job: {message}", scenario, x, variant, numbers)
        else:
            yield Finding(Kind.KEPT, message, scenario, x, variant, numbers)


def _mean(rows: list[Row], metric: str) -> float:
    return interval([row.values[metric] for row in rows if row.values[metric] == row.values[metric]]).mean


RULES = (saturated, fragmentation, short, warm_up, cool_down)
