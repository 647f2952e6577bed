"""PBS's commands of administrators, and reservations: qmgr, pbsnodes, pbs_rsub and their kin."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from headway_adapters.commands import pbs_text as text
from headway_adapters.commands.cjson import as_json
from headway_adapters.commands.machine import Node
from headway_adapters.commands.pbs_listing import PbsListing
from headway_adapters.commands.pbs_request import NOT_ALLOWED, chunks_of, request_of, vnode_of
from headway_adapters.commands.pbs_server import TRUE, VERSION, Queue, Reservation
from headway_adapters.commands.server import Call, Reply
from headway_adapters.commands.system import Refused, options

#: Attributes that cannot be set.
_READ_ONLY = (
    "server_state", "server_host", "total_jobs", "state_count", "resources_assigned", "license_count",
    "pbs_version",
)  # fmt: skip


def _printed(verb: str, record: Mapping[str, Any]) -> str:
    """Attributes as the commands that set them."""
    lines = []
    for key, value in record.items():
        if key not in _READ_ONLY:
            several = isinstance(value, Mapping)
            parts = {f"{key}.{name}": told for name, told in value.items()} if several else {key: value}
            lines += [f"{verb} {name} = {told}\n" for name, told in parts.items()]
    return "".join(lines)


class PbsAdministration(PbsListing):
    """qmgr, pbsnodes, pbs_rsub, pbs_rstat and pbs_rdel."""

    # ------------------------------------------------------------------ server and vnodes

    def _qmgr(self, call: Call) -> Reply:
        given, _ = options(call, "c:aezn")
        said = []
        for letter, line in given:
            if letter == "-c":
                said.append(self._qmgr_line(call, line))
        return Reply(0, "".join(said))

    def _qmgr_line(self, call: Call, line: str) -> str:
        words = shlex.split(re.sub(r"\s*([+-]?=)\s*", r" \1 ", line, count=1))
        if len(words) < 2:
            raise Refused(1, f"qmgr: Syntax error in line: {line}")
        verb, kind, *rest = words
        verb = {"s": "set", "l": "list", "p": "print", "c": "create", "d": "delete"}.get(verb, verb)
        kind = {"s": "server", "n": "node", "q": "queue"}.get(kind, kind)
        if verb in ("list", "print"):
            return self._qmgr_list(verb, kind, rest)
        if not call.caller.manager:
            name = rest[0] if kind != "server" and rest else ""
            raise Refused(1, f"qmgr obj={name} svr=default: Unauthorized Request  ")
        sign = next((word for word in rest if word in ("=", "+=", "-=")), None)
        if verb == "set" and sign is not None:
            where = rest.index(sign)
            names, attribute = rest[: where - 1], rest[where - 1]
            self._qmgr_set(kind, names, attribute, " ".join(rest[where + 1 :]))
            return ""
        if verb == "create" and kind == "queue" and rest:
            self.queues[rest[0]] = Queue(rest[0], enabled=False, started=False)
            return ""
        raise Refused(1, f"qmgr: Syntax error in line: {line}")

    def _qmgr_set(self, kind: str, names: Sequence[str], attribute: str, value: str) -> None:
        true = value.lower() in TRUE
        if kind == "server":
            if attribute == "scheduling":
                self.scheduling = true
            elif attribute == "default_queue":
                self.default_queue = value
        elif kind == "queue":
            for queue in self._named(self.queues, names, "Unknown queue"):
                if attribute in ("enabled", "started"):
                    setattr(queue, attribute, true)
                else:
                    queue.attributes[attribute] = value
        elif kind == "node":
            for node in self._named(self.machine.nodes, names, "Unknown node"):
                if attribute == "state":
                    node.closed = "offline" in value
                elif attribute == "comment":
                    node.comment = value
                else:
                    node.attributes[attribute] = value
                node.changed = self.machine.wall()
        else:
            raise Refused(1, f"qmgr: Illegal object type: {kind}.")
        self.machine.disturb()

    def _named(self, known: Mapping[str, Any], names: Sequence[str], complaint: str) -> list[Any]:
        wanted = [name for word in names for name in word.split(",") if name]
        for name in wanted:
            if name not in known:
                raise Refused(1, f"qmgr obj={name} svr=default: {complaint} ")
        return [known[name] for name in wanted]

    def _qmgr_list(self, verb: str, kind: str, rest: Sequence[str]) -> str:
        if kind == "server":
            record = self._server_record()
            wanted = [name for word in rest for name in word.split(",") if name and name != self.server]
            record = {key: value for key, value in record.items() if not wanted or key in wanted}
            if verb == "print":
                printed = _printed("set server", record)
                return printed if wanted else self._printed_queues(list(self.queues.values())) + printed
            return f"Server {self.server}\n{text.attributes(record)}\n"
        if kind == "queue":
            queues = self._named(self.queues, rest[:1] or list(self.queues), "Unknown queue")
            if verb == "print":
                return self._printed_queues(queues)
            return "".join(f"Queue {q.name}\n{text.attributes(self._queue_record(q))}\n" for q in queues)
        if kind == "node":
            nodes = self._named(self.machine.nodes, rest[:1] or list(self.machine.nodes), "Unknown node")
            return "".join(f"Node {n.name}\n{text.attributes(self._node_record(n, False))}\n" for n in nodes)
        raise Refused(1, f"qmgr: Illegal object type: {kind}.")

    def _printed_queues(self, queues: Sequence[Queue]) -> str:
        """The commands that make these queues."""
        return "".join(
            f"#\n# Create and define queue {queue.name}\n#\ncreate queue {queue.name}\n"
            + _printed(f"set queue {queue.name}", self._queue_record(queue))
            for queue in queues
        )

    def _pbsnodes(self, call: Call) -> Reply:
        given, rest = options(call, "avo:c:r:lF:C:SjH:")
        flags = {letter for letter, _ in given}
        chosen = [value for letter, value in given if letter in ("-o", "-c", "-r")]
        if "-C" in flags and "-c" in flags:
            # It clears the state without -C only.
            raise Refused(1, "usage:\tpbsnodes [-{o|r}][-C comment][-s server] host host ...")
        if chosen:
            return self._set_offline(call, "-o" in flags, [*chosen, *rest], dict(given).get("-C"))
        if "-C" in flags:
            if not call.caller.manager:
                raise Refused(1, "pbsnodes: Unauthorized Request ")
            for node in self._nodes_of_hosts(rest):
                node.comment = dict(given)["-C"]
            return Reply()
        nodes = list(self.machine.nodes.values())
        if rest:
            for name in rest:
                if name not in self.machine.nodes:
                    return Reply(1, f"Node: {name},  Error: Unknown node \n")
            nodes = [self.machine.nodes[name] for name in rest]
        if "-l" in flags:
            out = [node for node in nodes if self._node_state(node).split(",")[0] in ("down", "offline")
                   or node.closed]  # fmt: skip
            return Reply(0, "".join(f"{n.name:<20} {self._node_state(n)} {n.comment}\n" for n in out))
        if dict(given).get("-F") == "json":
            head = {"timestamp": int(self.machine.wall()), "pbs_version": VERSION, "pbs_server": self.server}
            records = {node.name: self._node_record(node, True) for node in nodes}
            return Reply(0, as_json({**head, "nodes": records}) + "\n")
        listing = ""
        for node in nodes:
            record = self._node_record(node, False)
            listing += f"{node.name}\n{text.attributes(record, ' ' * 5, fold=False)}\n"
        return Reply(0, listing)

    def _nodes_of_hosts(self, names: Sequence[str]) -> list[Node]:
        """All vnodes of a host, or one vnode."""
        found = []
        for name in names:
            nodes = [node for node in self.machine.nodes.values() if name in (node.host, node.name)]
            if not nodes:
                raise Refused(1, f"pbsnodes: Unknown node  {name}")
            found += nodes
        return found

    def _set_offline(self, call: Call, closed: bool, names: Sequence[str], comment: str | None) -> Reply:
        nodes = self._nodes_of_hosts(names)
        if not call.caller.manager:
            raise Refused(1, "pbsnodes: Unauthorized Request ")
        for node in nodes:
            node.closed = closed
            node.changed = self.machine.wall()
            if comment is not None:
                node.comment = comment
        self.machine.disturb()
        return Reply()

    def _node_state(self, node: Node) -> str:
        states = []
        if node.down:
            states.append("down")
        if node.closed:
            states.append("offline")
        holders = [self.machine.jobs[job_id] for job_id in node.given]
        if any("excl" in job.words["place"] for job in holders):
            states.append("job-exclusive")
        elif node.processors and node.assigned >= node.processors:
            states.append("job-busy")
        if node.maintenance:
            states.append("maintenance")
        return ",".join(states) or "free"

    def _node_record(self, node: Node, for_json: bool) -> dict[str, Any]:
        several = sum(other.host == node.host for other in self.machine.nodes.values()) > 1
        record: dict[str, Any] = {
            "Mom": node.host, "Port": 15002, "pbs_version": VERSION, "ntype": "PBS",
            "state": self._node_state(node), "pcpus": node.processors or 2,
        }  # fmt: skip
        if node.given:
            if for_json:
                record["jobs"] = list(node.given)
            else:
                slots, at = [], 0
                for job_id, shares in node.given.items():
                    for _ in range(sum(share.processors for share in shares)):
                        slots.append(f"{job_id}/{at}")
                        at += 1
                record["jobs"] = slots
        record["resources_available"] = {
            "arch": "linux", "host": node.host, "mem": text.size_text(node.memory),
            "ncpus": node.processors, "vnode": node.name,
            **{k.partition(".")[2]: v for k, v in node.attributes.items()
               if k.startswith("resources_available.")},
        }  # fmt: skip
        memory = node.assigned_memory
        if for_json:
            assigned: dict[str, Any] = {"mem": text.size_text(memory)} if memory else {}
            record["resources_assigned"] = assigned | ({"ncpus": node.assigned} if node.given else {})
        else:
            record["resources_assigned"] = {
                "accelerator_memory": "0kb", "hbmem": "0kb",
                "mem": text.size_text(memory) if memory else "0kb", "naccelerators": 0,
                "ncpus": node.assigned, "vmem": "0kb",
            }  # fmt: skip
        if node.comment:
            record["comment"] = node.comment
        record |= {k: v for k, v in node.attributes.items() if not k.startswith("resources_available.")}
        holding = [r.id for r in self.reservations.values() if node.name in {s.node for s in r.shares}]
        if holding:
            record["resv"] = ", ".join(holding)
        record |= {"resv_enable": "True", "sharing": "default_shared"}
        if several:
            record["in_multivnode_host"] = 1
        if node.maintenance:
            record["maintenance_jobs"] = ",".join(node.maintenance)
        record["license"] = "l"
        record["last_state_change_time"] = int(node.changed) if for_json else self._clock(node.changed)
        if node.used is not None:
            record["last_used_time"] = int(node.used) if for_json else self._clock(node.used)
        return record

    # ------------------------------------------------------------------ reservations

    def _rsub(self, call: Call) -> Reply:
        given, _ = options(call, "R:E:D:l:N:U:I:q:")
        if call.caller.manager and call.caller.user == "root":
            raise Refused(247, "pbs_rsub: Bad effective UID for reservation")
        chosen = dict(given)
        if "-R" not in chosen or not ("-D" in chosen or "-E" in chosen):
            raise Refused(2, "pbs_rsub: missing start, end or duration")
        start = self._wall(call, chosen["-R"])
        try:
            end = start + text.seconds(chosen["-D"]) if "-D" in chosen else self._wall(call, chosen["-E"])
        except ValueError:
            raise Refused(2, "pbs_rsub: illegal -D value") from None
        select, _, _ = request_of(call, [value for letter, value in given if letter == "-l"])
        name = f"R{self._next}"
        self._next += 1
        users = chosen.get("-U", call.caller.user)
        owners = ",".join(u if "@" in u else f"{u}@{self.server}" for u in users.split(","))
        reservation = Reservation(
            f"{name}.{self.server}", call.caller, chosen.get("-N", "NULL"), start, end, select,
            self.machine.wall(), owners,
        )  # fmt: skip
        self.reservations[reservation.id] = reservation
        wanted = sum(chunk.count * chunk.processors for chunk in chunks_of(select))
        self.queues[name] = Queue(name, False, False, {
            "acl_user_enable": "True", "acl_users": owners, "resources_max": {"ncpus": wanted},
            "resources_available": {"ncpus": wanted},
        })  # fmt: skip
        self._watch(reservation)
        self._cycle()
        if chosen.get("-I", "").startswith("-") and not reservation.shares:
            # A negative time: what is not confirmed in it is deleted. The exit code says nothing of that.
            self._remove(reservation)
            why = "DENIED" if self.scheduling else "delete, wait period expired"
            return Reply(0, f"{reservation.id} {why}\n")
        return Reply(0, f"{reservation.id} {'CONFIRMED' if reservation.shares else 'UNCONFIRMED'}\n")

    def _ralter(self, call: Call) -> Reply:
        given, rest = options(call, "R:E:D:N:U:I:")
        waits = "-I" in dict(given)
        out = ""
        for word in rest:
            reservation = self._reservation(call, word)
            before = reservation.start, reservation.end, reservation.shares
            for letter, value in given:
                if letter == "-R":
                    reservation.start = self._wall(call, value)
                elif letter == "-E":
                    reservation.end = self._wall(call, value)
                elif letter == "-D":
                    reservation.end = reservation.start + text.seconds(value)
                elif letter == "-N":
                    reservation.name = value
            # Its scheduler has to confirm it anew.
            reservation.shares = []
            self._cycle()
            said = "CONFIRMED" if reservation.shares else "DENIED" if self.scheduling else "UNCONFIRMED"
            if said == "DENIED":
                reservation.start, reservation.end, reservation.shares = before
            self._watch(reservation)
            out += f"pbs_ralter: {reservation.id} {said if waits else 'ALTER REQUESTED'}\n"
        return Reply(0, out)

    def _reservation(self, call: Call, word: str) -> Reservation:
        """The reservation of that id, which the caller may change; raises :class:`Refused`."""
        found = self.reservations.get(word if "." in word else f"{word}.{self.server}")
        if found is None:
            raise Refused(206, f"{call.name}: Unknown Reservation Id  {word}")
        if not call.caller.manager and call.caller.user != found.owner.user:
            raise Refused(NOT_ALLOWED, f"{call.name}: Unauthorized Request  {word}")
        return found

    def _watch(self, reservation: Reservation) -> None:
        """Let the machine know of its begin and its end."""
        self.machine.at(self.machine.instant(reservation.start), self.machine.disturb)
        self.machine.at(self.machine.instant(reservation.end), lambda: self._over(reservation))

    def _over(self, reservation: Reservation) -> None:
        if self.machine.wall() >= reservation.end - 1e-3:
            self._remove(reservation)

    def _remove(self, reservation: Reservation) -> None:
        if self.reservations.pop(reservation.id, None) is None:
            return
        name = reservation.id.partition(".")[0]
        del self.queues[name]
        for job in [job for job in self.machine.alive.values() if job.queue == name]:
            self.machine.kill(job)

    def _rdel(self, call: Call) -> Reply:
        _, rest = options(call, "")
        for word in rest:
            self._remove(self._reservation(call, word))
        return Reply()

    def _rstat(self, call: Call) -> Reply:
        given, rest = options(call, "fFBS")
        flags = {letter for letter, _ in given}
        out = []
        known = [
            r for r in self.reservations.values() if not rest or r.id in rest or r.id.split(".")[0] in rest
        ]
        for reservation in known:
            if "-B" in flags:
                out.append(f"Resv ID: {reservation.id}\n")
            elif flags & {"-F", "-f"}:
                record = self._reservation_record(reservation)
                out.append(f"Resv ID: {reservation.id}\n{text.attributes(record, '', fold=False)}\n")
        if not flags & {"-F", "-f", "-B"} and known:
            out.append("Resv ID         Queue         User     State             Start / Duration / End\n")
            out.append("-" * 79 + "\n")
            for r in known:
                start = self.zone.text(r.start, "%a %H:%M")
                end = self.zone.text(r.end, "%a %H:%M")
                state = {"RESV_UNCONFIRMED": "UN", "RESV_CONFIRMED": "CO"}.get(
                    r.state(self.machine.wall())[0], "RN"
                )
                queue = r.id.partition(".")[0]
                out.append(f"{r.id:<15} {queue:<13} {r.owner.user + '@':<8} {state:<4} "
                           f"{start} / {int(r.end - r.start)} / {end}\n")  # fmt: skip
        return Reply(0, "".join(out))

    def _reservation_record(self, r: Reservation) -> dict[str, Any]:
        state, substate = r.state(self.machine.wall())
        _, place, resources = request_of(None, [f"select={r.select}"])
        length = int(r.end - r.start)
        record: dict[str, Any] = {
            "Reserve_Name": r.name, "Reserve_Owner": f"{r.owner.user}@{self.server}", "reserve_state": state,
            "reserve_substate": substate, "reserve_start": self._clock(r.start),
            "reserve_end": self._clock(r.end), "reserve_duration": length, "queue": r.id.partition(".")[0],
            "Resource_List": {**resources, "place": place, "walltime": text.duration(length)},
            "schedselect": r.select,
        }  # fmt: skip
        if r.shares:
            record["resv_nodes"] = "+".join(vnode_of(share) for share in r.shares)
        return record | {
            "Authorized_Users": r.users, "server": self.server, "ctime": self._clock(r.submitted),
            "mtime": self._clock(r.submitted),
            "Variable_List": {"PBS_O_LOGNAME": r.owner.user, "PBS_O_HOST": self.server,
                              "PBS_O_MAIL": f"/var/mail/{r.owner.user}"},
            "euser": r.owner.user, "egroup": r.owner.group, "reserve_count": 1, "Submit_Host": self.server,
        }  # fmt: skip
