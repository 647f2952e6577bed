"""Backfilling with all that operators tune, brute force: one cycle, second by second, as the options say.

Integer times, one flat pool; nothing is remembered from one cycle to the next.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Waiting:
    name: str
    processors: int
    estimate: int
    user: str
    licences: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Options:
    """``bookings`` None: everybody."""

    bookings: int | None = 1
    queue_depth: int | None = None
    queue_depth_per_user: int | None = None
    window: int | None = None
    resolution: int | None = None
    shortest: bool = False
    #: How much there is of each licence.
    licences: tuple[tuple[str, int], ...] = ()


def up(time: int, options: Options) -> int:
    grid = options.resolution or 1
    return -(-time // grid) * grid


class Levels:
    """Free processors, and free licences, in each second from now on."""

    def __init__(self, options, free, running, queue, now):
        self.options, self.now = options, now
        last = max([end for end, *_ in running], default=now)
        horizon = last - now + sum(job.estimate for job in queue)
        horizon += (len(queue) + 2) * (options.resolution or 1) + 2
        self.free = [free] * horizon
        self.licences = {name: [total] * horizon for name, total in options.licences}
        for end, processors, licences in running:
            for second in range(up(end, options) - now, horizon):
                self.free[second] += processors
            for name, amount in licences:
                for second in range(up(end, options) - now):
                    self.licences[name][second] -= amount

    def fits(self, job, start):
        """``start`` is counted from now."""
        span = slice(start, start + job.estimate)
        return min(self.free[span]) >= job.processors and all(
            min(self.licences[name][span]) >= amount for name, amount in job.licences
        )

    def earliest(self, job):
        last = len(self.free) - job.estimate
        return next((start for start in range(last + 1) if self.fits(job, start)), None)

    def take(self, job, start):
        for second in range(start, up(self.now + start + job.estimate, self.options) - self.now):
            self.free[second] -= job.processors
        for name, amount in job.licences:
            for second in range(start, up(self.now + start + job.estimate, self.options) - self.now):
                self.licences[name][second] -= amount


def looked_at(options, queue, started):
    """Who is looked at if these were started."""
    chosen, by_user = [], {}
    for job in queue:
        if job.name in started:
            continue
        if options.queue_depth is not None and len(chosen) == options.queue_depth:
            break
        if by_user.get(job.user, 0) == options.queue_depth_per_user:
            continue
        by_user[job.user] = by_user.get(job.user, 0) + 1
        chosen.append(job)
    return chosen


def cycle(options, free, running, queue, now):
    """Who starts, in order, and who is booked when. ``running``: (expected end, processors, licences)."""
    levels = Levels(options, free, running, queue, now)
    started, booked, served = [], {}, set()
    most = len(queue) if options.bookings is None else options.bookings

    def start(job):
        if levels.fits(job, 0):
            levels.take(job, 0)
            started.append(job.name)

    while True:
        # A start lets the next one in.
        left = [job for job in looked_at(options, queue, started) if job.name not in served]
        if not left:
            return started, booked
        if len(booked) < most or not options.shortest:
            job = left[0]
            served.add(job.name)
            start(job)
            if job.name not in started and len(booked) < most:
                at = levels.earliest(job)
                if at is not None and (options.window is None or at <= options.window):
                    levels.take(job, at)
                    booked[job.name] = now + at
            continue
        for job in sorted(left, key=lambda job: job.estimate):
            served.add(job.name)
            start(job)
