"""PBS's policy: ``sched_config``, ``resource_group``, ``holidays``, ``dedicated_time``, and what
``qmgr -c "print server"`` prints.

Each file is known by what is in it, and an empty or commented one says nothing. After the PBS Professional
administrator's guide, chapter "Scheduling", and the comments in the files that OpenPBS installs.

Decisions on what is left open:

- PBS compares usage over shares level by level, as ``fair-tree`` does; its decay by a factor at intervals
  becomes the half-life with the same decay over an interval.
- An entity of fair share that is a user becomes a user of the group above it, and that group its default
  account.
- Without ``strict_ordering`` PBS runs whatever fits, and books only a starving job: ``greedy``; with
  ``help_starving_jobs`` that is ``easy``, which books before a job starves.
- Of values that differ in prime time and non-prime time, the values of prime time hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headway_adapters.site_import.found import (
    Account,
    Imported,
    Line,
    readable,
    shown,
    tree_of,
    whole,
)  # fmt: skip
from headway_adapters.site_import.maui import seconds
from headway_adapters.site_import.pbs_attributes import without_counterpart
from headway_adapters.site_import.pbs_limits import limits_of
from headway_adapters.site_import.pbs_qmgr import (
    SCHEDULER,
    Objects,
    is_command,
    is_listed,
    read_commands,
    read_lists,
)
from headway_adapters.site_import.pbs_times import DAY, DEDICATED, Times, carry, read_dedicated, read_holidays

_CONFIG = re.compile(r'([a-z_]+)\s*:\s*("[^"]*"|[^\s#]+)\s*([A-Za-z_]*)\s*(?:#.*)?')
_GROUP = re.compile(r"(\S+)\s+(\d+)\s+(\S+)\s+(-?[0-9.]+)(?:\s.*)?")
_ORDERS = {
    ("ncpus", "HIGH"): "largest-first", ("ncpus", "LOW"): "smallest-first",
    ("walltime", "HIGH"): "longest-first", ("walltime", "LOW"): "shortest-first",
}  # fmt: skip
#: What says nothing of which job starts when, or stays PBS's own.
_OWN = re.compile(
    r"log_.*|resources|sched_preempt_enforce_resumption|dedicated_prefix|primetime_prefix|nonprimetime_prefix|"
    r"provision_policy|server_dyn_res|mom_resources|fairshare_decay_.*|fairshare_(entity|usage_res)|unknown_shares|"
    r"sync_time|sort_queues|max_starve|preempt_(prio|queue_prio|order|sort|starving)"
)
_HANDLED = frozenset({
    "round_robin", "by_queue", "strict_ordering", "help_starving_jobs", "backfill", "fair_share",
    "half_life", "preemptive_sched", "job_sort_key",
})  # fmt: skip
#: PBS's own settings of preemption, where the files set none.
_PREEMPT = {"preempt_order": "SCR", "preempt_queue_prio": "150", "preempt_prio": "express_queue, normal_jobs"}
#: How nodes are chosen.
_PLACING = ("node_sort_key", "smp_cluster_dist", "load_balancing")
_PRIME = re.compile(r"prime_.*|backfill_prime")
_TRUE, _FALSE = ("true", "yes", "t", "y", "1"), ("false", "no", "f", "n", "0")


@dataclass
class _Read:
    """What the files say, before anything is made of it."""

    #: Key of sched_config, lower case -> value and line.
    config: dict[str, tuple[str, Line]] = field(default_factory=dict)
    groups: list[tuple[str, str, float, Line]] = field(default_factory=list)
    #: What qmgr says.
    objects: Objects = field(default_factory=Objects)
    times: Times = field(default_factory=Times)

    def of_all(self, key: str) -> tuple[str, Line] | None:
        """An attribute of the server, else of the scheduler."""
        return self.objects.attribute("", key) or self.objects.attribute(SCHEDULER, key)

    def value(self, key: str, default: str = "") -> str:
        """Of sched_config."""
        return self.config[key][0] if key in self.config else default


def import_pbs(files: Sequence[Sequence[Line]], zone: str | None = None) -> Imported:
    """What the files say; ``docs/operators/moving.md`` tells how it is written down.

    ``zone``: where the server is."""
    found, read = Imported("pbs"), _Read()
    for lines in files:
        said = [
            line for line in readable(lines, found) if line.text.strip() and line.text.lstrip()[0] not in "#*"
        ]
        if said:
            _read(said, read, found)
    read.objects.forget_refused(found)
    for line, why in without_counterpart(read.objects):
        found.leave(line, why)
    queues = {name: line for name, line in read.objects.queues.items() if read.objects.is_execution(name)}
    others = carry(read.times, queues, _prefixes(read), zone, found)
    _fair_share(read, found)
    _order(read, found)
    limits = limits_of(read.objects, found)
    if limits:
        found.plugins["limits"] = {"of": limits}
    _preemption(read, found)
    _policy(read, found)
    found.plugins["first-fit"] = {}
    queues = {name: line for name, line in queues.items() if name not in others}
    found.options["queues"] = list(queues) or ["workq"]
    if not queues:
        first = next(
            (Line(line.file, 1, "") for lines in files for line in lines), Line("sched_config", 1, "")
        )
        found.leave(
            first, 'no queue was found (qmgr -c "print server"): put yours into cluster.options.queues'
        )
    return found


# ---------------------------------------------------------------------- reading


def _read(lines: Sequence[Line], read: _Read, found: Imported) -> None:
    texts = [line.text.strip() for line in lines]
    counts = {
        _read_config: sum(_CONFIG.fullmatch(text) is not None for text in texts),
        _read_groups: sum(_GROUP.fullmatch(text) is not None for text in texts),
        _read_commands: sum(map(is_command, texts)),
        _read_lists: sum(map(is_listed, texts)),
        _read_dedicated: sum(DEDICATED.match(text) is not None for text in texts),
    }
    if any(text.upper().startswith("YEAR") for text in texts) and not counts[_read_config]:
        read_holidays(lines, read.times, found)
        return
    kind, number = max(counts.items(), key=lambda item: item[1])
    if not number and any(DAY.fullmatch(text) for text in texts):
        read_holidays(lines, read.times, found)
    elif not number:
        found.broken(lines[0], "expected lines of sched_config, resource_group, holidays, dedicated_time or "
                     f'`qmgr -c "print server"`, found {shown(lines[0].text)}')  # fmt: skip
    else:
        kind(lines, read, found)


def _read_config(lines: Sequence[Line], read: _Read, found: Imported) -> None:
    """Lines of ``sched_config``: ``key: value [prime | non_prime | all]``."""
    keys = {line.text.partition(":")[0].strip() for line in lines}
    if not any(
        key in _HANDLED or key in _PLACING or _OWN.fullmatch(key) or _PRIME.fullmatch(key) for key in keys
    ):
        found.broken(lines[0], f"expected keys of sched_config, found none, but {shown(lines[0].text)}")
        return
    for line in lines:
        match = _CONFIG.fullmatch(line.text.strip())
        if match is None:
            found.broken(line, f"expected KEY: VALUE [prime|non_prime|all], found {shown(line.text)}")
            continue
        key, value, when = match[1], match[2].strip('"'), match[3].lower()
        if when not in ("", "prime", "non_prime", "all"):
            found.broken(line, f"{key}: expected prime, non_prime or all, found {shown(match[3])}")
        elif key in read.config:
            if read.config[key][0].lower() != value.lower():
                found.leave(
                    line, f"{key}: {value} {when}: the earlier value holds at all times".replace(" :", ":")
                )
        else:
            read.config[key] = (value, line)


def _read_groups(lines: Sequence[Line], read: _Read, found: Imported) -> None:
    for line in lines:
        match = _GROUP.fullmatch(line.text.strip())
        shares = float(match[4]) if match and re.fullmatch(r"-?\d+(\.\d+)?", match[4]) else -1.0
        if match is None or not 0 <= shares < 1e12:
            found.broken(line, f"expected NAME ID PARENT SHARES, found {shown(line.text)}")
        else:
            read.groups.append((match[1], match[3], shares, line))


def _read_dedicated(lines: Sequence[Line], read: _Read, found: Imported) -> None:
    read_dedicated(lines, read.times, found)


def _read_commands(lines: Sequence[Line], read: _Read, found: Imported) -> None:
    read_commands(lines, read.objects, found)


def _read_lists(lines: Sequence[Line], read: _Read, found: Imported) -> None:
    read_lists(lines, read.objects, found)


def _prefixes(read: _Read) -> dict[str, str]:
    """How the names of queues begin whose jobs run at certain times alone; an empty one means none."""
    defaults = {"dedicated": "ded", "prime": "p_", "nonprime": "np_"}
    return {
        kind: read.value(f"{kind}_prefix" if kind == "dedicated" else f"{kind}time_prefix", prefix) or "\0"
        for kind, prefix in defaults.items()
    }


def _is_on(read: _Read, key: str, found: Imported, default: bool = False) -> bool:
    if key not in read.config:
        return default
    text, line = read.config[key]
    if text.lower() not in (*_TRUE, *_FALSE):
        found.broken(line, f"{key}: expected true or false, found {shown(text)}")
        return default
    return text.lower() in _TRUE


# ---------------------------------------------------------------------- what it means


def _fair_share(read: _Read, found: Imported) -> None:
    if not _is_on(read, "fair_share", found):
        if read.groups and "fair_share" in read.config:
            found.leave(
                read.config["fair_share"][1],
                "fair_share is off, so the shares of resource_group are left out",
            )
            return
        if not read.groups:
            return
    options: dict[str, Any] = {}
    tree = tree_of(list(_accounts(read, found).values()), found)
    if tree:
        options["accounts"] = tree
    options["half_life"] = _half_life(read, found)
    usage = read.value("fairshare_usage_res", "cput")
    if usage.replace(" ", "") not in ("ncpus*walltime", "walltime*ncpus"):
        line = read.config.get(
            "fairshare_usage_res", next(iter(read.config.values()), ("", Line("", 0, "")))
        )[1]
        found.leave(line, f"fairshare_usage_res: {usage}: headway counts processors x time (ncpus*walltime)")
    if "unknown_shares" in read.config:
        text, line = read.config["unknown_shares"]
        unknown = whole(text)
        if unknown is not None and unknown < 10**12:
            options["unknown_shares"] = float(unknown)
            found.leave(
                line, f"unknown_shares: {text}: in headway, each unknown account has this many shares"
            )
        else:
            found.broken(line, f"unknown_shares: expected a number, found {shown(text)}")
    found.plugins["fair-tree"] = options
    found.plugins["multifactor"] = {"weights": {"fairshare": 1.0}}


def _accounts(read: _Read, found: Imported) -> dict[str, Account]:
    """The accounts of ``resource_group``, with their users where usage is of users."""
    entity = read.value("fairshare_entity", "euser").lower()
    if entity not in ("euser", "egroup", "account_name"):
        found.leave(
            read.config["fairshare_entity"][1],
            f"fairshare_entity: {entity}: headway counts usage by users in accounts",
        )
        entity = "euser"
    parents = {parent for _, parent, _, _ in read.groups}
    accounts: dict[str, Account] = {}
    for name, parent, shares, line in read.groups:
        if name in parents or entity != "euser":
            accounts.setdefault(name, Account(name, parent, line, {"shares": shares}))
    for name, parent, shares, line in read.groups:
        if name in accounts:
            if accounts[name].line != line:
                found.broken(line, f"{name!r} is there already, in {accounts[name].line.where}")
            continue
        if parent != "root" and parent not in accounts:
            found.broken(line, f"{name!r}: no group is called {parent!r}; it is put at the top")
            parent = "root"
        above = accounts.setdefault(parent, Account(parent, "root", line))
        if name in above.users:
            found.broken(line, f"{name!r} is there already")
        else:
            above.users[name] = {"shares": shares, "default": True}
    return accounts


def _half_life(read: _Read, found: Imported) -> float | None:
    """Seconds after which usage counts half; None: it stays."""
    interval, factor = 86400.0, 0.5
    for key in ("fairshare_decay_time", "half_life"):
        if key in read.config:
            text, line = read.config[key]
            told = seconds(text)
            if not told:
                found.broken(line, f"{key}: expected HH:MM:SS, found {shown(text)}")
            else:
                interval = told
    if "fairshare_decay_factor" in read.config:
        text, line = read.config["fairshare_decay_factor"]
        try:
            factor = float(text)
        except ValueError:
            factor = -1.0
        if not 0 < factor < 1:
            found.broken(
                line, f"fairshare_decay_factor: expected a number between 0 and 1, found {shown(text)}"
            )
            factor = 0.5
    return round(interval * math.log(0.5) / math.log(factor), 3)


def _order(read: _Read, found: Imported) -> None:
    in_turn = _is_on(read, "round_robin", found)
    by_queue = _is_on(read, "by_queue", found, default=True) or in_turn
    priorities: dict[str, int] = {}
    for name, line in read.objects.queues.items():
        told = read.objects.attribute(name, "Priority")
        if told is None:
            continue
        text, line = told
        if re.fullmatch(r"\d{1,9}", text) is not None:
            priorities[name] = int(text)
            if priorities[name] and not read.config:
                found.leave(
                    line, f"queue {name}: Priority = {text}: whether queues are served by it stands in "
                    "sched_config (by_queue), which is not among the files"
                )  # fmt: skip
        else:
            found.leave(line, f"queue {name}: Priority = {text}: priorities begin at 0 here")
    if read.config and any(priorities.values()):
        # What the adapter does by itself, or keeps it from that. Express queues come first in any case.
        least = 0 if by_queue else _express_from(read)
        found.pools = {name: {"tier": tier if tier >= least else 0} for name, tier in priorities.items()}
    if in_turn:
        found.plugins["round-robin"] = {}
    formula = read.objects.attribute("", "job_sort_formula") or read.objects.attribute(
        SCHEDULER, "job_sort_formula"
    )
    if formula is not None:
        found.leave(formula[1], f"job_sort_formula = {formula[0]}: write its parts as weights of multifactor")
    key = read.config.get("job_sort_key")
    if key is not None:
        words = key[0].split()
        order = _ORDERS.get((words[0].lower(), words[-1].upper())) if words else None
        if "multifactor" in found.plugins or order is None:
            found.leave(key[1], f"job_sort_key: {key[0]} is not carried over")
        else:
            found.plugins[order] = {}


def _express_from(read: _Read) -> float:
    """The priority from which on PBS serves a queue before all others, even where jobs are in one order;
    infinite where it has no express queues."""
    if read.value("preemptive_sched", "false").lower() not in _TRUE:
        return math.inf
    text, _ = _preempt(read, "preempt_queue_prio")
    least = whole(text)
    return math.inf if least is None else least


def _preempt(read: _Read, key: str) -> tuple[str, Line]:
    """A setting of preemption and its line, where ``preemptive_sched`` is given: qmgr's comes first."""
    line = read.config["preemptive_sched"][1]
    return read.objects.attribute(SCHEDULER, key) or read.config.get(key, (_PREEMPT[key], line))


