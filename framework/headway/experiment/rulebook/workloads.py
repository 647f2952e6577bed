"""Rules on what a campaign's workloads look like, before anything runs.

Thresholds are read from five logs of the Parallel Workloads Archive (CTC 3.1, SDSC SP2 4.2, SDSC Blue 4.1,
KTH 2.1, HPC2N 2.1, cleaned): see the table in ``docs/papers/evaluation_pitfalls.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headway.decisions import Resize
from headway.experiment.facts import WorkloadFacts
from headway.experiment.rulebook.rule import Evidence, Finding, Kind, Stage, rule
from headway.workload.dispersion import FLURRY

#: Share of sizes that are powers of two: logs have 0.74 to 0.92.
POWERS_OF_TWO = 0.6
#: Coefficient of variation of the times between submissions: below it arrivals look like a Poisson
#: process; logs have 2.77 to 5.69.
POISSON, CALM = 1.2, 2.0
#: Index of dispersion in hours and days: logs have 8.6 to 100, and 26 to 217.
CALM_HOURS, CALM_DAYS = 5.0, 10.0
#: Share of jobs at one instant, from which all arrive at once.
AT_ONCE = 0.5
#: Share of jobs of the interactive queue; 0.31 of SDSC Blue.
INTERACTIVE = 0.01
#: Shares of exact estimates (logs: 0.002 at most) and of one multiple of the runtime (logs: 0.116 at most).
EXACT, CONCENTRATED = 0.1, 0.3
#: Share of jobs whose memory is known.
MEMORY = 0.1
#: Share of jobs or work that is larger than the machine.
TOO_LARGE = 0.01
#: Factors from this to its inverse leave a log what it is.
NEAR = 0.8


def _where(facts: WorkloadFacts) -> dict[str, Any]:
    return {"scenario": facts.scenario, "x": facts.x}


def _per_scenario(found: list[Finding]) -> Iterator[Finding]:
    """One finding a scenario, the worst, so that seeds do not repeat it."""
    worst: dict[tuple[str, float | None], Finding] = {}
    for finding in found:
        key = (finding.scenario, finding.x)
        if key not in worst or finding.kind > worst[key].kind:
            worst[key] = finding
    yield from worst.values()


@rule(
    "1", "invalid statistical models",
    "Models have sizes like logs, mostly powers of two, and bursty arrivals.",
    severity=3, stage=Stage.WORKLOAD,
)  # fmt: skip
def models(evidence: Evidence) -> Iterator[Finding]:
    found = []
    for facts in evidence.models:
        powers, cv = facts.powers_of_two, facts.gap_cv
        numbers = _known({"powers of two": powers, "CV of gaps": cv})
        if powers is not None and powers < POWERS_OF_TWO:
            message = f"{powers:.0%} of sizes are powers of two; production logs have 74 to 92 %"
            found.append(Finding(Kind.WARN, message, **_where(facts), numbers=numbers))
        elif cv is not None and cv < POISSON:
            message = (
                f"coefficient of variation of the gaps {cv:.2f}, as if drawn by Poisson; logs have 2.8 to 5.7"
            )
            found.append(Finding(Kind.WARN, message, **_where(facts), numbers=numbers))
        elif powers is not None and cv is not None:
            message = f"{powers:.0%} powers of two, coefficient of variation of the gaps {cv:.2f}"
            found.append(Finding(Kind.KEPT, message, **_where(facts), numbers=numbers))
    yield from _per_scenario(found)


@rule(
    "2", "only static workloads",
    "Jobs arrive over time, or method.system is static.",
    severity=3, stage=Stage.WORKLOAD,
)  # fmt: skip
def static(evidence: Evidence) -> Iterator[Finding]:
    if evidence.campaign.method.system == "static":
        yield Finding(Kind.NOTE, "all jobs are there at the beginning: only the makespan means something")
        return
    found = []
    for facts in evidence.workloads:
        numbers = _known({"at one instant": facts.at_one_instant, "span": facts.span})
        if (facts.at_one_instant or 0) >= AT_ONCE or facts.span < facts.longest_runtime:
            message = (
                f"jobs arrive over {facts.span:.0f} s, the longest runs {facts.longest_runtime:.0f} s: "
                "only makespan means something (method.system: static)"
            )
            found.append(Finding(Kind.REFUSE, message, **_where(facts), numbers=numbers))
        else:
            found.append(Finding(Kind.KEPT, "jobs arrive over time", **_where(facts), numbers=numbers))
    yield from _per_scenario(found)


@rule(
    "4", "no burstiness, no self-similarity",
    "Models are about as bursty as logs.",
    severity=2, stage=Stage.WORKLOAD,
)  # fmt: skip
def bursts(evidence: Evidence) -> Iterator[Finding]:
    found = []
    for facts in evidence.models:
        figures = {"CV of gaps": facts.gap_cv, "IDC 1 h": facts.idc_hour, "IDC 1 d": facts.idc_day}
        least = {"CV of gaps": CALM, "IDC 1 h": CALM_HOURS, "IDC 1 d": CALM_DAYS}
        numbers = _known(figures)
        if not numbers:
            continue
        calm = [f"{name} {value:.1f}" for name, value in numbers.items() if value < least[name]]
        if calm:
            message = f"calmer than any of five logs: {', '.join(calm)}"
            found.append(Finding(Kind.WARN, message, **_where(facts), numbers=numbers))
        else:
            message = ", ".join(f"{name} {value:.1f}" for name, value in numbers.items())
            found.append(Finding(Kind.KEPT, message, **_where(facts), numbers=numbers))
    yield from _per_scenario(found)


@rule(
    "5", "flurries and polluted data",
    "Logs are cleaned, and no user floods a week.",
    severity=2, stage=Stage.WORKLOAD,
)  # fmt: skip
def flurries(evidence: Evidence) -> Iterator[Finding]:
    found = []
    for facts in evidence.recorded:
        ratio = facts.largest_user_week
        numbers = _known({"largest user-week": ratio})
        if ratio is not None and ratio > FLURRY:
            message = (
                f"user {facts.flurry_user} submitted {facts.flurry_jobs} of the {facts.flurry_all} jobs of "
                f"week {facts.flurry_week + 1}, {ratio:.1f} times the jobs of the median week"
            )
            found.append(Finding(Kind.WARN, message, **_where(facts), numbers=numbers))
        elif not facts.cleaned:
            message = (
                'the header does not say CLEANED: was the log looked through? (method.accept: {"5": ...})'
            )
            found.append(Finding(Kind.ASK, message, **_where(facts), numbers=numbers))
        else:
            message = "cleaned" + (
                f"; busiest user {ratio:.2f} of a median week" if ratio is not None else ""
            )
            found.append(Finding(Kind.KEPT, message, **_where(facts), numbers=numbers))
    yield from _per_scenario(found)


@rule(
    "12", "oversimplified memory",
    "Memory that a log knows is used; moldable jobs name their least memory.",
    severity=1, stage=Stage.WORKLOAD,
)  # fmt: skip
def memory(evidence: Evidence) -> Iterator[Finding]:
    found = []
    for facts in evidence.recorded:
        if facts.memory > MEMORY:
            message = f"memory is known of {facts.memory:.0%} of jobs and not used"
            found.append(Finding(Kind.NOTE, message, **_where(facts), numbers={"memory known": facts.memory}))
    yield from _per_scenario(found)
    molding = [one.label for one in evidence.traits if Resize in one.needs]
    for facts in evidence.workloads if molding else ():
        if facts.moldable == 0:
            message = "jobs are made smaller, and no job says on how many processors its memory fits"
            yield Finding(Kind.REFUSE, message, **_where(facts), variant=molding[0])
            return


@rule(
    "14", "interactive jobs ignored",
    "method.interactive says what became of interactive jobs.",
    severity=2, stage=Stage.WORKLOAD,
)  # fmt: skip
def interactive(evidence: Evidence) -> Iterator[Finding]:
    said = evidence.campaign.method.interactive
    found = []
    for facts in evidence.workloads:
        numbers = {"interactive": facts.interactive, "up to 60 s": facts.short}
        shares = f"{facts.short:.0%} of jobs run at most a minute"
        if facts.interactive > INTERACTIVE and not said:
            message = (
                f"{facts.interactive:.0%} of jobs are of the interactive queue, {shares}: "
                "method.interactive: are they included or left out?"
            )
            found.append(Finding(Kind.ASK, message, **_where(facts), numbers=numbers))
        else:
            message = f"{shares}; interactive jobs: {said or 'under 1 %'}"
            found.append(Finding(Kind.KEPT, message, **_where(facts), numbers=numbers))
    yield from _per_scenario(found)


@rule(
    "15", "runtimes as estimates",
    "Policies that read estimates get estimates like users'.",
    severity=3, stage=Stage.WORKLOAD,
)  # fmt: skip
def estimates(evidence: Evidence) -> Iterator[Finding]:
    if not any(one.reads_estimates for one in evidence.traits):
        return
    found = []
    for facts in evidence.workloads:
        exact, same = facts.exact_estimates, facts.estimate_concentration
        numbers = _known({"estimated": facts.estimated, "exact": exact, "concentration": same})
        message = ""
        if facts.estimated == 0 or exact is None or same is None:
            message = "no job has an estimate: runtimes take their place"
        elif exact > EXACT:
            message = f"{exact:.0%} exact; logs: 0.2 % at most"
        elif same > CONCENTRATED:
            message = f"{same:.0%} are one multiple of the runtime, which improves results artificially"
        if message:
            found.append(Finding(Kind.WARN, message, **_where(facts), numbers=numbers))
        else:
            message = f"{exact:.1%} exact, at most {same:.1%} one multiple of the runtime"
            found.append(Finding(Kind.KEPT, message, **_where(facts), numbers=numbers))
    yield from _per_scenario(found)


@rule(
    "17", "traces on machines of another size",
    "A log runs on a machine of its own size.",
    severity=3, stage=Stage.WORKLOAD,
)  # fmt: skip
def machine_size(evidence: Evidence) -> Iterator[Finding]:
    found = []
    for facts in evidence.recorded:
        own = facts.own_processors
        numbers = _known({"too large": facts.too_large, "their work": facts.too_large_work, "own": own})
        dropped = f"; {facts.dropped} jobs left out (first: {facts.dropped_why})" if facts.dropped else ""
        remedy = f": run it on its own {own}" if own is not None else ""
        if max(facts.too_large, facts.too_large_work) > TOO_LARGE:
            message = (
                f"{facts.too_large:.0%} of jobs and {facts.too_large_work:.0%} of work are larger than "
                f"{facts.processors} processors{remedy}"
            )
            found.append(Finding(Kind.REFUSE, message, **_where(facts), numbers=numbers))
        elif own is None:
            message = f"the header names no machine size{dropped}"
            found.append(Finding(Kind.ASK, message, **_where(facts), numbers=numbers))
        elif own != facts.processors:
            message = f"{facts.processors} processors, recorded on {own}{dropped}"
            found.append(Finding(Kind.WARN, message, **_where(facts), numbers=numbers))
        else:
            found.append(Finding(Kind.KEPT, f"its own {own}{dropped}", **_where(facts), numbers=numbers))
    yield from _per_scenario(found)


@rule(
    "18", "load changed by one parameter",
    "A log's load is changed by the times between submissions, and not by much.",
    severity=3, stage=Stage.WORKLOAD,
)  # fmt: skip
def load_by_one_parameter(evidence: Evidence) -> Iterator[Finding]:
    found = []
    for facts in evidence.recorded:
        for how, factor in facts.scaled.items():
            if factor == 1.0:
                continue
            load = facts.offered_load
            numbers = {f"factor of {how}": factor, **_known({"offered load": load})}
            to = f"offered load {load:.3f} by " if load is not None else ""
            kind, message = Kind.KEPT, f"{to}{how} x {factor:.3g}"
            if how == "sizes":
                kind, message = Kind.WARN, f"{message}: what fits beside what rules the result then"
            elif not NEAR <= factor <= 1 / NEAR:
                kind, message = Kind.WARN, f"{message}: far from the log's own"
            elif how == "runtimes":
                kind, message = Kind.NOTE, f"{message}: response times change with them"
            found.append(Finding(kind, message, **_where(facts), numbers=numbers))
    yield from _per_scenario(found)


@rule(
    "G3", "said and not measured",
    "What method says of estimates and interactive jobs is what the workloads show.",
    severity=2, stage=Stage.WORKLOAD,
)  # fmt: skip
def said_and_measured(evidence: Evidence) -> Iterator[Finding]:
    method = evidence.campaign.method
    found = []
    for facts in evidence.workloads:
        exact = facts.exact_estimates
        numbers = _known({"exact": exact, "interactive": facts.interactive})
        if method.estimates == "users" and (exact is None or exact > EXACT):
            share = "no job has one" if exact is None else f"{exact:.0%} are exact"
            message = f"method.estimates says users', and {share}"
            found.append(Finding(Kind.WARN, message, **_where(facts), numbers=numbers))
        elif method.estimates == "exact" and (exact is None or exact < 1 - EXACT):
            share = "no job has one" if exact is None else f"{exact:.0%} are"
            message = f"method.estimates says exact, and {share}"
            found.append(Finding(Kind.WARN, message, **_where(facts), numbers=numbers))
        elif method.interactive == "left out" and facts.interactive > INTERACTIVE:
            message = f"method.interactive says left out, and {facts.interactive:.0%} of jobs are interactive"
            found.append(Finding(Kind.WARN, message, **_where(facts), numbers=numbers))
        else:
            days = facts.span / 86400
            message = f"{facts.jobs} jobs over {days:.1f} days, {facts.estimated:.0%} with estimates"
            found.append(Finding(Kind.KEPT, message, **_where(facts), numbers=numbers))
    yield from _per_scenario(found)


def _known(figures: dict[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items() if value is not None}


RULES = (
    models, static, bursts, flurries, memory, interactive, estimates, machine_size, load_by_one_parameter,
    said_and_measured,
)  # fmt: skip
