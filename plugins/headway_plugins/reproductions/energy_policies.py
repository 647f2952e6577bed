"""Figures 6 to 13 and Table 6 of the paper on thirteen policies and energy.

A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. Khan, C. Xu: A comparative study on resource
allocation and energy efficient job scheduling strategies in large-scale parallel computing systems.
Cluster Computing, 2014, sections 5 and 6.

The paper's month of the CCR in Buffalo is not public. The workload model ``ccr`` has its published
marginals; every point is a mean over seeds of it, and all policies meet the same workloads. As in the
paper the queue is examined every 10 s and estimates are exact. The classes of Table 6 are also looked
for on the real traces that are at hand, with their users' estimates, once each.

The energy-aware policies run on the paper's 1,915 machines of three classes (Tables 7 and 8). Beside the
paper's two figures, energy and "total running time (i.e., makespan)", the sum of the jobs' runtimes is
given, because the paper's plots call it the runtime sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headway.emulation import emulate
from headway.energy.profiles import load_profile, with_energy
from headway.experiment.campaign import Campaign, Row, Scenario, Variant, select, workload_of
from headway.experiment.judging import held, verdict
from headway.experiment.plots import bar_plot, box_plot
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, paired
from headway.model import ClusterDescription, NodeDescription, PoolDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import read_swf

#: The paper's batch mode, seconds.
CYCLE = 10.0
#: 1,045 nodes of two processors.
PROCESSORS = 2090
LOAD = 1.03
#: Table 7: machines of each class.
MACHINES = (("I", 1175), ("II", 520), ("III", 220))
#: Percent: what counts as a little overhead of running time.
OVERHEAD = 5.0
#: Jobs of a real trace that are run.
TRACE_JOBS = 20_000

#: Table 6: the policies of each class, as presets.
CLASSES = {
    1: ("minet", "minet-ff", "sjf", "sjf-ff"),
    2: ("fcfs-ff", "ljf-ff", "maxet-ff", "easy", "k-reserved"),
    3: ("fcfs", "ljf", "maxet", "window-k"),
}
EFFICIENT = ("sjf-ee", "ljf-ee", "ljfff-ee")
#: What each of them is without DVFS.
PLAIN = {"sjf-ee": "sjf", "ljf-ee": "ljf", "ljfff-ee": "ljf-ff"}

#: Figures, the class of jobs that they show, and what the paper reads from them.
JOB_CLASSES = (
    ("Figure 6, Table 6", "", "all jobs"),
    ("Figure 7", " SN", "short and narrow jobs"),
    ("Figure 8", " LN", "long and narrow jobs"),
    ("Figure 9", " SW", "short and wide jobs"),
    ("Figure 10", " LW", "long and wide jobs"),
)


def variant(name: str) -> Variant:
    """A preset as a variant of a campaign, in the paper's batch mode."""
    expanded = Catalogue().expanded([PluginConfig(name)])
    return Variant(name, tuple(PluginConfig(c.name, c.options) for c in expanded), CYCLE)


def machines() -> ClusterDescription:
    """The paper's single-processor machines of three classes."""
    nodes = tuple(
        NodeDescription(f"{kind}-{number}", 1, pools=("pool",), node_class=kind)
        for kind, count in MACHINES
        for number in range(1, count + 1)
    )
    cluster = ClusterDescription("chandio2014", (PoolDescription("pool"),), nodes)
    return with_energy(cluster, load_profile("chandio2014"))


def gains(
    rows: Sequence[Row], better: Sequence[str], worse: Sequence[str], metric: str
) -> dict[tuple[str, str], Interval]:
    """By how many percent each of ``better`` is lower than each of ``worse``, seed by seed."""
    found = {}
    for ours in better:
        for theirs in worse:
            change = paired(select(rows, metric, variant=ours), select(rows, metric, variant=theirs))
            found[ours, theirs] = Interval(-change.mean, change.half, change.count)
    return found


