"""A scheduler, the daemon's answers, and a picture that follows: without sockets and threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.adapter import Outcome
from headway.decisions import Start
from headway.events import Event, JobStarted
from headway.inquiry.cycles import Cycle
from headway.inquiry.spare_time import SpareTime
from headway.scheduler import Scheduler
from headway.serve.news import News
from headway.serve.picture import Picture
from headway.serve.reading import Readable, Reader
from headway.serve.source import Caller
from headway.serve.stream import Stream
from headway.service import Peer
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.changes import FORMAT, Begun, read_change
from headway.service.feed import Feed
from headway.service.inbox import Inbox
from headway.state import Job
from headway.view.owed import Check, Enough

OPERATOR = "root"
#: Always enough.
AMPLE = 1e6


class Sparing(SpareTime):
    """Time for so many pieces of work between two steps; None: for all."""

    def __init__(self) -> None:
        super().__init__(AMPLE, AMPLE)
        self.pieces: int | None = None

    def check(self) -> Check:
        left = self.pieces

        def check() -> None:
            nonlocal left
            if left is not None:
                left -= 1
                if left < 0:
                    raise Enough

        return check


class Followed:
    """What the daemon answers, and what the picture does."""

    def __init__(self, scheduler: Scheduler, *, private: bool = True, spare: SpareTime | None = None) -> None:
        self.scheduler = scheduler
        self.answers = Answers(private)
        self.answers._booking = SpareTime(AMPLE, AMPLE)
        self.feed = Feed(spare if spare is not None else SpareTime(AMPLE, AMPLE))
        self.inbox = Inbox(
            lambda: None, p.Report("drive", "c", 0, 0.0), clock=lambda: scheduler.state.now,
            answers=self.answers, feed=self.feed,
        )  # fmt: skip
        self.picture, self.stream = Picture(), Stream()
        self.news = News(self.picture, self.stream)
        outbox = self.feed.join(Begun(FORMAT, private, (OPERATOR,), False))
        assert outbox is not None
        self.outbox = outbox
        self.now = 0.0

    def cycle(self, *events: Event) -> list[Any]:
        """A cycle; its decisions."""
        self.now += 1.0
        decisions = self.scheduler.step(self.now, list(events))
        outcomes: Sequence[Outcome] = [Outcome(True)] * len(decisions)
        self.inbox.served(Cycle(self.now, events, decisions, outcomes), self.scheduler)
        return decisions

    def started(self, decisions: Sequence[Any]) -> list[Event]:
        """What the cluster says to starts."""
        return [
            JobStarted(self.now, one.job_id, one.placement, pool=one.pool)
            for one in decisions
            if isinstance(one, Start)
        ]

    def tell(self) -> int:
        """What there is time for between two steps; how many lines that were."""
        self.feed.tell(self.scheduler, self.answers, self.inbox.whole_status)
        count = 0
        while lines := self.outbox.take():
            for line in lines.splitlines():
                self.news.fold(read_change(line))
                count += 1
        self.news.tell()
        return count

    def settle(self) -> None:
        while self.feed.is_due:
            self.tell()

    def both(self, request: Readable, user: str) -> tuple[p.Reply, p.Reply]:
        """What the daemon and the picture say to a user."""
        peer, caller = Peer(user, user == OPERATOR), Caller(user, frozenset({"read", "operator"}))
        if isinstance(request, p.Status):
            said = self.inbox.ask(request, peer).result(0)
        else:
            said = self.answers.reply(request, peer, self.scheduler)
        return said, Reader(self.picture, caller).answer(request)

    def sees_all(self, user: str) -> bool:
        return self.answers.tells_all(Peer(user, user == OPERATOR))

    @property
    def jobs(self) -> dict[str, Job]:
        return self.scheduler.state.jobs
