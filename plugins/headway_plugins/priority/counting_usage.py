"""The usage of users: what jobs are billed from their starts to their ends, as :mod:`.fair_share` says."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.events import (
    JobChanged,
)
from headway.model import JobDescription, Placement, SitePolicy, processors_of
from headway.plugins import Traits
from headway.state import Job, State, Status
from headway.workload.accounting import Ended
from headway_plugins.accounts.amounts import amount
from headway_plugins.accounts.calendar import next_period, period_begin
from headway_plugins.accounts.counting import CountingOptions
from headway_plugins.accounts.options import is_from_slurm, required
from headway_plugins.accounts.tree import Floats, Shape, Tree
from headway_plugins.accounts.usage import Decaying, Ledger
from headway_plugins.priority import past

RUNNING = Status.RUNNING


@dataclass(frozen=True)
class Standing:
    """How each node of the tree stands at a moment; arrays with a value a node."""

    #: Units x seconds, at and below the node.
    usage: Floats
    #: 0 to 1.
    factor: Floats


class UsageCount:
    """The tree of accounts, and what was used by it."""

    Options: type[CountingOptions]
    traits = Traits(checkpoint="counts")
    #: Whether accounts have a factor of their own.
    judges_accounts = False

    def __init__(self, options: Any = None) -> None:
        self.options: Any = options if options is not None else self.Options()
        self.tree: Tree = self.options.tree()
        self.ledger: Ledger = self.make_ledger()
        #: Whether the tree is the running batch system's, and what it said of it last.
        self._from_slurm = is_from_slurm(self.options.accounts)
        self.traits = replace(self.traits, requires=required(self.options.accounts))
        self._policy: SitePolicy | None = None
        #: It is not known yet what was used before the first start.
        self._seeds = self._from_slurm
        #: What the accounting says of the time before, until it is counted; and the ends of its jobs, in the
        #: step in which it is.
        self._past: list[Ended] = self.options.past
        self._over: dict[str, float] = {}
        #: QOS -> factor on what its jobs are billed.
        self._qos: Mapping[str, float] = self.options.qos
        self._period: float = self.options.period
        self._zone = zoneinfo.ZoneInfo(self.options.zone)
        self._epoch = 0.0
        self._reset_due = np.inf
        self._never_resets: bool = self.options.reset == "none"
        self._billing: list[tuple[str, float]] = list(self.options.billing.items())
        #: Units a second of each processor, where nothing else is billed.
        self._each: float | None = (
            self.options.billing["processors"] if self.options.billing.keys() == {"processors"} else None
        )
        #: Jobs that are not over.
        self._jobs: dict[str, JobDescription] = {}
        #: (account, group, user) -> node.
        self._nodes: dict[tuple[str, str, str], int] = {}
        #: What the log should say.
        self._unknown: list[str] = []
        #: The latest moment that an event spoke of.
        self._seen = self._seen_before = -np.inf
        #: Jobs that ran when the last run ended and that no event has named since; None: all is settled.
        self._inherited: set[str] | None = None
        #: Suspended jobs, which are not billed.
        self._suspended: set[str] = set()
        #: Counts what changes usage, so that it is not judged anew if nothing did.
        self._version = 0
        self._judged: tuple[float, int, Standing] | None = None
        #: What the factor goes by until a period is over, and for which tree.
        self._present: tuple[float, int, Floats] | None = None

    def make_ledger(self) -> Ledger:
        """Where usage is counted."""
        return Decaying(self.options.half_life)

    def judge(self, total: Floats) -> Floats:
        """Each node's factor, 0 to 1; ``total``: what was used at and below each node."""
        raise NotImplementedError

    def shares_and_usage(self, shape: Shape, total: Floats) -> tuple[Floats, Floats]:
        """Each node's part of the siblings' shares, and of what the node above has used: the columns
        NormShares and EffectvUsage. A node without shares of its own has the account's part."""
        part = shape.part.copy()
        part[shape.joint] = part[shape.parent[shape.joint]]
        return part, shape.of_parent(total)

    def _changed(self, event: JobChanged, state: State) -> None:
        """A running job may belong to another user now, or be billed otherwise. If not, nothing is recorded:
        the moment of the news may be later than that of the job's end."""
        description, known = event.job, self.ledger.running.get(event.job.id)
        job = state.jobs.get(description.id)
        if known is None or job is None:
            return
        processors = processors_of(job.placement) or description.request.processors
        if known[:2] != (self.node_of(description), self.rate(description, processors)):
            self._runs(description.id, job.placement, event.time)

    def _runs(self, job_id: str, placement: Placement, at: float, *, runs: bool = True) -> None:
        """The job runs with so much from then on; no placement: with what it asks for. ``runs``: it still
        does."""
        self._pass(at)
        description = self._jobs.get(job_id)
        if description is None or (self._over and at < self._over.get(job_id, -np.inf)):
            return
        inherited = self._inherited
        if inherited is not None and job_id not in inherited and at <= self._seen_before:
            if not runs:
                # It was over, or suspended, when the last run was saved, and is told once more.
                return
            if job_id in self._suspended:
                # The job was resumed while headway did not look, and its time before that is counted.
                at = self._seen_before
        if runs:
            self._suspended.discard(job_id)
        node = self.node_of(description)
        # Flat pools name no placement.
        processors = processors_of(placement) if placement else 0
        rate = self.rate(description, processors or description.request.processors)
        if self._inherited is not None and job_id in self._inherited:
            self._inherited.discard(job_id)
            whose, before, since = self.ledger.running[job_id]
            begun = max(at, self.ledger.reset_at)
            if (whose, before) == (node, rate) and begun < since + 1.0:
                # Counted from its start, or since it was resumed or changed.
                return
            if begun < since - 1.0:
                at = max(since, self._seen_before)
            # The job began again while headway did not look, or has changed.
            self.ledger.end(job_id, min(self._seen_before, at))
        self.ledger.begin(job_id, node, rate, at)
        self._version += 1

    def _count_past(self, state: State) -> None:
        """Each user has used what the accounting says."""
        self._pass(state.now)
        self._over, used = past.count(
            self._past, self.ledger, self.node_of, self.rate, state.now, self._epoch
        )
        self._past = []
        self._version += 1
        unknown = [name for name, weight in self.options.billing.items() if weight and name != "processors"]
        state.notices.append(
            f"usage of {len(self._over)} jobs before the first start is that of {self.options.history}: "
            f"{used:.0f} units x seconds"
            + (f"; their {', '.join(unknown)} is not known and not counted" if unknown else "")
        )

    def _stopped(self, job_id: str, at: float) -> None:
        self._pass(at)
        if self._inherited is not None:
            self._inherited.discard(job_id)
        self.ledger.end(job_id, at)
        self._version += 1

    def _pass(self, now: float) -> None:
        """Time has come to ``now``: usage may be to be forgotten."""
        if now > self._seen:
            self._seen = now
        if not self._never_resets:
            self._reset(now)

    def _reset(self, now: float) -> None:
        if self._reset_due == np.inf or now >= self._reset_due:
            begin = period_begin(now + self._epoch, self.options.reset, self._zone)
            if begin - self._epoch > self.ledger.reset_at:
                self.ledger.reset(begin - self._epoch)
                self._version += 1
            self._reset_due = next_period(begin, self.options.reset, self._zone) - self._epoch

    def rate(self, job: JobDescription, processors: int) -> float:
        """Units that a job of so many processors is billed a second."""
        return self.billed(job, processors) * self.factor(job)

    def factor(self, job: JobDescription) -> float:
        """What its QOS makes of what a job uses."""
        return self._qos.get(job.qos, 1.0)

    def billed(self, job: JobDescription, processors: int) -> float:
        """The same, whatever its QOS."""
        if self._each is not None:
            return self._each * processors
        total = 0.0
        for name, weight in self._billing:
            total += weight * (processors if name == "processors" else amount(job.request, name, processors))
        return total

    @property
    def policy(self) -> SitePolicy | None:
        """What the running batch system says of its site, where the tree is its."""
        return self._policy

    def node_of(self, job: JobDescription) -> int:
        """The association whose usage the job is."""
        key = (job.account, job.group, job.user)
        node = self._nodes.get(key)
        if node is None:
            node, unknown = self.tree.node(*key)
            self._nodes[key] = node
            self._version += 1
            if unknown:
                self._unknown.append(
                    f"{unknown} is not in the tree of accounts (job {job.id}); it gets "
                    f"{self.options.unknown_shares:g} shares"
                )
        return node

    def tell_unknown(self, state: State) -> None:
        """Have the log say which users are new."""
        if self._unknown:
            state.notices.extend(self._unknown)
            self._unknown.clear()

    def nodes_of(self, jobs: Sequence[Job]) -> list[int]:
        """The associations of several jobs."""
        known = self._nodes
        abouts = [job.description for job in jobs]
        try:
            return [known[about.account, about.group, about.user] for about in abouts]
        except KeyError:
            return list(map(self.node_of, abouts))
