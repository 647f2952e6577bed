"""SAREG and the schedulers that it was compared with, on a grid of sites, without the framework.

T. Xie, X. Qin, A. Sung: Enhancing Security of Real-Time Applications on Grids Through Dynamic Scheduling.
JSSPP 2005, section 2 and Figure 3; Min-Min and Sufferage: M. Maheswaran and others: Dynamic Matching and
Scheduling of a Class of Independent Tasks onto Heterogeneous Computing Systems. HCW 1999.

A site has identical processors; a job needs so many of one site at once, and once accepted it is never
withdrawn. Moving a job to another site takes its data over the link between them, which is the first part of
its run there. Decisions on what the papers leave open:

- The paper cites a Property 1 and never states it: a job is feasible where start + transfer + execution +
  protection is not after its deadline. The earliest start may be in a hole before what is booked.
- All processes of a job start together on one site, with the same levels, and protect their data in
  parallel, so the overhead is added once.
- ``site_choice: home_first`` (step 17) tries other sites only where home cannot; ``best`` takes the site
  with the best levels (step 21). Of equal sites the earlier end counts, then home, then the lower number.
- No step of Figure 3 keeps a raise from making an accepted job late. ``plan: fixed``: an accepted job owns
  its time, and a raise must fit before the next owner. ``plan: edf``: what has not begun is placed again by
  deadline at each arrival, and the newcomer is refused if any would be late.
- NS-EDF is SAREG with levels that are drawn and never raised; it refuses too, since its published share of
  accepted jobs is that of SAREG.
- Min-Min and Sufferage know no deadlines. At a mapping event all waiting jobs are assigned. A job whose start
  is now begins; other jobs wait for the next event. Holes are not filled. Mapping events are at multiples of
  an interval, 0: at each arrival and completion. A job that fits on one site alone has an infinite sufferage.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headway.resources.profile import Profile
from headway_plugins.security.levels import ROUNDING, Need, Steps, raise_in_turn

_INF = float("inf")
Floats = NDArray[np.float64]
Raise = Callable[[Need, float], "Steps | None"]


@dataclass(frozen=True)
class GridJob:
    """A job as its user submits it; seconds and bytes."""

    name: str
    arrival: float
    processors: int
    execution: float
    #: Absolute.
    deadline: float
    #: Number of its site.
    home: int
    #: What has to be moved to another site.
    volume: float
    need: Need
    #: The levels that the compared schedulers give it.
    drawn: Steps


@dataclass(frozen=True)
class Grid:
    """Sites and the links between them."""

    processors: tuple[int, ...]
    #: Bytes a second from the row's site to the column's.
    bandwidth: tuple[tuple[float, ...], ...]

    def transfer(self, job: GridJob, site: int) -> float:
        """Seconds that it takes to bring the job's data there."""
        return 0.0 if site == job.home else job.volume / self.bandwidth[job.home][site]


@dataclass(frozen=True)
class Placed:
    """Where and when a job runs: [start, end), with these levels."""

    site: int
    start: float
    end: float
    steps: Steps
    transfer: float = 0.0


@dataclass(frozen=True)
class Shortfall:
    """Why a site cannot take a job: its deadline is so many seconds too early there; infinite: it is too
    small.
    """

    site: int
    seconds: float


@dataclass
class Course:
    """What became of the jobs, in their order: where each ran, or why no site took it."""

    jobs: Sequence[GridJob]
    placed: list[Placed | Shortfall | None] = field(default_factory=list)

    def met(self) -> list[tuple[GridJob, Placed]]:
        """The jobs that ended by their deadlines."""
        return [
            (job, where)
            for job, where in zip(self.jobs, self.placed, strict=True)
            if isinstance(where, Placed) and where.end <= job.deadline + ROUNDING
        ]

    @property
    def guarantee_ratio(self) -> float:
        """GR: the share of the jobs that ended by their deadlines."""
        return len(self.met()) / len(self.jobs)

    @property
    def security_value(self) -> float:
        """SV, equations (3) to (6): of these, the sum of processors times level."""
        return sum(job.processors * job.need.level(where.steps) for job, where in self.met())

    @property
    def overall(self) -> float:
        """OSP = SV x GR."""
        return self.security_value * self.guarantee_ratio


