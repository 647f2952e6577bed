"""How long a batch system takes: from a decided start until the job runs, from a job's end until its
processors can be given again.

A dry run without these is too fast: each real start costs a command, a scheduling pass and a launch, and
each end is known only at the next look. The daemon measures both while it drives
(:class:`LatencyMeter`), keeps the newest :data:`KEPT` samples of each in its checkpoints, and
dry runs draw from them (:meth:`Latencies.draw_start`, :meth:`Latencies.draw_end`).

===========  ==================================================================================
``start``    from the cycle that decided a start to the job's start as the batch system states it
``end``      from a job's end as the batch system states it to the cycle that was told of it; of a
             job that was ended at its limit, from that limit on
``look``     between the look that told of something and the look before it
===========  ==================================================================================

An error of a quarter of a second in each start or end is one of ten seconds after forty jobs that
wait for each other. So where the batch system states whole seconds (``whole_seconds``), the middle is
taken of that part of the second in which it can have been: after the decision and the look that did not
show it yet, and before the cycle that was told of it. Starts that headway did not make, ends without a time
(``vanished``), and what a run found when it began are not counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from headway.decisions import Decision, Start
from headway.events import DecisionFailed, Event, JobChanged, JobEnded, JobRequeued, JobStarted, JobSubmitted
from headway.journal.latency_summary import QUANTILES, LatencySummary

if TYPE_CHECKING:
    from headway.journal import Journal

#: Where a checkpoint has them; no plugin can be called so.
SAVED_AS = "/latencies"
#: Samples of each kind that are kept, the newest.
KEPT = 500
#: Longer than this is an outage or a night's suspension of the machine, not a latency; seconds.
LONGEST = 600.0


class Latencies(msgspec.Struct, frozen=True, omit_defaults=True):
    """Samples in seconds, oldest first, none negative."""

    start: tuple[float, ...] = ()
    end: tuple[float, ...] = ()
    look: tuple[float, ...] = ()
    #: The batch system states starts in whole seconds.
    whole_seconds: bool = False

    def __bool__(self) -> bool:
        return bool(self.start or self.end)

    def draw_start(self, rng: np.random.Generator) -> float:
        """One of the start latencies, each as likely as any other; 0 if none was measured."""
        return float(self.start[rng.integers(len(self.start))]) if self.start else 0.0

    def draw_end(self, rng: np.random.Generator) -> float:
        """One of the end latencies, each as likely as any other; 0 if none was measured."""
        return float(self.end[rng.integers(len(self.end))]) if self.end else 0.0

    def draw_look(self, rng: np.random.Generator) -> float:
        """One of the times between two looks, each as likely as any other; 0 if none was measured."""
        return float(self.look[rng.integers(len(self.look))]) if self.look else 0.0

    def lag(self) -> float:
        """Seconds from an end until the batch system shows it to a look, as far as the looks' own distance
        does not explain :attr:`end`."""
        if not self.end or not self.look:
            return 0.0
        # Something happens at any moment between two looks.
        waiting = np.outer(self.look, (np.arange(10) + 0.5) / 10)
        return max(0.0, float(np.median(self.end) - np.median(waiting)))

    def summary(self) -> LatencySummary:
        return LatencySummary(len(self.start), _quantiles(self.start), len(self.end), _quantiles(self.end))


def _quantiles(samples: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(float(np.quantile(samples, q)), 3) for q in QUANTILES) if samples else ()


def _no_cluster(job_id: str) -> str:
    return ""


def _unlooked(job_id: str) -> tuple[float, float] | None:
    return None


class _Samples:
    """What was measured of one cluster."""

    def __init__(self, known: Latencies) -> None:
        self.start = deque(known.start, KEPT)
        self.end = deque(known.end, KEPT)
        self.look = deque(known.look, KEPT)
        #: Some start was stated in whole seconds: by chance that hardly happens, while one that began during
        #: a look is stated with the look's time.
        self.whole_seconds = known.whole_seconds
        #: The looks that were counted last.
        self.looked: tuple[float, float] | None = None

    def latencies(self) -> Latencies:
        return Latencies(tuple(self.start), tuple(self.end), tuple(self.look), self.whole_seconds)


class LatencyMeter:
    """Measures one run, cycle by cycle, for each cluster of it."""

    def __init__(
        self,
        saved: Mapping[str, Any] | None = None,
        *,
        cluster_of: Callable[[str], str] = _no_cluster,
    ) -> None:
        """``saved``: what :meth:`saved` of an earlier run returned. ``cluster_of``: job id -> its cluster."""
        #: Is told of each start that was measured: its cluster, and seconds.
        self.on_start: Callable[[str, float], None] | None = None
        self._cluster_of = cluster_of
        self._samples = {cluster: _Samples(found) for cluster, found in read(saved).items()}
        #: Job -> when its start was decided.
        self._asked: dict[str, float] = {}
        #: Job that runs -> when it began.
        self._began: dict[str, float] = {}
        #: Job -> its limit, seconds.
        self._limits: dict[str, float] = {}
        self._first = True
        self._summary: dict[str, LatencySummary] | None = None

    def cycle(
        self,
        now: float,
        events: Sequence[Event],
        decisions: Sequence[Decision],
        looked: Callable[[str], tuple[float, float] | None] = _unlooked,
    ) -> None:
        """One cycle: what was told in it, and what it decided.

        ``looked``: :meth:`headway.adapter.ClusterAdapter.looked`.
        """
        for event in events:
            if isinstance(event, JobStarted):
                self._started(event, now, looked(event.job_id))
            elif isinstance(event, JobEnded):
                self._ended(event, now, looked(event.job_id))
            elif isinstance(event, JobSubmitted | JobChanged):
                self._limits[event.job.id] = event.job.request.walltime
            elif isinstance(event, JobRequeued):
                self._began.pop(event.job_id, None)
                self._asked.pop(event.job_id, None)
            elif isinstance(event, DecisionFailed) and isinstance(event.decision, Start):
                self._asked.pop(event.decision.job_id, None)
        for decision in decisions:
            if isinstance(decision, Start):
                self._asked[decision.job_id] = now
        self._first = False

    def _started(self, event: JobStarted, now: float, looked: tuple[float, float] | None) -> None:
        asked = self._asked.pop(event.job_id, None)
        after = [at for at in (asked, looked[0] if looked else None) if at is not None]
        self._began[event.job_id] = began = moment(event.time, after, now)
        if asked is not None:
            samples = self._of(event.job_id, looked)
            samples.whole_seconds = samples.whole_seconds or event.time == int(event.time)
            self._count(samples.start, began - asked)
            if self.on_start is not None:
                self.on_start(self._cluster_of(event.job_id), began - asked)

    def _ended(self, event: JobEnded, now: float, looked: tuple[float, float] | None) -> None:
        began = self._began.pop(event.job_id, None)
        limit = self._limits.pop(event.job_id, None)
        self._asked.pop(event.job_id, None)
        if began is None or self._first or event.outcome == "vanished":
            return
        over = moment(event.time, [began, looked[0]] if looked else [began], now)
        if event.outcome == "timed out" and limit is not None:
            over = min(over, began + limit)
        self._count(self._of(event.job_id, looked).end, now - over)

    def _of(self, job_id: str, looked: tuple[float, float] | None) -> _Samples:
        """Of the job's cluster; the look that told of it is counted."""
        samples = self._samples.setdefault(self._cluster_of(job_id), _Samples(Latencies()))
        if looked is not None and looked != samples.looked:
            samples.looked = looked
            self._count(samples.look, looked[1] - looked[0])
        return samples

    def _count(self, samples: deque[float], seconds: float) -> None:
        if seconds <= LONGEST:
            samples.append(round(max(0.0, seconds), 3))
            self._summary = None

    def latencies(self) -> dict[str, Latencies]:
        """What is known, by cluster ("": the only one)."""
        found = {name: samples.latencies() for name, samples in self._samples.items()}
        return {name: one for name, one in found.items() if one}

    def summary(self) -> dict[str, LatencySummary]:
        """Quantiles by cluster, made anew only when something was measured."""
        if self._summary is None:
            self._summary = {name: found.summary() for name, found in self.latencies().items()}
        return self._summary

    def saved(self) -> dict[str, Any]:
        """The same as JSON values, for a checkpoint under :data:`SAVED_AS`."""
        return {name: msgspec.to_builtins(found) for name, found in self.latencies().items()}


