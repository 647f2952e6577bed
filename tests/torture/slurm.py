"""A real Slurm behind the shipped submit filter, and its records: slurmctld's log and the job completion log.

What Slurm itself does after a SIGKILL of slurmctld: it saves its state 5 s after a change, so younger
submissions, starts and ends are forgotten; jobs may then run twice, ids are given again, and nodes may
be drained with "Duplicate jobid", which an administrator has to resume. A job that ended just before runs
on in Slurm's listing until its limit; one whose start was forgotten is refused by slurmd when it is started
again while it runs, and held by Slurm ("launch failed requeued held") until an administrator gives it back.
What it forgets is all that came after its state file was written, whose age is looked at when it is killed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from live_daemon import Daemon
from slurm_cluster import SlurmCluster
from slurm_releases import INSTALLED, SLURM24, Release

from headway_adapters.slurm import hostlist
from torture.history import History
from torture.slurm_log import lines, own_requeues, recoveries
from torture.stamps import Run
from torture.stream import Act, Shape, Wanted
from torture.system import TIMEOUT, Answer, Records, Share, System, asked

ETC = Path(__file__).parents[2] / "etc" / "slurm"
#: Accounts of every Debian that can submit jobs.
USERS = ("nobody", "games")
_STATES = {"COMPLETED": "done", "FAILED": "failed", "CANCELLED": "cancelled", "TIMEOUT": "timeout"}


class Slurm(System):
    """Four nodes of four processors."""

    name = "slurm"
    shapes = [
        Shape(1, 1, False, 4), Shape(1, 2, False, 3), Shape(1, 4, False, 2), Shape(2, 2, True, 2),
        Shape(2, 4, True, 1), Shape(4, 2, True, 1), Shape(3, 1, False, 2), Shape(5, 1, False, 1),
        Shape(7, 1, False, 1), Shape(16, 1, False, 1),
    ]  # fmt: skip
    server_share = 0.12
    node_share = 0.03
    forgets = True
    resumes = True
    # Limits are whole minutes.
    slow = frozenset({"overruns"})
    #: This machine's own.
    release: Release = INSTALLED

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.cluster = SlurmCluster(root, self.release)
        self.cluster.launcher(
            "start", "--nodes", "4", "--cpus", "4", "--lua", str(ETC / "job_submit.lua"),
            "--set", "JobSubmitPlugins=lua", "--set", "SchedulerParameters=batch_sched_delay=0",
        )  # fmt: skip
        self.nodes = {f"node{n}": 4 for n in range(1, 5)}
        self._mended: dict[str, int] = {}

    # -- its life ----------------------------------------------------------------------------------

    def stop(self) -> None:
        self.cluster.launcher("stop")

    def kill_server(self) -> None:
        self.cluster.kill("slurmctld")

    def saved(self) -> float | None:
        # The first moment of a new state file may lack; then slurmctld reads the one before.
        written = [self.root / "state" / name for name in ("job_state", "job_state.old")]
        return next((path.stat().st_mtime for path in written if path.exists()), 0.0)

    def restart_server(self) -> None:
        self.cluster.up("slurmctld")
        self.cluster.until(lambda: self._call("scontrol", "ping").returncode == 0, 120, "slurmctld answers")

    def kill_node(self, node: str) -> None:
        self.cluster.kill(node)

    def restart_node(self, node: str) -> None:
        self.cluster.up(node)

    # -- its users and its administrator -------------------------------------------------------------

    def _call(self, *argv: str, user: str = "") -> subprocess.CompletedProcess[str]:
        return self.cluster.call(*argv, user=user or None, timeout=TIMEOUT)

    def submit(self, job: Wanted, command: list[str], after: str | None) -> Answer:
        argv = ["sbatch", "--parsable", "-o", "/dev/null", "-D", "/", "-J", job.name]
        argv += ["-t", "1" if job.overruns else str(2 + job.number % 5), "-n", str(job.processors)]
        if job.spread:
            argv += ["-N", str(job.chunks), f"--ntasks-per-node={job.share}"]
        elif job.chunks == 1:
            argv += ["-N", "1"]
        argv += ["-a", f"1-{job.elements}"] if job.elements else []
        argv += ["--hold"] if job.held else []
        argv += [f"--dependency={'afterok' if job.after_ok else 'afterany'}:{after}"] if after else []
        done = self._call(*argv, *command, user=USERS[job.user])
        answer = asked(done)
        return Answer(answer.accepted, answer.text, done.stdout.strip().split(";")[0])

    def act(self, job: Wanted, job_id: str, act: Act) -> Answer:
        user = USERS[job.user]
        if act.kind == "cancel":
            return asked(self._call("scancel", job_id, user=user))
        if act.kind == "cancel-elements":
            return asked(self._call("scancel", *(f"{job_id}_{n}" for n in act.elements), user=user))
        if act.kind == "requeue":
            return asked(self._call("scontrol", "requeue", job_id))
        answer = asked(self._call("scontrol", act.kind, job_id, user=user))
        if act.kind == "hold" and answer.accepted:
            # A job that an administrator holds, as headway does, is not the user's to hold.
            listed = self._call("squeue", "-h", "-j", job_id, "-o", "%r").stdout.split()
            return Answer("JobHeldUser" in listed, f"held as {listed}")
        return answer

    def unfinished(self) -> dict[str, str]:
        done = self._call("squeue", "-h", "-a", "-r", "-o", "%i|%T|%r")
        if done.returncode != 0:
            raise OSError(done.stderr.strip())
        rows = (line.split("|") for line in done.stdout.splitlines())
        return {row[0]: f"{row[1]} ({row[2]})" for row in rows}

    def mend(self, *, managed: bool = True) -> str:
        done = self._call("sinfo", "-h", "-N", "-t", "drain,down", "-o", "%N|%E")
        faulty = [row.split("|") for row in done.stdout.splitlines() if "duplicate jobid" in row.lower()]
        for node, _ in faulty:
            self._call("scontrol", "update", f"NodeName={node}", "State=RESUME")
        done = [f"resumed {node}: {reason}" for node, reason in faulty]
        held = self._refused()
        for job in held:
            # As an administrator's hold it is headway's; a release lets Slurm start it.
            self._call("scontrol", "hold" if managed else "release", job)
        self._count("nodes drained with Duplicate jobid", len(faulty))
        self._count("jobs held after a failed launch", len(held))
        return "; ".join(done + [f"gave back {job}, which Slurm held after a failed launch" for job in held])

    def _refused(self) -> list[str]:
        """Jobs whose launch failed and that were not given back: an administrator's hold leaves the words."""
        words = "|launch failed requeued held"
        listed = self._call("squeue", "-h", "-r", "-o", "%i|%r").stdout.splitlines()
        if not any(row.endswith(words) for row in listed):
            return []
        try:
            jobs = self.cluster.jobs()
        except AssertionError:
            return []
        return [
            key
            for key, job in jobs.items()
            if job["state_description"] == words[1:] and job["state_reason"] == "JobHeldUser"
        ]

    def hasten(self, outlived: Iterable[str]) -> None:
        for job in outlived:
            self._call("scancel", job)
        # What was requeued waits for two minutes.
        listed = self._call("squeue", "-h", "-r", "-t", "PD", "-O", "JobArrayID:40,EligibleTime:30").stdout
        for job, eligible in (line.split() for line in listed.splitlines()):
            if eligible[0].isdigit() and _time(eligible) > time.time():
                self._call("scontrol", "update", f"JobId={job}", "StartTime=now")

    def _count(self, fault: str, times: int) -> None:
        if times:
            self._mended[fault] = self._mended.get(fault, 0) + times

    # -- headway ------------------------------------------------------------------------------------

    def daemon(self, directory: Path) -> Daemon:
        return Daemon(self.cluster, directory, options={"poll_interval": 0.5})

    def give_back(self, daemon: Daemon) -> subprocess.CompletedProcess[str]:
        # As the guide says: the filter first.
        [script] = self.root.rglob("job_submit.lua")
        text = script.read_text()
        assert "{ batch = true }" in text
        script.write_text(text.replace("{ batch = true }", "{}"))
        return subprocess.run(
            [sys.executable, "-m", "headway_adapters.slurm.give_back", "batch"],
            env=self.cluster.env, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def left_over(self) -> list[str]:
        found = []
        for line in self._call("scontrol", "-o", "show", "job").stdout.splitlines():
            if re.search(r"JobState=(PENDING|RUNNING|SUSPENDED|COMPLETING) ", line):
                if "AdminComment=headway" in line and "JobState=PENDING" in line:
                    found.append(f"a mark: {line[:60]}")
                if "Reason=JobHeldAdmin" in line:
                    found.append(f"a hold: {line[:60]}")
        reservations = self._call("scontrol", "-o", "show", "reservation").stdout
        return found + [
            f"a reservation: {name}" for name in re.findall(r"ReservationName=(headway_\S+)", reservations)
        ]

    # -- its records --------------------------------------------------------------------------------

    def records(self, history: History, runs: Mapping[str, list[Run]]) -> Records:
        found = Records()
        log = list(lines((self.root / "log" / "slurmctld.log").read_text(errors="replace")))
        for at, text in log:
            if started := re.search(r"(?:Started|sched: Allocate) JobId=([0-9_]+)", text):
                found.starts.setdefault(self._key(history, started[1], at), []).append(at)
            elif requeued := re.match(r"Requeuing JobId=([0-9_]+)", text):
                found.requeues.setdefault(self._key(history, requeued[1], at), []).append(at)
            for fault in ("duplicate jobid", "orphan", "kill task failed"):
                if fault in text.lower():
                    found.oddities[fault] = found.oddities.get(fault, 0) + 1
        found.oddities.update(self._mended)
        outages = [(kill.target.split(":")[1], kill.at, kill.back) for kill in history.kills("node")]
        for job_id, at, why in own_requeues(log, outages):
            found.own.setdefault(self._key(history, job_id, at), []).append((at, why))
        back = recoveries(log)
        for one in history.asked:
            if one.kind == "submit" and one.accepted:
                known = next((ids for at, ids in back if at > one.answered), {one.id})
                found.lost.update(history.wanted[one.number].keys if one.id not in known else ())
        for line in (self.root / "log" / "jobcomp.txt").read_text().splitlines():
            self._ended(dict(re.findall(r"(\w+)=(\S*)", line)), runs, found)
        return found

    def _ended(self, fields: dict[str, str], runs: Mapping[str, list[Run]], found: Records) -> None:
        """A line of the completion log: one run, or a job that was cancelled before it ran."""
        key = fields["Name"] + (f".{fields['ArrayTaskId']}" if "ArrayTaskId" in fields else "")
        found.states[key] = _STATES.get(fields["JobState"], fields["JobState"])
        if fields["NodeList"] in ("", "(null)") or not fields["StartTime"].startswith("2"):
            return
        begin, end = _time(fields["StartTime"]), _time(fields["EndTime"])
        told = [run for run in runs.get(key, ()) if begin - 1 <= run.begin <= end + 1]
        shares = self.where(told[0]) if told else None
        if shares is None:
            names = hostlist.expand(fields["NodeList"])
            if int(fields["ProcCnt"]) % len(names):
                return
            shares = {node: int(fields["ProcCnt"]) // len(names) for node in names}
        found.shares += [Share(key, node, count, begin, end) for node, count in shares.items()]

    @staticmethod
    def _key(history: History, job_id: str, at: float) -> str:
        base, _, element = job_id.partition("_")
        job = history.job_of(base, at)
        if job is None:
            return f"?{job_id}"
        return job.key(int(element)) if element else job.name

    def where(self, run: Run) -> dict[str, int] | None:
        nodes, counts, _ = run.where.split("|")
        if not nodes:
            return None
        shares: list[int] = []
        for part in counts.split(","):
            count, _, times = part.rstrip(")").partition("(x")
            shares += [int(count)] * int(times or 1)
        return dict(zip(hostlist.expand(nodes), shares, strict=True))


class Slurm24(Slurm):
    """The same with Slurm 24.11."""

    name = "slurm24"
    release = SLURM24


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
