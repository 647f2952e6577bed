"""Tables 3 to 6 and Figures 7 to 12 of the paper on elastic job bundling, as far as they have numbers.

F. Liu, J. B. Weissman: Elastic Job Bundling: An Adaptive Resource Request Strategy for Large-Scale Parallel
Applications. SC 2015, section 4.

Each trace is replayed under EASY and under EASY with bundling of all jobs of 8 processors or more; and a
random sample of the jobs that wait is run one at a time as the only elastic job (:mod:`.ejb_single`), under
the paper's settings of O_max, lambda and Delta. Runs are deterministic: intervals are over jobs,
before against after, as
in the paper (1.96 standard errors of the mean difference).

Decisions on what the paper leaves open: the first 1 % of jobs by submission and those that end after the last
arrival in either run do not count; jobs of unknown runtime or of 0 s run 1 s; "elastic" is who was elastic
in the run with bundling. "Unchanged" in the claims on single jobs is within a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.emulation import emulate
from headway.experiment.campaign import Row
from headway.experiment.reproduction import Claim, Context, size_verdict, verdict
from headway.experiment.statistics import Interval
from headway.metrics.jobs import BOUND
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult
from headway.workload import TraceJob, read_swf, trace_jobs
from headway.workload.trace import Column
from headway_plugins.bundling.figures import fragmentation
from headway_plugins.reproductions.ejb_single import Single, run_singles

Floats = NDArray[np.float64]

#: The smallest job that is elastic.
LEAST = 8
#: By how many percent the paper's Table 5 has turnaround, wait and run time change.
TABLE_5 = {
    "CTC": {"elastic": (-11.8, -18.4, 12.4), "others": (-7.2, -19.9, 0.0), "all": (-9.3, -18.9, 2.6)},
    "SDSC": {"elastic": (-29.8, -40.2, 21.7), "others": (-18.1, -35.3, 0.0), "all": (-26.5, -39.2, 10.2)},
    "BLUE": {"elastic": (-11.8, -19.9, 8.4), "others": (-22.2, -82.0, 0.0), "all": (-13.4, -24.1, 5.7)},
    "KTH": {"elastic": (-21.0, -38.2, 15.9), "others": (0.4, 1.4, 0.0), "all": (-8.7, -24.7, 3.8)},
}
#: Table 6: fragmentation, percent.
TABLE_6 = {"CTC": -34.0, "SDSC": -57.4, "BLUE": -58.0, "KTH": -58.8}
#: Table 3: wait, run time, turnaround, percent; Table 4: subjobs, migrations, percent of the run time in
#: migrations, percent of resources beyond what is needed.
TABLE_3 = {
    "CTC": (-50.4, 29.3, -33.9), "SDSC": (-68.9, 57.6, -48.4), "BLUE": (-59.8, 26.9, -36.1),
    "KTH": (-66.5, 34.9, -37.8),
}  # fmt: skip
TABLE_4 = {
    "CTC": (3.3, 2.1, 8.5, 19.7), "SDSC": (2.8, 1.7, 5.6, 16.4), "BLUE": (2.7, 1.5, 8.6, 18.2),
    "KTH": (2.7, 1.6, 6.4, 24.1),
}  # fmt: skip
#: The traces' files begin with these.
FILES = {"CTC": "CTC-SP2", "SDSC": "SDSC-SP2", "BLUE": "SDSC-BLUE", "KTH": "KTH-SP2"}
_INFINITE = float("inf")
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    **{f"omax {value}": {"omax": value} for value in (2, 4, 16, 64)},
    **{f"lambda {value:g}": {"migration": value} for value in (60.0, 600.0, _INFINITE)},
    **{f"Delta {value:g}": {"penalty": value} for value in (0.8, 2.0)},
}


@dataclass(frozen=True)
class Course:
    """What became of the jobs of a trace, as columns in order of submission. Times are seconds."""

    submit: Floats
    start: Floats
    end: Floats
    processors: Floats
    elastic: NDArray[np.bool_]
    #: Processors that were idle while somebody waited, mean.
    fragmentation: float

    @property
    def measures(self) -> dict[str, Floats]:
        return {
            "turnaround": self.end - self.submit,
            "wait": self.start - self.submit,
            "run time": self.end - self.start,
        }


def load(path: Path, limit: int | None) -> tuple[list[TraceJob], int]:
    """A trace's jobs, and the processors of its machine."""
    trace = read_swf(path)
    records = trace.records.copy()
    # What ran for no time, or for an unknown one.
    runtimes = records[:, Column.RUNTIME]
    runtimes[runtimes <= 0] = 1.0
    size = trace.max_processors
    assert size is not None
    jobs, _ = trace_jobs(replace(trace, records=records), size, limit=limit)
    cut = [(job, job.job.request.walltime) for job in jobs]
    return [msgspec.structs.replace(job, runtime=min(job.runtime, most)) for job, most in cut], size


