"""A published experiment under the rule book: what its paper says of it, and which rules that breaks.

A reproduction declares its paper's answers as its attribute ``published``. They are judged by the thresholds
of the rules; what cannot be known without the experiment's rows (whether a point was saturated, say) is not
judged. What a paper does not say (None) is *not stated*, which is no breach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headway.experiment.rulebook.book import Judged, Outcome, all_rules
from headway.experiment.rulebook.comparisons import VERDICT_METRICS
from headway.experiment.rulebook.definitions import LEVELS, WORKLOADS
from headway.experiment.rulebook.rule import Finding, Kind
from headway.experiment.rulebook.runs import JOBS

#: Offered load that no machine can carry.
FULL = 1.0


#: Of a reproduction without that attribute, as of a plugin from elsewhere.
UNDECLARED = "The reproduction does not say what its paper says."


@dataclass(frozen=True)
class Published:
    """What a paper says of its experiments; None: nothing."""

    #: How jobs come, of :data:`headway.experiment.method.SYSTEMS`; "": nothing is scheduled.
    system: str
    #: Different models and logs whose results are shown; None: the experiment has no workload.
    workloads: int | None = None
    #: Jobs of a point, over all its runs; of a log that is analysed, its jobs.
    jobs: int | None = None
    #: There are confidence intervals, of what is concluded.
    intervals: bool | None = None
    #: The beginnings and ends of runs are left out.
    warm_up: bool | None = None
    cool_down: bool | None = None
    #: The largest offered load, and what was changed to reach it: "arrivals", "runtimes", "sizes", or "".
    load: float | None = None
    load_by: str = ""
    #: What schedulers read: "users", "model" (of users' estimates), "exact", "multiples"; "": none reads any.
    estimates: str = ""
    #: A policy that backfills is among the compared; None: no queue of jobs is scheduled.
    backfills: bool | None = None
    #: What is concluded on, beside waits, slowdowns and the paper's own measures: "utilisation", "makespan",
    #: "throughput".
    sanity: tuple[str, ...] = ()
    #: Conclusions on slowdowns are on means alone.
    means_alone: bool = False
    #: Processes that share a processor; how jobs gain from more processors.
    levels: int = 1
    speedup: str = ""
    #: Submissions react to waiting.
    feedback: bool = False
    #: Further rules that are broken, and how.
    also: Mapping[str, str] = field(default_factory=dict)


def judged_published(said: Published) -> list[Judged]:
    """What the rules say of a published experiment, worst first; rules that do not apply are left out.

    Raises KeyError for a rule in ``also`` that does not exist.
    """
    rules = {one.name: one for one in all_rules()}
    found = []
    for name, check in _CHECKS.items():
        finding = check(said)
        if finding is not None and name not in said.also:
            found.append(Judged(rules[name], _OUTCOMES[finding.kind], (finding,)))
    for name, how in said.also.items():
        found.append(Judged(rules[name], Outcome.BROKEN, (Finding(Kind.WARN, how),)))
    order = list(Outcome)
    return sorted(found, key=lambda one: (order.index(one.outcome), -one.rule.severity))


def published_rules(said: Published | str | None) -> str:
    """A page's section on that, as Markdown. None: the paper has no experiment; text: why nothing is said."""
    head = "## Rules of evaluation and the published experiment\n\n"
    if isinstance(said, str):
        return f"{head}{said}\n"
    if said is None:
        return f"{head}The paper has no experiment.\n"
    found = judged_published(said)
    broken = [f"- {one.rule.name} {one.rule.title}: {one}." for one in found if one.outcome is Outcome.BROKEN]
    lines = ["Broken:\n", *broken] if broken else ["None is broken, by what the paper says."]
    for outcome, word in ((Outcome.NOT_STATED, "Not stated in the paper"), (Outcome.KEPT, "Kept")):
        those = [f"{one.rule.name} ({one})" for one in found if one.outcome is outcome]
        if those:
            lines.append(f"\n{word}: {', '.join(those)}.")
    notes = [f"{one.rule.name} ({one})" for one in found if one.outcome is Outcome.NOTED]
    if notes:
        lines.append(f"\nAlso good to know: {', '.join(notes)}.")
    return head + "\n".join(lines) + "\n"


_OUTCOMES = {
    Kind.KEPT: Outcome.KEPT,
    Kind.NOTE: Outcome.NOTED,
    Kind.ASK: Outcome.NOT_STATED,
    Kind.WARN: Outcome.BROKEN,
}


