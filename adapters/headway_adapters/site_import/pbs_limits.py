"""PBS's limits as the plugin ``limits`` has them.

After the PBS Professional administrator's guide, "Managing Resource Usage by Users, Groups, and Projects": a
limit is of one attribute. What is said of a name replaces what that attribute says of all names
(``PBS_GENERIC``), and of no other attribute; limits of the server and of a queue hold both. ``resources_max``
of the server holds for queues that say nothing of that resource. The attributes from before version 10
(``max_user_run``) say the same of all names.
"""

from __future__ import annotations

import re
from typing import Any

from headway_adapters.site_import.found import Imported, Line, shown
from headway_adapters.site_import.maui import seconds
from headway_adapters.site_import.pbs_qmgr import SCHEDULER, Objects

_LIMIT = re.compile(r"\[\s*([ugpo]):([^=\]]+)=([^\]]+)\]")
#: Where PBS puts a limit for each name without a line of its own, and a limit for all together.
_WHO = {"PBS_GENERIC": "*", "PBS_ALL": ""}
_OF = {"u": "user", "g": "group", "p": "account", "o": "all"}
_RES = {"ncpus": "processors", "nodect": "nodes", "mem": "memory"}
_BYTES = {"": 1.0, "b": 1.0, "kb": 2.0**10, "mb": 2.0**20, "gb": 2.0**30, "tb": 2.0**40, "pb": 2.0**50}
#: Attributes of earlier versions -> what they are now.
_EARLIER = {
    "max_running": ("max_run", "o:PBS_ALL"), "max_user_run": ("max_run", "u:PBS_GENERIC"),
    "max_group_run": ("max_run", "g:PBS_GENERIC"), "max_user_res": ("max_run_res", "u:PBS_GENERIC"),
    "max_group_res": ("max_run_res", "g:PBS_GENERIC"),
}  # fmt: skip
#: Amounts that no sum of the plugin is of.
_NO_SUM = re.compile(r"walltime|cput|pcput|pmem|pvmem|vmem|file|nice|place|select")

#: Kind of names -> names -> limits.
Tables = dict[str, dict[str, dict[str, Any]]]


def limits_of(objects: Objects, found: Imported) -> Tables:
    """The option ``of`` of the plugin."""
    of: Tables = {}
    for queue, attributes in objects.said.items():
        if queue == SCHEDULER:
            continue
        for key, values in attributes.items():
            name, _, resource = key.partition(".")
            name, who = _EARLIER.get(name, (name, ""))
            for text, line in values:
                if name in ("max_run", "max_run_res"):
                    _limit(queue, name, resource, f"[{who}={text}]" if who else text, line, of, found)
                elif name == "resources_max":
                    _largest(queue or "*", resource, text, line, of, found)
                elif name.endswith("_soft") and name.startswith("max_"):
                    found.leave(line, f"{key} = {text} is not carried over (max_run and max_run_res are)")
    return of


def _limit(queue: str, name: str, resource: str, text: str, line: Line, of: Tables, found: Imported) -> None:
    if name == "max_run_res" and _NO_SUM.fullmatch(resource):
        found.leave(line, f"{name}.{resource} = {text} is not carried over: headway has no limit on its sum")
        return
    found_any = _LIMIT.findall(text)
    if rest := _LIMIT.sub("", text).strip(" ,"):
        found.broken(line, f"{name}: expected [u:NAME=NUMBER] or the like, found {shown(rest)}")
    elif not found_any and text.strip(" ,"):
        found.broken(line, f"{name}: expected [u:NAME=NUMBER] or the like, found {shown(text)}")
    for letter, who, amount in found_any:
        who = who.strip().strip('"')
        key = "jobs" if name == "max_run" else _RES.get(resource)
        value = amount_of(resource, amount) if name == "max_run_res" else amount_of("", amount)
        if value is None:
            found.broken(line, f"{name}: expected a number, found {shown(amount)}")
            continue
        everybody = letter == "o" or who == "PBS_ALL"
        kind = "all" if everybody else _OF[letter]
        names = "*" if everybody else _WHO.get(who, who)
        if "+" in names:
            found.leave(line, f"{name}: a name with a plus sign is not carried over")
            continue
        if queue:
            kind, names = ("pool", queue) if everybody else (f"{kind}+pool", f"{names}+{queue}")
        amounts = of.setdefault(kind, {}).setdefault(names, {})
        if key is None:
            amounts.setdefault("resources", {})[resource] = value
        else:
            amounts[key] = value if key == "memory" else int(value)


def _largest(queue: str, resource: str, text: str, line: Line, of: Tables, found: Imported) -> None:
    key = "walltime" if resource == "walltime" else _RES.get(resource)
    value = seconds(text) if key == "walltime" else amount_of(resource, text)
    if key is None:
        found.leave(
            line, f"resources_max.{resource} = {text} is not carried over; PBS refuses such jobs itself"
        )
    elif not value:
        found.broken(line, f"resources_max.{resource}: expected an amount, found {shown(text)}")
    else:
        largest = of.setdefault("pool", {}).setdefault(queue, {}).setdefault("largest", {})
        largest[key] = value if key in ("walltime", "memory") else int(value)


def amount_of(resource: str, text: str) -> float | None:
    """A number, of memory in GiB; None for anything else."""
    match = re.fullmatch(r"(\d{1,15})\s*([kmgtp]?[bw]?)", text.strip().lower())
    if match is None or (match[2] and resource != "mem"):
        return None
    if resource != "mem":
        return float(match[1])
    unit, words = match[2].replace("w", "b"), 8.0 if "w" in match[2] else 1.0
    return float(match[1]) * words * _BYTES[unit] / 2**30 if unit in _BYTES else None