def run_all(jobs: Sequence[TraceJob], processors: int, policy: str) -> Course:
    """A whole trace under a policy."""
    catalogue = Catalogue()
    configs = catalogue.enabled([PluginConfig(policy, {})])
    result: RunResult = emulate(ClusterDescription.flat(processors), jobs, configs, catalogue, label=policy)

    def column(values: Any) -> Floats:
        return np.array([np.nan if value is None else value for value in values], np.float64)

    submit = column(job.job.submit_time for job in result.jobs)
    start = column(job.start_time for job in result.jobs)
    size = column(job.job.request.processors for job in result.jobs)
    bundled = np.array([bool(job.members) for job in result.jobs])
    first = float(submit[len(submit) // 100])
    return Course(
        submit, start, column(job.end_time for job in result.jobs), size,
        bundled | ((start > submit) & (size >= LEAST)),
        fragmentation(result, first, float(submit[-1])),
    )  # fmt: skip


def counted(*courses: Course) -> NDArray[np.bool_]:
    """The jobs that count: neither of the first 1 % nor ended after the last arrival."""
    submit = courses[0].submit
    among = np.arange(len(submit)) >= len(submit) // 100
    for course in courses:
        among &= course.end <= submit[-1]
    return among


def change(before: Floats, after: Floats) -> Interval:
    """The change of the mean in percent, with the paper's interval of the mean difference."""
    difference, mean = after - before, float(before.mean())
    if not mean or len(before) < 2:
        return Interval(0.0, 0.0, len(before))
    half = 1.96 * float(difference.std(ddof=1)) / len(before) ** 0.5
    return Interval(100 * float(difference.mean()) / mean, abs(100 * half / mean), len(before))


def opposite(found: Interval) -> Interval:
    return Interval(-found.mean, found.half, found.count)


def inversions(starts: Floats) -> int:
    """Pairs of which the one submitted later starts first; ``starts`` in order of submission."""
    rank = np.unique(starts, return_inverse=True)[1].tolist()
    size = max(rank, default=0) + 2
    tree, count = [0] * (size + 1), 0
    for seen, value in enumerate(rank):
        below, at = 0, value + 1
        while at:
            below += tree[at]
            at &= at - 1
        count += seen - below
        at = value + 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return count


class EjbReproduction:
    """The experiments of Liu and Weissman 2015."""

    title = "Elastic job bundling (Liu and Weissman 2015)"

    def __init__(
        self,
        names: Sequence[str] = tuple(FILES),
        targets: int = 400,
        settings: bool = True,
        limit: int | None = None,
    ) -> None:
        """``names``: of the traces (CTC, SDSC, BLUE, KTH); ``targets``: jobs of the sample that are elastic
        alone, of each; ``settings``: under all settings of O_max, lambda and Delta; ``limit``: jobs of each
        trace."""
        self._names = [names] if isinstance(names, str) else list(names)
        self._targets, self._settings, self._limit = targets, settings, limit

    def run(self, context: Context) -> list[Claim]:
        claims: list[Claim] = []
        for name in FILES:
            path = next(context.traces.glob(f"{FILES[name]}*"), None) if context.traces else None
            if name not in self._names or path is None:
                why = "the trace is not at hand (--traces DIR)" if path is None else "left out (--set names)"
                claims.append(Claim(f"Tables 3 to 6, {name}", "all claims", why, "not run"))
                continue
            claims += self._trace(context, name, path)
        said = "bundling equals EASY at low utilisation, and gains with the load"
        why = "arrivals of the traces were not scaled"
        return [*claims, Claim("Figure 12", said, why, "not run")]

    def _trace(self, context: Context, name: str, path: Path) -> list[Claim]:
        context.on_plan(name, 3)
        jobs, size = load(path, self._limit)
        with ProcessPoolExecutor(min(2, context.workers)) as pool:
            before, after = pool.map(run_all, [jobs, jobs], [size, size], ["easy", "ejb"])
        context.on_done(2)
        waited = (before.start > before.submit) & (before.processors >= LEAST) & counted(before)
        eligible = np.flatnonzero(waited)
        rng = np.random.default_rng(1)
        chosen = rng.choice(eligible, min(self._targets, len(eligible)), replace=False)
        settings = SETTINGS if self._settings else {"defaults": {}}
        ids = [jobs[row].job.id for row in chosen.tolist()]
        # In a process of its own: one that is forked has only the thread that forks.
        with ProcessPoolExecutor(1) as pool:
            singles = pool.submit(run_singles, size, jobs, ids, settings, context.workers).result()
        context.on_done(1)
        index = {jobs[row].job.id: row for row in chosen.tolist()}
        work = np.array([job.runtime for job in jobs]) * before.processors
        return [
            *self._all_elastic(context, name, before, after),
            *self._single(name, before, work, index, singles, len(eligible)),
        ]

    # ------------------------------------------------------------------ all jobs elastic

    def _all_elastic(self, context: Context, name: str, before: Course, after: Course) -> list[Claim]:
        among = counted(before, after)
        classes = {"elastic": among & after.elastic, "others": among & ~after.elastic, "all": among}
        claims, rows = [], []
        for kind, mine in classes.items():
            values = {"jobs": float(mine.sum())}
            for at, (measure, old) in enumerate(before.measures.items()):
                new = after.measures[measure]
                found = change(old[mine], new[mine]) if mine.any() else Interval(0.0, 0.0, 0)
                values |= {f"{measure} before": _mean(old[mine]), f"{measure} after": _mean(new[mine])}
                published = TABLE_5[name][kind][at]
                if published:
                    claims.append(_changed(f"Table 5, {name}", kind, measure, published, found, values))
            rows.append(Row(name, 0.0, kind, 1, values))
            claims.append(self._slowdown(name, kind, before, after, mine))
        idle, less = before.fragmentation, after.fragmentation
        falls = 100 * (less / idle - 1) if idle else 0.0
        claims.append(
            Claim(f"Table 6, {name}", f"fragmentation {TABLE_6[name]:+.1f} %",
                  f"{falls:+.1f} % ({idle:.1f} to {less:.1f} processors)", "yes" if falls < 0 else "no",
                  f"{falls / TABLE_6[name]:.2f} of it")
        )  # fmt: skip
        slopes = [np.polyfit(c.processors[among], (c.start - c.submit)[among], 1)[0] for c in (before, after)]
        claims.append(
            Claim(f"Figure 11, {name}", "the wait grows less with the size of a job",
                  f"{slopes[0]:.0f} to {slopes[1]:.0f} s a processor",
                  "yes" if slopes[1] < slopes[0] else "no")
        )  # fmt: skip
        pairs = [inversions(course.start[among]) for course in (before, after)]
        fewer = 100 * (pairs[1] / pairs[0] - 1) if pairs[0] else 0.0
        claims.append(
            Claim(f"Section 4, {name}", "priority inversions fall by about 20 %", f"{fewer:+.1f} %",
                  "yes" if fewer < 0 else "no", f"{-fewer / 20:.2f} of it")
        )  # fmt: skip
        context.record(f"all-elastic-{name}", rows, (name, self._limit))
        return claims

    @staticmethod
    def _slowdown(name: str, kind: str, before: Course, after: Course, mine: NDArray[np.bool_]) -> Claim:
        """Bounded by the run time without bundling."""
        least = np.maximum((before.end - before.start)[mine], BOUND)
        old, new = ((c.end - c.submit)[mine] / least for c in (before, after))
        found = change(old, new) if mine.any() else Interval(0.0, 0.0, 0)
        return Claim(
            f"Figure 10, {name}", f"the mean bounded slowdown of {kind} jobs falls",
            f"{_percent(found)} ({_mean(old):.1f} to {_mean(new):.1f}); "
            f"largest {_most(old):.0f} to {_most(new):.0f}",
            verdict([opposite(found)]),
        )  # fmt: skip

    # ------------------------------------------------------------------ one elastic job at a time

    def _single(
        self,
        name: str,
        before: Course,
        work: Floats,
        index: Mapping[str, int],
        singles: Sequence[Single],
        of: int,
    ) -> list[Claim]:
        runs: dict[str, list[Single]] = {}
        for single in sorted(singles, key=lambda each: index[each.job_id]):
            runs.setdefault(single.setting, []).append(single)
        usual = runs["defaults"]
        rows = np.array([index[single.job_id] for single in usual])
        claims = []
        where = f"Table 3, {name}"
        note = f"sample of {len(usual)} of {of}"
        measures = {key: values[rows] for key, values in before.measures.items()}
        new = {
            "turnaround": np.array([s.end - s.submit for s in usual]),
            "wait": np.array([s.start - s.submit for s in usual]),
            "run time": np.array([s.end - s.start for s in usual]),
        }
        for measure, published in zip(("wait", "run time", "turnaround"), TABLE_3[name], strict=True):
            found = change(measures[measure], new[measure])
            claims.append(
                Claim(where, f"a single elastic job's {measure} {published:+.1f} %",
                      f"{_percent(found)}, {note}",
                      verdict([fit := found if published > 0 else opposite(found)]),
                      size_verdict(abs(published), fit))
            )  # fmt: skip
        moving = 100 * np.array([s.moving / max(s.end - s.start, 1e-9) for s in usual])
        beyond = 100 * (np.array([s.area for s in usual]) / work[rows] - 1)
        told = (
            ("subjobs", np.array([float(s.subjobs) for s in usual]), ""),
            ("migrations", np.array([float(s.migrations) for s in usual]), ""),
            ("of the run time in migrations", moving, " %"),
            ("of resources beyond what is needed", beyond, " %"),
        )
        for (what, values, unit), published in zip(told, TABLE_4[name], strict=True):
            half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
            found = Interval(float(values.mean()), half, len(values))
            claims.append(
                Claim(f"Table 4, {name}", f"{published:g}{unit} {what}",
                      f"{found.mean:.2f} ± {half:.2f}{unit}, {note}", "yes" if found.mean > 0 else "no",
                      size_verdict(published, found))
            )  # fmt: skip
        claims += self._spread(name, measures["turnaround"], new["turnaround"], usual)
        if self._settings:
            claims += self._sensitivity(name, measures["turnaround"], runs)
        return claims

    @staticmethod
    def _spread(name: str, old: Floats, new: Floats, usual: Sequence[Single]) -> list[Claim]:
        same = 100 * float((np.abs(new - old) <= 1).mean())
        worse = 100 * float((new > old + 1).mean())
        several = 100 * float(np.mean([single.subjobs > 1 for single in usual]))
        move = 100 * float(np.mean([single.migrations > 0 for single in usual]))
        best = float((old / np.maximum(new, 1e-9)).max())
        return [
            Claim(f"Figure 7, {name}", "a quarter keep their turnaround, under 3 % get worse, best near 1000",
                  f"{same:.1f} % keep it, {worse:.1f} % get worse, best {best:.0f}",
                  "yes" if worse < 3 else "in part"),
            Claim(f"Figure 7, {name}", "over 60 % have several subjobs, about 40 % migrate",
                  f"{several:.1f} %, {move:.1f} %", "yes" if several > 60 and move < 50 else "in part"),
        ]  # fmt: skip

    @staticmethod
    def _sensitivity(name: str, old: Floats, runs: Mapping[str, Sequence[Single]]) -> list[Claim]:
        """Figures 8 and 9 as orderings: how the turnaround changes under each setting."""
        tt = {
            setting: change(old, np.array([single.end - single.submit for single in found]))
            for setting, found in runs.items()
        }

        def told(*settings: str) -> str:
            return ", ".join(f"{setting}: {tt[setting].mean:+.1f} %" for setting in settings)

        small, usual, large = tt["omax 2"].mean, tt["defaults"].mean, tt["omax 64"].mean
        grows = small > tt["omax 4"].mean > usual > tt["omax 16"].mean
        little = abs(tt["omax 16"].mean - large) < abs(usual - small)
        lambdas = [tt[key].mean for key in ("lambda 60", "defaults", "lambda 600")]
        deltas = [tt[key].mean for key in ("Delta 0.8", "defaults", "Delta 2")]
        alone = tt["lambda inf"].mean
        return [
            Claim(f"Figure 8, {name}", "a larger O_max is better, little beyond 16",
                  told("omax 2", "omax 4", "defaults", "omax 16", "omax 64"),
                  "yes" if grows and little else "in part" if grows or little else "no"),
            Claim(f"Figure 8, {name}", "lambda of 1 to 10 min hardly matters (a quarter of the gain)",
                  told("lambda 60", "defaults", "lambda 600"), _within(lambdas)),
            Claim(f"Figure 8, {name}", "Delta of 0.8 to 2.0 hardly matters (a quarter of the gain)",
                  told("Delta 0.8", "defaults", "Delta 2"), _within(deltas)),
            Claim(f"Section 4, {name}", "without migrations (lambda infinite) it is worse",
                  told("defaults", "lambda inf"), "yes" if alone > usual else "no"),
        ]  # fmt: skip


def _within(found: Sequence[float]) -> str:
    return "yes" if max(found) - min(found) <= 0.25 * abs(found[1]) else "no"


def _changed(
    where: str, kind: str, measure: str, published: float, found: Interval, values: Mapping[str, float]
) -> Claim:
    means = f"{values[f'{measure} before']:,.0f} to {values[f'{measure} after']:,.0f} s"
    direction = found if published > 0 else opposite(found)
    return Claim(
        where, f"{measure} of {kind} jobs {published:+.1f} %",
        f"{_percent(found)} ({means}, {values['jobs']:,.0f} jobs)", verdict([direction]),
        size_verdict(abs(published), direction),
    )  # fmt: skip


def _percent(found: Interval) -> str:
    return f"{found.mean:+.1f} ± {found.half:.1f} %"


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _most(values: Floats) -> float:
    return float(values.max()) if len(values) else float("nan")
