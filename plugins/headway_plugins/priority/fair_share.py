"""Fair share: what it takes to count how much each user has used, and the factor that follows from it.

The base of ``fair-tree``, ``classic`` and ``windows``, which differ in how they judge. What is counted:

- From its start to its end a job is billed ``sum over resources of weight x amount``, a second. The default
  bills processors. ``memory`` is in GiB; everything else names a generic resource. Its QOS may have a factor.
- The processors that count are the processors that the job has (its placement), which may be more than it
  asked for.
- A suspended job is not billed.

Over a restart: the sums are in the checkpoint, with the jobs that run and since when. A job of which nothing
is told any more has run until the last moment that the checkpoint saw.

With ``accounts: from-slurm`` the tree is that of the running Slurm, and follows it. At the first start each
user has used what Slurm says, less what the jobs that run then have used, since these are counted from
their starts. QOS and the half-life are Slurm's as well, where no option names them. A user that is no longer
listed, and has used something or has jobs, is kept with ``unknown_shares``.

With a ``history`` each user has used at the first start what a batch system's accounting says, see
:mod:`.past`. A job of it that the cluster still tells of counts once.

All users are judged anew in the first cycle after each ``period`` that asks, and when an unknown user comes.

Registers the factors ``fairshare`` and ``association``. ``association`` is the association's priority, or the
priority of the next account above that has a priority, over the largest priority.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import msgspec
import numpy as np

from headway.decisions import Decision
from headway.errors import UserError
from headway.events import (
    Event,
    JobChanged,
    JobEnded,
    JobRequeued,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    SitePolicyChanged,
)
from headway.hookspecs import NO_MORE, hookimpl
from headway.model import SitePolicy, processors_of
from headway.model.questions import Question
from headway.state import Factor, Job, State
from headway_plugins.accounts.associations import entry_of, same_shares
from headway_plugins.accounts.counting import CountingOptions, DecayOptions
from headway_plugins.accounts.tree import Floats
from headway_plugins.accounts.usage import Decaying, Ledger
from headway_plugins.priority.counting_usage import RUNNING, Standing, UsageCount
from headway_plugins.priority.reports import SHARES
from headway_plugins.priority.standings import share_page


class _Saved(msgspec.Struct):
    """What the checkpoint has."""

    seen: float
    #: Account and user of each node.
    nodes: list[tuple[str, str]]
    used: dict[str, Any]
    #: Job -> its node, rate and since when.
    running: dict[str, tuple[int, float, float]]
    reset_at: float | None = None
    qos: dict[str, float] = {}
    suspended: list[str] = []


#: The events by which usage is counted.
_COUNTED: tuple[type[Event], ...] = (
    JobSubmitted, JobStarted, JobEnded, JobChanged, JobRequeued, JobSuspended, JobResumed,
)  # fmt: skip


class FairShare(UsageCount):
    """Counts usage, and registers the factor ``fairshare``; subclasses judge."""

    Options: type[CountingOptions] = DecayOptions

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        kinds: tuple[type[Event], ...] = (*_COUNTED, SitePolicyChanged) if self._from_slurm else _COUNTED
        # The past is counted with the first event, whatever that is.
        self.traits = replace(self.traits, observes=None if self._past else kinds)

    @hookimpl
    def startup(self, state: State) -> None:
        self._epoch = state.epoch

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if self._past:
            self._count_past(state)
        # The state has taken in all events of the step: a job that ended in it is not there any more.
        if type(event) is JobSubmitted:
            self._jobs[event.job.id] = event.job
            return
        if type(event) is JobEnded:
            self._jobs.pop(event.job_id, None)
            self._suspended.discard(event.job_id)
            self._stopped(event.job_id, event.time)
        elif type(event) is JobStarted:
            job = state.jobs.get(event.job_id)
            runs = job is not None and job.status is RUNNING
            self._runs(event.job_id, event.placement, event.time, runs=runs)
        elif isinstance(event, JobChanged):
            self._jobs[event.job.id] = event.job
            self._changed(event, state)
        elif isinstance(event, JobRequeued | JobSuspended):
            if isinstance(event, JobSuspended):
                self._suspended.add(event.job_id)
            else:
                self._suspended.discard(event.job_id)
            self._stopped(event.job_id, event.time)
        elif isinstance(event, JobResumed):
            self._suspended.discard(event.job_id)
            job = state.jobs.get(event.job_id)
            self._runs(event.job_id, job.placement if job is not None else (), event.time)
        elif isinstance(event, SitePolicyChanged) and self._from_slurm:
            self._follow(event.policy, event.time, state)
        if self._unknown:
            self.tell_unknown(state)

    def _follow(self, policy: SitePolicy, now: float, state: State) -> None:
        """The accounts, QOS and the half-life are these from now on."""
        before, self._policy = self._policy, policy
        if policy.period is not None and "period" not in self.options.model_fields_set:
            self._period = policy.period
        if before is not None and same_shares(before, policy):
            return
        try:
            tree = self.options.tree(list(map(entry_of, policy.associations)))
        except UserError as error:
            state.anomalies.append(
                f"the batch system's accounts cannot be used, they stay as they were: {error}"
            )
            return
        ledger, old = self.ledger, self.tree
        used = ledger.saved()
        self.tree = tree
        self._nodes.clear()
        number, lost = {}, []
        mentioned = {whose for whose, _, _ in ledger.running.values()}
        kept = ledger.at(now, len(old))
        for node, entry in enumerate(old.entries):
            if not entry.user:
                continue
            found = tree.association(entry.account, entry.user)
            if found is None and (kept[node] > 0 or node in mentioned):
                found = tree.node(entry.account, "", entry.user)[0]
                lost.append(f"{entry.user} in {entry.account}")
            # A usage of 0 may be put at any node.
            number[node] = 0 if found is None else found
        ledger.load(used, number)
        ledger.running = {
            job: (number[whose], rate, since) for job, (whose, rate, since) in ledger.running.items()
        }
        if lost and old.listed:
            state.notices.append(
                f"no longer in the batch system's accounts: {', '.join(lost[:5])}"
                f"{', ...' if len(lost) > 5 else ''}; they keep what they have used, and get "
                f"{self.options.unknown_shares:g} shares"
            )
        self._bill(policy, now, state)
        if self._seeds:
            self._seed(policy, now, state)
        self._present = None
        self._version += 1

    def _bill(self, policy: SitePolicy, now: float, state: State) -> None:
        """What QOS and the half-life are, for what runs from now on, too."""
        self._qos = {**policy.qos_billing, **self.options.qos}
        told = policy.half_life
        if isinstance(self.ledger, Decaying) and told is not None and self._follows_half_life():
            self.ledger.decay_by(told or None, now)
        for job_id, (whose, rate, since) in list(self.ledger.running.items()):
            job = self._jobs.get(job_id)
            if job is None:
                continue
            if self._seeds:
                # The jobs that run at the beginning are told before the policy is.
                factor = self._qos.get(job.qos, 1.0)
                known = self.options.qos.get(job.qos, 1.0)
                self.ledger.running[job_id] = whose, rate * factor / known if known else 0.0, since
            elif (there := state.jobs.get(job_id)) is not None and there.status is RUNNING:
                processors = processors_of(there.placement) or job.request.processors
                now_rate = self.rate(job, processors)
                # The job itself tells that its QOS is gone.
                if job.qos in self._qos and now_rate != rate:
                    self.ledger.begin(job_id, whose, now_rate, max(now, since))

    def _seed(self, policy: SitePolicy, now: float, state: State) -> None:
        """Each user has used what the batch system says."""
        self._seeds = False
        ledger, tree = self.ledger, self.tree
        ledger.clear()
        runs = ledger.at(now, len(tree))
        given = 0.0
        for one in policy.associations:
            node = tree.association(one.account, one.user) if one.user else None
            if node is not None and one.usage > runs[node]:
                ledger.grant(node, one.usage - float(runs[node]), now)
                given += one.usage - float(runs[node])
        state.notices.append(
            f"usage of {len(policy.associations)} accounts and users is the batch system's: {given:.0f} "
            "units x seconds before the jobs that run now"
        )

    def standing(self, now: float) -> Standing:
        """How all users and accounts stand at ``now`` (absolute seconds)."""
        known = self._judged
        if known is not None and known[0] == now and known[1] == self._version:
            return known[2]
        self._pass(now)
        total = self.tree.shape().sums(self.ledger.at(now, len(self.tree)))
        found = Standing(total, self.judge(total))
        self._judged = (now, self._version, found)
        return found

    @hookimpl
    def register_factors(self) -> Mapping[str, Factor]:
        return {"fairshare": _Shares(self), "association": _Associations(self)}

    def shares(self, jobs: Sequence[Job], state: State) -> Floats:
        """The factor ``fairshare``."""
        nodes = self.nodes_of(jobs)
        return self._factor_now(state)[nodes]

    def share(self, job: Job, state: State) -> float:
        """The factor of a single job."""
        node = self.node_of(job.description)
        return float(self._factor_now(state)[node])

    def _factor_now(self, state: State) -> Floats:
        """What the factor goes by: each node's."""
        if self._unknown:
            self.tell_unknown(state)
        return self._factor_at(state.now)

    def _factor_at(self, now: float) -> Floats:
        """The same, without a word about users that are new."""
        present, size = self._present, len(self.tree)
        if present is None or now - present[0] >= self._period or size != present[1]:
            present = self._present = (now, size, self.standing(now).factor)
        return present[2]

    def apart(self) -> Self:
        """This as it is now, to be asked without an effect on this. The jobs are shared: it counts no
        events."""
        found = copy.copy(self)
        found.tree, found.ledger = self.tree.copy(), copy.copy(self.ledger)
        found._nodes, found._unknown = dict(self._nodes), []
        return found

    def aside(self, jobs: Sequence[Job], state: State) -> Floats:
        """The factor ``fairshare``, for users' questions: nothing is noted."""
        other = self.apart()
        nodes = other.nodes_of(jobs)
        return other._factor_at(state.now)[nodes]

    @hookimpl
    def inform(self, question: Question, state: State) -> Any:
        if question.name != SHARES:
            return None
        other, running = self.apart(), list(state.running_jobs())
        # Nobody is new after that.
        other.nodes_of(running)
        return share_page(other, other.standing(state.now), running, state.now, question)

    @hookimpl
    def react(self, state: State) -> Iterable[Decision] | None:
        """All jobs that there are were told: the others are gone."""
        self._over = {}
        if self._inherited is not None:
            for job_id in sorted(self._inherited):
                self.ledger.end(job_id, self._seen_before)
            self._inherited = None
            self._version += 1
        # The history is counted with the first event.
        return None if self._past else NO_MORE

    @hookimpl
    def checkpoint(self) -> dict[str, Any] | None:
        ledger = self.ledger
        if not np.isfinite(self._seen):
            return None
        return {
            "seen": self._seen,
            "reset_at": ledger.reset_at if np.isfinite(ledger.reset_at) else None,
            # By name: the tree of the next run may have others, or the same in another order.
            "nodes": [[entry.account, entry.user] for entry in self.tree.entries],
            "used": ledger.saved(),
            # Jobs that run are told before the batch system's policy is.
            **({"qos": dict(self._qos)} if self._from_slurm else {}),
            "running": {job_id: list(one) for job_id, one in ledger.running.items()},
            **({"suspended": sorted(self._suspended)} if self._suspended else {}),
        }

    @hookimpl
    def restore(self, saved: dict[str, Any], counting_on: bool) -> None:
        try:
            known = msgspec.convert(saved, _Saved)
            number, ledger = self._loaded(known)
        except (msgspec.ValidationError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            # Nothing of it is taken, so that what follows is right.
            whence = "the history" if self._past else "nothing"
            if self._seeds:
                whence = "what the batch system says"
            raise ValueError(
                f"the saved usage is damaged and is counted anew, from {whence} on: {error}"
            ) from error
        ledger.running = {
            job_id: (number[whose], rate, since) for job_id, (whose, rate, since) in known.running.items()
        }
        if known.reset_at is not None:
            ledger.reset_at = known.reset_at
        self.ledger = ledger
        self._seen = self._seen_before = known.seen
        self._inherited = set(ledger.running)
        self._suspended = set(known.suspended)
        # What was used was counted already.
        self._seeds = False
        self._past = []
        if self._from_slurm:
            self._qos = {**known.qos, **self.options.qos}
        if isinstance(ledger, Decaying) and not self._follows_half_life():
            ledger.decay_by(self.options.half_life, self._seen)
        self._version += 1
        if counting_on:
            # Nothing has happened since it was saved.
            self._inherited = None
            self._seen_before = -np.inf

    def _loaded(self, known: _Saved) -> tuple[dict[int, int], Ledger]:
        """Saved node -> node now, and what they used; an error if it is not what was saved."""
        number = {}
        for at, (account, user) in enumerate(known.nodes):
            if user:
                found = self.tree.association(account, user)
                number[at] = self.tree.node(account, "", user)[0] if found is None else found
        ledger = self.make_ledger()
        ledger.load(known.used, number)
        for job_id, (whose, rate, since) in known.running.items():
            if whose not in number or not 0 <= rate < np.inf or not np.isfinite(since):
                raise ValueError(
                    f"job {job_id}: expected a user, a rate and a time, found {whose}, {rate}, {since}"
                )
        settled = ledger.settled(known.seen, len(self.tree))
        if not np.isfinite(settled).all() or (settled < -1e-6).any():
            raise ValueError(f"expected finite amounts of at least 0, found {settled!r:.200}")
        return number, ledger

    def _follows_half_life(self) -> bool:
        """Whether the half-life is the batch system's."""
        return self._from_slurm and "half_life" not in self.options.model_fields_set


class _Shares:
    """The factor ``fairshare``, of many jobs and of a single job."""

    def __init__(self, plugin: FairShare) -> None:
        self.one = plugin.share
        self.aside = plugin.aside
        self._many = plugin.shares

    def __call__(self, jobs: Sequence[Job], state: State) -> Floats:
        return self._many(jobs, state)


class _Associations:
    """The factor ``association``."""

    def __init__(self, plugin: FairShare) -> None:
        self._plugin = plugin

    def __call__(self, jobs: Sequence[Job], state: State) -> Floats:
        found = self._of(self._plugin, jobs)
        self._plugin.tell_unknown(state)
        return found

    def aside(self, jobs: Sequence[Job], state: State) -> Floats:
        """The same, and nothing is noted."""
        return self._of(self._plugin.apart(), jobs)

    @staticmethod
    def _of(plugin: FairShare, jobs: Sequence[Job]) -> Floats:
        nodes = plugin.nodes_of(jobs)
        priorities = plugin.tree.priorities()
        largest = priorities.max()
        return priorities[nodes] / largest if largest > 0 else np.zeros(len(jobs))
