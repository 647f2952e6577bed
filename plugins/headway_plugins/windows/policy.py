"""Jobs of stages in a queue: for each window the set that earns most is chosen, and only its tasks start.

Y. Zhou, T. Kelly, J. Wiener, E. Anderson: An Extended Evaluation of Two-Phase Scheduling Methods for
Animation Rendering. JSSPP 2005.
A task is a job of the batch system, an element of an array for example; its attribute ``window`` says of
which job of stages it is a part: ``{"job": name, "stage": 1, 2, ...}``, if wanted with ``reward``,
``priority`` and ``length`` (seconds that it is expected to take). Jobs with the same name, user and pool are
one job of stages. Other jobs start where no task of the set waits.

Decisions on what the paper leaves open:

- A job outside the set is *barred*: in no queue, with the reason. On a batch system every waiting job is
  held by headway anyway, and simply stays so: nothing more is written there, and nothing can stay held by
  mistake.
- No task starts before all of the stage before have ended, whether or not the batch system knows that.
- Work and paths are what jobs are expected to run, of what is left of them.
- What runs when the window opens is there until it is expected to end.
- Chosen again, at most once in ``reselect``, when the queue is not what was chosen from any more: a task
  came, failed, went back to the queue. Jobs that have begun stay in the set as long as they can end in
  time, and their work comes first; a job of which a task failed can no longer be done, and goes.
- At the end of the window what runs may end, unless ``leftovers: kill``; what is left waits for the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from headway.decisions import Decision, Kill
from headway.errors import UserError
from headway.events import Event, JobChanged, JobEnded, JobRequeued, JobSubmitted, NodeUp, PoolChanged
from headway.hookspecs import hookimpl
from headway.plugins import Again, Traits
from headway.results import RunResult
from headway.state import Barrier, Job, State
from headway.view import View
from headway_plugins.windows.choosing import Choosing
from headway_plugins.windows.groups import WINDOW, Group, Key, read_mark
from headway_plugins.windows.policy_options import TwoPhaseOptions


class TwoPhase(Choosing):
    """Chooses the jobs of stages of a window, and dispatches their tasks."""

    Options = TwoPhaseOptions
    traits = Traits(
        observes=(JobSubmitted, JobChanged, JobEnded, JobRequeued, NodeUp, PoolChanged),
        ask_again=Again.DOMAIN,
        paper=(
            "Y. Zhou, T. Kelly, J. Wiener, E. Anderson: An Extended Evaluation of Two-Phase "
            "Scheduling Methods for Animation Rendering, JSSPP 2005"
        ),
    )

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._grouped = tuple(state.domains)
        if self.options.leftovers == "kill" and Kill not in capabilities:
            raise UserError("plugin 'two-phase': leftovers: kill: the cluster cannot end running jobs")

    @hookimpl
    def queue_key(self, job: Job, state: State) -> tuple[Any, ...]:
        self._described(job)
        return self._place(job)

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobSubmitted | JobChanged):
            job = state.jobs.get(event.job.id)
            if job is not None:
                self._described(job)
        elif isinstance(event, JobEnded):
            self._ended(event)
        elif isinstance(event, NodeUp | PoolChanged):
            self._vain.clear()
        elif isinstance(event, JobRequeued) and (known := self._tasks.get(event.job_id)) is not None:
            self._make_stale(known[0])

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        known = self._tasks.get(job.id)
        if known is None:
            return None
        group, stage = known
        why = self._hopeless(group)
        if why:
            return Barrier(why, (WINDOW, *group.key))
        night = self._nights.get(job.domain.name)
        if night is None:
            when = f"{self.options.opens} ({self.options.timezone})"
            return Barrier(f"it waits for its window, which opens at {when}", (WINDOW, job.domain.name))
        if group.key not in night.chosen:
            return Barrier(group.why or "no set was chosen since the job came", (WINDOW, job.domain.name))
        if stage != group.first():
            return Barrier(f"stage {group.first()} of job {group.name} has not ended", (WINDOW, *group.key))
        return None

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        if self._grouped != (grouped := tuple(state.domains)):
            # The pools that share nodes have changed.
            self._grouped = grouped
            for job in [state.jobs[name] for name in self._tasks if name in state.jobs]:
                self._described(job)
            self._nights = {name: night for name, night in self._nights.items() if name in state.domains}
        for domain in state.domains.values():
            yield from self._look(state, domain)
        moved, self._moved = self._moved, {}
        for key in moved:
            state.lifted((WINDOW, *key))
            moved_group = self._groups.get(key)
            if key[0] in state.domains and moved_group is not None and self._hopeless(moved_group):
                state.bar_queued(state.domains[key[0]])

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        night = self._nights.get(view.domain.name)
        if self.options.order == "RANDOM":
            tasks = [job for job in view.queue if job.id in self._tasks]
            for at in view.rng.permutation(len(tasks)).tolist():
                if not view.free:
                    return view.made
                view.start(tasks[at], "a task of the set")
        until = view.clock(night.window.closes) if night is not None else ""
        for job in view.fitting():
            mine = job.id in self._tasks
            view.start(job, f"in the set until {until}" if mine else "no task of a set waits")
        return view.made

    @hookimpl
    def predict_runtime(self, job: Job) -> float | None:
        said = job.attribute(WINDOW)
        length = said.get("length") if isinstance(said, dict) else None
        if isinstance(length, bool) or not isinstance(length, int | float) or not 0 < length < job.estimate:
            return None
        return float(length)

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "groups": [
                [*group.key, sorted(group.done), group.failed] for group in self._groups.values()
                if group.done or group.failed
            ],
            "tasks": sorted(self._tasks),
        }  # fmt: skip

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._before = set(saved["tasks"])
        for pool, user, name, done, failed in saved["groups"]:
            self._count += 1
            key = pool, user, name
            self._groups[key] = Group(key, self._count, done=set(done), failed=dict(failed))

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"two_phase": self._figures}

    def _figures(self, result: RunResult) -> dict[str, float]:
        """What was earned: rewards of jobs of stages that ended while a window was open, how many did and did
        not, and the processor-seconds of the jobs that did not."""
        ends: dict[Key, float] = {}
        work: dict[Key, float] = {}
        rewards: dict[Key, float | None] = {}
        for one in result.jobs:
            if (said := (one.job.attributes or {}).get(WINDOW)) is None:
                continue
            name, _, reward, _, _ = read_mark(said)
            key = one.job.pool, one.job.user, name
            ended = one.end_time if one.end_time is not None and one.state == "completed" else math.inf
            ends[key] = max(ends.get(key, -math.inf), ended)
            work[key] = work.get(key, 0.0) + one.runtime * one.job.request.processors
            rewards[key] = reward
        good = {
            key for key, end in ends.items()
            # What ends with the window is in time.
            if end < math.inf and self._windows.at(math.nextafter(end, -math.inf)).open_at(
                math.nextafter(end, -math.inf))
        }  # fmt: skip
        return {
            "reward": math.fsum(work[k] if rewards[k] is None else rewards[k] or 0.0 for k in good),
            "completed": float(len(good)),
            "not completed": float(len(ends) - len(good)),
            "wasted processor-seconds": math.fsum(work[key] for key in ends if key not in good),
        }
