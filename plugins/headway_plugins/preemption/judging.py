"""Which job may take the place of which, and what its going costs: rules and priorities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.state import Domain, Job, State, Status
from headway.state.choices import facing_pool, ways
from headway_plugins.preemption.rules import Rule
from headway_plugins.preemption.suspended import Suspended


class Judge:
    """The rules, with what is known of jobs' priorities."""

    def __init__(self, rules: Sequence[Rule], victims: str, suspended: Suspended) -> None:
        """``victims``: which set of jobs goes of several."""
        self._rules = rules
        self._victims = victims
        self._suspended = suspended
        self._state: State
        self.by_priority = victims == "lowest-priority" or any(rule.distance is not None for rule in rules)
        #: Jobs that did not go -> when they had started: they are left alone in this run of theirs.
        self.stays: dict[str, float | None] = {}
        #: Jobs' priorities, as they were when they were last asked for.
        self._priorities: dict[tuple[str, str], float] = {}
        self._priorities_at = -float("inf")

    def begin(self, state: State) -> None:
        """The run begins."""
        self._state = state

    def has_rule(self, job: Job, domain: Domain) -> bool:
        """Whether the job may take places in any of its pools of the domain."""
        for pool in ways(job, domain):
            with facing_pool(job, pool):
                if any(rule.who.fits(job) for rule in self._rules):
                    return True
        return False

    def ripe(self, job: Job, rule: Rule) -> float:
        """From when on it may be told to go (absolute seconds)."""
        ripe = (job.start_time or 0.0) + rule.exempt
        if rule.how == "suspend" and job.paused:
            ripe = max(ripe, self._suspended.ran_since(job) + rule.again)
        return ripe

    def rule(self, job: Job, other: Job) -> Rule | None:
        """By which rule the job may take the other's place, once that has run long enough."""
        if other.status is not Status.RUNNING or other.leaving or other.attribute("preemptible") is False:
            return None
        if other.id in self.stays:
            if self.stays[other.id] == other.start_time:
                return None
            del self.stays[other.id]
        return self.rule_of(job, other)

    def rule_of(self, job: Job, other: Job) -> Rule | None:
        """By which rule the job may take the other's place, if nothing else keeps the other there."""
        return next((rule for rule in self._rules if self._meets(rule, job, other)), None)

    def _meets(self, rule: Rule, job: Job, other: Job) -> bool:
        if not (rule.who.fits(job) and rule.whom.fits(other)):
            return False
        if rule.how == "suspend" and other.paused + job.estimate > rule.longest:
            return False
        return rule.distance is None or self.priority(job) - self.priority(other) >= rule.distance

    def priority(self, job: Job) -> float:
        """The job's priority by an order's plugin, else by the batch system; 0 if neither tells it."""
        key = (job.id, job.pool.name)
        if self._state.now != self._priorities_at or key not in self._priorities:
            self.judge([job])
        return self._priorities[key]

    def judge(self, jobs: Sequence[Job]) -> None:
        """These jobs' priorities now, all at once, in the pools that they face."""
        state = self._state
        if state.now != self._priorities_at:
            self._priorities_at = state.now
            self._priorities.clear()
        judge = state.factors.get("priority")
        values: list[float] = [job.description.priority or 0.0 for job in jobs]
        if judge is not None:
            values = np.asarray(judge(jobs, state), np.float64).tolist()
        self._priorities.update(zip(((job.id, job.pool.name) for job in jobs), values, strict=True))

    def cost(self, job: Job, rule: Rule, state: State) -> float:
        """What its going costs."""
        # Of jobs that lose nothing, the smaller.
        lost = job.processors * max(seconds_lost(job, rule, state.now), 1e-6)
        if self._victims == "fewest":
            # Of as many jobs, the jobs that lose less.
            return 1.0 + lost / (1.0 + lost) * 1e-6
        if self._victims == "youngest":
            return state.now - (job.start_time or 0.0)
        if self._victims == "lowest-priority":
            return self.priority(job)
        return lost


def seconds_lost(job: Job, rule: Rule, now: float) -> float:
    """Seconds of its work that are lost if it goes by this rule."""
    if rule.how == "suspend":
        return 0.0
    done, saves = job.done(now), job.attribute("saves")
    if rule.how == "requeue" and rule.grace and isinstance(saves, int | float) and 0 <= saves <= rule.grace:
        return min(done, rule.grace)
    return done