# ------------------------------------------------------------------ SAREG and NS-EDF


@dataclass
class _Booked:
    """An accepted job of a site that re-plans."""

    index: int
    job: GridJob
    placed: Placed

    @property
    def length(self) -> float:
        return self.placed.end - self.placed.start


class Site:
    """What is booked on a site."""

    def __init__(self, processors: int, now: float = 0.0) -> None:
        self.processors = processors
        self.profile = Profile(now, processors)

    def find(
        self,
        need: Need,
        raising: Raise,
        *,
        processors: int,
        length: float,
        deadline: float,
        after: float,
        number: int = 0,
        transfer: float = 0.0,
    ) -> Placed | Shortfall:
        """``try`` of Figure 3: the earliest start from ``after`` on at the lowest levels, then the levels
        raised.

        ``length``: seconds of transfer and execution.
        """
        if processors > self.processors:
            return Shortfall(number, _INF)
        least = length + need.cost(need.lowest)
        start = self.profile.earliest(processors, least, after)
        if start + least > deadline + ROUNDING:
            return Shortfall(number, start + least - deadline)
        limit = min(deadline, self.profile.until(processors, start))
        steps = raising(need, limit - start - length) or need.lowest
        return Placed(number, start, start + length + need.cost(steps), steps, transfer)

    def book(self, placed: Placed, processors: int) -> None:
        self.profile.reserve(placed.start, placed.end, processors)


def sareg(
    grid: Grid,
    jobs: Sequence[GridJob],
    *,
    raising: Raise = raise_in_turn,
    site_choice: Literal["home_first", "best"] = "home_first",
    plan: Literal["fixed", "edf"] = "fixed",
    drawn: bool = False,
) -> Course:
    """Run ``jobs``, in order of arrival, under SAREG; ``drawn``: under NS-EDF."""
    sites = [Site(count) for count in grid.processors]
    booked: list[list[_Booked]] = [[] for _ in sites]
    course = Course(jobs, [None] * len(jobs))

    def at(job: GridJob, number: int) -> Placed | Shortfall:
        need = job.need.only(job.drawn) if drawn else job.need
        transfer = grid.transfer(job, number)
        if plan == "edf":
            return _among(sites[number], booked[number], job, number, transfer, need, raising)
        sites[number].profile.forget_before(job.arrival)
        return sites[number].find(
            need, raising, processors=job.processors, length=transfer + job.execution, deadline=job.deadline,
            after=job.arrival, number=number, transfer=transfer,
        )  # fmt: skip

    def worth(job: GridJob, found: Placed) -> tuple[float, float, bool, int]:
        need = job.need.only(job.drawn) if drawn else job.need
        return -need.level(found.steps), found.end, found.site != job.home, found.site

    for index, job in enumerate(jobs):
        tried = [at(job, job.home)]
        if site_choice == "best" or isinstance(tried[0], Shortfall):
            tried += [at(job, number) for number in range(len(sites)) if number != job.home]
        feasible = [found for found in tried if isinstance(found, Placed)]
        if not feasible:
            course.placed[index] = min(
                (found for found in tried if isinstance(found, Shortfall)), key=lambda s: (s.seconds, s.site)
            )
            continue
        chosen = min(feasible, key=lambda found: worth(job, found))
        if plan == "edf":
            mine = booked[chosen.site]
            mine.append(_Booked(index, job, chosen))
            _place_again(sites[chosen.site], mine, job.arrival)
            for entry in mine:
                course.placed[entry.index] = entry.placed
        else:
            sites[chosen.site].book(chosen, job.processors)
            course.placed[index] = chosen
    if drawn:
        course.placed = [
            Placed(p.site, p.start, p.end, job.drawn, p.transfer) if isinstance(p, Placed) else p
            for job, p in zip(jobs, course.placed, strict=True)
        ]
    return course