def _preemption(read: _Read, found: Imported) -> None:
    if not _is_on(read, "preemptive_sched", found):
        return
    line = read.config["preemptive_sched"][1]
    order, at = _preempt(read, "preempt_order")
    how = next(({"R": "requeue", "D": "cancel"}[letter] for letter in order.upper() if letter in "RD"), None)
    for letter, what in (("S", "suspension is"), ("C", "checkpoint is")):
        if letter in order.upper():
            found.leave(
                at, f"preempt_order {order}: {what} not carried over" + (f"; jobs go by {how}" if how else "")
            )
    if how is None:
        found.leave(at, f"preempt_order {order}: expected R or D, so no job takes another job's place")
    text, at = _preempt(read, "preempt_queue_prio")
    least = whole(text)
    if least is None:
        found.broken(at, f"preempt_queue_prio: expected a number, found {shown(text)}")
        return
    express: list[str] = []
    others: list[str] = []
    for name in filter(read.objects.is_execution, read.objects.queues):
        priority = read.objects.attribute(name, "Priority")
        number = whole(priority[0]) if priority is not None else None
        is_express = number is not None and number >= least
        (express if is_express else others).append(name)
    levels, at = _preempt(read, "preempt_prio")
    for level in re.split(r"[,+\s]+", levels):
        if level not in ("express_queue", "normal_jobs", ""):
            found.leave(at, f"preempt_prio: {level} is not carried over")
    if express and others and how is not None:
        found.plugins["preemption"] = {
            "rules": [{"who": {"pool": express}, "whom": {"pool": others}, "how": how}]
        }
    elif not express:
        found.leave(line, "preemptive_sched: no queue has a priority from preempt_queue_prio on")


