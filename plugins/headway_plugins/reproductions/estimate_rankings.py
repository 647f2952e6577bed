"""Which model of users' estimates ranks policies as the users' own estimates do? An experiment of ours.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP 2005, compare EASY with itself
under other estimates. What an operator wants of a model is that it leads to the same choice: the policy that
is better with generated estimates is better with the users'. Here EASY and conservative backfilling, each
also with predictions (``recent``), and the presets ``easy-sjbf`` and ``easy++`` run on logs with their
estimates as they are and replaced by each model, and the orders of the policies are compared
(:mod:`headway.experiment.agreement`). No log says with which parameters its jobs were started, so ``scopred``
could answer nothing and is left out.

Decisions:

- A model gives the whole log its estimates, once; then ten samples are drawn from it by weeks, the same weeks
  of each model (with ``CB``, which replaces the runtimes, a session may end up in another week). Of
  each sample the first ``jobs`` are run.
- Measured are the same jobs of each sample: its first fifth is warm-up, its last tenth cool-down.
- The logs, and what the modal model knows of each, are as in the paper ("vanl" and "impr";
  :mod:`headway_plugins.reproductions.estimates`), and HPC2N in the same way: the share of its maximum, and
  its three most popular estimates; 12 jobs that ask for more than 120 hours are left out. KTH-SP2 as a whole
  has three kinds of limits, and no histogram of the model has enough long estimates for it.
- The Cirne-Berman model needs parameters: the gamma distribution has the mean and variance of the log's
  accuracies, the estimates go from the log's first percentile to its maximum.
- What the rule book leaves out of verdicts (saturated samples) is shown with a mark and has none.
- Runtimes beyond a job's own estimate are cut to it throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headway.errors import UserError
from headway.experiment.agreement import Pairs, decisions, kendall, orders, pairs, taus
from headway.experiment.campaign import Campaign, Row, Scenario, Variant
from headway.experiment.estimates import chosen_model
from headway.experiment.judging import verdict
from headway.experiment.method import Method, Trim
from headway.experiment.reproduction import Claim, Context
from headway.experiment.rulebook import evidence_of, excluded, judge
from headway.experiment.statistics import Interval, interval
from headway.plugins import Catalogue, PluginConfig
from headway.report.atomic import writing
from headway.workload import Trace, estimated_trace, read_trace, run_jobs, write_swf
from headway_plugins.reproductions import estimates
from headway_plugins.reproductions.estimates import HOUR, Log

#: A log of which the paper does not speak.
HPC2N = Log(
    "HPC2N", "HPC2N-2002-2.1-cln", 240, 120 * HOUR, ((120 * HOUR, 0.9),),
    ((6 * HOUR, 8.9), (HOUR, 8.4), (5 * HOUR, 6.2)),
)  # fmt: skip
LOGS = (*estimates.LOGS, HPC2N)
POLICIES = tuple(
    Variant(label, tuple(PluginConfig(name) for name in names))
    for label, names in (
        ("EASY", ("easy",)),
        ("EASY, predictions", ("easy", "recent")),
        ("EASY-SJBF", ("easy-sjbf",)),
        ("EASY++", ("easy++",)),
        ("conservative", ("conservative",)),
        ("conservative, predictions", ("conservative", "recent")),
    )
)
METRICS = ("mean wait", "mean bounded slowdown", "geometric mean bounded slowdown", "p95 wait")
#: The users' estimates, and the same of the next sample: how much the order changes between samples.
OWN, NEXT = "own", "own, next sample"
#: The models that the modal model is compared with: their estimates look like no user's.
MODAL, PLAIN = "impr", ("f0", "f1", "f10", "feit")
#: Where the rule book leaves out a point that is compared.
NO_VERDICT = "no verdict"
#: Jobs below which a sample says little.
FEW = 100


def models(log: Log, trace: Trace) -> dict[str, tuple[str, dict[str, Any]]]:
    """What takes the place of the log's estimates: label -> estimate model and options."""
    of_paper = estimates.models(log)
    jobs = run_jobs(trace)
    accuracy = jobs.runtime / jobs.estimate
    mean, variance = float(accuracy.mean()), float(accuracy.var())
    drawn = {
        "shape": mean**2 / variance,
        "scale": variance / mean,
        "shortest": max(round(float(np.percentile(jobs.estimate, 1))), 1),
        "longest": log.maximum,
    }
    labels = ("f0", "f1", "f10", "feit", "X2", "shfl", "vanl", "impr")
    return {**{label: of_paper[label] for label in labels}, "CB": ("cirne-berman", drawn)}


@dataclass(frozen=True)
class Found:
    """How a model's order of the policies agrees with the users', by one metric on one log."""

    #: By sample; NaN where there is no order.
    tau: Mapping[int, float]
    #: None: pairs are not compared.
    pairs: Pairs | None
    #: How many of the policies the rule book gives no verdict on, with these estimates or the users'.
    left_out: int = 0

    @property
    def interval(self) -> Interval:
        return interval([value for value in self.tau.values() if value == value])


