"""The experiments of the paper on two-phase scheduling for animation rendering.

Y. Zhou, T. Kelly, J. Wiener, E. Anderson: An Extended Evaluation of Two-Phase Scheduling Methods for
Animation Rendering. JSSPP 2005, section 6. ``--seeds`` is not used: ``runs`` says how many workloads. The
values of r in Figures 15 to 20 cannot be read in the text that was at hand but for two of them; those of
:data:`SHARES` are ours. The production trace and its rewards are not published, so nights are drawn from
the published statistics, and of gains on them it is said what came out here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headway.errors import UserError
from headway.experiment.campaign import Row, Task, select
from headway.experiment.judging import Of, doubt, held, joined, provided, size_verdict, verdict
from headway.experiment.plots import line_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval, paired
from headway_plugins.windows import nights
from headway_plugins.windows.dispatch import ORDERS, Outcome, dispatch
from headway_plugins.windows.nights import DEADLINE, FARM, NIGHT, PROCESSORS
from headway_plugins.windows.selection import select as selected
from headway_plugins.windows.staged import CAUTION, Staged, fill, longest_path, room

RATIO, PATH, SHARE = "reward / upper bound", "longest path / deadline", "r"
REWARD, ENDS = "reward", "mean end / deadline"
#: r of Figure 13, and of the figures that vary something else.
FIGURE_13 = tuple(round(0.70 + 0.01 * step, 2) for step in range(31))
SHARES = (0.8, 0.85, 0.9, 0.95, 1.0)
STAGES = (3, 4, 5, 6, 7, 8, 9, 10)
#: Critical paths as shares of the deadline.
PATHS = tuple(round(0.05 * step, 2) for step in range(1, 21))
CAUTIONS = (0.0, CAUTION, 1.0)
DISPATCHERS = ("LCPF", "STCPU", "RANDOM")
REMAINING = "LCPF, remaining path"
#: What is meant by flat, near, and far: of the upper bound. The paper gives no rule.
NEAR, FAR = 0.02, 0.05


class Selections:
    """Selections from one workload; its rewards are its works, so paths do not matter."""

    def __init__(self, jobs: Sequence[Staged]) -> None:
        self._work = [job.work for job in jobs]
        self._known: dict[float, tuple[int, ...]] = {}
        self.most = selected(self._work, self._work, room(1.0, PROCESSORS, DEADLINE)).reward

    def of(self, share: float) -> tuple[int, ...]:
        """The jobs that are selected for r."""
        if share not in self._known:
            capacity = room(share, PROCESSORS, DEADLINE)
            self._known[share] = selected(self._work, self._work, capacity).chosen
        return self._known[share]

    def ratio(self, jobs: Sequence[Staged], share: float, name: str, seed: int) -> float:
        """What is earned, over the upper bound."""
        run = dispatch(
            [jobs[number] for number in self.of(share)], PROCESSORS, DEADLINE,
            ORDERS["LCPF" if name == REMAINING else name],
            rng=np.random.default_rng((seed, 13)), remaining=name == REMAINING,
        )  # fmt: skip
        return run.reward / self.most


def workload(experiment: int, seed: int, *, least_stages: int = 5) -> list[Staged]:
    """The jobs of one run; the same for all dispatchers and all r."""
    return nights.synthetic(np.random.default_rng((experiment, seed)), least_stages=least_stages)


def _path(jobs: Sequence[Staged]) -> float:
    return longest_path(jobs) / DEADLINE


def run_shares(seed: int, shares: Sequence[float]) -> list[Row]:
    """X1: one workload."""
    jobs = workload(1, seed)
    chosen, path = Selections(jobs), _path(jobs)
    return [
        Row("X1", share, name, seed, {RATIO: chosen.ratio(jobs, share, name, seed), PATH: path})
        for share in shares
        for name in (*DISPATCHERS, REMAINING)
    ]


def run_stages(seed: int, shares: Sequence[float]) -> list[Row]:
    """X2: one workload with fewer and fewer stages (T1)."""
    whole = workload(2, seed, least_stages=10)
    chosen = Selections(whole)
    rows = []
    for stages in STAGES:
        jobs = nights.with_stages(np.random.default_rng((2, seed, stages)), whole, stages)
        path = _path(jobs)
        rows += [
            Row(f"X2, r = {share:g}", stages, name, seed,
                {RATIO: chosen.ratio(jobs, share, name, seed), PATH: path})
            for share in shares for name in DISPATCHERS
        ]  # fmt: skip
    return rows


def run_paths(seed: int, shares: Sequence[float], paths: Sequence[float]) -> list[Row]:
    """X3 and X4: one workload with tasks that are split (T2)."""
    whole = workload(3, seed)
    chosen = Selections(whole)
    rows = []
    for target in paths:
        jobs = nights.with_paths(whole, target * DEADLINE)
        path = _path(jobs)
        rows += [
            Row(f"X3, r = {share:g}", target, name, seed,
                {RATIO: chosen.ratio(jobs, share, name, seed), PATH: path, SHARE: share})
            for share in shares for name in DISPATCHERS
        ]  # fmt: skip
        for caution in CAUTIONS:
            share = fill(PROCESSORS, DEADLINE, path * DEADLINE, caution)
            values = {RATIO: chosen.ratio(jobs, share, "LCPF", seed), PATH: path, SHARE: share}
            rows.append(Row("X4", target, f"lambda = {caution:g}", seed, values))
    return rows


# ---------------------------------------------------------------------- nights of a render farm

SELECTED, PRIORITY = "selection and LCPF", "PRIO, no selection"
FULL = {f"LCPF, r = {share:g}": share for share in (0.8, 0.9, 1.0)}
SHORT = "selection and STCPU"
ON_NIGHTS = (SELECTED, SHORT, *FULL, PRIORITY)


def night(seed: int) -> nights.Night:
    """One night."""
    return nights.night(np.random.default_rng((5, seed)))


def overloaded(count: int) -> list[int]:
    """The seeds of the first nights on which more is asked for than the farm can do."""
    found: list[int] = []
    seed = 0
    while len(found) < count:
        seed += 1
        if sum(job.work for job in night(seed).jobs) > FARM * NIGHT:
            found.append(seed)
    return found


def run_night(seed: int) -> list[Row]:
    """One night: selections go by what is believed, what is earned by what comes true."""
    drawn = night(seed)
    able = [number for number, path in enumerate(drawn.path) if path <= NIGHT]
    usual = fill(FARM, NIGHT, max((drawn.path[number] for number in able), default=0.0))
    rows = []
    for name in ON_NIGHTS:
        if name == PRIORITY:
            run = _dispatched(drawn.jobs, "PRIO")
        else:
            capacity = room(FULL.get(name, usual), FARM, NIGHT)
            found = selected(
                [drawn.work[number] for number in able],
                [drawn.jobs[number].worth for number in able], capacity,
            )  # fmt: skip
            jobs = [drawn.jobs[able[at]] for at in found.chosen]
            run = _dispatched(jobs, "STCPU" if name == SHORT else "LCPF")
        ends = [end for end in run.ends if end <= NIGHT]
        values = {REWARD: run.reward, ENDS: float(np.mean(ends)) / NIGHT if ends else float("nan")}
        rows.append(Row("nights", 0, name, seed, values))
    return rows


def _dispatched(jobs: Sequence[Staged], order: str) -> Outcome:
    return dispatch(jobs, FARM, NIGHT, ORDERS[order])


# ---------------------------------------------------------------------- the paper's experiments


class TwoPhaseReproduction:
    """The experiments of Zhou and others 2005."""

    title = "Two-phase scheduling for animation rendering (Zhou and others 2005)"
    published = Published(system="static", workloads=2, jobs=2_388, intervals=False)

    def __init__(
        self,
        runs: int = 20,
        transformed: int = 10,
        farm: int = 60,
        shares: Sequence[float] = FIGURE_13,
        paths: Sequence[float] = PATHS,
    ) -> None:
        """``runs``: workloads of Figure 13; ``transformed``: of the others; ``farm``: overloaded nights of
        the render farm; ``shares``: r of Figure 13; ``paths``: critical paths, as shares of the deadline."""
        for name, count in (("runs", runs), ("transformed", transformed), ("farm", farm)):
            if count < 2:
                raise UserError(f"--set {name}: expected at least 2, found {count}")
        self._runs, self._transformed, self._farm = runs, transformed, farm
        self._shares, self._paths = tuple(map(float, shares)), tuple(map(float, paths))

    def run(self, context: Context) -> list[Claim]:
        x1 = context.collect(
            "figure-13",
            [Task(tuple(("X1", share, name, seed) for share in self._shares
                        for name in (*DISPATCHERS, REMAINING)), run_shares, (seed, self._shares))
             for seed in range(1, self._runs + 1)],
            "X1",
        )  # fmt: skip
        x2 = context.collect(
            "figures-14-17",
            [Task(tuple((f"X2, r = {share:g}", float(stages), name, seed) for stages in STAGES
                        for share in SHARES for name in DISPATCHERS), run_stages, (seed, SHARES))
             for seed in range(1, self._transformed + 1)],
            "X2",
        )  # fmt: skip
        x3 = context.collect(
            "figures-18-21",
            [Task(tuple(key for path in self._paths for key in
                        [*((f"X3, r = {share:g}", path, name, seed) for share in SHARES
                           for name in DISPATCHERS),
                         *(("X4", path, f"lambda = {caution:g}", seed) for caution in CAUTIONS)]),
                  run_paths, (seed, SHARES, self._paths))
             for seed in range(1, self._transformed + 1)],
            "X3 and X4",
        )  # fmt: skip
        farm = context.collect(
            "nights",
            [Task(tuple(("nights", 0.0, name, seed) for name in ON_NIGHTS), run_night, (seed,))
             for seed in overloaded(self._farm)],
            "nights",
        )  # fmt: skip
        self._plots(context, x1, x2, x3)
        return [*self._figure_13(x1), *self._stages(x2), *self._split(x3), *self._farm_claims(farm)]

    def _plots(self, context: Context, x1: list[Row], x2: list[Row], x3: list[Row]) -> None:
        line_plot(x1, [RATIO], context.out / "figure-13.png", x_label="r", title="synthetic workloads")
        for name, rows, label in (("figure-15", x2, "stages"), ("figure-18", x3, "critical path / deadline")):
            some = [row for row in rows if row.scenario.endswith("r = 0.85")]
            line_plot(some, [RATIO], context.out / f"{name}.png", x_label=label, title="r = 0.85")
        some = [row for row in x3 if row.scenario == "X4"]
        line_plot(some, [RATIO], context.out / "figure-21.png", x_label="critical path / deadline",
                  title="r from the critical path, LCPF")  # fmt: skip

    # ------------------------------------------------------------------ Figure 13

    def _figure_13(self, rows: Sequence[Row]) -> list[Claim]:
        shares = self._shares
        lcpf, stcpu, at_random, left = (
            {share: mean(rows, "X1", name, share) for share in shares} for name in (*DISPATCHERS, REMAINING)
        )
        over = [less(rows, "X1", share, "LCPF", name) for share in shares for name in ("STCPU", "RANDOM")]
        claims = [
            Claim("E1, Figure 13", "LCPF above STCPU and RANDOM for every r",
                  f"above both at {sum(lcpf[r] > max(stcpu[r], at_random[r]) for r in shares)} of "
                  f"{len(shares)} r; ahead by {min(i.mean for i in over):.3f} to "
                  f"{max(i.mean for i in over):.3f}", verdict(over)),
        ]  # fmt: skip
        best = max(shares, key=lcpf.__getitem__)
        top = interval(select(rows, RATIO, scenario="X1", variant="LCPF", x=best))
        claims.append(
            Claim("E2", "LCPF has its maximum of about 0.84 at r = 0.87",
                  f"{top} at {best:g}",
                  provided(dip(rows, "X1", "LCPF", best, (min(shares), max(shares)), peak=True),
                           held([0.85 <= best <= 0.9])),
                  size_verdict(0.84, top))
        )  # fmt: skip
        high = [lcpf[r] for r in shares if r >= 0.85]
        claims.append(
            Claim("E3", "LCPF is nearly flat for r from 0.85 to 1",
                  f"between {min(high):.3f} and {max(high):.3f}",
                  "yes" if max(high) - min(high) <= FAR else "no")
        )  # fmt: skip
        low = {r: lcpf[r] for r in shares if r < 0.85}
        if low:
            behind = max(r - value for r, value in low.items())
            claims.append(
                Claim("E4", "r below 0.85: all selected jobs end in time (ratio = r)",
                      ", ".join(f"{r:g}: {low[r]:.3f}" for r in (0.7, 0.75, 0.8, 0.84) if r in low)
                      + f"; behind r by at most {behind:.3f}",
                      "yes" if behind <= 1e-3 else "in part" if behind <= FAR else "no")
            )  # fmt: skip
        return [*claims, *self._other_dispatchers(rows, stcpu, at_random), *self._longest_paths(rows, left)]

    def _other_dispatchers(
        self, rows: Sequence[Row], stcpu: Mapping[float, float], at_random: Mapping[float, float]
    ) -> list[Claim]:
        shares = self._shares
        claims = []
        better = [less(rows, "X1", r, "STCPU", "RANDOM") for r in shares if r >= 0.92]
        worse = [less(rows, "X1", r, "RANDOM", "STCPU") for r in shares if r <= 0.87]
        cross = [r for r in shares if stcpu[r] > at_random[r]]
        claims.append(
            Claim("E5", "STCPU is better than RANDOM for r from 0.92 on, worse up to 0.87",
                  f"above it from {min(cross):g} on" if cross else "nowhere above it",
                  joined(verdict(better), verdict(worse)))
        )  # fmt: skip
        first, last = min(shares), max(shares)
        falls = less(rows, "X1", last, "RANDOM", "RANDOM", first)
        spread = max(stcpu.values()) - min(stcpu.values())
        peak = max(shares, key=at_random.__getitem__)
        claims.append(
            Claim("E6", "RANDOM falls as r grows, STCPU hardly reacts",
                  f"RANDOM {at_random[first]:.3f} at {first:g}, {at_random[peak]:.3f} at {peak:g}, "
                  f"{at_random[last]:.3f} at {last:g}; STCPU {min(stcpu.values()):.3f} to "
                  f"{max(stcpu.values()):.3f}",
                  "yes" if falls.high < 0 and spread <= FAR else "in part" if falls.high < 0 else "no")
        )  # fmt: skip
        return claims

    def _longest_paths(self, rows: Sequence[Row], left: Mapping[float, float]) -> list[Claim]:
        shares = self._shares
        first, last = min(shares), max(shares)
        claims = []
        paths = select(rows, PATH, scenario="X1", variant="LCPF", x=first)
        claims.append(
            Claim("E7", "the longest critical path is at least 0.97 D; the theorem would allow to fill 3 %",
                  f"mean {np.mean(paths):.3f} D, lowest {min(paths):.3f} D; r0 = "
                  f"{fill(PROCESSORS, 1.0, 0.97, 1.0):.3f} at 0.97 D",
                  "yes" if min(paths) >= 0.97 else "in part" if np.mean(paths) >= 0.97 else "no")
        )  # fmt: skip
        high_left = max(shares, key=left.__getitem__)
        claims.append(
            Claim("E3, by the remaining path", "LCPF is nearly flat for r from 0.85 to 1",
                  f"{left[high_left]:.3f} at r = {high_left:g}, {left[last]:.3f} at {last:g}",
                  "yes" if left[high_left] - left[last] <= FAR else "no")
        )  # fmt: skip
        return claims

    # ------------------------------------------------------------------ fewer stages

    def _stages(self, rows: Sequence[Row]) -> list[Claim]:
        at = "X2, r = 0.85"
        paths = {s: float(np.mean(select(rows, PATH, scenario=at, variant="LCPF", x=s))) for s in STAGES}
        related = float(np.corrcoef(STAGES, list(paths.values()))[0, 1])
        claims = [
            Claim("E8, Figure 14", "the longest critical path grows almost linearly with the stages",
                  ", ".join(f"{value:.3f}" for value in paths.values())
                  + f" D for 3 to 10 stages; correlation {related:.3f}",
                  "yes" if related > 0.95 else "no"),
        ]  # fmt: skip
        found = {name: {s: mean(rows, at, name, s) for s in STAGES} for name in DISPATCHERS}
        worst = {name: min(STAGES, key=found[name].__getitem__) for name in ("LCPF", "STCPU")}
        claims.append(
            Claim("E9, Figure 15", "LCPF and STCPU: a minimum at about 5 stages, where the path is about D/2",
                  "; ".join(f"{name} {found[name][s]:.3f} at {s} stages, path {paths[s]:.2f} D"
                            for name, s in worst.items()) + " (r = 0.85)",
                  provided(joined(*(self._minimum(rows, at, name, s) for name, s in worst.items())),
                           held([abs(paths[s] - 0.5) <= FAR for s in worst.values()])))
        )  # fmt: skip
        falls = [less(rows, f"X2, r = {r:g}", 3, "RANDOM", "RANDOM", 10) for r in SHARES if r < 1]
        claims.append(
            Claim("E10", "RANDOM falls slowly with the stages for every r but 1.0, where it is bad",
                  f"r = 0.85: {found['RANDOM'][3]:.3f} to {found['RANDOM'][10]:.3f}; r = 1: "
                  f"{mean(rows, 'X2, r = 1', 'RANDOM', 3):.3f} to "
                  f"{mean(rows, 'X2, r = 1', 'RANDOM', 10):.3f}", verdict(falls))
        )  # fmt: skip
        ahead = less(rows, at, 10, "LCPF", "STCPU")
        claims.append(
            Claim("E11", "LCPF is far above STCPU with many stages",
                  f"10 stages, r = 0.85: {found['LCPF'][10]:.3f} and {found['STCPU'][10]:.3f}",
                  "yes" if ahead.low > FAR else "in part" if ahead.low > 0 else "no")
        )  # fmt: skip
        # At each point that of the two by which it is less ahead.
        leads = {
            r: [
                max((less(rows, f"X2, r = {r:g}", s, n, "RANDOM") for n in ("LCPF", "STCPU")), key=doubt)
                for s in STAGES
            ]
            for r in SHARES
        }  # fmt: skip
        wins = {r: sum(lead.mean > 0 for lead in found) for r, found in leads.items()}
        points = [lead for found in leads.values() for lead in found]
        claims.append(
            Claim("E12", "LCPF and STCPU are above RANDOM for most r and numbers of stages",
                  f"both above it at {sum(wins.values())} of {len(points)} points: "
                  + ", ".join(f"{n} (r = {r:g})" for r, n in wins.items()),
                  verdict(points, Of.MOST))
        )  # fmt: skip
        return claims

    @staticmethod
    def _minimum(rows: Sequence[Row], scenario: str, name: str, stages: int) -> str:
        """Whether a dispatcher's least ratio is at about 5 stages: significantly below its neighbours."""
        at = STAGES.index(stages)
        around = STAGES[max(at - 1, 0)], STAGES[min(at + 1, len(STAGES) - 1)]
        return dip(rows, scenario, name, stages, around) if abs(stages - 5) <= 1 else "no"

    # ------------------------------------------------------------------ tasks that are split

    def _split(self, rows: Sequence[Row]) -> list[Claim]:
        at, paths = "X3, r = 0.85", self._paths
        lcpf, stcpu = ({p: mean(rows, at, name, p) for p in paths} for name in ("LCPF", "STCPU"))
        minima = [
            p for before, p, after in zip(paths, paths[1:], paths[2:], strict=False)
            if lcpf[p] < min(lcpf[before], lcpf[after])
        ]  # fmt: skip
        shown = ", ".join(f"{p:g} D: {value:.3f}" for p, value in lcpf.items())
        lowest = self._valley(rows, at, min(minima, key=lcpf.__getitem__, default=0.0), 0.5, 0.6)
        second = min((p for p in minima if 0.3 <= p <= 0.4), key=lcpf.__getitem__, default=0.0)
        claims = [
            Claim("E13, Figures 18 and 19", "minima slightly above D/2, and a second one near 0.35 D",
                  f"LCPF, r = 0.85: {shown}", provided(lowest, self._valley(rows, at, second, 0.3, 0.4))),
        ]  # fmt: skip
        names = [f"lambda = {caution:g}" for caution in CAUTIONS]
        over = [less(rows, "X4", p, names[1], names[0]) for p in paths]
        far = [less(rows, "X4", p, names[number], names[2]) for p in paths for number in (0, 1)]
        claims.append(
            Claim("E14, Figure 21", "lambda = 0.2 is consistently better than 0; both are far above 1",
                  f"0.2 ahead at {sum(i.mean > 0 for i in over)} of {len(over)} paths, behind by at most "
                  f"{-min(i.mean for i in over):.3f}; above lambda = 1 by {min(i.mean for i in far):.3f} to "
                  f"{max(i.mean for i in far):.3f}", joined(verdict(over), verdict(far)))
        )  # fmt: skip
        if {0.55, 0.8} <= set(paths):
            worse = [less(rows, at, 0.8, name, name, 0.55) for name in ("LCPF", "STCPU")]
            claims.append(
                Claim("E15", "splitting tasks from 0.8 D to 0.55 D makes LCPF and STCPU worse",
                      f"r = 0.85: LCPF {lcpf[0.8]:.3f} to {lcpf[0.55]:.3f}, STCPU {stcpu[0.8]:.3f} to "
                      f"{stcpu[0.55]:.3f}", verdict(worse))
            )  # fmt: skip
        if 0.05 in paths:
            near = {name: mean(rows, "X3, r = 0.95", name, 0.05) for name in DISPATCHERS}
            claims.append(
                Claim("E16", "short critical paths: near the optimum whatever the dispatcher",
                      "0.05 D, r = 0.95: " + ", ".join(f"{n} {v:.3f}" for n, v in near.items()),
                      "yes" if all(0.95 - v <= NEAR for v in near.values()) else "no")
            )  # fmt: skip
        return claims

    def _valley(self, rows: Sequence[Row], scenario: str, path: float, least: float, most: float) -> str:
        """Whether LCPF has a minimum at this path, which is between these: significantly below the second
        points on both sides, because the next ones hardly differ."""
        if path not in self._paths or not least <= path <= most:
            return "no"
        at = self._paths.index(path)
        around = self._paths[max(at - 2, 0)], self._paths[min(at + 2, len(self._paths) - 1)]
        return dip(rows, scenario, "LCPF", path, around)

    # ------------------------------------------------------------------ nights

    def _farm_claims(self, rows: Sequence[Row]) -> list[Claim]:
        base = select(rows, REWARD, variant=PRIORITY)
        gain = paired(select(rows, REWARD, variant=SELECTED), base)
        said = "selection, a tuned r and LCPF earn 9 to 32 % more than priorities without selection"
        claims = [
            Claim("E17, nights like the trace's", said,
                  f"{gain.mean:+.1f} ± {gain.half:.1f} % on {gain.count} overloaded nights (rewards of ours)",
                  provided(verdict([gain]), held([gain.low <= 32 and gain.high >= 9])),
                  "within" if 9 <= gain.mean <= 32 else "outside of 9 to 32")
        ]  # fmt: skip
        earned = {name: float(np.mean(select(rows, REWARD, variant=name))) for name in FULL}
        ends = {name: float(np.nanmean(select(rows, ENDS, variant=name))) for name in (SELECTED, SHORT)}
        spread = max(earned.values()) / min(earned.values()) - 1
        claims.append(
            Claim("E18", "LCPF hardly depends on r; completion times differ strongly between dispatchers",
                  ", ".join(f"r = {FULL[name]:g}: {value:.1f}" for name, value in earned.items())
                  + f"; jobs in time end at {ends[SELECTED]:.2f} D (LCPF) and {ends[SHORT]:.2f} D (STCPU) on "
                  f"average",
                  joined("yes" if spread <= FAR else "no",
                       "yes" if ends[SELECTED] - ends[SHORT] > FAR else "no"))
        )  # fmt: skip
        return claims


def mean(rows: Sequence[Row], scenario: str, name: str, x: float) -> float:
    """The mean ratio at a point."""
    return float(np.mean(select(rows, RATIO, scenario=scenario, variant=name, x=x)))


def less(
    rows: Sequence[Row], scenario: str, x: float, ours: str, theirs: str, of: float | None = None
) -> Interval:
    """By how much ours is above theirs at a point, workload by workload; ``of``: theirs at another x."""
    mine = select(rows, RATIO, scenario=scenario, variant=ours, x=x)
    other = select(rows, RATIO, scenario=scenario, variant=theirs, x=x if of is None else of)
    return interval([a - b for a, b in zip(mine, other, strict=True)])


def dip(
    rows: Sequence[Row], scenario: str, name: str, x: float, around: Sequence[float], peak: bool = False
) -> str:
    """Whether a dispatcher earns significantly less at a point than at each of those around it, of which it
    is none itself; of a peak more."""
    if x in around:
        return "no"
    gaps = [less(rows, scenario, x if peak else other, name, name, other if peak else x) for other in around]
    return verdict(gaps)
