"""Slurm's accounts, QOS, partitions and weights -> :class:`headway.model.SitePolicy`.

From ``scontrol show config``, ``scontrol -o show partition``, ``sacctmgr show`` of associations, users and
QOS (columns :data:`ASSOCIATIONS`, :data:`USERS`, :data:`QOS`), ``sshare`` (:data:`USAGE`), and
``scontrol show assoc_mgr``.

A ``Grp`` limit of an account holds for all below it; what ``sacctmgr`` shows with a user, inherited or not,
holds for that user in that account. What has no counterpart is left out, with a note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from headway.model import Association, SitePolicy
from headway_adapters.slurm import values
from headway_adapters.slurm.reader.documents import records
from headway_adapters.slurm.reader.spent import read_spent

#: Columns that are asked for, in this order; limits are read by these names.
ASSOCIATIONS = (
    "Account", "User", "Partition", "ParentName", "Share", "Priority", "GrpJobs", "GrpTRES", "GrpTRESMins",
    "GrpTRESRunMins", "GrpWall", "MaxJobs", "MaxTRES", "MaxTRESMins", "MaxWall", "MaxTRESPerNode",
)  # fmt: skip
USERS = ("User", "DefaultAccount")
QOS = (
    "Name", "Priority", "UsageFactor", "GrpJobs", "GrpTRES", "GrpTRESMins", "GrpTRESRunMins", "GrpWall",
    "MaxJobsPU", "MaxTRESPU", "MaxTRES", "MaxTRESMins", "MaxWall", "MaxTRESPerNode", "MaxJobsPA", "MaxTRESPA",
    "Flags",
)  # fmt: skip
USAGE = ("Account", "User", "Partition", "RawUsage", "GrpTRESRaw")

_WEIGHTS = {
    "PriorityWeightAge": "age", "PriorityWeightAssoc": "association", "PriorityWeightFairShare": "fairshare",
    "PriorityWeightJobSize": "size", "PriorityWeightPartition": "pool", "PriorityWeightQOS": "qos",
}  # fmt: skip
#: How a limit that there is not is written where it is written.
NONE = "-1"
_TRES = {"cpu": "processors", "node": "nodes", "mem": "memory"}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)", re.IGNORECASE)
_GIB = {"K": 2.0**-20, "M": 2.0**-10, "": 2.0**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}
#: Fairshare=parent.
_PARENT = ("parent", "2147483647")


def read_policy(
    config: Mapping[str, str], partitions: str, associations: str, users: str, qos: str, usage: str,
    notes: set[str], spent: str = "",
) -> SitePolicy:  # fmt: skip
    """All of it; the texts are what the commands printed."""
    used = {
        (row["Account"], row["User"]): (values.number(row["RawUsage"]) or 0.0, _minutes(row["GrpTRESRaw"]))
        for row in _rows(usage, USAGE) if not row["Partition"]
    }  # fmt: skip
    default = {row["User"]: row["DefaultAccount"] for row in _rows(users, USERS)}
    limits = _Limits(notes)
    found, allowed = [], {}
    for row in _rows(associations, ASSOCIATIONS):
        account, user = row["Account"], row["User"]
        if row["Partition"]:
            notes.add(
                f"the association of {user} in {account} for partition {row['Partition']} is not carried over"
            )
            continue
        limits.of_association(row)
        if row["GrpTRESMins"]:
            allowed[f"{account}:{user}" if user else account] = row["GrpTRESMins"]
        if account == "root" and not user:
            continue
        usage_of, minutes = used.get((account, user), (0.0, 0.0))
        share = None if row["Share"] in _PARENT else values.number(row["Share"])
        found.append(
            Association(
                account, user, row["ParentName"] if not user and row["ParentName"] != "root" else "",
                None if row["Share"] in _PARENT else float(share if share is not None else 1),
                float(values.number(row["Priority"]) or 0), bool(user) and default.get(user) == account,
                float(usage_of) if user else 0.0, minutes,
            )
        )  # fmt: skip
    priorities, billing, safe = {}, {}, []
    for row in _rows(qos, QOS):
        priorities[row["Name"]] = float(values.number(row["Priority"]) or 0)
        factor = _float(row["UsageFactor"])
        billing[row["Name"]] = 1.0 if factor is None else factor
        if "usagefactorsafe" in row["Flags"].lower().split(","):
            safe.append(row["Name"])
        limits.of_qos(row)
    pools = {
        record["PartitionName"]: float(values.number(record.get("PriorityJobFactor")) or 0)
        for record in records(partitions, "PartitionName")
    }
    flags = config.get("PriorityFlags", "").upper().split(",")
    half_life = values.minutes_text(config.get("PriorityDecayHalfLife", ""))
    return SitePolicy(
        associations=tuple(found), limits=limits.found, qos=priorities, qos_billing=billing,
        qos_safe=tuple(safe), pools=pools,
        weights=_weights(config), max_age=_positive(config.get("PriorityMaxAge", "")),
        period=_positive(config.get("PriorityCalcPeriod", "")),
        favour_small=config.get("PriorityFavorSmall", "").lower() == "yes",
        size_over_time="SMALL_RELATIVE_TO_TIME" in flags,
        half_life=None if half_life is None or math.isinf(half_life) else half_life,
        resources=tuple(filter(None, config.get("AccountingStorageTRES", "").split(","))), minutes=allowed,
        used=read_spent(spent),
    )  # fmt: skip


def _minutes(text: str) -> float:
    """The minutes of processors, of ``cpu=3,mem=0,...``."""
    return next((_float(item[4:]) or 0.0 for item in text.split(",") if item.startswith("cpu=")), 0.0)


def _rows(text: str, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == len(columns):
            yield dict(zip(columns, fields, strict=True))


def _weights(config: Mapping[str, str]) -> dict[str, float]:
    found = {
        ours: float(weight)
        for key, ours in _WEIGHTS.items()
        if (weight := values.number(config.get(key))) is not None and not math.isinf(weight)
    }
    for item in config.get("PriorityWeightTRES", "").split(","):
        name, equals, text = item.partition("=")
        weight = _float(text)
        if equals and weight is not None:
            name = name.lower()
            ours = {"cpu": "processors", "mem": "memory"}.get(name, name.removeprefix("gres/"))
            found[f"resource:{ours}"] = weight
    return found


def _positive(text: str) -> float | None:
    """Seconds above 0; None for anything else."""
    found = values.minutes_text(text)
    return found if found and math.isfinite(found) else None


def _float(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


class _Limits:
    """What the plugin ``limits`` takes as ``of``, from Slurm's columns."""

    def __init__(self, notes: set[str]) -> None:
        self.found: dict[str, dict[str, dict[str, Any]]] = {}
        self._notes = notes

    def of_association(self, row: Mapping[str, str]) -> None:
        """Of an account what holds for all below it, of a user everything."""
        account, user = row["Account"], row["User"]
        where = f"account {account}, user {user}" if user else f"account {account}"
        amounts = self._together(row, where, jobs="GrpJobs", tres="GrpTRES")
        if not user:
            self._add(
                "all" if account == "root" else "account", "*" if account == "root" else account, amounts
            )
            return
        name = f"{account}:{user}"
        jobs = _count(row["MaxJobs"])
        if jobs is not None:
            amounts["jobs"] = min(jobs, amounts.get("jobs", jobs))
        self._add("association", name, {**amounts, **self._single(row, where)})

    def of_qos(self, row: Mapping[str, str]) -> None:
        """Of all jobs of a QOS, of each user's in it, and of each."""
        name = row["Name"]
        where = f"QOS {name}"
        amounts = self._together(row, where, jobs="GrpJobs", tres="GrpTRES")
        self._add("qos", name, {**amounts, **self._single(row, where)})
        each: dict[str, Any] = self._tres(row["MaxTRESPU"], f"{where}: MaxTRESPU")
        if (jobs := _count(row["MaxJobsPU"])) is not None:
            each["jobs"] = jobs
        self._add("user+qos", f"*+{name}", each)
        own: dict[str, Any] = self._tres(row["MaxTRESPA"], f"{where}: MaxTRESPA")
        if (jobs := _count(row["MaxJobsPA"])) is not None:
            own["jobs"] = jobs
        self._add("own_account+qos", f"*+{name}", own)

    def _add(self, kind: str, name: str, amounts: dict[str, Any]) -> None:
        if not amounts:
            return
        if "+" in name.replace("*+", "", 1):
            self._notes.add(f"limits of {name}: a name with a plus sign cannot be carried over")
            return
        self.found.setdefault(kind, {})[name] = amounts

    def _together(self, row: Mapping[str, str], where: str, *, jobs: str, tres: str) -> dict[str, Any]:
        amounts: dict[str, Any] = self._tres(row[tres], f"{where}: {tres}")
        if (count := _count(row[jobs])) is not None:
            amounts["jobs"] = count
        for column, key in (("GrpTRESRunMins", "processor_minutes"), ("GrpTRESMins", "budget")):
            minutes = self._tres(row[column], f"{where}: {column}", minutes=True)
            if "processors" in minutes:
                amounts[key] = float(minutes["processors"])
        wall = values.minutes_text(row["GrpWall"])
        if wall is not None and math.isfinite(wall):
            amounts["wall_minutes"] = wall / 60.0
        return amounts

    def _single(self, row: Mapping[str, str], where: str) -> dict[str, Any]:
        """Of one job."""
        largest: dict[str, Any] = self._tres(row["MaxTRES"], f"{where}: MaxTRES")
        minutes = self._tres(row["MaxTRESMins"], f"{where}: MaxTRESMins", minutes=True)
        if "processors" in minutes:
            largest["processor_minutes"] = float(minutes["processors"])
        walltime = values.minutes_text(row["MaxWall"])
        if walltime and math.isfinite(walltime):
            largest["walltime"] = walltime
        if row["MaxTRESPerNode"] and row["MaxTRESPerNode"] != NONE:
            self._notes.add(f"{where}: MaxTRESPerNode={row['MaxTRESPerNode']} is not carried over")
        return {"largest": largest} if largest else {}

    def _tres(self, text: str, where: str, *, minutes: bool = False) -> dict[str, Any]:
        """``cpu=8,mem=4G,gres/gpu=2``; of ``minutes`` only the minutes of processors."""
        found: dict[str, Any] = {}
        for item in filter(None, text.split(",")):
            name, _, amount = item.partition("=")
            if amount.strip() == NONE:
                continue
            size = _SIZE.fullmatch(amount)
            ours = _TRES.get(name.lower())
            if (
                size is None
                or (minutes and ours != "processors")
                or (ours is None and not name.startswith("gres/"))
            ):
                self._notes.add(f"{where}: {item} is not carried over")
            elif ours == "memory":
                found["memory"] = float(size[1]) * _GIB[size[2].upper()]
            elif ours is not None:
                found[ours] = int(float(size[1]) * _thousands(size[2]))
            else:
                found.setdefault("resources", {})[name.removeprefix("gres/")] = float(size[1]) * _thousands(
                    size[2]
                )
        return found


def _thousands(unit: str) -> float:
    return 1024.0 ** " KMGTP".index(unit.upper() or " ")


def _count(text: str) -> int | None:
    """A number from 0 on; None for no limit, and for what is none."""
    found = values.number(text)
    return None if found is None or math.isinf(found) or found < 0 else int(found)