def _begun(site: Site, booked: Sequence[_Booked], now: float) -> tuple[Profile, list[_Booked]]:
    """What the jobs that run at ``now`` leave, and the waiting jobs, by deadline."""
    profile = Profile(now, site.processors)
    waiting = []
    for entry in booked:
        if entry.placed.start > now:
            waiting.append(entry)
        elif entry.placed.end > now:
            profile.reserve(now, entry.placed.end, entry.job.processors)
    return profile, sorted(waiting, key=lambda entry: (entry.job.deadline, entry.index))


def _among(
    site: Site, booked: list[_Booked], job: GridJob, number: int, transfer: float, need: Need, raising: Raise
) -> Placed | Shortfall:
    """Where the newcomer comes among the jobs that have not begun, all by deadline; refused if any job would
    be late.
    """
    if job.processors > site.processors:
        return Shortfall(number, _INF)
    booked[:] = [entry for entry in booked if entry.placed.end > job.arrival]
    profile, waiting = _begun(site, booked, job.arrival)
    length = transfer + job.execution
    least = length + need.cost(need.lowest)
    start = None
    for entry in [*waiting, None]:
        if start is None and (entry is None or entry.job.deadline > job.deadline):
            start = profile.earliest(job.processors, least, job.arrival)
            if start + least > job.deadline + ROUNDING:
                return Shortfall(number, start + least - job.deadline)
            profile.reserve(start, start + least, job.processors)
        if entry is not None:
            begin = profile.earliest(entry.job.processors, entry.length, job.arrival)
            if begin + entry.length > entry.job.deadline + ROUNDING:
                return Shortfall(number, begin + entry.length - entry.job.deadline)
            profile.reserve(begin, begin + entry.length, entry.job.processors)
    assert start is not None
    profile.release(start, start + least, job.processors)
    limit = min(job.deadline, profile.until(job.processors, start))
    steps = raising(need, limit - start - length) or need.lowest
    return Placed(number, start, start + length + need.cost(steps), steps, transfer)


def _place_again(site: Site, booked: Sequence[_Booked], now: float) -> None:
    """The newcomer, the last of ``booked``, is where it was found, and around it all that has not begun, by
    deadline.

    Its levels were raised in the gap that the other jobs leave, so each job comes to where it was then.
    """
    newcomer = booked[-1]
    profile, waiting = _begun(site, booked[:-1], now)
    profile.reserve(newcomer.placed.start, newcomer.placed.end, newcomer.job.processors)
    for entry in waiting:
        old = entry.placed
        begin = profile.earliest(entry.job.processors, entry.length, now)
        profile.reserve(begin, begin + entry.length, entry.job.processors)
        entry.placed = Placed(old.site, begin, begin + entry.length, old.steps, old.transfer)


# ------------------------------------------------------------------ Min-Min and Sufferage

Rule = Literal["minmin", "sufferage"]


