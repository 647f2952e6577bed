"""A real LSF (volclava) of three hosts with four slots each; its users are alice and bob."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from batch_servers import BatchServer
from live_daemon import Daemon

from real_systems.base import EXECUTED, RealSystem
from real_systems.inside import InsideDaemon

QUEUE = "hwtest"
#: What an operator adds to lsb.hosts and lsb.queues: a host group, and a queue on it.
_GROUP = """
Begin HostGroup
GROUP_NAME  GROUP_MEMBER
some        (lsfa lsfb)
End HostGroup
"""
_EXTRA = """
Begin Queue
QUEUE_NAME = extra
PRIORITY   = 30
HOSTS      = some
ADMINISTRATORS = headway
End Queue
"""
#: In a name, a project, a description.
TEXTS = (
    "two words", "it's", 'say "hello"', EXECUTED, "-n", "ümläut ☃", "a<b>c d, Status <RUN>, Queue <normal>",
    "back\\slash", "tab\there", "x" * 100, "new\nline Nov 22 04:36", "\x1b[2J\x07", "job>, User <root",
)  # fmt: skip
#: A line of the path has at most 255 characters, all of it too.
_RECORD = """x>;
{line}

Job <{job}>, Job Name <x>, User <bob>
Sun Nov 22 02:38:18: Submitted from host </x>, CWD <x>, 9 Task(s);
 y"""
#: Behind a text of the details: what would end it, and say something else of the job.
_ENDS = """true>, 4000 Task(s), Specified Hosts <lsfc>, Dependency Condition <done(1)>;
# {line}

# Job <{job}>, """


