"""How alike generated estimates are to real ones: distributions, and Figure 16 of the paper on estimates.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP 2005, sections 6 to 8.

Four logs: KTH-SP2 with estimates up to 4 h (KTH4H), CTC-SP2, SDSC-SP2 without what one user alone asked for
(SDSC-106), and SDSC-BLUE, each generated three times: from the maximum alone ("plain", ours), with the share
of the maximum ("vanl", for BLUE also that of its effective maximum, 2 h), and with the shares of one to three
more popular estimates ("impr"). First the distance of the
two distributions of estimates (Kolmogorov-Smirnov; the paper has curves and no numbers), then EASY on the log
with its estimates replaced (Figure 16, bars without numbers): the mean bounded slowdown with a bound of
10 s, which the paper does not state. Runtimes beyond a job's own estimate are cut to it throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.errors import UserError
from headway.experiment.campaign import Campaign, Row, Scenario, Variant, select
from headway.experiment.judging import verdict
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval
from headway.plugins import PluginConfig
from headway.workload import Column, Trace, read_trace, run_jobs, write_swf
from headway_plugins.estimates.modal import Pair, histogram

HOUR = 3600
METRIC = "mean bounded slowdown"
EASY = (Variant("EASY", (PluginConfig("easy"),)),)


@dataclass(frozen=True)
class Log:
    """A log of the paper."""

    name: str
    #: How its file's name begins.
    file: str
    processors: int
    #: Seconds: T_max; jobs that ask for more are left out.
    maximum: int
    vanilla: tuple[tuple[int, float], ...]
    improved: tuple[tuple[int, float], ...]
    #: Without the jobs with estimates that no user but the user with the most such estimates ever gave.
    without_owner: bool = False


LOGS = (
    Log("KTH4H", "KTH-SP2-1996-2.1-cln", 100, 4 * HOUR, ((4 * HOUR, 12.5),), ((300, 25.0),)),
    Log(
        "CTC", "CTC-SP2-1996-3.1-cln", 338, 18 * HOUR, ((18 * HOUR, 23.8),),
        ((900, 10.6), (300, 8.8), (600, 6.4)),
    ),
    Log(
        "SDSC-106", "SDSC-SP2-1998-4.2-cln", 128, 18 * HOUR, ((18 * HOUR, 9.8),),
        ((300, 11.3), (HOUR, 10.5), (600, 7.9)), without_owner=True,
    ),
    Log(
        "BLUE", "SDSC-BLUE-2000-4.1-cln", 1152, 36 * HOUR, ((36 * HOUR, 1.1), (2 * HOUR, 27.3)),
        ((900, 16.0), (1800, 18.0)),
    ),
)  # fmt: skip

#: Labels of the f-model with f above 0.
F_MODELS = ("f1", "f3", "f10", "f100", "f300")


def models(log: Log) -> dict[str, tuple[str, dict[str, Any]]]:
    """What takes the place of the log's estimates: label -> estimate model and options."""
    improved = [list(pair) for pair in (*log.vanilla, *log.improved)]
    return {
        "f0": ("exact", {}),
        **{label: ("f-model", {"f": float(label[1:])}) for label in F_MODELS},
        "feit": ("feit", {}),
        "X2": ("x2", {}),
        "shfl": ("shfl", {}),
        "vanl": ("tsafrir05", {"maximum": log.maximum, "pairs": [list(pair) for pair in log.vanilla]}),
        "impr": ("tsafrir05", {"maximum": log.maximum, "pairs": improved}),
    }


class EstimatesReproduction:
    """The experiments of Tsafrir, Etsion and Feitelson 2005."""

    title = "Modeling user runtime estimates (Tsafrir, Etsion, Feitelson 2005)"
    published = Published(
        system="open", workloads=4, jobs=23_070, intervals=False, estimates="users", backfills=True,
        means_alone=True,
    )  # fmt: skip

    def __init__(self, logs: str = "KTH4H,CTC,SDSC-106,BLUE") -> None:
        self._logs = named_logs(logs)

    def run(self, context: Context) -> list[Claim]:
        claims: list[Claim] = []
        for log in self._logs:
            path = context.trace(log.file)
            if path is None:
                why = f"needs the trace {log.file} (--traces DIR)"
                claims.append(Claim(log.name, "all claims on this log", why, "not run"))
                continue
            trace = prepared(read_trace(path), log)
            claims.append(self._distances(context, log, trace))
            claims += self._slowdowns(context, log, trace)
        return claims

    def _distances(self, context: Context, log: Log, trace: Trace) -> Claim:
        own = np.sort(run_jobs(trace).estimate)
        sets = {"plain": (), "vanl": log.vanilla, "impr": (*log.vanilla, *log.improved)}
        rows = [
            Row(log.name, 0.0, label, seed, {"distance": distance(own, log, pairs, seed)})
            for seed in context.seeds
            for label, pairs in sets.items()
        ]
        context.record(f"distance-{log.name}", rows, (log, sorted(sets)))
        found = {label: select(rows, "distance", variant=label) for label in sets}
        closer = [
            interval(np.subtract(found[worse], found[better]).tolist())
            for worse, better in (("plain", "vanl"), ("vanl", "impr"))
        ]
        said = ", ".join(f"{label} {interval(values)}" for label, values in found.items())
        return Claim(
            f"Distribution, {log.name}", "known shares bring the estimates closer to the log's",
            f"Kolmogorov-Smirnov distance: {said}", verdict(closer),
        )  # fmt: skip

    def _slowdowns(self, context: Context, log: Log, trace: Trace) -> list[Claim]:
        # A file of its own, without the jobs that are left out; each run reads it.
        path = context.out / f"{log.name}.swf"
        write_swf(path, trace.header, trace.records)
        own = Scenario("original", 0.0, log.processors, trace=str(path))
        scenarios = [own, *(
            replace(own, label=label, estimates=name, estimate_options=options)
            for label, (name, options) in models(log).items()
        )]  # fmt: skip
        rows = context.run(f"slowdown-{log.name}", Campaign(EASY, tuple(scenarios), context.seeds))
        return claims_of(log.name, {s.label: select(rows, METRIC, scenario=s.label) for s in scenarios})


