"""The experiments of the paper on the Wave Scheduler.

D. Zhou, V. Lo: Wave Scheduler: Scheduling for Faster Turnaround Time in Peer-Based Desktop Grid Systems.
JSSPP 2005, section 5. The curves of all figures are lost in the text that was at hand, so claims are what the
paper says in words. 15 seeds are the paper's 15 runs a point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway.errors import UserError
from headway.experiment.campaign import Row, Task
from headway.experiment.published import Published
from headway.experiment.reproduction import Claim, Context
from headway_plugins.reproductions.wave_claims import LITTLE, judged
from headway_plugins.reproductions.wave_runs import (
    BINS,
    OF_RULES,
    SHOWN,
    STRIPS,
    VARIATIONS,
    WAVES,
    label,
    run_histogram,
    run_point,
    run_rules,
    run_strip,
    run_variations,
    scenario,
    variants,
)
from headway_plugins.reproductions.wave_tables import (
    histogram_plot,
    plots,
    strip_plot,
    tables,
    write_tables,
)
from headway_plugins.wave.options import Clock
from headway_plugins.wave.policies import POLICIES
from headway_plugins.wave.zones import Target

FREE = (5, 15, 25, 35, 45, 65, 85, 95)
CLIENTS = (10, 30, 50, 70, 90)
#: No claim is judged by the variations, so few seeds will do.
SEEDS_OF_VARIATIONS = 5


class WaveReproduction:
    """The experiments of Zhou and Lo 2005."""

    title = "Wave Scheduler: jobs that follow the night (Zhou and Lo 2005)"
    published = Published(system="open", workloads=1, jobs=15_000, intervals=False, means_alone=True)

    def __init__(
        self, hosts: int = 5000, free: Sequence[float] = FREE, clients: Sequence[float] = CLIENTS
    ) -> None:
        """``free``: percentages of free time by day; ``clients``: percentages of hosts that submit a job."""
        self._free, self._clients = tuple(map(float, free)), tuple(map(float, clients))
        for name, values in (("free", self._free), ("clients", self._clients)):
            if len(values) < 2 or sorted({*values}) != list(values) or values[0] < 0 or values[-1] > 100:
                raise UserError(f"--set {name}: expected ascending percentages, found {list(values)}")
        if LITTLE not in self._free:
            raise UserError(f"--set free: expected {LITTLE} among the percentages, found {list(self._free)}")
        if hosts < 10:
            raise UserError(f"--set hosts: expected at least 10, found {hosts}")
        self._hosts = hosts

    def run(self, context: Context) -> list[Claim]:
        by_free = self._sweep(context, "free-time", "c", self._free)
        by_clients = self._sweep(context, "clients", "f", self._clients)
        by_clock = [(clock, label(*one)) for clock in Clock for one in variants(clock)]
        figure_6 = self._each_seed(
            context, "figure-6", [(scenario("f, c", clock), 15.0, name) for clock, name in by_clock],
            run_histogram, BINS,
        )  # fmt: skip
        rules = self._each_seed(
            context, "rules",
            [("rules", x, f"{name}, {rule}") for x in OF_RULES for name in WAVES for rule in Target],
            run_rules, OF_RULES,
        )  # fmt: skip
        other = self._each_seed(
            context, "variations", [(what, 15.0, name) for what in VARIATIONS for name in POLICIES],
            run_variations, VARIATIONS, most=SEEDS_OF_VARIATIONS,
        )  # fmt: skip
        strip = context.collect(
            "strip",
            [Task(tuple(("strip", float(job), name, job) for name in STRIPS for job in range(SHOWN)),
                  run_strip, (self._hosts,))],
            (self._hosts, STRIPS),
        )  # fmt: skip
        plots(by_free, by_clients, context.out)
        histogram_plot(figure_6, context.out / "figure-6.png")
        strip_plot(strip, context.out / "strip.png")
        write_tables(context.out / "tables.md", tables(by_free, by_clients, rules, other))
        return judged(by_free, by_clients, figure_6, rules, {"f": self._free, "c": self._clients})

    def _sweep(self, context: Context, name: str, fixed: str, xs: Sequence[float]) -> list[Row]:
        """All variants over free time (c fixed) or clients (f fixed)."""
        tasks = [
            Task(
                tuple((scenario(fixed, clock), x, label(*one), seed)
                      for clock in Clock for one in variants(clock)),
                run_point,
                (seed, fixed, x, *((x / 100, 0.2) if fixed == "c" else (0.15, x / 100)), self._hosts),
            )
            for x in xs for seed in context.seeds
        ]  # fmt: skip
        return context.collect(name, tasks, self._hosts)

    def _each_seed(
        self, context: Context, name: str, keys: Sequence[tuple[str, float, str]],
        run: Callable[..., list[Row]], definition: object, *, most: int | None = None,
    ) -> list[Row]:  # fmt: skip
        """Rows that one task a seed gives; ``most``: of so many seeds at most."""
        tasks = [
            Task(tuple((*key, seed) for key in keys), run, (seed, self._hosts))
            for seed in context.seeds[:most]
        ]
        return context.collect(name, tasks, (self._hosts, definition))
