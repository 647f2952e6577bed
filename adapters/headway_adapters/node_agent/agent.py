"""``headway node-agent``: what a node reports, and its clock set for a job.

For the nodes themselves: it needs neither a configuration nor the daemon. ``headway`` calls it through
the actuators of an adapter (:mod:`headway_adapters.polling.actuators`); a prolog, an epilog or a person may
as well. What was written and what could not be read is said on standard error, results go to
standard output.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import psutil

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import DURATION
from headway.cli.common import examples
from headway.errors import Failure, UserError
from headway_adapters.node_agent import processes, rapl, sysfs
from headway_adapters.node_agent.cpufreq import Change, Clock, mhz
from headway_adapters.node_agent.serve import serve

#: Where a real node's clocks are. Only there psutil's answers are about the same machine.
REAL = Path("/sys")
_STATE = Path("/run/headway/node-agent.json")
#: Energy counters may wrap more than once in a longer time, which could not be seen.
_LONGEST_INTERVAL = 600.0

_UNITS = {"": 1.0, "hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
_FREQUENCY = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)\s*([kmg]?hz)?", re.IGNORECASE)
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@\[\]-]{0,99}")


class CpuReport(msgspec.Struct, frozen=True):
    """One processor. Hertz; use is a share of its time."""

    cpu: int
    frequency: float | None
    least: float | None
    most: float | None
    governor: str | None
    use: float | None


class JobReport(msgspec.Struct, frozen=True):
    """One job on this node. ``cpu_use`` is in processors, ``memory`` in bytes."""

    job: str
    processes: int
    cpus: tuple[int, ...]
    cpu_use: float
    memory: int


class EnergyReport(msgspec.Struct, frozen=True):
    """Packages and their memory: joules since the first reading, watts since the last."""

    joules: float | None
    watts: float | None
    zones: list[rapl.ZonePower]


class Report(msgspec.Struct, frozen=True):
    """One reading of a node."""

    time: float
    node: str
    load: tuple[float, float, float]
    memory_total: int
    memory_available: int
    cpus: list[CpuReport]
    energy: EnergyReport
    jobs: list[JobReport]
    #: What could not be read, and what stands in for it.
    notes: list[str]


class Observer:
    """Reads a node again and again; uses and powers are over the time since the last reading."""

    def __init__(self, root: Path, *, note: Callable[[str], None]) -> None:
        self._root = root
        self._tell = note
        self._notes: list[str] = []
        self._clock = Clock(root, _STATE, note=self._note)
        self._meter = rapl.Meter(root, note=self._note)
        self._before: tuple[float, dict[str, processes.JobUse], dict[int, Any]] | None = None

    def read(self) -> Report:
        """A reading now. Raises :class:`Failure` where ``root`` is no sysfs."""
        now = time.monotonic()
        clocks = self._clock.read()
        frequencies = {one.cpu: one.frequency for one in clocks}
        if not self._clock.has_cpufreq():
            frequencies.update(self._fallback())
        zones = self._meter.read(now)
        jobs = {job.job: job for job in processes.jobs_here()}
        times = self._cpu_times()
        since, jobs_before, times_before = self._before or (now, {}, {})
        self._before = (now, jobs, times)
        passed = now - since
        return Report(
            time=time.time(),
            node=socket.gethostname(),
            load=os.getloadavg(),
            memory_total=psutil.virtual_memory().total,
            memory_available=psutil.virtual_memory().available,
            cpus=[
                CpuReport(
                    one.cpu, frequencies[one.cpu], one.least, one.most, one.governor,
                    _busy(times_before.get(one.cpu), times.get(one.cpu)),
                )
                for one in clocks
            ],
            energy=EnergyReport(rapl.total_joules(zones), rapl.total_watts(zones), zones),
            jobs=[_job(job, jobs_before.get(job.job), passed) for job in jobs.values()],
            notes=list(self._notes),
        )  # fmt: skip

    def _fallback(self) -> dict[int, float]:
        """Frequencies where the kernel has no cpufreq: from /proc/cpuinfo, all alike if need be."""
        if self._root.resolve() != REAL:
            self._note(f"{self._root}: no cpufreq: frequencies are not known")
            return {}
        found = psutil.cpu_freq(percpu=True) or []
        if not found:
            self._note(f"{self._root}: no cpufreq: frequencies are not known")
            return {}
        self._note(f"{self._root}: no cpufreq: frequencies are read from /proc/cpuinfo and cannot be set")
        cpus = self._clock.cpus()
        values = [one.current * 1e6 for one in found]
        if len(values) != len(cpus):
            values = [values[0]] * len(cpus)
        return dict(zip(cpus, values, strict=True))

    def _cpu_times(self) -> dict[int, Any]:
        if self._root.resolve() != REAL:
            return {}
        return dict(zip(self._clock.cpus(), psutil.cpu_times(percpu=True), strict=False))

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)
            self._tell(text)


def _busy(before: Any, now: Any) -> float | None:
    if before is None or now is None:
        return None
    total = sum(now[:8]) - sum(before[:8])  # what follows (guests) is part of user and nice
    idle = now.idle + now.iowait - before.idle - before.iowait
    return min(1.0, max(0.0, 1 - idle / total)) if total > 0 else None


def _job(now: processes.JobUse, before: processes.JobUse | None, passed: float) -> JobReport:
    # Processes that ended took their seconds with them.
    seconds = 0.0 if before is None else max(0.0, now.cpu_seconds - before.cpu_seconds)
    use = seconds / passed if passed > 0 else 0.0
    return JobReport(now.job, len(now.processes), now.cpus, use, now.memory)


# ---------------------------------------------------------------------- the command


class Frequency(click.ParamType):
    """``2.4GHz``, ``2400MHz`` or hertz without a unit, as hertz."""

    name = "frequency"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = _FREQUENCY.fullmatch(str(value).strip())
        hertz = float(found[1]) * _UNITS[(found[2] or "").lower()] if found else math.nan
        if not 1e7 <= hertz <= 1e11:
            expected = "a frequency of 10 MHz to 100 GHz, such as 2.4GHz, 2400MHz or 2400000000 (hertz)"
            self.fail(f"expected {expected}; found {value!r}", param, ctx)
        return hertz


class Cpus(click.ParamType):
    """``0-3,8`` as numbers."""

    name = "cpus"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            found = sysfs.cpu_list(str(value))
        except ValueError as error:
            self.fail(f"expected cpus such as 0-3,8; {error}", param, ctx)
        if not found:
            self.fail("expected cpus such as 0-3,8; found none", param, ctx)
        return found


class JobName(click.ParamType):
    """A job's identifier in the batch system's words."""

    name = "job"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if _JOB.fullmatch(str(value)) is None:
            self.fail(f"expected a job's identifier, found {str(value)[:40]!r}", param, ctx)
        return str(value)


FREQUENCY, CPUS, JOB = Frequency(), Cpus(), JobName()

sysfs_option = click.option(
    "--sysfs", "root", type=click.Path(path_type=Path), default=REAL, show_default=True,
    help="Directory to use instead of /sys.",
)  # fmt: skip
state_option = click.option(
    "--state", type=click.Path(path_type=Path), default=_STATE, show_default=True,
    help="File that keeps what the agent has changed.",
)  # fmt: skip
dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would be written; write nothing.")


@click.group(
    "node-agent",
    short_help="On a node: report clock, energy and jobs; set a job's frequency.",
    epilog=examples(
        "headway node-agent report                                    this node now",
        "headway node-agent watch --interval 10s                      a line of JSON every ten seconds",
        "headway node-agent set-frequency --job 4711 --frequency 2.4GHz --dry-run",
        "headway node-agent reset                                     the limits as they were",
    ),
)
def command() -> None:
    """Read a node's clock, energy counters and jobs, and set the clock of a job's processors.

    For the nodes themselves, where it is called over SSH, by a prolog or by hand. Exit code 1 if the node
    cannot do it (no cpufreq, a file that cannot be written), 2 for a mistake on the command line.
    """


@command.command("report", epilog=examples("headway node-agent report --json    for programs"))
@sysfs_option
@click.option("--over", type=DURATION, default="1", show_default=True,
              help="Time over which use and power are measured.")  # fmt: skip
@json_option("headway_adapters.node_agent.agent:Report", "For programs.")
def report(root: Path, over: float, as_json: bool) -> None:
    """One reading: frequencies, load, memory, energy, and what each job here uses."""
    _refuse_long(over, "--over")
    observer = Observer(root, note=_note)
    observer.read()
    time.sleep(over)
    found = observer.read()
    if as_json:
        say_json(found)
    else:
        _show(found)


@command.command("watch", epilog=examples("headway node-agent watch --interval 1m    every minute"))
@sysfs_option
@click.option("--interval", type=DURATION, default="10", show_default=True, help="Time between two readings.")
@click.option("--count", type=click.IntRange(1), help="End after this number of readings.")
def watch(root: Path, interval: float, count: int | None) -> None:
    """A reading every interval, each a line of JSON; ends with a signal."""
    _refuse_long(interval, "--interval")
    signal.signal(signal.SIGTERM, _stop)
    observer = Observer(root, note=_note)
    observer.read()
    due = time.monotonic()
    done = 0
    with contextlib.suppress(KeyboardInterrupt):
        while count is None or done < count:
            due += interval
            time.sleep(max(0.0, due - time.monotonic()))
            click.echo(_json(observer.read()))
            sys.stdout.flush()
            done += 1


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt


@command.command(
    "set-frequency",
    epilog=examples("headway node-agent set-frequency --cpus 0-3 --frequency 2.4GHz    four processors"),
)
@sysfs_option
@state_option
@click.option(
    "--job", type=JOB, help="Limit the processors of this job, which are found through its processes."
)
@click.option("--cpus", type=CPUS, help="Limit these processors, such as 0-3,8.")
@click.option(
    "--frequency", type=FREQUENCY, required=True, help="Frequency, such as 2.4GHz; without a unit: hertz."
)
@click.option(
    "--even-if-shared",
    is_flag=True,
    help="Change the frequency even if another job runs on the same processors.",
)
@dry_run_option
def set_frequency(
    root: Path,
    state: Path,
    job: str | None,
    cpus: tuple[int, ...] | None,
    frequency: float,
    even_if_shared: bool,
    dry_run: bool,
) -> None:
    """Limit the clock of a job's processors, or of the named processors.

    A frequency between two levels becomes the lower one. What the limits were before is remembered;
    `reset` gives it back.
    """
    if (job is None) == (cpus is None):
        found = "neither" if job is None else "both"
        raise click.UsageError(f"expected either --job or --cpus; found {found}")
    clock = Clock(root, state, note=_note)
    if job is not None:
        cpus = _cpus_of(job, clock.cpus(), even_if_shared)
    assert cpus is not None
    changes = clock.set_frequency(cpus, frequency, job=job or "", dry_run=dry_run)
    if not changes:
        click.echo(f"cpus {','.join(map(str, cpus))}: were limited to {mhz(frequency)} or its level already")
    _tell(changes, dry_run)


def _cpus_of(job: str, online: Sequence[int], even_if_shared: bool) -> tuple[int, ...]:
    here = processes.jobs_here()
    found = processes.find(here, job)
    if found is None:
        names = ", ".join(one.job for one in here) or "none"
        raise Failure(f"job {job}: none of its processes runs here. Jobs here: {names}.")
    cpus = tuple(cpu for cpu in found.cpus if cpu in set(online))
    sharing = [one.job for one in here if one is not found and set(one.cpus) & set(cpus)]
    if sharing and not even_if_shared:
        raise Failure(
            f"job {job}: its processes may run on the same cpus as job {', '.join(sharing)}, which would "
            "change, too; bind jobs to cpus (Slurm: TaskPlugin), or allow it with --even-if-shared"
        )
    return cpus


@command.command("reset", epilog=examples("headway node-agent reset --job 4711    in an epilog"))
@sysfs_option
@state_option
@click.option("--job", type=JOB, help="Give back only the last change for this job.")
@dry_run_option
def reset(root: Path, state: Path, job: str | None, dry_run: bool) -> None:
    """Give back the limits that were there before the first change."""
    changes = Clock(root, state, note=_note).reset(job=job, dry_run=dry_run)
    if not changes:
        click.echo("nothing to give back")
    _tell(changes, dry_run)


@command.command(
    "first-process",
    epilog=examples("headway node-agent first-process --job 4711 --user ada    what CRIU dumps"),
)
@click.option("--job", type=JOB, required=True, help="The job.")
@click.option("--user", help="User that must own all processes of the job.")
def first_process(job: str, user: str | None) -> None:
    """The number of a job's first process here, above which only the batch system's own are."""
    here = processes.jobs_here()
    found = processes.find(here, job)
    if found is None:
        names = ", ".join(one.job for one in here) or "none"
        raise Failure(f"job {job}: none of its processes runs here. Jobs here: {names}.")
    click.echo(processes.first_of(found, user))


command.add_command(serve)


# ---------------------------------------------------------------------- output


def _note(text: str) -> None:
    click.echo(f"node-agent: {text}", err=True)


def _refuse_long(seconds: float, option: str) -> None:
    if seconds > _LONGEST_INTERVAL:
        raise UserError(
            f"{option}: expected at most {_LONGEST_INTERVAL:.0f} s, found {seconds:.0f} s: "
            "energy counters may wrap more than once in it"
        )


def _tell(changes: Sequence[Change], dry_run: bool) -> None:
    verb = "would be" if dry_run else "is"
    for one in changes:
        before, after = (mhz(int(value) * 1e3) for value in (one.before, one.after))
        click.echo(f"cpus {','.join(map(str, one.cpus))}: {one.file} {verb} {after} (was {before})")


def _json(found: Report) -> str:
    return msgspec.json.encode(found).decode()


def _show(found: Report) -> None:
    gib = 2**30
    load = " ".join(f"{value:.2f}" for value in found.load)
    click.echo(f"node     {found.node}, load {load}")
    click.echo(
        f"memory   {found.memory_available / gib:.1f} GiB available of {found.memory_total / gib:.1f} GiB"
    )
    watts = found.energy.watts
    click.echo(f"power    {'not known' if watts is None else f'{watts:.1f} W (processors and their memory)'}")
    for cpu in found.cpus:
        limits = "" if cpu.least is None or cpu.most is None else f", {mhz(cpu.least)} to {mhz(cpu.most)}"
        clock = "not known" if cpu.frequency is None else mhz(cpu.frequency)
        use = "" if cpu.use is None else f", {cpu.use:.0%} busy"
        governor = f", {cpu.governor}" if cpu.governor else ""
        click.echo(f"cpu {cpu.cpu:<4} {clock}{limits}{governor}{use}")
    for job in found.jobs:
        cpus = ",".join(map(str, job.cpus))
        click.echo(
            f"job      {job.job}: {job.cpu_use:.2f} processors in use on cpus {cpus}, "
            f"{job.memory / gib:.2f} GiB, {job.processes} processes"
        )