def named_logs(names: str, logs: Sequence[Log] = LOGS) -> list[Log]:
    """The logs of ``logs`` with these names, separated by commas; :class:`UserError` for an unknown name."""
    known = {log.name: log for log in logs}
    wanted = [name.strip() for name in str(names).split(",")]
    for name in wanted:
        if name not in known:
            raise UserError(f"--set logs: expected some of {', '.join(known)}, found {name!r}")
    return [known[name] for name in wanted]


def prepared(trace: Trace, log: Log) -> Trace:
    """The log as it is compared: jobs that ran, with an estimate up to the maximum, and cut to it."""
    records = trace.records
    kept = (records[:, Column.RUNTIME] > 0) & (records[:, Column.ALLOCATED] > 0)
    kept &= (records[:, Column.ESTIMATE] > 0) & (records[:, Column.ESTIMATE] <= log.maximum)
    part = trace.part(kept)
    if log.without_owner:
        part = part.part(~owned(part.records))
    cut = part.records.copy()
    cut[:, Column.RUNTIME] = np.minimum(cut[:, Column.RUNTIME], cut[:, Column.ESTIMATE])
    return replace(part, records=cut)


def owned(records: Any) -> Any:
    """Whether a job has an estimate that only one user ever gave, of the user with the most of these."""
    _, which = np.unique(records[:, Column.ESTIMATE], return_inverse=True)
    user = records[:, Column.USER]
    least = np.full(which.max() + 1, np.inf)
    most = -least
    np.minimum.at(least, which, user)
    np.maximum.at(most, which, user)
    owner = np.where((least == most) & (least > 0), least, -1)
    users, modes = np.unique(owner[owner > 0], return_counts=True)
    return np.isin(owner[which], users[modes.argmax()]) if len(users) else np.zeros(len(records), np.bool_)


def distance(own: Any, log: Log, pairs: Sequence[tuple[int, float]], seed: int) -> float:
    """The largest distance of the distribution of a histogram from that of ``own`` estimates, sorted."""
    given = [Pair(time, share) for time, share in pairs]
    found = histogram(len(own), log.maximum, np.random.default_rng(seed), pairs=given)
    times = np.array([mode.seconds for mode in found])
    below = np.concatenate(([0.0], np.cumsum([mode.jobs for mode in found]) / len(own)))
    grid = np.union1d(times, own)
    ours = below[np.searchsorted(times, grid, side="right")]
    theirs = np.searchsorted(own, grid, side="right") / len(own)
    return float(np.abs(ours - theirs).max())


def claims_of(log: str, found: dict[str, list[float]]) -> list[Claim]:
    """The paper's claims on Figure 16; ``found``: the slowdowns of each label, by seed."""
    (original,) = found["original"]
    gap = {label: np.abs(np.array(values) - original) for label, values in found.items()}

    def less(ours: str, theirs: str, values: dict[str, Any]) -> Interval:
        """By how much ``ours`` is less, over the seeds that both have (one value stands for all)."""
        ours_, theirs_ = np.asarray(values[ours]), np.asarray(values[theirs])
        if len(ours_) == len(theirs_) == 1:
            # Neither is drawn: the difference is what it is.
            return Interval(float(theirs_[0] - ours_[0]), 0.0, 1)
        return interval((theirs_ - ours_).tolist())

    def shown(*labels: str) -> str:
        return ", ".join(f"{label} {_mean(found[label])}" for label in labels)

    to_shuffled = {
        label: np.abs(np.array(found[label]) - np.array(found["shfl"])) for label in ("vanl", "impr")
    }
    return [
        Claim(
            f"Figure 16, {log}: S1", "with the original estimates EASY is worse than with any f-model's",
            shown("original", *F_MODELS), verdict([less(f, "original", found) for f in F_MODELS]),
        ),
        Claim(
            f"Figure 16, {log}: S2", "perfect estimates (f0) are closer to the original than f > 0",
            shown("original", "f0"), verdict([less("f0", f, gap) for f in F_MODELS]),
        ),
        Claim(
            f"Figure 16, {log}: S3", "vanl and impr are closer to the original than f > 0 and feit",
            shown("original", "vanl", "impr", "feit"),
            verdict([less(m, f, gap) for m in ("vanl", "impr") for f in (*F_MODELS, "feit")]),
        ),
        Claim(
            f"Figure 16, {log}: S4", "impr is better than vanl, and closer to shfl",
            shown("impr", "vanl", "shfl"),
            verdict([less("impr", "vanl", found), less("impr", "vanl", to_shuffled)]),
        ),
        Claim(
            f"Figure 16, {log}: S5", "shuffled estimates differ from the original: they do better",
            shown("original", "shfl"), verdict([less("shfl", "original", found)]),
        ),
        Claim(
            f"Figure 16, {log}: S6", "doubled estimates do slightly better than the original",
            shown("original", "X2"), verdict([less("X2", "original", found)]),
        ),
    ]  # fmt: skip


def _mean(values: Sequence[float]) -> str:
    """A mean with its interval; without one where nothing is drawn."""
    return str(interval(values if np.ptp(values) > 1e-9 else values[:1]))
