"""What ``headway check`` looks at on a PBS cluster, each with what to do about it."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from headway.adapter import Check
from headway.errors import Failure
from headway_adapters.pbs import cluster, documents, fence, torque, values
from headway_adapters.pbs.client import LIST_SCHEDULERS, PbsClient
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.polling import heartbeat
from headway_adapters.transport import Result

#: PBS before this writes no JSON that we know; its text form is read.
OLDEST = (14, 0)
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)")
#: What must be there: the first two look, the others do.
_PROGRAMS = ("qstat", "pbsnodes", "qrun", "qdel", "qhold", "qrls", "qalter", "qsig", "qrerun")
#: A scheduler's name and its state, of `list sched`.
_SCHEDULER = re.compile(r"^Sched (\S+)$.*?^\s+state = (\S+)", re.MULTILINE | re.DOTALL)
_OFF = 'qmgr -c "set server scheduling = False"'


def flavour_of(version: Result, options: PbsOptions) -> str:
    """Which PBS it is, by ``qstat --version``, if the options leave that open."""
    if options.flavour != "auto":
        return options.flavour
    said = f"{version.text}\n{version.stderr}"
    if "pbs_version" in said:
        return "openpbs"
    return "torque" if re.search(r"^\s*version:", said, re.IGNORECASE | re.MULTILINE) else "openpbs"


def run(client: PbsClient, options: PbsOptions, clock: Callable[[], float]) -> list[Check]:
    """All checks; checks that need an answer from the server are left out when there is none."""
    way = client.transport.check()
    if not all(check.ok for check in way):
        return way
    found = list(way)
    missing: list[str] = []
    results: dict[str, Result] = {}
    for program in _PROGRAMS:
        try:
            results[program] = client.run((program, "--version"))
        except Failure as error:
            if not missing:
                missing.append(str(error))
            else:
                missing.append(program)
    if missing:
        detail = missing[0] + (f"; nor are {', '.join(missing[1:])}" if len(missing) > 1 else "")
        remedy = "install PBS's client commands here, or set cluster.options.bin_dir (often /opt/pbs/bin)"
        return [*found, Check("pbs's commands", False, detail, remedy)]
    flavour = flavour_of(results["qstat"], options)
    found.append(_version(results["qstat"], flavour))
    form: tuple[str, ...] = () if flavour == "torque" else ("-F", "json")
    server_out, queues_out = client.run_many([("qstat", "-B", "-f", *form), ("qstat", "-Q", "-f", *form)])
    server = _objects(server_out, "Server")
    if not server_out.ok or not server:
        said = server_out.complaint() if not server_out.ok else "qstat -B lists no server"
        remedy = "start pbs_server, or set cluster.options.server or cluster.options.pbs_conf"
        return [*found, Check("pbs server", False, said, remedy)]
    name, attributes = next(iter(server.items()))
    state = values.text(attributes.get("server_state")) or "answers"
    found.append(Check("pbs server", True, f"{name}: {state}"))
    found.append(_scheduling(attributes, options).for_driving())
    found.append(Check("planned starts", True, "qstat shows none of headway's; headway explain tells them"))
    if options.reservations:
        found += [_schedulers(client).for_driving(), *_root_reserves_nothing(client.transport.user)]
    found.append(_privilege(client, attributes, flavour).for_driving())
    if flavour != "torque":
        found.append(_history(attributes).for_driving())
    found += _queues(queues_out, options)
    found.append(_vnodes(client, flavour))
    if flavour != "torque":
        found.append(fence.check(client.run, attributes).for_driving())
        found.append(_clock(server_out, clock))
    if options.heartbeat is not None:
        found.append(heartbeat.check(options).for_driving())
    return found


def schedules(client: PbsClient, flavour: str) -> bool:
    """Whether the server schedules by itself, as far as it says."""
    form: tuple[str, ...] = () if flavour == "torque" else ("-F", "json")
    server = _objects(client.run(("qstat", "-B", "-f", *form)), "Server")
    return any(values.truth(attributes.get("scheduling")) for attributes in server.values())


def _objects(result: Result, kind: str) -> Mapping[str, Mapping[str, Any]]:
    if not result.ok:
        return {}
    try:
        if "json" in result.argv:
            return documents.objects_json(result.stdout, kind)
    except documents.Malformed:
        return {}
    return documents.objects_text(result.text, kind)


def _version(result: Result, flavour: str) -> Check:
    said = " ".join(f"{result.text} {result.stderr}".split())
    match = _VERSION.search(said)
    version = (int(match.group(1)), int(match.group(2))) if match else (0, 0)
    if flavour == "torque":
        return Check("pbs's commands", True, f"Torque, {said}")
    return Check(
        "pbs's commands", version >= OLDEST, said or "qstat --version says nothing",
        f"headway needs OpenPBS or PBS Professional {OLDEST[0]} or later; for Torque set "
        "cluster.options.flavour: torque",
    )  # fmt: skip


def _scheduling(attributes: Mapping[str, Any], options: PbsOptions) -> Check:
    on = values.truth(attributes.get("scheduling"))
    if options.reservations:
        return Check(
            "server scheduling", on, "on" if on else "off: reservations stay unconfirmed",
            'qmgr -c "set server scheduling = True", once the managed queues are stopped',
        )  # fmt: skip
    return Check(
        "server scheduling", not on,
        "on: PBS starts jobs by itself" if on else "off: PBS starts nothing by itself",
        f"before mode drive: {_OFF}",
    )  # fmt: skip


def _schedulers(client: PbsClient) -> Check:
    """Whether PBS's own scheduler runs, as far as the server has noticed."""
    subject, remedy = "pbs's scheduler", "start pbs_sched on the server's host"
    try:
        told = client.run(LIST_SCHEDULERS).text
    except Failure as error:
        return Check(subject, True, str(error), "install PBS's qmgr", known=False)
    states = dict(_SCHEDULER.findall(told))
    if not states:
        return Check(subject, True, "its state is not told", remedy, known=False)
    said = ", ".join(f"{name} is {state}" for name, state in states.items())
    down = "down" in states.values()
    return Check(subject, not down, f"{said}: reservations stay unconfirmed" if down else said, remedy)


