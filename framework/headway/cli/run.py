"""``headway run``: the daemon."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.common import (
    adapter_option,
    examples,
    plugin_option,
    reaching_the_cluster,
    required_config_option,
    wall_clock,
)
from headway.cli.log_output import set_up_log
from headway.errors import Superseded, UserError

if TYPE_CHECKING:
    from headway.config import Config
    from headway.daemon.standing import Standing
    from headway.engine import Engine


@click.command(
    "run",
    epilog=examples(
        "headway run -c site.yaml --monitor    decide and journal, change nothing",
        "headway run -c site.yaml              as the configuration's mode says",
        "headway run -c site.yaml --standby    lead when no other daemon does",
    ),
)
@required_config_option
@click.option(
    "--monitor", is_flag=True, help="Decide and journal, but apply nothing, whatever the configuration says."
)
@click.option(
    "--standby",
    is_flag=True,
    help="Wait while another daemon leads, and take over when it ends or is silent (`standby:`).",
)
@plugin_option
@adapter_option
@click.option("--out", type=click.Path(path_type=Path), help="In mode dry-run: directory for the results.")
def command(
    config_path: Path, monitor: bool, standby: bool, plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...], out: Path | None,
) -> None:  # fmt: skip
    """Schedule the configured cluster until stopped.

    SIGTERM and SIGINT end it after the current cycle; SIGHUP makes it read the configuration again. The
    log goes to standard error. In mode dry-run the trace that the configuration names (emulation.trace,
    relative to the configuration file) is run in the emulated cluster instead.
    """
    from headway.config import Adapters, load_config
    from headway.daemon.made import Unreached
    from headway.daemon.succession import Succession
    from headway.model.modes import Mode

    config = load_config(config_path, Adapters.with_files(adapter_files))
    if monitor:
        config.mode = Mode.MONITOR
    if config.mode is Mode.DRY_RUN:
        _dry_run(config, config_path, _given(plugin_files, adapter_files), out)
        return
    if out is not None:
        raise click.UsageError(f"--out goes with mode dry-run; {config.source} says mode {config.mode}")
    set_up_log(config.log)
    # A watchdog ends a daemon that hangs by SIGABRT: the log shows where.
    faulthandler.enable(2)
    with (
        Orders() as orders,
        reaching_the_cluster(config_path, Unreached),
        _leading(config, plugin_files, orders, wanted=standby or config.has_standby) as standing,
    ):
        if standing is not None:
            Succession(
                config, config_path, plugin_files, orders.to, wall_clock,
                mode=Mode.MONITOR if monitor else None, adapter_files=adapter_files, standing=standing,
                set_up_log=set_up_log,
            ).run()  # fmt: skip


@contextmanager
def _leading(
    config: Config, plugin_files: tuple[Path, ...], orders: Orders, *, wanted: bool
) -> Iterator[Standing | None]:
    """What the daemon is beside another, once it may schedule; None: it is to end before that. ``wanted``: it
    is to stand by while another daemon leads."""
    if not wanted:
        from headway.daemon.standing import ALONE

        yield ALONE
        return
    from headway.standby.leadership import Deposed
    from headway.standby.waiting import stand_by

    keeper = stand_by(config, plugin_files, lambda: orders.stop, orders.end)
    if keeper is None:
        yield None
        return
    try:
        yield keeper
    except Superseded as error:
        # Not for good: it is to be started again, as the stand-by.
        raise Deposed(str(error)) from error
    finally:
        keeper.release()
    keeper.tenure.check()


def _given(plugin_files: tuple[Path, ...], adapter_files: tuple[Path, ...]) -> list[str]:
    """The options that name these files."""
    plugins = [word for path in plugin_files for word in ("--plugin", str(path))]
    return [*plugins, *(word for path in adapter_files for word in ("--adapter", str(path)))]


def _dry_run(config: Config, config_path: Path, files: list[str], out: Path | None) -> None:
    """``files``: the options that name plugins and adapters."""
    from headway.cli.dry_run import command as dry_run

    if not config.names_traces():
        raise UserError(
            f"{config.source}: emulation.trace: expected a trace file for mode dry-run, found none"
        )
    arguments = ["-c", str(config_path), *files]
    if out is not None:
        arguments += ["--out", str(out)]
    dry_run.main(arguments, standalone_mode=False)


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
            self._pass_on()
        else:
            self.end()

    def end(self) -> None:
        """Stop, as SIGTERM does. May be called from any thread."""
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
        """Give orders to this engine, at first the orders that came before."""
        self._engine = engine
        self._pass_on()
        try:
            yield
        finally:
            self._engine = None
            # One that came while the engine ended is about what it has not read.
            self._reload = self._reload or engine.reload_is_due