class Lsf(RealSystem):
    name = "lsf"
    nodes = 3
    processors = 4
    own_id = "$LSB_JOBID"
    history = "bjobs -u all -a -w; bhist -u all -a -l"

    def __init__(self, server: BatchServer, directory: Path) -> None:
        super().__init__(directory)
        self.server = server

    def options(self, **more: Any) -> dict[str, Any]:
        return {
            "queues": [QUEUE], "poll_interval": 0.5, "command_timeout": 10.0, "start_timeout": 60.0, **more,
        }  # fmt: skip

    def new_daemon(self, directory: Path, options: dict[str, Any], config: dict[str, Any]) -> Daemon:
        mine = {"bin_dir": "/opt/volclava/bin", "environment": {"LSF_ENVDIR": "/opt/volclava/etc"}}
        return InsideDaemon(self.server, directory, self.options(**mine, **options), **config)

    # -- users -------------------------------------------------------------------------------------

    def bsub(self, *words: str, user: str = "alice", stdin: str = "") -> str:
        """A job; its id."""
        said = self.server.run("bsub", "-q", QUEUE, "-o", "/dev/null", *words, user=user, stdin=stdin)
        number = re.search(r"Job <(\d+)>", said)
        assert number is not None, said
        return number[1]

    def submit(
        self,
        processors: int = 1,
        seconds: float = 600,
        *,
        minutes: int = 10,
        nodes: int = 0,
        held: bool = False,
    ) -> str:
        words = ["-n", str(processors), "-W", str(minutes), *(["-H"] if held else [])]
        words += ["-R", f"span[ptile={processors // nodes}]"] if nodes else []
        return self.bsub(*words, str(self.script(seconds)))

    def impossible(self) -> list[str]:
        asked = (
            ("-n", "13"), ("-n", "5", "-R", "span[hosts=1]"), ("-n", "2", "-R", "rusage[mem=99999999]"),
            ("-R", "select[maxmem>99999999]"), ("-n", "13,24"),
        )  # fmt: skip
        return [self.bsub(*words, "true") for words in asked]

    def hostile(self, victim: str) -> list[str]:
        script = str(self.script(0.2))
        found = [self.bsub("-J", text, "-P", text[:50], "-Jd", text[:200], script) for text in TEXTS]
        record = _RECORD.format(line="-" * 78, job=victim)
        ends = _ENDS.format(line="-" * 78, job=victim)
        # What is run before the job, and a script on standard input, may hold any text, line breaks too. In
        # the first it cannot be told from facts of the same job: it may cost that one.
        self.bsub("-E", f"true # {ends}", script)
        found.append(self.bsub("-E", f"true # {EXECUTED}", script))
        for text in (ends, record, "\n".join(TEXTS)):
            quoted = "".join(f"# {line}\n" for line in text.splitlines())
            named = f'#!/bin/sh\n#BSUB -J "{text.splitlines()[0]}"\n'
            found.append(self.bsub(stdin=f"{named}{quoted}{script}\n"))
        # bsub takes line breaks out of names and commands, and leaves them in the path of the directory.
        make = f'mkdir -p "$1" && cd "$1" && exec bsub -q {QUEUE} -o /dev/null {script}'
        said = self.server.run("bash", "-c", make, "bash", record, user="alice")
        return [*found, re.findall(r"<(\d+)>", said)[0]]

    def cancel(self, job: str) -> None:
        self.server.run("bkill", job)

    def _state(self, job: str) -> str:
        rows = self.server.call("bjobs", "-w", job).stdout.splitlines()[1:]
        return rows[0].split()[2] if rows else ""

    def runs(self, job: str) -> bool:
        return self._state(job) == "RUN"

    def waits(self, job: str) -> bool:
        return self._state(job) in ("PEND", "PSUSP")

    # -- its operator --------------------------------------------------------------------------------

    def everything(self) -> list[str]:
        said = self.server.run("bjobs", "-u", "all", "-UF")
        # What LSF finds out by and by: why a job waits, and what a running one uses.
        said = re.sub(r"(?ms)^ (PENDING REASONS|MEMORY USAGE):.*?(?=^ SCHEDULING)", "", said)
        return [line for line in said.splitlines() if not re.search(r"Resource usage|CPU time used", line)]

    def node_down(self) -> None:
        self.server.run("badmin", "hclose", "lsfc", user="volclava")

    def node_up(self) -> None:
        self.server.run("badmin", "hopen", "lsfc", user="volclava")

    @contextlib.contextmanager
    def another_pool(self) -> Iterator[str]:
        """A queue that the operator makes, on a host group that she makes with it; both go afterwards."""
        with (
            self.server.lsf_configuration("lsb.hosts", _GROUP),
            self.server.lsf_configuration("lsb.queues", _EXTRA),
        ):
            self.until(lambda: self.server.call("bqueues", "extra").returncode == 0, "the queue is there")
            yield "extra"

    @contextlib.contextmanager
    def two_queues(self) -> Iterator[tuple[str, str]]:
        """Two queues of headway's on all hosts, the second with the higher priority; LSF starts nothing of
        theirs."""
        self.server.run("badmin", "qinact", "normal", user="volclava")
        try:
            yield QUEUE, "normal"
        finally:
            self.server.run("badmin", "qact", "normal", user="volclava")

    def submit_to(
        self, queue: str, nodes: int, seconds: float, *, minutes: int = 20, user: str = "alice"
    ) -> str:
        """A job of so many whole hosts in this queue; its id."""
        words = ("-q", queue, "-n", str(nodes * self.processors), "-W", str(minutes))
        return self.bsub(*words, "-R", f"span[ptile={self.processors}]", str(self.script(seconds)), user=user)

    def run_elsewhere(self, pool: str, processors: int) -> str:
        """A job that runs in a pool that is not headway's; its id."""
        job = self.bsub("-q", pool, "-n", str(processors), "-W", "30", str(self.script(600)))
        self.until(lambda: self.runs(job), "the job of the new queue runs")
        return job

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        with self.server.lsf_outage():
            yield

    def clean(self) -> None:
        self.server.call("bkill", "-u", "all", "0", user="root")

        def nothing_left() -> bool:
            return "No unfinished job" in self.server.call("bjobs", "-u", "all").stderr

        self.server.until(nothing_left, "no job is left")
        self.node_up()

    def shell(self, line: str) -> str:
        done = self.server.call("bash", "-c", line, user="root")
        return done.stdout + done.stderr
