"""The command ``headway emulate-commands``."""

from __future__ import annotations

import contextlib
import shlex
import signal
from pathlib import Path

import click

from headway.cli.numbers import FiniteRange
from headway_adapters.commands.emulator import Emulator, EmulatorOptions, memory_bytes
from headway_adapters.commands.server import Fault


@click.command("emulate-commands")
@click.argument("system", type=click.Choice(["pbs", "lsf"]))
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--nodes", type=click.IntRange(1, 100_000), default=4, show_default=True, help="Hosts.")
@click.option("--cpus", type=click.IntRange(1, 100_000), default=8, show_default=True,
              help="Processors (LSF: slots) of each host, or of each virtual node.")  # fmt: skip
@click.option("--memory", default="16gb", show_default=True, help="Memory of each host.")
@click.option("--vnodes", type=click.IntRange(1, 1000), default=1, show_default=True,
              help="PBS: number of virtual nodes of each host.")  # fmt: skip
@click.option("--hosts", default="", help="Names of the hosts, separated by commas, instead of --nodes.")
@click.option("--name", default="", help="Name of the PBS server, or of the LSF cluster.")
@click.option("--queue", "queues", multiple=True, help="A queue. Repeatable; the first queue is the default.")
@click.option("--flavour", type=click.Choice(["ibm", "volclava"]), default="ibm", show_default=True,
              help="LSF: the product whose commands are emulated.")  # fmt: skip
@click.option("--speed", type=FiniteRange(min=0.001), default=1.0, show_default=True,
              help="Factor by which jobs run faster than the clock.")  # fmt: skip
@click.option("--no-scheduling", is_flag=True,
              help="Begin with the batch system's own scheduler switched off.")  # fmt: skip
@click.option("--fault", "fault_text", default="none", show_default=True,
              help="Fault from the beginning: none, down, slow:SECONDS, truncate, garbage or refuse-start; "
                   "with @COMMAND,... only for these commands.")  # fmt: skip
def command(
    system: str, directory: Path, nodes: int, cpus: int, memory: str, vnodes: int, hosts: str, name: str,
    queues: tuple[str, ...], flavour: str, speed: float, no_scheduling: bool, fault_text: str,
) -> None:  # fmt: skip
    """Emulate the commands of PBS or LSF, to try a configuration on a laptop.

    Puts executables such as qstat, qrun and qsub (or bjobs, brun and bsub) into DIRECTORY/bin and
    answers them until it is interrupted. They print what the real ones print. Jobs are not executed:
    one runs as long as its `sleep N` says, or the line `# runtime: SECONDS` of its script, or
    HEADWAY_RUNTIME at its submission, else half of its walltime.

    DIRECTORY/bin/emulator-ctl changes it while it runs: `fault KIND`, `finish JOB`, `drop JOB`,
    `node NAME up|down`, `status`, `stop`.
    """
    options = EmulatorOptions(
        system=system, nodes=nodes, processors=cpus, memory=memory_bytes(memory), vnodes=vnodes,
        hosts=tuple(host for host in hosts.split(",") if host), name=name, queues=queues, speed=speed,
        flavour=flavour, scheduling=not no_scheduling, fault=Fault.parse(fault_text),
    )  # fmt: skip
    emulator = Emulator(directory, options)
    what = "PBS" if system == "pbs" else f"LSF ({flavour})"
    click.echo(f"emulating {what}: {len(emulator.machine.nodes)} nodes with {cpus} processors each")
    click.echo(f'  export PATH={shlex.quote(str(emulator.bin))}:"$PATH"')
    click.echo("end it with Ctrl-C, or with emulator-ctl stop")
    signal.signal(signal.SIGTERM, lambda *_: emulator.stop())
    with contextlib.suppress(KeyboardInterrupt):
        emulator.serve()
    emulator.stop()
