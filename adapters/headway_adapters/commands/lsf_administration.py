"""LSF's hosts, queues and reservations: bhosts, bqueues, badmin, brsvadd and their kin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway_adapters.commands import lsf_text as text
from headway_adapters.commands.cjson import as_json
from headway_adapters.commands.lsf_server import PRODUCTS, LsfServer, Queue, Reservation
from headway_adapters.commands.lsf_words import (
    BAD_FIELD,
    FAILED,
    columns,
    letters_of,
    stat_of,
    without_comment,
)
from headway_adapters.commands.machine import Node
from headway_adapters.commands.server import Call, Reply
from headway_adapters.commands.system import Refused

#: What the real ones say where nothing is shared.
_NOTHING_SHARED = "ls_sharedresourceinfo: No shared resources"


class LsfAdministration(LsfServer):
    """bhosts, bqueues, lshosts, lsload, lsid, lsclusters, bparams, badmin, brsvadd, brsvdel and brsvs."""

    # ------------------------------------------------------------------ hosts, queues, the cluster

    def _host_row(self, node: Node, *, wide: bool = True) -> tuple[str, str, int, int, int, int, int]:
        jobs = [(self.machine.jobs[job_id], shares) for job_id, shares in node.given.items()]

        def slots(*states: str, resuming: bool | None = None) -> int:
            return sum(
                share.processors
                for job, shares in jobs
                if job.state in states and (resuming is None or job.resuming == resuming)
                for share in shares
            )

        if node.down:
            status = "unavail"
        elif node.attributes.get("power") == "off":
            status = "closed_Power"
        elif node.closed:
            status = "closed_Adm"
        elif any(job.words["exclusive"] for job, _ in jobs):
            status = "closed_Excl"
        elif node.assigned >= node.processors:
            status = "closed_Full"
        else:
            status = "ok"
        if not wide:
            status = status.partition("_")[0]
        return (
            node.name, status, node.processors, node.assigned, slots("running", "starting"),
            slots("suspended", resuming=True), slots("suspended", resuming=False),
        )  # fmt: skip

    def _bhosts(self, call: Call) -> Reply:
        letters = {
            "-w": False,
            "-l": False,
            "-o": True,
            "-json": False,
            "-a": False,
            "-X": False,
            "-x": False,
        }
        if self.flavour == "volclava":
            for word in ("-json", "-o"):
                if word in call.words:
                    usage = "Usage: bhosts [-h] [-V] [-w | -l] [-R res_req] [host_name ...]"
                    return Reply(FAILED, "", f"bhosts: invalid option -- '{word[1]}'\n{usage}\n")
        given, rest = letters_of(call, letters)
        for name in rest:
            if name not in self.machine.nodes:
                return Reply(FAILED, "", f"{name}: Bad host name, host group name or cluster name\n")
        nodes = [node for node in self.machine.nodes.values() if not rest or node.name in rest]
        if "-o" in given:
            fields: dict[str, Callable[[Node], str]] = {
                "host_name": lambda node: node.name,
                "status": lambda node: self._host_row(node)[1],
                "cpuf": lambda node: "1.0",
                "jl_u": lambda node: "-",
                "max": lambda node: str(node.processors),
                "njobs": lambda node: str(node.assigned),
                "run": lambda node: str(self._host_row(node)[4]),
                "ssusp": lambda node: str(self._host_row(node)[5]),
                "ususp": lambda node: str(self._host_row(node)[6]),
                "rsv": lambda node: "0",
                "dispatch_window": lambda node: "-",
                "comments": lambda node: node.comment or "-",
                "mem": lambda node: f"{node.memory >> 20}M",
            }
            return self._listed("bhosts", "HOSTS", given, fields, nodes)
        if "-l" in given:
            return Reply(0, "".join(self._host_long(node) for node in nodes))
        return Reply(0, text.hosts_table([self._host_row(node, wide="-w" in given) for node in nodes]))

    def _host_long(self, node: Node) -> str:
        name, status, most, jobs, run, ssusp, ususp = self._host_row(node)
        comment = f"\n ADMIN ACTION COMMENTS: {node.comment}\n" if node.comment else ""
        return (
            f"HOST  {name}\n"
            "STATUS           CPUF  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV DISPATCH_WINDOW\n"
            f"{status:<15} {'1.00':>5} {'-':>5} {most:>6} {jobs:>6} {run:>6} {ssusp:>6} {ususp:>6} {0:>6} "
            "     -\n"
            "\n CURRENT LOAD USED FOR SCHEDULING:\n"
            "              r15s   r1m  r15m    ut    pg    io   ls    it   tmp   swp   mem  slots\n"
            " Total         0.0   0.0   0.0    0%   0.0     0    0     0   79G    0M "
            f"{node.memory >> 30:>4}G {max(most - jobs, 0):>6}\n"
            " Reserved      0.0   0.0   0.0    0%   0.0     0    0     0    0M    0M    0M      -\n\n\n"
            " LOAD THRESHOLD USED FOR SCHEDULING:\n"
            "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem\n"
            " loadSched   -     -     -     -       -     -    -     -     -      -      -  \n"
            f" loadStop    -     -     -     -       -     -    -     -     -      -      -  \n\n{comment}\n"
        )

    def _listed(
        self, command: str, count: str, given: Mapping[str, str], fields: Mapping[str, Callable[[Any], str]],
        things: Sequence[Any],
    ) -> Reply:  # fmt: skip
        names = [word.partition(":")[0] for word in given["-o"].split()]
        for name in names:
            if name.lower() not in fields:
                said = f"<{name.upper()}> in the format string is not a valid field name.\n"
                return Reply(BAD_FIELD, "", said)
        records = [{name.upper(): fields[name.lower()](thing) for name in names} for thing in things]
        if "-json" in given:
            return Reply(0, as_json({"COMMAND": command, count: len(records), "RECORDS": records}) + "\n")
        return Reply(0, columns([name.upper() for name in names], records))

    def _queue_counts(self, queue: Queue) -> tuple[int, int, int, int, int]:
        """Slots of its jobs: all, pending, running, system- and user-suspended."""
        jobs = [job for job in self.machine.alive.values() if job.queue == queue.name]

        def slots(*states: str) -> int:
            return sum(
                job.words["slots"] for job in jobs
                if (stat_of(job) if job.state == "suspended" else job.state) in states
            )  # fmt: skip

        pending = slots("queued", "starting")
        running, ssusp, ususp = slots("running"), slots("SSUSP"), slots("USUSP")
        return pending + running + ssusp + ususp, pending, running, ssusp, ususp

    def _queue_status(self, queue: Queue, *, long: bool = False) -> str:
        first = "Open" if queue.open else "Closed"
        if queue.active:
            return f"{first}:Active"
        return f"{first}:Inact_Adm" if long else f"{first}:Inact"

    def _bqueues(self, call: Call) -> Reply:
        if self.flavour == "volclava":
            for word in ("-json", "-o"):
                if word in call.words:
                    return Reply(FAILED, "", f"bqueues: invalid option -- '{word[1]}'\n")
        given, rest = letters_of(call, {"-w": False, "-l": False, "-o": True, "-json": False, "-u": True})
        for name in rest:
            if name not in self.queues:
                return Reply(FAILED, "", f"{name}: No such queue\n")
        queues = [queue for queue in self.queues.values() if not rest or queue.name in rest]
        if "-o" in given:
            fields: dict[str, Callable[[Queue], str]] = {
                "queue_name": lambda queue: queue.name,
                "description": lambda queue: "An emulated queue.",
                "priority": lambda queue: str(queue.priority),
                "status": self._queue_status,
                "max": lambda queue: "-",
                "jl_u": lambda queue: "-",
                "jl_p": lambda queue: "-",
                "jl_h": lambda queue: "-",
                "njobs": lambda queue: str(self._queue_counts(queue)[0]),
                "pend": lambda queue: str(self._queue_counts(queue)[1]),
                "run": lambda queue: str(self._queue_counts(queue)[2]),
                "susp": lambda queue: str(sum(self._queue_counts(queue)[3:])),
                "ssusp": lambda queue: str(self._queue_counts(queue)[3]),
                "ususp": lambda queue: str(self._queue_counts(queue)[4]),
                "rsv": lambda queue: "0",
                "hosts": lambda queue: "all",
                "users": lambda queue: "all",
                "run_limit": lambda queue: "-",
            }
            return self._listed("bqueues", "QUEUES", given, fields, queues)
        if "-l" in given:
            return Reply(
                0, "".join(
                    text.queue_long(
                        q.name, q.priority, self._queue_status(q, long=True), self._queue_counts(q)
                    )
                    for q in queues
                ),
            )  # fmt: skip
        rows = []
        for queue in queues:
            jobs, pending, run, ssusp, ususp = self._queue_counts(queue)
            rows.append(
                (queue.name, queue.priority, self._queue_status(queue), jobs, pending, run, ssusp + ususp)
            )
        return Reply(0, text.queues_table(rows))

    def _lshosts(self, call: Call) -> Reply:
        given, rest = letters_of(call, {"-w": False, "-l": False, "-s": False, "-json": False})
        if "-s" in given:
            raise Refused(255, _NOTHING_SHARED)
        nodes = [node for node in self.machine.nodes.values() if not rest or node.name in rest]
        return Reply(0, text.servers_table([(node.name, node.processors, node.memory) for node in nodes]))

    def _lsload(self, call: Call) -> Reply:
        given, _ = letters_of(call, {"-w": False, "-l": False, "-s": False})
        if "-s" in given:
            raise Refused(255, _NOTHING_SHARED)
        nodes = self.machine.nodes.values()
        return Reply(0, text.load_table([(n.name, "unavail" if n.down else "ok", n.memory) for n in nodes]))

    def _lsid(self, call: Call) -> Reply:
        return Reply(
            0, f"{PRODUCTS[self.flavour]}\nMy cluster name is {self.cluster}\n"
            f"My master name is {self.master}\n",
        )  # fmt: skip

    def _lsclusters(self, call: Call) -> Reply:
        hosts = len(self.machine.nodes)
        first, *others = self.administrators
        return Reply(
            0, "CLUSTER_NAME   STATUS   MASTER_HOST               ADMIN    HOSTS  SERVERS\n"
            f"{self.cluster:<14} {'ok':<8} {self.master:<18} {first:>12} {hosts:>8} {hosts:>8}\n"
            + (f"LSF administrators: {' '.join([first, *others])}\n" if "-l" in call.words else ""),
        )  # fmt: skip

    def _bparams(self, call: Call) -> Reply:
        if self.flavour == "volclava" and "-a" in call.words:
            said = "bparams: invalid option -- 'a'\nUsage: bparams [-h] [-V] [-l]\n"
            return Reply(FAILED, "", said)
        if "-a" in call.words:
            return Reply(
                0, f"\tDEFAULT_QUEUE = {self.default_queue}\n\tMBD_SLEEP_TIME = 10\n\tCLEAN_PERIOD = 3600\n"
                "\tMAX_JOBID = 999999\n\tJOB_ACCEPT_INTERVAL = 0\n",
            )  # fmt: skip
        return Reply(
            0, f"Default Queues:  {self.default_queue}\nMBD_SLEEP_TIME used for calculations:  10 seconds\n"
            "Job Checking Interval:  7 seconds\nJob Accepting Interval:  0 seconds\n",
        )  # fmt: skip

    def _badmin(self, call: Call) -> Reply:
        verb, *words = call.words or ("",)
        if verb == "showconf":
            return Reply(
                0, "MBD configuration at " + self._full(self.machine.wall()) + "\n"
                + ("\tLSB_MOD_ALL_JOBS = Y\n" if self.flavour == "ibm" else ""),
            )  # fmt: skip
        names, comment = without_comment(words)
        if verb in ("qinact", "qact", "qopen", "qclose"):
            return self._set_queues(call, verb, names)
        powers = verb == "hpower" and self.flavour == "ibm"
        if powers and names:
            verb, *names = names
        if verb in ("hclose", "hopen") or (powers and verb in ("suspend", "resume")):
            return self._set_hosts(call, verb, names, comment)
        if verb in ("reconfig", "mbdrestart", "ckconfig"):
            return Reply(0, "\nChecking configuration files ...\n\nNo errors found.\n\n")
        raise Refused(FAILED, f"badmin: {verb}: unknown command")

    def _set_queues(self, call: Call, verb: str, names: Sequence[str]) -> Reply:
        said = {
            "qinact": "inactivated", "qact": "activated", "qopen": "opened", "qclose": "closed",
        }[verb]  # fmt: skip
        out = ""
        for name in self.queues if list(names) == ["all"] else names or [self.default_queue]:
            if name not in self.queues:
                return Reply(FAILED, out, f"{name}: No such queue\n")
            if not call.caller.manager:
                return Reply(FAILED, out, f"{name}: User permission denied\n")
            queue = self.queues[name]
            if verb in ("qinact", "qact"):
                queue.active = verb == "qact"
            else:
                queue.open = verb == "qopen"
            out += f"Queue <{name}> is {said}\n"
        self.machine.disturb()
        return Reply(0, out)

    def _set_hosts(self, call: Call, verb: str, names: Sequence[str], comment: str) -> Reply:
        said = {"hclose": "Close", "hopen": "Open", "suspend": "Suspend", "resume": "Resume"}[verb]
        out = ""
        for name in self.machine.nodes if list(names) == ["all"] else names or [self.master]:
            if name not in self.machine.nodes:
                return Reply(FAILED, out, f"{name}: Bad host name, host group name or cluster name\n")
            if not call.caller.manager:
                return Reply(FAILED, out, f"{said} <{name}> ...... User permission denied\n")
            node = self.machine.nodes[name]
            if verb in ("suspend", "resume"):
                node.attributes["power"] = "off" if verb == "suspend" else "on"
            node.closed = verb in ("hclose", "suspend")
            node.comment = comment
            node.changed = self.machine.wall()
            out += f"{said} <{name}> ...... done\n"
        self.machine.disturb()
        return Reply(0, out)

    # ------------------------------------------------------------------ reservations

    def _brsvadd(self, call: Call) -> Reply:
        given, _ = letters_of(
            call, {"-n": True, "-m": True, "-u": True, "-b": True, "-e": True, "-N": True, "-g": True,
                   "-s": False, "-R": True},
        )  # fmt: skip
        if not call.caller.manager:
            return Reply(FAILED, "", "brsvadd: User permission denied. Reservation not created.\n")
        end = "Reservation not created."
        hosts = tuple(given.get("-m", "").split()) or tuple(self.machine.nodes)
        for host in hosts:
            if host not in self.machine.nodes:
                raise Refused(FAILED, f"{host}: Bad host name, host group name or cluster name. {end}")
        if "-b" not in given or "-e" not in given:
            raise Refused(FAILED, f"brsvadd: begin and end time are needed. {end}")
        first, last = self._time(given["-b"], end), self._time(given["-e"], end)
        if last <= first:
            raise Refused(FAILED, f"Bad time specification. {end}")
        slots = sum(self.machine.nodes[host].processors for host in hosts)
        if "-n" in given:
            if not given["-n"].isdecimal() or int(given["-n"]) > slots:
                raise Refused(FAILED, f"Not enough slots. {end}")
            slots = int(given["-n"])
        for other in self.reservations.values():
            shared = set(hosts) & set(other.hosts)
            if shared and other.start < last and first < other.end:
                raise Refused(FAILED, f"Not enough slots. {end}")
        owner = given.get("-u", given.get("-g", call.caller.user))
        number = self._numbers[owner] = self._numbers.get(owner, -1) + 1
        name = given.get("-N", f"{owner}#{number}")
        if name in self.reservations:
            raise Refused(FAILED, f"{name}: The reservation already exists. {end}")
        reservation = Reservation(name, owner, hosts, slots, first, last)
        self.reservations[name] = reservation
        self.machine.at(self.machine.instant(last), lambda: self._remove(reservation))
        return Reply(0, f"Reservation {name} is created\n")

    def _remove(self, reservation: Reservation) -> None:
        if self.reservations.get(reservation.id) is reservation:
            del self.reservations[reservation.id]
            self.machine.disturb()

    def _brsvdel(self, call: Call) -> Reply:
        out = ""
        for name in call.words:
            if not call.caller.manager:
                return Reply(FAILED, out, f"{name}: User permission denied\n")
            if name not in self.reservations:
                return Reply(FAILED, out, f"{name}: No such reservation\n")
            self._remove(self.reservations[name])
            out += f"Reservation {name} is being deleted\n"
        return Reply(0, out)

    def _brsvs(self, call: Call) -> Reply:
        letters_of(call, {"-l": False, "-w": False, "-a": False, "-p": True})
        if not self.reservations:
            return Reply(FAILED, "", "No reservation found\n")
        out = "RSVID       TYPE      USER      NCPUS       RSV_HOSTS     TIME_WINDOW\n"
        for r in self.reservations.values():
            window = "-".join(self._numbered(wall) for wall in (r.start, r.end))
            left = r.slots
            for at, host in enumerate(r.hosts):
                slots = min(left, self.machine.nodes[host].processors)
                left -= slots
                if at == 0:
                    start = f"{r.id:<11} {'user':<9} {r.user:<9} {f'0/{r.slots}':<11}"
                else:
                    start = " " * 43
                out += f"{start} {f'{host}:0/{slots}':<13} {window if at == 0 else ''}".rstrip() + "\n"
        return Reply(0, out)

    def _numbered(self, wall: float) -> str:
        """``11/21/14/30``: month, day, hour, minute."""
        local = self.zone.local(wall)
        return f"{local.tm_mon}/{local.tm_mday}/{local.tm_hour}/{local.tm_min}"
