"""The calendar: maintenance windows and standing reservations that repeat, kept free of jobs in time.

After the Maui administrator's guide, "Standing Reservations" (SRCFG: DAYS, STARTTIME, ENDTIME, TASKCOUNT,
HOSTLIST, USERLIST), Slurm's page on reservations (flags MAINT, DAILY, WEEKLY) and PBS's ``dedicated_time``.

Every occurrence within ``horizon`` is kept as a reservation is: no job starts that is expected to run into
it, bookings go around it, and it drains by itself. A window without users (maintenance) is known to headway
alone, which suffices where it starts all jobs, and needs nothing of the batch system. A window for
``users`` or ``accounts`` (a standing reservation) is made in the batch system under its name, so that they
can ask for it. Only the next occurrence is made; later occurrences are kept as for maintenance.

Decisions on what is left open:

- Jobs that run already when a window comes into the calendar run on; the rest of it is kept.
- What a job is expected to run for counts: its limit, or a prediction where a plugin predicts.
- A reservation that the batch system refuses is asked for again every five minutes, and kept by headway
  meanwhile.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
import pydantic

from headway.decisions import Decision, Reserve, Unreserve
from headway.errors import UserError, nearest
from headway.events import DecisionFailed, Event, NodeUp, PoolChanged
from headway.hookspecs import Plugin, hookimpl
from headway.inputs.durations import WholeSeconds
from headway.model import Reservation
from headway.plugins import Traits
from headway.state import State
from headway_plugins.calendars.options import WindowsOptions
from headway_plugins.calendars.windows import Window

_RETRY = 300.0
_INF = float("inf")


class CalendarOptions(WindowsOptions):
    """Options of the calendar."""

    horizon: WholeSeconds = pydantic.Field(
        default=30 * 86400,
        description="time before a window from which it is kept free; longer than any job runs",
    )


class Calendar(Plugin):
    """Maintenance windows and standing reservations by day, hour and date."""

    Options = CalendarOptions
    traits = Traits(observes=(NodeUp, PoolChanged, DecisionFailed))

    def __init__(self, options: CalendarOptions) -> None:
        super().__init__(options)
        self._zone = zoneinfo.ZoneInfo(options.zone)
        #: When to look at the calendar again.
        self._due = -_INF
        #: What headway keeps by itself, by id; and what the batch system was asked for, by name.
        self._kept: dict[str, Reservation] = {}
        self._asked: dict[str, Reservation] = {}
        self._retry: dict[str, float] = {}
        #: Standing reservations of an earlier run.
        self._known: set[str] = set()
        #: Windows of what a machine that stands in for the site's does not have.
        self._left_out: set[str] = set()

    # ------------------------------------------------------------------ news

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        for name, window in self.options.windows.items():
            where = f"calendar: windows: {name}"
            if state.cluster.stands_in and self._lacks(window, state):
                state.notices.append(
                    f"{where}: the window is about no pool or node of this dry run, so nothing is kept free"
                )
                self._left_out.add(name)
                continue
            if window.pool is not None and window.pool not in state.pools:
                hint = nearest(window.pool, state.pools)
                raise UserError(
                    f"{where}: pool: expected a pool of the cluster, found {window.pool!r}.{hint}"
                )
            for node in window.nodes:
                if node not in state.nodes.index and not state.cluster.stands_in:
                    hint = nearest(node, state.nodes.index)
                    raise UserError(f"{where}: nodes: expected nodes of the cluster, found {node!r}.{hint}")
            if window.processors is not None:
                pools = [state.pools[window.pool]] if window.pool is not None else list(state.pools.values())
                if any(not pool.flat for pool in pools):
                    raise UserError(f"{where}: processors: expected nodes, since the pool consists of nodes")
                if any(window.processors > pool.total for pool in pools):
                    raise UserError(
                        f"{where}: processors: expected at most the processors of the pool, found "
                        f"{window.processors}"
                    )
            if (window.users or window.accounts) and not {Reserve, Unreserve} <= capabilities:
                raise UserError(
                    f"{where}: users and accounts need reservations, which the cluster's adapter cannot make"
                )

    @staticmethod
    def _lacks(window: Window, state: State) -> bool:
        """Whether nothing of what a window is of is there."""
        if window.pool is not None and window.pool not in state.pools:
            return True
        return bool(window.nodes) and not any(node in state.nodes.index for node in window.nodes)

    @hookimpl
    def observe(self, event: Event) -> None:
        if isinstance(event, NodeUp | PoolChanged):
            self._due = -_INF
        elif isinstance(event, DecisionFailed) and isinstance(event.decision, Reserve):
            name = event.decision.reservation.id
            if name in self._asked:
                del self._asked[name]
                self._retry[name] = event.time + _RETRY
                self._due = -_INF

    # ------------------------------------------------------------------ keeping

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        if state.now < self._due:
            return
        wanted: dict[str, Reservation] = {}
        standing: dict[str, Reservation] = {}
        due = state.now + 86400.0
        for name, window in self.options.windows.items():
            if name in self._left_out:
                continue
            for reservation in self._of(name, window, state):
                due = min(due, reservation.end)
                if (window.users or window.accounts) and name not in standing:
                    standing[name] = self._named(name, window, reservation)
                else:
                    wanted[reservation.id] = reservation
        for name, reservation in standing.items():
            retry = self._retry.get(name, -_INF)
            if self._asked.get(name) == reservation:
                continue
            if retry > state.now:
                due = min(due, retry)
                own = msgspec.structs.replace(reservation, id=f"calendar {name}", users=(), accounts=())
                wanted[own.id] = own
            else:
                yield from self._ask(name, reservation, state)
        for gone in [name for name in self._known if name not in standing]:
            self._known.discard(gone)
            if gone in state.reservations and self._asked.pop(gone, None) is None:
                yield Unreserve(gone, "the window is not in the calendar any more")
        self._keep(wanted, state)
        self._due = due
        for pool in state.pools.values():
            state.wake_at(due, pool)
            break

    def _ask(self, name: str, reservation: Reservation, state: State) -> Iterator[Decision]:
        self._asked[name] = reservation
        self._known.add(name)
        self._retry.pop(name, None)
        there = state.reservations.get(name)
        if there is not None and (there.end, there.nodes, there.processors) == (
            reservation.end, reservation.nodes, reservation.processors,
        ):  # fmt: skip
            # An earlier run made it.
            return
        yield Reserve(reservation, "the window is in the calendar")

    def _keep(self, wanted: dict[str, Reservation], state: State) -> None:
        """Keep these, and nothing else."""
        for name in [name for name, kept in self._kept.items() if wanted.get(name) != kept]:
            state.keep_no_more(self._kept.pop(name).id)
        for name, reservation in wanted.items():
            if name not in self._kept:
                self._kept[name] = reservation
                state.keep_free(reservation)

    def _of(self, name: str, window: Window, state: State) -> Iterator[Reservation]:
        """What is kept of the cluster for each occurrence from now on."""
        now = state.now + state.epoch
        ends = now + self.options.horizon
        for begin, end in window.occurrences(now, ends, self._zone, self.options.holidays):
            day = datetime.fromtimestamp(begin, self._zone).strftime("%Y-%m-%d")
            parts = list(self._parts(window, state))
            for number, (pool, processors, nodes) in enumerate(parts):
                suffix = f" {pool}" if number else ""
                yield Reservation(
                    id=f"calendar {name} {day}{suffix}", start=begin - state.epoch, end=end - state.epoch,
                    pool=pool, processors=processors, nodes=nodes, ours=True,
                    reason=f"{name} of the calendar",
                )  # fmt: skip

    def _parts(self, window: Window, state: State) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        """``(pool, processors, nodes)`` of each flat pool, and of all nodes together."""
        pools = [state.pools[window.pool]] if window.pool in state.pools else list(state.pools.values())
        nodes: list[str] = []
        for pool in pools:
            if pool.flat and not window.nodes:
                if pool.total:
                    yield pool.name, min(window.processors or pool.total, pool.total), ()
                continue
            mask = state.nodes.pool_mask(pool.name)
            nodes += [name for at, name in enumerate(state.nodes.names) if mask[at]]
        if window.nodes:
            nodes = [name for name in window.nodes if name in state.nodes.index]
        if nodes:
            yield window.pool or "", 0, tuple(dict.fromkeys(nodes))

    def _named(self, name: str, window: Window, reservation: Reservation) -> Reservation:
        """The same under a name that users can type, for them."""
        return Reservation(
            id=name, start=reservation.start, end=reservation.end, pool=reservation.pool,
            processors=reservation.processors, nodes=reservation.nodes, users=tuple(window.users),
            accounts=tuple(window.accounts), ours=True, reason=reservation.reason,
        )  # fmt: skip

    # ------------------------------------------------------------------ over a restart

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {"standing": sorted(self._known)}

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._known = set(saved["standing"])
