"""The cluster of the LPC, Clermont-Ferrand: its queues, and presets of its groups.

E. Medernach, "Workload Analysis of a Cluster in a Grid Environment", JSSPP 2005: Table 1 (queues), and the
tables of groups. *Ours*: a group's arrivals come from a login/logout process with the printed mean and
coefficient of variation of the times between jobs; the paper gives two moments where the process has three
rates, so a login has 1.25 times as many jobs as the least that the variation allows. Runtimes have the
printed mean and standard deviation in stages whose knots are ours; the stages of Biomed also have the two
quantiles of the text (half below 10 s, 70 % below 15 minutes).
"""

from __future__ import annotations

from dataclasses import dataclass

from headway_plugins.grid.rates import Rates
from headway_plugins.grid.runtimes import StagedRuntimes

HOUR = 3600.0

#: Processors, from 15 September 2004 on: 70 nodes of two, of which 28 and 42 have a front-end of their own.
PROCESSORS = 140
NODES = (28, 42)
#: Limit on running jobs of each queue.
MOST_RUNNING = 130
#: Jobs of a login, over the least that the variation of the times between jobs allows.
BURST = 1.25


@dataclass(frozen=True)
class Queue:
    """A queue of Table 1."""

    name: str
    #: Seconds of processor time, and of wall time, after which its jobs are ended.
    most_cpu: float
    most_wall: float
    priority: int


#: From the smallest to the largest; traces number them from 1.
QUEUES = (
    Queue("Test", 300.0, 900.0, 1_000_000),
    Queue("Short", 1200.0, 5400.0, 270_000),
    Queue("Long", 8 * HOUR, 24 * HOUR, 10_000),
    Queue("Day", 24 * HOUR, 36 * HOUR, 0),
    Queue("Infinite", 48 * HOUR, 72 * HOUR, -360_000),
)


@dataclass(frozen=True)
class Group:
    """A group's printed figures; times in seconds."""

    name: str
    jobs: int
    mean_run: float
    run_deviation: float
    mean_wait: float
    mean_gap: float
    gap_deviation: float
    runtimes: StagedRuntimes

    @property
    def rates(self) -> Rates:
        """The rates of the whole group, as a single process."""
        variation = self.gap_deviation / self.mean_gap
        return Rates.of_moments(self.mean_gap, variation, BURST * (variation**2 - 1.0) / 2.0)


#: By the name of the preset.
GROUPS = {
    "lpc-biomed": Group(
        "Biomed", 108_197, 5417.0, 22_942.2, 781.5, 223.6, 5194.5,
        StagedRuntimes((1, 10, 60, 900, 7200, 43200, 259200), (0.5, 0.1, 0.1, 0.205822, 0.065655, 0.028523)),
    ),
    "lpc-dteam": Group(
        "Dteam", 94_474, 222.0, 3673.6, 1424.1, 256.2, 2385.4,
        StagedRuntimes((1, 60, 3600, 259200), (0.873576, 0.124724, 0.0017)),
    ),
    "lpc-lhcb": Group(
        "LHCb", 9709, 2072.0, 7783.4, 217.7, 2474.6, 39_460.5,
        StagedRuntimes((1, 600, 7200, 259200), (0.393254, 0.600486, 0.00626)),
    ),
    "lpc-atlas": Group(
        "Atlas", 7979, 13_071.0, 28_788.8, 2332.8, 2824.1, 60_789.4,
        StagedRuntimes((1, 3600, 43200, 259200), (0.490937, 0.463729, 0.045334)),
    ),
    "lpc-dzero": Group(
        "Dzero", 1332, 213.0, 393.9, 90.7, 5018.7, 50_996.6,
        StagedRuntimes((1, 60, 900, 7200), (0.414413, 0.576251, 0.009336)),
    ),
}  # fmt: skip
