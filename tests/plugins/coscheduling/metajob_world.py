"""A federation of emulated sites with the plugin ``metajobs``, users that ask it, and crashes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from building import plugged, traced

from headway import decisions as d
from headway import events as ev
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, PoolDescription, Reservation, Site, Sites
from headway.scheduler import Scheduler
from headway.workload.jobs import TraceJob
from headway_adapters.emulated import Faults
from headway_adapters.federation.emulated import EmulatedFederation
from headway_plugins.coscheduling.calls import metajob_of
from headway_plugins.coscheduling.metajob_options import MetajobOptions
from headway_plugins.coscheduling.metajobs import Metajobs
from headway_plugins.policies.easy import Easy

HOUR = 3600.0


#: A site whose job keeps the clock going.
_CLOCK, _LONG = "clock", 100_000.0


def sites(**sizes: int) -> ClusterDescription:
    """Sites with one flat pool each."""
    sizes = {**sizes, _CLOCK: 1}
    pools = tuple(PoolDescription(f"{name}:q", size) for name, size in sizes.items())
    placed = tuple(Site(name, pools=(f"{name}:q",)) for name in sizes)
    return ClusterDescription("all", pools, sites=Sites(placed))


def options(cluster: ClusterDescription, **more: Any) -> MetajobOptions:
    """A machine for each pool, called as its site in capitals; no limits but those given."""
    machines = {
        pool.name.partition(":")[0].upper(): {"pool": pool.name, "grain": 1, "min_duration": 1, "slack": 0}
        for pool in cluster.pools
        if pool.name != f"{_CLOCK}:q"
    }
    wide = {"max_reservations": 1000, "max_nodes": 1000, "max_duration": 1e6, "max_node_seconds": 1e12}
    given: dict[str, Any] = {"machines": machines, "limits": wide, "budget": 1.0, "lead": 0, **more}
    return MetajobOptions(**given)


def multiple(total: int, *, duration: float = 100.0, latest: float = 1e6, **machines: Any) -> dict[str, Any]:
    """A metajob; machines as ``A=(min, max)``."""
    bounds = {name: {"min": least, "max": most} for name, (least, most) in machines.items()}
    return {
        "usage": "multiple", "earliest": 0.0, "latest": latest, "total": total, "duration": duration,
        "machines": bounds,
    }  # fmt: skip


class Meddler:
    """Makes decisions of its own at given times, and forbids some."""

    def __init__(self) -> None:
        self.wishes: list[tuple[float, d.Decision]] = []
        self.forbids: Any = lambda decision: False

    @hookimpl
    def react(self, state: Any) -> list[d.Decision]:
        due = [decision for time, decision in self.wishes if time <= state.now]
        self.wishes = [wish for wish in self.wishes if wish[0] > state.now]
        return due

    @hookimpl
    def veto(self, decision: d.Decision) -> str | None:
        return "no" if self.forbids(decision) else None


class World:
    """Sites that outlive the scheduler."""

    def __init__(
        self,
        cluster: ClusterDescription,
        jobs: Iterable[TraceJob] = (),
        *,
        faults: Faults | None = None,
        seed: int = 0,
        plugins: Sequence[Any] = (),
        policy: Any = None,
        **more: Any,
    ) -> None:
        self.cluster, self.policy = cluster, policy
        self.options = options(cluster, **more)
        clock = traced(f"{_CLOCK}:1", 1, _LONG, 0, pool=f"{_CLOCK}:q")
        self.adapter: Any = EmulatedFederation(
            cluster, sorted([clock, *jobs], key=lambda one: one.job.submit_time), faults=faults,
            rng=np.random.default_rng(seed),
        )  # fmt: skip
        self.others = plugins
        self.now = 0.0
        self.asks: list[tuple[float, ev.PluginAsked]] = []
        self.replies: dict[str, d.Answer] = {}
        self.decisions: list[tuple[float, d.Decision]] = []
        self.events: list[ev.Event] = []
        self.problems: list[str] = []
        self.saved: dict[str, Any] = {}
        #: What a scheduler is told first: all that exists.
        self.first: list[ev.Event] = []
        #: Sites that do not answer, each until a time; and what is told of them then.
        self.silent: dict[str, float] = {}
        self.backlog: list[ev.Event] = []
        self.refused: list[ev.Event] = []
        #: Whether a site refuses a decision.
        self.refuses: Any = lambda decision: False
        #: What was saved before the last step.
        self.saved_before: dict[str, Any] = {}
        self.begin()

    def begin(self, without: str = "") -> None:
        """A scheduler that knows what the last one has saved. ``without``: a site that is away then."""
        self.first = [event for event in self._all_that_exists() if not without or _site_of(event) != without]
        cluster = self.adapter.describe()
        pools = tuple(pool for pool in cluster.pools if pool.name != f"{without}:q")
        self.plugin, self.meddler = Metajobs(self.options), Meddler()
        self.scheduler = Scheduler(
            msgspec.structs.replace(cluster, pools=pools),
            plugged(self.plugin, self.meddler, *self.others, self.policy or Easy()),
            capabilities=self.adapter.capabilities, saved=dict(self.saved) or None,
        )  # fmt: skip

    def ask(
        self, time: float, verb: str, text: str = "", user: str = "ann", *, operator: bool = False
    ) -> str:
        request = f"q{len(self.asks) + len(self.replies)}"
        asked = ev.PluginAsked(time, request, "metajobs", verb, text, user, operator)
        self.asks.append((time, asked))
        return request

    def submit(
        self, metajob: dict[str, Any], jobs: dict[str, str] | None = None, time: float = 0.0, **more: Any
    ) -> str:
        known = {name: more.pop(name) for name in ("on_loss",) if name in more}
        text = msgspec.json.encode({"metajob": metajob, "jobs": jobs or {}, **known}).decode()
        return self.ask(time, "submit", text, **more)

    def run(
        self, until: float = 1e9, decisions: int = 1 << 30, *, steps: int = 1 << 30, sent: bool = True
    ) -> bool:
        """Go on; True: all is over or it is later. False: so many decisions of metajobs, or so many steps,
        were made, and nothing was heard of what became of the last, which was carried out (``sent``) or
        not."""
        while True:
            next_ask = min((time for time, _ in self.asks), default=None)
            wakeup = self.scheduler.next_wakeup()
            times = [one for one in (next_ask, wakeup, *self.silent.values()) if one is not None]
            deadline = min([*times, until]) if times or until < 1e9 else None
            moment = (self.now, self.first) if self.first else self._moment(deadline)
            first, self.first = bool(self.first), []
            if moment is None:
                if next_ask is None:
                    return True
                moment = (max(next_ask, self.now), ())
            self.now, events = moment
            due = [event for time, event in self.asks if time <= self.now]
            self.asks = [(time, event) for time, event in self.asks if time > self.now]
            due = [msgspec.structs.replace(event, time=self.now) for event in due]
            self.events += [*events, *due] if not first else due
            made = self.scheduler.step(self.now, [*events, *due])
            for event in due:
                answer = self.scheduler.answer(event.request)
                assert answer is not None
                self.replies[event.request] = answer
            self.saved_before = self.saved
            if self.scheduler.newly_promised() or due:
                self.saved = msgspec.json.decode(msgspec.json.encode(self.scheduler.checkpoint()))
            self.problems += [problem.message for problem in self.scheduler.problems]
            self.scheduler.problems.clear()
            decisions -= sum(isinstance(one, d.Reserve | d.Unreserve | d.Bind) for one in made)
            steps -= 1
            ends = decisions <= 0 or steps <= 0
            if not ends or sent:
                self._apply([one for one in made if type(one) not in d.OF_THE_ENGINE])
                self.decisions += [(self.now, one) for one in made]
            if ends:
                return False
            if self.now >= until:
                return True

    def _moment(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        """What the sites that answer tell."""
        if self.refused:
            told, self.refused = self.refused, []
            return self.now, told
        moment = self.adapter.wait(deadline)
        if moment is None:
            if not self.silent:
                return None
            moment = min(self.silent.values()), ()
        now, events = moment
        self.backlog += [event for event in events if _site_of(event) in self.silent]
        told = [event for event in events if _site_of(event) not in self.silent]
        back = {site for site, until in self.silent.items() if until <= now}
        for site in back:
            del self.silent[site]
            told.append(ev.ClusterAnswers(now, site))
        told += [event for event in self.backlog if _site_of(event) in back]
        self.backlog = [event for event in self.backlog if _site_of(event) not in back]
        return now, told

    def _apply(self, made: Sequence[d.Decision]) -> None:
        """The sites that answer carry out what is theirs."""
        carried: list[d.Decision] = []
        for one in made:
            if _site_of(one) in self.silent or self.refuses(one):
                self.refused.append(ev.DecisionFailed(self.now, one, "the site does not answer"))
            else:
                carried.append(one)
        self.adapter.apply(self.now, carried)

    def silence(self, site: str, until: float) -> None:
        """A site does not answer; a scheduler that begins hears of its jobs later."""
        self.silent[site] = until
        self.refused.append(ev.ClusterSilent(self.now, site, "no route"))
        self.backlog += [event for event in self.first if _site_of(event) == site]
        self.first = [event for event in self.first if _site_of(event) != site]

    def by_hand(self, *starts: tuple[float, str]) -> None:
        """An administrator starts jobs (time, job) before the scheduler looks again."""
        for time, job_id in starts:
            self.adapter.apply(time, [d.Start(job_id, (), "by hand")])
            self.now = max(self.now, time)

    def _all_that_exists(self) -> list[ev.Event]:
        jobs: dict[str, ev.Event] = {}
        running: dict[str, ev.Event] = {}
        for event in self.events:
            if isinstance(event, ev.JobSubmitted | ev.JobChanged):
                jobs[event.job.id] = ev.JobSubmitted(self.now, event.job)
            elif isinstance(event, ev.JobStarted):
                running[event.job_id] = event
            elif isinstance(event, ev.JobEnded):
                jobs.pop(event.job_id, None)
                running.pop(event.job_id, None)
        made = [ev.ReservationMade(self.now, one) for one in self.kept.values()]
        return [*jobs.values(), *running.values(), *made]

    # ------------------------------------------------------------------ what became of it

    @property
    def kept(self) -> dict[str, Reservation]:
        """The reservations of metajobs, as the sites' events told."""
        found: dict[str, Reservation] = {}
        for event in self.events:
            if isinstance(event, ev.ReservationMade) and metajob_of(event.reservation.id):
                found[event.reservation.id] = event.reservation
            elif isinstance(event, ev.ReservationEnded):
                found.pop(event.reservation_id, None)
        return found

    @property
    def letters(self) -> list[d.Tell]:
        return [one for _, one in self.decisions if isinstance(one, d.Tell)]

    def status(self, metajob: str = "m1") -> dict[str, Any]:
        return msgspec.to_builtins(self.plugin._lives[metajob].kept)

    @property
    def outcomes(self) -> dict[str, str]:
        """How each job ended that has ended."""
        results = self.adapter.results()
        return {one.job.id: one.state for one in results if not one.job.id.startswith(_CLOCK)}

    @property
    def starts(self) -> dict[str, float | None]:
        results = self.adapter.results()
        return {one.job.id: one.start_time for one in results if not one.job.id.startswith(_CLOCK)}


def _site_of(one: ev.Event | d.Decision) -> str:
    """The site of an event or decision about a job, or a reservation of a metajob; "": it is about none."""
    job = getattr(one, "job", None)
    decision = getattr(one, "decision", one)
    reservation = getattr(decision, "reservation", None)
    made = reservation.id if reservation is not None else getattr(decision, "reservation_id", "")
    if metajob_of(made) and not isinstance(decision, d.Bind):
        return made.rpartition("-")[2].lower()
    name = job.id if job is not None else getattr(decision, "job_id", "")
    return name.partition(":")[0]
