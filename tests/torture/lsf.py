"""A real LSF (volclava), and its records: ``lsb.events``, which mbatchd itself lives by."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from live_daemon import Daemon
from real_systems.inside import InsideDaemon

from torture.history import History
from torture.inside import InsideSystem
from torture.stamps import Run
from torture.stream import Act, Shape, Wanted
from torture.system import Answer, Records, Share, asked

_UNDER_WAY = "Operation is in progress"
#: Bits of a job's status in JOB_STATUS.
EXIT, DONE = 0x20, 0x40


class Lsf(InsideSystem):
    """Three hosts of four slots. Its ``brun`` fills hosts, so larger jobs are multiples of four."""

    name = "lsf"
    hosts = {"lsfa": 4, "lsfb": 4, "lsfc": 4}
    shapes = [
        Shape(1, 1, False, 5), Shape(1, 2, False, 3), Shape(1, 3, False, 1), Shape(1, 4, False, 2),
        Shape(2, 4, True, 2), Shape(3, 4, True, 1),
    ]  # fmt: skip
    # Each costs the half minute in which sbatchd starts mbatchd again.
    server_share = 0.05
    slow = frozenset({"overruns"})

    # -- its life ----------------------------------------------------------------------------------

    def kill_server(self) -> None:
        self.server.kill("mbatchd", "-9")

    def restart_server(self) -> None:
        self.server.mbatchd_comes_back()

    # -- its users and its administrator -------------------------------------------------------------

    def submit(self, job: Wanted, command: list[str], after: str | None) -> Answer:
        name = f"{job.name}[1-{job.elements}]" if job.elements else job.name
        argv = ["bsub", "-q", "hwtest", "-J", name, "-n", str(job.processors), "-o", "/dev/null"]
        argv += ["-W", "1" if job.overruns else str(2 + job.number % 5)]
        argv += ["-H"] if job.held else []
        argv += ["-w", f"{'done' if job.after_ok else 'ended'}({after})"] if after else []
        done = self.as_user(job, *argv, "/bin/sh", *command)
        answer = asked(done)
        named = re.search(r"Job <(\d+)>", done.stdout)
        return Answer(answer.accepted, answer.text, named[1] if named else "")

    def act(self, job: Wanted, job_id: str, act: Act) -> Answer:
        if act.kind == "cancel":
            answer = asked(self.as_user(job, "bkill", job_id))
            # With exit code 255, of a whole array.
            return answer if _UNDER_WAY not in answer.text else Answer(True, answer.text)
        if act.kind == "cancel-elements":
            names = [f"{job_id}[{n}]" for n in act.elements]
            return asked(self.as_user(job, "bkill", *names))
        if act.kind == "requeue":
            return asked(self.call("brequeue", job_id))
        answer = asked(self.as_user(job, {"hold": "bstop", "release": "bresume"}[act.kind], job_id))
        if act.kind == "hold" and answer.accepted:
            # A job that runs by now is suspended instead.
            listed = self.call("bjobs", "-u", "all", "-w", job_id).stdout
            return Answer(" PSUSP " in listed, listed)
        return answer

    def unfinished(self) -> dict[str, str]:
        done = self.call("bjobs", "-u", "all", "-w")
        if done.returncode != 0 and "No unfinished job found" not in done.stdout + done.stderr:
            raise OSError(done.stderr.strip())
        found = {}
        for line in done.stdout.splitlines()[1:]:
            words = line.split()
            element = re.search(r"\[(\d+)\]", words[6])
            found[words[0] + (element[0] if element else "")] = words[2]
        return found

    # -- headway ------------------------------------------------------------------------------------

    def daemon(self, directory: Path) -> Daemon:
        return InsideDaemon(
            self.server, directory,
            {
                "queues": ["hwtest"], "bin_dir": "/opt/volclava/bin", "poll_interval": 1.0,
                "environment": {"LSF_ENVDIR": "/opt/volclava/etc"},
            },
        )  # fmt: skip

    def give_back(self, daemon: Daemon) -> subprocess.CompletedProcess[str]:
        argv = ("give-back", "--all", "-c", str(daemon.config_path))
        program = "from headway.cli import main; main()"
        return self.call(sys.executable, "-c", program, *argv, user="root")

    def left_over(self) -> list[str]:
        found = []
        for line in self.call("bqueues", "-w").stdout.splitlines()[1:]:
            words = line.split()
            if words[0] == "hwtest" and words[2] != "Open:Active":
                found.append(f"the queue is {words[2]}")
        for line in self.call("bhosts", "-w").stdout.splitlines()[1:]:
            words = line.split()
            if words[1] not in ("ok", "closed_Full"):
                found.append(f"host {words[0]} is {words[1]}")
        return found

    # -- its records --------------------------------------------------------------------------------

    def records(self, history: History, runs: Mapping[str, list[Run]]) -> Records:
        found = Records()
        running: dict[str, tuple[float, dict[str, int]]] = {}
        #: What ended while it waited.
        cancelled: set[str] = set()
        for event in self._events():
            kind, at, job_id = event[0], float(event[2]), event[3]
            if kind == "JOB_START":
                hosts = event[9 : 9 + int(event[8])]
                key = self._key(history, job_id, event[9 + len(hosts) + 3], at)
                found.starts.setdefault(key, []).append(at)
                running[key] = (at, {host: hosts.count(host) for host in hosts})
            elif kind == "JOB_STATUS" and int(event[4]) in (EXIT, DONE):
                key = self._key(history, job_id, event[-3], at)
                found.states[key] = "done" if int(event[4]) == DONE else "failed"
                if key not in running:
                    cancelled.add(key)
                else:
                    begin, where = running.pop(key)
                    found.shares += [Share(key, host, n, begin, at) for host, n in where.items()]
            elif kind == "JOB_REQUEUE":
                key = self._key(history, job_id, event[4], at)
                if key in cancelled:
                    # No run was sent back: brun had been on its way, and begins with this.
                    cancelled.remove(key)
                    what = "starts of what had been cancelled while brun was on its way"
                    found.oddities[what] = found.oddities.get(what, 0) + 1
                else:
                    found.requeues.setdefault(key, []).append(at)
                found.states[key] = "pending"
        return found

    def _events(self) -> Iterator[list[str]]:
        directory = self.root / "work/logdir"
        old = sorted(directory.glob("lsb.events.[0-9]*"), key=lambda path: -int(path.suffix[1:]))
        wanted = {"JOB_START", "JOB_STATUS", "JOB_REQUEUE"}
        for path in [*old, directory / "lsb.events"]:
            with path.open(newline="", errors="replace") as lines:
                yield from (row for row in csv.reader(lines, delimiter=" ") if row and row[0] in wanted)

    @staticmethod
    def _key(history: History, job_id: str, element: str, at: float) -> str:
        job = history.job_of(job_id, at)
        if job is None:
            return f"?{job_id}[{element}]"
        return job.key(int(element)) if job.elements else job.name

    def where(self, run: Run) -> dict[str, int] | None:
        words = run.where.split("|")[2].split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True)) if words else None
