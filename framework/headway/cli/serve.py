"""``headway serve``: the interface over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headway.cli import common
from headway.cli.asking import daemon_of
from headway.cli.common import adapter_option, daemon_config_option, examples
from headway.cli.log_output import set_up_log
from headway.inputs.extras import need_api


@click.command(
    "serve",
    epilog=examples(
        "headway serve -c site.yaml", "headway serve -c site.yaml --listen unix:/run/headway/web.sock"
    ),
)
@daemon_config_option
@adapter_option
@click.option("--listen", "listen", multiple=True, metavar="ADDRESS",
              help="HOST:PORT or unix:/PATH, instead of serve.listen. Repeatable.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), help="The same as --listen 127.0.0.1:PORT.")
@click.option("--link/--no-link", "with_link", default=None,
              help="Print a link that lets you in, once. Default: on a terminal.")  # fmt: skip
def command(
    config_path: Path | None,
    adapter_files: tuple[Path, ...],
    listen: tuple[str, ...],
    port: int | None,
    with_link: bool | None,
) -> None:
    """Serve the page and the interface over HTTP, beside the daemon.

    Who asks is known by a token (`headway token create`), by Slurm's token, by a proxy, or by the system on a
    Unix socket. On your own machine, follow the link that is printed: it stands for you.
    """
    need_api("headway serve")
    from headway.config import load_config
    from headway.config.serve import ServeConfig
    from headway.serve.history import History
    from headway.serve.pictured import PictureSource
    from headway.serve.running import Serving
    from headway.serve.source import DaemonSource
    from headway.service.changes import FORMAT, Begun

    socket, timeout = daemon_of(config_path, adapter_files)
    path = config_path if config_path is not None else common.readable_config()
    config = load_config(path, None) if path is not None else None
    if config is not None:
        set_up_log(config.log)
    settings = config.serve if config is not None else ServeConfig()
    addresses = [*listen, *([f"127.0.0.1:{port}"] if port is not None else [])]
    if addresses:
        settings = settings.model_copy(update={"listen": addresses})
    tokens = config.tokens_path() if config is not None else None
    if with_link is None:
        with_link = sys.stderr.isatty()
    source = PictureSource(DaemonSource(socket, timeout))
    if config is not None:
        # Who can run this process can read what it reads.
        source.rights = Begun(FORMAT, config.service.private, tuple(config.service.operators), operator=True)
    history = History(
        config.journal if config is not None else None, source.sees_all, lambda: source.silent_since
    )
    Serving(source, settings, tokens, with_link, history).run(_say, source.running)


def _say(text: str) -> None:
    common.say(text)
    sys.stdout.flush()
