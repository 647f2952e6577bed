"""``headway serve``: the interface over HTTP."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import click

from headway.cli.asking import daemon_of
from headway.cli.common import adapter_option, daemon_config_option, examples
from headway.inputs.extras import need_api


@click.command("serve", epilog=examples("headway serve -c site.yaml --port 8642"))
@daemon_config_option
@adapter_option
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="On loopback.")
def command(config_path: Path | None, adapter_files: tuple[Path, ...], port: int) -> None:
    """Serve the page and the interface over HTTP, beside the daemon."""
    need_api("headway serve")
    import uvicorn

    from headway.serve.app import make_app
    from headway.serve.callers import OneUser
    from headway.serve.pictured import PictureSource
    from headway.serve.source import DaemonSource

    socket, timeout = daemon_of(config_path, adapter_files)
    source = PictureSource(DaemonSource(socket, timeout))
    app = make_app(source, OneUser.of_this_process())
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))

    async def serve() -> None:
        async with source.running():
            await server.serve()

    with suppress(KeyboardInterrupt):
        asyncio.run(serve())