def moment(stated: float, after: Sequence[float], before: float) -> float:
    """When something was that a batch system states, if need be in whole seconds; all absolute seconds.

    The middle of that part of the second which lies between what was known: it was later than each of
    ``after``, and not later than ``before``. If no part of it does, the middle of the second.
    """
    if stated != int(stated):
        return stated
    low, high = max(stated, *after) if after else stated, min(stated + 1.0, before)
    return (low + high) / 2 if low <= high else stated + 0.5


def read(saved: Mapping[str, Any] | None) -> dict[str, Latencies]:
    """What :meth:`LatencyMeter.saved` returned, by cluster; {} for None."""
    return {name: msgspec.convert(found, Latencies) for name, found in (saved or {}).items()}


def together(found: Mapping[str, Latencies]) -> Latencies:
    """The samples of several clusters as one."""
    return Latencies(
        tuple(x for one in found.values() for x in one.start),
        tuple(x for one in found.values() for x in one.end),
        tuple(x for one in found.values() for x in one.look),
        any(one.whole_seconds for one in found.values()),
    )


def measured(journal: Journal) -> dict[str, Latencies]:
    """What the daemon that writes to this journal has measured, by cluster ("": the only one); {}: nothing.

    Taken from the newest checkpoint that has any, so it is as old as that.
    """
    for run in reversed(journal.runs()):
        checkpoint = journal.last_checkpoint(run.id)
        states = checkpoint.states if checkpoint is not None else run.info.plugin_states
        found = read(states.get(SAVED_AS))
        if any(found.values()):
            return found
    return {}
