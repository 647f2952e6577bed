"""A cluster that tells of everything that can happen, at random, and carries out some of what is decided."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, get_args

import msgspec
from building import described

from headway import decisions as d
from headway import events as ev
from headway.decisions import Decision
from headway.events import Event
from headway.model import ClusterDescription, JobDescription, Reservation, SitePolicy
from headway.state import Job, State, Status

#: Kinds of events that need what not every cluster has.
OF_NODES = frozenset({
    ev.NodeUp, ev.NodeDown, ev.NodeFrequencyChanged, ev.NodePowerChanged, ev.PartitionChanged,
})  # fmt: skip
OF_DATA = frozenset({ev.DatasetCopying, ev.DatasetCopied, ev.DatasetLost, ev.CopyFailed})


class AnyEvents:
    """Tells events of each kind; the same seed and the same decisions give the same events."""

    def __init__(self, cluster: ClusterDescription, seed: int, attributes: Iterable[dict[str, Any]]) -> None:
        """``attributes``: the attributes of jobs to draw from."""
        self.cluster, self.rng = cluster, random.Random(seed)
        self.attributes = [*attributes] or [{}]
        self.told: set[type[Event]] = set()
        self.numbers = iter(range(10**6))
        self.reservations: list[str] = []
        self.licences: list[str] = [name for name, _ in cluster.licences]
        sites = cluster.sites
        self.sites = [site.name for site in sites.sites] if sites is not None else []
        self.datasets = [dataset.name for dataset in sites.datasets] if sites is not None else []
        self.kinds = [
            kind
            for kind in get_args(ev.AnyEvent)
            if (cluster.nodes or kind not in OF_NODES) and (self.datasets or kind not in OF_DATA)
        ]

    def at(self, now: float, decided: Iterable[Decision], state: State) -> list[Event]:
        """What happens at ``now`` after these decisions, as ``state`` is."""
        events = [event for one in decided for event in self._outcome(one, now, state)]
        for _ in range(self.rng.randrange(4)):
            kind = self.rng.choice([*self.kinds, *[ev.JobSubmitted] * 15, *[ev.JobEnded] * 4])
            event = self._some(kind, now, state)
            if event is not None:
                events.append(event)
        self.told.update(map(type, events))
        return events

    # ------------------------------------------------------------------ what decisions lead to

    def _outcome(self, one: Decision, now: float, state: State) -> list[Event]:
        if self.rng.random() < 0.15:
            return [ev.DecisionFailed(now, one, "not now")]
        if isinstance(one, d.Reserve):
            self.reservations.append(one.reservation.id)
        if isinstance(one, d.PowerDown | d.PowerUp):
            power = "asleep" if isinstance(one, d.PowerDown) else "on"
            return [ev.NodePowerChanged(now, node, power) for node in one.nodes]
        if isinstance(one, d.SetTimeLimit | d.Resize):
            job = state.jobs.get(one.job_id)
            return [] if job is None else [ev.JobChanged(now, _as_wished(job.description, one))]
        follows = _OUTCOMES.get(type(one))
        return [] if follows is None else [follows(now, one)]

    # ------------------------------------------------------------------ what happens by itself

    def _some(self, kind: type[Event], now: float, state: State) -> Event | None:
        """An event of a kind; None: it cannot be now."""
        make = _MAKERS.get(kind)
        if make is not None:
            return make(self, now, state)
        statuses = _OF_JOBS[kind]
        jobs = [job for job in state.jobs.values() if job.status in statuses]
        if not jobs:
            return None
        job = self.rng.choice(jobs)
        if kind in (ev.JobStarted, ev.JobReleasing) and not (
            job.pool.flat and job.request.processors <= job.pool.domain.free
        ):
            return None
        return kind(now, job_id=job.id, **self._more(kind, job, state))

    def _more(self, kind: type[Event], job: Job, state: State) -> dict[str, Any]:
        """What an event says of a job."""
        choice = self.rng.choice
        drawn: dict[type[Event], dict[str, Any]] = {
            ev.JobEnded: {"outcome": choice(ev.OUTCOMES)},
            ev.JobMigrated: {"placement": job.placement, "seconds": choice([None, 3.0])},
            ev.JobTierChanged: {"tier": "foreground"},
            ev.JobPaceChanged: {"done": 1.0, "rate": choice([0.5, 1.0])},
            ev.JobUsageMeasured: {"cpu": 0.5},
            ev.JobFrequencyChanged: {"frequency": None},
            ev.ElasticCommandReceived: {
                "command": choice(["ET", "RT", "EP", "RP"]), "amount": 1.0, "operator": True,
            },
            ev.JobRouted: {"pool": choice([*state.pools])},
        }  # fmt: skip
        return drawn.get(kind, {})

    def _job(self, now: float, state: State, job_id: str = "") -> JobDescription:
        rng = self.rng
        processors, estimate = rng.choice([1, 1, 2, 3, 4]), float(rng.choice([20, 60, 200]))
        attributes = self._attributes(now)
        begin = attributes.get("requested_start", now + 5.0 if rng.random() < 0.1 else None)
        return described(
            job_id or f"j{next(self.numbers)}", processors, estimate, now,
            pool=rng.choice([*state.pools]), user=rng.choice("uv"), account=rng.choice("ab"),
            qos=rng.choice(["high", "low"]), attributes=attributes,
            name=rng.choice(["ft-1", "x"]),
            begin_time=begin,
        )  # fmt: skip

    def _attributes(self, now: float) -> dict[str, Any]:
        """Attributes of a job; starts in them count from now."""
        chosen = self.rng.choice(self.attributes)
        return {key: now + value if key.endswith("_start") else value for key, value in chosen.items()}

    def _changed(self, now: float, state: State) -> Event | None:
        waiting = [job for job in state.jobs.values() if job.status is Status.PENDING]
        if not waiting:
            return None
        job = self.rng.choice(waiting)
        pool = job.pool.name
        return ev.JobChanged(now, msgspec.structs.replace(self._job(now, state, job.id), pool=pool))

    def _node(self) -> str:
        return self.rng.choice(self.cluster.nodes).name

    def _made(self, now: float, state: State) -> Event:
        name = f"r{next(self.numbers)}"
        self.reservations.append(name)
        nodes = (self._node(),) if self.cluster.nodes else ()
        pool = "" if nodes else next(iter(state.pools))
        return ev.ReservationMade(
            now, Reservation(name, now + 5, now + 30, pool, 0 if nodes else 1, nodes, users=("u",))
        )

    def _of_reservation(self, kind: type[Event], now: float) -> Event | None:
        return kind(now, self.rng.choice(self.reservations)) if self.reservations else None  # type: ignore[call-arg]

    def _of_data(self, kind: type[Event], now: float) -> Event:
        dataset, site = self.rng.choice(self.datasets), self.rng.choice(self.sites)
        if kind is ev.DatasetLost:
            return ev.DatasetLost(now, dataset, site)
        return kind(now, dataset, site, self.sites[0])  # type: ignore[call-arg]


def _as_wished(job: JobDescription, one: d.SetTimeLimit | d.Resize) -> JobDescription:
    if isinstance(one, d.SetTimeLimit):
        request = msgspec.structs.replace(job.request, walltime=one.walltime)
    else:
        request = msgspec.structs.replace(job.request, processors=one.processors)
    return msgspec.structs.replace(job, request=request)


#: What a decision leads to.
_OUTCOMES: dict[type[Decision], Callable[[float, Any], Event]] = {
    d.Start: lambda now, one: ev.JobStarted(
        now, one.job_id, one.placement, one.tier, one.frequency, one.pool
    ),
    d.Kill: lambda now, one: ev.JobEnded(now, one.job_id, "cancelled"),
    d.Cancel: lambda now, one: ev.JobEnded(now, one.job_id, "cancelled"),
    d.Requeue: lambda now, one: ev.JobRequeued(now, one.job_id),
    d.Suspend: lambda now, one: ev.JobSuspended(now, one.job_id),
    d.Resume: lambda now, one: ev.JobResumed(now, one.job_id),
    d.SetFrequency: lambda now, one: ev.JobFrequencyChanged(now, one.job_id, one.frequency),
    d.Reserve: lambda now, one: ev.ReservationMade(now, one.reservation),
    d.Unreserve: lambda now, one: ev.ReservationEnded(now, one.reservation_id),
    d.Route: lambda now, one: ev.JobRouted(now, one.job_id, one.pool),
    d.Copy: lambda now, one: ev.DatasetCopied(now, one.dataset, one.site, one.source, 1.0),
    d.Drop: lambda now, one: ev.DatasetLost(now, one.dataset, one.site),
}
_RUNS = (Status.RUNNING,)
_HERE = (Status.PENDING, Status.RUNNING, Status.SUSPENDED)
#: Events about a job by its id, and the jobs that they may be about.
_OF_JOBS: dict[type[Event], tuple[Status, ...]] = {
    ev.JobStarted: (Status.PENDING,),
    ev.JobReleasing: (Status.PENDING, Status.WAITING),
    ev.JobEnded: _HERE,
    ev.JobRequeued: _RUNS,
    ev.JobHeld: (Status.PENDING,),
    ev.JobReleased: tuple(Status),
    ev.JobSuspended: _RUNS,
    ev.JobResumed: (Status.SUSPENDED,),
    ev.JobLeaving: _RUNS,
    ev.JobCheckpointed: _RUNS,
    ev.JobMigrated: _RUNS,
    ev.JobTierChanged: _RUNS,
    ev.JobPaceChanged: _RUNS,
    ev.JobUsageMeasured: _RUNS,
    ev.JobFrequencyChanged: _RUNS,
    ev.ElasticCommandReceived: _HERE,
    ev.JobRouted: (Status.PENDING,),
}
_MAKERS: dict[type[Event], Callable[[AnyEvents, float, State], Event | None]] = {
    ev.JobSubmitted: lambda one, now, state: ev.JobSubmitted(now, one._job(now, state)),
    ev.JobChanged: AnyEvents._changed,
    ev.ReservationRequested: lambda one, now, state: ev.ReservationRequested(
        now, "", now + 5, 20.0, processors=1, pool=one.rng.choice([*state.pools]), user="u"
    ),
    ev.ReservationReturned: lambda one, now, state: (
        ev.ReservationReturned(now, "", one.rng.choice(one.reservations), "u") if one.reservations else None
    ),
    ev.PluginAsked: lambda one, now, state: ev.PluginAsked(now, "", "metajobs", "list", user="u"),
    ev.PoolChanged: lambda one, now, state: ev.PoolChanged(now, one.rng.choice(one.cluster.pools)),
    ev.NodeUp: lambda one, now, state: ev.NodeUp(now, one.rng.choice(one.cluster.nodes)),
    ev.NodeDown: lambda one, now, state: ev.NodeDown(now, one._node(), "broken"),
    ev.NodeFrequencyChanged: lambda one, now, state: ev.NodeFrequencyChanged(now, one._node(), 1e9),
    ev.NodePowerChanged: lambda one, now, state: ev.NodePowerChanged(
        now, one._node(), one.rng.choice(["on", "asleep", "waking"])
    ),
    ev.PartitionChanged: lambda one, now, state: ev.PartitionChanged(
        now, "p", (one._node(),), one.rng.choice(["ready", "free", "deallocating"]), "a fault"
    ),
    ev.LicencesChanged: lambda one, now, state: ev.LicencesChanged(now, "matlab", one.rng.randrange(3)),
    ev.ReservationMade: AnyEvents._made,
    ev.ReservationStarted: lambda one, now, state: one._of_reservation(ev.ReservationStarted, now),
    ev.ReservationEnded: lambda one, now, state: one._of_reservation(ev.ReservationEnded, now),
    **{
        kind: lambda one, now, state, kind=kind: one._of_data(kind, now)  # type: ignore[misc]
        for kind in OF_DATA
    },
    ev.SitePolicyChanged: lambda one, now, state: ev.SitePolicyChanged(
        now, SitePolicy(weights={"age": float(one.rng.randrange(3))})
    ),
    ev.ClusterSilent: lambda one, now, state: ev.ClusterSilent(now, one.rng.choice(one.sites or [""])),
    ev.ClusterAnswers: lambda one, now, state: ev.ClusterAnswers(now, one.rng.choice(one.sites or [""])),
    ev.DecisionFailed: lambda one, now, state: ev.DecisionFailed(now, d.Hold("j0"), "no"),
    ev.Tick: lambda one, now, state: ev.Tick(now),
}
