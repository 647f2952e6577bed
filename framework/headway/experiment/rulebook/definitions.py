"""Rules on what a campaign's definition says, and on the questions that it must answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.decisions import Reserve, Resize
from headway.experiment.planned_starts import DRIVE
from headway.experiment.rulebook.rule import Evidence, Finding, Kind, Stage, rule
from headway.journal.latencies import Latencies
from headway.journal.latency_summary import QUANTILES

#: Different models and traces, below which a result may be that of its workload.
WORKLOADS = 4
#: Levels of multiprogramming, beyond which processes no longer fit into memory.
LEVELS = 4
#: Machine sizes, from which on one can speak of scaling.
SIZES = 3


@rule(
    "3", "too few workloads",
    "At least four models and traces; wins are counted over workloads.",
    severity=3, stage=Stage.DEFINITION,
)  # fmt: skip
def few_workloads(evidence: Evidence) -> Iterator[Finding]:
    found = {scenario.trace or scenario.model for scenario in evidence.campaign.scenarios}
    if len(found) < WORKLOADS:
        count = f"{len(found)} model or trace" if len(found) == 1 else f"{len(found)} models and traces"
        yield Finding(
            Kind.WARN,
            f"{count}; policies that were alike on three workloads differed on others",
            numbers={"workloads": len(found)},
        )
    else:
        yield Finding(Kind.KEPT, f"{len(found)} models and traces", numbers={"workloads": len(found)})


@rule(
    "6", "open model without feedback",
    "Submissions react to waiting beside the open replay (feedback: chains), or `method` says that they do "
    "not.",
    severity=2, stage=Stage.DEFINITION,
)  # fmt: skip
def feedback(evidence: Evidence) -> Iterator[Finding]:
    scenarios = evidence.campaign.scenarios
    reacting = [one for one in scenarios if one.feedback]
    opened = [replace(one, label="") for one in scenarios if not one.feedback]
    following = {(facts.scenario, facts.x): facts for facts in evidence.workloads}
    for one in reacting:
        facts = following.get((one.label, one.x))
        if facts is not None and not facts.following:
            yield Finding(Kind.WARN, "no job follows another: nothing reacts", one.label, one.x)
        elif replace(one, label="", feedback="") not in opened:
            message = "jobs follow others, and the open replay is not beside it"
            yield Finding(Kind.WARN, message, one.label, one.x)
        elif facts is None:
            yield Finding(Kind.KEPT, "jobs follow others, beside the open replay", one.label, one.x)
        else:
            how = "as inferred from users' think times" if facts.inferred else "as the trace says"
            message = f"{facts.following:.0%} of jobs follow another, {how}; beside the open replay"
            numbers = {"following": facts.following}
            yield Finding(Kind.KEPT, message, one.label, one.x, numbers=numbers)
    if not reacting and evidence.campaign.method.system == "closed":
        yield Finding(Kind.WARN, "a closed system in which no workload reacts (feedback: chains)")
    elif not reacting and evidence.campaign.method.system == "open":
        yield Finding(Kind.NOTE, "submissions do not react to waiting: an open system")


@rule(
    "7", "limited machine usage",
    "method.usage says what the machine is used for.",
    severity=1, stage=Stage.DEFINITION,
)  # fmt: skip
def usage(evidence: Evidence) -> Iterator[Finding]:
    yield _asked(evidence.campaign.method.usage, "usage", "what is the machine used for, and by which users?")


@rule(
    "8", "black-box applications",
    "`method` says how the emulation treats jobs.",
    severity=1, stage=Stage.DEFINITION,
)  # fmt: skip
def black_boxes(evidence: Evidence) -> Iterator[Finding]:
    said = evidence.campaign.method.applications
    yield Finding(
        Kind.NOTE, f"jobs are {said}" if said else "jobs are rectangles: they do not disturb each other"
    )


@rule(
    "9", "biased applications",
    "Where results depend on how applications behave, method.applications says which they are.",
    severity=1, stage=Stage.DEFINITION,
)  # fmt: skip
def applications(evidence: Evidence) -> Iterator[Finding]:
    if any(one.levels > 1 or one.speedup or Resize in one.needs for one in evidence.traits):
        said = evidence.campaign.method.applications
        yield _asked(said, "applications", "which applications share processors or change their sizes?")


@rule(
    "10", "oversimplified communication",
    "method.applications says how jobs communicate.",
    severity=1, stage=Stage.DEFINITION,
)  # fmt: skip
def communication(evidence: Evidence) -> Iterator[Finding]:
    if any(Reserve in one.needs for one in evidence.traits):
        said = evidence.campaign.method.applications
        yield _asked(said, "applications", "how do jobs that are coscheduled communicate?")


@rule(
    "11", "coarse-grained applications",
    "method.applications says how often processes wait for each other.",
    severity=1, stage=Stage.DEFINITION,
)  # fmt: skip
def granularity(evidence: Evidence) -> Iterator[Finding]:
    if any(one.levels > 1 for one in evidence.traits):
        said = evidence.campaign.method.applications
        yield _asked(
            said, "applications", "how often do processes that share processors wait for each other?"
        )


@rule(
    "13", "linear speedup of malleable and moldable jobs",
    "A plugin that resizes jobs says what they gain.",
    severity=2, stage=Stage.DEFINITION,
)  # fmt: skip
def speedup(evidence: Evidence) -> Iterator[Finding]:
    for one in evidence.traits:
        if one.speedup:
            kind = Kind.WARN if one.speedup == "linear" else Kind.KEPT
            yield Finding(kind, f"{one.speedup} speedup assumed", variant=one.label)
        elif Resize in one.needs:
            yield Finding(Kind.WARN, "resizes jobs and does not name the speedup", variant=one.label)


@rule(
    "16", "unrealistic multiprogramming level",
    "At most four processes share a processor.",
    severity=1, stage=Stage.DEFINITION,
)  # fmt: skip
def multiprogramming(evidence: Evidence) -> Iterator[Finding]:
    for one in evidence.traits:
        if one.levels > LEVELS:
            message = f"{one.levels} levels; their memory seldom fits beyond {LEVELS}"
            yield Finding(Kind.WARN, message, variant=one.label, numbers={"levels": one.levels})
        elif one.levels > 1:
            yield Finding(
                Kind.KEPT, f"{one.levels} levels", variant=one.label, numbers={"levels": one.levels}
            )


@rule(
    "19", "no queue management to compare with",
    "One of the policies backfills.",
    severity=2, stage=Stage.DEFINITION,
)  # fmt: skip
def nobody_backfills(evidence: Evidence) -> Iterator[Finding]:
    found = [one.label for one in evidence.traits if one.backfills]
    if found:
        yield Finding(Kind.KEPT, f"{len(found)} of {len(evidence.traits)} policies backfill")
    else:
        yield Finding(Kind.WARN, "no policy backfills: add easy or conservative")


@rule(
    "20", "wall-clock estimates under time slicing",
    "Where processes share processors, estimates bound work and not time on the clock.",
    severity=1, stage=Stage.DEFINITION,
)  # fmt: skip
def estimates_of_work(evidence: Evidence) -> Iterator[Finding]:
    for one in evidence.traits:
        if one.levels > 1 and one.reads_estimates:
            message = (
                "the emulation counts work against estimates: a job that shares processors is not cut off "
                "early"
            )
            yield Finding(Kind.KEPT, message, variant=one.label)


@rule(
    "24", "scalability from few nodes",
    "Where the machine's size is varied: at least three sizes.",
    severity=1, stage=Stage.DEFINITION,
)  # fmt: skip
def few_sizes(evidence: Evidence) -> Iterator[Finding]:
    sizes = sorted({scenario.processors for scenario in evidence.campaign.scenarios})
    if 1 < len(sizes) < SIZES:
        yield Finding(Kind.WARN, f"{len(sizes)} machine sizes", numbers={"sizes": len(sizes)})
    else:
        yield Finding(Kind.NOTE, f"largest machine emulated: {sizes[-1]} processors")


@rule(
    "30", "overhead neglected",
    "Starts take time in some runs (latencies), or method.overhead says why not.",
    severity=2, stage=Stage.DEFINITION,
)  # fmt: skip
def overhead(evidence: Evidence) -> Iterator[Finding]:
    method = evidence.campaign.method
    known = _measured(evidence)
    taken = [one for one in evidence.campaign.scenarios if one.latencies]
    for one in taken:
        assert one.latencies is not None
        drawn = method.real is not None and one.latencies == method.real.latencies
        summary = one.latencies.summary()
        message = f"as measured: {summary}" if drawn else f"each start takes {summary.start[0]:g} s"
        yield Finding(Kind.KEPT, message, one.label, one.x, numbers=_of_latencies(one.latencies))
    if taken:
        return
    if known and not method.overhead:
        assert method.real is not None
        message = f"starts take no time, and of {known}: use it (latencies: [0, measured] of a workload)"
        yield Finding(Kind.ASK, message, numbers=_of_latencies(method.real.latencies))
        return
    how = method.overhead or "starts take no time; repeat with some (latencies: [0, 5, 30] of a workload)"
    beside = f"of {known}, not used" if known else _nothing_measured(evidence)
    yield Finding(Kind.NOTE, f"{how}; {beside}")


def _measured(evidence: Evidence) -> str:
    """Which latencies of a real cluster are at hand; "": none."""
    real = evidence.campaign.method.real
    return f"cluster {real.cluster} is known {real.latencies.summary()}" if real and real.latencies else ""


def _nothing_measured(evidence: Evidence) -> str:
    real = evidence.campaign.method.real
    if real is not None:
        return f"no latency of cluster {real.cluster} was measured yet: a daemon in mode drive measures it"
    return f"no journal of a real cluster was used: {_USE}"


#: How what a daemon measured comes into a campaign.
_USE = "headway starts -c CONFIG --out FILE, and the file under method.measured"


def _of_latencies(latencies: Latencies) -> dict[str, float]:
    summary = latencies.summary()
    found = {"measured starts": float(summary.starts), "measured ends": float(summary.ends)}
    for name, values in (("start", summary.start), ("end", summary.end)):
        found |= {f"{name} p{100 * q:.0f}": value for q, value in zip(QUANTILES, values, strict=False)}
    return found


@rule(
    "32", "simulation only",
    "Planned starts stand beside real starts (method.measured), or `method` says that all was emulated.",
    severity=1, stage=Stage.DEFINITION,
)  # fmt: skip
def emulated_only(evidence: Evidence) -> Iterator[Finding]:
    real = evidence.campaign.method.real
    if real is None:
        message = f"emulated only; planned beside real starts, from the journal of a daemon: {_USE}"
        yield Finding(Kind.NOTE, message)
        return
    counted = {mode: starts for mode, starts in real.starts.items() if starts.began}
    for mode, starts in counted.items():
        how = "driven" if mode == DRIVE else "watched"
        numbers: dict[str, float] = {
            "planned": starts.planned,
            "began": starts.began,
            "unplanned": starts.unplanned,
        }
        numbers |= {f"later p{100 * q:.0f}": value for q, value in zip(QUANTILES, starts.later, strict=False)}
        yield Finding(Kind.KEPT, f"cluster {real.cluster}, {how}: {starts}", numbers=numbers)
    if not counted:
        message = f"emulated only: no planned start of cluster {real.cluster} came in the counted time"
        yield Finding(Kind.NOTE, message)


@rule(
    "G2", "a tunable option with one value",
    "An option that a plugin names as tunable has several values.",
    severity=2, stage=Stage.DEFINITION,
)  # fmt: skip
def untuned(evidence: Evidence) -> Iterator[Finding]:
    values: dict[tuple[str, str], set[str]] = {}
    for one in evidence.traits:
        for key, value in one.tunable.items():
            values.setdefault(key, set()).add(repr(value))
    for (plugin, option), tried in values.items():
        if len(tried) == 1:
            (value,) = tried
            message = f"{option} of {plugin} is {value} throughout; headway tune {plugin} looks at others"
            yield Finding(Kind.WARN, message)
        else:
            yield Finding(Kind.KEPT, f"{option} of {plugin}: {len(tried)} values")


def _asked(answer: str, key: str, question: str) -> Finding:
    if answer:
        return Finding(Kind.KEPT, answer)
    return Finding(Kind.ASK, f"method.{key}: {question}")


RULES = (
    few_workloads, feedback, usage, black_boxes, applications, communication, granularity, speedup,
    multiprogramming, nobody_backfills, estimates_of_work, few_sizes, overhead, emulated_only, untuned,
)  # fmt: skip
