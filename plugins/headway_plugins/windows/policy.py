"""Jobs of stages in a queue: for each window the set that earns most is chosen, and only its tasks start.

Y. Zhou, T. Kelly, J. Wiener, E. Anderson: An Extended Evaluation of Two-Phase Scheduling Methods for
Animation Rendering. JSSPP 2005.
A task is a job of the batch system, an element of an array for example; its attribute ``window`` says of
which job of stages it is a part: ``{"job": name, "stage": 1, 2, ...}``, if wanted with ``reward``,
``priority`` and ``length`` (seconds that it is expected to take). Jobs of one name and user in one pool are
one job of stages. Other jobs start where no task of the set waits.

Decisions on what the paper leaves open:

- Who is not in the set is *barred*: in no queue, with the reason. On a batch system every waiting job is
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
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pydantic

from headway.decisions import Decision, Kill
from headway.errors import UserError
from headway.events import Event, JobChanged, JobEnded, JobRequeued, JobSubmitted, NodeUp, PoolChanged
from headway.hookspecs import Plugin, hookimpl
from headway.inputs.durations import as_seconds
from headway.plugins import Again, Traits
from headway.results import RunResult
from headway.state import Barrier, Domain, Job, PoolState, RunningEntry, State, Status
from headway.view import View
from headway_plugins.windows.clock import DAYS, Day, Window, Windows, time_of_day
from headway_plugins.windows.dispatch import ORDERS, OrderName, dispatch
from headway_plugins.windows.plan import Choice, Plan, choose, plan_of, why_out
from headway_plugins.windows.staged import CAUTION, Staged, fitting

#: The attribute of a task.
WINDOW = "window"
#: Seconds: what a task is expected to take at least.
LEAST = 1e-3


class TwoPhaseOptions(pydantic.BaseModel):
    """Options of the policy for windows with a deadline."""

    model_config = pydantic.ConfigDict(extra="forbid")

    opens: str = pydantic.Field(default="20:00", description="time of the day at which the window opens")
    length: Annotated[float, pydantic.BeforeValidator(as_seconds)] = pydantic.Field(
        default=13 * 3600.0, ge=1, le=86400, description="from its opening to the deadline, at most a day"
    )
    days: list[Day] = pydantic.Field(default=list(DAYS), min_length=1, description="days on which it opens")
    timezone: str = pydantic.Field(default="UTC", description="time zone of `opens` and `days`")
    order: OrderName = pydantic.Field(
        default="LCPF",
        description="whose tasks go first: longest critical path, least work, any, or by priority; with "
        "PRIO nothing is selected",
    )
    fill: float | None = pydantic.Field(
        default=None, gt=0, le=1, description="r: how much of the window is filled; None: from `caution`"
    )
    caution: float = pydantic.Field(
        default=CAUTION, ge=0, le=1, description="how much is left free for the longest critical path"
    )
    reselect: Annotated[float, pydantic.BeforeValidator(as_seconds)] = pydantic.Field(
        default=900.0, ge=0, description="at most one new choice in so many seconds"
    )
    leftovers: Literal["keep", "kill"] = pydantic.Field(
        default="keep", description="what becomes of tasks that run when the window closes"
    )

    @pydantic.field_validator("opens", mode="before")
    @classmethod
    def _clock(cls, value: Any) -> Any:
        if isinstance(value, int):
            # YAML reads 17:30 as a number to the base of 60.
            clock = f"{value // 60:02d}:{value % 60:02d}" if 60 <= value < 1440 else "20:00"
            raise ValueError(f'a time of day in quotes, such as "{clock}", found the number {value}')
        time_of_day(str(value))
        return value

    @pydantic.field_validator("timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        try:
            Windows("00:00", 1, DAYS, value)
        except (KeyError, ValueError, OSError):
            raise ValueError(f"a time zone such as Europe/Berlin, found {value!r}") from None
        return value


#: Pool, user, name.
Key = tuple[str, str, str]


@dataclass
class Group:
    """A job of stages, as far as its tasks are known."""

    key: Key
    #: Order of arrival.
    number: int
    #: Of each stage the tasks that have not ended, by id.
    left: dict[int, dict[str, Job]] = field(default_factory=dict)
    #: Stages of which a task has completed.
    done: set[int] = field(default_factory=set)
    #: Task that did not complete -> what became of it.
    failed: dict[str, str] = field(default_factory=dict)
    reward: float | None = None
    priority: float = 0.0
    #: What is wrong with what its tasks say; "" if nothing.
    wrong: str = ""
    #: Why it is not in the set; "" if it is.
    why: str = ""

    @property
    def name(self) -> str:
        return self.key[2]

    @property
    def begun(self) -> bool:
        """Whether something of it ran already."""
        return bool(self.done) or any(
            job.entries is not None for tasks in self.left.values() for job in tasks.values()
        )

    @property
    def pool(self) -> PoolState:
        """The pool of its tasks, of which some are left."""
        return next(job.pool for tasks in self.left.values() for job in tasks.values())

    def first(self) -> int:
        """The stage that is open."""
        return min(self.left, default=0)

    def gap(self) -> int:
        """A stage that is missing between two others; 0: none is."""
        known = self.done | set(self.left)
        if not known:
            return 0
        return next((stage for stage in range(min(known), max(known)) if stage not in known), 0)

    def running(self) -> int:
        """How many processors tasks of its open stage have."""
        tasks = self.left.get(self.first(), {}).values()
        return sum(job.processors for job in tasks if job.entries is not None)

    def staged(self, now: float) -> Staged:
        """What is left of it, in seconds of one processor; tasks on several count as often."""
        stages = []
        for stage in sorted(self.left):
            # Those that run first.
            tasks = sorted(self.left[stage].values(), key=lambda job: job.entries is None)
            stages.append(tuple(max(_left(job, now), LEAST) for job in tasks for _ in range(job.processors)))
        return Staged(self.name, tuple(stages), self.reward, self.priority)


def _left(job: Job, now: float) -> float:
    return job.expected_end - now if job.entries is not None else job.expected_runtime


@dataclass
class _Night:
    """What was chosen in a pool."""

    window: Window
    #: When, absolute seconds.
    made: float
    chosen: set[Key]
    choice: Choice
    stale: bool = False
    #: The whole window, with nothing else in the pool, was of no use to anybody.
    vain: bool = False


@dataclass(frozen=True)
class Tonight:
    """A window of a pool, for a person."""

    window: Window
    #: From now on, or from when it opens.
    plan: Plan
    #: Whose the plan's jobs are; and why some are left out, where the plan's own reason is not it.
    users: tuple[str, ...]
    reasons: dict[int, str]
    #: Jobs that cannot be done, whatever the window -> why.
    given_up: dict[str, str]


class TwoPhase(Plugin):
    """Chooses the jobs of stages of a window, and dispatches their tasks."""

    Options = TwoPhaseOptions
    traits = Traits(
        ask_again=Again.DOMAIN,
        paper=(
            "Y. Zhou, T. Kelly, J. Wiener, E. Anderson: An Extended Evaluation of Two-Phase "
            "Scheduling Methods for Animation Rendering, JSSPP 2005"
        ),
    )

    def __init__(self, options: TwoPhaseOptions | None = None) -> None:
        super().__init__(options or TwoPhaseOptions())
        own = self.options
        self._windows = Windows(own.opens, own.length, own.days, own.timezone)
        self._groups: dict[Key, Group] = {}
        #: Task -> its group and stage.
        self._tasks: dict[str, tuple[Group, int]] = {}
        self._nights: dict[str, _Night] = {}
        #: Groups of which a stage has ended, or that can be done no longer: their tasks are asked about.
        self._moved: dict[Key, None] = {}
        self._keys: dict[Key, float] = {}
        self._count = 0
        #: Of each pool: how many groups have tasks there, its window, and when it is looked at.
        self._of_pool: dict[str, int] = {}
        self._next: dict[str, Window] = {}
        self._woken: dict[str, set[float]] = {}
        #: Pools in which no window is of use to anybody until something changes.
        self._vain: set[str] = set()
        #: The domains as they were last.
        self._grouped: tuple[str, ...] = ()
        #: Tasks that were known when the journal was written.
        self._before: set[str] = set()

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._grouped = tuple(state.domains)
        if self.options.leftovers == "kill" and Kill not in capabilities:
            raise UserError("plugin 'two-phase': leftovers: kill: the cluster cannot end running jobs")

    # ------------------------------------------------------------------ tasks come and go

    @hookimpl
    def queue_key(self, job: Job, state: State) -> tuple[Any, ...]:
        self._described(job)
        return self._place(job)

    def _place(self, job: Job) -> tuple[Any, ...]:
        known = self._tasks.get(job.id)
        if known is None:
            return (1,)
        group, stage = known
        return 0, self._keys.get(group.key, 0.0), group.number, stage, job.description.array_index or 0

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

    def _described(self, job: Job) -> None:
        """A task is new, or described anew."""
        said, known = job.attribute(WINDOW), self._tasks.get(job.id)
        if said is None:
            if known is not None:
                self._forget(job.id)
            return
        name, stage, reward, priority, wrong = read_mark(said)
        key = job.domain.name, job.user, name
        if known is not None and (known[0].key, known[1]) == (key, stage):
            if wrong or (known[0].reward, known[0].priority) == (reward, priority):
                return
        elif known is not None:
            self._forget(job.id)
        group = self._groups.get(key)
        if group is None:
            self._count += 1
            group = self._groups[key] = Group(key, self._count)
        if not group.left:
            self._of_pool[key[0]] = self._of_pool.get(key[0], 0) + 1
        group.left.setdefault(stage, {})[job.id] = job
        group.reward, group.priority = reward, priority
        group.wrong = wrong
        self._tasks[job.id] = group, stage
        if known is None and job.id not in self._before:
            # A task in the place of one that failed.
            for other in [one for one in group.failed if group.failed[one].startswith(f"stage {stage}:")][:1]:
                del group.failed[other]
        self._moved[key] = None
        self._make_stale(group)

    def _forget(self, job_id: str) -> Group:
        """A task is no longer one of its group's."""
        group, stage = self._tasks.pop(job_id)
        tasks = group.left[stage]
        del tasks[job_id]
        if not tasks:
            del group.left[stage]
        if not group.left:
            del self._groups[group.key]
            self._keys.pop(group.key, None)
            self._of_pool[group.key[0]] -= 1
        self._moved[group.key] = None
        return group

    def _ended(self, event: JobEnded) -> None:
        known = self._tasks.get(event.job_id)
        if known is None:
            return
        _, stage = known
        group = self._forget(event.job_id)
        if event.outcome == "completed":
            group.done.add(stage)
            return
        group.failed[event.job_id] = f"stage {stage}: job {event.job_id} {event.outcome}"
        self._make_stale(group)

    def _make_stale(self, group: Group) -> None:
        self._vain.discard(group.key[0])
        if (night := self._nights.get(group.key[0])) is not None:
            night.stale = True

    # ------------------------------------------------------------------ who may start

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
            return Barrier(group.why or "nothing was chosen since it came", (WINDOW, job.domain.name))
        if stage != group.first():
            return Barrier(f"stage {group.first()} of job {group.name} has not ended", (WINDOW, *group.key))
        return None

    @staticmethod
    def _hopeless(group: Group) -> str:
        """Why a job of stages cannot be done, whatever the window; "" if it can."""
        if group.wrong:
            return group.wrong
        if group.failed:
            return f"job {group.name} can no longer be done ({next(iter(group.failed.values()))})"
        if missing := group.gap():
            return f"job {group.name} has no stage {missing}"
        return ""

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        if self._grouped != (grouped := tuple(state.domains)):
            # Other pools share nodes than before.
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

    def _look(self, state: State, domain: Domain) -> Iterator[Decision]:
        """Open the window, close it, or choose again."""
        now, name = state.now, domain.name
        night = self._nights.get(name)
        if night is not None and not night.window.open_at(now):
            yield from self._close(state, domain)
            night = None
        if not self._of_pool.get(name) or (night is not None and not night.stale):
            return
        window = self._next.get(name)
        if window is None or now >= window.opens:
            window = self._next[name] = self._windows.at(now)
        if not window.open_at(now):
            if name not in self._vain:
                self._wake(state, domain, window.opens)
            return
        self._wake(state, domain, window.closes)
        if night is not None and now < night.made + self.options.reselect:
            self._wake(state, domain, night.made + self.options.reselect)
            return
        self._choose(state, domain, window)

    def _groups_of(self, domain: Domain) -> list[Group]:
        return [group for group in self._groups.values() if group.key[0] == domain.name and group.left]

    def _wake(self, state: State, domain: Domain, when: float) -> None:
        known = self._woken.setdefault(domain.name, set())
        if when not in known:
            self._woken[domain.name] = {one for one in known if one > state.now} | {when}
            state.wake_at(when, domain)

    def _close(self, state: State, domain: Domain) -> Iterator[Decision]:
        if self._nights.pop(domain.name).vain:
            self._vain.add(domain.name)
        state.lifted((WINDOW, domain.name))
        state.bar_queued(domain)
        if self.options.leftovers == "kill":
            for group in self._groups_of(domain):
                for tasks in group.left.values():
                    for job in tasks.values():
                        if job.status in (Status.RUNNING, Status.SUSPENDED):
                            yield Kill(job.id, "its window is over")

    def _choose(self, state: State, domain: Domain, window: Window) -> None:
        """The set from now on."""
        now, mine = state.now, self._groups_of(domain)
        time = window.closes - now
        staged: dict[Key, Staged] = {}
        for group in mine:
            group.why = self._hopeless(group)
            if not group.why:
                staged[group.key] = group.staged(now)
        able = [group for group in mine if group.key in staged and staged[group.key].path <= time]
        taken, choice, out = self._taken_on(
            state, domain, able, [staged[group.key] for group in able], now, time
        )
        chosen = {able[at].key for at in taken}
        for group in mine:
            if group.key in chosen:
                group.why = ""
            elif not group.why:
                group.why = out.get(group.key) or why_out(
                    staged[group.key], time, choice.work, choice.capacity
                )
        vain = not chosen and not domain.running and now <= window.opens + 1.0
        self._nights[domain.name] = _Night(window, now, chosen, choice, vain=vain)
        self._keys = {key: kept for key, kept in self._keys.items() if key in self._groups}
        self._keys |= {
            key: self._key(one)
            for key, one in staged.items()
            if key not in self._keys or not self._groups[key].begun
        }
        state.rekey([job for group in mine for tasks in group.left.values() for job in tasks.values()
                     if job.entries is None])  # fmt: skip
        state.lifted((WINDOW, domain.name))
        state.bar_queued(domain)
        domain.touch()

    def _taken_on(
        self,
        state: State,
        domain: Domain,
        groups: Sequence[Group],
        jobs: Sequence[Staged],
        now: float,
        time: float,
    ) -> tuple[list[int], Choice, dict[Key, str]]:
        """As :meth:`choice`, among those of these groups that find room in their own pools: which of the
        groups are in the set, that choice, and why others find no room."""
        held, out = self._held_by_pools(state, domain, groups, jobs, now, time)
        able, theirs = [groups[at] for at in held], [jobs[at] for at in held]
        choice = self.choice(domain.total, domain.running, able, theirs, now, time)
        return [held[at] for at in choice.chosen], choice, out

    def _held_by_pools(
        self,
        state: State,
        domain: Domain,
        groups: Sequence[Group],
        jobs: Sequence[Staged],
        now: float,
        time: float,
    ) -> tuple[list[int], dict[Key, str]]:
        """Where pools share nodes: which of these groups find room in their own pools, if there are no
        others, and why the rest does not."""
        if len(domain.pools) == 1:
            return list(range(len(groups))), {}
        held: list[int] = []
        out: dict[Key, str] = {}
        for pool in domain.pools:
            mine = [at for at, group in enumerate(groups) if group.pool is pool]
            running = state.entries_in(pool)
            own, theirs = [groups[at] for at in mine], [jobs[at] for at in mine]
            choice = self.choice(pool.total, running, own, theirs, now, time)
            held += [mine[at] for at in choice.chosen]
            out |= {
                own[at].key: f"pool {pool.name!r}: {why_out(theirs[at], time, choice.work, choice.capacity)}"
                for at in range(len(mine)) if at not in choice.chosen
            }  # fmt: skip
        return sorted(held), out

    def choice(
        self,
        processors: int,
        running: Iterable[RunningEntry],
        groups: Sequence[Group],
        jobs: Sequence[Staged],
        now: float,
        time: float,
    ) -> Choice:
        """Whom to take on of these groups, which can end in time, for ``time`` seconds from ``now`` on, on so
        many processors, of which jobs have some.

        What others have of the window, jobs that are given up among them, is theirs until it is expected to
        end; what has begun goes on first. ``jobs``: what is left of each group.
        """
        own, goes_on = self.options, {group.key for group in groups}
        others = math.fsum(size * min(left, time) for left, size in self._others(running, goes_on, now))
        begun = [at for at, group in enumerate(groups) if group.begun]
        return choose(
            jobs, begun, max(processors, 1), time, others,
            order=own.order, share=own.fill, caution=own.caution,
        )  # fmt: skip

    def _others(
        self, running: Iterable[RunningEntry], mine: Set[Key], begin: float
    ) -> Iterator[tuple[float, int]]:
        """For each running job that is no task of a group of ``mine``: how long it is expected to run from
        ``begin`` on, seconds, and its processors."""
        for end, _, size, job in running:
            known = self._tasks.get(job.id)
            if known is None or known[0].key not in mine:
                yield max(end - begin, 0.0), size

    def tonight(self, state: State, domain: Domain) -> Tonight:
        """The pool's window that is open, else the next one: who is in the set, and how it will go.

        An open window's set is what was chosen last; before it opens, what would be chosen if nothing
        changed until then. For a person; changes nothing.
        """
        window = self._windows.at(state.now)
        begin = max(state.now, window.opens)
        time = window.closes - begin
        groups = sorted(self._groups_of(domain), key=lambda group: group.number)
        mine = [group for group in groups if not self._hopeless(group)]
        staged = [group.staged(begin) for group in mine]
        able = fitting(staged, time)
        taken_on, choice, out = self._taken_on(
            state, domain, [mine[at] for at in able], [staged[at] for at in able], begin, time
        )
        chosen = [able[at] for at in taken_on]
        reasons = {at: out[group.key] for at, group in enumerate(mine) if group.key in out}
        night = self._nights.get(domain.name)
        if night is not None and night.window.open_at(state.now):
            choice = night.choice
            chosen = [at for at, group in enumerate(mine) if group.key in night.chosen]
            reasons = {
                at: group.why or "nothing was chosen since it came"
                for at, group in enumerate(mine) if group.key not in night.chosen
            }  # fmt: skip
        taken = {mine[at].key for at in chosen}
        others = [
            left for left, size in self._others(domain.running, taken, begin) if left > 0 for _ in range(size)
        ]
        forecast = dispatch(
            [staged[at] for at in chosen], max(domain.total, 1), time, ORDERS[self.options.order],
            rng=np.random.default_rng(0), started=[mine[at].running() for at in chosen], free_at=others,
        )  # fmt: skip
        plan = plan_of(staged, max(domain.total, 1), time, choice, chosen, forecast)
        given_up = {
            f"{group.name} of {group.key[1]}": why for group in groups if (why := self._hopeless(group))
        }
        return Tonight(window, plan, tuple(group.key[1] for group in mine), reasons, given_up)

    def _key(self, job: Staged) -> float:
        order = self.options.order
        if order == "LCPF":
            return -job.path
        return job.work if order == "STCPU" else job.priority if order == "PRIO" else 0.0

    # ------------------------------------------------------------------ dispatching

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

    # ------------------------------------------------------------------ what is kept, what is measured

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
        not, and the processor-seconds of those that did not."""
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


def read_mark(said: Any) -> tuple[str, int, float | None, float, str]:
    """What a task says: job, stage, reward, priority; and what is wrong with it, "" if nothing."""
    if not isinstance(said, dict):
        return "", 1, None, 0.0, f"expected a job and a stage in its attribute {WINDOW}, found {said!r}"
    name, stage = said.get("job"), said.get("stage")
    if not isinstance(name, str) or not name:
        return "", 1, None, 0.0, f"expected the name of a job of stages, found {name!r}"
    if not isinstance(stage, int) or isinstance(stage, bool) or stage < 1:
        return name, 1, None, 0.0, f"job {name}: expected a stage from 1 on, found {stage!r}"
    reward, priority = said.get("reward"), said.get("priority", 0.0)
    for what, value in (("reward", reward), ("priority", priority), ("length", said.get("length"))):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            return name, stage, None, 0.0, f"job {name}: expected a number as its {what}, found {value!r}"
    if reward is not None and not 0 < reward < math.inf:
        return name, stage, None, 0.0, f"job {name}: expected a reward above 0, found {reward:g}"
    return name, stage, reward, float(priority or 0.0), ""
