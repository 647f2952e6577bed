"""Conservative backfilling: every job is booked, so a later job delays no earlier job.

A. Mu'alem and D. Feitelson: Utilization, Predictability, Workloads, and User Runtime Estimates in
Scheduling the IBM SP2 with Backfilling. IEEE TPDS 12(6), 2001, section 2.

Jobs are booked in queue order, each at the earliest time at which it fits the profile of running
jobs and earlier bookings; a job whose time is now starts. The bookings are made anew in each cycle,
so that a job that ends early lets all waiting jobs move forward in queue order. Where only arrivals
happened since the last cycle the bookings would come out at the same times, so they are kept, on
their nodes, and only the new jobs are served. (A placement that looks at how full nodes are might
choose other nodes by then.)

Ours: with the option ``depth`` only so many waiting jobs are booked, from the head of the queue on. The jobs
behind them start where they fit before all bookings. With a depth of 1 that is EASY.

The options of :mod:`.tuning` bound what is looked at: ``depth`` is about bookings, ``queue_depth`` about
jobs.

``guarantees: keep`` is the other reading of conservative backfilling. When a job arrives, it is promised the
first time at which it fits beside all promises, and keeps it. When something ended or was changed, each job
in queue order may move to an earlier time, never to a later time. Where the order changes with time, or
follows the estimates, bookings that are made anew let a job fall behind; a promise does not. (G. Sabin, P.
Sadayappan: Unfairness Metrics for Space-Sharing Parallel Job Schedulers, JSSPP 2005, compares this kind: see
``docs/papers/unfairness_metrics.md``.) Ours: what the machine loses, or a job that outlives its prediction,
can break a promise; then the job is promised the next time at which it fits. It is for pools that are counted
in processors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pydantic

from headway.decisions import Decision
from headway.errors import UserError
from headway.events import Event, JobEnded, JobStarted, JobSubmitted, all_but
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Again, Study, Traits
from headway.state import Job, State
from headway.view import View
from headway_plugins.policies.tuning import Tuning, serve, why_not

_INF = float("inf")
_BEFORE = "fits before all bookings of earlier jobs"


class ConservativeOptions(Tuning):
    """Options of conservative backfilling."""

    depth: int | None = pydantic.Field(
        default=None,
        ge=1,
        description="number of waiting jobs that are booked, from the head of the queue; later jobs may "
        "start only where they fit before all bookings (default: all jobs are booked)",
    )
    guarantees: Literal["renew", "keep"] = pydantic.Field(
        default="renew",
        description="renew: bookings are made anew in queue order whenever a job ended; keep: a "
        "job's booking never moves to a later time (flat pools only)",
    )

    @pydantic.model_validator(mode="after")
    def _no_depth_with_guarantees(self) -> ConservativeOptions:
        if self.guarantees == "keep":
            if self.depth is not None:
                raise ValueError("no depth with guarantees: keep, which promises a time to every job")
            if self.in_part or self.resolution is not None:
                named = next(name for name in Tuning.model_fields if getattr(self, name) is not None)
                raise ValueError(
                    f"no {named} with guarantees: keep, which promises an exact time to every job"
                )
        return self


class Conservative(Plugin):
    """Conservative backfilling: a booking for every queued job, in queue order."""

    traits = Traits(ask_again=Again.DOMAIN, study=Study(backfills=True))
    Options = ConservativeOptions

    def __new__(cls, options: Any = None, *_: Any) -> Conservative:
        # Only a policy that keeps promises has to look at every event.
        keeps = isinstance(options, ConservativeOptions) and options.guarantees == "keep"
        return super().__new__(KeepingGuarantees if keeps else cls)

    def __init__(self, options: ConservativeOptions | None = None) -> None:
        super().__init__(options or ConservativeOptions())

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        options = self.options
        view.coarsen(options.resolution or 0)
        if options.in_part:
            serve(view, options, self._most, lambda job: _BEFORE)
        else:
            new = view.queue if view.fresh < 0 else view.queue[len(view.queue) - view.fresh :]
            view.serve(new, _BEFORE, options.depth)
        return view.made

    @property
    def _most(self) -> float:
        """How many jobs are booked."""
        return _INF if self.options.depth is None else self.options.depth

    @hookimpl
    def explain(self, job: Job, question: str, view: View) -> str | None:
        """Why the options keep a job waiting."""
        return None if question != "waiting" else why_not(job, view, self.options, self._most)


class KeepingGuarantees(Conservative):
    """Conservative backfilling with ``guarantees: keep``."""

    #: A promise is made at the arrival, whether or not the job could start.
    traits = replace(
        Conservative.traits, observes=all_but(JobSubmitted, JobStarted), ask_again=Again.ANY_EVENT
    )

    def __init__(self, options: ConservativeOptions | None = None) -> None:
        super().__init__(options)
        self._state: State | None = None
        #: Of each waiting job: the promised start, and the runtime and processors that it was promised with.
        self._promised: dict[str, tuple[float, float, int]] = {}
        #: How often something else happened than arrivals and starts, and how often when a pool was last
        #: served.
        self._changes = 0
        self._served: dict[str, int] = {}
        #: The first promise of each pool that is to be kept by the clock.
        self._woken: dict[str, float] = {}

    @hookimpl
    def startup(self, state: State) -> None:
        self._state = state
        nodes = [pool.name for pool in state.pools.values() if not pool.flat]
        if nodes:
            raise UserError(
                f"conservative: guarantees: keep: expected pools that are counted in processors, found "
                f"nodes in pool "
                f"{nodes[0]!r}"
            )

    @hookimpl
    def observe(self, event: Event) -> None:
        if not isinstance(event, JobSubmitted | JobStarted):
            self._changes += 1
        if isinstance(event, JobEnded):
            self._promised.pop(event.job_id, None)

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        """Serve the queue with promises that are kept."""
        now, promised, domain = view.now, self._promised, view.domain.name
        view.forget()
        profile = view.profile
        may_move = self._served.get(domain) != self._changes
        self._served[domain] = self._changes
        for job in view.queue:
            if job.id in promised:
                start, runtime, processors = promised[job.id]
                profile.reserve(start, start + runtime, processors)
        for job in view.queue:
            known = promised.get(job.id)
            wanted = job.expected_runtime, job.processors
            if known is not None:
                start, runtime, processors = known
                if start > now and not may_move and (runtime, processors) == wanted:
                    continue
                profile.release(start, start + runtime, processors)
            start = profile.earliest(job.processors, job.expected_runtime, now)
            profile.reserve(start, start + job.expected_runtime, job.processors)
            if start <= now and view.start(job, "fits beside all promises to other jobs") is not None:
                promised.pop(job.id, None)
            else:
                promised[job.id] = start, *wanted
        self._show(view)
        return view.made

    def _show(self, view: View) -> None:
        """Book what is promised, so that it can be explained and no other job takes it; wake up for it."""
        started = {job.id for job in view.started}
        first = _INF
        for job in view.queue:
            if job.id not in started:
                start = self._promised[job.id][0]
                first = min(first, start)
                view.book(job, after=max(start, view.now))
        domain = view.domain
        if view.now < first < _INF and self._woken.get(domain.name) != first and self._state is not None:
            self._woken[domain.name] = first
            self._state.wake_at(first, domain)

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {"promised": {k: list(v) for k, v in self._promised.items()}}

    @hookimpl
    def restore(self, saved: Any) -> None:
        self._promised = {
            name: (float(start), float(runtime), int(processors))
            for name, (start, runtime, processors) in saved["promised"].items()
        }
