"""What is booked where pools share nodes holds, as far as each policy promises it.

A booking is a promise: the job starts by then if estimates hold. Two things may take it back, and with one
pool they do so as well: a job that comes ahead in the order, and a rule that takes the job out of the queue
(a limit that is reached). A job that stands behind it, of whatever pool, may not.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import msgspec
import pytest
from building import emulate, traced
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pools_reference import Asked, Case, cases, cluster_of, one_domain_a_job
from test_every_policy_over_shared_nodes import within_reach

from headway.hookspecs import hookimpl
from headway.model import Reservation
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.state import Job, State, Status
from headway.view import View
from headway.workload.jobs import REQUESTED_START

_INF = float("inf")


class Site(NamedTuple):
    """A configuration, and what the jobs and the cluster have beside pools, sizes and times."""

    plugins: dict[str, dict[str, Any]]
    jobs: tuple[dict[str, Any], ...] = ({},)
    cluster: dict[str, Any] = {}
    #: Whether a job of a higher tier may come.
    tiers: bool = False


class Promise(NamedTuple):
    job: Job
    start: float
    #: The jobs ahead of it when it was made, in their order; those of them that were booked before it.
    ahead: list[str]
    booked: set[str]
    #: How often the job had been skipped.
    skips: int


def wanted(job: Job) -> float:
    """When a dedicated job must start; infinity for others."""
    return float(job.attribute(REQUESTED_START, _INF))


def within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether all of ``part`` are in ``whole``, in the same order."""
    left = iter(whole)
    return all(name in left for name in part)


class Promises:
    """Keeps the earliest start that was promised to each job, as long as nothing may take it back.

    What may: a job that comes ahead of it, a change of the order ahead of it, the start of a job ahead of it
    that was not booked (the policy books some jobs only), a barrier, a skip of the head.
    """

    def __init__(self, policy: Any, *, for_good: bool) -> None:
        self.made: dict[str, Promise] = {}
        #: Job -> what was promised, and the later start.
        self.late: dict[str, tuple[float, float]] = {}
        self._policy = policy
        self._for_good = for_good
        #: What the policy was given last, by domain.
        self._queues: dict[str, list[Job]] = {}
        kind = type(policy)

        @hookimpl
        def schedule(watched: Any, view: View) -> Any:
            self._queues[view.domain.name] = list(view.queue)
            answer = kind.schedule(watched, view)
            self._look(view, {job.id for job in view.started})
            return answer

        policy.__class__ = type(kind.__name__, (kind,), {"schedule": schedule})

    def skips(self, job: Job) -> int:
        """How often the policy has skipped the job as the head of the queue."""
        found = 0
        for policy in getattr(self._policy, "_policies", {"": self._policy}).values():
            if hasattr(policy, "_skips"):
                found = policy._skips.of(job)
                assert found <= policy.max_skips
        return found

    def ahead(self, job: Job, view: View) -> list[str]:
        """Dedicated jobs that come before it, due or kept for, then others before it in the queue."""
        queue = self._queues.get(view.domain.name, [])
        before = queue[: queue.index(job)] if job in queue else []
        places = {
            other: (wanted(other), other.seq) for other in (*before, *(b.job for b in view.bookings))
            if wanted(other) < _INF
        }  # fmt: skip
        first = [
            other
            for other in sorted(places, key=places.__getitem__)
            if places[other] < (wanted(job), job.seq)
        ]
        return [other.id for other in (*first, *before) if other in first or wanted(other) == _INF]

    def _look(self, view: View, started: Container[str] = ()) -> None:
        """Take back what may be."""
        if self._for_good:
            return
        for name, (job, _, ahead, booked, skips) in list(self.made.items()):
            if job.domain is not view.domain:
                continue
            if (
                (job.status is Status.WAITING and wanted(job) == _INF)
                or self.skips(job) > skips
                or not within(self.ahead(job, view), ahead)
                or any(other in started for other in ahead if other not in booked)
            ):
                del self.made[name]

    @hookimpl
    def control(self, state: State) -> None:
        waits = {job.id for job in state.jobs.values() if job.status in (Status.PENDING, Status.WAITING)}
        for domain in state.domains.values():
            view = domain.view
            if view is None:
                continue
            self._look(view)
            booked: set[str] = set()
            for booking in view.bookings:
                job = booking.job
                known = self.made.get(job.id)
                if job.id in waits and (known is None or booking.start < known.start):
                    ahead = self.ahead(job, view)
                    self.made[job.id] = Promise(job, booking.start, ahead, set(booked), self.skips(job))
                booked.add(job.id)
        for name in self.made.keys() - waits:
            promise = self.made.pop(name)
            if state.now > promise.start:
                self.late[name] = promise.start, state.now


