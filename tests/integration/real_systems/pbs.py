"""A real OpenPBS of three hosts with eight processors each; its users are alice and bob."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from batch_servers import BatchServer
from live_daemon import Daemon

from real_systems.base import EXECUTED, RealSystem
from real_systems.inside import InsideDaemon

#: What ``qsub`` would not let through; the library takes it, and so may every user's program.
SUBMIT = r"""
import ctypes, json, sys
class Attribute(ctypes.Structure): pass
Attribute._fields_ = [
    ("next", ctypes.POINTER(Attribute)), *((name, ctypes.c_void_p) for name in ("name", "resource", "value")),
    ("op", ctypes.c_int),
]
# The library frees what it replaces.
strdup = ctypes.CDLL(None).strdup
strdup.restype = ctypes.c_void_p
pbs = ctypes.CDLL("/opt/pbs/lib/libpbs.so")
pbs.pbs_submit.restype = pbs.pbs_geterrmsg.restype = ctypes.c_char_p
connection = pbs.pbs_connect(None)
for attributes, script in json.load(sys.stdin):
    kept, first = [], None
    for name, resource, value in reversed(attributes):
        raw = [part and strdup(part.encode("utf-8", "surrogateescape")) for part in (name, resource, value)]
        kept.append(Attribute(first and ctypes.pointer(first), *raw, 0))
        first = kept[-1]
    found = pbs.pbs_submit(connection, ctypes.pointer(first), script.encode(), None, None)
    print((found or b"").decode(), (pbs.pbs_geterrmsg(connection) or b"").split(b"\n")[0])