class EstimateRankings:
    """The order of policies with generated estimates against that with the users'."""

    title = "Which model's estimates rank policies as the users' do? (an experiment of ours)"
    published = "The experiment is ours: no paper has published it."

    def __init__(self, logs: str = "KTH4H,CTC,SDSC-106,BLUE,HPC2N", jobs: int = 5000) -> None:
        """``jobs``: of each sample, at least 100."""
        if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < FEW:
            raise UserError(f"--set jobs: expected a whole number of at least {FEW}, found {jobs!r}")
        self._logs = estimates.named_logs(logs, LOGS)
        self._jobs = jobs

    def run(self, context: Context) -> list[Claim]:
        claims: list[Claim] = []
        tables: dict[str, dict[str, dict[str, Found]]] = {}
        for log in self._logs:
            path = context.trace(log.file)
            if path is None:
                why = f"needs the trace {log.file} (--traces DIR)"
                claims.append(Claim(log.name, "(ours) orders of policies", why, "not run"))
                continue
            campaign = self._campaign(context, log, estimates.prepared(read_trace(path), log))
            found = agreements(campaign, context.run(f"rankings-{log.name}", campaign))
            tables[log.name] = found
            claims += [claim_of(log.name, metric, of) for metric, of in found.items()]
        if len(tables) > 1:
            claims += [claim_of("all logs", metric, over_logs(tables, metric)) for metric in METRICS]
        with writing(context.out / "agreement.md") as stream:
            stream.write(agreement_table(tables))
        return claims

    def _campaign(self, context: Context, log: Log, trace: Trace) -> Campaign:
        """The policies on samples of the log with each model's estimates, which are in files of their own."""
        traces = {OWN: trace}
        for label, (name, options) in models(log, trace).items():
            chosen = chosen_model(Catalogue(), name, options, f"{log.name}, {label}")
            traces[label] = estimated_trace(trace, chosen, context.seeds[0])
        scenarios = []
        for label, one in traces.items():
            path = Path(context.out) / f"{log.name}-{label}.swf"
            write_swf(path, one.header, one.records)
            scenarios.append(
                Scenario(label, 0.0, log.processors, trace=str(path), resample="weeks", limit=self._jobs)
            )
        return Campaign(POLICIES, tuple(scenarios), context.seeds, self._method())

    def _method(self) -> Method:
        return Method(
            warmup=Trim(jobs=self._jobs // 5),
            cooldown=Trim(jobs=self._jobs // 10),
            estimates="the users' own, and each model's: they are what is compared",
            interactive="included",
            usage="the logs of the paper on estimates",
            accept={
                "3": "each log is a campaign of its own",
                "15": "estimates that no user would give are compared with the users' on purpose",
                "G2": "the policies are compared as they come",
            },
        )


def agreements(campaign: Campaign, rows: Sequence[Row]) -> dict[str, dict[str, Found]]:
    """Metric -> scenario -> how its order of the policies agrees with that of the scenario "own".

    Orders are of all policies. Pairs with a point that the rule book leaves out of verdicts are not decided.
    """
    evidence = evidence_of(campaign, Catalogue(), rows=rows)
    left_out = excluded(judge(evidence))
    policies = [variant.label for variant in campaign.variants]
    found: dict[str, dict[str, Found]] = {}
    for metric in METRICS:
        decided = decisions(evidence, metric, left_out)
        of = found[metric] = {}
        for label in (scenario.label for scenario in campaign.scenarios):
            out = sum(bool({(OWN, 0.0, one), (label, 0.0, one)} & left_out.keys()) for one in policies)
            if label == OWN:
                of[NEXT] = Found(_next(orders(rows, OWN, metric, policies)), None, out)
            else:
                tau = taus(rows, OWN, label, metric, policies)
                of[label] = Found(tau, pairs(decided, OWN, label), out)
    return found


def _next(order: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Sample -> tau of its order and that of the next one; the first follows the last."""
    seeds = list(order)
    return {a: kendall(order[a], order[b]) for a, b in zip(seeds, [*seeds[1:], seeds[0]], strict=True)}


def over_logs(tables: Mapping[str, Mapping[str, Mapping[str, Found]]], metric: str) -> dict[str, Found]:
    """The mean over the logs, sample by sample, and the sums of their pairs."""
    logs = [of[metric] for of in tables.values()]
    found = {}
    for label in logs[0]:
        seeds = sorted(set.intersection(*(set(of[label].tau) for of in logs)))
        tau = {seed: float(np.mean([of[label].tau[seed] for of in logs])) for seed in seeds}
        counted = [one for of in logs if (one := of[label].pairs) is not None]
        total = Pairs(
            sum(one.decided for one in counted),
            sum(one.same for one in counted),
            sum(one.reversed for one in counted),
        )
        found[label] = Found(tau, total if counted else None, sum(of[label].left_out for of in logs))
    return found


def claim_of(log: str, metric: str, found: Mapping[str, Found]) -> Claim:
    """Whether the modal model's order agrees better with the users' than the plain models' orders do."""
    ours = found[MODAL].tau
    by = {plain: [ours[seed] - tau for seed, tau in found[plain].tau.items()] for plain in PLAIN}
    better = [interval([value for value in values if value == value]) for values in by.values()]
    said = ", ".join(f"{label} {one.interval}{_mark(one)}" for label, one in found.items())
    doubtful = any(found[label].left_out for label in (MODAL, *PLAIN))
    return Claim(
        f"{log}, {metric}",
        f"(ours) {MODAL} ranks the policies more like the users' estimates than {', '.join(PLAIN)}",
        f"Kendall's tau: {said}",
        NO_VERDICT if doubtful else verdict(better),
    )


def _mark(found: Found) -> str:
    """As in campaigns: behind what the rule book leaves out."""
    return " ×" if found.left_out else ""


def agreement_table(tables: Mapping[str, Mapping[str, Mapping[str, Found]]]) -> str:
    """Tau and pairs of each log, metric and model, as Markdown."""
    lines = []
    for log, of in tables.items():
        labels = list(next(iter(of.values())))
        lines += [f"## {log}", "", f"| estimates | {' | '.join(of)} |", "|---" * (len(of) + 1) + "|"]
        for label in labels:
            cells = [
                f"{one.interval}{_mark(one)}" + (f" ({one.pairs})" if one.pairs is not None else "")
                for one in (found[label] for found in of.values())
            ]
            lines.append(f"| {label} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)
