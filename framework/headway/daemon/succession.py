"""One run of the daemon after another.

A run that is to be followed by another (a reload, or a wall clock that was set back) stays in force until the
next one is complete: see :mod:`headway.daemon.made`. What is wrong with the next one is logged, and costs
nothing. A cluster that does not answer just then is waited for, while the run that is in force goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from headway.config import Adapters, Config, LogConfig, load_config
from headway.daemon.made import MadeRun, OrdersTo, Unreached, make_run
from headway.daemon.notifying import Life
from headway.daemon.standing import ALONE, Standing
from headway.engine import Engine, Stopped
from headway.errors import HeadwayError, UserError
from headway.model.modes import Mode

#: Between two attempts to make a run of a cluster that did not answer, at least; the same at a take-over,
#: while nobody schedules.
RETRY_SECONDS, _AT_ONCE = 2.0, 0.1
#: What the log says of it.
_NO_ANSWER = "the cluster does not answer; waiting for it"


class Succession:
    """Runs under the configuration of one file, as it is when it is read."""

    def __init__(
        self,
        config: Config,
        path: Path,
        plugin_files: tuple[Path, ...],
        orders_to: OrdersTo,
        tell_time: Callable[[float], str],
        *,
        mode: Mode | None = None,
        adapter_files: tuple[Path, ...] = (),
        standing: Standing = ALONE,
        life: Life | None = None,
        set_up_log: Callable[[LogConfig], None] = lambda _: None,
    ) -> None:
        """``mode``: of every run, whatever the file at ``path`` says; None: as it says. ``plugin_files`` and
        ``adapter_files`` are read again for each run that a reload begins. ``standing``: beside another
        daemon, of all runs. ``life`` tells the service manager how it goes; None: as the environment
        says. ``set_up_log`` has the log as a configuration says that is read again."""
        self._set_up_log = set_up_log
        self._life = life if life is not None else Life()
        #: Whether a first run could be made.
        self.began = False
        #: Of the run that is in force, or was last.
        self.config = config
        self._path = path
        self._plugin_files = plugin_files
        self._adapter_files = adapter_files
        self._orders_to = orders_to
        self._tell_time = tell_time
        self._mode = mode
        self._standing = standing
        self._log: Any = structlog.get_logger("headway")
        #: What the next run is for, while the cluster is waited for.
        self._waits: Stopped | None = None
        #: When that was tried last (monotonic clock).
        self._tried = 0.0
        self._next: MadeRun | None = None

    def run(self) -> None:
        """Until told to stop. Raises what the first run cannot be made for, and what ends a run."""
        current = self._make_first()
        self.began = True
        try:
            while True:
                reason = current.serve(
                    self._orders_to,
                    partial(self._succeeds, current),
                    partial(self._try_again, current),
                    self._life,
                )
                if reason not in (Stopped.RELOAD, Stopped.CLOCK) or self._next is None:
                    return
                before, current, self._next = current, self._next, None
                self.config = current.config
                self._set_up_log(self.config.log)
                before.close(current)
        finally:
            self._life.stops()
            self._drop_next(current)
            current.close()

    def _make_first(self) -> MadeRun:
        """The first run; a cluster that does not answer is asked for as long as the standing says."""
        end, is_told = time.monotonic() + self._standing.asks_for, False
        while True:
            try:
                return self._make(self.config)
            except Unreached as error:
                self._standing.check()
                if time.monotonic() >= end:
                    raise
                if not is_told:
                    self._log.error(_NO_ANSWER, error=str(error))
                is_told = True
            time.sleep(_AT_ONCE)

    def _make(self, config: Config, before: MadeRun | None = None) -> MadeRun:
        return make_run(
            config, self._plugin_files, self._tell_time, before, self._standing, self._life.turned
        )

    def _succeeds(self, current: MadeRun, engine: Engine, why: Stopped) -> bool:
        """Make the run that is to follow; False if it cannot be made, or not yet, which is logged."""
        if why is not Stopped.RELOAD:
            return self._make_next(current, engine, why)
        self._life.reloads()
        made = self._make_next(current, engine, why)
        if not made:
            self._life.stays()
        return made

    def _make_next(self, current: MadeRun, engine: Engine, why: Stopped) -> bool:
        waited, self._waits = self._waits, None
        self._drop_next(current)
        config = current.config
        try:
            if why is Stopped.RELOAD:
                config = self._read_again()
            engine.remember()
            self._next = self._make(config, current)
        except Exception as error:
            if isinstance(error, Unreached) and _same_clusters(config, current.config):
                self._waits, self._tried = why, time.monotonic()
                if waited is None:
                    self._log.error(_NO_ANSWER, error=str(error))
            else:
                self._stays_in_force(why, error)
            return False
        if why is Stopped.RELOAD:
            self._log.info("configuration read again", path=str(self._path))
        return True

    def _drop_next(self, current: MadeRun) -> None:
        """The next run that was made will not be: there is a newer order."""
        dropped, self._next = self._next, None
        if dropped is not None:
            dropped.close(current)

    def _read_again(self) -> Config:
        fresh = load_config(self._path, Adapters.with_files(self._adapter_files))
        if fresh.mode is Mode.DRY_RUN:
            raise UserError(f"{self._path}: mode: a running daemon cannot change to dry-run")
        if self._standing is not ALONE and fresh.journal != self.config.journal:
            raise UserError(
                f"{self._path}: journal: a daemon with a stand-by cannot change its journal while it runs"
            )
        if self._mode is not None:
            fresh.mode = self._mode
        return fresh

    def _try_again(self, current: MadeRun, engine: Engine) -> None:
        """After a cycle: the cluster that was waited for may answer again."""
        if self._waits is None or time.monotonic() < self._tried + RETRY_SECONDS:
            return
        if len(current.adapter.outages()) < len(current.config.clusters_by_place()):
            engine.reload() if self._waits is Stopped.RELOAD else engine.begin_anew()

    def _stays_in_force(self, why: Stopped, error: Exception) -> None:
        unforeseen = None if isinstance(error, HeadwayError) else error
        found = str(error) if unforeseen is None else f"{type(error).__name__}: {error}"
        if why is Stopped.RELOAD:
            wrong = "the new configuration is wrong; the old configuration stays in force"
            self._log.error(wrong, error=found, exc_info=unforeseen)
        else:
            slow = "no run with the new time can begin; the old run continues at half the speed"
            self._log.error(slow, error=found, exc_info=unforeseen)


def _same_clusters(one: Config, other: Config) -> bool:
    return one.clusters_by_place() == other.clusters_by_place()
