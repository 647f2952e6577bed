"""What ``headway check`` looks at on a Slurm cluster, each with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from headway.adapter import Check
from headway.errors import Failure
from headway_adapters.slurm import reader, submit_filter
from headway_adapters.slurm.admittance import narrower
from headway_adapters.slurm.client import SlurmClient
from headway_adapters.slurm.options import SlurmOptions

#: Slurm before this writes no JSON of its queue that we know.
OLDEST = (21, 8)
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)")
_PROGRAMS = ("squeue", "sinfo", "scontrol", "scancel")


def version_of(text: str) -> tuple[int, int]:
    """``slurm-wlm 22.05.8`` -> (22, 5); (0, 0) when there is none in the text."""
    match = _VERSION.search(text)
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)


def run(client: SlurmClient, options: SlurmOptions, clock: Callable[[], float]) -> list[Check]:
    """All checks; checks that need an answer from slurmctld are left out when there is none."""
    found = client.check_transport()
    if any(not check.ok for check in found):
        return found
    try:
        results = client.run_many([(program, "--version") for program in _PROGRAMS])
    except Failure as error:
        remedy = "install Slurm's client commands where they run, or set cluster.options.bin_dir"
        return [*found, Check("slurm's commands", False, str(error), remedy)]
    version = version_of(results[0].text)
    shown = results[0].text.strip() or results[0].complaint()
    needed = f"headway needs Slurm {OLDEST[0]}.{OLDEST[1]:02d} or later"
    if not results[0].ok:
        needed = (
            "set cluster.options.slurm_conf to the path of slurm.conf, or put slurm.conf into its usual place"
        )
    found.append(Check("slurm's commands", version >= OLDEST, shown, needed))
    config_result, ping = client.run_many([("scontrol", "show", "config"), ("scontrol", "ping")])
    if not config_result.ok:
        remedy = "start slurmctld and munge, or set cluster.options.slurm_conf"
        found.append(Check("slurmctld", False, config_result.complaint(), remedy))
        return found
    config = reader.config(config_result.text)
    said = ping.text.strip().splitlines()
    found.append(Check("slurmctld", True, said[0] if said else "answers"))
    found.append(_privilege(client, config).for_driving())
    found.append(_scheduler(config).for_driving())
    found.append(_delay(config).for_driving())
    if options.power:
        found.append(_power(config).for_driving())
    found += _partitions(client, options)
    found.append(_planned_starts(options))
    found += [check.for_driving() for check in submit_filter.check(client, config, options, ping.text)]
    found.append(_clock(client, clock))
    return found


def _planned_starts(options: SlurmOptions) -> Check:
    said = "squeue --start shows none; with cluster.options.show_starts it does"
    if options.show_starts:
        said = f"squeue --start shows them (at most {options.show_rate:g} are written a second)"
    return Check("planned starts", True, said)


def _privilege(client: SlurmClient, config: dict[str, str]) -> Check:
    user = client.user
    slurm_user = config.get("SlurmUser", "").partition("(")[0]
    if user in ("root", slurm_user):
        return Check("privilege", True, f"{user} may change every job")
    try:
        shown = client.run(("sacctmgr", "-n", "-P", "show", "user", user, "format=User,AdminLevel"))
        level = shown.text.strip().partition("|")[2] if shown.ok else ""
    except Failure:
        level = ""
    return Check(
        "privilege",
        # Not Operator: Slurm lets only administrators write a job's AdminComment.
        level == "Administrator",
        f"{user} is {'an ordinary user' if level in ('', 'None') else level}",
        f"run headway as {slurm_user or 'SlurmUser'}, or: "
        f"sacctmgr modify user {user} set AdminLevel=Administrator",
    )


def _scheduler(config: dict[str, str]) -> Check:
    kind = config.get("SchedulerType", "unknown")
    # A site that has none of these jobs needs nothing.
    held = "; heterogeneous jobs stay held: they need sched/backfill and bf_interval=1 (to 5)"
    if reader.starts_heterogeneous(config):
        held = ""
    return Check(
        "SchedulerType", kind in ("sched/builtin", "sched/backfill"), kind + held,
        "set SchedulerType=sched/builtin in slurm.conf",
    )  # fmt: skip


def _delay(config: dict[str, str]) -> Check:
    parameters = config.get("SchedulerParameters", "")
    match = re.search(r"batch_sched_delay=([0-9]+)", parameters)
    delay = int(match.group(1)) if match else 3
    return Check(
        "batch_sched_delay", delay == 0, f"{delay} s",
        "set SchedulerParameters=batch_sched_delay=0: otherwise starts come 1 to 3 s late", helps=True,
    )  # fmt: skip


def _power(config: dict[str, str]) -> Check:
    missing = [
        key for key in ("SuspendProgram", "ResumeProgram") if config.get(key, "(null)") in ("(null)", "")
    ]
    time = config.get("SuspendTime", "")
    if time in ("NONE", "INFINITE", "-1"):
        # Slurm then refuses POWER_DOWN as well.
        missing.append("SuspendTime")
    return Check(
        "power saving", not missing, f"not set: {', '.join(missing)}" if missing else f"SuspendTime={time}",
        "set SuspendProgram, ResumeProgram and a SuspendTime (a long SuspendTime leaves sleep to headway)",
    )  # fmt: skip


def _partitions(client: SlurmClient, options: SlurmOptions) -> list[Check]:
    listed = client.run(("scontrol", "-o", "show", "partition", "-a"))
    partitions = reader.read_partitions(listed.text) if listed.ok else {}
    found = []
    for name in options.partitions:
        partition = partitions.get(name)
        if partition is None:
            known = ", ".join(sorted(partitions)) or "none"
            found.append(Check(f"partition {name}", False, f"does not exist; known: {known}",
                               "correct cluster.options.partitions"))  # fmt: skip
        else:
            state = "up" if partition.open else "closed"
            remedy = f"scontrol update PartitionName={name} State=UP"
            said = f"{len(partition.nodes)} nodes, {state}"
            found.append(Check(f"partition {name}", partition.open, said, remedy).for_driving())
    tiers = dict.fromkeys(name for pair in options.background.items() for name in pair)
    if missing := [name for name in tiers if name not in partitions]:
        said = f"does not exist: {', '.join(missing)}"
        found.append(Check("two tiers", False, said, "correct cluster.options.background"))
    elif tiers:
        found.append(_tiers(partitions, options, list(tiers)).for_driving())
    return found


def _tiers(partitions: Mapping[str, reader.Partition], options: SlurmOptions, names: Sequence[str]) -> Check:
    """Whether Slurm puts a background job on processors that others have. ``names``: of both tiers."""
    alone = [name for name in names if partitions[name].forced < 2]
    if alone:
        return Check(
            "two tiers", False, f"jobs do not share processors in {', '.join(alone)}",
            f"scontrol update PartitionName={alone[0]} OverSubscribe=FORCE:2, and so in slurm.conf",
        )  # fmt: skip
    for front, behind in options.background.items():
        apart = set(partitions[front].nodes) - set(partitions[behind].nodes)
        if apart:
            said = f"{len(apart)} nodes of {front} are not in {behind}, such as {min(apart)}"
            return Check("two tiers", False, said, f"give {behind} all nodes of {front} in slurm.conf")
        if not partitions[behind].open:
            said = f"Slurm starts nothing in {behind}, which is closed"
            return Check("two tiers", False, said, f"scontrol update PartitionName={behind} State=UP")
        if out := narrower(partitions[behind], partitions[front]):
            said = f"Slurm refuses jobs of {front} in {behind}: {out}"
            remedy = (
                f"give {behind} what {front} has; BEHIND in job_submit.lua keeps users' submissions out of it"
            )
            return Check("two tiers", False, said, remedy)
    unread = [
        f"{partitions[behind].qos} of {behind}"
        for front, behind in options.background.items()
        if partitions[behind].qos not in ("", partitions[front].qos)
    ]
    more = f" (the limits of the QoS {', '.join(unread)} are not checked)" if unread else ""
    return Check("two tiers", True, f"jobs share processors in {', '.join(names)}{more}")


def _clock(client: SlurmClient, clock: Callable[[], float]) -> Check:
    before = clock()
    try:
        shown = client.run(("sdiag",))
    except Failure as error:
        return Check("clock", True, f"not compared: {error}")
    match = re.search(r"sdiag output at .*\(([0-9]+)\)", shown.text)
    if match is None:
        return Check("clock", True, "not compared: sdiag does not tell slurmctld's time")
    skew = int(match.group(1)) - before
    skew = 0.0 if -1.0 <= skew <= 0.0 else skew
    return Check(
        "clock", abs(skew) < 5.0, f"slurmctld's clock is {skew:+.0f} s from ours",
        "run an NTP service on both machines",
    )  # fmt: skip
