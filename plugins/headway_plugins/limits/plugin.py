"""Limits: how much users, accounts, groups, QOS, pools and combinations of them may have at once.

After Slurm's page "Resource Limits" (slurm.schedmd.com/resource_limits.html: GrpJobs, GrpTRES,
GrpTRESRunMins, MaxJobs, MaxTRESPerUser, MaxTRESPerJob, MaxWall) and the Maui administrator's guide, chapter
"Throttling Policies" (MAXJOB, MAXPROC, MAXPS and others for each credential).

A job under a limit that is reached is in no queue: nothing is booked for it, and those behind it go on as if
it were not there. It is back in the very step in which room appears.

Decisions on what is left open:

- A job counts for what it asks for, from the decision to start it until it has ended, suspended or not; in
  the background, too. One that does not say how many nodes it wants counts for one until it has them, then
  for as many as it has.
- ``processor_minutes`` counts walltimes, not predictions; what has run past its own counts for nothing.
- A job that is too large for a limit by itself waits until it, or the configuration, is changed.
- All limits hold at once: that of a QOS does not replace that of an account.
- Nothing is kept for a job that waits for a limit. So several small jobs can use up what a large one of the
  same account waits for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import pydantic

from headway.events import Event, JobChanged
from headway.hookspecs import hookimpl
from headway.state import Barrier, Job, State
from headway_plugins.limits.rules import Amounts, Rule, dimensions_of
from headway_plugins.limits.use import MINUTES, Holder
from headway_plugins.priority.tree import ROOT, Entry, Tree
from headway_plugins.priority.tree_files import configured


class LimitsOptions(pydantic.BaseModel):
    """Options of the limits."""

    model_config = pydantic.ConfigDict(extra="forbid")

    of: dict[str, dict[str, Amounts]] = pydantic.Field(
        min_length=1,
        description="user, account, group, qos, pool, several (user+pool), or all -> name or * -> limits",
    )
    accounts: dict[Any, Any] | None = pydantic.Field(
        default=None, description="the tree of accounts, as fair-tree has it: an account counts all below it"
    )
    file: Path | None = pydantic.Field(
        default=None, description="a file with that tree: YAML, or what `sacctmgr dump CLUSTER` writes"
    )

    _entries: list[Entry] = pydantic.PrivateAttr(default_factory=list)
    _rules: list[Rule] = pydantic.PrivateAttr(default_factory=list)

    @pydantic.model_validator(mode="after")
    def _read(self, info: pydantic.ValidationInfo) -> LimitsOptions:
        for key, table in self.of.items():
            try:
                self._rules.append(Rule(dimensions_of(key), table))
            except ValueError as error:
                raise ValueError(f"of: {key}: {error}") from error
        self._entries = configured(self.accounts, self.file, info)
        return self

    def rules(self) -> list[Rule]:
        """The limits, kind by kind."""
        return self._rules

    def tree(self) -> Tree:
        """The accounts."""
        return Tree(self._entries)


class Limits:
    """Limits on what users, accounts, QOS and others have at once; who is over waits, and holds up nobody."""

    Options = LimitsOptions

    def __init__(self, options: LimitsOptions) -> None:
        self.options = options
        self._rules = options.rules()
        self._tree = options.tree()
        self._holders: dict[tuple[int, tuple[str, ...]], Holder] = {}
        #: What a job says of itself -> who is counted for it.
        self._of: dict[tuple[str, str, str, str, str], tuple[Holder, ...]] = {}
        #: Jobs that have processors -> what they count for whom.
        self._counted: dict[str, tuple[tuple[Holder, Mapping[str, float]], ...]] = {}
        #: Who may have room again, and who has none any more.
        self._room: dict[Holder, None] = {}
        self._full = False
        #: (when, who): room that comes as time passes.
        self._due: list[tuple[float, int, Holder]] = []
        self._known_due: set[tuple[float, Holder]] = set()
        self._told = 0

    @hookimpl
    def startup(self, state: State) -> None:
        state.watch(self)

    # ------------------------------------------------------------------ counting

    def took(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        holders = self._holders_of(job)
        if not holders:
            return
        counted = []
        for holder in holders:
            before = holder.full()
            counted.append((holder, holder.add(job)))
            self._full = self._full or (not before and holder.full())
        self._counted[job.id] = tuple(counted)

    def gave(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        for holder, added in self._counted.pop(job.id, ()):
            holder.take_off(job, added)
            self._room[holder] = None

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobChanged) and event.job.id in self._counted:
            job = state.jobs.get(event.job.id)
            if job is not None:
                self.gave(job)
                self.took(job)

    # ------------------------------------------------------------------ who may start

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        now = state.now
        for holder in self._holders_of(job):
            measure = holder.over(job, now)
            if (measure or holder.single) and (why := holder.too_large(job)):
                return Barrier(why)
            if measure:
                if measure == MINUTES:
                    self._look_at(holder, holder.room_at(job, now), job, state)
                # What is in use changes while it waits.
                return Barrier(partial(_why, holder, job, measure, state), holder.key)
        return None

    def _look_at(self, holder: Holder, when: float, job: Job, state: State) -> None:
        """There may be room at that moment, whatever else happens."""
        if (when, holder) not in self._known_due:
            self._known_due.add((when, holder))
            self._told += 1
            heappush(self._due, (when, self._told, holder))
            state.wake_at(when, job.pool)

    @hookimpl
    def react(self, state: State) -> None:
        while self._due and self._due[0][0] <= state.now:
            when, _, holder = heappop(self._due)
            self._known_due.discard((when, holder))
            self._room[holder] = None
        if self._room:
            room, self._room = self._room, {}
            for holder in room:
                # Whom minutes keep out is to say anew when there may be room for it.
                easy = MINUTES not in holder.limits
                state.lifted(holder.key, partial(holder.has_room, now=state.now) if easy else None)
        if self._full:
            # Whoever started: those who are in a queue and may not start any more leave it.
            self._full = False
            for pool in state.pools.values():
                state.bar_queued(pool)

    def _holders_of(self, job: Job) -> tuple[Holder, ...]:
        about = job.description
        key = (about.user, about.account, about.group, about.qos, job.pool.name)
        found = self._of.get(key)
        if found is None:
            found = self._of[key] = tuple(self._find(*key))
        return found

    def _find(self, user: str, account: str, group: str, qos: str, pool: str) -> list[Holder]:
        values = {
            "user": (user,), "group": (group,), "qos": (qos,), "pool": (pool,),
            "account": self._accounts(account, group, user),
        }  # fmt: skip
        found = []
        for number, rule in enumerate(self._rules):
            for names in rule.holders(values):
                amounts = rule.amounts(names)
                if amounts is None:
                    continue
                key = (number, names)
                holder = self._holders.get(key)
                if holder is None:
                    holder = self._holders[key] = Holder(key, rule.label(names), amounts)
                found.append(holder)
        return found

    def _accounts(self, account: str, group: str, user: str) -> tuple[str, ...]:
        """The job's account, the one above it, and so on; the root is not one of them."""
        node, _ = self._tree.node(account, group, user)
        name, found = self._tree.entries[node].account, []
        while name != ROOT:
            found.append(name)
            name = self._tree.entries[self._tree.accounts[name]].parent
        return tuple(found)


def _why(holder: Holder, job: Job, measure: str, state: State) -> str:
    return holder.why(job, measure, state.now)
