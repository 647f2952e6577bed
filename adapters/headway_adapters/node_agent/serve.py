"""``headway node-agent serve``: the agent as a service."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from headway.cli.asking import DURATION
from headway.cli.common import examples
from headway.errors import UserError
from headway.link import Server, read_key
from headway.link.server import is_local
from headway_adapters.node_agent.service import Agent

_SOCKET = "unix:/run/headway/node-agent.sock"
_TIERS = Path("/run/headway/node-agent-tiers.json")


@click.command(
    "serve",
    epilog=examples(
        "headway node-agent serve --key /etc/headway/agent.key --listen 10.0.0.7:9099 --reachable",
    ),
)
@click.option("--key", "key_file", type=click.Path(path_type=Path), required=True,
              help="The site's key: a file that only its owner can read.")  # fmt: skip
@click.option("--listen", default=_SOCKET, show_default=True, help="unix:PATH or HOST:PORT.")
@click.option("--reachable", is_flag=True, help="Allow an address that other machines can reach.")
@click.option(
    "--interval", type=DURATION, default="5", show_default=True, help="Time between two looks at the jobs."
)
@click.option("--least-user", type=click.IntRange(0), default=1000, show_default=True,
              help="Least user number whose jobs are touched.")  # fmt: skip
@click.option("--way", type=click.Choice(["auto", "cgroup", "idle"]), default="auto", show_default=True,
              help="Way in which a job is put into the background.")  # fmt: skip
@click.option("--state", type=click.Path(path_type=Path), default=_TIERS, show_default=True,
              help="File that keeps the tier of each job.")  # fmt: skip
def serve(
    key_file: Path, listen: str, reachable: bool, interval: float, least_user: int, way: str, state: Path
) -> None:
    """Keep jobs in the tiers that the daemon wishes, and measure what they use. Ends with a signal.

    The daemon asks, authenticated with the site's key. When the agent ends, jobs run on as they are.
    """
    if not is_local(listen) and not reachable:
        raise UserError(
            f"--listen {listen}: other machines can reach it; allow that with --reachable, best behind a "
            "firewall: the link is authenticated, but not secret"
        )
    key = read_key(key_file)
    agent = Agent(state=state, least_user=least_user, way=way, note=_note)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with Server(listen, key, agent.answer, note=_note) as server:
        click.echo(f"listening on {server.address}")
        while True:
            agent.look()
            if stop.wait(interval):
                return


def _note(text: str) -> None:
    click.echo(f"node-agent: {text}", err=True)