def _policy(read: _Read, found: Imported) -> None:
    strict = _is_on(read, "strict_ordering", found)
    starving = _is_on(read, "help_starving_jobs", found)
    depth = read.objects.attribute("", "backfill_depth") or read.objects.attribute(
        SCHEDULER, "backfill_depth"
    )
    bookings = 1
    if depth is not None:
        number = whole(depth[0])
        if number is not None and number <= 1_000_000:
            bookings = number
        else:
            found.broken(depth[1], f"backfill_depth: expected a number, found {shown(depth[0])}")
    if (strict and bookings and _is_on(read, "backfill", found, default=True)) or (not strict and starving):
        found.plugins["easy"] = {"bookings": max(bookings, 1)} if bookings > 1 else {}
        if not strict:
            line = read.config["help_starving_jobs"][1]
            found.leave(
                line, "help_starving_jobs: the first job is booked at once, not when it starves (max_starve)"
            )
    else:
        found.plugins["strict" if strict else "greedy"] = {}
    for key, (text, line) in read.config.items():
        if key in _HANDLED or _OWN.fullmatch(key) is not None:
            continue
        if _PRIME.fullmatch(key) is not None and text.lower() in _FALSE:
            continue
        if key in _PLACING and text.lower() in (
            "sort_priority high", "pack", "false",
        ):  # fmt: skip
            continue
        found.leave(line, f"{key}: {text} is not carried over")