def mapping(
    now: float,
    free: Sequence[Floats],
    processors: NDArray[np.int64],
    durations: Floats,
    rule: Rule,
    *,
    all_of_it: bool = False,
    common: NDArray[np.int64] | None = None,
) -> list[tuple[int, int, float]]:
    """A mapping event: ``(job, site, start)`` in the order of the choices.

    ``free``: of each site when each of its processors is free, rising; ``processors``, ``durations``: of the
    jobs, in order of arrival, the second by site, infinite where a job cannot run. Ends when no processor is
    free now, since what is assigned after that starts later; ``all_of_it``: when every job that fits is
    assigned. ``common``: how many processors two sites have in common, site by site; then a job is taken to
    have as many of these as it can.
    """
    if len(processors) == 1:
        width = int(processors[0])
        begins = [max(float(t[width - 1]), now) if width <= len(t) else _INF for t in free]
        ends_at = [begin + float(seconds) for begin, seconds in zip(begins, durations[0], strict=True)]
        site = min(range(len(free)), key=lambda number: ends_at[number])
        return [(0, site, begins[site])] if ends_at[site] < _INF else []
    left = [np.maximum(times, now) for times in free]
    waiting = list(range(len(processors)))
    starts = np.full(durations.shape, _INF)
    made = []

    def look(site: int) -> None:
        fits = processors <= len(left[site])
        starts[fits, site] = left[site][processors[fits] - 1]

    for site in range(len(left)):
        look(site)
    open_jobs = np.ones(len(processors), np.bool_)
    ends = starts + durations
    while waiting and (all_of_it or any(times[0] <= now for times in left if len(times))):
        job = _next(rule, ends, open_jobs)
        if not open_jobs[job] or not np.isfinite(ends[job].min()):
            break
        site = int(np.argmin(ends[job]))
        made.append((job, site, float(starts[job, site])))
        open_jobs[job] = False
        waiting.remove(job)
        end = ends[job, site]
        shares = {site: int(processors[job])}
        if common is not None:
            met = np.minimum(common[site], shares[site])
            shares |= {other: int(met[other]) for other in np.flatnonzero(met).tolist() if other != site}
        for other, taken in shares.items():
            left[other] = np.sort(np.concatenate((left[other][taken:], np.full(taken, end))))
            look(other)
            ends[:, other] = starts[:, other] + durations[:, other]
    return made


def _next(rule: Rule, ends: Floats, open_jobs: NDArray[np.bool_]) -> int:
    """The job that is assigned next; ``ends``: of each job by site, ``open_jobs``: jobs that are not yet."""
    if rule == "minmin":
        return int(np.argmin(np.where(open_jobs, ends.min(axis=1), _INF)))
    two = np.partition(ends, 1, axis=1)[:, :2] if ends.shape[1] > 1 else np.repeat(ends, 2, axis=1)
    with np.errstate(invalid="ignore"):
        value = two[:, 1] - two[:, 0]
    return int(np.argmax(np.where(open_jobs & np.isfinite(two[:, 0]), value, -_INF)))


def batch(grid: Grid, jobs: Sequence[GridJob], rule: Rule, interval: float = 0.0) -> Course:
    """Run ``jobs``, in order of arrival, under Min-Min or Sufferage with a mapping event at each multiple of
    ``interval`` seconds (0: at each arrival and completion)."""
    course = Course(jobs, [None] * len(jobs))
    free = [np.zeros(count) for count in grid.processors]
    widths = np.array([job.processors for job in jobs], np.int64)
    transfers = np.array([[grid.transfer(job, site) for site in range(len(free))] for job in jobs])
    own = np.array([job.execution + job.need.cost(job.drawn) for job in jobs])
    durations = transfers + own[:, None]
    durations[widths[:, None] > np.array(grid.processors)[None, :]] = _INF
    pool: list[int] = []
    arriving = 0
    ends: list[float] = []
    while arriving < len(jobs) or (pool and ends):
        now = min(jobs[arriving].arrival if arriving < len(jobs) else _INF, ends[0] if ends else _INF)
        if interval > 0:
            now = float(np.ceil(now / interval - 1e-12)) * interval
        while arriving < len(jobs) and jobs[arriving].arrival <= now:
            if np.isfinite(durations[arriving]).any():
                pool.append(arriving)
            arriving += 1
        while ends and ends[0] <= now:
            heapq.heappop(ends)
        if not pool:
            continue
        rows = np.array(pool)
        for row, site, start in mapping(now, free, widths[rows], durations[rows], rule):
            if start > now:
                continue
            index = pool[row]
            end = start + float(durations[index, site])
            course.placed[index] = Placed(site, start, end, jobs[index].drawn, float(transfers[index, site]))
            width = jobs[index].processors
            # Several begin at once: each takes what is free, whatever is planned behind it.
            free[site] = np.sort(np.concatenate((free[site][width:], np.full(width, end))))
            heapq.heappush(ends, end)
        started = {index for index in pool if course.placed[index] is not None}
        pool = [index for index in pool if index not in started]
    return course
