"""A run of the daemon that is complete before it begins.

Everything that a run reads and builds is read and built by :func:`make_run`: plugin files, the files that
options name, the adapter and its keys, the cluster, the scheduler with what its plugins knew, the journal and
the socket. What is wrong with any of it is an error there, while the run before is still in force. What a
made run does from then on goes by what is in memory, so a file that changes or vanishes later changes
nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog

from headway.adapter import ClusterAdapter, Seen
from headway.config import Config, live_adapter
from headway.daemon.clock import RunClock
from headway.daemon.leadership import new_name, next_epoch, own_epoch, saved
from headway.daemon.memory import remembered, states_at_the_end, states_now
from headway.daemon.notifying import Life
from headway.daemon.other_policy import ConfiguredPolicies
from headway.daemon.standing import ALONE, Standing
from headway.daemon.users import Users
from headway.engine import Engine, Stopped
from headway.errors import Failure, UserError
from headway.journal import Journal, RunInfo
from headway.journal.latencies import SAVED_AS, LatencyMeter
from headway.letters import Post
from headway.model import ClusterDescription
from headway.model.modes import Mode
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway.version import __version__

AnswerT = TypeVar("AnswerT")
#: While an engine runs in it, signals are the engine's.
OrdersTo = Callable[[Engine], AbstractContextManager[None]]


class Unreached(Failure):
    """The cluster did not answer while a run was made."""


@dataclass
class MadeRun:
    """One run, ready to begin."""

    config: Config
    adapter: Any
    plugins: Plugins
    cluster: ClusterDescription
    scheduler: Scheduler
    journal: Journal
    users: Users
    clock: RunClock
    meter: LatencyMeter
    post: Post
    states: dict[str, Any]
    #: The number of the daemon among all that drove this cluster, and its name; 0: none ever did.
    epoch: int
    name: str
    log: Any
    standing: Standing = ALONE
    #: It has told the cluster its epoch.
    leads: bool = False

    def serve(
        self,
        orders_to: OrdersTo,
        succeeds: Callable[[Engine, Stopped], bool],
        each_cycle: Callable[[Engine], None],
        life: Life,
    ) -> Stopped:
        """Run until told to stop, or until the next run is ready; returns why it ended.

        ``succeeds``: make the next run, and say whether it is ready; see :class:`headway.engine.Engine`.
        ``each_cycle`` is called after each cycle; ``life`` is told that the run has begun.
        """
        monitor = self.config.mode is Mode.MONITOR
        run_id = self.journal.begin_run(self._info())
        inbox = self.users.inbox
        inbox.began(run_id)
        engine = Engine(
            self.adapter, self.scheduler, self.journal, mode=self.config.mode, requests=inbox, log=self.log,
            latencies=None if monitor else self.meter, letters=self.post,
            on_cycle=lambda _: each_cycle(engine), succeeds=lambda why: succeeds(engine, why),
            may_act=self.standing.check, run=run_id, tells_events=self.config.log.level == "debug",
        )  # fmt: skip
        self.post.use(self.config.letters)
        self.log.info("started", mode=str(self.config.mode), cluster=self.cluster.name,
                      plugins=list(self.plugins.by_name),
                      pools=[p.name for p in self.cluster.pools], nodes=len(self.cluster.nodes))  # fmt: skip
        reason = None
        try:
            if not monitor:
                self.adapter.lead(self.epoch, self.name)
                self.leads = True
            self.users.measures.leads(0 if monitor else self.epoch, drives=not monitor)
            life.runs(inbox.pulse, inbox.line)
            self.clock.when_lost(engine.begin_anew)
            with orders_to(engine):
                reason = engine.run()
        finally:
            said = str(reason) if reason is not None else f"failed: {sys.exc_info()[1]}"
            self.journal.end_run(said, ended_at=self.clock())
        self.log.info("ended", reason=str(reason), cycles=self.scheduler.cycles,
                      plugin_seconds={k: round(v, 3) for k, v in self.scheduler.seconds.items()})  # fmt: skip
        return reason

    def close(self, heir: MadeRun | None = None) -> None:
        """Give up what it has, but what it shares with its ``heir``: journal, socket and post."""
        with ExitStack() as stack:
            if heir is None:
                # Last of all: a daemon that follows need not wait for letters.
                stack.callback(self.post.close)
                stack.callback(self.standing.release)
            if heir is None or heir.journal is not self.journal:
                stack.callback(self.journal.close)
            stack.callback(self.adapter.close)
            if heir is None and self.leads:
                stack.callback(self.adapter.leave)
            stack.callback(self.users.close, heir.users if heir is not None else None)

    def _info(self) -> RunInfo:
        return RunInfo(
            self.config.mode,
            self.clock(),
            __version__,
            self.config.text,
            self.config.seed,
            self.cluster,
            {**self.states, **self.plugins.recorded(), **saved(self.epoch)},
        )


def make_run(
    config: Config,
    plugin_files: tuple[Path, ...],
    tell_time: Callable[[float], str],
    before: MadeRun | None = None,
    standing: Standing = ALONE,
    on_turn: Callable[[], None] = lambda: None,
) -> MadeRun:
    """A run under ``config``, complete. ``tell_time`` writes moments in reasons; ``standing`` is this
    daemon's beside another; ``on_turn`` is called each time that its loop goes on.

    ``before`` is the run that it is to follow, which has saved what its plugins know; until the new run
    begins it stays as it is. Raises :class:`Unreached` if the cluster does not answer, else a
    :class:`headway.errors.HeadwayError` that says what is wrong.
    """
    log = structlog.get_logger("headway")
    monitor = config.mode is Mode.MONITOR
    with ExitStack() as made:
        catalogue = Catalogue(plugin_files)
        configs = catalogue.enabled(config.plugin_configs())
        clock = RunClock(log=log)
        adapter = live_adapter(config, read_only=monitor, clock=clock)
        made.callback(adapter.close)
        plugins = _introduced(config, catalogue, configs, adapter)
        if before is not None and before.config.journal == config.journal:
            journal, states = before.journal, states_now(before.journal)
        else:
            journal = standing.open(config.journal)
            made.callback(journal.close_unused)
            if not journal.verify(standing.look_for_damage):
                log.info("the journal is large; damage was looked for in a part of it")
            states = states_at_the_end(journal, catalogue, log, config.adapters)
        _remind(config, adapter, journal, states, clock())
        cluster = config.with_energy(_asked(adapter.describe))
        epoch = _epoch(adapter, journal, before, standing, monitor=monitor)
        catalogue.check_energy(configs, cluster)
        meter = LatencyMeter(states.get(SAVED_AS), cluster_of=_cluster_of(config))
        scheduler = _scheduler(config, cluster, plugins, adapter, tell_time, states)
        post = before.post if before is not None else Post(log)
        users = Users(
            config, adapter, cluster.name, list(plugins.by_name), clock, meter, log, tell_time=tell_time,
            letters=post.counts, leadership=standing.leadership,
            policies=ConfiguredPolicies(config, catalogue, configs, plugins, adapter.capabilities, tell_time),
            before=before.users if before is not None else None, on_turn=on_turn,
        )  # fmt: skip
        made.pop_all()
        return MadeRun(
            config, adapter, plugins, cluster, scheduler, journal, users, clock, meter, post, states, epoch,
            before.name if before is not None else new_name(), log, standing,
        )  # fmt: skip


def _scheduler(
    config: Config, cluster: ClusterDescription, plugins: Plugins, adapter: ClusterAdapter,
    tell_time: Callable[[float], str], states: dict[str, Any],
) -> Scheduler:  # fmt: skip
    """The scheduler, with what its plugins knew."""
    return Scheduler(
        cluster, plugins, seed=config.seed, capabilities=adapter.capabilities, clock=tell_time, saved=states,
        monitor=config.mode is Mode.MONITOR, cycle=config.cycle,
        wait_for_down_nodes=config.wait_for_down_nodes, tiers=config.tiers,
    )  # fmt: skip


def _introduced(
    config: Config, catalogue: Catalogue, configs: Sequence[PluginConfig], adapter: ClusterAdapter
) -> Plugins:
    """The plugins; the adapter has their handlers and knows their words. :class:`UserError` if no policy is
    among them."""
    gives = catalogue.gives(configs) if adapter.moves else frozenset()
    plugins = Plugins.load(configs, catalogue, adapter.capabilities | gives)
    adapter.use_handlers(plugins.handlers(), gives)
    adapter.tell_words(plugins.job_words)
    if plugins.requiring("policy"):
        adapter.tell_policy()
    if not plugins.implementations("schedule"):
        raise UserError(f"{config.source}: plugins: no policy is enabled (such as easy)")
    return plugins


def _remind(
    config: Config, adapter: ClusterAdapter, journal: Journal, states: Mapping[str, Any], now: float
) -> None:
    """Tell the adapter what the runs before had under way."""
    memory = remembered(journal, states, now)
    adapter.asked_before(memory.starts)
    adapter.submitted_before(journal.first_submissions)
    adapter.wished_before(memory.frequencies)
    adapter.tiers_before(memory.tiers)
    adapter.moving_before(memory.moves)
    if config.datasets:
        adapter.replicas_before(journal.replicas())


def _epoch(
    adapter: ClusterAdapter, journal: Journal, before: MadeRun | None, standing: Standing, *, monitor: bool
) -> int:
    """The epoch of a run: that of its daemon, a new one where it begins to drive, or the last one that its
    journal knows."""
    own = max(own_epoch(journal), standing.epoch - 1)
    if before is not None and own <= before.epoch:
        own = before.epoch
        if before.config.mode is not Mode.MONITOR:
            return own
    if monitor:
        return own
    if standing.takes_over:
        # However alive that daemon seems: what it writes is refused from now on.
        seen = Seen(_asked(partial(adapter.highest_epoch, above=None)).epoch)
    else:
        seen = _asked(partial(adapter.highest_epoch, above=own))
    epoch = next_epoch(own, seen)
    standing.drives_as(epoch)
    return epoch


def _asked(question: Callable[[], AnswerT]) -> AnswerT:
    """What the cluster says."""
    try:
        return question()
    except Failure as error:
        raise Unreached(str(error)) from error


def _cluster_of(config: Config) -> Callable[[str], str]:
    """Job id -> the cluster of a federation that it belongs to; "" where there is only one."""
    return (lambda job_id: job_id.partition(":")[0]) if config.clusters else (lambda job_id: "")
