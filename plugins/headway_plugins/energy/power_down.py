"""Dynamic power management: idle nodes sleep, and are awake again when they are needed.

The DPM side of A. Chandio et al., "A comparative study on resource allocation and energy efficient job
scheduling strategies in large-scale parallel computing systems", 2014, section 2: an idle node draws a
large part of its peak power, so nodes that no job needs are put to sleep. The paper names the technique
and does not specify it; the rules are ours:

- A node that was idle for ``idle`` seconds sleeps, the last of the cluster first, while at least
  ``reserve`` idle nodes of each of its pools stay on. Where there is an energy profile, only nodes of
  classes with a sleep state.
- A node is woken in time for what is planned on it: a booking (by the policy or for a dedicated job), a
  reservation, a job whose begin time comes. "In time" is the node's wake time and ``margin`` before.
- Where the policy books nothing, nodes are woken for the first ``depth`` jobs of the queue, as many as
  these need beside what is on and idle.
- Hysteresis: a node that was woken stays on for at least ``stay`` seconds. No node sleeps that a waiting
  job could use, or that is needed again before it had slept for as long as it takes to wake.
- With ``wake_chance`` arrivals are foreseen: where a job comes, within the time that it takes to wake, with
  at least that chance (hook ``arrival_chance``), ``wake_nodes`` idle nodes of the pool are kept on, or woken.
  That is looked at when something happens, and again after that time while it keeps nodes on.
- A command that was refused is not given again for ``retry`` seconds. A node that does not wake is the
  adapter's business: it reports it as down, and the jobs are placed elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pydantic

from headway.decisions import Decision, PowerDown, PowerUp
from headway.errors import UserError
from headway.events import (
    DecisionFailed,
    Event,
    JobChanged,
    JobSubmitted,
    NodeDown,
    NodePowerChanged,
    NodeUp,
)
from headway.hookspecs import Plugin, hookimpl
from headway.model import Request
from headway.plugins import Traits
from headway.resources import NodeTable
from headway.results import RunResult
from headway.state import Domain, Job, PoolState, State, Status
from headway.state.choices import ways

_INF = float("inf")
_WAITING = (Status.PENDING, Status.WAITING)


class PowerDownIdle(Plugin):
    """Put idle nodes to sleep and wake them in time."""

    traits = Traits(
        needs=(PowerDown, PowerUp),
        observes=(NodePowerChanged, NodeDown, NodeUp, DecisionFailed, JobSubmitted, JobChanged),
        paper=(
            "A. Chandio et al.: A comparative study on resource allocation and energy efficient job "
            "scheduling strategies in large-scale parallel computing systems, 2014"
        ),
    )

    class Options(pydantic.BaseModel):
        """All times are seconds."""

        model_config = pydantic.ConfigDict(extra="forbid")

        idle: float = pydantic.Field(
            default=600.0, ge=0, description="seconds after which an idle node is put to sleep"
        )
        reserve: int = pydantic.Field(
            default=0, ge=0, description="number of idle nodes of each pool that stay on"
        )
        stay: float = pydantic.Field(
            default=600.0, ge=0, description="seconds for which a woken node stays on at least"
        )
        margin: float = pydantic.Field(
            default=5.0,
            ge=0,
            description="seconds by which a node is woken earlier than its wake time asks for",
        )
        depth: int = pydantic.Field(
            default=50, ge=1, description="number of jobs at the head of a queue for which nodes are woken"
        )
        wake_chance: float | None = pydantic.Field(
            default=None,
            gt=0,
            le=1,
            description="nodes are kept on or woken when the chance that a job arrives within the wake time "
            "reaches this value; needs a plugin that predicts arrivals, such as "
            "arrival-forecast; null: never",
        )
        wake_nodes: int = pydantic.Field(
            default=1, ge=1, description="number of idle nodes that are on for such an arrival"
        )
        retry: float = pydantic.Field(
            default=600.0,
            gt=0,
            description="seconds between a refused command and the next command to the same node",
        )

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options or PowerDownIdle.Options())
        #: For each node of the table: since when it is idle and on; infinity if it is not.
        self._idle_since = np.zeros(0)
        #: Not to be put to sleep before.
        self._stays = np.zeros(0)
        #: Not to be commanded before (after a refusal).
        self._not_before: dict[str, float] = {}
        #: Nodes that were commanded and have not answered.
        self._sent_down: set[str] = set()
        self._sent_up: set[str] = set()
        #: Classes of the energy profile that have no sleep state.
        self._sleepless: set[str] = set()
        #: Jobs whose begin time lies ahead.
        self._coming: dict[str, Job] = {}
        #: When the next look is due, by pool.
        self._due: dict[str, float] = {}
        #: Idle nodes that each pool is to have on, for arrivals that are likely.
        self._ahead: dict[str, int] = {}
        self._counts = {"put to sleep": 0, "woken": 0, "refused": 0}

    # ------------------------------------------------------------------ hooks

    @hookimpl
    def startup(self, state: State) -> None:
        if state.pools and all(pool.flat for pool in state.pools.values()):
            flat = ", ".join(repr(name) for name in state.pools)
            raise UserError(f"plugin 'power-down': only nodes can sleep, found no pool of nodes but {flat}")
        model = state.energy
        if model is not None:
            self._sleepless = {kind.name for kind in model.profile.classes if kind.sleep is None}
            if len(self._sleepless) == len(model.classes):
                raise UserError(
                    f"plugin 'power-down': no class of the energy profile {model.profile.name!r} has a sleep "
                    "state"
                )

    @hookimpl
    def decided(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, PowerUp):
                self._sent_up.update(decision.nodes)
            elif isinstance(decision, PowerDown):
                self._sent_down.update(decision.nodes)

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, NodePowerChanged):
            if event.power != "on":
                self._counts["put to sleep"] += event.node in self._sent_down
                self._sent_down.discard(event.node)
            if event.power in ("on", "waking"):
                self._counts["woken"] += event.node in self._sent_up
                self._sent_up.discard(event.node)
            if event.power == "on" and event.node in state.nodes.index:
                self._size(state)
                self._stays[state.nodes.index[event.node]] = event.time + self.options.stay
        elif isinstance(event, NodeDown | NodeUp):
            # Whatever was commanded before is over: it did not wake, or it was mended.
            name = event.node if isinstance(event, NodeDown) else event.node.name
            self._sent_down.discard(name)
            self._sent_up.discard(name)
        elif isinstance(event, DecisionFailed) and isinstance(event.decision, PowerDown | PowerUp):
            self._counts["refused"] += 1
            for node in event.decision.nodes:
                self._sent_down.discard(node)
                self._sent_up.discard(node)
                self._not_before[node] = event.time + self.options.retry
        elif isinstance(event, JobSubmitted | JobChanged):
            job = state.jobs.get(event.job.id)
            if job is not None and event.job.begin_time is not None and event.job.begin_time > state.now:
                self._coming[job.id] = job

    @hookimpl
    def control(self, state: State) -> Iterable[Decision]:
        if not len(state.nodes):
            return []
        self._size(state)
        idle = self._look(state)
        self._ahead = self._foreseen(state)
        needed = self._needed(state, idle)
        decisions: list[Decision] = []
        wake = self._to_wake(state, needed)
        if wake:
            decisions.append(PowerUp(tuple(wake), f"{len(wake)} sleeping nodes are needed"))
        sleep = self._to_sleep(state, idle, needed)
        if sleep:
            decisions.append(
                PowerDown(tuple(sleep), f"idle for {self.options.idle:g} s or more and not needed soon")
            )
        self._plan_next_look(state, idle, needed)
        return decisions

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"power-down": lambda result: self._figures(result)}

    def _figures(self, result: RunResult) -> dict[str, int]:
        return {name.replace(" ", "_"): count for name, count in self._counts.items()}

    # ------------------------------------------------------------------ what is idle, what is needed

    def _size(self, state: State) -> None:
        """Have an entry for each node of the table."""
        more = len(state.nodes.total) - len(self._idle_since)
        if more > 0:
            self._idle_since = np.concatenate((self._idle_since, np.full(more, _INF)))
            self._stays = np.concatenate((self._stays, np.full(more, -_INF)))

    def _look(self, state: State) -> np.ndarray:
        """The nodes that are idle and on, and since when each is, brought up to date."""
        table = state.nodes
        idle = (table.free.processors == table.total) & table.available & (table.total > 0)
        # A suspended job still has its memory there.
        idle &= table.lenders == 0
        off = [table.index[name] for name in table.power]
        if off:
            idle[off] = False
        since = self._idle_since
        since[~idle] = _INF
        since[idle & (since == _INF)] = state.now
        if self._sent_down:
            # A job came first, or the command was not carried out and a job was there since.
            self._sent_down = {name for name in self._sent_down if idle[table.index[name]]}
        return idle

    def _needed(self, state: State, idle: np.ndarray) -> np.ndarray:
        """For each node, from when (absolute seconds) it is needed by what is known; infinity: never."""
        table = state.nodes
        needed = np.full(len(table.total), _INF)
        for node, kept in table.reservations.items():
            starts = [r.start for r in kept if r.end > state.now]
            if starts:
                needed[node] = min(starts)
        # What the jobs that nothing is booked for can count on: on and idle, or on the way.
        spare = idle.copy()
        spare[[table.index[name] for name, power in table.power.items() if power == "waking"]] = True
        asleep = np.zeros(len(table.total), np.bool_)
        asleep[[table.index[name] for name in table.power]] = True
        asleep &= ~spare & (needed == _INF)
        spare &= needed == _INF
        #: Jobs for which there are nodes: a job of several pools needs them in one domain.
        served: set[Job] = set()
        for domain in state.domains.values():
            booked = self._booked(state, domain, needed, (spare, asleep))
            if domain.flat or not any(pool.open for pool in domain.pools):
                continue
            wanting = [(job, state.now) for job in domain.queue[: self.options.depth]]
            wanting += [(job, job.description.begin_time or 0.0) for job in self._soon(domain, state.now)]
            for job, when in wanting:
                if not (spare.any() or asleep.any()):
                    break
                if job in booked or job in served:
                    continue
                if self._claim(state, job, domain, when, needed, (spare, asleep)):
                    served.add(job)
        for name, nodes in self._ahead.items():
            here = table.pool_mask(name)
            missing = max(nodes - int((spare & here).sum()), 0)
            woken = np.flatnonzero(asleep & here)[:missing]
            needed[woken] = state.now
            asleep[woken] = False
        return needed

    def _booked(
        self, state: State, domain: Domain, needed: np.ndarray, left_over: tuple[np.ndarray, np.ndarray]
    ) -> set[Job]:
        """Mark the nodes that the domain's bookings need, which are not left over; the jobs booked."""
        index = state.nodes.index
        booked = set()
        for booking in domain.view.bookings if domain.view is not None else ():
            booked.add(booking.job)
            nodes = [index[name] for name, _ in booking.placement if name in index]
            needed[nodes] = np.minimum(needed[nodes], booking.start)
            for mask in left_over:
                mask[nodes] = False
        return booked

    def _foreseen(self, state: State) -> dict[str, int]:
        """Pools in which a job is likely to come before a node could be woken for it -> idle nodes wanted."""
        least = self.options.wake_chance
        if least is None:
            return {}
        found = {}
        for pool in state.pools.values():
            if pool.flat or not pool.open:
                continue
            chance = state.arrival_chance(pool.name, self._longest_lead(state, pool.name))
            if chance is not None and chance >= least:
                found[pool.name] = self.options.wake_nodes
        return found

    def _longest_lead(self, state: State, pool: str) -> float:
        nodes = np.flatnonzero(state.nodes.pool_mask(pool))
        return max((self._lead(state, state.nodes.names[node]) for node in nodes), default=0.0)

    def _soon(self, domain: Domain, now: float) -> list[Job]:
        """Jobs of the domain that may begin only later, by begin time."""
        gone = [
            name for name, job in self._coming.items()
            if job.status is not Status.WAITING or (job.description.begin_time or 0.0) <= now
        ]  # fmt: skip
        for name in gone:
            del self._coming[name]
        coming = [job for job in self._coming.values() if job.domain is domain and not job.barred]
        return sorted(coming, key=lambda job: (job.description.begin_time, job.seq))

    def _claim(
        self,
        state: State,
        job: Job,
        domain: Domain,
        when: float,
        needed: np.ndarray,
        left_over: tuple[np.ndarray, np.ndarray],
    ) -> bool:
        """Mark the nodes that a job without a booking will need: of the nodes left over (masks) first the
        nodes that are on, then sleepers; whether they are enough. A job of several pools needs the nodes of
        the first pool that has enough."""
        if job.status not in _WAITING:
            return False
        pools = [pool for pool in ways(job, domain) if job.request.processors <= pool.total]
        found = [_nodes_for(job.request, pool, state.nodes, left_over) for pool in pools]
        chosen = next((nodes for nodes, enough in found if enough), found[0][0] if found else [])
        needed[chosen] = np.minimum(needed[chosen], when)
        for mask in left_over:
            mask[chosen] = False
        return any(enough for _, enough in found)

    # ------------------------------------------------------------------ what is done

    def _to_wake(self, state: State, needed: np.ndarray) -> list[str]:
        table = state.nodes
        wake = []
        for name, power in table.power.items():
            node = table.index[name]
            if power == "waking" or name in self._sent_up or not table.available[node]:
                continue
            if needed[node] - self._lead(state, name) <= state.now and self._may(name, state.now):
                wake.append(name)
        return sorted(wake, key=lambda name: table.index[name])

    def _lead(self, state: State, name: str) -> float:
        return state.nodes.descriptions[name].wake_time + self.options.margin

    def _may(self, name: str, now: float) -> bool:
        return self._not_before.get(name, -_INF) <= now

    def _to_sleep(self, state: State, idle: np.ndarray, needed: np.ndarray) -> list[str]:
        now, table = state.now, state.nodes
        tired = idle & (self._idle_since + self.options.idle <= now) & (self._stays <= now)
        if not tired.any():
            return []
        staying = idle.copy()
        staying[[table.index[name] for name in self._sent_down]] = False
        room = {
            pool.name: int((staying & table.pool_mask(pool.name)).sum())
            - max(self.options.reserve, self._ahead.get(pool.name, 0))
            for pool in state.pools.values()
            if not pool.flat
        }
        sleep: list[str] = []
        for node in np.flatnonzero(tired)[::-1]:
            name = table.names[node]
            pools = [pool for pool in table.descriptions[name].pools if pool in room]
            soon = needed[node] < now + 2 * self._lead(state, name)
            if soon or name in self._sent_down or not self._may(name, now):
                continue
            if state.energy is not None and state.energy.class_of(name).name in self._sleepless:
                continue
            if any(room[pool] <= 0 for pool in pools):
                continue
            for pool in pools:
                room[pool] -= 1
            sleep.append(name)
        return sleep

    def _plan_next_look(self, state: State, idle: np.ndarray, needed: np.ndarray) -> None:
        """Have a step come when the next node is tired, or has to be woken, if nothing happens before."""
        now, table = state.now, state.nodes
        moments = np.maximum(self._idle_since + self.options.idle, self._stays)
        later = moments[idle & (moments > now)]
        due = float(later.min()) if len(later) else _INF
        for name, power in table.power.items():
            lead = needed[table.index[name]] - self._lead(state, name)
            if power != "waking" and now < lead < due:
                due = float(lead)
        for time in self._not_before.values():
            if now < time < due:
                due = time
        if self._ahead and (idle & (moments <= now)).any():
            # Some are kept on for arrivals that may become less likely.
            due = min([due, *(now + max(self._longest_lead(state, name), 60.0) for name in self._ahead)])
        if due == _INF:
            return
        for pool in state.pools.values():
            if not pool.flat:
                planned = self._due.get(pool.name, -_INF)
                if not now < planned <= due:
                    self._due[pool.name] = due
                    state.wake_at(due, pool)
                return


def _nodes_for(
    request: Request, pool: PoolState, table: NodeTable, left_over: tuple[np.ndarray, np.ndarray]
) -> tuple[list[int], bool]:
    """The nodes of a pool that a request takes of the nodes left over (masks), mask after mask, and whether
    they are enough."""
    eligible = table.eligible(request, pool.name)
    per_node = request.processors_per_node
    left = request.nodes or (-(-request.processors // per_node) if per_node else request.processors)
    chosen: list[int] = []
    for mask in left_over:
        for node in np.flatnonzero(eligible & mask).tolist():
            if left <= 0:
                break
            chosen.append(node)
            left -= 1 if request.nodes or per_node else int(table.total[node])
    return chosen, left <= 0
