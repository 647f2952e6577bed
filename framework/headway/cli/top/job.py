"""One job: why it waits, what is planned for it and how that changed, what would start it sooner."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headway.cli.cells import moment, span
from headway.cli.common import wall_clock
from headway.cli.top.asking import Questions
from headway.cli.top.jobs import size
from headway.cli.top.lines import Line, line, wrapped
from headway.cli.top.view import Room, Shared, View
from headway.inquiry.reports import JobReport
from headway.service.protocol import Explain, Explained, PluginQuestion, Told


class _Priority(msgspec.Struct):
    """Of a job, as the question `priority` tells it."""

    id: str
    priority: float
    factors: dict[str, float]


class _Priorities(msgspec.Struct):
    weights: dict[str, float]
    jobs: tuple[_Priority, ...] = ()


class OneJob(View):
    """What ``headway explain`` tells."""

    name = "job"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.hints = "esc back"
        self.id = ""
        self.found: Explained | None = None
        self.priority = ""
        #: Whether a plugin answers the question about priorities.
        self._is_prioritised = True
        self.top = 0
        self._length = 0

    def open(self, job_id: str) -> None:
        """Tell of this job."""
        self.id, self.found, self.priority, self.says, self.top = job_id, None, "", "", 0

    def look(self, room: Room) -> Questions:
        if not self.id:
            self.says = "No job is chosen: o opens one by its id, enter the one that is pointed at."
            return
        reply = yield Explain(self.id)
        if not isinstance(reply.found, Explained):
            self.says, self.found = reply.reason or reply.outcome, None
            return
        self.found, self.says = reply.found, ""
        job = self.found.job
        if self._is_prioritised and job is not None and job.position is not None:
            text = msgspec.json.encode({"job": job.id}).decode()
            reply = yield PluginQuestion("priority", text)
            self._is_prioritised = isinstance(reply.found, Told)
            self.priority = _priority(reply.found) if isinstance(reply.found, Told) else ""

    def draw(self, room: Room) -> Sequence[Line]:
        made = [line(text, look) for text, look in self._texts(room.width - 2)]
        self._length = len(made)
        self.top = max(0, min(self.top, len(made) - room.height))
        below = len(made) - self.top - room.height
        self.hints = "up/down scroll  esc back" + (f"  {below} more lines below" if below > 0 else "")
        return [one for one in made[self.top : self.top + room.height]]

    def _texts(self, width: int) -> list[tuple[str, str]]:
        found = self.found
        if found is None:
            return [(text, "") for text in wrapped(self.says or f"Asking about job {self.id} ...", width)]
        now = self.shared.now
        told: list[tuple[str, str]] = []

        def say(text: str, look: str = "") -> None:
            told.extend((f" {part}", look) for part in wrapped(text, width, "  "))

        def part(heading: str, sentences: Sequence[str]) -> None:
            if sentences:
                told.extend([("", ""), (f" {heading}", "head")])
                for sentence in sentences:
                    say(sentence)

        if found.job is not None:
            for text in _facts(found.job, now):
                say(text, "quiet")
        else:
            say(f"Job {found.id}", "quiet")
        if self.priority:
            say(self.priority, "quiet")
        part("What it does, and why", found.sentences)
        part("What was planned for it", found.remembered)
        waits = [f"{wait.cluster}: {wait.sentence}." for wait in found.starts_waiting]
        outages = [
            f"{out.cluster} has not answered since {wall_clock(out.since)}: {out.message}."
            for out in found.outages
        ]
        part("The cluster", [*waits, *outages])
        return told

    def key(self, key: str, room: Room) -> bool:
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -room.height, "pagedown": room.height,
                 "space": room.height, "home": -self._length, "g": -self._length, "end": self._length,
                 "G": self._length}  # fmt: skip
        if key not in steps:
            return False
        self.top = max(0, min(self.top + steps[key], self._length - room.height))
        return True

    def chosen(self) -> str:
        return self.id


def _facts(job: JobReport, now: float) -> list[str]:
    """What a job asks for and has."""
    named = (("user", job.user), ("account", job.account), ("QOS", job.qos), ("name", job.name))
    asks = [f"{size(job)} cpus", f"limit {span(job.limit)}", f"submitted {moment(job.submitted, now)}"]
    if job.predicted_by:
        asks.append(f"expected to run {span(job.expected_runtime)} ({job.predicted_by})")
    if job.started is not None:
        asks.append(f"started {moment(job.started, now)}")
        asks.append(f"ends {moment(job.expected_end, now)}")
    elif job.position is not None:
        asks.append(f"place {job.position} of {job.queue_length}")
        asks.append(f"planned start {moment(job.planned_start, now)}")
    nodes = [name for name, _ in job.placement or job.planned_placement]
    pools = ", ".join(job.pools) or job.pool
    facts = [
        f"Job {job.id} is {job.status} in {pools}; " + ", ".join(f"{what} {v}" for what, v in named if v),
        ", ".join(asks),
    ]
    return [*facts, f"nodes {', '.join(nodes)}"] if nodes else facts


def _priority(told: Told) -> str:
    """Where a job's priority comes from; "" if it is not told."""
    try:
        found = msgspec.json.decode(told.answer, type=_Priorities)
    except msgspec.DecodeError:
        return ""
    if not found.jobs:
        return ""
    job = found.jobs[0]
    parts = [f"{name} {weight * job.factors.get(name, 0.0):.1f}" for name, weight in found.weights.items()]
    return f"priority {job.priority:.1f}: {', '.join(parts)}" if parts else f"priority {job.priority:.1f}"
