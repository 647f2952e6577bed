"""``headway run``: the daemon."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.common import examples, plugin_option, required_config_option, set_up_log, wall_clock
from headway.errors import HeadwayError, UserError

if TYPE_CHECKING:
    from headway.config import Config
    from headway.engine import Engine, Stopped
    from headway.service import Inbox


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
    from headway.engine import Mode, Stopped

    config = load_config(config_path)
    if monitor:
        config.mode = Mode.MONITOR
    if config.mode is Mode.DRY_RUN:
        _dry_run(config, config_path, plugin_files, out)
        return
    if out is not None:
        raise click.UsageError(f"--out goes with mode dry-run; {config.source} says mode {config.mode}")
    set_up_log(config.log)
    before: Config | None = None
    while True:
        try:
            reason = serve(config, plugin_files)
        except UserError as error:
            # What only the adapter or the journal can find wrong, such as a partition that Slurm has not.
            if before is None:
                raise
            _stays_in_force(error)
            config, before = before, None
            continue
        if reason is not Stopped.RELOAD:
            return
        fresh = _reloaded(config, config_path, monitor, plugin_files)
        config, before = fresh, config if fresh is not config else None


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


def serve(config: Config, plugin_files: tuple[Path, ...] = ()) -> Stopped:
    """One run of the daemon under one configuration; returns why it ended."""
    import structlog

    from headway import __version__
    from headway.config import live_adapter
    from headway.engine import Engine, Mode
    from headway.journal import Journal, RunInfo
    from headway.plugins import Catalogue, Plugins
    from headway.scheduler import Scheduler

    log = structlog.get_logger("headway")
    monitor = config.mode is Mode.MONITOR
    catalogue = Catalogue(plugin_files)
    configs = catalogue.enabled(config.plugin_configs())
    with live_adapter(config, read_only=monitor) as adapter:
        plugins = Plugins.load(configs, catalogue, adapter.capabilities)
        if not plugins.implementations("schedule"):
            raise UserError(f"{config.source}: plugins: no policy is enabled (such as easy)")
        with Journal.open(config.journal) as journal:
            saved = _saved_states(journal, log)
            cluster = adapter.describe()
            with _service(config, adapter, cluster.name, list(plugins.by_name), log) as requests:
                run_id = journal.begin_run(
                    RunInfo(config.mode, time.time(), __version__, config.text, config.seed, cluster, saved)
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
                )
                engine = Engine(adapter, scheduler, journal, mode=config.mode, requests=requests, log=log)
                log.info("started", mode=str(config.mode), cluster=cluster.name,
                         plugins=list(plugins.by_name),
                         pools=[p.name for p in cluster.pools], nodes=len(cluster.nodes))  # fmt: skip
                reason = None
                try:
                    with _signals(engine):
                        reason = engine.run()
                finally:
                    journal.end_run(str(reason) if reason is not None else f"failed: {sys.exc_info()[1]}")
            log.info("ended", reason=str(reason), cycles=scheduler.cycles,
                     plugin_seconds={k: round(v, 3) for k, v in scheduler.seconds.items()})  # fmt: skip
            return reason


@contextmanager
def _service(
    config: Config, adapter: Any, cluster: str, plugins: list[str], log: Any
) -> Iterator[Inbox | None]:
    """The local socket, served; None without one. Where no path is configured, a default that cannot be
    used costs the socket, not the daemon."""
    from headway.engine import Mode
    from headway.service import Inbox, Server
    from headway.service.protocol import Report

    path = config.socket_path()
    if path is None:
        yield None
        return
    report = Report(str(config.mode), cluster, 0, time.time(), tuple(plugins))
    inbox = Inbox(adapter.wake, report, watching=config.mode is Mode.MONITOR, clock=time.time)
    try:
        server = Server(
            path, inbox, operators=config.service.operators, timeout=config.service.timeout, log=log
        )
    except HeadwayError as error:
        if config.service.socket is not None:
            raise
        log.warning("users cannot reach the daemon, it has no socket", error=str(error))
        yield None
        return
    with server:
        yield inbox


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


@contextmanager
def _signals(engine: Engine) -> Iterator[None]:
    """SIGTERM, SIGINT: stop; SIGHUP: reload."""
    handlers = {
        signal.SIGTERM: lambda *_: engine.stop(),
        signal.SIGINT: lambda *_: engine.stop(),
        signal.SIGHUP: lambda *_: engine.reload(),
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
