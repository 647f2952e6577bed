"""The tables and figures of the paper on elastic job bundling, as far as they have numbers.

F. Liu, J. B. Weissman: Elastic Job Bundling: An Adaptive Resource Request Strategy for Large-Scale Parallel
Applications. SC 2015, section 6.

Each trace is replayed under EASY and under EASY with bundling of all jobs of 8 processors or more
(:mod:`.ejb_all`); and a random sample of the jobs that wait is run one at a time as the only elastic job
(:mod:`.ejb_single`), under the paper's settings of O_max, lambda and Delta. What is compared how:
:mod:`.ejb_measures`. Figure 12, the load, is measured on KTH.

Decisions on what the paper leaves open: the first 1 % of jobs by submission and the jobs that end after the
last arrival in either run do not count; jobs of unknown runtime or of 0 s run 1 s; "elastic" jobs were
elastic in the run with bundling. "Unchanged" in the claims on single jobs is within a second. The load is
varied by the times between arrivals.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from headway.experiment.campaign import Key, Row, Task
from headway.experiment.judging import agrees, held, size_verdict, verdict
from headway.experiment.kept import KeptRows
from headway.experiment.plots import line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, share
from headway.workload import TraceJob
from headway_plugins.reproductions.ejb_all import ELIGIBLE, all_elastic, eligible
from headway_plugins.reproductions.ejb_all import claims_of as all_elastic_claims
from headway_plugins.reproductions.ejb_measures import (
    Course,
    Floats,
    change,
    change_by_weeks,
    counted,
    load,
    mean,
    opposite,
    percent,
    run_all,
)
from headway_plugins.reproductions.ejb_single import Single, run_singles

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
#: The trace of Figure 12, and factors on its offered load.
LOADED, LOADS = "KTH", (0.5, 0.75, 1.0, 1.15, 1.3)
_INFINITE = float("inf")
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    **{f"omax {value}": {"omax": value} for value in (2, 4, 16, 64)},
    **{f"lambda {value:g}": {"migration": value} for value in (60.0, 600.0, _INFINITE)},
    **{f"Delta {value:g}": {"penalty": value} for value in (0.8, 2.0)},
}
#: What is kept of a single elastic job, beside its setting.
_COLUMNS = (
    "processors", "walltime", "runtime", "wait before", "run time before", "wait", "run time",
    "subjobs", "migrations", "seconds in migrations", "processor-seconds",
)  # fmt: skip


class EjbReproduction:
    """The experiments of Liu and Weissman 2015."""

    title = "Elastic job bundling (Liu and Weissman 2015)"
    published = Published(
        system="open", workloads=4, jobs=28_489, intervals=True, warm_up=True, cool_down=True, load=0.852,
        estimates="users", backfills=True, also={"5": "KTH's log is taken as it was, not cleaned"},
    )  # fmt: skip

    def __init__(
        self,
        names: Sequence[str] = tuple(FILES),
        targets: int | None = 400,
        settings: bool = True,
        loads: Sequence[float] | None = LOADS,
        limit: int | None = None,
    ) -> None:
        """``names``: of the traces (CTC, SDSC, BLUE, KTH); ``targets``: jobs of the sample that are elastic
        alone, of each, null: none; ``settings``: under all settings of O_max, lambda and Delta; ``loads``:
        factors on the load of KTH, null: not varied; ``limit``: jobs of each trace."""
        self._names = [names] if isinstance(names, str) else list(names)
        self._loads = [loads] if isinstance(loads, int | float) else list(loads or ())
        self._targets, self._settings, self._limit = targets or 0, settings, limit

    def run(self, context: Context) -> list[Claim]:
        claims: list[Claim] = []
        for name in FILES:
            path, why = self._path(context, name)
            if path is None:
                claims.append(Claim(f"Tables 3 to 6, {name}", "all claims", why, "not run"))
            else:
                claims += self._trace(context, name, path)
        path, why = self._path(context, LOADED)
        if not self._loads:
            path, why = None, "left out (--set loads)"
        return [*claims, self._load(context, path, why)]

    def _path(self, context: Context, name: str) -> tuple[Path | None, str]:
        """A trace's file, or why there is none."""
        if name not in self._names:
            return None, "left out (--set names)"
        path = next(context.traces.glob(f"{FILES[name]}*"), None) if context.traces else None
        return path, "the trace is not at hand (--traces DIR)"

    def _trace(self, context: Context, name: str, path: Path) -> list[Claim]:
        task = all_elastic(name, path, self._limit, context.workers)
        rows = context.collect(f"all-elastic-{name}", [task], ("all elastic", name, self._limit))
        claims = all_elastic_claims(name, rows)
        if not self._targets:
            why = "left out (--set targets)"
            return [*claims, Claim(f"Tables 3 and 4, {name}", "a single elastic job", why, "not run")]
        of = int(rows[0].values[ELIGIBLE])
        return [*claims, *self._single(name, self._singles(context, name, path, of), of)]

    def _singles(self, context: Context, name: str, path: Path, of: int) -> list[Row]:
        """What became of each target under each setting; what is kept of that is not run again."""
        title = f"single-{name}"
        settings = SETTINGS if self._settings else {"defaults": {}}
        targets = min(self._targets, of)
        context.on_plan(f"{name}: single elastic jobs", targets * len(settings))
        kept = KeptRows(context.out, context.call, keep=context.keep)
        definition = (name, self._limit, self._targets, repr(sorted(settings.items())))
        found = {row.key: row for row in kept.begin(title, definition)}
        context.on_done(len(found))
        if len(found) < targets * len(settings):
            context.refuse_to_run(title, targets * len(settings), targets * len(settings) - len(found))
            self._run_singles(context, name, path, settings, found, kept)
        order = {setting: at for at, setting in enumerate(settings)}
        rows = sorted(found.values(), key=lambda row: (row.x, order[row.variant]))
        kept.complete(title, rows)
        context.rows.append((title, rows))
        return rows

    def _run_singles(
        self,
        context: Context,
        name: str,
        path: Path,
        settings: Mapping[str, Mapping[str, Any]],
        found: dict[Key, Row],
        kept: KeptRows,
    ) -> None:
        """Run the targets that have no rows yet."""
        jobs, size = load(path, self._limit)
        before = run_all(jobs, size, "easy")
        able = eligible(before)
        chosen = np.random.default_rng(1).choice(able, min(self._targets, len(able)), replace=False)
        index = {jobs[row].job.id: row for row in chosen.tolist()}
        missing = [
            job_id for job_id, at in index.items()
            if not found.keys() >= {(name, float(at), setting, 1) for setting in settings}
        ]  # fmt: skip

        def ended(single: Single) -> None:
            row = _row(name, single, jobs[index[single.job_id]], before, index)
            if row.key not in found:
                kept.add(f"single-{name}", [row])
                found[row.key] = row
                context.on_done(1)

        _each(ended, size, jobs, missing, settings, context.workers)

    # ------------------------------------------------------------------ one elastic job at a time

    def _single(self, name: str, rows: Sequence[Row], of: int) -> list[Claim]:
        runs: dict[str, list[Single]] = {}
        for row in rows:
            runs.setdefault(row.variant, []).append(_single(row))
        usual = runs["defaults"]
        alone = [row.values for row in rows if row.variant == "defaults"]
        work = np.array([values["runtime"] * values["processors"] for values in alone])
        measures = {
            key: np.array([values[f"{key} before"] for values in alone]) for key in ("wait", "run time")
        }
        measures["turnaround"] = measures["wait"] + measures["run time"]
        claims = []
        where = f"Table 3, {name}"
        note = f"sample of {len(usual)} of {of}"
        new = {
            "turnaround": np.array([s.end - s.submit for s in usual]),
            "wait": np.array([s.start - s.submit for s in usual]),
            "run time": np.array([s.end - s.start for s in usual]),
        }
        for measure, published in zip(("wait", "run time", "turnaround"), TABLE_3[name], strict=True):
            found = change(measures[measure], new[measure])
            claims.append(
                Claim(where, f"a single elastic job's {measure} {published:+.1f} %",
                      f"{percent(found)}, {note}",
                      verdict([fit := found if published > 0 else opposite(found)]),
                      size_verdict(abs(published), fit))
            )  # fmt: skip
        claims += self._costs(name, work, usual, note)
        claims += self._spread(name, measures["turnaround"], new["turnaround"], usual)
        if self._settings:
            claims += self._sensitivity(name, measures["turnaround"], runs)
        return claims

    @staticmethod
    def _costs(name: str, work: Floats, usual: Sequence[Single], note: str) -> list[Claim]:
        """Table 4: means over the jobs. The last two are of shares that a job of a few seconds can have a
        hundredfold, so the median and the share of all jobs together stand beside them."""
        run = np.array([s.end - s.start for s in usual])
        moving = np.array([s.moving for s in usual])
        area = np.array([s.area for s in usual])
        shares = 100 * moving / np.maximum(run, 1e-9)
        beyond = 100 * (area / work - 1)
        moved_all = 100 * float(moving.sum()) / max(float(run.sum()), 1e-9)
        beyond_all = 100 * (float(area.sum()) / float(work.sum()) - 1)
        claims = []
        for (what, values, unit, together), published in zip(
            (
                ("subjobs", np.array([float(s.subjobs) for s in usual]), "", None),
                ("migrations", np.array([float(s.migrations) for s in usual]), "", None),
                ("of the run time in migrations", shares, " %", moved_all),
                ("of resources beyond what is needed", beyond, " %", beyond_all),
            ),
            TABLE_4[name],
            strict=True,
        ):
            half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
            found = Interval(float(values.mean()), half, len(values))
            more = f"; median {np.median(values):.2f} %, of all together {together:.2f} %" if unit else ""
            claims.append(
                Claim(f"Table 4, {name}", f"{published:g}{unit} {what}",
                      f"{found.mean:.2f} ± {half:.2f}{unit}{more}, {note}",
                      agrees(published, found), size_verdict(published, found))
            )  # fmt: skip
        return claims

    @staticmethod
    def _spread(name: str, old: Floats, new: Floats, usual: Sequence[Single]) -> list[Claim]:
        shares = {
            "keep": np.abs(new - old) <= 1, "worse": new > old + 1,
            "several": np.array([single.subjobs > 1 for single in usual]),
            "migrate": np.array([single.migrations > 0 for single in usual]),
        }  # fmt: skip
        found = {key: share(int(hits.sum()), len(usual)) for key, hits in shares.items()}
        best = float((old / np.maximum(new, 1e-9)).max())

        def told(key: str) -> str:
            low, high = 100 * found[key].low, 100 * found[key].high
            return f"{100 * shares[key].mean():.1f} % (95 %: {low:.1f} to {high:.1f} %)"

        def about(key: str, said: float) -> str:
            return agrees(said, found[key])

        def above(key: str, said: float, sign: int = 1) -> str:
            one = found[key]
            return verdict([Interval(sign * (one.mean - said), one.half, one.count)])

        return [
            Claim(f"Figure 7, {name}", "a quarter keep their turnaround", told("keep"), about("keep", 0.25)),
            Claim(f"Figure 7, {name}", "under 3 % get worse", told("worse"), above("worse", 0.03, -1)),
            Claim(f"Figure 7, {name}", "the best gains a factor near 1000 (ours: 500 to 2000)",
                  f"{best:,.0f}", held([500 <= best <= 2000])),
            Claim(f"Section 6.3, {name}", "over 60 % have several subjobs", told("several"),
                  above("several", 0.6)),
            Claim(f"Section 6.3, {name}", "about 40 % migrate", told("migrate"), about("migrate", 0.4)),
        ]  # fmt: skip

    @staticmethod
    def _sensitivity(name: str, old: Floats, runs: Mapping[str, Sequence[Single]]) -> list[Claim]:
        """Figure 8 as orderings: how the turnaround changes under each setting, the same jobs under all."""
        new = {key: np.array([single.end - single.submit for single in found]) for key, found in runs.items()}
        tt = {setting: change(old, values) for setting, values in new.items()}

        def told(*settings: str) -> str:
            return ", ".join(f"{setting}: {percent(tt[setting])}" for setting in settings)

        def step(one: str, other: str) -> Interval:
            """By how many percent of the turnaround without bundling the other setting is better."""
            found, gained = change(old, old + new[one] - new[other]), tt[one].mean - tt[other].mean
            return Interval(gained, found.half, found.count)

        rises = [step("omax 2", "omax 4"), step("omax 4", "defaults"), step("defaults", "omax 16")]
        little = abs(step("omax 16", "omax 64").mean) < abs(step("omax 2", "omax 16").mean) / 4
        grows = verdict(rises)
        lambdas = [tt[key].mean for key in ("lambda 60", "defaults", "lambda 600")]
        deltas = [tt[key].mean for key in ("Delta 0.8", "defaults", "Delta 2")]
        alone = step("lambda inf", "defaults")
        return [
            Claim(f"Figure 8, {name}", "a larger O_max is better, little beyond 16",
                  told("omax 2", "omax 4", "defaults", "omax 16", "omax 64"),
                  "in part" if grows == "yes" and not little else grows),
            Claim(f"Figure 8, {name}", "lambda of 1 to 10 min hardly matters (a quarter of the gain)",
                  told("lambda 60", "defaults", "lambda 600"), _within(lambdas)),
            Claim(f"Figure 8, {name}", "Delta of 0.8 to 2.0 hardly matters (a quarter of the gain)",
                  told("Delta 0.8", "defaults", "Delta 2"), _within(deltas)),
            Claim(f"Section 6.3, {name}", "without migrations (lambda infinite) it is worse",
                  f"{told('defaults', 'lambda inf')}; with them {percent(alone)} better", verdict([alone])),
        ]  # fmt: skip

    # ------------------------------------------------------------------ the load

    def _load(self, context: Context, path: Path | None, why: str) -> Claim:
        said = "bundling is like EASY at low utilisation, and significantly better at high"
        if path is None:
            return Claim("Figure 12", said, why, "not run")
        tasks = [
            Task(
                tuple((LOADED, factor, label, 1) for label in ("EASY", "bundling")), _at_load,
                (path, self._limit, factor),
            )
            for factor in sorted(self._loads)
        ]  # fmt: skip
        rows = context.collect(f"load-{LOADED}", tasks, (LOADED, self._limit))
        after = [row.values for row in rows if row.variant == "bundling"]
        told = [
            f"{at['offered load']:.2f}: {at['change']:+.1f} ± {at['by jobs']:.1f} (by weeks "
            f"± {at['by weeks']:.1f}) %"
            for at in after
        ]
        gains = [Interval(-at["change"], at["by weeks"], int(at["jobs"])) for at in after]
        line_plot(
            rows, ["mean turnaround"], context.out / "figure12.png", x_label="factor on the load",
            title=f"Figure 12, {LOADED}", units={"mean turnaround": ("h", 3600.0)},
        )  # fmt: skip
        grows = gains[-1].mean > gains[0].mean
        return Claim(
            f"Figure 12, {LOADED}", said, f"turnaround at an offered load of {', '.join(told)}",
            verdict([gains[-1]]) if grows else "no",
        )  # fmt: skip


