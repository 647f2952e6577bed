"""The hosts and jobs of the published experiment, and variations of them.

D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005, section 5.1. 5,000 hosts; at night each is idle, and each of the
18 day hours is idle with probability f. A share c of the hosts are clients, each of which submits a job of 12
to 24 h at a random time of the day. Time zones are uniform; one pattern of 24 hours is drawn for each host
and repeated every day, for only so slowdowns exceed 5 as in the paper (ours; ``days`` draws further days).

All numbers of a seed come from streams of their own, so nothing that an experiment varies changes the others:
hosts from ``[seed, 0]``, jobs from ``[seed, 1]``, the run from ``[seed, 2]``, further days from ``[seed,
3]``, owners' loads from ``[seed, 4]``. Policies of one seed meet the same hosts and jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway_plugins.wave.draws import Draws
from headway_plugins.wave.hosts import Hosts
from headway_plugins.wave.jobs import Job
from headway_plugins.wave.network import Network, Run
from headway_plugins.wave.options import Clock, Options
from headway_plugins.wave.overlay import HEIGHT, WIDTH, Overlay
from headway_plugins.wave.policies import Policy, Where
from headway_plugins.wave.zones import NIGHT, ZONES, Wavezones

#: Hours of the shortest job, and by how much the longest is longer.
SHORTEST, SPREAD = 12.0, 12.0
#: The owners' largest loads in idle hours, by night and by day.
NIGHT_LOAD, DAY_LOAD = 0.1, 0.3
_DAY = ZONES - len(NIGHT)


@dataclass(frozen=True)
class Population:
    """What is drawn of one seed, for any policy."""

    seed: int
    zones: tuple[int, ...]
    #: Points of the unit square, for the overlay.
    points: tuple[tuple[float, float], ...]
    #: (host, local hour), idle or not.
    calendars: NDArray[np.bool_]
    #: (host, local hour), the owner's load; None: it does not count.
    loads: NDArray[np.float64] | None
    jobs: tuple[Job, ...]

    def hosts(self, clock: Clock) -> Hosts:
        """The hosts, by the clocks of their zones or all by one clock."""
        zones = self.zones if clock is Clock.ZONES else (0,) * len(self.zones)
        return Hosts(zones, self.calendars, loads=self.loads)

    def plain(self) -> Overlay:
        """The overlay in which hosts join anywhere."""
        return Overlay.of((x * WIDTH, v * HEIGHT) for x, v in self.points)

    def by_zone(self, wavezones: int = 6) -> Overlay:
        """The overlay in which each host joins within its own wavezone."""
        groups = Wavezones(wavezones)
        return Overlay.of(
            (x * WIDTH, groups.of(zone) * groups.size + v * groups.size)
            for (x, v), zone in zip(self.points, self.zones, strict=True)
        )

    def run(
        self, policy: Policy, options: Options, draws: Draws | None = None, *, traced: bool = False
    ) -> Run:
        """The seed's run of a policy; ``draws``: other random choices than those of the seed."""
        overlay = self.by_zone(options.wavezones) if policy.where is Where.NIGHT else self.plain()
        return self.run_on(self.hosts(options.clock), overlay, policy, options, draws, traced=traced)

    def run_on(
        self, hosts: Hosts, overlay: Overlay, policy: Policy, options: Options, draws: Draws | None = None,
        *, traced: bool = False,
    ) -> Run:  # fmt: skip
        """The same on hosts and an overlay that are already there."""
        draws = draws or Draws.of(np.random.default_rng([self.seed, 2]))
        return Network(hosts, overlay, policy, options, draws, traced=traced).run(self.jobs)


def population(
    seed: int,
    *,
    free: float,
    clients: float,
    hosts: int = 5000,
    days: int = 1,
    load: bool = False,
    job_days: int = 1,
) -> Population:
    """Draw hosts and jobs.

    ``free``: the probability f that a day hour is idle; ``clients``: the share c of hosts that submit a job;
    ``days``: days of a calendar before it repeats; ``load``: whether the owners' own work counts;
    ``job_days``: on each of so many days other clients are drawn and submit jobs. Raises :class:`UserError`
    for values that cannot be.
    """
    for name, value in (("free", free), ("clients", clients)):
        if not 0 <= value <= 1:
            raise UserError(f"{name}: expected a share from 0 to 1, found {value:g}")
    for name, count in (("hosts", hosts), ("days", days), ("job_days", job_days)):
        if count < 1:
            raise UserError(f"{name}: expected at least 1, found {count}")
    drawn = np.random.default_rng([seed, 0]).random((hosts, 3 + _DAY))
    return Population(
        seed=seed,
        zones=tuple((drawn[:, 0] * ZONES).astype(int).tolist()),
        points=tuple(map(tuple, drawn[:, 1:3].tolist())),
        calendars=_calendars(seed, drawn[:, 3:], free, days),
        loads=_loads(seed, hosts, days) if load else None,
        jobs=tuple(_jobs(seed, hosts, clients, job_days)),
    )


def _calendars(seed: int, first: NDArray[np.float64], free: float, days: int) -> NDArray[np.bool_]:
    """The night of each day, and its day hours."""
    hosts = len(first)
    further = np.random.default_rng([seed, 3]).random((days - 1, hosts, _DAY))
    night = np.ones((hosts, len(NIGHT)), bool)
    return np.hstack([part for day in (first, *further) for part in (night, day < free)])


def _loads(seed: int, hosts: int, days: int) -> NDArray[np.float64]:
    most = [NIGHT_LOAD] * len(NIGHT) + [DAY_LOAD] * _DAY
    return np.random.default_rng([seed, 4]).random((hosts, days * ZONES)) * np.tile(most, days)


def _jobs(seed: int, hosts: int, clients: float, days: int) -> list[Job]:
    """The jobs of the clients of each day, in the order in which the clients are drawn."""
    draws = Draws.of(np.random.default_rng([seed, 1]))
    found = []
    for day in range(days):
        for client in draws.permutation(hosts)[: int(clients * hosts + 0.5)]:
            submit = day * ZONES + ZONES * draws.unit()
            found.append(Job(submit, SHORTEST + SPREAD * draws.unit(), client))
    return found
