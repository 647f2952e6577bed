"""A Slurm adapter on a real cluster, and every event that it told."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from waiting import limit, until

from headway import decisions as d
from headway import events as ev
from headway.model import Placement
from headway_adapters.slurm import SlurmAdapter


class Driven:
    """An adapter on a cluster, and every event that it told."""

    def __init__(self, cluster: Any, **options: Any) -> None:
        self.cluster = cluster
        read_only = options.pop("read_only", False)
        settings = {
            "partitions": ["batch"], "poll_interval": 0.5, **cluster.options, "start_timeout": 5.0,
            **options,
        }  # fmt: skip
        self.adapter = SlurmAdapter(settings, read_only=read_only)
        self.description = self.adapter.describe()
        self.events: list[ev.Event] = []

    def wait(self, seconds: float = 0.0) -> list[ev.Event]:
        """All that is told within ``seconds``, or until the very first look is in; without them, until
        another look is."""
        end = time.time() + seconds
        told = len(self.events)
        before = self.adapter.overlay.raw if not seconds else None
        while time.time() < end or self.adapter.overlay.raw is before:
            self._take(max(end, time.time() + 0.1))
        return self.events[told:]

    def _take(self, end: float) -> list[ev.Event]:
        moment = self.adapter.wait(end)
        assert moment is not None
        now, events = moment
        assert all(event.time <= now for event in events)
        self.events += events
        return list(events)

    def meanwhile(self, condition: Callable[[], object], what: str = "") -> None:
        """Go on looking until something holds."""

        def holds() -> object:
            self._take(time.time() + 0.1)
            return condition()

        until(holds, what, pause=0.0)

    def until(self, kind: type[ev.Event], job_id: str = "", seconds: float = 20.0) -> Any:
        """Wait for an event of a kind (about a job)."""
        end = time.time() + limit(seconds)
        while time.time() < end:
            moment = self.adapter.wait(time.time() + 1.0)
            assert moment is not None
            self.events += moment[1]
            for event in moment[1]:
                about = getattr(event, "job_id", "")
                if isinstance(event, ev.DecisionFailed):
                    about = getattr(event.decision, "job_id", "")
                if isinstance(event, ev.JobSubmitted | ev.JobChanged):
                    about = event.job.id
                if isinstance(event, kind) and (not job_id or about == job_id):
                    return event
        raise AssertionError(f"no {kind.__name__} of job {job_id}; told: {self.events[-8:]}")

    def apply(self, *decisions: d.Decision) -> list[Any]:
        return list(self.adapter.apply(time.time(), decisions))

    def start(self, job_id: str, placement: Placement) -> ev.JobStarted:
        outcome = self.apply(d.Start(job_id, placement, reason="test"))[0]
        assert outcome.accepted, outcome.message
        return self.until(ev.JobStarted, job_id)
