"""A real OpenPBS, and its records: the server's accounting logs.

What PBS itself does: a MoM that comes back after a SIGKILL has its jobs requeued, with the same id. A server
that is killed before it has saved that a MoM took a job requeues the job when it comes back (substate 41 in
its log, no record in the accounting) although it runs: it then runs twice. A job that waits for another's
end waits for ever if the server is killed at that end. An array that was under way when the server was killed
may stay in state B for ever after the last of its elements (its ``array_state_count`` is wrong then). A MoM
that is killed after it took a job and before it has saved that does not know it when it is back: the job
stays in state R, substate 41, for ever.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from live_daemon import Daemon
from real_systems.inside import InsideDaemon

from headway_adapters.pbs import select
from torture import pbs_log
from torture.history import History
from torture.inside import InsideSystem
from torture.stamps import Run
from torture.stream import Act, Shape, Wanted
from torture.system import Answer, Records, Share, asked

#: Exit statuses of PBS's own.
_STATES = {0: "done", 271: "cancelled", 265: "cancelled", -29: "timeout"}


class Pbs(InsideSystem):
    """Three hosts of eight processors."""

    name = "pbs"
    hosts = {"pbsa": 8, "pbsb": 8, "pbsc": 8}
    shapes = [
        Shape(1, 1, False, 4), Shape(1, 2, False, 3), Shape(1, 4, False, 3), Shape(1, 8, False, 2),
        Shape(2, 4, True, 2), Shape(3, 2, True, 1), Shape(3, 8, True, 1), Shape(4, 2, False, 1),
    ]  # fmt: skip
    server_share = 0.08
    node_share = 0.03
    loses_with_node = True

    # -- its life ----------------------------------------------------------------------------------

    def kill_server(self) -> None:
        self.server.kill("server", "-9")

    def restart_server(self) -> None:
        self.server.restart("server")

    def kill_node(self, node: str) -> None:
        self.server.kill("mom", "--host", node, "-9")

    def restart_node(self, node: str) -> None:
        self.server.restart("mom", "--host", node)

    # -- its users and its administrator -------------------------------------------------------------

    def submit(self, job: Wanted, command: list[str], after: str | None) -> Answer:
        limit = 4 if job.overruns else 60 * (2 + job.number % 5)
        argv = ["qsub", "-N", job.name, "-o", "/dev/null", "-e", "/dev/null", "-l", f"walltime={limit}"]
        argv += ["-l", f"select={job.chunks}:ncpus={job.share}"]
        argv += ["-l", "place=scatter"] if job.spread else []
        argv += ["-J", f"1-{job.elements}"] if job.elements else []
        argv += ["-h"] if job.held else []
        argv += ["-W", f"depend={'afterok' if job.after_ok else 'afterany'}:{after}"] if after else []
        done = self.as_user(job, *argv, "--", "/bin/sh", *command)
        answer = asked(done)
        return Answer(answer.accepted, answer.text, done.stdout.strip())

    def act(self, job: Wanted, job_id: str, act: Act) -> Answer:
        if act.kind == "cancel":
            return asked(self.as_user(job, "qdel", job_id))
        if act.kind == "cancel-elements":
            names = [job_id.replace("[]", f"[{n}]") for n in act.elements]
            return asked(self.as_user(job, "qdel", *names))
        if act.kind == "requeue":
            return asked(self.call("qrerun", job_id))
        return asked(self.as_user(job, {"hold": "qhold", "release": "qrls"}[act.kind], job_id))

    def unfinished(self) -> dict[str, str]:
        done = self.call("qstat", "-t")
        if done.returncode != 0:
            raise OSError(done.stderr.strip())
        rows = [line.split() for line in done.stdout.splitlines()[2:]]
        return {row[0]: row[4] for row in rows if len(row) == 6 and row[4] not in "XF"}

    def mend_stuck(self, open_: Mapping[str, str]) -> str:
        """Release what still waits for a job that is over: the server was killed at that job's end; requeue
        what no MoM knows; remove arrays of which nothing is left."""
        done = []
        for array in (one for one, state in open_.items() if state == "B"):
            if not any(one != array and one.startswith(array.partition("]")[0]) for one in open_):
                self.call("qdel", "-W", "force", array)
                done.append(f"removed {array}, an array without elements that PBS did not end")
        for job_id in (one for one, state in open_.items() if state == "H"):
            shown = self.call("qstat", "-f", job_id).stdout
            for before in re.findall(r"after\w*:(\d+)\.", shown):
                if self.call("qstat", f"{before}.pbsa").returncode != 0:
                    self.call("qrls", "-h", "s", job_id)
                    done.append(f"released {job_id}, which PBS let wait for {before}, which is over")
        for job_id in (one for one, state in open_.items() if state == "R"):
            if "substate = 41" in self.call("qstat", "-f", job_id).stdout and not self._moms_files(job_id):
                self.call("qrerun", "-W", "force", job_id)
                done.append(f"requeued {job_id}, which PBS let run although its MoM does not know it")
        return "; ".join(done)

    def _moms_files(self, job_id: str) -> list[Path]:
        """What the MoMs keep of a job. One that is only slow to begin has them."""
        kept = self.root.glob("spool/*/pbs/mom_priv/jobs/*")
        return [path for path in kept if path.name.startswith(f"{job_id}.")]

    # -- headway ------------------------------------------------------------------------------------

    def daemon(self, directory: Path) -> Daemon:
        return InsideDaemon(
            self.server, directory, {"queues": ["workq"], "bin_dir": "/opt/pbs/bin", "poll_interval": 2.0}
        )

    def give_back(self, daemon: Daemon) -> subprocess.CompletedProcess[str]:
        self.server.restart("sched")
        module = "headway_adapters.pbs.give_back"
        return self.call(sys.executable, "-m", module, "--bin-dir", "/opt/pbs/bin", user="root")

    def left_over(self) -> list[str]:
        found = []
        if "scheduling = True" not in self.call("qstat", "-B", "-f").stdout:
            found.append("the server's scheduling is off")
        reservations = self.call("pbs_rstat", "-F").stdout
        found += [f"a reservation: {name}" for name in re.findall(r"headway_\S+", reservations)]
        listed = self.call("pbsnodes", "-av").stdout
        return found + [f"a node: {state}" for state in re.findall(r"state = (?!free|job)\S+", listed)]

    # -- its records --------------------------------------------------------------------------------

    def records(self, history: History, runs: Mapping[str, list[Run]]) -> Records:
        found = Records(on_request={})
        #: What runs by the records: since when, and where.
        running: dict[str, tuple[float, dict[str, int]]] = {}
        for record in pbs_log.accounting(self._written("accounting")):
            key = self._key(history, record.job_id, record.at)
            if record.kind == "S":
                where: dict[str, int] = {}
                for vnode, share in select.parse_exec_vnode(record.fields["exec_vnode"]):
                    where[vnode] = where.get(vnode, 0) + share.processors
                found.starts.setdefault(key, []).append(float(record.fields["start"]))
                running[key] = (float(record.fields["start"]), where)
            elif record.kind == "D":
                found.states[key] = "cancelled"
            else:
                self._ended(key, record, running.pop(key, None), found)
        for job_id, at in pbs_log.forgotten_starts(self._written("server_logs")):
            key = self._key(history, job_id, at)
            found.requeues.setdefault(key, []).append(at)
            found.own.setdefault(key, []).append((at, "a start that its server had not saved"))
            what = "starts that a killed server requeued while they ran"
            found.oddities[what] = found.oddities.get(what, 0) + 1
        return found

    def _written(self, what: str) -> str:
        """All of the server's accounting, or of its log."""
        home = self.root / "spool/pbsa/pbs"
        directory = home / "server_priv" / what if what == "accounting" else home / what
        return "".join(path.read_text(errors="replace") for path in sorted(directory.iterdir()))

    @staticmethod
    def _ended(
        key: str, record: pbs_log.Record, began: tuple[float, dict[str, int]] | None, found: Records
    ) -> None:
        """A run's end, or its requeue."""
        begin, where = began or (0.0, {})
        found.shares += [Share(key, node, n, begin, float(record.fields["end"])) for node, n in where.items()]
        if record.kind == "E":
            found.states[key] = _STATES.get(int(record.fields["Exit_status"]), "failed")
            return
        found.requeues.setdefault(key, []).append(record.at)
        # A requeue without a status was no MoM's doing.
        if int(record.fields.get("Exit_status", 0)) == pbs_log.ON_REQUEST and found.on_request is not None:
            found.on_request.setdefault(key, []).append(record.at)

    @staticmethod
    def _key(history: History, job_id: str, at: float) -> str:
        element = re.search(r"\[(\d+)\]", job_id)
        job = history.job_of(re.sub(r"\[\d+\]", "[]", job_id), at)
        if job is None:
            return f"?{job_id}"
        return job.key(int(element[1])) if element else job.name