"""
#: Output that cannot be delivered keeps a job, and its vnodes, for half a minute.
_NO_OUTPUT = ("-o", "/dev/null", "-e", "/dev/null")


class Pbs(RealSystem):
    name = "pbs"
    nodes = 3
    processors = 8
    own_id = "$PBS_JOBID"
    history = "qstat -x -f"
    no_job = "99999.pbsa"

    def __init__(self, server: BatchServer, directory: Path) -> None:
        super().__init__(directory)
        self.server = server

    def options(self, **more: Any) -> dict[str, Any]:
        return {"queues": ["workq"], "poll_interval": 1.0, "start_timeout": 60.0, **more}

    def new_daemon(self, directory: Path, options: dict[str, Any], config: dict[str, Any]) -> Daemon:
        return InsideDaemon(self.server, directory, self.options(bin_dir="/opt/pbs/bin", **options), **config)

    # -- users -------------------------------------------------------------------------------------

    def qsub(
        self, select: str, *words: str, seconds: float = 1.0, minutes: int = 5, user: str = "alice"
    ) -> str:
        """A job of these chunks; its id."""
        limit = f"walltime={minutes // 60}:{minutes % 60:02}:00"
        argv = ["qsub", "-l", f"select={select}", "-l", limit, *_NO_OUTPUT, *words, str(self.script(seconds))]
        return self.server.run(*argv, user=user)

    def submit(
        self,
        processors: int = 1,
        seconds: float = 600,
        *,
        minutes: int = 10,
        nodes: int = 0,
        held: bool = False,
    ) -> str:
        apart = ["-l", "place=scatter"] if nodes > 1 else []
        count = nodes or -(-processors // self.processors)
        return self.qsub(
            f"{count}:ncpus={processors // count}", *apart, *(["-h"] if held else []),
            seconds=seconds, minutes=minutes,
        )  # fmt: skip

    def submit_raw(self, *jobs: list[tuple[str, str | None, str]], user: str = "alice") -> list[str]:
        """Jobs of the library's, each with these attributes: their ids, "" for what PBS refused."""
        base = [["Output_Path", None, "pbsa:/dev/null"], ["Error_Path", None, "pbsa:/dev/null"]]
        wanted = json.dumps([[[*base, *job], str(self.script(1.0))] for job in jobs])
        program = self.directory / "submit.py"
        program.write_text(SUBMIT)
        said = self.server.call("/usr/bin/python3", str(program), user=user, stdin=wanted).stdout
        return [line.partition(" ")[0] for line in said.splitlines()]

    def impossible(self) -> list[str]:
        # pbsc is the host that is taken out of service.
        asked = (
            "100000:ncpus=1", "1:ncpus=99999999", "1:ncpus=1:mem=8000pb", "1:ncpus=1:host=nowhere",
            "1:ncpus=9", "4:ncpus=5",
        )  # fmt: skip
        return [self.qsub(select) for select in asked]

    def hostile(self, victim: str) -> list[str]:
        found = self.submit_raw(*_hostile(victim))
        assert sum(bool(job) for job in found) > 15
        # At this one OpenPBS's own qstat crashes. Where it does not, the job runs as any.
        (breaking,) = self.submit_raw([_ASK, ("Submit_arguments", None, "a & b")])
        shown = self.server.call("qstat", "-f", breaking).returncode == 0
        return [job for job in (*found, *([breaking] if shown else [])) if job]

    def cancel(self, job: str) -> None:
        self.server.run("qdel", job)

    def _state(self, job: str) -> str:
        found = re.search(r"job_state = (\w)", self.server.call("qstat", "-f", job).stdout)
        return found[1] if found else ""

    def runs(self, job: str) -> bool:
        return self._state(job) == "R"

    def waits(self, job: str) -> bool:
        return self._state(job) in ("Q", "H", "W")

    # -- its operator --------------------------------------------------------------------------------

    def _begun(self) -> None:
        """MoMs have said of all jobs that run that they began."""
        begun = "no start is on its way"
        self.server.until(lambda: "substate = 41" not in self.server.run("qstat", "-f"), begun)

    def everything(self) -> list[str]:
        self._begun()
        lines = self.server.run("qstat", "-t", "-f").splitlines()
        # What MoMs tell of running jobs now and then.
        return [line for line in lines if "resources_used" not in line and " mtime = " not in line]

    def node_down(self) -> None:
        self.server.run("pbsnodes", "-o", "pbsc", user="root")

    def node_up(self) -> None:
        self.server.run("pbsnodes", "-r", "pbsc", user="root")

    @contextlib.contextmanager
    def another_pool(self) -> Iterator[str]:
        """A queue that the operator makes, on all hosts; it is deleted afterwards."""
        self.server.run("qmgr", "-c", "create queue extra queue_type=execution,enabled=True,started=True")
        try:
            yield "extra"
        finally:
            # PBS's history keeps a queue.
            self.server.call("bash", "-c", "qselect -x -q extra | xargs -r qdel -x -W force", user="root")
            self.server.until(lambda: not self.server.run("qselect", "-x", "-q", "extra"), "its jobs left")
            self.server.run("qmgr", "-c", "delete queue extra")

    @contextlib.contextmanager
    def two_queues(self) -> Iterator[tuple[str, str]]:
        """Two queues of headway's on all hosts, the second with the higher priority."""
        for queue, priority in (("workq", 50), ("hwtest", 100)):
            self.server.run("qmgr", "-c", f"set queue {queue} Priority={priority}")
        try:
            yield "workq", "hwtest"
        finally:
            for queue in ("workq", "hwtest"):
                self.server.run("qmgr", "-c", f"unset queue {queue} Priority")

    def submit_to(
        self, queue: str, nodes: int, seconds: float, *, minutes: int = 20, user: str = "alice"
    ) -> str:
        """A job of so many whole hosts in this queue; its id."""
        select = f"{nodes}:ncpus={self.processors}"
        return self.qsub(select, "-q", queue, seconds=seconds, minutes=minutes, user=user)

    def run_elsewhere(self, pool: str, processors: int) -> str:
        """A job that runs in a pool that is not headway's; its id."""
        job = self.qsub(f"1:ncpus={processors}", "-q", pool, seconds=600, minutes=30)
        self.server.run("qrun", "-H", f"(pbsa:ncpus={processors})", job)
        return job

    @contextlib.contextmanager
    def own_scheduler(self, *queues: str) -> Iterator[None]:
        """PBS's own scheduler runs and leaves these queues alone; no reservation is left afterwards."""
        self.server.restart("sched")
        on = (*(f"set queue {queue} started = False" for queue in queues), "set server scheduling = True")
        off = ("set server scheduling = False", *(f"set queue {queue} started = True" for queue in queues))
        try:
            for line in on:
                self.server.run("qmgr", "-c", line)
            yield
        finally:
            for name in self.reservations():
                self.server.call("pbs_rdel", name, user="root")
            for line in off:
                self.server.run("qmgr", "-c", line)
            self.server.kill("sched")

    def reservations(self) -> dict[str, str]:
        """PBS's name of each reservation -> its user's."""
        shown = self.server.run("pbs_rstat", "-F").split("Resv ID: ")[1:]
        return {text.split()[0]: (re.findall(r"Reserve_Name = (.*)", text) or [""])[0] for text in shown}

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        # One that crashes before a MoM has said that a job began requeues that job when it is back.
        self._begun()
        self.server.kill("server", "-9")
        try:
            yield
        finally:
            self.server.restart("server")

    def clean(self) -> None:
        self.server.call("bash", "-c", "qselect | xargs -r qdel -W force", user="root")
        self.server.until(lambda: not self.server.run("qselect"), "all jobs have left")
        self.node_up()
        self._end_maintenance()

    def _end_maintenance(self) -> None:
        """A server that was killed brings the maintenance back in which a vnode was for a job that has been
        resumed and is over since. Nobody may change its ``maintenance_jobs``; only a new vnode ends it."""
        for shown in self.server.run("pbsnodes", "-a").split("\n\n"):
            if re.search(r"state = \S*maintenance", shown):
                node = shown.split()[0]
                for word in ("delete", "create"):
                    self.server.run("qmgr", "-c", f"{word} node {node}", user="root")
                self.server.until(partial(self._is_free, node), f"{node} is free")

    def _is_free(self, node: str) -> bool:
        return "state = free" in self.server.run("pbsnodes", "-v", node)

    def shell(self, line: str) -> str:
        done = self.server.call("bash", "-c", line, user="root")
        return done.stdout + done.stderr


