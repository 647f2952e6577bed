"""Limits: how much users, accounts, groups, QOS, pools and combinations of them may have at once.

After Slurm's page "Resource Limits" (slurm.schedmd.com/resource_limits.html: GrpJobs, GrpTRES,
GrpTRESRunMins, MaxJobs, MaxTRESPerUser, MaxTRESPerJob, MaxWall) and the Maui administrator's guide, chapter
"Throttling Policies" (MAXJOB, MAXPROC, MAXPS and others for each credential).

A job under a limit that is reached is in no queue: nothing is booked for it, and the jobs behind it go on as
if it were not there. It is back in the very step in which room appears.

Decisions on what is left open:

- A job counts for what it asks for, from the decision to start it until it has ended, suspended or not; in
  the background, too. A job that does not say how many nodes it wants counts for a single node until it has
  its nodes, then for as many as it has.
- ``processor_minutes`` counts walltimes, not predictions; what has run past its own counts for nothing.
- A job that is too large for a limit by itself waits until it, or the configuration, is changed.
- All limits hold at once: that of a QOS does not replace that of an account. Slurm's (``of: from-slurm``) do
  as in Slurm: what a job's QOS limits for all together, its accounts do not; what it limits for each user,
  the association does not; what it limits for a single job, only the QOS limits.
- Slurm's minutes count as often as the QOS of a job says (UsageFactor); the minutes that a job asks for do
  where its QOS has the flag UsageFactorSafe.
- A ``budget`` is what was used, decaying with ``half_life``, and what running jobs may still use: a job
  starts only if it can run to its limit within it. ``wall_minutes`` (GrpWall) is the same of time alone. Both
  begin with what the batch system says was used, where limits are its own. Over a restart both are in the
  checkpoint, with the jobs that run.
- Nothing is kept for a job that waits for a limit. So several small jobs can use up what a large one of the
  same account waits for.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from typing import Annotated, Any

import pydantic

from headway.errors import UserError
from headway.events import Event, JobChanged, SitePolicyChanged
from headway.hookspecs import hookimpl
from headway.model import JobDescription, SitePolicy
from headway.model.questions import Question
from headway.plugins import Traits
from headway.state import Barrier, Job, PoolState, State
from headway_plugins.accounts.associations import entry_of, same_shares
from headway_plugins.accounts.options import OrFromSlurm, Seconds, is_from_slurm, required
from headway_plugins.accounts.tree import ROOT, Entry, Tree
from headway_plugins.accounts.tree_files import configured
from headway_plugins.limits.reports import LIMITS, limit_page
from headway_plugins.limits.rules import Amounts, Rule, dimensions_of
from headway_plugins.limits.use import BUDGET, TIMED, UNRULED, UNSCALED, Added, Factors, Holder, Ruled

#: The key of barriers for jobs that are too large for a limit by themselves, where limits may change.
_TOO_LARGE = "limits: too large"
#: No holder has limits that the QOS sets.
_NOBODY: Mapping[Holder, Ruled] = {}
#: The holders that count a job, and what it counts for each; of jobs of a kind its processors, for all.
_Counted = tuple[Sequence[Holder], int | Sequence[Added]]
_NOTHING: _Counted = (), ()
#: With so many known jobs without a kind, the plugin first looks for jobs that have left.
_MANY = 10_000


class LimitsOptions(pydantic.BaseModel):
    """Options of the limits."""

    model_config = pydantic.ConfigDict(extra="forbid")

    of: Annotated[dict[str, dict[str, Amounts]], pydantic.Field(min_length=1), OrFromSlurm] = pydantic.Field(
        description="the limits: user, account, own_account, association, group, qos, pool, a combination "
        "(user+pool) or all -> name or * -> amounts; from-slurm: the running Slurm's limits of "
        "associations and QOS, with its accounts",
    )
    accounts: dict[Any, Any] | None = pydantic.Field(
        default=None,
        description="the tree of accounts, as for fair-tree: the jobs of an account include "
        "the jobs of all accounts below it",
    )
    half_life: Seconds | None = pydantic.Field(
        default=None, description="half-life of budget use, in seconds; null: no decay"
    )
    file: Path | None = pydantic.Field(
        default=None, description="a file with that tree: YAML, or what `sacctmgr dump CLUSTER` writes"
    )

    _entries: list[Entry] = pydantic.PrivateAttr(default_factory=list)
    _rules: list[Rule] = pydantic.PrivateAttr(default_factory=list)

    @pydantic.model_validator(mode="after")
    def _read(self, info: pydantic.ValidationInfo) -> LimitsOptions:
        if not is_from_slurm(self.of):
            self._rules = rules_of(self.of)
        elif self.accounts is not None or self.file is not None:
            raise ValueError("no accounts and no file beside of: from-slurm, found accounts or file")
        self._entries = configured(self.accounts, self.file, info)
        return self

    def rules(self) -> list[Rule]:
        """The limits, kind by kind."""
        return self._rules

    def tree(self) -> Tree:
        """The accounts."""
        return Tree(self._entries)


def rules_of(of: Mapping[str, Mapping[str, Amounts]]) -> list[Rule]:
    """The limits, kind by kind; ValueError names the wrong limit."""
    found = []
    for key, table in of.items():
        try:
            found.append(Rule(dimensions_of(key), table))
        except ValueError as error:
            raise ValueError(f"of: {key}: {error}") from error
    return found


class _Kind:
    """What jobs say of themselves of which all limits follow, where only jobs and processors are limited."""

    __slots__ = ("holders",)

    def __init__(self, holders: tuple[Holder, ...]) -> None:
        #: The holders that count them.
        self.holders = holders


class Limits:
    """Limits on what users, accounts, QOS and others have at once; a job over a limit waits and delays no
    other job."""

    Options = LimitsOptions

    def __init__(self, options: LimitsOptions) -> None:
        self.options = options
        self._rules = options.rules()
        self._tree = options.tree()
        self._holders: dict[tuple[int, tuple[str, ...]], Holder] = {}
        #: What a job says of itself -> the holders that count it, and its kind.
        self._of: dict[tuple[str, str, str, str, str], tuple[tuple[Holder, ...], _Kind | None]] = {}
        #: A job without a kind -> what it says of itself, and the holders that count it.
        self._whose: dict[str, tuple[JobDescription, PoolState, tuple[Holder, ...]]] = {}
        #: When so many are there, it is looked which of them there still are.
        self._many = _MANY
        #: Jobs that have processors -> the holders that count them, and as what.
        self._counted: dict[str, _Counted] = {}
        #: The holders that may have room again; whether a holder has no room any more.
        self._room: dict[Holder, None] = {}
        self._full = False
        #: (when, a serial number, holder): room that comes as time passes.
        self._due: list[tuple[float, int, Holder]] = []
        self._known_due: set[tuple[float, Holder]] = set()
        self._told = 0
        #: Whether limits are the running batch system's; what it said last, and what is not taken up yet.
        self._from_slurm = is_from_slurm(options.of)
        self.traits = Traits(
            requires=required(options.of),
            observes=(JobChanged, SitePolicyChanged) if self._from_slurm else (JobChanged,),
            same_answer=self._kind,
        )
        self._policy: SitePolicy | None = None
        self._new_policy: SitePolicy | None = None
        self._half_life = options.half_life
        #: What a minute of a job counts for, where limits are the batch system's.
        self._factors = UNSCALED
        #: What a job says of itself -> the holders some of whose limits its QOS sets.
        self._ruled: dict[tuple[str, str, str, str, str], dict[Holder, Ruled]] = {}
        #: What earlier runs spent of budgets, until it is taken up.
        self._saved: dict[str, Any] | None = None
        self._state: State | None = None

    @hookimpl
    def startup(self, state: State) -> None:
        self._state = state
        state.watch(self)

    # ------------------------------------------------------------------ counting

    def took(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        self._count(job, job.start_time)

    def _count(self, job: Job, since: float | None) -> None:
        """The job counts; of what is used up since then (None: from now on)."""
        kind = job.bar_kind
        if type(kind) is _Kind:
            holders, processors = kind.holders, job.processors
            for holder in holders:
                before = holder.room
                holder.more(1, processors)
                if holder.room < 1.0 <= before:
                    self._full = True
            # A job without a limit may have one from the next look at the batch system on.
            if holders or self._from_slurm:
                self._counted[job.id] = holders, processors
            return
        holders = self._holders_of(job)
        if not holders and not self._from_slurm:
            return
        counted: list[Added] = []
        for holder in holders:
            full = holder.full()
            counted.append(holder.add(job, self._now() if since is None else since))
            self._full = self._full or (not full and holder.full())
        self._counted[job.id] = holders, counted

    def gave(self, job: Job) -> None:
        """See :class:`headway.state.Watcher`."""
        if self._whose:
            self._whose.pop(job.id, None)
        holders, counted = self._counted.pop(job.id, _NOTHING)
        if isinstance(counted, int):
            for holder in holders:
                holder.more(-1, -counted)
                self._room[holder] = None
            return
        for holder, added in zip(holders, counted, strict=True):
            holder.take_off(job, added, self._now())
            self._room[holder] = None

    def _now(self) -> float:
        return self._state.now if self._state is not None else 0.0

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, SitePolicyChanged):
            if self._from_slurm:
                self._new_policy = event.policy
        elif isinstance(event, JobChanged) and event.job.id in self._counted:
            job = state.jobs.get(event.job.id)
            if job is not None:
                self.gave(job)
                # What it has used until now is used.
                self._count(job, None)

    # ------------------------------------------------------------------ which jobs may start

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        kind = job.bar_kind
        holders = kind.holders if type(kind) is _Kind else self._holders_of(job)
        processors = job.processors
        for holder in holders:
            if processors <= holder.room:
                continue
            now = state.now
            ruled = self._ruled.get(_about(job), _NOBODY) if self._ruled else _NOBODY
            if processors <= holder.largest and not ruled:
                # Most of the jobs that are asked about again and again.
                return holder.reached(processors)
            others = ruled.get(holder, UNRULED)
            measure = holder.over(job, now, others)
            if (measure or holder.single) and (why := holder.too_large(job, others)):
                # Other limits help as well.
                return Barrier(why, _TOO_LARGE if self._from_slurm else None)
            if measure:
                if measure in TIMED:
                    self._look_at(holder, holder.room_at(job, measure, now), job, state)
                # What is in use changes while it waits.
                return Barrier(partial(_why, holder, job, measure, state), holder.key)
        return None

    @hookimpl
    def bar_jobs(self, jobs: Sequence[Job], state: State) -> list[Barrier | None]:
        """As :meth:`bar_job`, of each of several."""
        return [self.bar_job(job, state) for job in jobs]

    def _kind(self, job: Job) -> Hashable:
        """Where only jobs and processors are limited, all follows from whose the job is."""
        return self._looked_up(job)[1]

    def _look_at(self, holder: Holder, when: float, job: Job, state: State) -> None:
        """There may be room at that moment, whatever else happens."""
        if math.isfinite(when) and (when, holder) not in self._known_due:
            self._known_due.add((when, holder))
            self._told += 1
            heappush(self._due, (when, self._told, holder))
            state.wake_at(when, job.pool)

    @hookimpl
    def react(self, state: State) -> None:
        if self._new_policy is not None:
            policy, self._new_policy = self._new_policy, None
            self._follow(policy, state)
        if self._saved is not None and (not self._from_slurm or self._policy is not None):
            self._take_up(state)
        while self._due and self._due[0][0] <= state.now:
            when, _, holder = heappop(self._due)
            self._known_due.discard((when, holder))
            self._room[holder] = None
        if self._room:
            room, self._room = self._room, {}
            barred = state.barred
            for holder in room:
                if holder.key not in barred:
                    continue
                if holder.plain:
                    if holder.room >= 0.0:
                        state.lifted(holder.key, most=holder.room)
                else:
                    # A job that minutes keep out must say again when there may be room for it.
                    easy = not TIMED.intersection(holder.limits)
                    state.lifted(holder.key, holder.has_room(state.now) if easy else None)
        if self._full:
            # Whichever jobs started: a queued job that may not start any more leaves its queue.
            self._full = False
            for pool in state.pools.values():
                state.bar_queued(pool)

    def _holders_of(self, job: Job) -> tuple[Holder, ...]:
        """The holders that count a job without a kind."""
        known = self._whose.get(job.id)
        if known is not None and known[0] is job.description and known[1] is job.pool:
            return known[2]
        holders = self._looked_up(job)[0]
        whose = self._whose
        whose[job.id] = job.description, job.pool, holders
        if len(whose) > self._many and self._state is not None:
            # Some may have left without ever having had processors.
            jobs = self._state.jobs
            self._whose = {name: known for name, known in whose.items() if name in jobs}
            self._many = max(2 * len(self._whose), _MANY)
        return holders

    def _looked_up(self, job: Job) -> tuple[tuple[Holder, ...], _Kind | None]:
        """The holders that count the job, and its kind."""
        key = _about(job)
        found = self._of.get(key)
        if found is None:
            holders = tuple(self._find(*key))
            found = holders, _Kind(holders) if all(holder.plain for holder in holders) else None
            self._of[key] = found
            if self._from_slurm and (ruled := self._ruled_by_qos(holders)):
                self._ruled[key] = ruled
        return found

    def _find(self, user: str, account: str, group: str, qos: str, pool: str) -> list[Holder]:
        node, _ = self._tree.node(account, group, user)
        own = self._tree.entries[node].account
        values = {
            "user": (user,), "group": (group,), "qos": (qos,), "pool": (pool,), "own_account": (own,),
            "association": (f"{own}:{user}",), "account": self._accounts(own),
        }  # fmt: skip
        found = []
        for number, rule in enumerate(self._rules):
            for names in rule.holders(values):
                holder = self._holder(number, names)
                if holder is not None:
                    found.append(holder)
        return found

    def _holder(self, number: int, names: tuple[str, ...]) -> Holder | None:
        """The holder of these names by a rule; None if the rule says nothing of them."""
        key = (number, names)
        holder = self._holders.get(key)
        if holder is None and (amounts := self._rules[number].amounts(names)) is not None:
            label = self._rules[number].label(names)
            holder = self._holders[key] = Holder(key, label, amounts, self._half_life, self._factors)
        return holder

    def _ruled_by_qos(self, holders: Sequence[Holder]) -> dict[Holder, Ruled]:
        """What Slurm does not ask accounts and users about, since the job's QOS says it."""
        together: frozenset[str] = frozenset()
        each: frozenset[str] = frozenset()
        single: frozenset[str] = frozenset()
        of = {holder: self._rules[holder.key[0]].dimensions for holder in holders}
        for holder, dimensions in of.items():
            if dimensions == ("qos",):
                together |= frozenset(holder.limits)
                single |= frozenset(holder.single)
            elif "qos" in dimensions:
                each |= frozenset(holder.limits)
        found = {}
        for holder, dimensions in of.items():
            if "qos" not in dimensions:
                said = Ruled(together | each if dimensions == ("association",) else together, single)
                if said != UNRULED:
                    found[holder] = said
        return found

    # ------------------------------------------------------------------ what users ask

    def holders(self, user: str | None = None) -> list[Holder]:
        """The holders of limits that jobs came under, or jobs of this user did."""
        if user is None:
            return list(self._holders.values())
        mine = (found for (whose, *_), (found, _) in self._of.items() if whose == user)
        return list(dict.fromkeys(holder for found in mine for holder in found))

    @hookimpl
    def inform(self, question: Question, state: State) -> Any:
        if question.name != LIMITS:
            return None
        return limit_page(self.holders(None if question.sees_all else question.user), state.now, question)

    # ------------------------------------------------------------------ as the batch system has it

    def _follow(self, policy: SitePolicy, state: State) -> None:
        """The limits and accounts are these from now on, and what runs is counted anew under them."""
        before, self._policy = self._policy, policy
        same = before is not None and before.limits == policy.limits and before.qos_safe == policy.qos_safe
        if before is not None and same and same_shares(before, policy):
            return
        try:
            of = {
                kind: {name: Amounts.model_validate(amounts) for name, amounts in table.items()}
                for kind, table in policy.limits.items()
            }
            rules, tree = rules_of(of), Tree(map(entry_of, policy.associations))
        except (ValueError, UserError) as error:
            state.anomalies.append(
                f"the batch system's limits cannot be used, they stay as they were: {error}"
            )
            return
        if before is not None and self._saved is None:
            self._saved = self.checkpoint()
        if policy.half_life is not None and "half_life" not in self.options.model_fields_set:
            self._half_life = policy.half_life or None
        self._factors = Factors(policy.qos_billing, policy.qos_safe)
        gone = list(self._holders.values())
        running = [job for name in self._counted if (job := state.jobs.get(name)) is not None]
        self._rules, self._tree = rules, tree
        for table in (
            self._holders,
            self._of,
            self._whose,
            self._ruled,
            self._counted,
            self._room,
            self._known_due,
        ):
            table.clear()
        self._due.clear()
        state.outdate_kinds()
        for job in running:
            self.took(job)
        if before is None and self._saved is None:
            self._seed(policy, state)
        for holder in gone:
            state.lifted(holder.key)
        state.lifted(_TOO_LARGE)
        self._full = True

    def _seed(self, policy: SitePolicy, state: State) -> None:
        """At the first start each holder has spent what the batch system says, running jobs included."""
        used: dict[tuple[str, ...], dict[str, dict[str, float]]] = {("account",): {}, ("association",): {}}
        for one in policy.associations:
            name, kind = (
                (f"{one.account}:{one.user}", "association") if one.user else (one.account, "account")
            )
            used[kind,][name] = {BUDGET: one.processor_minutes}
        for kind, table in policy.used.items():
            about = used.setdefault(dimensions_of(kind), {})
            for name, minutes in table.items():
                about[name] = about.get(name, {}) | minutes
        for number, rule in enumerate(self._rules):
            for name, minutes in used.get(rule.dimensions, {}).items():
                holder = self._holder(number, (name,) if rule.dimensions else ())
                for measure, spent in holder.spent.items() if holder is not None else ():
                    more = minutes.get(measure, 0.0) - float(spent.at(state.now, 1)[0])
                    spent.grant(0, max(more, 0.0), state.now)

    # ------------------------------------------------------------------ over a restart

    @hookimpl
    def checkpoint(self) -> dict[str, Any] | None:
        if self._saved is not None:
            return self._saved
        now, budgets = self._now(), []
        for (number, names), holder in self._holders.items():
            for measure, spent in holder.spent.items():
                runs = {name: [rate, since] for name, (_, rate, since) in spent.running.items()}
                ended = float(spent.settled(now, 1)[0])
                budgets.append([list(self._rules[number].dimensions), list(names), ended, runs, measure])
        return {"at": now, "budgets": budgets} if budgets else None

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._saved = saved

    def _take_up(self, state: State) -> None:
        """What was spent is spent; of jobs that run no longer nothing is known since it was saved."""
        saved, self._saved = self._saved, None
        assert saved is not None
        numbers = {rule.dimensions: number for number, rule in enumerate(self._rules)}
        for dimensions, names, ended, runs, *measure in saved["budgets"]:
            number = numbers.get(tuple(dimensions))
            holder = None if number is None else self._holder(number, tuple(names))
            spent = None if holder is None else holder.spent.get(*measure or (BUDGET,))
            if holder is None or spent is None:
                continue
            spent.grant(0, ended, saved["at"])
            for name, (rate, since) in runs.items():
                known = spent.running.get(name)
                if known is not None and known[2] < saved["at"]:
                    begun = max(since, known[2])
                    if known[1] != rate and begun < saved["at"]:
                        # Until then it counted for what it did.
                        spent.add(0, rate, begun, saved["at"])
                        begun = saved["at"]
                    # What was before it changed is in what was spent.
                    spent.running[name] = (*known[:2], begun)
                elif saved["at"] > since:
                    spent.add(0, rate, since, saved["at"])
            self._room[holder] = None
            self._full = True

    def _accounts(self, account: str) -> tuple[str, ...]:
        """The account, the account above it, and so on, without the root."""
        name, found = account, []
        while name != ROOT:
            found.append(name)
            name = self._tree.entries[self._tree.accounts[name]].parent
        return tuple(found)


def _about(job: Job) -> tuple[str, str, str, str, str]:
    """What limits may be of."""
    about = job.description
    return about.user, about.account, about.group, about.qos, job.pool.name


def _why(holder: Holder, job: Job, measure: str, state: State) -> str:
    return holder.why(job, measure, state.now)