class EnergyPoliciesReproduction:
    """The experiments of Chandio and others 2014."""

    title = "Thirteen policies and energy (Chandio and others 2014)"
    published = Published(
        system="open", workloads=1, jobs=22_385, intervals=False, estimates="exact", backfills=True,
        also={"25": "on many days more is submitted than the machine can do"},
    )  # fmt: skip

    def run(self, context: Context) -> list[Claim]:
        claims = self._thirteen(context)
        claims += self._real_traces(context)
        for where, label, sizes in (
            ("Figure 11", "all jobs", None),
            ("Figure 12", "narrow jobs", (1, 1)),
            ("Figure 13", "wide jobs", (2, 10**9)),
        ):
            claims += self._efficient(context, where, label, sizes)
        return claims

    # ------------------------------------------------------------------ thirteen policies

    def _thirteen(self, context: Context) -> list[Claim]:
        scenario = Scenario("CCR month", LOAD, PROCESSORS, model="ccr")
        chosen = tuple(variant(name) for names in CLASSES.values() for name in names)
        rows = context.run("thirteen", Campaign(chosen, (scenario,), context.seeds))
        bar_plot(
            rows, ("mean wait", "mean turnaround", "mean slowdown", "slowdown ratio"),
            context.out / "figure-6.png", title="all jobs",
        )  # fmt: skip
        self._boxes(scenario, chosen, context)
        claims = []
        for where, ending, what in JOB_CLASSES:
            if ending:
                name = where.lower().replace(" ", "-")
                metrics = tuple(f"mean {m}{ending}" for m in ("wait", "turnaround", "slowdown"))
                bar_plot(rows, metrics, context.out / f"{name}.png", title=what)
            claims += self._classes(rows, where, ending, what)
        return claims

    def _boxes(self, scenario: Scenario, variants: Sequence[Variant], context: Context) -> None:
        """Figures 6c and 6d: the spread of one seed."""
        catalogue = Catalogue()
        workload = workload_of(scenario, context.seeds[0], catalogue)
        waits, turnarounds = {}, {}
        for one in variants:
            result = emulate(
                ClusterDescription.flat(PROCESSORS), workload.jobs, list(one.plugins), catalogue,
                label=one.label, cycle=CYCLE,
            )  # fmt: skip
            ran = [job for job in result.jobs if job.start_time is not None and job.end_time is not None]
            waits[one.label] = [(j.start_time or 0.0) - j.job.submit_time for j in ran]
            turnarounds[one.label] = [(j.end_time or 0.0) - j.job.submit_time for j in ran]
        box_plot(
            {"wait": waits, "turnaround": turnarounds}, context.out / "figure-6-boxes.png",
            title=f"all jobs, seed {context.seeds[0]}", label="s",
        )  # fmt: skip

    def _classes(self, rows: Sequence[Row], where: str, ending: str, what: str) -> list[Claim]:
        """Whether the order of the classes of policies is that of Table 6 (as far as the paper claims it)."""
        pairs: tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...] = (
            ((1,), (2,), "class 1 is better than class 2"),
            ((2,), (3,), "class 2 is better than class 3"),
        )
        if ending in (" SN", " LN"):
            pairs = (((1,), (2, 3), "class 1 is better than the others"),)
        if ending == " SW":
            pairs = (((1, 2), (3,), "classes 1 and 2 are better than class 3"),)
        claims = []
        for metric in (f"mean wait{ending}", f"mean turnaround{ending}"):
            if ending == " LW":
                claims.append(self._alike(rows, where, metric, what))
                continue
            for ours, theirs, said in pairs:
                found = gains(rows, _policies(ours), _policies(theirs), metric)
                claims.append(
                    Claim(where, f"{what}: {said} by {metric}", _told(found), verdict([*found.values()]))
                )
        return claims

    def _alike(self, rows: Sequence[Row], where: str, metric: str, what: str) -> Claim:
        """Figure 10: "almost same for all". No rule of the paper says what that is; ours: within 10 %."""
        means = {name: float(np.mean(select(rows, metric, variant=name))) for name in _policies((1, 2, 3))}
        least, most = min(means, key=lambda n: means[n]), max(means, key=lambda n: means[n])
        measured = f"from {means[least]:.0f} s ({least}) to {means[most]:.0f} s ({most})"
        holds = "yes" if means[most] <= 1.1 * means[least] else "no"
        return Claim(where, f"{what}: about the same {metric} for all policies", measured, holds)

    def _real_traces(self, context: Context) -> list[Claim]:
        """Table 6 on logs of other machines, with their users' estimates."""
        paper = "class 1 is better than class 2, and class 2 than class 3, by mean wait"
        found = sorted(context.traces.glob("*.swf.gz")) if context.traces else []
        if not found:
            return [Claim("Table 6, real traces", paper, "no traces at hand (--traces DIR)", "not run")]
        return [self._real_trace(context, path, paper) for path in found]

    def _real_trace(self, context: Context, path: Path, paper: str) -> Claim:
        name = path.name.split(".")[0]
        size = read_swf(path).max_processors or 0
        scenario = Scenario(f"{name}, first {TRACE_JOBS} jobs", 1.0, size, trace=str(path), limit=TRACE_JOBS)
        chosen = tuple(variant(policy) for policy in _policies((1, 2, 3)))
        rows = context.run(f"thirteen-{name}", Campaign(chosen, (scenario,), context.seeds))
        bar_plot(rows, ("mean wait", "mean slowdown"), context.out / f"{name}.png", title=scenario.label)
        means = {p: select(rows, "mean wait", variant=p)[0] for p in _policies((1, 2, 3))}
        right = [
            means[ours] < means[theirs]
            for better, worse in ((1, 2), (2, 3))
            for ours in CLASSES[better]
            for theirs in CLASSES[worse]
        ]
        order = ", ".join(f"{p} {means[p] / 3600:.1f} h" for p in sorted(means, key=lambda p: means[p]))
        measured = f"right for {sum(right)} of {len(right)} pairs of policies: {order}"
        holds = held(right)
        return Claim(f"Table 6, {name}", paper, measured, holds)

    # ------------------------------------------------------------------ energy

    def _efficient(
        self, context: Context, where: str, label: str, sizes: tuple[int, int] | None
    ) -> list[Claim]:
        scenario = Scenario(
            f"CCR month, {label}", LOAD, sum(n for _, n in MACHINES), model="ccr",
            options={"load": LOAD}, cluster=machines(), sizes=sizes,
        )  # fmt: skip
        chosen = tuple(variant(name) for name in (*EFFICIENT, *PLAIN.values()))
        name = where.lower().replace(" ", "-")
        rows = context.run(name, Campaign(chosen, (scenario,), context.seeds))
        bar_plot(
            [row for row in rows if row.variant in EFFICIENT],
            ("energy of jobs", "makespan", "total runtime"), context.out / f"{name}.png", title=label,
        )  # fmt: skip
        claimed: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...]
        if where == "Figure 11":
            claimed = (
                ("energy of jobs", ("ljfff-ee",), ("ljf-ee", "sjf-ee"), "LJFFF-EE uses the least energy"),
                ("energy of jobs", ("ljf-ee",), ("sjf-ee",), "SJF-EE uses more energy than LJF-EE"),
                ("makespan", ("ljf-ee",), ("sjf-ee", "ljfff-ee"), "LJF-EE has the shortest running time"),
                ("total runtime", ("ljf-ee",), ("sjf-ee", "ljfff-ee"), "LJF-EE has the least runtime sum"),
            )
        else:
            claimed = (
                ("energy of jobs", ("ljf-ee",), ("sjf-ee", "ljfff-ee"), "LJF-EE uses the least energy"),
            )
        claims = []
        for metric, better, worse, said in claimed:
            found = gains(rows, better, worse, metric)
            holds = verdict([*found.values()])
            claims.append(Claim(where, f"{label}: {said} ({metric})", _told(found), holds))
        if where != "Figure 11":
            claims += [self._overhead(rows, where, label, metric) for metric in ("makespan", "total runtime")]
        saved = {
            (ours, theirs): gain
            for ours, theirs in PLAIN.items()
            for gain in gains(rows, (ours,), (theirs,), "energy of jobs").values()
        }
        cost = {
            (ours, theirs): gain
            for ours, theirs in PLAIN.items()
            for gain in gains(rows, (ours,), (theirs,), "mean turnaround").values()
        }
        measured = f"energy: {_told(saved)}; mean turnaround: {_told(cost)}"
        claims.append(
            Claim(where, f"{label}: DVFS saves energy against the same policy at full speed", measured,
                  verdict([*saved.values()]))
        )  # fmt: skip
        return claims

    def _overhead(self, rows: Sequence[Row], where: str, label: str, metric: str) -> Claim:
        """ "Little overhead of running time". No rule of the paper says what is little; ours: the confidence
        interval against the best of the three ends within 5 %."""
        others = [name for name in EFFICIENT if name != "ljf-ee"]
        best = min(others, key=lambda name: float(np.mean(select(rows, metric, variant=name))))
        more = paired(select(rows, metric, variant="ljf-ee"), select(rows, metric, variant=best))
        measured = f"{_percent(more)} against {best}, the best of the other two"
        holds = "yes" if more.high <= OVERHEAD else "no"
        return Claim(
            where, f"{label}: LJF-EE has little overhead of running time ({metric})", measured, holds
        )


def _percent(change: Interval) -> str:
    """A change with its sign; what rounds to nothing has none."""
    spread = f" ± {change.half:.1f}" if change.count > 1 else ""
    return f"{round(change.mean, 1) + 0.0:+.1f}{spread} %"


def _policies(classes: Sequence[int]) -> tuple[str, ...]:
    return tuple(name for number in classes for name in CLASSES[number])


def _told(found: dict[tuple[str, str], Interval]) -> str:
    """Improvements as a sentence: all of few, the extremes of many."""

    def one(pair: tuple[str, str]) -> str:
        return f"{pair[0]} against {pair[1]} {_percent(found[pair])}"

    if len(found) <= 3:
        return "lower by " + "; ".join(one(pair) for pair in found)
    order = sorted(found, key=lambda pair: found[pair].mean)
    better = sum(gain.low > 0 for gain in found.values())
    worse = sum(gain.high < 0 for gain in found.values())
    return (
        f"lower by between {one(order[0])} and {one(order[-1])}; significantly better in {better} of "
        f"{len(found)} pairs, worse in {worse}"
    )
