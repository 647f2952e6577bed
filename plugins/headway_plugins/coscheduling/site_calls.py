"""What a call of a search becomes at a site that the scheduler rules: decisions, and later the answer.

The calls are :mod:`.calls`. A ``set`` finds its place in the plan of the pool (:mod:`.machines`) and becomes
`Reserve`, ``cancel`` becomes `Unreserve`, ``bind`` becomes `Bind`; ``show`` looks into the state. The answer
of the cluster is what the state knows afterwards.

Ours:

- A reservation that begins in the past begins ``lead`` seconds from now: a round of a search takes as long as
  the sites take to answer, and all of its parts must still lie ahead when it is over.
- The rules are those of :mod:`.site_policy`, with the limits of :mod:`.quotas`; they do not bind operators.
  Number and node-seconds count reservations of the same pool.
- ``budget`` is what all users together may have of a pool.
- A job that is bound to a reservation is taken out of it before the reservation is given back, since Slurm
  deletes no reservation that a job names, and PBS deletes the jobs with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headway.decisions import Bind, Decision, Reserve, Unreserve
from headway.model import Reservation
from headway.state import Job, State, Status
from headway_plugins.coscheduling.calls import (
    Answer,
    Call,
    Carried,
    Denied,
    Failed,
    Found,
    Granted,
    Shown,
    TimedOut,
    Waited,
)
from headway_plugins.coscheduling.live_metajob import Errand, LiveMetajob
from headway_plugins.coscheduling.machines import MachineOptions, Plans, free_nodes, size
from headway_plugins.coscheduling.queue_plan import on_grain
from headway_plugins.coscheduling.quotas import QuotaOptions, of_users, size_of
from headway_plugins.coscheduling.site_policy import (
    SitePolicy,
    at_the_place,
    before_the_place,
    cut,
    node_seconds,
)

_WAITS = (Status.PENDING, Status.WAITING)
#: Seconds before a call is tried again, each time so many more.
_AGAIN = 30.0


class SiteCalls:
    """Carries out calls, with what is known of the sites."""

    def __init__(
        self,
        machines: Mapping[str, MachineOptions],
        quotas: QuotaOptions,
        *,
        budget: float,
        lead: float,
        patience: float,
    ) -> None:
        """``budget``: share of a pool; ``lead``, ``patience`` (for an answer): seconds."""
        self._machines, self._quotas = machines, quotas
        self._budget, self._lead, self._patience = budget, lead, patience
        self.plans = Plans()
        #: Reservation -> edition of the plan into which it was put.
        self._added: dict[str, int] = {}
        #: What a site refused since the call was issued: kind of decision and name -> message.
        self.refusals: dict[tuple[type[Decision], str], str] = {}

    def errand(self, call: Call, now: float) -> Errand:
        """A call that is to be carried out."""
        return Errand(call, now + _AGAIN * (call.attempt - 1), edition=self.plans.edition)

    def due(self, errand: Errand) -> float:
        """When to look at it again."""
        if not errand.issued:
            return errand.since
        return errand.since + (errand.call.seconds if errand.call.kind == "wait" else self._patience)

    def issue(self, live: LiveMetajob, errand: Errand, grain: int, state: State) -> Iterator[Decision]:
        """The decisions that carry a call out."""
        errand.issued, errand.since = True, state.now
        call = errand.call
        made = state.reservations.get(call.name)
        if call.kind == "cancel" and made is not None and made.ours:
            self.refusals.pop((Unreserve, call.name), None)
            yield from given_back(live, call.name, "does not need it", state)
        elif call.kind == "bind":
            job = state.jobs.get(live.job_of(call.name))
            if job is not None and job.status in _WAITS and call.name in state.reservations:
                self.refusals.pop((Bind, job.id), None)
                yield Bind(job.id, call.name, f"metajob {live.kept.id}")
        elif call.kind == "set" and call.name in state.reservations:
            if not state.reservations[call.name].ours:
                self.refusals[Reserve, call.name] = "another reservation has its name"
        elif call.kind == "set":
            self.refusals.pop((Reserve, call.name), None)
            found = self._find(live, call, grain, state)
            if isinstance(found, Reservation):
                machine = self._machines[call.site]
                self.plans.change(machine, found.start, found.end, size_of(found))
                self._added[call.name] = self.plans.edition
                yield Reserve(found, f"metajob {live.kept.id} of {live.kept.user}")
            else:
                self.refusals[Reserve, call.name] = found

    def answer(self, live: LiveMetajob, errand: Errand, state: State) -> Answer | None:
        """The answer, as far as the state knows it; None: it has not come yet."""
        call, late = errand.call, state.now >= self.due(errand)
        if call.kind == "wait":
            return Waited(self.plans.edition != errand.edition) if late else None
        if call.kind == "show":
            return self._show(live, call, state)
        answer: Answer | None
        if call.kind == "set":
            answer = self._set(call, state)
        elif call.kind == "cancel":
            answer = self._cancel(call, state, late=late)
        else:
            answer = self._bind(live, call, state)
        return TimedOut() if answer is None and late else answer

    # ------------------------------------------------------------------ answers

    def _set(self, call: Call, state: State) -> Answer | None:
        refusal = self.refusals.pop((Reserve, call.name), None)
        made = state.reservations.get(call.name)
        if refusal is None and made is None:
            refusal = "forbidden by a plugin"
        if refusal is not None or made is None:
            if self._added.pop(call.name, None) is not None:
                # The plan thinks that it is there.
                self.plans.edition += 1
            return Denied(refusal or "")
        return None if call.name in state.foreseen else Granted(made.start, size_of(made))

    def _cancel(self, call: Call, state: State, *, late: bool) -> Answer | None:
        refusal = self.refusals.pop((Unreserve, call.name), None)
        if refusal is None and late and call.name in state.foreseen:
            # The site took both orders and has never shown it: it lost the first. If it comes after all, it
            # is a stray.
            state.foreseen.pop(call.name)
            state.keep_no_more(call.name)
        if call.name not in state.reservations:
            self._added.pop(call.name, None)
            return Carried()
        return None if refusal is None else Failed(refusal)

    def _bind(self, live: LiveMetajob, call: Call, state: State) -> Answer | None:
        job = state.jobs.get(live.job_of(call.name))
        if job is None:
            return Failed("the job is over")
        if job.id in state.before_binding:
            return None
        if job.description.reservation == call.name:
            return Carried()
        return Failed(self.refusals.pop((Bind, job.id), _cannot(job)))

    def _show(self, live: LiveMetajob, call: Call, state: State) -> Answer:
        if self._machines[call.site].pool not in state.pools:
            return TimedOut()
        return Shown(
            tuple(found for name, found in shown(live, state).items() if live.machine_of(name) == call.site)
        )

    def gone(self, reservation: Reservation, machine: MachineOptions) -> None:
        """A reservation of a metajob was given back: a plan into which it was put has its room again."""
        if self._added.pop(reservation.id, -1) == self.plans.edition:
            self.plans.change(machine, reservation.start, reservation.end, -size_of(reservation))
        else:
            self.plans.edition += 1

    # ------------------------------------------------------------------ places

    def _find(self, live: LiveMetajob, call: Call, grain: int, state: State) -> Reservation | str:
        """What is reserved, or the rule that forbids it."""
        machine = self._machines[call.site]
        pool = state.pools.get(machine.pool)
        if pool is None:
            return "the site does not answer"
        since = state.silent_since(machine.pool)
        if since is not None and since + self._patience <= state.now:
            return "timeout"
        if call.nodes < 1 or call.duration < machine.min_duration:
            return "request"
        held = [(owner, one) for owner, one in of_users(state, self._quotas) if _in_pool(one, machine, state)]
        mine = [one for owner, one in held if owner == call.account]
        policy = SitePolicy() if live.kept.operator else self._policy(call.account, size(state, machine))
        rule = before_the_place(policy, call.nodes, call.exact, call.duration, len(mine))
        if rule is not None:
            return rule
        most = call.nodes if call.exact else cut(policy, call.nodes)
        begin = call.earliest if call.earliest >= state.now else state.now + self._lead
        lasts = call.duration + machine.slack
        window = (begin, call.latest + machine.slack)
        least = most if call.exact else min(most, 1)
        start = self.plans.earliest(state, machine, least, lasts, window, grain) if most else None
        if start is None:
            return "place"
        granted = most
        if not call.exact:
            granted = min(most, self.plans.throughout(state, machine, start, lasts))
        wanted = (start, start + call.duration, granted)
        rule = at_the_place(policy, wanted, [_span(one) for one in mine], state.now)
        if rule is None and not live.kept.operator:
            rule = self._over_budget(wanted, [one for _, one in held], machine, state)
        if rule is not None:
            return rule
        end = on_grain(start + lasts, machine.grain)
        nodes = () if pool.flat else free_nodes(state, machine, start, end, granted)
        if nodes is None:
            return "place"
        return Reservation(
            id=call.name, start=start, end=end, pool=machine.pool, processors=granted if pool.flat else 0,
            nodes=nodes, users=(call.user,), ours=True, reason=f"metajob {live.kept.id}",
        )  # fmt: skip

    def _policy(self, account: str, whole: int) -> SitePolicy:
        limits, window = self._quotas.limits_of(account), self._quotas.window
        budget = limits.max_node_seconds
        return SitePolicy(
            max_per_account=limits.max_reservations,
            max_nodes=limits.max_nodes if limits.max_nodes is not None else max(1, whole // 4),
            max_duration=limits.max_duration,
            window=window,
            budget=budget if budget is not None else whole * window / 10,
            horizon=window,
        )

    def _over_budget(
        self,
        wanted: tuple[float, float, int],
        others: list[Reservation],
        machine: MachineOptions,
        state: State,
    ) -> str | None:
        window = self._quotas.window
        taken = node_seconds([wanted, *(_span(one) for one in others)], state.now, window)
        return "budget" if taken > self._budget * size(state, machine) * window else None


def given_back(live: LiveMetajob, name: str, why: str, state: State) -> Iterator[Decision]:
    """The decisions that give a reservation back; its job leaves it first."""
    job = state.jobs.get(live.job_of(name))
    if job is not None and job.status in _WAITS and job.description.reservation == name:
        pool = live.kept.pools.get(job.id, job.pool.name)
        yield Bind(job.id, "", f"metajob {live.kept.id} gives {name} back", pool)
    yield Unreserve(name, f"metajob {live.kept.id} {why}")


def shown(live: LiveMetajob, state: State) -> dict[str, Found]:
    """The reservations of a metajob that the sites have confirmed, by name."""
    found = {}
    for name, one in state.reservations.items():
        if live.owns(name) and one.ours and name not in state.foreseen:
            down = any(not _usable(node, state) for node in one.nodes)
            found[name] = Found(name, size_of(one), one.start, one.end, "DEGRADED" if down else "HELD")
    return found


def _usable(node: str, state: State) -> bool:
    at = state.nodes.index.get(node)
    return at is None or bool(state.nodes.available[at])


def _in_pool(one: Reservation, machine: MachineOptions, state: State) -> bool:
    """Whether a reservation is of the machine's pool."""
    if one.nodes:
        return state.nodes.any_in((machine.pool,), one.nodes)
    return one.pool == machine.pool


def _span(one: Reservation) -> tuple[float, float, int]:
    return one.start, one.end, size_of(one)


def _cannot(job: Job) -> str:
    return "the job runs already" if job.entries is not None else "the job could not be bound"
