"""Where a job could start without other jobs that may have to make room for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from headway.decisions import Start, Suspend
from headway.model import Placement
from headway.state import Domain, Job, PoolState, State
from headway.state.choices import facing_each, facing_pool, ways
from headway.view import View
from headway_plugins.preemption.claims import Claim
from headway_plugins.preemption.judging import Judge
from headway_plugins.preemption.suspended import Suspended


class Places:
    """The places that jobs could have."""

    def __init__(
        self, judge: Judge, suspended: Suspended, claims: Mapping[str, Claim], *, suspends: bool
    ) -> None:
        """``claims``: by the id of the job that room is made for; ``suspends``: a rule suspends jobs."""
        self._judge = judge
        self._suspended = suspended
        self._claims = claims
        self._suspends = suspends
        self._state: State

    def begin(self, state: State) -> None:
        """The run begins."""
        self._state = state

    def place(
        self, job: Job, gone: Sequence[Job], pool: PoolState, *, suspended: bool = True
    ) -> Placement | None:
        """Where the job could start in the pool without the jobs ``gone``. A waiting job whose place it may
        take cannot keep it out. Places kept for suspended jobs are in its way if not ``suspended``."""
        view = pool.domain.view
        if not isinstance(view, View):
            return None
        over = partial(self.yields, job, suspended=suspended)
        with facing_pool(job, pool):
            lent = [other for other in gone if self._lends(job, other)]
        rest = [other for other in gone if other not in lent] if lent else gone
        return view.place_without(job, rest, over, lent, pool)

    def yields(self, job: Job, other: Job, *, suspended: bool = True) -> bool:
        """Whether what is booked for the job ``other`` is not in the job's way."""
        if other.choices:
            # It may be booked in any of its pools.
            if not all([self._judge.rule_of(job, other) is not None for _ in facing_each(other)]):
                return False
        elif self._judge.rule_of(job, other) is None:
            return False
        return not self._suspended.stand_in_of(other) or (suspended and self._waits_on(job, other.id))

    def _lends(self, job: Job, other: Job) -> bool:
        """Whether the job ``other`` would be suspended for the job."""
        if not self._suspends or other.leaving:
            claim = self._claims.get(job.id)
            victim = claim.victims.get(other.id) if claim is not None else None
            return victim is not None and isinstance(victim.order, Suspend)
        rule = self._judge.rule(job, other)
        return rule is not None and rule.how == "suspend"

    def _waits_on(self, job: Job, name: str) -> bool:
        """Whether a suspended job may wait as long as the job runs to its limit, too."""
        other, held = self._state.jobs.get(name), self._suspended.get(name)
        if other is None or held is None:
            return False
        return self._suspended.over(other, held, self._state.now) + job.estimate <= 0

    def before_suspended(self, job: Job, view: View) -> Start | None:
        """Start a job on what is kept for suspended jobs, where it may take the places of all of them."""
        if not any(other.domain is view.domain for other, _ in self._suspended.waiting(self._state)):
            return None
        pools = ways(job, view.domain)
        if any(self.place(job, (), pool, suspended=False) is not None for pool in pools):
            # No suspended job's place is in its way.
            return None
        for pool in pools:
            place = self.place(job, (), pool)
            if place is not None:
                return start_in(pool, job, place, "before jobs that are suspended")
        return None

    def starts_by(self, until: float, job: Job, domain: Domain) -> bool:
        """Whether the job could start in the domain if what is to end by then had ended."""
        view = domain.view
        if not isinstance(view, View):
            return False
        ending = [other for end, _, _, other in view.running if end <= until]
        over = partial(self.yields, job)
        return bool(ending) and view.place_without(job, ending, over) is not None


def start_in(pool: PoolState, job: Job, placement: Placement, reason: str) -> Start:
    """The job's start in this pool of its pools."""
    return Start(job.id, placement, reason, pool=pool.name if job.choices else "")


def may_help(job: Job, other: Job, pool: PoolState, state: State) -> bool:
    """Whether the job could have anything in the pool that the job ``other``, of its domain, leaves."""
    if len(pool.domain.pools) == 1 or state.nodes.any_in((pool.name,), [name for name, _ in other.placement]):
        return True
    held = {name for name, _ in other.request.licences}
    return any(name in held for name, _ in job.request.licences)
