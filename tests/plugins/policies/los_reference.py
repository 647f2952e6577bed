"""LOS, Delayed-LOS and Hybrid-LOS from the words of their definition: counts, seconds, all subsets.

Integer times, one flat pool. Capacity is a list of free processors second by second, made anew for every
question; the best subset is found by looking at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations


@dataclass(frozen=True)
class Job:
    """``runtime`` is what it needs, at most its ``estimate``; ``start``: dedicated, wanted then."""

    submit: int
    processors: int
    estimate: int
    runtime: int
    start: int | None = None


@dataclass
class Hybrid:
    """Hybrid-LOS, which is Delayed-LOS without dedicated jobs and LOS if also ``skips`` is 0."""

    jobs: list[Job]
    total: int
    skips: int
    lookahead: int = 50
    all_groups: bool = False
    starts: dict[int, int] = field(default_factory=dict)
    #: Batch jobs that wait, in order; dedicated jobs that are due, and that are ahead.
    batch: list[int] = field(default_factory=list)
    due: list[int] = field(default_factory=list)
    ahead: list[int] = field(default_factory=list)
    #: (job, expected end, end)
    running: list[tuple[int, int, int]] = field(default_factory=list)
    count: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    #: What is kept for dedicated jobs from this instant on: (job, second from now).
    booked: list[tuple[int, int]] = field(default_factory=list)
    now: int = 0

    def run(self) -> list[int | None]:
        """Start time of each job."""
        arrived = 0
        while True:
            moments = [end for _, _, end in self.running] + [self.jobs[at].start for at in self.ahead]
            if arrived < len(self.jobs):
                moments.append(self.jobs[arrived].submit)
            if not moments:
                return [self.starts.get(at) for at in range(len(self.jobs))]
            self.now = now = min(moments)
            self.running = [entry for entry in self.running if entry[2] > now]
            while arrived < len(self.jobs) and self.jobs[arrived].submit <= now:
                (self.batch if self.jobs[arrived].start is None else self.ahead).append(arrived)
                arrived += 1
            self.due += [at for at in self.ahead if self.jobs[at].start <= now]
            self.due.sort(key=lambda at: (self.jobs[at].start, at))
            self.ahead = [at for at in self.ahead if self.jobs[at].start > now]
            self.instant()

    @property
    def free(self) -> int:
        return self.total - sum(self.jobs[at].processors for at, _, _ in self.running)

    def start(self, chosen: list[int]) -> None:
        for at in chosen:
            job = self.jobs[at]
            assert at not in self.starts and job.processors <= self.free
            self.starts[at] = self.now
            self.running.append((at, self.now + job.estimate, self.now + min(job.runtime, job.estimate)))
        self.batch = [at for at in self.batch if at not in chosen]
        self.due = [at for at in self.due if at not in chosen]

    # ------------------------------------------------------------------ capacity

    def level(self) -> list[int]:
        """Free processors in each second from now on, by the expected ends."""
        horizon = 1 + sum(job.estimate for job in self.jobs) + max(job.start or 0 for job in self.jobs)
        level = [self.free] * (2 * horizon)
        for at, expected, _ in self.running:
            for second in range(expected - self.now, len(level)):
                level[second] += self.jobs[at].processors
        return level

    def book(self, level: list[int], at: int, after: int = 0) -> int:
        """Keep the earliest capacity for a job from ``after`` (seconds from now) on; when that is."""
        job = self.jobs[at]
        begin = next(
            second
            for second in range(after, len(level))
            if all(level[s] >= job.processors for s in range(second, second + job.estimate))
        )
        for second in range(begin, begin + job.estimate):
            level[second] -= job.processors
        return begin

    def keep(self) -> None:
        """Book the dedicated jobs: the due ones, then the group, or groups, ahead."""
        level = self.level()
        self.booked = [(at, self.book(level, at)) for at in self.due]
        groups = sorted({self.jobs[at].start for at in self.ahead})
        for start in groups if self.all_groups else groups[:1]:
            members = [at for at in self.ahead if self.jobs[at].start == start]
            need = sum(self.jobs[at].processors for at in members)
            after = start - self.now
            if need <= self.total:
                after = next(s for s in range(after, len(level)) if level[s] >= need)
            self.booked += [(at, self.book(level, at, after)) for at in members]

    def left(self) -> list[int]:
        """The level without what is kept. What was booked stands for the whole instant."""
        level = self.level()
        for at, begin in self.booked:
            if at not in self.starts:
                for second in range(begin, begin + self.jobs[at].estimate):
                    level[second] -= self.jobs[at].processors
        return level

    def best(self, candidates: list[int], level: list[int]) -> list[int]:
        """The subset with the greatest sum that never needs more than the level; ties: earliest first."""
        best, total = [], 0
        candidates = [at for at in candidates if self.jobs[at].processors <= self.free]
        for count in range(1, len(candidates) + 1):
            for chosen in combinations(candidates, count):
                size = sum(self.jobs[at].processors for at in chosen)
                if size < total or size > self.free or (size == total and list(chosen) > best):
                    continue
                longest = max(self.jobs[at].estimate for at in chosen)
                if all(
                    sum(self.jobs[at].processors for at in chosen if self.jobs[at].estimate > second)
                    <= level[second]
                    for second in range(longest)
                ):
                    best, total = list(chosen), size
        return best

    # ------------------------------------------------------------------ the algorithms

    def instant(self) -> None:
        self.keep()
        self.start([at for at, begin in self.booked if begin == 0 and at in self.due])
        while self.free and (self.batch or self.due):
            before = len(self.starts)
            self.round()
            if len(self.starts) == before:
                return

    def round(self) -> None:
        level = self.left()
        if self.due:
            self.start(self.best(self.batch[: self.lookahead], level))
            return
        head = self.batch[0]
        fits = self.jobs[head].processors <= self.free
        skipped = self.count.get(head, 0)
        if (fits or self.ahead) and skipped < self.skips:
            chosen = self.best(self.batch[: self.lookahead], level)
            if head not in chosen and self.last.get(head) != self.now:
                self.last[head] = self.now
                self.count[head] = skipped + 1
            self.start(chosen)
        elif fits and self.best([head], level):
            self.start([head])
        else:
            self.book(level, head)
            self.start(self.best(self.batch[1 : self.lookahead + 1], level))