def _workloads(said: Published) -> Finding | None:
    if said.workloads is None:
        return None
    count = f"{said.workloads} {'model or log' if said.workloads == 1 else 'models and logs'}"
    return Finding(Kind.KEPT if said.workloads >= WORKLOADS else Kind.WARN, count)


def _static(said: Published) -> Finding | None:
    if said.system == "static":
        return Finding(Kind.NOTE, "all jobs are there at the beginning")
    return None


def _feedback(said: Published) -> Finding | None:
    if said.system != "open":
        return None
    if said.feedback:
        return Finding(Kind.KEPT, "submissions react to waiting")
    return Finding(Kind.NOTE, "submissions do not react to waiting")


def _speedup(said: Published) -> Finding | None:
    if not said.speedup:
        return None
    return Finding(Kind.WARN if said.speedup == "linear" else Kind.KEPT, f"{said.speedup} speedup")


_ESTIMATES = {
    "users": Finding(Kind.KEPT, "users' estimates"),
    "model": Finding(Kind.KEPT, "a model of users' estimates"),
    "exact": Finding(Kind.WARN, "runtimes are known exactly"),
    "multiples": Finding(Kind.WARN, "estimates are multiples of the runtimes"),
}


def _estimates(said: Published) -> Finding | None:
    return _ESTIMATES[said.estimates] if said.estimates else None


def _levels(said: Published) -> Finding | None:
    if said.levels == 1:
        return None
    return Finding(Kind.WARN if said.levels > LEVELS else Kind.KEPT, f"{said.levels} levels")


def _load_by(said: Published) -> Finding | None:
    ways = {
        "arrivals": Finding(Kind.KEPT, "load by the times between submissions"),
        "runtimes": Finding(Kind.NOTE, "load by runtimes: response times change with them"),
        "sizes": Finding(Kind.WARN, "load by sizes"),
    }
    return ways[said.load_by] if said.load_by else None


def _backfills(said: Published) -> Finding | None:
    if said.backfills is None:
        return None
    if said.backfills:
        return Finding(Kind.KEPT, "backfilling is compared with")
    return Finding(Kind.WARN, "no policy backfills")


def _metrics(said: Published) -> Finding | None:
    odd = [name for name in said.sanity if name not in VERDICT_METRICS.get(said.system, ())]
    if said.system != "open" or not odd:
        return None
    return Finding(Kind.WARN, f"conclusions on {' and '.join(odd)} in an open system")


def _means(said: Published) -> Finding | None:
    return Finding(Kind.WARN, "conclusions on mean slowdowns alone") if said.means_alone else None


def _saturated(said: Published) -> Finding | None:
    if said.system != "open":
        return None
    if said.load is None:
        return Finding(Kind.ASK, "offered load, and what was left in the queue")
    if said.load >= FULL:
        return Finding(Kind.WARN, f"offered loads up to {said.load:g}")
    return Finding(Kind.ASK, f"offered loads up to {said.load:g}; what was left in the queue")


def _length(said: Published) -> Finding | None:
    if said.workloads is None:
        return None
    if said.jobs is None:
        return Finding(Kind.ASK, "how many jobs")
    return Finding(Kind.KEPT if said.jobs >= JOBS else Kind.WARN, f"{said.jobs:,} jobs")


def _ends(name: str) -> Callable[[Published], Finding | None]:
    def check(said: Published) -> Finding | None:
        if said.system != "open":
            return None
        found: bool | None = getattr(said, name)
        if found is None:
            return Finding(Kind.ASK, "the paper does not say it")
        return Finding(Kind.KEPT, "left out") if found else Finding(Kind.WARN, "measured, too")

    return check


def _intervals(said: Published) -> Finding:
    if said.intervals is None:
        return Finding(Kind.ASK, "the paper does not mention them")
    if said.intervals:
        return Finding(Kind.KEPT, "confidence intervals")
    return Finding(Kind.WARN, "none is given")


#: Of the rules that an answer of :class:`Published` can be held to.
_CHECKS: Mapping[str, Callable[[Published], Finding | None]] = {
    "2": _static, "3": _workloads, "6": _feedback, "13": _speedup, "15": _estimates, "16": _levels,
    "18": _load_by, "19": _backfills, "22": _metrics, "23": _means, "25": _saturated, "27": _length,
    "28": _ends("warm_up"), "29": _ends("cool_down"), "E1": _intervals,
}  # fmt: skip
