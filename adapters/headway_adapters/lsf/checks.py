"""What ``headway check`` looks at on an LSF cluster, each with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from headway.adapter import Check
from headway.errors import Failure
from headway_adapters.lsf import cluster_listing, listing
from headway_adapters.lsf.flavour import EVERYTHING, Flavour
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling import heartbeat
from headway_adapters.polling.client import CommandClient, Unanswered

_PROGRAMS = (
    "lsid", "bjobs", "bhosts", "bqueues", "lshosts", "lsload", "bmgroup", "bhist", "brun", "bmod", "bstop",
    "bresume", "bkill", "badmin",
)  # fmt: skip
_MAY_MODIFY = re.compile(r"LSB_MOD_ALL_JOBS\s*=\s*[Yy1]")


def flavour(client: CommandClient, options: LsfOptions) -> tuple[Flavour, str]:
    """Which LSF this is, and its cluster's name. Raises :class:`Unanswered` when it does not say."""
    result = client.look([("lsid",)])[0]
    system = cluster_listing.read_system(result.text)
    if system is None:
        said = result.text.strip().splitlines()
        raise Unanswered(
            f"lsid: expected LSF's name and cluster, found {said[0][:80] if said else 'nothing'!r}"
        )
    ibm = system.ibm if options.flavour == "auto" else options.flavour == "ibm"
    may = options.running_limits == "yes"
    if options.running_limits == "auto" and ibm:
        shown = client.run(("badmin", "showconf", "mbd", "LSB_MOD_ALL_JOBS"))
        may = shown.ok and _MAY_MODIFY.search(shown.text) is not None
    return Flavour(system.title, ibm, may), system.cluster


def run(client: CommandClient, options: LsfOptions, clock: Callable[[], float]) -> list[Check]:
    """All checks; checks that need an answer from LSF are left out when there is none."""
    found = client.check_transport()
    if any(not check.ok for check in found):
        return found
    try:
        results = client.run_many([(program, "-V") for program in _PROGRAMS])
    except Failure as error:
        remedy = (
            "install LSF's commands where they run, or set cluster.options.bin_dir (where profile.lsf puts "
            "PATH) and cluster.options.environment (its LSF_... variables)"
        )
        return [*found, Check("lsf's commands", False, str(error), remedy)]
    silent = next((result for result in results if result.timed_out), None)
    found.append(Check("lsf's commands", silent is None, silent.complaint() if silent else "all there",
                       "look at lsf.conf, or raise cluster.options.command_timeout"))  # fmt: skip
    try:
        kind, cluster = flavour(client, options)
    except Failure as error:
        remedy = (
            "start LSF's daemons (lim, mbatchd), or set cluster.options.environment to what profile.lsf "
            "sets (LSF_ENVDIR, LSF_SERVERDIR)"
        )
        return [*found, Check("lsf", False, str(error), remedy)]
    found.append(Check("lsf", True, f"{kind.title}, cluster {cluster}"))
    found.append(_capabilities(kind, options))
    found.append(Check("planned starts", True, "bjobs shows none of headway's; headway explain tells them"))
    try:
        queues_out, hosts_out = client.look([("bqueues", "-l"), ("bhosts", "-w")])
        found += _queues(cluster_listing.read_queues(queues_out.text), options)
        found.append(_privilege(queues_out.text, kind, options, client).for_driving())
        found += _jobs(client, clock, cluster_listing.read_hosts(hosts_out.text))
    except Failure as error:
        found.append(Check("mbatchd", False, str(error), "start mbatchd (badmin mbdrestart), or wait for it"))
    if options.heartbeat is not None:
        found.append(heartbeat.check(options).for_driving())
    return found


def _capabilities(kind: Flavour, options: LsfOptions) -> Check:
    able = kind.capabilities(options)
    missing = sorted(EVERYTHING - able, key=lambda decision: decision.__name__)
    if not missing:
        return Check("this LSF can", True, "all commands that headway may use of an LSF")
    why = "; ".join(f"{decision.__name__}: {kind.why_not(decision)}" for decision in missing)
    return Check("this LSF can", True, f"all but {why}")


