"""The clusters that the conformance suite runs on here (:class:`headway.conformance.Site`).

What a cluster cannot be made to do (a real server is not stopped) its ``can`` does not name.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from batch_servers import BatchServer
from in_process import InProcess
from slurm_cluster import SlurmCluster
from waiting import HANG

from headway import decisions as d
from headway.adapter import ClusterAdapter
from headway.conformance import NAMES, PACE, Site, Wanted
from headway.errors import Failure
from headway.model import (
    ClusterDescription,
    Dependency,
    JobDescription,
    NodeDescription,
    Placement,
    PoolDescription,
    Request,
)
from headway.model.parts import together
from headway.workload.jobs import TraceJob
from headway_adapters.commands import Emulator, EmulatorOptions
from headway_adapters.emulated import EmulatedAdapter
from headway_adapters.lsf import LsfAdapter
from headway_adapters.pbs import PbsAdapter
from headway_adapters.slurm import SlurmAdapter, hostlist
from headway_adapters.transport import LocalTransport, Result, Transport

#: Processors of each node of the clusters that we make ourselves.
PROCESSORS = 4
#: For real hangs only, seconds.
LONG = 120.0
#: Commands that change something, of all batch systems.
CHANGING = {"qrun", "qdel", "qhold", "qrls", "qalter", "qsig", "qrerun", "brun", "bkill", "bstop", "bresume",
            "bmod", "brequeue", "scancel"}  # fmt: skip
#: What every site of commands can be made to do.
ORDINARY = frozenset({"again", "after", "holds", "shapes", "signals", "drain", "changes"})


class Recorder(Transport):
    """Commands that another transport runs, and which they were."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.commands: list[tuple[str, ...]] = []

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        self.commands.append(tuple(argv))
        return self._inner.run(argv, timeout)

    def close(self) -> None:
        self._inner.close()


# ---------------------------------------------------------------------- the emulated cluster


class EmulatedSite(Site):
    """The emulated cluster in virtual time: the adapter is the cluster, so there is one for each test."""

    name = "emulated"
    can = frozenset({"after", "holds", "shapes", "parts", "pools"})

    def __init__(self) -> None:
        pools = ("batch", "second")
        nodes = tuple(NodeDescription(f"node{n}", PROCESSORS, pools=pools) for n in range(1, 5))
        self._description = ClusterDescription("emulated", tuple(map(PoolDescription, pools)), nodes)
        self.clean()

    def clean(self) -> None:
        self.mine, self.drained = set(), set()
        self._adapter = EmulatedAdapter(self._description, [], start=1000.0)
        self._count = 0

    def adapter(self, *, read_only: bool = False, **options: Any) -> ClusterAdapter:
        return self._adapter

    def now(self) -> float:
        return self._adapter.now

    def bring(self, job: Wanted) -> str:
        self._count += 1
        on_each = job.processors // job.nodes if job.nodes else 0
        described = JobDescription(
            str(self._count), self.now(),
            Request(job.processors, job.minutes * 60.0, nodes=job.nodes, processors_per_node=on_each),
            pool="batch", name=job.name, user="alice", held=job.held,
            dependencies=(Dependency("completed", job.after),) if job.after else (),
        )  # fmt: skip
        self._adapter.submit(TraceJob(described, job.seconds))
        return described.id

    def bring_parts(self, processors: Sequence[int]) -> str:
        self._count += 1
        request = together([Request(count, 600.0) for count in processors])
        described = JobDescription(str(self._count), self.now(), request, pool="batch", user="alice")
        self._adapter.submit(TraceJob(described, 60.0))
        return described.id

    def release(self, job_id: str) -> None:
        self._adapter.apply(self.now(), [d.Release(job_id)])

    def cancel(self, job_id: str) -> None:
        self._adapter.apply(self.now(), [d.Cancel(job_id)])

    def second_pool(self) -> tuple[str, dict[str, Any]]:
        return "second", {}

    def drain(self, node: str) -> None:
        raise NotImplementedError

    def undrain(self, node: str) -> None:
        raise NotImplementedError

    def runs(self) -> dict[str, Placement]:
        return {r.job.id: r.placement for r in self._adapter.results() if r.state == "running"}

    def waits(self) -> set[str]:
        return {r.job.id for r in self._adapter.results() if r.state == "pending"}

    def executions(self, job_id: str) -> int:
        record = next(r for r in self._adapter.results() if r.job.id == job_id)
        return record.starts if record.start is not None else 0


