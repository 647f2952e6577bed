"""The runs of :mod:`.gur`: metajobs over emulated sites, and queues with and without a reservation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from pathlib import Path

import msgspec
import numpy as np

from headway.experiment.campaign import Row
from headway.workload import TraceJob, read_swf, trace_jobs
from headway_plugins.coscheduling.calls import Answer, Call, Granted
from headway_plugins.coscheduling.emulated_sites import EmulatedSites
from headway_plugins.coscheduling.local_batch import Arrival, LocalBatch, arrivals_of
from headway_plugins.coscheduling.metajob import Machine, Metajob
from headway_plugins.coscheduling.options import SearchOptions
from headway_plugins.coscheduling.queue_plan import Busy, Queued, on_grain
from headway_plugins.coscheduling.search import Done, Search
from headway_plugins.coscheduling.site_book import SiteBook
from headway_plugins.coscheduling.site_policy import SitePolicy
from headway_plugins.workloads.lublin import LublinModel, LublinOptions

#: Name -> nodes and processors of a node: an SP2 of 1,096 processors, and a Linux cluster.
SITES = {"BlueHorizon": (137, 8), "Linux": (128, 2)}
#: Of the batch jobs of each site.
LOAD = 0.8
#: Seconds of a call, and of a grain (the batch system reserves in whole minutes).
LATENCY, GRAIN = 2.0, 60.0
#: Options of the compared searches.
SEARCHES: dict[str, dict[str, bool]] = {
    "division first": {},
    "window first": {"window_first": True},
    "grant up to": {"grant_up_to": True},
}
ACCOUNTS = 20
#: 07:00 PST and 09:30 PST on 9 November 2004.
SC2004 = (1100012400.0, 1100021400.0)


def batch_sites(seed: int, jobs: int, trace: Path | None = None) -> dict[str, LocalBatch]:
    """The sites with their batch jobs: of the model `lublin`, or of a trace, half of its jobs each."""
    found = {}
    for number, (name, (nodes, per_node)) in enumerate(SITES.items()):
        rng = np.random.default_rng((seed, number))
        arrivals = arrivals_of(rng, _batch_jobs(rng, nodes * per_node, jobs, trace, number), nodes, per_node)
        book = SiteBook(nodes, grain=GRAIN, policy=SitePolicy.usual(nodes))
        found[name] = LocalBatch(book, arrivals)
    return found


def _batch_jobs(
    rng: np.random.Generator, processors: int, jobs: int, trace: Path | None, number: int
) -> Sequence[TraceJob]:
    if trace is None:
        options = {"jobs": jobs, "processors": processors, "load": LOAD}
        return LublinModel().generate(rng, LublinOptions.model_validate(options)).jobs
    records, _ = trace_jobs(read_swf(trace), None, limit=2 * jobs)
    return records[number::2]


def draw_metajobs(
    seed: int, count: int, span: tuple[float, float], slack: float
) -> list[tuple[float, Metajob]]:
    """Simultaneous and earliest metajobs of various sizes and lengths, from either side, and when the search
    for each begins."""
    rng = np.random.default_rng((seed, 99))
    found = []
    most = min(SitePolicy.usual(nodes).max_nodes or 0 for nodes, _ in SITES.values())
    for number, time in enumerate(np.sort(rng.uniform(*span, count)).tolist()):
        multiple = rng.random() < 0.5
        total = int(np.rint(2 ** rng.uniform(1, np.log2(2 * most if multiple else most))))
        duration = 60.0 * int(2 ** rng.uniform(np.log2(15), np.log2(240)))
        earliest = float(np.ceil(time / 60)) * 60 + float(rng.choice([1800, 7200, 28800]))
        names = list(SITES) if rng.random() < 0.5 else list(SITES)[::-1]
        account = f"a{int(rng.integers(ACCOUNTS))}"
        machines = {name: Machine(1 if multiple else 0, most, account) for name in names}
        metajob = Metajob(
            f"m{number}", "multiple" if multiple else "single", earliest, earliest + duration + slack, total,
            duration, tuple(names), True, machines,
        )  # fmt: skip
        found.append((time, metajob))
    return found


class _Sums:
    """Means over metajobs, and counts."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}

    def add(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._values.setdefault(name, []).append(value)

    def total(self, name: str) -> float:
        return sum(self._values.get(name, ()))

    def mean(self, name: str) -> float:
        values = [value for value in self._values.get(name, ()) if value == value]
        return float(np.mean(values)) if values else nan


def run_background(
    scenario: str, slack_hours: float, name: str, seed: int, jobs: int, count: int, trace: Path | None
) -> list[Row]:
    """E1: metajobs over two sites whose batch jobs go on."""
    batches = batch_sites(seed, jobs, trace)
    alone = batch_sites(seed, jobs, trace)
    submits = {site: batch.submits() for site, batch in alone.items()}
    last = min(max(of_site.values()) for of_site in submits.values())
    books = {site: batch.book for site, batch in batches.items()}
    sites = EmulatedSites(books, 0.0, LATENCY, batches.values())
    sums = _Sums()
    wanted = draw_metajobs(seed, count, (0.2 * last, 0.9 * last), slack_hours * 3600)
    for time, metajob in wanted:
        sites.pass_time(max(time - sites.now, 0.0))
        sums.add(_one(sites, metajob, name))
    sites.pass_time(1e9)
    for batch in alone.values():
        batch.advance(1e9)
    values = {metric: sums.mean(metric) for metric in METRICS}
    capacity = sum(nodes for nodes, _ in SITES.values()) * 0.7 * last
    values["added load"] = sums.total("node-seconds") / capacity
    waits = [
        (batches[site].started[job] - start, start - submits[site][job])
        for site in SITES
        for job, start in alone[site].started.items()
    ]
    values["extra wait"], values["wait"] = (float(np.mean(column)) for column in zip(*waits, strict=True))
    return [Row(scenario, slack_hours, name, seed, values)]


#: Means over metajobs of :func:`run_background`.
METRICS = (
    "accepted", "accepted multiple", "together", "calls", "rounds", "made", "cancelled", "seconds",
    "node-seconds in vain", "late", "refused in vain", "plans moved",
)  # fmt: skip


def _one(sites: EmulatedSites, metajob: Metajob, name: str) -> dict[str, float]:
    """One metajob, and what it did to the sites."""
    best = _best(sites, metajob)
    costs, began = msgspec.structs.replace(sites.costs), sites.now
    done = sites.run(Search(metajob, SearchOptions.model_validate(SEARCHES[name]), sites.facts))
    accepted = done.outcome == "SUCCESS"
    multiple = metajob.usage == "multiple"
    return {
        "accepted": accepted,
        "accepted multiple": accepted if multiple else nan,
        "together": _together(done) if accepted and multiple else nan,
        "calls": sites.costs.calls - costs.calls,
        "rounds": done.rounds,
        "made": sites.costs.made - costs.made,
        "cancelled": sites.costs.cancelled - costs.cancelled,
        "seconds": sites.now - began,
        "node-seconds in vain": sites.costs.held_in_vain - costs.held_in_vain,
        "late": (done.start or 0.0) - best if accepted and best < inf else nan,
        "refused in vain": best < inf if not accepted else nan,
        "plans moved": _moved(sites, done),
        "node-seconds": sum(part.nodes * (part.end - part.start) for part in done.parts),
    }


def _together(done: Done) -> bool:
    """Whether all parts start when the metajob starts."""
    return {part.start for part in done.parts} == {done.start}


def _best(sites: EmulatedSites, metajob: Metajob) -> float:
    """The earliest start over all divisions; infinite: there is none."""
    options = SearchOptions(grant_up_to=metajob.usage == "multiple")
    copy = sites.copy()
    done = copy.run(Search(metajob, options, copy.facts))
    return inf if done.start is None else done.start


def _moved(sites: EmulatedSites, done: Done) -> float:
    """How many queued jobs have another planned start with the metajob than without it."""
    mine = {part.name for part in done.parts}
    moved = 0
    for book in sites.books.values():
        plans = []
        for left_out in (set(), mine):
            taken = [
                Busy(one.start, on_grain(one.end, book.grain), one.nodes)
                for one in book.show(sites.now)
                if one.name not in left_out
            ]
            plans.append(SiteBook(book.nodes, [*book.busy, *taken], book.queue).starts(sites.now))
        moved += sum(start != plans[1][job] for job, start in plans[0].items())
    return float(moved)


# ---------------------------------------------------------------------- E2


def demonstration() -> EmulatedSites:
    """The three machines of SC2004."""
    return EmulatedSites({"DataStar": SiteBook(176), "Linux": SiteBook(128), "Purdue": SiteBook(2)})


def run_demonstration() -> list[Row]:
    """E2: 12 nodes over three free machines; a row has the nodes of each and the start."""
    machines = {"DataStar": Machine(1, 158), "Linux": Machine(1, 128), "Purdue": Machine(1, 2)}
    wanted = Metajob("sc2004", "multiple", *SC2004, 12, 7200.0, tuple(machines), True, machines)
    sites = demonstration()
    done = sites.run(Search(wanted))
    values = {part.site: float(part.nodes) for part in done.parts}
    return [Row("SC2004", 12.0, "GUR", 1, {**values, "start": nan if done.start is None else done.start})]


# ---------------------------------------------------------------------- E3

#: What the queue does with time. "fixed order": later jobs go behind.
ORDERS = ("fixed order", "expansion factor", "later jobs ahead")


def run_queues(order: str, seed: int, count: int) -> list[Row]:
    """E3: random queues in time, with and without a reservation. Jobs run until their limits."""
    accepted = delayed = jobs = late = 0
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        nodes, busy, queue, later = _random_queue(rng, order)
        policy = SitePolicy(xf_weight=1.0 if order == "expansion factor" else 0.0)
        start, length, width = (int(rng.integers(*ends)) for ends in ((0, 60), (1, 40), (1, nodes + 1)))
        call = Call("set", "", "r", nodes=width, duration=length, earliest=start, latest=400)
        starts = []
        for reserves in (False, True):
            book = SiteBook(nodes, busy, queue, policy=policy)
            if reserves and not isinstance(book.set(call, 0.0), Granted):
                break
            batch = LocalBatch(book, later)
            batch.advance(1e6)
            starts.append({job.id: batch.started[job.id] for job in queue})
        if len(starts) < 2:
            continue
        behind = sum(starts[1][job] > starts[0][job] for job in starts[0])
        accepted, delayed = accepted + 1, delayed + (behind > 0)
        jobs, late = jobs + len(queue), late + behind
    values = {"accepted": accepted, "delaying": delayed, "jobs": jobs, "delayed jobs": late}
    return [Row("queues", float(count), order, seed, {name: float(value) for name, value in values.items()})]


def _random_queue(
    rng: np.random.Generator, order: str
) -> tuple[int, list[Busy], list[Queued], list[Arrival]]:
    """Nodes, running jobs, the queue at time 0, and jobs that arrive afterwards."""
    nodes = int(rng.integers(4, 13))
    busy, left = [], nodes
    while left and rng.random() < 0.8:
        width = int(rng.integers(1, left + 1))
        busy.append(Busy(0.0, float(rng.integers(1, 61)), width))
        left -= width

    def job(name: str, submit: float, priority: float) -> Queued:
        return Queued(name, int(rng.integers(1, nodes + 1)), float(rng.integers(1, 61)), submit, priority)

    queue = [job(f"q{n}", -float(rng.integers(0, 51)), 0.0) for n in range(int(rng.integers(1, 9)))]
    ahead = 1.0 if order == "later jobs ahead" else 0.0
    later = [job(f"l{n}", float(rng.integers(1, 100)), ahead) for n in range(int(rng.integers(0, 5)))]
    return nodes, busy, queue, [Arrival(one, one.limit) for one in later]


# ---------------------------------------------------------------------- E4


class _Listening(EmulatedSites):
    """Sites that note what they are asked, and for whose account."""

    def __init__(self, sites: EmulatedSites) -> None:
        super().__init__(sites.books, sites.now)
        self.kinds: dict[str, int] = {}
        self.accounts: set[str] = set()

    def carry_out(self, call: Call) -> Answer:
        self.kinds[call.kind] = self.kinds.get(call.kind, 0) + 1
        if call.kind == "set":
            self.accounts.add(call.account)
        return super().carry_out(call)


def run_unprivileged() -> list[Row]:
    """E4: what a search asks of its sites; "other" is anything but the four requests of a user."""
    machines = {name: Machine(1, 32, "a user") for name in SITES}
    books = {name: SiteBook(nodes, [Busy(0, 3600, nodes - 20)]) for name, (nodes, _) in SITES.items()}
    sites = _Listening(EmulatedSites(books))
    wanted = Metajob("m", "multiple", 0.0, 86400.0, 60, 3600.0, tuple(SITES), True, machines)
    done = sites.run(Search(wanted))
    values = {kind: float(sites.kinds.get(kind, 0)) for kind in ("set", "cancel", "show", "bind")}
    values["other"] = sum(sites.kinds.values()) - sum(values.values())
    values["other accounts"] = float(len(sites.accounts - {"a user"}))
    values["accepted"] = float(done.outcome == "SUCCESS")
    return [Row("a user's requests", 2.0, "GUR", 1, values)]