def _queues(queues: dict[str, cluster_listing.Queue], options: LsfOptions) -> list[Check]:
    found = []
    for name in options.queues:
        queue = queues.get(name)
        if queue is None:
            known = ", ".join(sorted(queues)) or "none"
            found.append(Check(f"queue {name}", False, f"does not exist; known: {known}",
                               "correct cluster.options.queues"))  # fmt: skip
        elif not queue.inactive:
            remedy = f"to drive: badmin qinact {name} (badmin qact {name} gives it back)"
            said = f"{queue.status}: LSF starts the queue's jobs by itself"
            found.append(Check(f"queue {name}", False, said, remedy).for_driving())
        elif queue.window_closed:
            remedy = f"badmin qinact {name}, else LSF starts its jobs when the window opens"
            said = f"{queue.status}: its run window is closed"
            found.append(Check(f"queue {name}", False, said, remedy).for_driving())
        else:
            said = f"{queue.status}, hosts {' '.join(queue.hosts)}"
            if queue.slot_limits:
                limits = ", ".join(queue.slot_limits)
                said += f"; brun does not keep the queue's limits ({limits}): enable the plugin limits"
            found.append(Check(f"queue {name}", True, said))
    return found


_ADMINISTRATORS = re.compile(r"^ADMINISTRATORS: *(.*)$", re.MULTILINE)
_CLUSTER_ADMINISTRATORS = re.compile(r"^LSF administrators?: *(.*)$", re.MULTILINE | re.IGNORECASE)


def _privilege(queues: str, kind: Flavour, options: LsfOptions, client: CommandClient) -> Check:
    """Whether brun and bkill are allowed: for the cluster's or each queue's administrators only."""
    user = client.user
    if user == "root" and not kind.ibm:
        return Check("privilege", True, "root administers the cluster")
    of_cluster = _told(client, ("lsclusters", "-l"))
    administrators = _words(_CLUSTER_ADMINISTRATORS.findall(of_cluster))
    if user in administrators:
        return Check("privilege", True, f"{user} administers the cluster")
    groups = cluster_listing.read_groups(_told(client, ("bugroup", "-w")))
    blocks = {block.split("\n")[0].strip(): block for block in queues.split("QUEUE: ")[1:]}
    lacking: list[str] = []
    for name in options.queues:
        named = _words(_ADMINISTRATORS.findall(blocks.get(name, "")))
        administrators |= named
        if user not in named and not any(user in groups.get(word.rstrip("/"), ()) for word in named):
            lacking.append(name)
    if not lacking:
        return Check("privilege", True, f"{user} administers {', '.join(options.queues)}")
    others = f" ({', '.join(sorted(administrators))})" if administrators else ""
    said = f"{user} is not among the administrators of {', '.join(lacking)}{others}"
    remedy = f"to drive: ADMINISTRATORS = {user} in the queue's section of lsb.queues, then badmin reconfig"
    if _CLUSTER_ADMINISTRATORS.search(of_cluster) is None:
        said = f"{said}; the administrators of the cluster are not known here"
        return Check(
            "privilege", True, said, f"where {user} does not administer the cluster, {remedy}", known=False
        )
    return Check("privilege", False, said, remedy)


def _words(lines: Sequence[str]) -> set[str]:
    return {word for line in lines for word in line.replace(",", " ").split()}


def _told(client: CommandClient, argv: tuple[str, ...]) -> str:
    """What a command says that not every LSF has; "" if this LSF does not have it."""
    try:
        shown = client.run(argv)
    except Failure:
        return ""
    return shown.text if shown.ok else ""


def _jobs(
    client: CommandClient, clock: Callable[[], float], hosts: dict[str, cluster_listing.HostState]
) -> Sequence[Check]:
    """Whether all users' jobs are seen, and whether LSF's times fit our clock."""
    shown = client.run(("bjobs", "-u", "all", "-a", "-w"))
    if not shown.ok and not listing.nothing_found(shown.stderr):
        raise Unanswered(f"bjobs: {shown.complaint()}")
    now = clock()
    rows = listing.read_wide_rows(shown.text, Calendar(now), set()) if shown.ok else {}
    placed = ("RUN", "USUSP", "SSUSP", "UNKWN", "PROV", "WAIT")
    seen = sum(count for row in rows.values() if row.stat in placed for _, count in row.hosts)
    used = sum(host.used for host in hosts.values())
    return [
        Check(
            "all users' jobs", seen >= used, f"{seen} slots by the jobs listed, {used} by the hosts",
            "let this user see all jobs (LSB_SECURE_JOBINFO_USERS, SECURE_JOB_INFO_LEVEL)",
        ),
        _clock(rows, now),
    ]  # fmt: skip


def _clock(rows: dict[str, listing.Row], now: float) -> Check:
    newest = max((row.submitted for row in rows.values() if row.submitted is not None), default=None)
    if newest is None:
        return Check("clock", True, "not compared: there are no jobs")
    ahead = newest - now
    when = f"{abs(ahead):.0f} s {'from now' if ahead > 0 else 'ago'}"
    return Check(
        "clock", ahead < 60.0, f"the newest job was submitted {when} by LSF's clock",
        "run an NTP service on both machines; LSF's commands must obey TZ=UTC",
    )  # fmt: skip
