"""The local socket of a run: users' requests come in through it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from headway.config import Config
from headway.errors import HeadwayError
from headway.journal.latencies import LatencyMeter
from headway.journal.planned import LivePlans
from headway.model.modes import Mode
from headway.service import Inbox, Server
from headway.service.answers import Answers
from headway.service.limits import Allowance, Limits
from headway.service.plans_over_time import PlansOverTime
from headway.service.protocol import Leadership, LetterCounts, Report
from headway.service.server import Bound


class Users:
    """The requests of one run, and the socket that brings them; without a socket there are none."""

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
        before: Users | None = None,
    ) -> None:
        """Binds the socket at once, unless the run ``before`` has it and leaves it to this run.
        ``tell_time`` writes a time for a person; ``letters`` counts what became of letters to users;
        ``leadership`` says which of two daemons this is.

        Raises :class:`HeadwayError` if a socket that is configured cannot be bound; a default that cannot
        be used costs the socket, not the daemon.
        """
        self.inbox: Inbox | None = None
        self._config = config.service
        self._log = log
        self._server: Server | None = None
        self._path = path = config.socket_path()
        #: What was planned for jobs, over all runs of this process.
        self.plans_over_time: PlansOverTime = PlansOverTime() if before is None else before.plans_over_time
        if path is None:
            return
        answers = Answers(
            config.service.private,
            tell_time,
            partial(adapter.full_job_id, cluster=cluster),
            adapter.outages,
            adapter.starts_waiting,
            meter.summary,
            LivePlans(cluster, str(config.mode), carried_out=config.mode is Mode.DRIVE),
            self.plans_over_time,
        )
        nothing = Report(str(config.mode), cluster, 0, clock(), tuple(plugins))
        self.inbox = Inbox(
            adapter.wake, nothing, watching=config.mode is Mode.MONITOR, clock=clock,
            outages=adapter.outages, oddities=adapter.oddities, starts_waiting=adapter.starts_waiting,
            watts=adapter.measured_watts, latencies=meter.summary, letters=letters,
            leadership=leadership, full_job_id=answers.full_job_id, answers=answers,
        )  # fmt: skip
        if before is not None and before.leaves_to(self):
            return
        try:
            self._serve(path)
        except HeadwayError as error:
            if config.service.socket is not None:
                raise
            log.warning("users cannot reach the daemon, because it has no socket", error=str(error))
            self.inbox = None

    def leaves_to(self, other: Users) -> bool:
        """Whether the socket that is bound now is the socket that ``other`` wants."""
        return self._server is not None and self._path == other._path

    def close(self, heir: Users | None = None) -> None:
        """Answer what is left. The socket goes to the ``heir`` if it is the heir's, else away."""
        if self._server is None or self._path is None:
            return
        server, self._server = self._server, None
        if heir is not None and heir._server is None and heir._path == self._path:
            heir._serve(self._path, server.hand_over())
        else:
            server.close()

    def _serve(self, path: Path, bound: Bound | None = None) -> None:
        assert self.inbox is not None
        config = self._config
        users = Allowance(config.burst, config.rate)
        operators = Allowance(config.operator_burst, config.operator_rate)
        self._server = Server(
            path,
            self.inbox,
            operators=config.operators,
            speakers=config.speakers,
            timeout=config.timeout,
            limits=Limits(users, operators),
            bound=bound,
            log=self._log,
        )
