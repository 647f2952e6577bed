"""The workload of the experiments on SAREG, drawn over any trace.

T. Xie, X. Qin, A. Sung: Enhancing Security of Real-Time Applications on Grids Through Dynamic Scheduling.
JSSPP 2005, section 5.1 and Table 4. A trace gives arrivals, run times and processors; everything else is
drawn. Decisions on what the paper leaves open:

- Classes by run time: short up to 10 minutes, medium up to 6 hours, long. A class has a mean amount of data
  to protect, of input and of code; each size is uniform in 0.5 to 1.5 times its mean.
- Input data of "1 TB" of long jobs reads like 1 GB beside 100 MB and 500 MB: at 10.2 MB/s a terabyte takes
  27 hours, so no long job could ever be moved. ``long_input`` says which.
- Bandwidth of each ordered pair of sites uniform in 1.5 to 10.2 MB/s (the text), or a single bandwidth for
  all (Table 4 has 5).
- Levels "randomly from 0.1 to 1.0": of each service two entries of its table, drawn independently, are the
  range.
- A processor that is so many times as fast divides run time and overhead, also in the deadline (11): arrival
  + run time + overhead at the upper ends + laxity.
- Draws do not depend on laxity, speed or sizes of data, so that points of one seed can be compared pair by
  pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headway_plugins.security.grid import Grid, GridJob
from headway_plugins.security.levels import Need, Profile

Ranges = Literal["pair", "full", "top", "bottom"]

#: Seconds: the longest short and the longest medium job.
CLASSES = (600.0, 21600.0)
#: Bytes, short, medium and long: to protect; input data (of long jobs an option); code.
PROTECTED = (50e3, 500e3, 1e6)
INPUT = (100e6, 500e6)
CODE = (500e3, 5e6, 50e6)
#: Bytes a second.
BANDWIDTH = (1.5e6, 10.2e6)


@dataclass(frozen=True)
class Settings:
    """What the experiments vary."""

    sites: int = 4
    #: Of each site.
    processors: int = 46
    #: Times that of the machine of the trace.
    speed: float = 2.0
    #: Seconds: beta.
    laxity: float = 50.0
    #: Bytes a second between any two sites; None: drawn.
    bandwidth: float | None = None
    ranges: Ranges = "pair"
    #: Mean input data of a long job, bytes.
    long_input: float = 1e9
    #: On the amount of data to protect.
    protected: float = 1.0


def draw(
    rng: np.random.Generator,
    settings: Settings,
    profile: Profile,
    *,
    names: Sequence[str],
    submit: NDArray[np.float64],
    runtime: NDArray[np.float64],
    processors: NDArray[np.int64],
) -> tuple[Grid, list[GridJob]]:
    """The sites and the jobs, in the order given: submissions and run times in seconds, on the trace's
    machine.
    """
    links, homes, sizes, ranges = rng.spawn(4)
    count, n = len(submit), settings.sites
    width = links.uniform(*BANDWIDTH, (n, n)) if settings.bandwidth is None else settings.bandwidth
    bandwidth = np.broadcast_to(width, (n, n))
    home = (homes.random(count) * n).astype(np.int64)
    kind = np.searchsorted(CLASSES, runtime)
    spread = sizes.uniform(0.5, 1.5, (3, count))
    protected = settings.protected * np.array(PROTECTED)[kind] * spread[0]
    moved = np.array([*INPUT, settings.long_input])[kind] * spread[1] + np.array(CODE)[kind] * spread[2]
    low, high, drawn = (np.empty((count, 3), np.int64) for _ in range(3))
    for service, ladder in enumerate(profile.ladders):
        top = len(ladder) - 1
        ends = np.sort(ranges.integers(0, top + 1, (count, 2)), axis=1)
        one = ranges.integers(0, top + 1, count)
        bottom, upper = np.zeros(count, np.int64), np.full(count, top, np.int64)
        low[:, service], high[:, service] = {
            "pair": (ends[:, 0], ends[:, 1]),
            "full": (bottom, upper),
            "top": (one, upper),
            "bottom": (bottom, one),
        }[settings.ranges]
        share = ranges.random(count)
        drawn[:, service] = (share * (high[:, service] - low[:, service] + 1)).astype(np.int64)
    jobs = []
    for at in range(count):
        first, second, third = (
            ladder[low[at, service] : high[at, service] + 1] for service, ladder in enumerate(profile.ladders)
        )
        need = Need(float(protected[at]), (first, second, third), profile.weights, settings.speed)
        execution = float(runtime[at]) / settings.speed
        arrival = float(submit[at])
        jobs.append(
            GridJob(
                names[at], arrival, int(processors[at]), execution,
                arrival + execution + need.cost(need.highest) + settings.laxity,
                int(home[at]), float(moved[at]), need,
                (int(drawn[at, 0]), int(drawn[at, 1]), int(drawn[at, 2])),
            )
        )  # fmt: skip
    rows = [tuple(float(value) for value in row) for row in bandwidth]
    return Grid((settings.processors,) * n, tuple(rows)), jobs
