"""Slurm's policy: ``slurm.conf`` or ``scontrol show config``, and what ``sacctmgr`` prints.

How the files are read is in :mod:`headway_adapters.site_import.slurm_files`, what becomes of nodes and
partitions in :mod:`headway_adapters.site_import.slurm_machine`.

Decisions on what is left open:

- Slurm's backfill books every job that it looks at, so it becomes ``conservative``, with Slurm's own defaults
  of ``bf_max_job_test``, ``bf_window`` and ``bf_resolution`` where the file names none.
- What Slurm refuses by itself at submission (``AllowAccounts``, ``MaxSubmitJobs``) stays its own; limits of
  submission are remarked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headway.model import Association, SitePolicy
from headway_adapters.site_import.found import Account, Imported, Line, shown, tree_of, whole
from headway_adapters.site_import.slurm_files import SlurmFiles, read_files
from headway_adapters.site_import.slurm_keys import without_counterpart
from headway_adapters.site_import.slurm_machine import as_written, carry_machine
from headway_adapters.slurm import values
from headway_adapters.slurm.reader.policy import ASSOCIATIONS, QOS, USERS, read_policy

#: Of SchedulerParameters: how Slurm's own loop goes, which headway's is not.
_LOOP = re.compile(
    r"defer.*|bf_(continue|interval|yield_.*|max_time|busy_nodes|running_job_reserve|one_resv_per_job)|"
    r"max_rpc_cnt|sched_(interval|max_job_start|min_interval)|default_queue_depth|batch_sched_delay|"
    r"max_(sched_time|script_size|array_tasks|depend_depth)|build_queue_timeout|partition_job_depth|"
    r"requeue_.*|no_env_cache|nohold_on_prolog_fail|enable_.*|disable_.*|ignore_.*|kill_invalid_depend|"
    r"allow_zero_lic|time_min_as_soft_limit|salloc_.*|sbatch_.*|timeout_.*|delay_boot.*|bb_array_stage_cnt"
)
_BACKFILL = {
    "bf_max_job_test": ("queue_depth", 1), "bf_max_job_user": ("queue_depth_per_user", 1),
    "bf_window": ("window", 60), "bf_resolution": ("resolution", 1),
}  # fmt: skip
#: Slurm's own, where it is told nothing.
_BACKFILL_DEFAULTS = {"queue_depth": 500, "window": 86400, "resolution": 60}
_LONGEST = 3660 * 86400
#: No time of an option is longer, in seconds.
_LONGEST_TIME = 1e11
_UNLIMITED = ("UNLIMITED", "INFINITE", "-1")
_RESETS = ("DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")
#: Flags that choose what headway does as well.
_FLAGS_KNOWN = ("FAIR_TREE", "NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME")
_GO = {"REQUEUE": "requeue", "CANCEL": "cancel", "SUSPEND": "suspend"}

#: A user has of these what its account says, where nothing else is said.
_INHERITED = ("MaxJobs", "MaxTRES", "MaxTRESMins", "MaxWall", "MaxTRESPerNode")
#: Columns of associations that have none either.
_THRESHOLDS = ("minpriothreshold", "minpriothresh", "minprio")
#: Columns that limit how many jobs may wait, and their names.
_SUBMITTED = {
    "maxsubmitjobs": "MaxSubmitJobs", "maxsubmit": "MaxSubmitJobs", "grpsubmitjobs": "GrpSubmitJobs",
    "grpsubmit": "GrpSubmitJobs", "maxsubmitjobsperuser": "MaxSubmitJobsPerUser",
    "maxsubmitpu": "MaxSubmitJobsPerUser", "maxsubmitjobsperaccount": "MaxSubmitJobsPerAccount",
    "maxsubmitpa": "MaxSubmitJobsPerAccount",
}  # fmt: skip
#: Columns of a QOS that have no counterpart, where they say something.
_QOS_LEFT = {
    "gracetime": "headway gives no time to end after a signal", "usagethreshold": "usage thresholds",
    "preemptexempttime": "the value of slurm.conf holds for all partitions",
    "usagethres": "usage thresholds", "mintres": "smallest sizes", "mintresperjob": "smallest sizes",
    "minpriothreshold": "priority thresholds", "minpriothresh": "priority thresholds",
    "minprio": "priority thresholds", "limitfactor": "limit factors", "maxtresrunminspa": "",
    "maxtresrunminspu": "", "maxtresrunmins": "", "maxtresrunminsperuser": "", "maxtresrunminsperaccount": "",
    "flags": "",
}  # fmt: skip


def import_slurm(files: Sequence[Sequence[Line]]) -> Imported:
    """What the files say; ``docs/operators/moving.md`` tells how it is written down."""
    found = Imported("slurm")
    read = read_files(files, found)
    policy = _policy(read, found)
    tree = _tree(read, policy, found)
    _fair_share(read, policy, tree, found)
    _priorities(read, policy, found)
    _limits(read, policy, tree, found)
    _preemption(read, found)
    _backfill(read, found)
    found.plugins["first-fit"] = {}
    carry_machine(read, found)
    for line, why in without_counterpart(read.config):
        found.leave(line, why)
    return found


# ---------------------------------------------------------------------- what it means


def _policy(read: SlurmFiles, found: Imported) -> SitePolicy:
    """What the files say as the reader of a running Slurm would have it."""
    _inherit(read)
    config = {key: text for key, (text, _) in read.config.items()}
    # The reader goes by Slurm's own spelling.
    config = {_SPELT.get(key, key): text for key, text in config.items()}
    partitions = "\n".join(
        f"PartitionName={record['partitionname']} PriorityJobFactor={record.get('priorityjobfactor', '1')}"
        for record, _ in read.partitions
    )
    kinds = ((read.associations, ASSOCIATIONS), (read.users, USERS), (read.qos, QOS))
    texts = ["\n".join(_as_row(row, names) for row, _ in rows) for rows, names in kinds]
    policy = read_policy(config, partitions, texts[0], texts[1], texts[2], "", set())
    # What no plugin takes is remarked where it is read.
    times = {name: getattr(policy, name) or 0.0 for name in ("max_age", "period", "half_life")}
    for name in (name for name, time in times.items() if time >= _LONGEST_TIME):
        policy = msgspec.structs.replace(policy, **{name: None})
    for which, (rows, names) in enumerate(kinds):
        for row, line in rows:
            one = ["", "", ""]
            one[which] = _as_row(row, names)
            _leave_unread(one, line, found)
            _check_row(row, line, found)
    _leave_columns(read, found)
    return policy


def _leave_unread(texts: Sequence[str], line: Line, found: Imported) -> None:
    """Remark what the reader of a running Slurm does not take of a row; ``texts``: the row among empty
    texts of associations, users and QOS."""
    notes: set[str] = set()
    read_policy({}, "", texts[0], texts[1], texts[2], "", notes)
    for note in sorted(notes):
        found.leave(line, note)


def _leave_columns(read: SlurmFiles, found: Imported) -> None:
    """Remark what stands in columns that have no counterpart here."""
    for row, line in read.associations:
        for name in _THRESHOLDS:
            if row.get(name, "") not in ("", "0", "-1"):
                found.leave(line, f"{name}={row[name]} is not carried over: priority thresholds")
    for row, line in (*read.associations, *read.qos):
        for name, spelt in _SUBMITTED.items():
            if row.get(name, "") not in ("", "-1"):
                found.leave(
                    line,
                    f"{spelt}={row[name]} is not carried over: Slurm itself refuses such jobs at submission",
                )
    for row, line in read.qos:
        for name, why in _QOS_LEFT.items():
            value = row.get(name, "")
            if value and value.upper() not in ("0", "00:00:00", "0.000000", "INFINITE", "UNLIMITED"):
                also = f": {why}" if why else ""
                found.leave(line, f"QOS {row['Name']}: {name}={value} is not carried over{also}")


_SPELT = {
    key.lower(): key
    for key in (
        "PriorityWeightAge", "PriorityWeightAssoc", "PriorityWeightFairShare", "PriorityWeightJobSize",
        "PriorityWeightPartition", "PriorityWeightQOS", "PriorityWeightTRES", "PriorityMaxAge",
        "PriorityFlags", "PriorityCalcPeriod", "PriorityDecayHalfLife", "PriorityFavorSmall",
    )
}  # fmt: skip


def _as_row(row: Mapping[str, str], names: Sequence[str]) -> str:
    return "|".join(row.get(name, "") for name in names)


def _inherit(read: SlurmFiles) -> None:
    """Users have what their account, or one above it, says of each of its users."""
    accounts = {row["Account"]: row for row, _ in read.associations if not row["User"]}
    for row, _ in read.associations:
        if not row["User"]:
            continue
        for name in _INHERITED:
            at, seen = row["Account"], set()
            while not row.get(name) and at in accounts and at not in seen:
                seen.add(at)
                row[name] = accounts[at].get(name, "")
                at = accounts[at].get("ParentName", "")


#: No number of a row is larger.
_MOST = 1e12
_NUMBERS = ("Share", "Priority", "UsageFactor", "GrpJobs", "MaxJobs", "MaxJobsPU", "MaxJobsPA")


def _check_row(row: Mapping[str, str], line: Line, found: Imported) -> None:
    """Numbers of a row that are none, or below zero."""
    for name in _NUMBERS:
        text = row.get(name, "")
        if not text or (name == "Share" and text == "parent"):
            continue
        try:
            wrong = not 0 <= float(text) < _MOST
        except ValueError:
            wrong = True
        # Of a limit that is Slurm's word for none.
        if wrong and (text != "-1" or name in ("Share", "Priority")):
            found.broken(line, f"{name}: expected a number from 0 on, found {shown(text)}")
    for name in ("GrpWall", "MaxWall"):
        text = row.get(name, "")
        if text and text != "-1" and values.minutes_text(text) is None:
            found.broken(line, f"{name}: expected minutes or D-HH:MM:SS, found {shown(text)}")


def _lines_of_associations(read: SlurmFiles, found: Imported) -> dict[tuple[str, str], Line]:
    """``(account, user)`` -> the first line about it; a further line is remarked."""
    lines: dict[tuple[str, str], Line] = {}
    for row, line in read.associations:
        if row.get("Partition"):
            continue
        first = lines.setdefault((row["Account"], row["User"]), line)
        if first is not line:
            what = f"user {row['User']!r} in account" if row["User"] else "account"
            found.broken(line, f"the {what} {row['Account']!r} is there already, in {first.where}")
    return lines


def _about(association: Association) -> dict[str, Any]:
    """The options of an account or of a user in an account."""
    about: dict[str, Any] = {}
    if association.shares is None:
        about["shares"] = "parent"
    elif association.shares != 1 and 0 <= association.shares < _MOST:
        about["shares"] = association.shares
    if 0 < association.priority < _MOST:
        about["priority"] = association.priority
    if association.user and association.default:
        about["default"] = True
    return about


def _tree(read: SlurmFiles, policy: SitePolicy, found: Imported) -> dict[str, Any]:
    """The accounts as options have them."""
    lines = _lines_of_associations(read, found)
    accounts: dict[str, Account] = {}
    for one in policy.associations:
        about = _about(one)
        if not one.user:
            line = lines[one.account, ""]
            account = Account(one.account, one.parent or "root", line, about)
            if (there := accounts.get(one.account)) is not None:
                # Of two lines the first one holds; where only users were there so far, they are its own.
                account.users = there.users
            if there is None or there.line != line:
                accounts[one.account] = account
            continue
        if one.account not in accounts:
            if one.account != "root":
                found.broken(
                    lines[one.account, one.user], f"user {one.user!r}: no account is called {one.account!r}"
                )
            accounts[one.account] = Account(one.account, "root", lines[one.account, one.user])
        accounts[one.account].users.setdefault(one.user, about)
    return tree_of(list(accounts.values()), found)


def _fair_share(read: SlurmFiles, policy: SitePolicy, tree: dict[str, Any], found: Imported) -> None:
    weighed = {"fairshare", "association"} & {name for name, weight in policy.weights.items() if weight > 0}
    if _is_basic(read) or not weighed:
        return
    classic = "NO_FAIR_TREE" in _flags(read)
    options: dict[str, Any] = {}
    if tree:
        options["accounts"] = tree
    elif (line := read.line("PriorityWeightFairShare")) is not None:
        found.leave(line, "no accounts were given (sacctmgr dump CLUSTER file=FILE); all have equal shares")
    if policy.half_life is not None:
        options["half_life"] = policy.half_life or None
    elif (line := read.line("PriorityDecayHalfLife")) is not None:
        found.broken(
            line,
            f"PriorityDecayHalfLife: expected a time such as 7-0, found "
            f"{shown(read.value('PriorityDecayHalfLife'))}",
        )
    reset = read.value("PriorityUsageResetPeriod").upper()
    line = read.line("PriorityUsageResetPeriod")
    if reset in _RESETS:
        options["reset"] = reset.lower()
    elif reset and reset != "NONE" and line is not None:
        found.leave(
            line,
            f"PriorityUsageResetPeriod={reset}: expected one of {', '.join(_RESETS)}; nothing is forgotten",
        )
    factors = {name: factor for name, factor in policy.qos_billing.items() if factor != 1}
    if factors:
        options["qos"] = factors
    billing = _billing(read, found)
    if billing:
        options["billing"] = billing
    if policy.period:
        options["period"] = policy.period
    dampening = read.value("FairShareDampeningFactor")
    if classic and dampening not in ("", "1"):
        options["dampening"] = _number(read, "FairShareDampeningFactor", found) or 1.0
    found.plugins["classic" if classic else "fair-tree"] = options


def _billing(read: SlurmFiles, found: Imported) -> dict[str, float]:
    """What a second costs; partitions may differ in Slurm, and may not here."""
    first: dict[str, float] = {}
    said = "", Line("", 1, "")
    for record, line in read.partitions:
        text = record.get("tresbillingweights", "")
        if not text:
            continue
        billing: dict[str, float] = {}
        for item in text.split(","):
            match = re.fullmatch(r"([A-Za-z0-9_/:-]+)=([0-9.]+)([KMGTP]?)", item.strip())
            name = match[1].lower() if match else ""
            try:
                weight = float(match[2]) if match else 0.0
            except ValueError:
                match = None
            if match is None:
                found.broken(line, f"TRESBillingWeights: expected items such as CPU=1.0, found {shown(item)}")
            elif name == "cpu":
                billing["processors"] = weight
            elif name == "mem":
                # A weight is of a MiB, or of the unit that it names.
                billing["memory"] = weight * {
                    "": 1024.0,
                    "K": 2.0**20,
                    "M": 1024.0,
                    "G": 1.0,
                    "T": 1 / 1024,
                }.get(match[3], 1.0)
            elif name.startswith("gres/"):
                billing[name.removeprefix("gres/")] = weight
            else:
                found.leave(line, f"TRESBillingWeights: {item} is not billed")
        if not first:
            first, said = billing, (record["partitionname"], line)
        elif billing and billing != first:
            found.leave(
                line,
                "TRESBillingWeights: the weights of the first partition with weights hold for all partitions",
            )
    without = [
        record["partitionname"] for record, _ in read.partitions if not record.get("tresbillingweights", "")
    ]
    if first and without:
        name, line = said
        found.leave(
            line,
            f"TRESBillingWeights: the weights of {name} hold for all partitions, also for "
            f"{', '.join(without)}, which Slurm bills by processors",
        )
    return first


def _flags(read: SlurmFiles) -> list[str]:
    return [flag.strip() for flag in read.value("PriorityFlags").upper().split(",") if flag.strip()]


def _is_basic(read: SlurmFiles) -> bool:
    """Whether jobs are served in order of submission."""
    return read.value("PriorityType").lower() == "priority/basic"


def _number(read: SlurmFiles, key: str, found: Imported) -> float | None:
    text, line = read.value(key), read.line(key)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e12:
        if line is not None:
            found.broken(line, f"{key}: expected a number from 0 on, found {shown(text)}")
        return None
    return number


def _tell_unread(read: SlurmFiles, found: Imported) -> None:
    """Remark what says how jobs are weighed and cannot be read."""
    for key in ("PriorityMaxAge", "PriorityCalcPeriod"):
        line = read.line(key)
        if line is not None:
            _minutes({key: read.value(key)}, key, line, found)
    line = read.line("PriorityFavorSmall")
    if line is not None and read.value("PriorityFavorSmall").upper() not in ("YES", "NO", ""):
        found.broken(line, f"PriorityFavorSmall: expected YES or NO, found "
                     f"{shown(read.value('PriorityFavorSmall'))}")  # fmt: skip
    line = read.line("PriorityWeightTRES")
    for item in filter(None, read.value("PriorityWeightTRES").split(",")):
        if line is not None and re.fullmatch(r"[^=]+=([0-9]+(\.[0-9]*)?|\.[0-9]+)", item.strip()) is None:
            found.broken(line, f"PriorityWeightTRES: expected items such as CPU=1000, found {shown(item)}")
    for record, line in read.partitions:
        text = record.get("priorityjobfactor", "0")
        if whole(text) is None:
            found.broken(line, f"PriorityJobFactor: expected a number from 0 on, found {shown(text)}")


def _priorities(read: SlurmFiles, policy: SitePolicy, found: Imported) -> None:
    kind = read.value("PriorityType").lower()
    if kind and kind not in ("priority/multifactor", "priority/basic"):
        line = read.line("PriorityType")
        if line is not None:
            found.leave(line, f"PriorityType={kind}: expected priority/multifactor or priority/basic")
    for key in ("Age", "Assoc", "FairShare", "JobSize", "Partition", "QOS"):
        if read.value(f"PriorityWeight{key}"):
            _number(read, f"PriorityWeight{key}", found)
    _tell_unread(read, found)
    for flag in _flags(read):
        line = read.line("PriorityFlags")
        if flag not in _FLAGS_KNOWN and line is not None:
            found.leave(line, f"PriorityFlags={flag} has no counterpart")
    weights = {name: weight for name, weight in policy.weights.items() if 0 < weight < 1e12}
    if _is_basic(read) or not weights:
        return
    found.plugins["multifactor"] = _factors(policy, weights)
    line = read.line("PriorityWeightQOS")
    if "qos" in weights and not policy.qos and line is not None:
        found.leave(line, "no QOS were given (sacctmgr -P show qos), so QOS have no weight")


def _factors(policy: SitePolicy, weights: dict[str, float]) -> dict[str, Any]:
    """The options of ``multifactor``."""
    options: dict[str, Any] = {"weights": weights}
    if policy.max_age:
        options["max_age"] = policy.max_age
    if policy.period:
        options["period"] = policy.period
    if policy.favour_small:
        options["favour"] = "small"
    if policy.size_over_time:
        options["size"] = "time"
    if "pool" in weights:
        options["pools"] = _sane(policy.pools)
    if "qos" in weights:
        options["qos"] = _sane(policy.qos)
    return options


def _sane(numbers: Mapping[str, float]) -> dict[str, float]:
    """The values that could be read; the others are 0."""
    return {name: number if 0 <= number < _MOST else 0.0 for name, number in numbers.items()}


def _limits(read: SlurmFiles, policy: SitePolicy, tree: dict[str, Any], found: Imported) -> None:
    enforced = read.value("AccountingStorageEnforce").lower()
    # Without the word Slurm enforces none; without any configuration it is unknown.
    line = read.line("AccountingStorageEnforce") or next((line for _, line in read.config.values()), None)
    limits = {kind: dict(table) for kind, table in policy.limits.items()}
    if limits and line is not None and not re.search(r"limits|safe|all|qos", enforced):
        found.leave(
            line,
            "Slurm does not enforce limits of associations and QOS (AccountingStorageEnforce), so "
            "they are left out",
        )
        limits = {}
    for record, line in read.partitions:
        largest: dict[str, Any] = {}
        walltime, nodes = _minutes(record, "maxtime", line, found), record.get("maxnodes", "")
        if walltime:
            largest["walltime"] = walltime
        if (most := whole(nodes)) is not None:
            largest["nodes"] = most
        elif nodes and nodes.upper() not in _UNLIMITED:
            found.broken(line, f"MaxNodes: expected a number, found {shown(nodes)}")
        if largest:
            limits.setdefault("pool", {})[record["partitionname"]] = {"largest": largest}
    if not limits:
        return
    options: dict[str, Any] = {"of": limits}
    if "account" in limits and tree:
        options["accounts"] = tree
    if (
        any(
            {"budget", "wall_minutes"} & amounts.keys()
            for table in limits.values()
            for amounts in table.values()
        )
        and policy.half_life
    ):
        options["half_life"] = policy.half_life
    found.plugins["limits"] = options


def _minutes(record: Mapping[str, str], key: str, line: Line, found: Imported) -> float | None:
    """Seconds of a time as Slurm writes limits; None for none."""
    text = record.get(key, "")
    if not text or text.upper() in _UNLIMITED:
        return None
    told = values.minutes_text(text)
    if told is None or told >= _LONGEST_TIME:
        found.broken(line, f"{as_written(key, line)}: expected minutes or D-HH:MM:SS, found {shown(text)}")
        return None
    return told


def _preemption(read: SlurmFiles, found: Imported) -> None:
    kind, line = read.value("PreemptType").lower(), read.line("PreemptType")
    if kind in ("", "preempt/none") or line is None:
        return
    modes = read.value("PreemptMode").upper()
    rules: list[dict[str, Any]] = []
    if kind == "preempt/qos":
        rules = _rules_of_qos(read, modes, found)
        if not read.qos:
            found.leave(line, "no QOS were given (sacctmgr -P show qos), so no job takes another job's place")
    elif kind == "preempt/partition_prio":
        rules = _rules_of_partitions(read, modes, found)
    else:
        found.leave(line, f"PreemptType={kind} has no counterpart")
    at = read.line("PreemptExemptTime") or line
    exempt = _minutes({"PreemptExemptTime": read.value("PreemptExemptTime")}, "PreemptExemptTime", at, found)
    for rule in rules:
        if exempt:
            rule["exempt"] = exempt
    if rules:
        found.plugins["preemption"] = {"rules": rules}
        if "preempt_youngest_first" in read.value("SchedulerParameters").lower():
            found.plugins["preemption"]["victims"] = "youngest"


def _rules_of_qos(read: SlurmFiles, modes: str, found: Imported) -> list[dict[str, Any]]:
    """Which QOS takes the place of which."""
    rules: list[dict[str, Any]] = []
    own = {row["Name"]: row.get("preemptmode", "").upper() for row, _ in read.qos}
    for row, at in read.qos:
        victims = [name.strip() for name in row.get("preempt", "").split(",") if name.strip()]
        for name in victims:
            if name not in own:
                found.leave(at, f"QOS {row['Name']}: Preempt={name}: there is no such QOS")
        known = [name for name in victims if name in own]
        for how, names in _by_mode(known, own, modes, at, found).items():
            rules.append({"who": {"qos": [row["Name"]]}, "whom": {"qos": names}, "how": how})
    return rules


def _rules_of_partitions(read: SlurmFiles, modes: str, found: Imported) -> list[dict[str, Any]]:
    """Which partition takes the place of which: each the places of partitions in lower tiers."""
    rules: list[dict[str, Any]] = []
    tiers: dict[str, int] = {}
    own: dict[str, str] = {}
    for record, at in read.partitions:
        text = record.get("prioritytier", record.get("priority", "1"))
        tier = whole(text)
        if tier is None:
            found.broken(at, f"PriorityTier: expected a number, found {shown(text)}")
        tiers[record["partitionname"]] = 1 if tier is None else tier
        own[record["partitionname"]] = record.get("preemptmode", "").upper()
    for record, at in read.partitions:
        name = record["partitionname"]
        lower = [other for other, tier in tiers.items() if tier < tiers[name]]
        for how, names in _by_mode(lower, own, modes, at, found).items():
            rules.append({"who": {"pool": [name]}, "whom": {"pool": names}, "how": how})
    return rules


def _by_mode(
    names: Sequence[str], own: Mapping[str, str], modes: str, line: Line, found: Imported
) -> dict[str, list[str]]:
    """The victims' names by the way in which they go: their own word, else the cluster's."""
    by: dict[str, list[str]] = {}
    for name in names:
        if not name:
            continue
        mode = own.get(name, "")
        mode = modes if mode in ("", "CLUSTER") else mode
        for word in mode.split(","):
            if word in _GO:
                by.setdefault(_GO[word], []).append(name)
                break
        else:
            if mode != "OFF":
                found.leave(line, f"PreemptMode={mode or 'OFF'}: the jobs of {name} keep their places "
                            "(requeue, cancel and suspend are carried over)")  # fmt: skip
    return by


def _backfill(read: SlurmFiles, found: Imported) -> None:
    kind, said = read.value("SchedulerType").lower(), read.line("SchedulerType")
    if kind == "sched/builtin":
        found.plugins["strict"] = {}
        return
    if kind not in ("", "sched/backfill") and said is not None:
        found.leave(
            said, f"SchedulerType={kind}: expected sched/backfill or sched/builtin; jobs are backfilled"
        )
    options: dict[str, Any] = dict(_BACKFILL_DEFAULTS)
    line = read.line("SchedulerParameters")
    for item in read.value("SchedulerParameters").split(","):
        key, _, text = item.strip().partition("=")
        low = key.lower()
        if not low or line is None or _LOOP.fullmatch(low) or low == "preempt_youngest_first":
            continue
        if low not in _BACKFILL:
            found.leave(line, f"SchedulerParameters={item.strip()} has no counterpart")
            continue
        name, unit = _BACKFILL[low]
        number = whole(text)
        if number is None or number * unit > _LONGEST:
            found.broken(line, f"SchedulerParameters: {key}: expected a number, found {shown(text)}")
        elif number:
            options[name] = number * unit
        else:
            options.pop(name, None)
    found.plugins["conservative"] = options