def _root_reserves_nothing(user: str) -> list[Check]:
    """What must be known of reservations where commands run as root, as far as can be seen from here."""
    if user != "root":
        return []
    said = "headway's commands run as root, and PBS refuses root's (Bad effective UID for reservation)"
    return [Check("reservations", True, said, "run headway as another manager of PBS", known=False)]


def _privilege(client: PbsClient, attributes: Mapping[str, Any], flavour: str) -> Check:
    user = client.transport.user
    host = socket.getfqdn() if not client.transport.where else "*"
    if _among(user, host, values.text(attributes.get("managers"))):
        return Check("privilege", True, f"{user} is a manager")
    remedy = f'qmgr -c "set server managers += {user}@{host}"'
    if user == "root":
        if flavour == "torque" or _is_trusted(client):
            return Check("privilege", True, "root is a manager on the server's host")
        server = values.text(attributes.get("server_host")) or "the server's host"
        detail = f"root is a manager on {server} only, and the commands do not run there"
        return Check("privilege", False, detail, remedy)
    if _among(user, host, values.text(attributes.get("operators"))):
        detail = (
            f"{user} is an operator: operators start jobs, but may neither suspend jobs nor lengthen "
            "running jobs"
        )
        return Check("privilege", False, detail, remedy)
    return Check("privilege", False, f"{user} is neither a manager nor an operator", remedy)


def _is_trusted(client: PbsClient) -> bool:
    """Whether the server shows us what it shows operators and managers alone: each vnode's version.

    By what name the server knows our host, if it is not its own, cannot be told from here.
    """
    shown = client.run(("pbsnodes", "-av"))
    return shown.ok and re.search(r"^\s+pbs_version = ", shown.text, re.MULTILINE) is not None


def _among(user: str, host: str, listed: str) -> bool:
    for entry in listed.split(","):
        name, _, where = entry.strip().partition("@")
        short = host.partition(".")[0]
        if name == user and (
            host == "*" or not where or fnmatchcase(host, where) or where.partition(".")[0] == short
        ):
            return True
    return False


def names(servers: Mapping[str, Mapping[str, Any]], role: str) -> set[str]:
    """The users that a server's ``managers`` or ``operators`` names, wherever they are."""
    listed = (values.text(server.get(role)) for server in servers.values())
    return {entry.strip().partition("@")[0] for text in listed for entry in text.split(",") if entry.strip()}


def _history(attributes: Mapping[str, Any]) -> Check:
    on = values.truth(attributes.get("job_history_enable"))
    return Check(
        "job history", on, "on" if on else "off: the end of a job cannot be read, so the job counts as "
                                           "vanished",
        'qmgr -c "set server job_history_enable = True"',
    )  # fmt: skip


def _queues(result: Result, options: PbsOptions) -> list[Check]:
    queues = cluster.read_queues(_objects(result, "Queue"))
    found = []
    for name in options.queues:
        queue = queues.get(name)
        if queue is None:
            known = ", ".join(sorted(queues)) or "none"
            found.append(Check(f"queue {name}", False, f"is not an execution queue; known: {known}",
                               "correct cluster.options.queues"))  # fmt: skip
        else:
            state = "started" if queue.open else "stopped"
            # Beside PBS's own scheduler a queue is headway's by being stopped.
            wanted = not options.reservations
            remedy = f'qmgr -c "set queue {name} started = {wanted}"'
            found.append(Check(f"queue {name}", queue.open is wanted, state, remedy).for_driving())
    return found


def _vnodes(client: PbsClient, flavour: str) -> Check:
    argv = ("pbsnodes", "-x") if flavour == "torque" else ("pbsnodes", "-av", "-F", "json")
    result = client.run(argv)
    remedy = "run this command by hand: it must list the vnodes"
    if not result.ok:
        return Check("vnodes", False, result.complaint(), remedy)
    try:
        records = (torque.nodes if flavour == "torque" else documents.nodes_json)(result.stdout)
    except documents.Malformed as error:
        return Check("vnodes", True, f"read from the text form: {error}")
    nodes = cluster.read_nodes(records, {}, set())
    usable = sum(node.available for node in nodes.nodes.values())
    total = len(nodes.nodes)
    return Check("vnodes", usable > 0, f"{usable} of {total} usable", "pbsnodes -l lists the unusable vnodes")


def _clock(result: Result, clock: Callable[[], float]) -> Check:
    try:
        made = documents.timestamp_json(result.stdout)
    except documents.Malformed:
        made = None
    if made is None:
        return Check("clock", True, "not compared: qstat does not tell the time")
    skew = made - clock()
    skew = 0.0 if -2.0 <= skew <= 1.0 else skew
    return Check(
        "clock", abs(skew) < 5.0, f"the clock of the machine that runs qstat is {skew:+.0f} s from headway's",
        "run an NTP service on both machines",
    )  # fmt: skip
