"""The command ``headway lab``."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.adapter.descendants import adopt_orphans
from headway.cli.asking import DURATION
from headway.cli.common import examples, plugin_files_option, prepare_directory, say
from headway.cli.numbers import FiniteRange
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.workload import Workload
    from headway_adapters.lab.system import LabSystem, Processes, Shape

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("lab", epilog=examples(
    "headway lab slurm                       a real Slurm of 8 nodes, for ten minutes",
    "headway lab pbs --policy easy            the emulated commands of PBS",
    "headway lab slurm --fresh               Slurm decides; you let headway watch, then drive",
    "headway lab lsf --for 2m --keep /tmp/l  keep journal and logs: headway replay /tmp/l/journal.sqlite",
))  # fmt: skip
@click.argument("system", type=click.Choice(["slurm", "pbs", "lsf"]))
@click.option("--for", "length", type=DURATION, default="10m", show_default=True, metavar="DURATION",
              help="How long it lives.")  # fmt: skip
@click.option("--nodes", type=click.IntRange(1, 64), default=8, show_default=True, help="Nodes.")
@click.option("--cpus", type=click.IntRange(1, 256), default=16, show_default=True,
              help="Processors of each node; jobs sleep, so this machine needs none of them.")  # fmt: skip
@click.option("--policy", default="conservative", show_default=True, help="Policy or preset that decides.")
@plugin_files_option("A Python file whose plugins are enabled first. Repeatable.")
@click.option("--workload", "model", default="month", show_default=True, metavar="MODEL",
              help="Workload model of the jobs; `headway generate` lists the models.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="An option of the model. Repeatable.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the jobs.")
@click.option("--speed", type=FiniteRange(min=0.001), default=240.0, show_default=True,
              help="Factor by which the model's time passes faster: its hour takes 15 s.")  # fmt: skip
@click.option("--every", type=DURATION, default="10s", show_default=True, metavar="DURATION",
              help="Time between two lines about how it goes.")  # fmt: skip
@click.option("--fresh", is_flag=True,
              help="The batch system decides by itself, and no headway runs: you start it.")  # fmt: skip
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR",
              help="A folder that stays, with journal and logs; it must be empty.")  # fmt: skip
def command(
    system: str, length: float, nodes: int, cpus: int, policy: str, plugin_files: tuple[Path, ...],
    model: str, settings: tuple[str, ...], seed: int, speed: float, every: float, fresh: bool,
    keep: Path | None,
) -> None:  # fmt: skip
    """Run a throw-away batch system, a stream of jobs and the daemon, to look at.

    `slurm` is a real Slurm on this machine's loopback address, of Debian's packages, beside a Slurm that may
    be installed here; `pbs` and `lsf` are emulated commands. Jobs of a workload model arrive in a quicker
    time; they sleep. headway decides which job starts when. Everything is gone at the end, on Ctrl-C and
    after an error: processes and folder.
    """
    from headway.dry_run.models import drawn
    from headway.plugins import Catalogue, PluginConfig
    from headway_adapters.lab.lab import Lab, Plan
    from headway_adapters.lab.stream import arrivals
    from headway_adapters.lab.system import Processes, Shape, Stopped

    shape = Shape(nodes, cpus, fresh)
    catalogue = Catalogue(plugin_files)
    for plugin in catalogue.expanded([PluginConfig(policy, {}, "--policy")]):
        catalogue.get(plugin.name, plugin.where)
    defaults = {"processors": nodes * cpus, "days": 7, "load": 1.1}

    def draw(seed: int) -> Workload:
        workload = drawn(catalogue, model, settings, seed, defaults)
        if not workload.jobs:
            raise UserError("--workload: expected a model that draws jobs, found none")
        return workload

    # What is wrong with the model or its options is said before anything is started.
    draw(seed)
    adopt_orphans()
    with _signals() as stop, _folder(keep) as folder:
        processes = Processes(folder / "log", stop)
        made = _system(system, folder, shape, processes)
        lab = Lab(folder, made, processes, Plan(policy, plugin_files, length, every, fresh), say)
        try:
            with contextlib.suppress(Stopped):
                lab.run(lambda program: arrivals(draw, speed, nodes * cpus, program, seed))
        finally:
            lab.end()
        say(f"{lab.submitted} jobs were submitted; all processes are gone.")
    if keep is not None:
        say(f"Journal and logs: {keep}")


def _system(name: str, folder: Path, shape: Shape, processes: Processes) -> LabSystem:
    if name == "slurm":
        from headway_adapters.lab.slurm import SlurmLab

        return SlurmLab(folder, shape, processes)
    from headway_adapters.lab.emulated import EmulatedLab

    return EmulatedLab(name, folder, shape)


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Set by the signals that end the lab, meanwhile."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """A new folder, which is gone afterwards; or the one to keep."""
    if keep is not None:
        prepare_directory(keep, "--keep")
        if any(keep.iterdir()):
            raise UserError(f"--keep {keep}: expected an empty folder, found {next(keep.iterdir()).name}")
        folder = keep.absolute()
    else:
        folder = Path(tempfile.mkdtemp(prefix="headway-lab-"))
        # Other users' commands and jobs must be able to enter.
        folder.chmod(0o755)
    try:
        (folder / "log").mkdir()
        yield folder
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
