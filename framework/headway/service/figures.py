"""What the daemon's metrics are made of: what was counted, and what can be asked at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from headway.adapter import CommandCount
from headway.inquiry.cycles import Cycle
from headway.measured.measures import Measures
from headway.measured.report import LetterCount, Measured, OddityCount, OutageSeconds
from headway.model.modes import Mode
from headway.scheduler import Scheduler
from headway.service.protocol import Report


class Figures:
    """The figures of one run. Told on any thread."""

    def __init__(
        self,
        measures: Measures | None = None,
        *,
        commands: Callable[[], Sequence[CommandCount]] = tuple,
        journal_size: Callable[[], tuple[int | None, int | None]] = lambda: (None, None),
        users: bool = False,
        on_turn: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``measures`` counts; ``commands`` are the programs that were run; ``journal_size`` the bytes that
        the journal has, and that are free there, as far as that is known. ``users``: users are told apart, to
        operators. ``on_turn`` is called each time that the loop goes on, on its thread."""
        self._measures = measures if measures is not None else Measures(clock)
        self._commands = commands
        self._journal_size = journal_size
        self._users = users
        self._on_turn = on_turn

    def turned(self) -> None:
        """The loop goes on."""
        self._measures.turned()
        self._on_turn()

    def cycle(self, cycle: Cycle, scheduler: Scheduler) -> None:
        """A cycle is over."""
        self._measures.cycle(cycle, scheduler)

    def told(self, status: Report, limited: int, *, users: bool) -> Measured:
        """All of them. ``status``: how the daemon is; ``limited``: requests that were refused as too many;
        ``users``: the asking user may know of other users."""
        size, free = self._journal_size()
        letters = status.letters
        counted = self._measures.told(users=self._users and users)
        if status.mode == Mode.MONITOR:
            unapplied = [msgspec.structs.replace(one, outcome="not applied") for one in counted.decisions]
            counted = msgspec.structs.replace(counted, decisions=tuple(unapplied))
        return msgspec.structs.replace(
            counted,
            mode=status.mode,
            cluster=status.cluster,
            run=status.run,
            commands=tuple(self._commands()),
            outages=tuple([OutageSeconds(one.cluster, one.since) for one in status.outages]),
            oddities=tuple([OddityCount(one.cluster, one.what, one.count) for one in status.oddities]),
            problems=status.problems_in_all,
            requests_limited=limited,
            letters=tuple(
                [LetterCount(name, getattr(letters, name)) for name in ("delivered", "failed", "refused")]
            ),
            journal_bytes=size,
            journal_free_bytes=free,
            watts=float(sum(status.watts.values())),
            watts_nodes=len(status.watts),
            power=dict(status.power),
        )