def late(case: Case, site: Site, *, for_good: bool) -> dict[str, tuple[float, float]]:
    """Broken promises in a run of the case with exact estimates: job -> what was promised, and its start."""
    jobs = []
    for at, (job, said) in enumerate(zip(case.jobs, cycle(site.jobs), strict=False)):
        told = dict(said)
        if (after := told.pop("after", None)) is not None:
            told |= {"begin_time": job.comes + after, "attributes": {REQUESTED_START: job.comes + after}}
        jobs.append(
            traced(
                str(at), job.size * 2, job.limit, job.comes,
                pool=f"p{job.pools[0]}", further_pools=tuple(f"p{pool}" for pool in job.pools[1:]), **told,
            )
        )  # fmt: skip
    configured = [PluginConfig(name, options) for name, options in site.plugins.items()]
    if "tree" not in site.plugins:
        configured.append(PluginConfig("first-fit"))
    catalogue = Catalogue()
    plugins = list(Plugins.load(catalogue.expanded(configured), catalogue, None).by_name.values())
    policy = next(plugin for plugin in plugins if hasattr(plugin, "schedule"))
    promises = Promises(policy, for_good=for_good)
    cluster = msgspec.structs.replace(cluster_of(case, 2), **site.cluster)
    run = emulate(cluster, jobs, *plugins, promises, max_rounds=20_000)
    assert run.problems == []
    assert set(run.states.values()) <= {"completed"}
    return promises.late


def possible(case: Case, site: Site) -> Case:
    """The case with jobs of one domain that each of their pools can hold, and tiers if the site has some.

    A job of several domains waits in the queue of each, where other jobs are ahead of it.
    """
    case = within_reach(case, "")
    assume(one_domain_a_job(case))
    return case if site.tiers else case._replace(tiers=(0,) * len(case.tiers))


RULES: dict[str, dict[str, Any]] = {
    "easy": {}, "conservative": {}, "k-reserved": {"limit": 2}, "los": {}
}  # fmt: skip
ORDERS = (
    "shortest-first", "longest-first", "smallest-first", "largest-first", "largest-xfactor", "round-robin",
)  # fmt: skip
FACTORS = {"weights": {"age": 1, "size": 1, "pool": 1}, "pools": {"p0": 1, "p1": 2}, "period": 5}
LIMITS = {"of": {"user": {"*": {"jobs": 2}}}}
USERS = ({"user": "ann"}, {"user": "bob"}, {"user": "cid"})
RULE = {"rules": [{"who": {"qos": ["high"]}, "whom": {"qos": ["low"]}}]}
QOS = ({"qos": "low"}, {"qos": "high"}, {"qos": "low"})
#: The batch system's reservations follow the bookings with a minute's tolerance, which is long here.
KEPT = {"reserve": "no"}
DEDICATED = ({}, {"after": 9.0}, {}, {"after": 3.0})
AT_NIGHT = {"windows": {"w": {"from": "00:00", "for": "30s"}}}
CLOSED = {
    "windows": {
        "early": {"from": "00:00", "for": "6s", "pool": "p0"},
        "late": {"from": "00:01", "for": "20s", "pool": "p0"},
    }
}
LICENSED = ({"licences": (("matlab", 1),)}, {}, {"licences": (("matlab", 2),)})
LICENCES = {"licences": (("matlab", 2),)}
RESERVED = {"reservations": (Reservation("r", 8, 20, nodes=("n1",)),)}

#: In order of submission, with what the first jobs are booked: nothing that comes later puts them off.
FOR_GOOD = {
    "rules": [Site({rule: options}) for rule, options in RULES.items()],
    "variants": [
        Site({"easy": {"bookings": 2}}), Site({"conservative": {"depth": 2}}), Site({"easy-sjbf": {}}),
        Site({"easy": {}, "tree": {}}), Site({"easy": {}, "power-down": {"idle": 5}}),
    ],
    "licences": [Site({rule: options}, LICENSED, LICENCES) for rule, options in RULES.items()],
    "reservations": [
        Site({rule: options, "reservations": {}}, cluster=RESERVED) for rule, options in RULES.items()
    ],
    "calendar": [Site({rule: options, "calendar": CLOSED}) for rule, options in RULES.items()],
}  # fmt: skip