_ASK = ("Resource_List", "select", "1:ncpus=1")


def record(victim: str, line: str = "\n") -> str:
    """What would be another job's record in the text form."""
    return line.join(
        ["x", f"Job Id: {victim}", "    job_state = R", "    exec_vnode = (pbsa:ncpus=8)+(pbsb:ncpus=8)",
         "    Resource_List.walltime = 90:00:00", ""]
    )  # fmt: skip


def _hostile(victim: str) -> list[list[tuple[str, str | None, str]]]:
    """Attributes of jobs whose texts pretend to be something else, or break what reads them."""
    texts = [
        "a\\q", "ü☃", "\udce2\udcca\udcff", record(victim), record(victim, "\udcca"),
        'x"},"' + victim + '":{"', f"x\udccaJob Id: {victim}\x1c|", "\\", "^", "\x1c", "\udcc0", "1e999",
        EXECUTED, "\x1b[2J\x07",
    ]  # fmt: skip
    found = [[_ASK, ("Account_Name", None, text)] for text in texts]
    found += [[_ASK, ("Variable_List", None, f"X={text}")] for text in texts[:6]]
    found += [[_ASK, ("Variable_List", None, f"A={record(victim)}\nB=1,D\nE=2")]]
    found += [[_ASK, ("project", None, text)] for text in ("ü", record(victim, "\udcca"), "^", EXECUTED)]
    # What is shown of a job besides, of which headway reads nothing.
    for name in ("Mail_Users", "Submit_arguments"):
        found += [[_ASK, (name, None, text)] for text in (record(victim), EXECUTED.replace("&", "."))]
    return found
