"""``headway drive``: a first try that undoes itself."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.asking import DURATION
from headway.cli.common import (
    adapter_option,
    examples,
    messages,
    plugin_option,
    reaching_the_cluster,
    required_config_option,
    say,
    wall_clock,
)
from headway.cli.elsewhere import nobody_leads_elsewhere
from headway.cli.give_back import say_outcome
from headway.cli.log_output import set_up_log
from headway.cli.run import Orders
from headway.errors import Failure, Superseded, UserError

if TYPE_CHECKING:
    from headway.adapter import Check
    from headway.config import Config


@click.command(
    "drive",
    epilog=examples("headway drive --for 2h -c site.yaml    two hours, then all is as it was"),
)
@click.option("--for", "duration", type=DURATION, required=True, metavar="TIME",
              help="How long: 30m, 2h, 1d.")  # fmt: skip
@required_config_option
@plugin_option
@adapter_option
def command(
    duration: float, config_path: Path, plugin_files: tuple[Path, ...], adapter_files: tuple[Path, ...]
) -> None:
    """Drive the configured cluster for a time, then give everything back and end.

    It drives whatever mode the configuration says. It gives back as well when it is stopped (Ctrl-C, SIGTERM)
    and when it fails. Killed by SIGKILL it cannot: `headway give-back --all` does it then.
    """
    from headway.config import Adapters, load_config
    from headway.daemon.giving_back import give_back
    from headway.daemon.made import Unreached
    from headway.daemon.succession import Succession
    from headway.model.modes import Mode

    config = load_config(config_path, Adapters.with_files(adapter_files))
    if config.mode is Mode.DRY_RUN:
        raise UserError(f"{config.source}: mode: expected monitor or drive, found dry-run: nothing to drive")
    nobody_leads_elsewhere(config, "would lead, or drive on, when this one has given back")
    set_up_log(config.log)
    config.mode = Mode.DRIVE
    with Orders() as orders, reaching_the_cluster(config_path, Unreached):
        _begin(config, config_path, duration)
        succession = Succession(
            config,
            config_path,
            plugin_files,
            orders.to,
            wall_clock,
            mode=Mode.DRIVE,
            adapter_files=adapter_files,
        )
        clock = threading.Timer(duration, orders.end)
        clock.daemon = True
        clock.start()
        superseded = False
        try:
            succession.run()
        except Superseded:
            # What it had is the other daemon's.
            superseded = True
            raise
        finally:
            clock.cancel()
            if succession.began and not superseded:
                say("giving back")
                report = give_back(succession.config, None, tell=lambda given: say(given.line))
                say_outcome(report)
        if report.failed:
            remedy = f"headway give-back --all -c {config_path}"
            raise Failure(f"not all could be given back; when the cause is gone: {remedy}")


def _begin(config: Config, config_path: Path, duration: float) -> None:
    """Say what will happen. Raises :class:`Failure` where driving would come to nothing."""
    from headway.journal.alone import alone

    with alone(config.journal):
        # Nobody else writes to it, so nobody else drives by this configuration.
        pass
    _check(config, config_path)
    pools = ", ".join(_pools(config))
    say(f"driving {pools} until {wall_clock(time.time() + duration)}")
    say(
        "Then, or when it is stopped (Ctrl-C), headway gives back what it holds, and ends. If it is killed: "
        f"headway give-back --all -c {config_path}"
    )


def _pools(config: Config) -> list[str]:
    """The pools that are driven; :class:`UserError` for a cluster that cannot be given back."""
    from headway.daemon.giving_back import full_name, giving

    with ExitStack() as stack:
        return [
            full_name(name, pool) for name, own in giving(config, stack, dry_run=True) for pool in own.pools
        ]


def _check(config: Config, config_path: Path) -> None:
    """Ask the cluster whether it can be driven; what would only help is said."""
    from headway.config import live_adapter

    with live_adapter(config, read_only=True) as adapter:
        wrong: list[Check] = [check for check in adapter.check() if not check.ok]
    for check in wrong:
        if check.helps:
            say(f"{check.subject}: {check.detail}", messages(), style="yellow")
    if needed := [f"{check.subject}: {check.detail}" for check in wrong if not check.helps]:
        raise Failure("; ".join(needed) + f". `headway check -c {config_path}` says what to do about it.")
