"""The thirteen policies once more, brute force, from the words of their definition and from nothing else.

Integer times, one flat pool; every moment is worked out from scratch, the queue is sorted anew each
time, and in batch mode every single multiple of the cycle is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    """``runtime`` is what it needs; it is killed at its ``estimate``."""

    submit: int
    processors: int
    estimate: int
    runtime: int


@dataclass
class Machine:
    """What a rule sees at one instant."""

    now: int
    free: int
    #: (expected end, processors) of what runs.
    running: list[tuple[int, int]]


Waiting = list[tuple[int, Job]]
Order = Callable[[Job], int]
Rule = Callable[[Waiting, Machine], list[int]]


def by_submission(job: Job) -> int:
    return 0


def smallest(job: Job) -> int:
    return job.processors


def largest(job: Job) -> int:
    return -job.processors


def shortest(job: Job) -> int:
    return job.estimate


def longest(job: Job) -> int:
    return -job.estimate


def schedule(
    jobs: list[Job], total: int, order: Order, rule: Rule, cycle: int | None = None
) -> list[int | None]:
    """Start time of each job (given in order of submission); None: never started."""
    starts: list[int | None] = [None] * len(jobs)
    running: list[tuple[int, int]] = []
    ends: list[tuple[int, int]] = []
    arrived = 0
    now = 0
    while True:
        waiting = [at for at in range(arrived) if starts[at] is None]
        moments = [end for end, _ in ends] + ([jobs[arrived].submit] if arrived < len(jobs) else [])
        if cycle is not None and waiting and (moments or now % cycle):
            moments.append((now // cycle + 1) * cycle)
        if not moments:
            return starts
        now = min(moments)
        over = [at for end, at in ends if end <= now]
        ends = [(end, at) for end, at in ends if end > now]
        running = [(end, at) for end, at in running if at not in over]
        while arrived < len(jobs) and jobs[arrived].submit <= now:
            arrived += 1
        if cycle is not None and now % cycle:
            continue
        queue = [(at, jobs[at]) for at in range(arrived) if starts[at] is None]
        queue.sort(key=lambda entry: (order(entry[1]), entry[1].submit, entry[0]))
        machine = Machine(
            now,
            total - sum(jobs[at].processors for _, at in running),
            [(end, jobs[at].processors) for end, at in running],
        )
        for at in rule(queue, machine):
            job = jobs[at]
            starts[at] = now
            running.append((now + job.estimate, at))
            ends.append((now + min(job.runtime, job.estimate), at))
        assert sum(jobs[at].processors for _, at in running) <= total


def strict(queue: Waiting, machine: Machine) -> list[int]:
    begun, free = [], machine.free
    for at, job in queue:
        if job.processors > free:
            break
        free -= job.processors
        begun.append(at)
    return begun


def first_fit(queue: Waiting, machine: Machine) -> list[int]:
    begun, free = [], machine.free
    for at, job in queue:
        if job.processors <= free:
            free -= job.processors
            begun.append(at)
    return begun


def window(size: int) -> Rule:
    def rule(queue: Waiting, machine: Machine) -> list[int]:
        begun: list[int] = []
        free = machine.free
        while True:
            inside = [entry for entry in queue if entry[0] not in begun][:size]
            fitting = [(at, job) for at, job in inside if job.processors <= free]
            if not fitting:
                return begun
            at, job = fitting[0]
            begun.append(at)
            free -= job.processors

    return rule


def easy(queue: Waiting, machine: Machine) -> list[int]:
    return Reserved(limit=None)(queue, machine)


@dataclass
class Reserved:
    """EASY; with a limit, K-reserved."""

    limit: int | None
    overtaken: dict[int, int] = field(default_factory=dict)

    def __call__(self, queue: Waiting, machine: Machine) -> list[int]:
        begun = strict(queue, machine)
        free = machine.free - sum(job.processors for at, job in queue if at in begun)
        waiting = [(at, job) for at, job in queue if at not in begun]
        if not waiting:
            return begun
        ends = machine.running + [
            (machine.now + job.estimate, job.processors) for at, job in queue if at in begun
        ]
        shadow, extra = self._promise(waiting[0][1], free, ends)
        while True:
            started = self._next(waiting, machine.now, free, shadow, extra)
            if started is None:
                return begun
            at, job = waiting.pop(started)
            for other, _ in waiting[:started]:
                self.overtaken[other] = self.overtaken.get(other, 0) + 1
            begun.append(at)
            free -= job.processors
            if machine.now + job.estimate > shadow:
                extra -= job.processors

    @staticmethod
    def _promise(head: Job, free: int, ends: list[tuple[int, int]]) -> tuple[float, float]:
        for end in sorted({end for end, _ in ends}):
            there = free + sum(processors for e, processors in ends if e <= end)
            if there >= head.processors:
                return end, there - head.processors
        return float("inf"), float("inf")

    def _next(self, waiting: Waiting, now: int, free: int, shadow: float, extra: float) -> int | None:
        """Position of the first that may overtake those before it."""
        for position, (_, job) in enumerate(waiting):
            closed = any(
                self.limit is not None and self.overtaken.get(at, 0) >= self.limit
                for at, _ in waiting[:position]
            )
            if closed:
                return None
            fits = job.processors <= free and (now + job.estimate <= shadow or job.processors <= extra)
            if position and fits:
                return position
        return None


#: Name -> order and a maker of its rule (which may remember things).
THIRTEEN: dict[str, tuple[Order, Callable[[], Rule]]] = {
    "fcfs": (by_submission, lambda: strict),
    "sjf": (smallest, lambda: strict),
    "ljf": (largest, lambda: strict),
    "minet": (shortest, lambda: strict),
    "maxet": (longest, lambda: strict),
    "fcfs-ff": (by_submission, lambda: first_fit),
    "sjf-ff": (smallest, lambda: first_fit),
    "ljf-ff": (largest, lambda: first_fit),
    "minet-ff": (shortest, lambda: first_fit),
    "maxet-ff": (longest, lambda: first_fit),
    "window-k": (by_submission, lambda: window(10)),
    "easy": (by_submission, lambda: easy),
    "k-reserved": (by_submission, lambda: Reserved(5)),
}
