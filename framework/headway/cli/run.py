"""``headway run``: the daemon."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.common import examples, plugin_option, required_config_option, set_up_log, wall_clock
from headway.errors import Damaged, Failure, HeadwayError, Held, UserError

if TYPE_CHECKING:
    from headway.config import Config
    from headway.engine import Engine, Stopped
    from headway.latencies import LatencyMeter
    from headway.model import ClusterDescription
    from headway.service import Inbox

#: Between two attempts to reach a cluster that does not answer after a reload.
RETRY_SECONDS = 2.0
#: Starts that were decided before this are not on their way any more, seconds.
RECENT = 86400.0
#: The tiers of jobs that were started so long ago are still looked for in the journal, seconds.
TIERS = 30 * 86400.0
#: How long a run's beginning may take to look for damage in the journal, seconds.
LOOK_FOR_DAMAGE = 5.0


@click.command(
    "run",
    epilog=examples(
        "headway run -c site.yaml --monitor    decide and write down, change nothing",
        "headway run -c site.yaml              as the configuration's mode says",
    ),
)
@required_config_option
@click.option(
    "--monitor", is_flag=True, help="Decide and journal, apply nothing, whatever the configuration says."
)
@plugin_option
@click.option("--out", type=click.Path(path_type=Path), help="In mode dry-run: directory for the results.")
def command(config_path: Path, monitor: bool, plugin_files: tuple[Path, ...], out: Path | None) -> None:
    """Schedule the configured cluster until stopped.

    SIGTERM and SIGINT end it after the current cycle; SIGHUP makes it read the configuration again. The
    log goes to standard error. In mode dry-run the trace that the configuration names (emulation.trace,
    relative to the configuration file) is run in the emulated cluster instead.
    """
    from headway.config import load_config
    from headway.engine import Mode

    config = load_config(config_path)
    if monitor:
        config.mode = Mode.MONITOR
    if config.mode is Mode.DRY_RUN:
        _dry_run(config, config_path, plugin_files, out)
        return
    if out is not None:
        raise click.UsageError(f"--out goes with mode dry-run; {config.source} says mode {config.mode}")
    set_up_log(config.log)
    with Orders() as orders:
        _serve_until_stopped(config, config_path, monitor, plugin_files, orders)


def _serve_until_stopped(
    config: Config, path: Path, monitor: bool, plugin_files: tuple[Path, ...], orders: Orders
) -> None:
    """One run after another: each reload ends one and begins the next."""
    from headway.engine import Stopped

    before: Config | None = None
    patient = False
    while True:
        try:
            reason = serve(config, plugin_files, orders, patient=patient)
        except (UserError, Unreached, Held) as error:
            # What only the adapter or the journal can find wrong, such as a partition that Slurm has not.
            if before is None:
                raise
            _stays_in_force(error)
            config, before, patient = before, None, True
            continue
        if reason is Stopped.CLOCK:
            before, patient = None, True
            continue
        if reason is not Stopped.RELOAD:
            return
        fresh = _reloaded(config, path, monitor, plugin_files)
        config, before = fresh, config if fresh is not config else None
        # The cluster that was driven until now is waited for; another one must answer.
        patient = before is None or config.clusters_by_place() == before.clusters_by_place()


def _dry_run(config: Config, config_path: Path, plugin_files: tuple[Path, ...], out: Path | None) -> None:
    from headway.cli.dry_run import command as dry_run

    if config.emulation.trace is None:
        raise UserError(
            f"{config.source}: emulation.trace: expected a trace file for mode dry-run, found none"
        )
    arguments = ["--trace", str(config.trace_path()), "-c", str(config_path)]
    for path in plugin_files:
        arguments += ["--plugin", str(path)]
    if out is not None:
        arguments += ["--out", str(out)]
    dry_run.main(arguments, standalone_mode=False)


class Unreached(Failure):
    """The cluster did not answer at the beginning of a run."""


class Orders:
    """What signals asked for: SIGTERM and SIGINT to stop, SIGHUP to reload.

    A context manager around all runs, so that a signal that comes between two of them (while a
    configuration is read again) neither ends the process nor is lost: the next run is told.
    """

    def __init__(self) -> None:
        self.stop = False
        self._reload = False
        self._engine: Engine | None = None

    def __enter__(self) -> Orders:
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        self._before = {number: signal.signal(number, self._take) for number in numbers}
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: object) -> None:
        if number == signal.SIGHUP:
            self._reload = True
        else:
            self.stop = True
        self._pass_on()

    def _pass_on(self) -> None:
        if self._engine is None:
            return
        if self.stop:
            self._engine.stop()
        elif self._reload:
            self._reload = False
            self._engine.reload()

    @contextmanager
    def to(self, engine: Engine) -> Iterator[None]:
        """Give orders to this engine, at first those that came before."""
        self._engine = engine
        self._pass_on()
        try:
            yield
        finally:
            self._engine = None


def serve(
    config: Config, plugin_files: tuple[Path, ...], orders: Orders, *, patient: bool = False
) -> Stopped:
    """One run of the daemon under one configuration; returns why it ended.

    ``patient``: wait for a cluster that does not answer at the beginning, because it was driven until
    now; else that is :class:`Unreached`.
    """
    import structlog

    from headway import __version__, inputs
    from headway.clock import RunClock
    from headway.config import live_adapter
    from headway.engine import Engine, Mode, Stopped
    from headway.journal import Journal, RunInfo
    from headway.latencies import SAVED_AS, LatencyMeter
    from headway.plugins import Catalogue, Plugins
    from headway.scheduler import Scheduler

    log = structlog.get_logger("headway")
    monitor = config.mode is Mode.MONITOR
    catalogue = Catalogue(plugin_files)
    configs = catalogue.enabled(config.plugin_configs())
    clock = RunClock(log=log)
    with live_adapter(config, read_only=monitor, clock=clock) as adapter:
        gives = catalogue.gives(configs) if adapter.moves else frozenset()
        plugins = Plugins.load(configs, catalogue, adapter.capabilities | gives)
        adapter.use_handlers(plugins.handlers(), gives)
        if plugins.need_policy:
            adapter.tell_policy()
        if not plugins.implementations("schedule"):
            raise UserError(f"{config.source}: plugins: no policy is enabled (such as easy)")
        with Journal.open(config.journal) as journal:
            if not journal.verify(LOOK_FOR_DAMAGE):
                log.info("the journal is large; damage was looked for in a part of it")
            saved = {**_saved_states(journal, log), **_learned_since(journal, catalogue, log)}
            recent = clock() - RECENT
            adapter.asked_before(journal.recent_starts(recent))
            adapter.submitted_before(journal.first_submissions)
            adapter.wished_before(journal.recent_frequencies(recent))
            adapter.tiers_before(journal.recent_tiers(clock() - TIERS))
            adapter.moving_before(journal.open_moves(recent))
            cluster = _describe(adapter, orders, patient, log)
            if cluster is None:
                return Stopped.STOPPED
            cluster = config.with_energy(cluster)
            catalogue.check_energy(configs, cluster)
            meter = LatencyMeter(saved.get(SAVED_AS), cluster_of=_cluster_of(config))
            with _service(
                config, adapter, cluster.name, list(plugins.by_name), clock, meter, log
            ) as requests:
                run_id = journal.begin_run(
                    RunInfo(
                        config.mode,
                        clock(),
                        __version__,
                        config.text,
                        config.seed,
                        cluster,
                        {**saved, **({inputs.SAVED_AS: plugins.files.texts} if plugins.files.texts else {})},
                    )
                )
                if requests is not None:
                    requests.began(run_id)
                scheduler = Scheduler(
                    cluster,
                    plugins,
                    seed=config.seed,
                    capabilities=adapter.capabilities,
                    clock=wall_clock,
                    saved=saved,
                    monitor=monitor,
                    cycle=config.cycle,
                    wait_for_down_nodes=config.wait_for_down_nodes,
                )
                engine = Engine(
                    adapter, scheduler, journal, mode=config.mode, requests=requests, log=log,
                    latencies=None if monitor else meter,
                )  # fmt: skip
                log.info("started", mode=str(config.mode), cluster=cluster.name,
                         plugins=list(plugins.by_name),
                         pools=[p.name for p in cluster.pools], nodes=len(cluster.nodes))  # fmt: skip
                reason = None
                try:
                    clock.when_lost(engine.begin_anew)
                    with orders.to(engine):
                        reason = engine.run()
                finally:
                    said = str(reason) if reason is not None else f"failed: {sys.exc_info()[1]}"
                    journal.end_run(said, ended_at=clock())
            log.info("ended", reason=str(reason), cycles=scheduler.cycles,
                     plugin_seconds={k: round(v, 3) for k, v in scheduler.seconds.items()})  # fmt: skip
            return reason


@contextmanager
def _service(
    config: Config,
    adapter: Any,
    cluster: str,
    plugins: list[str],
    clock: Callable[[], float],
    meter: LatencyMeter,
    log: Any,
) -> Iterator[Inbox | None]:
    """The local socket, served; None without one. Where no path is configured, a default that cannot be
    used costs the socket, not the daemon."""
    from headway.engine import Mode
    from headway.service import Inbox, Server
    from headway.service.limits import Allowance, Limits
    from headway.service.protocol import Report

    path = config.socket_path()
    if path is None:
        yield None
        return
    report = Report(str(config.mode), cluster, 0, clock(), tuple(plugins))
    inbox = Inbox(
        adapter.wake,
        report,
        watching=config.mode is Mode.MONITOR,
        clock=clock,
        outages=adapter.outages,
        oddities=adapter.oddities,
        watts=adapter.measured_watts,
        latencies=meter.summary,
    )
    try:
        users = Allowance(config.service.burst, config.service.rate)
        operators = Allowance(config.service.operator_burst, config.service.operator_rate)
        server = Server(
            path,
            inbox,
            operators=config.service.operators,
            timeout=config.service.timeout,
            limits=Limits(users, operators),
            log=log,
        )
    except HeadwayError as error:
        if config.service.socket is not None:
            raise
        log.warning("users cannot reach the daemon, it has no socket", error=str(error))
        yield None
        return
    with server:
        yield inbox


def _cluster_of(config: Config) -> Callable[[str], str]:
    """Job id -> the cluster of a federation that it belongs to; "" where there is only one."""
    return (lambda job_id: job_id.partition(":")[0]) if config.clusters else (lambda job_id: "")


def _saved_states(journal: Any, log: Any) -> dict[str, Any]:
    """What the plugins knew at the end of the last run, and a word about what it left open."""
    last = journal.last_run()
    if last is None:
        return {}
    open_decisions = journal.unfinished(last.id)
    if open_decisions:
        log.warning(
            "the last run was cut off between deciding and applying; the cluster's state decides "
            "what happened",
            run=last.id,
            decisions=[
                f"{type(u.decision).__name__} {getattr(u.decision, 'job_id', '')}".strip()
                for u in open_decisions
            ],
        )
    checkpoint = journal.last_checkpoint(last.id)
    # A run that was killed before its first checkpoint leaves what it began with.
    return checkpoint.states if checkpoint is not None else last.info.plugin_states


def _learned_since(journal: Any, catalogue: Any, log: Any) -> dict[str, Any]:
    """What predictors knew, and plugins that recount had counted, at the end of a run that was killed: its
    last checkpoint is behind."""
    from headway.replay import learned_by_predictors, recounted

    last = journal.last_run()
    if last is None or last.ended_at is not None:
        return {}
    try:
        return {**learned_by_predictors(journal, last, catalogue), **recounted(journal, last, catalogue)}
    except Damaged:
        raise
    except HeadwayError as error:
        log.warning("what was learned or counted since the last checkpoint is not known", error=str(error))
        return {}


def _describe(adapter: Any, orders: Orders, patient: bool, log: Any) -> ClusterDescription | None:
    """The cluster as it is met; None if an order to stop came while it was waited for."""
    told = False
    while True:
        try:
            return adapter.describe()
        except Failure as error:
            if not patient:
                raise Unreached(str(error)) from error
            if not told:
                log.error("the cluster does not answer; waiting for it", error=str(error))
                told = True
        end = time.monotonic() + RETRY_SECONDS
        while time.monotonic() < end:
            if orders.stop:
                return None
            time.sleep(0.1)


def _reloaded(config: Config, path: Path, monitor: bool, plugin_files: tuple[Path, ...]) -> Config:
    """The configuration as it is in the file now; the old one if that is wrong."""
    import structlog

    from headway.config import load_config
    from headway.engine import Mode
    from headway.plugins import Catalogue, Plugins

    log = structlog.get_logger("headway")
    try:
        fresh = load_config(path)
        catalogue = Catalogue(plugin_files)
        Plugins.load(catalogue.enabled(fresh.plugin_configs()), catalogue, None)
        if fresh.mode is Mode.DRY_RUN:
            raise UserError(f"{path}: mode: a running daemon cannot change to dry-run")
    except HeadwayError as error:
        _stays_in_force(error)
        return config
    if monitor:
        fresh.mode = Mode.MONITOR
    log.info("configuration read again", path=str(path))
    return fresh


def _stays_in_force(error: HeadwayError) -> None:
    import structlog

    said = "the new configuration is wrong; the old one stays in force"
    structlog.get_logger("headway").error(said, error=str(error))
