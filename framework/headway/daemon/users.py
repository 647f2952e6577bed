"""What the loop of a run has beside its cluster: users' requests and what is counted; and the local socket,
through which requests come in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from headway.config import Config
from headway.config.site import ServiceConfig
from headway.errors import HeadwayError
from headway.journal.latencies import LatencyMeter
from headway.journal.planned import LivePlans
from headway.measured.measures import Measures
from headway.model.modes import Mode
from headway.service import Inbox, Server
from headway.service.answers import Answers
from headway.service.asked import Asked
from headway.service.figures import Figures
from headway.service.journal_room import JournalRoom
from headway.service.limits import Allowance, Limits
from headway.service.plans_over_time import PlansOverTime
from headway.service.protocol import Leadership, LetterCounts, Report
from headway.service.server import Bound
from headway.service.what_if import OtherPolicies, WhatIfs


class Users:
    """The requests of one run, and the socket that brings them; without a socket nobody asks."""

    def __init__(
        self,
        config: Config,
        adapter: Any,
        cluster: str,
        plugins: list[str],
        clock: Callable[[], float],
        meter: LatencyMeter,
        log: Any,
        *,
        tell_time: Callable[[float], str],
        letters: Callable[[], LetterCounts] = LetterCounts,
        leadership: Callable[[], Leadership] = Leadership,
        policies: OtherPolicies | None = None,
        before: Users | None = None,
        on_turn: Callable[[], None] = lambda: None,
    ) -> None:
        """Binds the socket at once, unless the run ``before`` has it and leaves it to this run.
        ``tell_time`` writes a time for a person; ``letters`` counts what became of letters to users;
        ``leadership`` says which of two daemons this is; ``policies`` makes schedulers for
        what-ifs; ``on_turn`` is called each time that the loop goes on.

        Raises :class:`HeadwayError` if a socket that is configured cannot be bound; a default that cannot
        be used costs the socket, not the daemon.
        """
        self._config = config.service
        self._log = log
        self._server: Server | None = None
        self._path = path = config.socket_path()
        #: What was counted, and what was planned for jobs, over all runs of this process.
        self.measures: Measures = Measures() if before is None else before.measures
        self.plans_over_time: PlansOverTime = (
            PlansOverTime(self.measures.plan_met) if before is None else before.plans_over_time
        )
        meter.on_start = self.measures.start_took
        self.inbox = self._made(
            config, adapter, cluster, plugins, clock, meter, tell_time, letters, leadership, policies,
            on_turn,
        )  # fmt: skip
        if path is None:
            return
        if before is not None and before.leaves_to(self):
            return
        try:
            self._serve(path)
        except HeadwayError as error:
            if config.service.socket is not None:
                raise
            log.warning("users cannot reach the daemon, because it has no socket", error=str(error))

    def _made(
        self,
        config: Config,
        adapter: Any,
        cluster: str,
        plugins: list[str],
        clock: Callable[[], float],
        meter: LatencyMeter,
        tell_time: Callable[[float], str],
        letters: Callable[[], LetterCounts],
        leadership: Callable[[], Leadership],
        policies: OtherPolicies | None,
        on_turn: Callable[[], None],
    ) -> Inbox:
        """Where requests wait, with what answers them."""
        room = JournalRoom(config.journal)
        answers = Answers(
            config.service.private,
            tell_time,
            partial(adapter.full_job_id, cluster=cluster),
            adapter.outages,
            adapter.starts_waiting,
            meter.summary,
            LivePlans(cluster, str(config.mode), carried_out=config.mode is Mode.DRIVE),
            self.plans_over_time,
            adapter.vital_signs,
            room.check,
            clock,
            config.cycle,
        )
        figures = Figures(
            self.measures, commands=adapter.commands_run, journal_size=room.sizes,
            users=config.metrics.users, on_turn=on_turn,
        )  # fmt: skip
        nothing = Report(str(config.mode), cluster, 0, clock(), tuple(plugins))
        return Inbox(
            adapter.wake, nothing, watching=config.mode is Mode.MONITOR, clock=clock,
            outages=adapter.outages, oddities=adapter.oddities, starts_waiting=adapter.starts_waiting,
            watts=adapter.measured_watts, latencies=meter.summary, letters=letters,
            leadership=leadership, full_job_id=answers.full_job_id, answers=answers, figures=figures,
            what_ifs=WhatIfs(policies, clock),
        )  # fmt: skip

    def leaves_to(self, other: Users) -> bool:
        """Whether the socket that is bound now is the socket that ``other`` wants."""
        return self._server is not None and self._path == other._path

    def close(self, heir: Users | None = None) -> None:
        """Answer what is left. The socket goes to the ``heir`` if it is the heir's, else away."""
        if self._server is None or self._path is None:
            self.inbox.close()
            return
        server, self._server = self._server, None
        if heir is not None and heir._server is None and heir._path == self._path:
            heir._serve(self._path, server.hand_over())
        else:
            server.close()

    def _serve(self, path: Path, bound: Bound | None = None) -> None:
        self._server = socket_server(self._config, path, self.inbox, self._log, bound)


def socket_server(
    config: ServiceConfig, path: Path, asked: Asked, log: Any, bound: Bound | None = None
) -> Server:
    """What serves the local socket as it is configured; raises what :class:`Server` does. ``asked`` has the
    answers; ``bound``: an earlier server has left the socket bound."""
    users = Allowance(config.burst, config.rate)
    operators = Allowance(config.operator_burst, config.operator_rate)
    return Server(
        path, asked, operators=config.operators, speakers=config.speakers, timeout=config.timeout,
        limits=Limits(users, operators), bound=bound, log=log,
    )  # fmt: skip