def _at_load(path: Path, limit: int | None, factor: float) -> list[Row]:
    """The trace of Figure 12 with its load multiplied, under EASY and under EASY with bundling."""
    jobs, size = load(path, limit, factor)
    before, after = (run_all(jobs, size, policy) for policy in ("easy", "ejb"))
    among = counted(before, after)
    offered = sum(job.runtime * job.job.request.processors for job in jobs)
    offered /= size * max(float(before.submit[-1] - before.submit[0]), 1.0)
    old, new = ((course.end - course.submit)[among] for course in (before, after))
    by_job, by_week = change(old, new), change_by_weeks(old, new, before.submit[among])
    more = {"change": by_job.mean, "by jobs": by_job.half, "by weeks": by_week.half}
    same = {"jobs": float(among.sum()), "offered load": offered}
    return [
        Row(LOADED, factor, label, 1, {"mean turnaround": mean(values), **same, **changed})
        for label, values, changed in (("EASY", old, dict.fromkeys(more, 0.0)), ("bundling", new, more))
    ]


def _each(
    on_single: Callable[[Single], None],
    size: int,
    jobs: Sequence[TraceJob],
    targets: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    workers: int,
) -> None:
    """:func:`run_singles` in a process of its own: one that is forked has only the thread that forks."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_tell, args=(sending, size, jobs, targets, settings, workers))
    process.start()
    sending.close()
    try:
        while (single := receiving.recv()) is not None:
            on_single(single)
        process.join()
    except EOFError:
        process.join()
        raise RuntimeError(f"the runs of single elastic jobs ended ({process.exitcode})") from None
    finally:
        process.terminate()


def _tell(
    sending: Connection,
    size: int,
    jobs: Sequence[TraceJob],
    targets: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    workers: int,
) -> None:
    # The parent ends this process when the parent is interrupted.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_singles(size, jobs, targets, settings, workers, sending.send)
    sending.send(None)


def _row(name: str, single: Single, job: TraceJob, before: Course, index: Mapping[str, int]) -> Row:
    at = index[single.job_id]
    values = (
        before.processors[at], job.job.request.walltime, job.runtime,
        before.start[at] - before.submit[at], before.end[at] - before.start[at],
        single.start - single.submit, single.end - single.start,
        single.subjobs, single.migrations, single.moving, single.area,
    )  # fmt: skip
    return Row(name, float(at), single.setting, 1, dict(zip(_COLUMNS, map(float, values), strict=True)))


def _single(row: Row) -> Single:
    """What :func:`_row` made a row of, submitted at 0."""
    values = row.values
    return Single(
        f"{row.x:g}", row.variant, 0.0, values["wait"], values["wait"] + values["run time"],
        int(values["subjobs"]), int(values["migrations"]), values["seconds in migrations"],
        values["processor-seconds"],
    )  # fmt: skip


def _within(found: Sequence[float]) -> str:
    return "yes" if max(found) - min(found) <= 0.25 * abs(found[1]) else "no"
