"""Answers from a picture, with the shapes and the rights of the daemon's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import Any

import msgspec
from msgspec.structs import replace

from headway.inquiry.cycles import TOLD
from headway.inquiry.pages import page
from headway.inquiry.reports import (
    BookingPage,
    CycleReport,
    JobPage,
    JobReport,
    NodePage,
    NodeReport,
    PoolList,
)
from headway.serve.picture import PENDING, WAITING, Picture
from headway.serve.sorting import JobsInOrder, in_order
from headway.serve.source import Caller
from headway.service import changes as c
from headway.service import protocol as p
from headway.service.changes import Decided, JobRow

#: What an answer is made from beside the daemon's words about rights and time: kinds of changes.
_STATE = (c.Cycled, c.State, c.Domains)
MADE_FROM: dict[type[msgspec.Struct], tuple[type, ...]] = {
    p.Status: (c.State,),
    p.Jobs: (*_STATE, c.JobRows, c.Order),
    JobsInOrder: (*_STATE, c.JobRows, c.Order),
    p.Nodes: (*_STATE, c.NodeRows, c.JobRows),
    p.Pools: _STATE,
    p.Bookings: (*_STATE, c.Booked),
    p.Cycle: _STATE,
}
#: What can be answered from a picture.
Readable = p.Status | p.Jobs | p.Nodes | p.Pools | p.Bookings | p.Cycle


class _Unknown(Exception):
    """Nothing of that name is there."""


class Reader:
    """What a user is told from a picture."""

    def __init__(self, picture: Picture, caller: Caller) -> None:
        self._picture = picture
        self._user = caller.user
        self._sees_all = picture.sees_all(caller)

    def answer(self, request: Readable) -> p.Reply:
        picture = self._picture
        as_of = picture.cycle.report.at if picture.cycle is not None else None
        if isinstance(request, p.Status):
            return p.Reply("accepted", status=self._status())
        try:
            found = _HOW[type(request)](self, request)
        except _Unknown as error:
            return p.Reply("unknown", str(error), as_of=as_of)
        of_all = isinstance(request, p.Bookings | p.Cycle) or (
            isinstance(request, p.Jobs) and not request.mine
        )
        remarks = [
            "only your own jobs are shown" if of_all and not self._sees_all else "",
            found.missing if isinstance(found, BookingPage) else "",
        ]
        return p.Reply("accepted", "; ".join(filter(None, remarks)), found=found, as_of=as_of)

    # ------------------------------------------------------------------ jobs

    def jobs(self, asked: p.Jobs) -> JobPage:
        self._known(asked.pool)
        whose = self._user if asked.mine else asked.user
        if not self._sees_all:
            if whose not in ("", self._user):
                return JobPage(())
            whose = self._user
        key = ("jobs", asked.pool, whose, asked.status, asked.account, asked.qos, asked.name)
        ids = self._picture.kept(key, lambda: self._ids(asked, whose))
        if isinstance(asked, JobsInOrder) and asked.sort:
            ids = self._in_that_order(key, ids, asked.sort)
        made, then = page(
            iter(ids),
            self._job,
            asked.first,
            asked.count,
            nodes=lambda report: len(report.placement) + len(report.planned_placement),
        )
        return JobPage(made, then)

    def _in_that_order(self, key: tuple[str, ...], ids: list[str], by: str) -> list[str]:
        """The ids of the list that has this key, sorted."""
        picture = self._picture
        now = picture.cycle.report.at if picture.cycle is not None else None
        version = picture.resorted, now if by.endswith("waited") else None

        def make() -> list[str]:
            return in_order(ids, by, lambda job_id: picture.jobs[job_id].report, now)

        return picture.kept((*key, by), make, version)

    def _ids(self, asked: p.Jobs, whose: str) -> list[str]:
        """The ids of the jobs that are asked for, in their order."""
        jobs = self._picture.jobs
        found: Iterable[str]
        if whose:
            found = self._of(whose, asked.status)
        else:
            status = asked.status
            found = self._picture.kept(("order", status), lambda: list(self._in_order(status)))
        named = [(what, getattr(asked, what)) for what in ("account", "qos", "name") if getattr(asked, what)]
        for what, value in named:
            found = [one for one in found if getattr(jobs[one].report, what) == value]
        if asked.pool:
            found = [one for one in found if _is_of(jobs[one].report, asked.pool)]
        return list(found)

    def _in_order(self, status: str) -> Iterable[str]:
        picture = self._picture
        queued = (
            () if status not in ("", PENDING) else chain.from_iterable(map(picture.queued, picture.domains))
        )
        outside = () if status not in ("", WAITING) else self._sorted(picture.outside, "")
        return chain(queued, outside, () if status == WAITING else self._sorted(picture.on_nodes, status))

    def _of(self, user: str, status: str) -> Iterable[str]:
        """The same of one user's jobs."""
        picture = self._picture
        mine = picture.of_users.get(user, {})
        domains = {name: at for at, name in enumerate(picture.domains)}
        queued: list[tuple[int, int, str]] = []
        if status in ("", PENDING):
            for job_id in mine:
                report = picture.jobs[job_id].report
                if report.status == PENDING and (domain := picture.domain_of.get(report.pool)) is not None:
                    place = picture.places(domain).get(job_id)
                    if place is not None:
                        queued.append((domains[domain], place, job_id))
        outside = () if status not in ("", WAITING) else (one for one in mine if one in picture.outside)
        on_nodes = (one for one in mine if one in picture.on_nodes)
        return chain(
            (job_id for _, _, job_id in sorted(queued)),
            self._sorted(outside, ""),
            self._sorted(on_nodes, status) if status != WAITING else (),
        )

    def _sorted(self, ids: Iterable[str], status: str) -> list[str]:
        """Those of a status ("": of any), in the order in which they were submitted."""
        jobs = self._picture.jobs

        def submission(job_id: str) -> tuple[float, Any]:
            return jobs[job_id].submitted, jobs[job_id].seq

        return sorted((one for one in ids if status in ("", jobs[one].report.status)), key=submission)

    def _job(self, job_id: str) -> JobReport:
        row = self._picture.jobs[job_id]
        return self._placed(self._told(row))

    def _told(self, row: JobRow) -> JobReport:
        if self._sees_all or row.own is None:
            return row.report
        return replace(row.report, why=row.own.why, waits_for=row.own.waits_for)

    def _placed(self, report: JobReport) -> JobReport:
        """With its place in its queue."""
        if report.status != PENDING or (report.position is None and report.waits_because):
            return report
        domain = self._picture.domain_of.get(report.pool, "")
        place = self._picture.places(domain).get(report.id)
        return replace(report, position=place, queue_length=len(self._picture.queues.get(domain, ())))

    # ------------------------------------------------------------------ the rest

    def nodes(self, asked: p.Nodes) -> NodePage:
        self._known(asked.pool)
        picture = self._picture
        key = ("nodes", asked.pool)
        names = picture.kept(
            key,
            lambda: [
                name for name, node in picture.nodes.items() if not asked.pool or asked.pool in node.pools
            ],
        )
        made, then = page(iter(names), self._node, asked.first, asked.count)
        return NodePage(made, then)

    def _node(self, name: str) -> NodeReport:
        picture = self._picture
        node, jobs = picture.nodes[name], list(picture.jobs_on.get(name, ()))
        if not self._sees_all:
            jobs = [one for one in jobs if picture.jobs[one].report.user == self._user]
            shown = tuple([one for one in node.reservations if one not in picture.hidden])
            node = replace(node, reservations=shown)
        return replace(node, jobs=tuple(self._sorted(jobs, "")))

    def pools(self, _: p.Pools) -> PoolList:
        report = self._picture.report
        return PoolList(report.pools if report is not None else ())

    def bookings(self, asked: p.Bookings) -> BookingPage:
        self._known(asked.pool)
        found = (
            booking
            for domain in self._domains(asked.pool)
            for booking in self._picture.bookings.get(domain, ([], 0))[0]
            if self._sees_all or booking.user == self._user
        )
        made, then = page(
            found, lambda one: one, asked.first, asked.count, nodes=lambda report: len(report.placement)
        )
        return BookingPage(made, then, self._owed(asked.pool))

    def _owed(self, pool: str) -> int:
        return sum([self._picture.bookings.get(domain, ([], 0))[1] for domain in self._domains(pool)])

    def _domains(self, pool: str) -> list[str]:
        return [name for name, pools in self._picture.domains.items() if not pool or pool in pools]

    def cycle(self, _: p.Cycle) -> CycleReport:
        cycle = self._picture.cycle
        if cycle is None:
            raise _Unknown("no cycle is known yet")
        seen = (one for one in cycle.decided if self._sees_all or one.user == self._user)
        told = (self.decision(one) for one in seen)
        return replace(cycle.report, first=tuple(islice(told, TOLD)))

    def decision(self, decided: Decided) -> Any:
        return decided.report if self._sees_all or decided.own is None else decided.own

    def _status(self) -> p.Report | None:
        """Without what names other users or their jobs, where the user may not know of these."""
        report = self._picture.report
        if report is None or self._sees_all:
            return report
        mine = report.limited.get(self._user)
        return replace(
            report,
            problems=(),
            limited={self._user: mine} if mine else {},
            oddities=tuple([replace(odd, detail="") for odd in report.oddities]),
        )

    def _known(self, pool: str) -> None:
        """Raises for a name of a pool that is none; "" names no pool."""
        pools = self._picture.pools
        if pool and pool not in pools:
            raise _Unknown(f"expected one of the pools {', '.join(pools)}; found {pool!r}")


def _is_of(report: JobReport, pool: str) -> bool:
    """Whether a job runs in a pool, or waits for it."""
    return report.pool == pool or (report.status in (PENDING, WAITING) and pool in report.pools)


_HOW: dict[type[msgspec.Struct], Callable[[Reader, Any], Any]] = {
    p.Jobs: Reader.jobs,
    JobsInOrder: Reader.jobs,
    p.Nodes: Reader.nodes,
    p.Pools: Reader.pools,
    p.Bookings: Reader.bookings,
    p.Cycle: Reader.cycle,
}
