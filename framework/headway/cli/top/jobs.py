"""The queue with reasons and planned starts, and the jobs that run with their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.cli.cells import ID_WIDTH, NAME_WIDTH, SORTS, STATUSES, moment, or_never, reason, span
from headway.cli.top.asking import Questions
from headway.cli.top.lines import Column, Line, line, table, wrapped
from headway.cli.top.view import AHEAD, Listing, Room, Shared
from headway.inquiry.pages import MOST
from headway.inquiry.reports import JobPage, JobReport
from headway.service.protocol import Jobs

#: Where jobs are sorted, or a text is looked for, this is done among so many of the daemon's order.
SORTED = MOST


class JobListing(Listing):
    """Jobs in the daemon's order, of which only what is near the screen is asked for; or the first of them,
    sorted."""

    #: The statuses that it goes through.
    statuses: Sequence[str] = ("", *STATUSES)
    #: Its orders, and how they compare jobs.
    orders: Mapping[str, Callable[[JobReport], Any]] = SORTS
    hints = "enter job  m mine  p pool  t status  s sort  / find"
    nothing = "No such job."

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.sort = "order"
        #: The place of the first of the jobs that are known, and whether they are the last.
        self.first, self.is_all = 0, False
        self.jobs: tuple[JobReport, ...] = ()
        self.asked = False

    @property
    def status(self) -> str:
        """Of which status jobs are wanted."""
        return self.shared.wanted.get("status", "")

    @property
    def in_daemons_order(self) -> bool:
        return self.sort == "order" and not self.shared.text

    def reset(self) -> None:
        super().reset()
        self.first, self.is_all, self.jobs, self.asked = 0, False, (), False

    def question(self, first: int, count: int) -> Jobs:
        wanted = {**self.shared.wanted, "status": self.status}
        return Jobs(**wanted, mine=self.shared.mine and "user" not in wanted, first=first, count=count)

    def look(self, room: Room) -> Questions:
        rows = self.rows(room)
        if self.in_daemons_order:
            # The rows on the screen, and a screen before and after these.
            first = max(0, self.top - rows)
            reply = yield self.question(first, min(MOST, 3 * rows))
            self.says = reply.reason if not isinstance(reply.found, JobPage) else ""
            if isinstance(reply.found, JobPage):
                self.shared.remark = reply.reason
                self._take(first, reply.found.jobs, reply.found.next is None)
                if not self.jobs and first:
                    # There are fewer jobs than there were, or than the person went on.
                    self.top = self.at = self.at // 2
                    yield from self.look(room)
                    return
                self.point(self.at, room)
            return
        found: list[JobReport] = []
        first_of_page: int | None = 0
        while first_of_page is not None and len(found) < SORTED:
            reply = yield self.question(first_of_page, SORTED - len(found))
            if not isinstance(reply.found, JobPage):
                self.says = reply.reason
                return
            self.shared.remark = reply.reason
            found += reply.found.jobs
            first_of_page = reply.found.next
        self.says = ""
        self._take(0, self._sorted(found), first_of_page is None)
        self.point(self.at, room)

    def _take(self, first: int, jobs: Sequence[JobReport], is_all: bool) -> None:
        self.first, self.jobs, self.is_all, self.asked = first, tuple(jobs), is_all, True

    def _sorted(self, jobs: Sequence[JobReport]) -> list[JobReport]:
        text = self.shared.text.casefold()
        found = [job for job in jobs if not text or text in _searched(job)]
        return sorted(found, key=self.orders[self.sort])

    def length(self) -> int:
        return self._known() + (AHEAD if self.in_daemons_order and not self.is_all else 0)

    def _known(self) -> int:
        return self.first + len(self.jobs)

    def needs(self, room: Room) -> bool:
        last = self.top + self.rows(room)
        return not self.asked or self.top < self.first or (last > self._known() and not self.is_all)

    def chosen(self) -> str:
        job = self._pointed()
        return job.id if job is not None else ""

    def _pointed(self) -> JobReport | None:
        at = self.at - self.first
        return self.jobs[at] if 0 <= at < len(self.jobs) else None

    def key(self, key: str, room: Room) -> bool:
        if key == "s":
            self.sort = _next_of(tuple(self.orders), self.sort)
        elif key == "t":
            self.shared.want("status", _next_of(self.statuses, self.shared.wanted.get("status", "")))
        else:
            return super().key(key, room)
        self.reset()
        return True

    def said(self) -> str:
        """Among what was sorted and looked for."""
        words = [] if self.sort == "order" else [f"sorted by {self.sort}"]
        if not (self.in_daemons_order or self.is_all):
            words.append(f"among the first {SORTED} jobs")
        return ", ".join(words)

    def columns(self, now: float) -> list[Column[JobReport]]:
        raise NotImplementedError

    def below_the_rows(self, job: JobReport) -> str:
        """What is told of the job that is pointed at."""
        raise NotImplementedError

    def draw(self, room: Room) -> list[Line]:
        if not self.jobs:
            return [line(self.says or (self.nothing if self.asked else ""))]
        rows = self.rows(room)
        shown = [
            (place, self.jobs[place - self.first])
            for place in range(self.top, self.top + rows)
            if 0 <= place - self.first < len(self.jobs)
        ]
        head, texts = table(self.columns(self.shared.now), [job for _, job in shown], room.width - 1)
        lines = [line(" " + head, "head")]
        lines += [
            self.marked(text, place, room, _look(job))
            for text, (place, job) in zip(texts, shown, strict=True)
        ]
        lines += [line("")] * (1 + rows - len(lines))
        job = self._pointed()
        if job is not None and self.below:
            told = wrapped(f"{job.id}: {self.below_the_rows(job)}", room.width - 1)
            lines += [line(" " + text, "quiet") for text in told[: self.below]]
        return lines


def _next_of(names: Sequence[str], name: str) -> str:
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]


def _look(job: JobReport) -> str:
    return "runs" if job.started is not None else ""


def _searched(job: JobReport) -> str:
    words = (job.id, job.user, job.account, job.qos, job.name, job.pool, job.waits_because)
    return " ".join(words).casefold()


def size(job: JobReport) -> str:
    """Processors, and nodes if it said how many."""
    return f"{job.processors}/{job.nodes}n" if job.nodes else str(job.processors)


class Queue(JobListing):
    """All jobs: first the queues."""

    name = "queue"
    nothing = "No such job waits or runs."

    def columns(self, now: float) -> list[Column[JobReport]]:
        def waited(job: JobReport) -> str:
            return span(max(0.0, (job.started if job.started is not None else now) - job.submitted))

        def start(job: JobReport) -> str:
            return moment(job.started if job.started is not None else job.planned_start, now)

        return [
            Column("job", lambda job: job.id, ID_WIDTH),
            Column("user", lambda job: job.user, NAME_WIDTH),
            Column("account", lambda job: job.account, NAME_WIDTH, spare=5),
            Column("pool", lambda job: job.pool + ("+" if len(job.pools) > 1 else ""), NAME_WIDTH, spare=1),
            Column("status", lambda job: job.status, 9),
            Column("cpus", size, 12, right=True),
            Column("limit", lambda job: span(job.limit), 6, right=True, spare=3),
            Column("waited", waited, 6, right=True, spare=2),
            Column("place", lambda job: "" if job.position is None else str(job.position), 6, right=True),
            Column("start", start, 11),
            # A text that is looked for is often a name's.
            Column("name", lambda job: job.name, 24, spare=0 if self.shared.text else 6),
            Column("reason", reason, 200),
        ]

    def below_the_rows(self, job: JobReport) -> str:
        if job.why:
            return job.why
        if job.started is None:
            return job.status
        return f"{job.status} since {moment(job.started, self.shared.now)}"


class Running(JobListing):
    """The jobs that have nodes."""

    name = "running"
    statuses = ("", "starting", "suspended")
    orders = {
        "order": SORTS["order"],
        "end": lambda job: or_never(job.expected_end),
        **{name: SORTS[name] for name in ("size", "user", "limit")},
    }
    nothing = "No such job runs."

    @property
    def status(self) -> str:
        wanted = super().status
        return wanted if wanted in ("starting", "suspended") else "running"

    def columns(self, now: float) -> list[Column[JobReport]]:
        def left(job: JobReport) -> str:
            return "" if job.expected_end is None else span(max(0.0, job.expected_end - now))

        return [
            Column("job", lambda job: job.id, ID_WIDTH),
            Column("user", lambda job: job.user, NAME_WIDTH),
            Column("account", lambda job: job.account, NAME_WIDTH, spare=4),
            Column("pool", lambda job: job.pool, NAME_WIDTH, spare=1),
            Column("cpus", size, 12, right=True),
            Column("started", lambda job: moment(job.started, now), 11),
            Column("ends", lambda job: moment(job.expected_end, now), 11),
            Column("left", left, 6, right=True),
            Column("limit", lambda job: span(job.limit), 6, right=True, spare=2),
            Column("name", lambda job: job.name, 24, spare=5),
            Column("nodes", _nodes, 200),
        ]

    def below_the_rows(self, job: JobReport) -> str:
        planned = f" The end is predicted by {job.predicted_by}." if job.predicted_by else ""
        tier = f", in the {job.tier}" if job.tier != "foreground" else ""
        return f"{job.status}{tier}, {size(job)} cpus on {_nodes(job) or job.pool}.{planned}"


def _nodes(job: JobReport) -> str:
    names = [name for name, _ in job.placement]
    more = f" +{len(names) - 3}" if len(names) > 3 else ""
    return ",".join(names[:3]) + more
