"""SAREG on a cluster: jobs are accepted if they meet their deadlines, and slack becomes security.

T. Xie, X. Qin, A. Sung: Enhancing Security of Real-Time Applications on Grids Through Dynamic Scheduling.
JSSPP 2005, Figure 3, on one site: see ``grid.py`` for the algorithm and ``levels.py`` for the levels.
``ns-edf`` is the same with levels that are drawn once and never raised.

A job says what it needs in its attributes ``deadline`` (absolute seconds) and ``security``
(:func:`headway_plugins.security.levels.need_of`). When it arrives it is promised a time [start, end) and
levels, or refused with what is missing; the promise is kept whatever comes later. Decisions:

- Execution is the user's estimate: a job that may run so long must not make the next job late. What ends
  early gives the rest of its time back, and promised jobs move to earlier times, in order of their starts,
  never to later times; their levels stay.
- A job without a deadline is promised the first time at which it fits, at the levels that fit before the
  next promise. A job without ``security`` is not protected and costs nothing.
- A pool is a site. A job stays in its own: nothing moves waiting jobs between sites. Where pools share nodes
  no job is promised what may be taken from a job of another pool that waits for it (``pool_sites.py``). A job
  of several pools is promised a time in the first of them that can keep its deadline.
- When a job starts, its limit is lengthened by what its protection takes, where limits can be changed;
  elsewhere (volclava, OpenLava) the user's own has to hold both. In emulation the run takes that much longer.
- On nodes a promise is a number of processors. A job that says how it lies on nodes (their number,
  processors, memory or anything else on each) is promised whole nodes, as many as it may need: then jobs of
  these kinds never wait for each other's corners. Jobs that were there before, or that start without
  headway, count until their limits.
- Where jobs can be told (:class:`Annotate`), each is told its levels before it starts
  (``protection/label.py``), and how fast the options are is learnt from what jobs tell (:class:`Speeds`). The
  tables of 2005 protect nothing there, so a measured profile is needed.
- No job starts without a promise, whatever plugin asks for it.
- Protection makes a limit longer than its user may ask for, so it adds at most ``longest`` seconds, and never
  more than the pool's limit leaves.
- What breaks promises (a pool that shrinks) is said in the log, and the job starts as soon as it fits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headway.decisions import Annotate, Decision, SetTimeLimit, Start
from headway.errors import UserError
from headway.events import Event, JobChanged, JobEnded, JobRequeued, JobStarted, NodeUp, PoolChanged
from headway.hookspecs import hookimpl
from headway.plugins import Traits
from headway.report.quantities import duration
from headway.results import RunResult
from headway.state import Job, State
from headway.state.records import ON_NODES
from headway.view import View
from headway.workload import WorkloadModel
from headway_plugins.security.account_figures import Figures
from headway_plugins.security.deadlines import DeadlinesModel
from headway_plugins.security.learnt import Speeds
from headway_plugins.security.levels import (
    ROUNDING,
    SERVICES,
    Need,
    Steps,
)
from headway_plugins.security.pool_sites import PoolSites
from headway_plugins.security.promising import (
    DEADLINE,
    NOTHING,
    SECURITY,
    Promise,
    Promising,
    deadline_of,
    too_late,
)
from headway_plugins.security.protection.label import NOTE, TOOK, label_text
from headway_plugins.security.sareg_options import SaregOptions

_INF = float("inf")
#: Why the cluster can note nothing at it.
CANNOT_BE_TOLD = "cannot_be_told"
#: Words for headway in its comment that nothing reads.
UNREAD = "unread"
_PAPER = (
    "T. Xie, X. Qin, A. Sung: Enhancing Security of Real-Time Applications on Grids Through Dynamic "
    "Scheduling, JSSPP 2005"
)


class Sareg(Promising):
    """Accept jobs that meet their deadlines, and spend their slack on security levels."""

    Options = SaregOptions
    traits = Traits(
        observes=(NodeUp, PoolChanged, JobStarted, JobChanged, JobEnded, JobRequeued),
        checkpoint="promises", paper=_PAPER,
    )  # fmt: skip

    @hookimpl
    def promised(self) -> int:
        return self._promised

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._seed, self._state = state.seed, state
        self._sites = PoolSites(state, lambda: self._promises.values())
        self._grouped = tuple(state.domains)
        self._tells, self._lengthens = Annotate in capabilities, SetTimeLimit in capabilities
        nodes = [pool.name for pool in state.pools.values() if not pool.flat]
        if nodes and not self._tells:
            raise UserError(
                f"sareg: expected a batch system that can store the levels of a job, or pools that are "
                f"counted in processors; found nodes in pool {nodes[0]!r}"
            )
        if self._tells and not self._profile.protects:
            raise UserError(
                f"sareg: the profile {self._profile.name!r} is for experiments and protects nothing; "
                "expected option `profile`: a file of `headway security measure`"
            )

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "promises": msgspec.to_builtins(self._promises),
            "speeds": {option: list(runs) for option, runs in self._speeds.runs.items()},
            "refused": {**self._were_away, **self._away},
        }

    @hookimpl
    def restore(self, saved: Mapping[str, Any]) -> None:
        # JSON has no infinity: it comes back as nothing.
        promises = {
            name: {**kept, "deadline": _INF if kept["deadline"] is None else kept["deadline"]}
            for name, kept in saved["promises"].items()
        }
        self._promises = msgspec.convert(promises, dict[str, Promise])
        self._speeds = Speeds({name: list(runs) for name, runs in saved.get("speeds", {}).items()})
        self._were_away = {name: list(kept) for name, kept in saved.get("refused", {}).items()}

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, NodeUp):
            self._largest.clear()
            grouped = tuple(state.domains)
            if grouped != self._grouped or any(len(domain.pools) > 1 for domain in state.domains.values()):
                # The pools that share nodes have changed.
                self._grouped = grouped
                self._sites.clear()
        elif isinstance(event, PoolChanged):
            self._sites.clear()
        elif isinstance(event, JobStarted):
            promise = self._promises.get(event.job_id)
            if promise is not None:
                self._promised += not promise.running
                self._runs(promise, state.jobs.get(event.job_id), state)
            elif event.job_id in state.jobs:
                self._occupied(state.jobs[event.job_id], state.now)
        elif isinstance(event, JobChanged):
            notes = (event.job.attributes or {}).get("notes")
            took = notes.get(TOOK) if isinstance(notes, Mapping) else None
            if isinstance(took, str):
                self._promised += self._speeds.learn(event.job.id, took)
        elif isinstance(event, JobEnded | JobRequeued):
            self._left(event)

    def _left(self, event: JobEnded | JobRequeued) -> None:
        """A job is over, or waits again: its promise is, too."""
        promise = self._promises.pop(event.job_id, None)
        if promise is not None:
            self._promised += 1
            self._give_back(promise, event.time)
            if isinstance(event, JobEnded) and not promise.stranger:
                self._count(event, promise)
        if isinstance(event, JobEnded):
            self._needs.pop(event.job_id, None)
            self._asked.pop(event.job_id, None)
            self._promised += event.job_id in self._away or event.job_id in self._were_away
            self._away.pop(event.job_id, None)
            self._were_away.pop(event.job_id, None)
            self._speeds.forget(event.job_id)

    @hookimpl
    def admit_job(self, job: Job, state: State) -> str | None:
        if job.status in ON_NODES:
            return None
        now, old = state.now, self._promises.get(job.id)
        try:
            deadline = deadline_of(job)
            need = self._need_of(job)
            _check_words(job)
        except UserError as error:
            return str(error)
        if old is not None:
            if old.pool != job.pool.name and old.pool in job.description.pools and not old.late:
                width = self._width_in(job, state.pools.get(old.pool))
                if (width, old.deadline, old.execution) == (old.processors, deadline, job.estimate):
                    return f"it was promised a time in pool {old.pool!r}"
            if self._stands(old, job, deadline):
                return None
            self._promised += 1
            self._give_back(self._promises.pop(job.id), now)
        else:
            self._figures(job).submitted += job.id not in self._refused
        self._needs[job.id], self._asked[job.id] = need, job.attribute(SECURITY)
        untold = job.attribute(CANNOT_BE_TOLD) if self._tells and need is not NOTHING else None
        if untold:
            return self._answered(job, deadline, f"its security levels cannot be set: {untold}")
        self._promised += job.id in self._were_away
        reason, asks = self._were_away.pop(job.id, (None, None))
        if reason is not None and asks == self._asks(job, deadline):
            # What was refused before a restart stays refused.
            return self._answered(job, deadline, reason)
        if impossible := self._impossible(job):
            return self._answered(job, deadline, impossible)
        if self._is_short(job):
            return self._answered(job, deadline, None)
        if job.held or job.description.dependencies or job.description.reservation:
            # It is not known when, or whether, it can start: it is promised a time once it can. What is too
            # late already is never in time.
            end = now + job.estimate + need.cost(need.lowest)
            late = too_late(end - deadline, now, deadline)
        else:
            begin = job.description.begin_time
            late = self._promise(job, state, deadline, now if begin is None else max(begin, now))
        return self._answered(job, deadline, None if self.options.best_effort else late)

    def _stands(self, old: Promise, job: Job, deadline: float) -> bool:
        """Whether the promise stands, as the job asks for the same.

        The job was told again, by a cluster after a restart for example; speeds that were learnt since change
        nothing.
        """
        same = (old.pool, old.processors, old.deadline) == (job.pool.name, self._width(job), deadline)
        # A batch system rounds limits up to whole minutes.
        more = job.estimate - old.limit
        same = same and (job.estimate == old.execution or more == 0 or 0 < more < 60 * self._tells)
        asked = job.attribute(SECURITY)
        kept = self._needs.get(job.id) or self._kept(job, old)
        if not same or kept is None or asked != self._asked.get(job.id, asked):
            return False
        if job.id not in self._needs and kept is not NOTHING:
            self._promised += old.steps != kept.lowest
            old.steps = kept.lowest
        self._needs[job.id], self._asked[job.id] = kept, asked
        self._figures(job)
        return True

    def _answered(self, job: Job, deadline: float, refused: str | None) -> str | None:
        if refused is not None:
            self._promised += 1
            self._refused[job.id] = refused
            self._away[job.id] = [refused, self._asks(job, deadline)]
        else:
            self._promised += job.id in self._away
            self._refused.pop(job.id, None)
            self._away.pop(job.id, None)
        return refused

    def _asks(self, job: Job, deadline: float) -> list[Any]:
        """What its refusal goes by, as JSON values."""
        due = None if deadline == _INF else deadline
        asked: Any = msgspec.json.decode(msgspec.json.encode(job.attribute(SECURITY)))
        return [job.pool.name, self._width(job), job.estimate, due, asked]

    @hookimpl
    def schedule(self, view: View) -> Sequence[Decision]:
        now, domain, state = view.now, view.domain, self._state
        assert state is not None
        for job in view.queue:
            if job.id not in self._promises:
                self._late(job, state)
        waiting = self._in_turn(view.queue)
        if not self._dirty.isdisjoint(domain.pool_names):
            self._dirty.difference_update(domain.pool_names)
            self._earlier([job for _, _, job in waiting], now)
            waiting = self._in_turn(view.queue)
        first = _INF
        for start, _, job in waiting:
            if start > now + ROUNDING:
                first = min(first, start)
            elif self._begun(view, job) is None:
                self._again(job, now)
        if now < first < _INF and self._woken.get(domain.name) != first:
            self._woken[domain.name] = first
            state.wake_at(first, domain)
        return view.made

    @hookimpl
    def revise(self, decisions: list[Decision], state: State) -> list[Decision] | None:
        # What a job is told is there before it runs.
        revised: list[Decision] = [*self._labels(decisions, state)]
        for decision in decisions:
            revised.append(decision)
            if isinstance(decision, Start) and self._lengthens:
                promise, job = self._promises.get(decision.job_id), state.jobs.get(decision.job_id)
                if promise is not None and job is not None and promise.limit != job.request.walltime:
                    more = promise.limit - promise.execution
                    revised.append(
                        SetTimeLimit(decision.job_id, promise.limit, f"{more:.3f} s for its protection")
                    )
        return revised if len(revised) > len(decisions) else None

    def _labels(self, decisions: list[Decision], state: State) -> Iterable[Annotate]:
        for decision in decisions if self._tells else ():
            if isinstance(decision, Start) and decision.job_id in self._promises:
                label = label_text(self._promises[decision.job_id].options)
                notes = state.jobs[decision.job_id].attribute("notes")
                told = notes.get(NOTE, "") if isinstance(notes, Mapping) else ""
                if told != label and label:
                    yield Annotate(decision.job_id, NOTE, label, "its security levels")

    @hookimpl
    def veto(self, decision: Decision) -> str | None:
        if isinstance(decision, Start) and decision.job_id not in self._promises:
            return "neither a start nor security levels were promised to the job"
        return None

    @hookimpl
    def register_physics(self) -> Sareg:
        return self

    def rate(self, execution: Any, now: float) -> float:
        """Physics of the emulated cluster: protection makes a run longer by its seconds."""
        job_id = execution.job.id
        need, promise = self._needs.get(job_id), self._promises.get(job_id)
        work = execution.trace.runtime
        if need is None or promise is None or work <= 0:
            return 1.0
        return float(work / (work + need.cost(promise.steps)))

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"deadlines": DeadlinesModel()}

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"security": self._told}

    @hookimpl
    def explain(self, job: Job, question: str, view: View) -> str | None:
        """What a waiting job was promised."""
        if question != "waiting":
            return None
        promise = self._promises.get(job.id)
        if promise is None:
            return "nothing was promised to the job, and it is in the way of jobs with promises"
        levels = f" with {label_text(promise.options).replace(',', ', ')}" if promise.options else ""
        missed = ", too late for its deadline" if promise.late else ""
        return f"it was promised a start in {duration(max(0.0, promise.start - view.now))}{levels}{missed}"

    def _figures(self, job: Job) -> Figures:
        self._accounts[job.id] = job.account
        return self._by_account.setdefault(job.account, Figures())

    def _count(self, event: JobEnded, promise: Promise) -> None:
        figures = self._by_account.setdefault(self._accounts.pop(event.job_id, ""), Figures())
        # A program that fails by itself had all that was promised.
        if event.outcome not in ("completed", "failed") or event.time > promise.deadline + 1e-3:
            figures.missed += 1
            return
        figures.met += 1
        figures.levels += promise.level
        figures.value += promise.processors * promise.level
        figures.at_upper_ends += promise.at_upper_ends

    def _told(self, result: RunResult) -> dict[str, Any]:
        total = Figures()
        for figures in self._by_account.values():
            for name in total.__struct_fields__:
                setattr(total, name, getattr(total, name) + getattr(figures, name))
        return {
            **total.told(),
            "refused": len(self._refused),
            "accounts": {name: figures.told() for name, figures in sorted(self._by_account.items())},
        }


class NsEdf(Sareg):
    """Accept jobs that meet their deadlines at security levels that are drawn once and never raised."""

    def _acceptable(self, job_id: str, need: Need) -> Need:
        return need.only(drawn_steps(need, self._seed, job_id))


def _check_words(job: Job) -> None:
    """Raises :class:`UserError` for words in its comment that may have meant ours: it would not be
    protected."""
    for word in job.attribute(UNREAD, ()):
        raise UserError(
            f"job {job.id}: its comment: among the words for headway expected such as {DEADLINE}=, bytes=, "
            f"{'=, '.join(SERVICES)}=; found {word!r}"
        )


def drawn_steps(need: Need, seed: int, job_id: str) -> Steps:
    """Uniform over the options of each service; the same for the same seed and id."""
    source = random.Random(f"{seed}/{job_id}")
    one, two, three = (source.randrange(len(ladder)) for ladder in need.ladders)
    return one, two, three