#: A job that comes ahead, or a limit, may put them off.
AS_LONG = {
    **{
        f"orders and {rule}": [Site({rule: options, order: {}}) for order in ORDERS]
        for rule, options in RULES.items()
    },
    "multifactor": [Site({rule: options, "multifactor": FACTORS}) for rule, options in RULES.items()],
    "tiers": [Site({rule: options}, tiers=True) for rule, options in RULES.items()],
    "bookings per pool": [
        Site({"easy": {"bookings_per_pool": True, "bookings": count}}, tiers=tiers)
        for count, tiers in ((1, False), (2, True))
    ],
    "limits": [Site({rule: options, "limits": LIMITS}, USERS) for rule, options in RULES.items()],
    "bars": [
        Site({"easy": {}, "large-jobs": AT_NIGHT}),
        Site({"easy": {}, "reserve-short": {"seconds": 5, "share": 0.4}}),
    ],
    "dedicated jobs": [
        Site({rule: options, "dedicated": KEPT | {"freeze": freeze}, **more}, DEDICATED)
        for rule, options in RULES.items()
        for freeze, more in (("first", {}), ("first", {"elastic": {}}), ("all", {}))
    ],
    "skipped heads": [Site({"delayed-los": {"max_skips": 2}}), Site({"select": {"window": 4, "small": 2}})],
    "skipped heads and dedicated jobs": [
        Site({"hybrid-los": KEPT | {"max_skips": 2, "freeze": freeze}}, DEDICATED)
        for freeze in ("first", "all")
    ],
    "preemption": [Site({rule: options, "preemption": RULE}, QOS) for rule, options in RULES.items()],
    "plans": [Site({"moldable": {"jobs": "all"}}), Site({"ejb": {}})],
}  # fmt: skip


@pytest.mark.parametrize("sites", FOR_GOOD)
@given(case=cases(), data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_later_job_breaks_a_promise(sites, case, data):
    site = data.draw(st.sampled_from(FOR_GOOD[sites]))
    assert late(possible(case, site), site, for_good=True) == {}


@pytest.mark.parametrize("sites", AS_LONG)
@given(case=cases(), data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_job_behind_it_breaks_a_promise(sites, case, data):
    site = data.draw(st.sampled_from(AS_LONG[sites]))
    assert late(possible(case, site), site, for_good=False) == {}


def one_pool(*jobs: tuple[int, float, float]) -> Case:
    """Three nodes: two are job 0's until 10, one is job 1's until 2, when what waits is booked. ``jobs``: the
    others' nodes, limits, and when they come."""
    rows = [(2, 10, 0), (1, 2, 0), *jobs]
    asked = tuple(Asked(size, limit, limit, comes, (0,)) for size, limit, comes in rows)
    return Case((frozenset({0}),) * 3, (0,), asked)


#: Job 2 is booked for 10, and job 3, which comes later, puts it off.
BY_DESIGN = {
    "a shorter job comes ahead": (
        Site({"easy": {}, "shortest-first": {}}), one_pool((3, 8, 1), (3, 3, 3)), 13,
    ),
    "nodes are kept for a dedicated job": (
        Site({"easy": {}, "dedicated": KEPT}, ({}, {}, {}, {"after": 13.0})),
        one_pool((3, 20, 1), (3, 5, 3)), 21,
    ),
    "its user's later job uses up a limit": (
        Site(
            {"easy": {}, "limits": {"of": {"user": {"*": {"jobs": 1}}}}},
            ({"user": "bob"}, {"user": "cid"}, {"user": "ann"}, {"user": "ann"}),
        ),
        one_pool((2, 8, 1), (1, 100, 3)), 103,
    ),
    "a long job uses up what long jobs may have": (
        Site({"easy": {}, "reserve-short": {"seconds": 20, "share": 0.3}}),
        one_pool((2, 30, 1), (1, 100, 3)), 103,
    ),
    "a large job waits for its window": (
        Site({"easy": {}, "large-jobs": {"above": 0.7, "windows": {"w": {"from": "00:01", "for": "30s"}}}}),
        one_pool((2, 55, 1), (3, 5, 3)), 65,
    ),
    "delayed-los skips the head": (Site({"delayed-los": {}}), one_pool((2, 8, 1), (3, 5, 3)), 15),
    "hybrid-los skips the head": (Site({"hybrid-los": {}}), one_pool((2, 8, 1), (3, 5, 3)), 15),
    "select skips the head": (Site({"select": {}}), one_pool((2, 8, 1), (3, 5, 3)), 15),
}  # fmt: skip


@pytest.mark.parametrize("what", BY_DESIGN)
def test_with_one_pool_a_later_job_puts_off_a_booked_job_where(what):
    site, case, start = BY_DESIGN[what]
    assert late(case, site, for_good=True) == {"2": (10, start)}
    assert late(case, site, for_good=False) == {}


def test_after_its_last_skip_a_booked_head_starts_by_its_promise():
    # Jobs 3 and 4 fill the machine better than job 2, at 10 and at 15, and so would job 5 at 20.
    case = one_pool((2, 8, 1), (3, 5, 3), (3, 5, 4), (3, 5, 5))
    assert late(case, Site({"delayed-los": {"max_skips": 2}}), for_good=True) == {"2": (10, 20)}
