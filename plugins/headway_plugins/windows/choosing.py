"""Which jobs of stages each window takes on (:mod:`.policy`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.decisions import Decision, Kill
from headway.events import JobEnded
from headway.hookspecs import Plugin
from headway.state import Domain, Job, RunningEntry, State, Status
from headway_plugins.windows.clock import Window, Windows
from headway_plugins.windows.dispatch import ORDERS, dispatch
from headway_plugins.windows.groups import WINDOW, Group, Key, read_mark
from headway_plugins.windows.plan import Choice, Plan, choose, plan_of, why_out
from headway_plugins.windows.policy_options import TwoPhaseOptions
from headway_plugins.windows.staged import Staged, fitting


@dataclass
class _Night:
    """What was chosen in a pool."""

    window: Window
    #: When, absolute seconds.
    made: float
    chosen: set[Key]
    choice: Choice
    stale: bool = False
    #: The whole window, with nothing else in the pool, was of no use to any group.
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


class Choosing(Plugin):
    """Pools, their jobs of stages and the sets that are chosen."""

    options: TwoPhaseOptions

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
        #: Pools in which no window is of use to any group until something changes.
        self._vain: set[str] = set()
        #: The domains as they were last.
        self._grouped: tuple[str, ...] = ()
        #: Tasks that were known when the journal was written.
        self._before: set[str] = set()

    def _place(self, job: Job) -> tuple[Any, ...]:
        known = self._tasks.get(job.id)
        if known is None:
            return (1,)
        group, stage = known
        return 0, self._keys.get(group.key, 0.0), group.number, stage, job.description.array_index or 0

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
            # A task in the place of a failed task.
            for other in [one for one in group.failed if group.failed[one].startswith(f"stage {stage}:")][:1]:
                del group.failed[other]
        self._moved[key] = None
        self._make_stale(group)

    def _forget(self, job_id: str) -> Group:
        """A task leaves its group."""
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
        """As :meth:`choice`, among the groups that find room in their own pools: which of the groups are in
        the set, that choice, and why other groups find no room."""
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
        """Where pools share nodes: which of these groups find room in their own pools, if there are no other
        groups, and why the rest does not."""
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
        """The groups to take on, of groups that can end in time, for ``time`` seconds from ``now`` on, on so
        many processors, of which jobs have some.

        What other jobs have of the window is theirs until their expected ends, also where a job is given up.
        A group that has begun goes on first. ``jobs``: what is left of each group.
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
        """The pool's window that is open, else the next: which groups are in the set, and how it will go.

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
                at: group.why or "no set was chosen since the job came"
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