# ---------------------------------------------------------------------- batch systems


class CommandSite(Site):
    """A batch system that is spoken to through its commands."""

    can = ORDINARY
    names: Collection[str] = ()

    def __init__(self, environment: Mapping[str, str], *, user: str = "") -> None:
        """``user`` gives the users' commands."""
        self.mine, self.drained = set(), set()
        self.environment = dict(environment)
        self.user = user
        self._recorders: list[Recorder] = []

    def run(self, *argv: str, user: bool = False, stdin: str = "") -> str:
        """Run a command, as the user if ``user``; what it printed. Raises :class:`Failure`."""
        argv, environment = self.as_user(argv) if user else (argv, self.environment)
        done = subprocess.run(
            argv, env=environment, input=stdin, capture_output=True, text=True, timeout=HANG, cwd="/"
        )
        if done.returncode != 0:
            raise Failure(f"{argv}: {done.returncode} {done.stdout} {done.stderr}")
        return done.stdout

    def as_user(self, argv: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
        """A command line and environment that run it as the user."""
        if not self.user or self.user == getpass.getuser():
            return argv, self.environment
        return ("runuser", "-u", self.user, "--", *argv), self.environment

    def recorder(self, adapter_of: Any) -> Any:
        """An adapter whose commands are recorded: ``adapter_of(transport)``."""
        recorder = Recorder(self.transport())
        self._recorders.append(recorder)
        return adapter_of(recorder)

    def transport(self) -> Transport:
        """A new way to the commands."""
        return LocalTransport(environment=self.environment, workers=8)

    def changes(self) -> list[tuple[str, ...]]:
        """The commands of adapters that changed something."""
        ran = [argv for recorder in self._recorders for argv in recorder.commands]
        return [argv for argv in ran if argv[0] in CHANGING or argv[:2] == ("scontrol", "update")]


class PbsSite(CommandSite):
    """A PBS with a queue of its own for the tests."""

    name = "pbs"
    #: How often the adapter looks. A real one's commands are rationed.
    pace: Mapping[str, Any] = {**PACE, "poll_interval": 1.0, "start_timeout": 8.0, "command_timeout": 15.0}

    def __init__(self, environment: Mapping[str, str], *, queue: str = "workq", user: str = "") -> None:
        super().__init__(environment, user=user)
        self.queue = queue
        self._beside = False

    def beside(self, on: bool) -> None:
        """PBS's own scheduler confirms reservations; the queue is stopped to keep it from the jobs."""
        self.run("qmgr", "-c", f"set queue {self.queue} started = {not on}")
        self.run("qmgr", "-c", f"set server scheduling = {on}")
        self._beside = on

    def second_pool(self) -> tuple[str, dict[str, Any]]:
        return "second", {"queues": [self.queue, "second"]}

    def telling(self) -> dict[str, Any]:
        if not self.has_notes():
            pytest.skip("jobs of this PBS cannot be told anything: it has no resource headway_notes")
        return {"notes": True}

    def has_notes(self) -> bool:
        """Whether jobs have a resource for what they are told."""
        try:
            self.run("qmgr", "-c", "list resource headway_notes")
        except Failure:
            return False
        return True

    def adapter(self, *, read_only: bool = False, **options: Any) -> ClusterAdapter:
        settings = {"queues": [self.queue], **self.pace, **options}
        return self.recorder(lambda transport: PbsAdapter(settings, read_only=read_only, transport=transport))

    def bring(self, job: Wanted) -> str:
        chunks = job.nodes or 1
        words = ["qsub", "-q", self.queue, "-l", f"select={chunks}:ncpus={job.processors // chunks}"]
        words += ["-l", f"walltime={job.minutes // 60}:{job.minutes % 60:02}:00", "-N", job.name]
        words += ["-l", "place=scatter"] if job.nodes > 1 else []
        words += ["-h"] if job.held else []
        words += ["-W", f"depend=afterok:{job.after}"] if job.after else []
        # Output that cannot be delivered keeps a job, and its vnodes, for half a minute.
        words += ["-o", "/dev/null", "-e", "/dev/null"]
        return self.run(*words, "--", "/bin/sleep", str(job.seconds), user=True).strip()

    def release(self, job_id: str) -> None:
        self.run("qrls", "-h", "u", job_id, user=True)

    def cancel(self, job_id: str) -> None:
        self.run("qdel", job_id)

    def drain(self, node: str) -> None:
        # pbsnodes knows hosts only, which may have several vnodes.
        self.run("qmgr", "-c", f"set node {node} state = offline")

    def undrain(self, node: str) -> None:
        self.run("qmgr", "-c", f"set node {node} state = free")

    def _jobs(self) -> dict[str, dict[str, Any]]:
        return json.loads(self.run("qstat", "-t", "-f", "-F", "json")).get("Jobs", {})

    def runs(self) -> dict[str, Placement]:
        found = {}
        for job_id, record in self._jobs().items():
            if record["job_state"] in ("R", "S", "E"):
                counts: dict[str, int] = {}
                for node, count in re.findall(r"\(?([^+():]+):(?:[^+)]*:)?ncpus=(\d+)", record["exec_vnode"]):
                    counts[node] = counts.get(node, 0) + int(count)
                found[job_id] = tuple(counts.items())
        return found

    def waits(self) -> set[str]:
        return {job_id for job_id, record in self._jobs().items() if record["job_state"] in ("Q", "H", "W")}

    def executions(self, job_id: str) -> int:
        shown = json.loads(self.run("qstat", "-x", "-f", "-F", "json", job_id))
        return int(shown["Jobs"][job_id].get("run_count", 0))

    def clean(self) -> None:
        left = set(self.mine)
        super().clean()
        end = time.monotonic() + 120.0
        while left & (self.runs().keys() | self.waits()):
            # What was killed keeps its vnodes until its host has cleaned up.
            assert time.monotonic() < end, f"killed jobs do not leave: {self.runs()}"
            time.sleep(0.2)
        if self._beside:
            self.beside(False)


class RealPbs(PbsSite):
    """A real PBS on several hosts, started by the tests."""

    can = PbsSite.can | {"outage"}
    #: Its users exist inside only, and each command takes its time to get there.
    patience = 60.0

    def __init__(self, server: BatchServer) -> None:
        self.server = server
        path = f"{server.root / 'bin'}{os.pathsep}{os.environ['PATH']}"
        super().__init__({**os.environ, "PATH": path}, queue="hwtest")

    def as_user(self, argv: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
        return tuple(self.server.inside(*argv, user="alice")), self.environment

    def reserving(self) -> dict[str, Any]:
        self.server.restart("sched")
        self.beside(True)
        return {"reservations": True}

    def telling(self) -> dict[str, Any]:
        self.server.headway_notes()
        return super().telling()

    def beside(self, on: bool) -> None:
        super().beside(on)
        if not on:
            self.server.kill("sched")

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        # A server that crashes puts a vnode back into maintenance, on which a job of its history was
        # suspended once.
        self.server.run("bash", "-c", "qselect -x -s F | xargs -r qdel -x", user="root")
        # One that crashes before a MoM has said that a job began requeues that job when it is back.
        begun = "no start is on its way"
        self.server.until(lambda: "substate = 41" not in self.server.run("qstat", "-f"), begun)
        self.server.kill("server", "-9")
        try:
            yield
        finally:
            self.server.restart("server")


class LsfSite(CommandSite):
    """An LSF with a queue of its own for the tests."""

    name = "lsf"
    pace: Mapping[str, float] = PACE

    def __init__(self, environment: Mapping[str, str], *, queue: str = "normal", user: str = "") -> None:
        # LSF's times have no zone; what runs the commands otherwise sets this by itself.
        super().__init__({**environment, "TZ": "UTC"}, user=user)
        self.queue = queue
        if "IBM" not in self.run("lsid"):
            # brun fills one host after the other.
            self.can = self.can - {"shapes"}

    def adapter(self, *, read_only: bool = False, **options: Any) -> ClusterAdapter:
        settings = {"queues": [self.queue], **self.pace, **options}
        return self.recorder(lambda transport: LsfAdapter(settings, read_only=read_only, transport=transport))

    def second_pool(self) -> tuple[str, dict[str, Any]]:
        return "second", {"queues": [self.queue, "second"]}

    def bring(self, job: Wanted) -> str:
        words = ["bsub", "-q", self.queue, "-n", str(job.processors), "-W", str(job.minutes), "-J", job.name]
        words += ["-R", f"span[ptile={job.processors // job.nodes}]"] if job.nodes else []
        words += ["-H"] if job.held else []
        words += ["-w", f"done({job.after})"] if job.after else []
        # Without it the job stays until its output was delivered to a directory that may not be writable.
        words += ["-o", "/dev/null"]
        said = self.run(*words, "sleep", str(job.seconds), user=True)
        return re.match(r"Job <(\d+)>", said)[1]  # type: ignore[index]

    def release(self, job_id: str) -> None:
        self.run("bresume", job_id, user=True)

    def cancel(self, job_id: str) -> None:
        self.run("bkill", job_id)

    def drain(self, node: str) -> None:
        self.run("badmin", "hclose", node)

    def undrain(self, node: str) -> None:
        self.run("badmin", "hopen", node)

    def _rows(self, *options: str) -> list[list[str]]:
        with contextlib.suppress(Failure):
            lines = self.run("bjobs", "-u", "all", "-w", *options).splitlines()[1:]
            return [line.split() for line in lines if re.match(r"\d", line)]
        return []

    def runs(self) -> dict[str, Placement]:
        found = {}
        for row in self._rows():
            if row[2] in ("RUN", "USUSP", "SSUSP"):
                counts: dict[str, int] = {}
                for word in row[5].split(":"):
                    count, star, host = word.rpartition("*")
                    counts[host] = counts.get(host, 0) + (int(count) if star else 1)
                found[row[0]] = tuple(counts.items())
        return found

    def waits(self) -> set[str]:
        return {row[0] for row in self._rows() if row[2] in ("PEND", "PSUSP")}

    def executions(self, job_id: str) -> int:
        return self.run("bhist", "-a", "-l", job_id).count("Starting (Pid")

    def clean(self) -> None:
        mine = set(self.mine)
        super().clean()
        end = time.monotonic() + LONG
        while mine & {row[0] for row in self._rows()} and time.monotonic() < end:
            time.sleep(0.2)


class RealLsf(LsfSite):
    """A real LSF of several hosts, started for the tests; alice submits, headway administers the queue."""

    can = LsfSite.can | {"outage"}
    # tests/integration/test_drive_lsf.py tries the others.
    names = (NAMES[3],)
    patience = LONG
    #: Starts, and commands through the launcher, take their time.
    pace: Mapping[str, float] = {**PACE, "start_timeout": 60.0, "command_timeout": 30.0}

    def __init__(self, server: BatchServer) -> None:
        path = f"{server.root / 'bin'}:{os.environ['PATH']}"
        super().__init__({**os.environ, "PATH": path}, queue="hwtest", user="alice")
        self.server = server

    def as_user(self, argv: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
        return argv, {**self.environment, "TESTSERVER_USER": self.user}

    def drain(self, node: str) -> None:
        self.server.run("badmin", "hclose", node, user="volclava")

    def undrain(self, node: str) -> None:
        self.server.run("badmin", "hopen", node, user="volclava")

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        with self.server.lsf_outage():
            yield

    def clean(self) -> None:
        super().clean()

        def idle() -> bool:
            rows = [line.split() for line in self.run("bhosts", "-w").splitlines()[1:]]
            return all(row[1] == "ok" and row[4] == "0" for row in rows)

        self.server.until(idle, "the hosts are free", LONG)


class _Emulated(CommandSite):
    """What an emulator can be made to do besides."""

    can = ORDINARY | {
        "pools", "executions", "outage", "drop", "garbage", "truncate", "slow-start", "refuse-start",
    }  # fmt: skip
    names = NAMES
    emulator: Emulator

    def as_user(self, argv: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
        return argv, {**self.environment, "HEADWAY_EMULATED_USER": "alice"}

    def transport(self) -> Transport:
        return InProcess(self.emulator.directory, self.environment, workers=8)

    def control(self, *words: str) -> str:
        return self.run("emulator-ctl", *words)

    def drop(self, job_id: str) -> None:
        self.control("drop", job_id)

    @contextlib.contextmanager
    def fault(self, kind: str) -> Iterator[None]:
        # Slow are the start commands alone.
        self.control("fault", "slow:30@qrun,brun" if kind == "slow-start" else kind)
        try:
            yield
        finally:
            self.control("fault", "none")

    def outage(self) -> contextlib.AbstractContextManager[None]:
        return self.fault("down")

    def close(self) -> None:
        self.emulator.stop()


def _emulator(directory: Path, **options: Any) -> tuple[Emulator, dict[str, str]]:
    settings = EmulatorOptions(nodes=4, processors=PROCESSORS, scheduling=False, start_delay=0.05, **options)
    emulator = Emulator(directory, settings)
    emulator.__enter__()
    return emulator, {**os.environ, "PATH": f"{emulator.bin}:{os.environ['PATH']}"}


class EmulatedPbs(_Emulated, PbsSite):
    """PBS's commands over the emulated cluster."""

    name = "pbs-emulator"
    pace: Mapping[str, Any] = {**PACE, "commands_per_minute": None}

    def __init__(self, directory: Path) -> None:
        self.emulator, environment = _emulator(directory, system="pbs", queues=("workq", "second"))
        # Not root, to whom PBS grants no reservation.
        PbsSite.__init__(self, {**environment, "HEADWAY_EMULATED_USER": "headway:manager"})

    def reserving(self) -> dict[str, Any]:
        self.beside(True)
        return {"reservations": True}

    def has_notes(self) -> bool:
        return True


class EmulatedLsf(_Emulated, LsfSite):
    """LSF's commands over the emulated cluster."""

    def __init__(self, directory: Path, flavour: str) -> None:
        self.name = f"lsf-emulator-{flavour}"
        self.emulator, environment = _emulator(
            directory, system="lsf", flavour=flavour, queues=("normal", "second")
        )
        LsfSite.__init__(self, environment)


class SlurmSite(CommandSite):
    """A throw-away Slurm of four nodes."""

    name = "slurm"
    can = ORDINARY | {"outage", "parts", "pools"}
    # sbatch takes none of several lines.
    names = tuple(name for name in NAMES if "\n" not in name)
    # Slurm may be quicker with a released job than headway with its own hold.
    starts_released = True
    rests_requeued = True
    loses_early_signals = True
    patience = 30.0

    def __init__(self, cluster: SlurmCluster) -> None:
        super().__init__(cluster.env)
        self.cluster = cluster

    def settings(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The adapter's options."""
        pace = {**PACE, "start_timeout": 3.5}
        return {"partitions": ["batch"], **self.cluster.options, **pace, **options}

    def adapter(self, *, read_only: bool = False, **options: Any) -> ClusterAdapter:
        settings = self.settings(options)
        return self.recorder(
            lambda transport: SlurmAdapter(settings, read_only=read_only, transport=transport)
        )

    def second_pool(self) -> tuple[str, dict[str, Any]]:
        if "PartitionName=second" not in self.cluster.scontrol("show", "partition"):
            self.cluster.scontrol("create", "PartitionName=second", "Nodes=ALL", "State=UP")
        return "second", {"partitions": ["batch", "second"]}

    def bring(self, job: Wanted) -> str:
        more: dict[str, Any] = {"dependency": f"afterok:{job.after}"} if job.after else {}
        if job.nodes:
            more["ntasks_per_node"] = job.processors // job.nodes
        return self.cluster.submit(
            job.processors, job.seconds, nodes=job.nodes or None, administrator=not job.held,
            minutes=job.minutes, job_name=job.name, **more,
        )  # fmt: skip

    def bring_parts(self, processors: Sequence[int]) -> str:
        words = ["sbatch", "--parsable", "-o", "/dev/null", "-D", "/"]
        for at, count in enumerate(processors):
            words += [*([":"] if at else []), "--hold", "-t10", f"-n{count}"]
        job_id = self.cluster.run(*words, "--wrap", "sleep 60").split(";")[0]
        self.cluster.scontrol("update", f"JobId={job_id}", "Priority=0")
        return job_id

    def release(self, job_id: str) -> None:
        self.cluster.scontrol("release", job_id)

    def cancel(self, job_id: str) -> None:
        self.cluster.run("scancel", job_id)

    def drain(self, node: str) -> None:
        self.cluster.scontrol("update", f"NodeName={node}", "State=DRAIN", "Reason=test")

    def undrain(self, node: str) -> None:
        self.cluster.scontrol("update", f"NodeName={node}", "State=RESUME")

    def runs(self) -> dict[str, Placement]:
        found = {}
        for line in self.cluster.run("scontrol", "-d", "-o", "show", "job").splitlines():
            fields = dict(re.findall(r"(\S+?)=(\S*)", line))
            if fields.get("JobState") in ("RUNNING", "SUSPENDED", "COMPLETING"):
                found[fields["JobId"]] = tuple(
                    (node, sum(_span(part) for part in cpus.split(",")))
                    for names, cpus in re.findall(r"Nodes=(\S+) CPU_IDs=([0-9,-]+)", line)
                    for node in hostlist.expand(names)
                )
        return found

    def waits(self) -> set[str]:
        return {key for key, r in self.cluster.jobs().items() if r["job_state"] == "PENDING"}

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        # What is younger than a few seconds is forgotten otherwise.
        self.cluster.saved()
        self.cluster.kill("slurmctld")
        try:
            yield
        finally:
            self.cluster.up("slurmctld")

    def clean(self) -> None:
        left = bool(self.mine)
        super().clean()
        if left:
            self.cluster.until(lambda: not self.runs(), what="every job has left")

    def close(self) -> None:
        self.cluster.stop()


class SlurmOverSsh(SlurmSite):
    """The same Slurm, reached through an SSH server on this machine."""

    name = "slurm-over-ssh"
    can = SlurmSite.can - {"changes"}
    # The others are tried on the same Slurm without SSH.
    names = (NAMES[3],)

    def __init__(self, cluster: SlurmCluster, server: Any) -> None:
        super().__init__(cluster)
        self.server = server

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """The machine cannot be reached, and what was connected is cut off."""
        self.server.cut()
        self.server.stop()
        try:
            yield
        finally:
            self.server.start()

    def adapter(self, *, read_only: bool = False, **options: Any) -> ClusterAdapter:
        ssh = {
            "host": "127.0.0.1", "port": self.server.port, "user": self.server.user,
            "key_file": str(self.server.key), "known_hosts": str(self.server.known_hosts), "agent": False,
        }  # fmt: skip
        pace = {"ssh": ssh, "poll_interval": 0.3, "confirm_interval": 0.08}
        return SlurmAdapter(self.settings({**pace, **options}), read_only=read_only)


def _span(part: str) -> int:
    """How many numbers ``3`` or ``0-3`` are."""
    first, _, last = part.partition("-")
    return int(last or first) - int(first) + 1
