"""Maui's policy: ``maui.cfg``.

After the Maui administrator's guide, chapters "Job Prioritization", "Fairshare", "Throttling Policies",
"QOS", "Backfill" and "Standing Reservations", and its appendix F.

Maui adds points without bounds; here a factor is between 0 and 1 and its weight is what it is worth at 1:

- a minute of waiting is worth ``SERVICEWEIGHT x QUEUETIMEWEIGHT`` points, up to :data:`OLDEST`;
- a percent off a fair-share target ``FSWEIGHT x FS...WEIGHT`` points; the factor moves by 1/200 for each;
- an overtaking ``SERVICEWEIGHT x BYPASSWEIGHT`` points, up to :data:`BYPASSED`;
- a priority of a class or QOS is divided by the largest one, by which its weight is multiplied.

Fair share is of one kind of names: accounts, else groups, else users, whichever has targets. Users' targets
hold for jobs that name no account, which is how it is where only users have any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headway_adapters.site_import.found import Imported, Line, queues_of, readable, shown
from headway_adapters.site_import.maui_reservations import carry_reservations

#: The wait in minutes, and the overtakings, from which on a job does not come forward any more.
OLDEST = 100 * 1440
BYPASSED = 1000
#: No weight of an option is larger.
_MOST = 1e12

_PARAMETER = re.compile(r"([A-Za-z0-9_]+)(?:\[([^\]]*)\])?\s*(.*)")
_ATTRIBUTE = re.compile(r"([A-Za-z0-9_.]+(?:\[[^\]]*\])?)([+-]?=)(\"[^\"]*\"|\S+)")
#: Which parameter configures which credential, and headway's name of that credential.
_CREDENTIALS = {
    "USERCFG": "user", "GROUPCFG": "group", "ACCOUNTCFG": "account", "CLASSCFG": "pool", "QOSCFG": "qos",
}  # fmt: skip
_LIMITS = {
    "MAXJOB": "jobs",
    "MAXPROC": "processors",
    "MAXNODE": "nodes",
    "MAXPS": "processor_minutes",
    "MAXMEM": "memory",
}
_LARGEST = {"MAX.PROC": "processors", "MAX.NODE": "nodes", "MAX.WCLIMIT": "walltime"}
_PER = {"USER": "user", "GROUP": "group", "ACCOUNT": "account", "CLASS": "pool", "QOS": "qos"}
#: Weights that are carried over; others are listed if they are not 0.
_WEIGHTS = frozenset({
    "SERVICEWEIGHT", "QUEUETIMEWEIGHT", "BYPASSWEIGHT", "FSWEIGHT", "FSUSERWEIGHT", "FSGROUPWEIGHT",
    "FSACCOUNTWEIGHT", "CREDWEIGHT", "CLASSWEIGHT", "QOSWEIGHT", "USERWEIGHT", "GROUPWEIGHT", "ACCOUNTWEIGHT",
    "XFACTORWEIGHT", "RESWEIGHT", "PROCWEIGHT", "NODEWEIGHT", "MEMWEIGHT",
})  # fmt: skip
#: Other names that Maui's guide has for weights.
_ALIASES = {
    "UFSWEIGHT": "FSUSERWEIGHT", "GFSWEIGHT": "FSGROUPWEIGHT", "AFSWEIGHT": "FSACCOUNTWEIGHT",
    "QFSWEIGHT": "FSQOSWEIGHT", "CFSWEIGHT": "FSCLASSWEIGHT",
}  # fmt: skip
#: Maui's own, where it is told nothing.
_DEFAULTS = {
    "SERVICEWEIGHT": 1.0, "QUEUETIMEWEIGHT": 1.0, "FSWEIGHT": 1.0, "CREDWEIGHT": 1.0, "RESWEIGHT": 1.0,
    "QOSWEIGHT": 1.0,
}  # fmt: skip
_BOUNDS = {"+": "floor", "-": "ceiling", "^": "cap"}
_KNOWN = frozenset({
    "FSPOLICY", "FSINTERVAL", "FSDEPTH", "FSDECAY", "BACKFILLPOLICY", "BACKFILLDEPTH", "RESERVATIONPOLICY",
    "RESERVATIONDEPTH", "NODEALLOCATIONPOLICY", "PREEMPTPOLICY", "PREEMPTIONPOLICY", "SRCFG",
})  # fmt: skip
#: How the server is reached and what it writes down: nothing of which job starts when.
_SERVER = re.compile(
    r"SERVER.*|ADMIN.*|RM(CFG|POLLINTERVAL|TYPE|HOST|PORT|NAME|SERVER|AUTHTYPE|TIMEOUT|NMPORT|NMSERVER|EPORT)|AM(CFG|TYPE)?|"
    r"LOG.*|STAT.*|CP.*|CHECKPOINT.*|USERNAME.*|SIMULATION.*|SIM.*|RMQUERYSIZE|CLIENT.*|NOTIFICATION.*|MAIL.*|"
    r"DEFAULTDOMAIN|TRACE.*|PLOTM?.*|FSSECONDARYGROUPS|JOBPRIOF.*|DISPLAYFLAGS|.*LOGFILE|TOOLSDIR|HOMEDIR|SPOOLDIR"
)
_OFTEN = "is not carried over"


@dataclass
class _Read:
    """What the file says, before anything is made of it."""

    weights: dict[str, tuple[float, Line]] = field(default_factory=dict)
    values: dict[str, tuple[str, Line]] = field(default_factory=dict)
    #: What -> name -> attribute -> (value, line).
    of: dict[str, dict[str, dict[str, tuple[str, Line]]]] = field(default_factory=dict)

    def weight(self, name: str) -> float:
        """What it is, or Maui's own."""
        return self.weights[name][0] if name in self.weights else _DEFAULTS.get(name, 0.0)

    def value(self, name: str, default: str = "") -> str:
        """As written."""
        return self.values[name][0] if name in self.values else default


def import_maui(files: Sequence[Sequence[Line]], zone: str | None = None) -> Imported:
    """What the file says; the adapter is PBS's, because Maui's sites have Torque.

    ``zone``: where the server is."""
    found, read = Imported("pbs"), _Read()
    for lines in files:
        said = [line for line in readable(lines, found) if line.text.split("#", 1)[0].strip()]
        if said and not any(_is_known(line) for line in said):
            found.broken(said[0], f"expected lines of maui.cfg, found none, but {shown(said[0].text)}")
            continue
        for line in said:
            _read(line, read, found)
    _forget_refused_classes(read, found)
    carry_reservations(read.of.get("SRCFG", {}), zone, found)
    _fair_share(read, found)
    _priorities(read, found)
    _limits(read, found)
    _preemption(read, found)
    _backfill(read, found)
    queues = [name for name, about in read.of.get("CLASSCFG", {}).items() if name != "DEFAULT" and about]
    found.options.update(queues=queues or ["batch"], flavour="torque")
    if not queues:
        first = next((Line(line.file, 1, "") for lines in files for line in lines), Line("maui.cfg", 1, ""))
        found.leave(first, "no class is named (CLASSCFG[...]): put your queues into cluster.options.queues")
    return found


def _is_known(line: Line) -> bool:
    """Whether the line says something that Maui knows."""
    match = _PARAMETER.fullmatch(line.text.split("#", 1)[0].strip())
    name = match[1].upper() if match is not None and not match[3].startswith((":", "=")) else ""
    return (
        name in (*_CREDENTIALS, "SRCFG", *_KNOWN, *_WEIGHTS, *_ALIASES)
        or bool(name and _SERVER.fullmatch(name))
    )  # fmt: skip


def _forget_refused_classes(read: _Read, found: Imported) -> None:
    """Drop classes of which the adapter does not take the name, with a remark."""
    classes = read.of.get("CLASSCFG", {})
    lines = {
        name: min((line for _, line in about.values()), key=lambda line: line.number)
        for name, about in classes.items()
        if name != "DEFAULT" and about
    }
    for name in lines.keys() - set(queues_of(lines, found)):
        del classes[name]


def _read(line: Line, read: _Read, found: Imported) -> None:
    text = line.text.split("#", 1)[0].strip()
    if not text:
        return
    match = _PARAMETER.fullmatch(text)
    if match is None:
        found.broken(line, f"expected PARAMETER VALUE, found {shown(text)}")
        return
    name, index, value = match[1].upper(), match[2], match[3].strip()
    name = _ALIASES.get(name, name)
    if name in _CREDENTIALS or name == "SRCFG":
        _read_of(name, index, value, line, read, found)
    elif name.endswith("WEIGHT"):
        number = _number(value, line, name, found, least=-1e12)
        if number is not None:
            read.weights[name] = (number, line)
            if name not in _WEIGHTS and number:
                found.leave(line, f"{name} {value} {_OFTEN}: no such factor")
    elif not value:
        found.broken(line, f"{name}: expected a value, found none")
    elif name in _KNOWN:
        if index not in (None, "", "0", "ALL", "DEFAULT"):
            found.leave(line, f"{name}[{index}] {_OFTEN}: headway applies it to all users")
        else:
            read.values[name] = (value, line)
    elif _SERVER.fullmatch(name) is None:
        found.leave(line, f"{text if len(text) < 100 else name} {_OFTEN}")


def _read_of(name: str, index: str | None, value: str, line: Line, read: _Read, found: Imported) -> None:
    if not index:
        found.broken(line, f"{name}: expected {name}[NAME] ATTRIBUTE=VALUE, found {shown(line.text)}")
        return
    rest = _ATTRIBUTE.sub("", value).strip()
    if rest or not value:
        found.broken(line, f"{name}[{index}]: expected ATTRIBUTE=VALUE, found {shown(rest or value)}")
    about = read.of.setdefault(name, {}).setdefault(index, {})
    for key, _, text in _ATTRIBUTE.findall(value):
        about[key.upper()] = (text.strip('"'), line)


def _number(text: str, line: Line, what: str, found: Imported, least: float = 0.0) -> float | None:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number < 1e12:
        found.broken(
            line, f"{what}: expected a number{' from 0 on' if not least else ''}, found {shown(text)}"
        )
        return None
    return number


def seconds(text: str) -> float | None:
    """Of ``DD:HH:MM:SS`` and its ends; None for anything else."""
    parts = text.split(":")
    if not 1 <= len(parts) <= 4 or not all(part.isdecimal() and len(part) < 10 for part in parts):
        return None
    units = (1, 60, 3600, 86400)
    return float(sum(int(part) * unit for part, unit in zip(reversed(parts), units, strict=False)))


# ---------------------------------------------------------------------- fair share and priorities


def _shared(read: _Read) -> str:
    """Whose fair share it is: of accounts, groups or users, the first that have targets and a weight."""
    for kind in ("ACCOUNT", "GROUP", "USER"):
        has_target = any("FSTARGET" in about for about in read.of.get(f"{kind}CFG", {}).values())
        if has_target and read.weight("FSWEIGHT") * read.weight(f"FS{kind}WEIGHT"):
            return kind
    return ""


def _fair_share(read: _Read, found: Imported) -> None:
    targets = _targets(read)
    policy, line = read.values.get("FSPOLICY", ("", None))
    if policy.upper() in ("", "NONE", "[NONE]"):
        for who in targets.values():
            for text, at in who.values():
                found.leave(at, f"FSTARGET={text} {_OFTEN}: FSPOLICY is not set, so Maui has no fair share")
        return
    kind = _shared(read)
    _leave_other_targets(targets, kind, found)
    if line is not None and policy.upper().rstrip("%") not in ("DEDICATEDPS", "PSDEDICATED"):
        found.leave(line, f"FSPOLICY {policy}: headway counts dedicated processor-seconds (DEDICATEDPS)")
    if not kind:
        return
    options = _windows(read, found)
    named: dict[str, dict[str, Any]] = {}
    for name, (text, at) in targets[kind].items():
        about = _target(text, at, found)
        if about is not None and name != "DEFAULT":
            named[name] = about
    if "DEFAULT" in targets[kind]:
        text, at = targets[kind]["DEFAULT"]
        found.leave(
            at,
            f"{kind}CFG[DEFAULT] FSTARGET={text} {_OFTEN}: "
            + ("in headway, a name without a target gets its part of the rest, by shares" if named
               else "no name has a target, so fair share is left out altogether (FSPOLICY, FSWEIGHT, "
               f"FS{kind}WEIGHT)"),
        )  # fmt: skip
    if kind == "USER":
        users = {name: {**about, "default": True} for name, about in named.items()}
        options["accounts"] = {"everybody": {"users": users}}
    else:
        options["accounts"] = named
    if named:
        found.plugins["windows"] = options


def _targets(read: _Read) -> dict[str, dict[str, tuple[str, Line]]]:
    """The targets that are stated, by kind of name and name."""
    return {
        kind: {
            who: about["FSTARGET"]
            for who, about in read.of.get(f"{kind}CFG", {}).items()
            if "FSTARGET" in about
        }
        for kind in ("ACCOUNT", "GROUP", "USER", "CLASS", "QOS")
    }


def _leave_other_targets(targets: dict[str, dict[str, tuple[str, Line]]], kind: str, found: Imported) -> None:
    """Tell of the targets of kinds of names of which fair share is not; ``kind``: of which it is."""
    here = kind.lower() + "s" if kind else "names whose weight is not 0"
    for other, who in targets.items():
        if other == kind:
            continue
        for name, (text, at) in who.items():
            said = f"{other}CFG[{name}] FSTARGET={text} {_OFTEN}: fair share is of {here} here"
            found.leave(at, said)


def _windows(read: _Read, found: Imported) -> dict[str, Any]:
    """How long usage counts, and how much less from window to window."""
    options: dict[str, Any] = {}
    interval = seconds(read.value("FSINTERVAL", "24:00:00"))
    if interval:
        options["interval"] = interval
    else:
        found.broken(
            read.values["FSINTERVAL"][1],
            f"FSINTERVAL: expected [[DD:]HH:]MM:SS, found {shown(read.value('FSINTERVAL'))}",
        )
    for name, key, top in (("FSDEPTH", "depth", 1000.0), ("FSDECAY", "decay", 1.0)):
        if name in read.values:
            text, at = read.values[name]
            number = _number(text, at, name, found)
            if number is not None and 0 < number <= top:
                options[key] = int(number) if key == "depth" else number
            elif number is not None:
                found.broken(at, f"{name}: expected more than 0 and at most {top:g}, found {shown(text)}")
    return options


def _target(text: str, line: Line, found: Imported) -> dict[str, Any] | None:
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)(%?)([-+^]?)(%?)", text)
    if match is None or float(match[1]) > 100:
        found.broken(line, f"FSTARGET: expected percent such as 25.0, 10.0- or 5.0+, found {shown(text)}")
        return None
    about: dict[str, Any] = {"target": float(match[1])}
    if match[3]:
        about["bound"] = _BOUNDS[match[3]]
    return about


def _priorities(read: _Read, found: Imported) -> None:
    weights: dict[str, float] = {}
    options: dict[str, Any] = {"weights": weights, "max_age": OLDEST * 60}
    _service(read, options, found)
    if "windows" in found.plugins:
        weights["fairshare"] = 200 * read.weight("FSWEIGHT") * read.weight(f"FS{_shared(read)}WEIGHT")
    for name in ("PROCWEIGHT", "NODEWEIGHT", "MEMWEIGHT"):
        if read.weight("RESWEIGHT") and read.weight(name):
            found.leave(read.weights[name][1], f"{name}: in headway, the factor is a share of the machine, "
                                               "so the weight is Maui's times the machine's size "
                                               "(resource:processors, size, resource:memory)")  # fmt: skip
    for kind, factor, table in (("CLASS", "pool", "pools"), ("QOS", "qos", "qos")):
        weight = read.weight("CREDWEIGHT") * read.weight(f"{kind}WEIGHT")
        priorities = _priorities_of(f"{kind}CFG", read, found)
        if weight and priorities:
            options[table] = priorities
            weights[factor] = weight * max(priorities.values())
        elif priorities:
            _tell_idle(f"{kind}CFG", read, found)
    for kind in ("USER", "GROUP", "ACCOUNT"):
        _credentials(kind, read, weights, found)
    for name in [name for name, weight in weights.items() if not weight]:
        del weights[name]
    _scale(weights, read, found)
    if weights:
        found.plugins["multifactor"] = options


def _service(read: _Read, options: dict[str, Any], found: Imported) -> None:
    """Maui's service factors: how long a job waits, and how often it was overtaken."""
    wait = read.weight("SERVICEWEIGHT") * read.weight("QUEUETIMEWEIGHT")
    if wait:
        options["weights"]["age"] = wait * OLDEST
    bypass = read.weight("SERVICEWEIGHT") * read.weight("BYPASSWEIGHT")
    if bypass:
        options["weights"]["bypass"] = bypass * BYPASSED
        options["max_bypass"] = BYPASSED
    if read.weight("SERVICEWEIGHT") and read.weight("XFACTORWEIGHT"):
        found.leave(
            read.weights["XFACTORWEIGHT"][1],
            "XFACTORWEIGHT: in headway, the factor expansion is 1 - 1/X instead of X, so choose its weight",
        )


def _scale(weights: dict[str, float], read: _Read, found: Imported) -> None:
    """Divide all weights so that none is above the largest that multifactor takes."""
    largest = max(map(abs, weights.values()), default=0.0)
    if largest > _MOST:
        divisor = largest / _MOST
        # Rounding is not to take the largest above it again.
        weights.update({name: max(-_MOST, min(_MOST, w / divisor)) for name, w in weights.items()})
        line = next(line for _, line in read.weights.values())
        found.leave(line, f"all weights are divided by {divisor:g}, so that none is above {_MOST:g}")


def _priorities_of(what: str, read: _Read, found: Imported) -> dict[str, float]:
    priorities = {}
    for name, about in read.of.get(what, {}).items():
        if "PRIORITY" not in about:
            continue
        text, line = about["PRIORITY"]
        number = _number(text, line, f"{what}[{name}] PRIORITY", found, least=-1e12)
        if number is not None and number < 0:
            found.leave(
                line,
                f"{what}[{name}] PRIORITY={text}: in headway, priorities begin at 0; give all other names "
                "more",
            )
        elif number and name == "DEFAULT":
            found.leave(line, f"{what}[DEFAULT] PRIORITY={text} {_OFTEN}")
        elif number:
            priorities[name] = number
    return priorities


def _tell_idle(what: str, read: _Read, found: Imported) -> None:
    for name, about in read.of.get(what, {}).items():
        if "PRIORITY" in about:
            found.leave(
                about["PRIORITY"][1], f"{what}[{name}] PRIORITY: its weight is 0, so it has no effect"
            )


def _credentials(kind: str, read: _Read, weights: dict[str, float], found: Imported) -> None:
    """Priorities of users, groups and accounts: the priorities of the tree of shares, if it consists of
    these."""
    what = f"{kind}CFG"
    priorities = _priorities_of(what, read, found)
    weight = read.weight("CREDWEIGHT") * read.weight(f"{kind}WEIGHT")
    if not priorities:
        return
    if not weight:
        _tell_idle(what, read, found)
        return
    tree = found.plugins.get("windows", {}).get("accounts", {})
    if kind == "USER":
        tree = tree.get("everybody", {}).get("users", {}) if set(tree) == {"everybody"} else {}
    for name, number in priorities.items():
        if name in tree:
            tree[name]["priority"] = number
            weights["association"] = max(weights.get("association", 0.0), weight * number)
        else:
            found.leave(read.of[what][name]["PRIORITY"][1], f"{what}[{name}] "
                                                            f"PRIORITY={number:g} {_OFTEN}: only names with "
                                                            "a target of fair share have a priority (or "
                                                            "list the name in the accounts)")  # fmt: skip


# ---------------------------------------------------------------------- limits, preemption, backfill


def _limits(read: _Read, found: Imported) -> None:
    of: dict[str, dict[str, dict[str, Any]]] = {}
    for what, dimension in _CREDENTIALS.items():
        for name, about in read.of.get(what, {}).items():
            for key, (text, line) in about.items():
                _limit(what, dimension, name, key, text, line, of, found)
    if of:
        found.plugins["limits"] = {"of": of}


def _limit(
    what: str, dimension: str, name: str, key: str, text: str, line: Line,
    of: dict[str, dict[str, dict[str, Any]]], found: Imported,
) -> None:  # fmt: skip
    if key in ("FSTARGET", "PRIORITY", "FLAGS", "QFLAGS"):
        return
    if "+" in name:
        found.leave(line, f"{what}[{name}] {key}: a name with a plus sign {_OFTEN}")
        return
    who = "*" if name == "DEFAULT" else name
    base, per = key, ""
    if (match := re.fullmatch(r"(MAX\w+?)(?:PER(\w+)|\[(\w+)\])", key)) is not None:
        base, per = match[1], _PER.get(match[2] or match[3], "")
        if not per or per == dimension:
            found.leave(line, f"{what}[{name}] {key}={text} {_OFTEN}")
            return
    if base in _LIMITS:
        amount = _hard(what, name, key, text, line, found)
        if amount is None:
            return
        if base == "MAXPS":
            amount /= 60
        elif base == "MAXMEM":
            amount /= 1024
        table, names = (f"{per}+{dimension}", f"*+{who}") if per else (dimension, who)
        value = int(amount) if base in ("MAXJOB", "MAXPROC", "MAXNODE") else amount
        of.setdefault(table, {}).setdefault(names, {})[_LIMITS[base]] = value
    elif base in _LARGEST and not per:
        amount = seconds(text) if base == "MAX.WCLIMIT" else _hard(what, name, key, text, line, found)
        if not amount:
            found.broken(
                line,
                f"{what}[{name}] {key}: expected a number above 0 or [[DD:]HH:]MM:SS, found {shown(text)}",
            )
            return
        largest = of.setdefault(dimension, {}).setdefault(who, {}).setdefault("largest", {})
        largest[_LARGEST[base]] = amount if base == "MAX.WCLIMIT" else int(amount)
    else:
        found.leave(line, f"{what}[{name}] {key}={text} {_OFTEN}")


def _hard(what: str, name: str, key: str, text: str, line: Line, found: Imported) -> float | None:
    """The hard one of ``SOFT,HARD``."""
    soft, comma, hard = text.partition(",")
    amount = _number(hard if comma else soft, line, f"{what}[{name}] {key}", found)
    if comma and amount is not None and soft != hard:
        found.leave(line, f"{what}[{name}] {key}={text}: only the hard limit is carried over")
    return amount


@dataclass
class _Preemption:
    """The names that are flagged, by kind of name, and where."""

    takers: dict[str, list[str]] = field(default_factory=dict)
    givers: dict[str, list[str]] = field(default_factory=dict)
    #: Kind of name, and name -> the last line that flags it.
    lines: dict[tuple[str, str], Line] = field(default_factory=dict)

    def flag(self, flag: str, dimension: str, name: str, line: Line) -> None:
        table = self.takers if flag == "PREEMPTOR" else self.givers
        table.setdefault(dimension, []).append(name)
        self.lines[dimension, name] = line


def _preemption_flags(read: _Read, found: Imported) -> _Preemption:
    """The names with the flag PREEMPTOR or PREEMPTEE; other flags are remarked."""
    flagged = _Preemption()
    for what, dimension in _CREDENTIALS.items():
        for name, about in read.of.get(what, {}).items():
            for key in ("FLAGS", "QFLAGS"):
                if key not in about:
                    continue
                text, line = about[key]
                for flag in re.split(r"[:,|]", text.upper()):
                    if flag in ("PREEMPTOR", "PREEMPTEE"):
                        flagged.flag(flag, dimension, name, line)
                    else:
                        found.leave(line, f"{what}[{name}] {key}={flag} {_OFTEN}")
    return flagged


def _preemption(read: _Read, found: Imported) -> None:
    flagged = _preemption_flags(read, found)
    policy, said = read.values.get("PREEMPTPOLICY", read.values.get("PREEMPTIONPOLICY", ("REQUEUE", None)))
    how = {"REQUEUE": "requeue", "CANCEL": "cancel"}.get(policy.upper())
    if how is None:
        # Where nothing is said, it is requeue.
        assert said is not None
        found.leave(said, f"PREEMPTPOLICY {policy} {_OFTEN}: requeue and cancel are")
        return
    rules = []
    for dimension, names in flagged.takers.items():
        for other, others in flagged.givers.items():
            if other == dimension:
                rules.append({"who": {dimension: names}, "whom": {other: others}, "how": how})
                continue
            for name in others:
                found.leave(
                    flagged.lines[other, name],
                    f"PREEMPTEE of {other} {name} for {dimension} {', '.join(names)}: a job that is in both "
                    "could take the places of its own kind, so write the rule by hand",
                )
    if rules:
        found.plugins["preemption"] = {"rules": rules}


def _backfill(read: _Read, found: Imported) -> None:
    policy, line = read.values.get("BACKFILLPOLICY", ("FIRSTFIT", None))
    reservations, at = read.values.get("RESERVATIONPOLICY", ("CURRENTHIGHEST", None))
    allocation, place = read.values.get("NODEALLOCATIONPOLICY", ("LASTAVAILABLE", None))
    policy, reservations, allocation = policy.upper(), reservations.upper(), allocation.upper()
    options: dict[str, Any] = {}
    for name, key in (("RESERVATIONDEPTH", "bookings"), ("BACKFILLDEPTH", "queue_depth")):
        if name in read.values:
            text, where = read.values[name]
            number = _number(text, where, name, found)
            if number:
                options[key] = int(number)
    if policy == "NONE":
        found.plugins["strict"] = {}
    elif reservations == "NEVER":
        found.plugins["greedy"] = {}
    else:
        if policy != "FIRSTFIT" and line is not None:
            found.leave(
                line,
                f"BACKFILLPOLICY {policy}: jobs are backfilled in the order of their priorities (FIRSTFIT)",
            )
        if reservations == "HIGHEST" and at is not None:
            found.leave(
                at,
                "RESERVATIONPOLICY HIGHEST: in headway, a booked job may lose its booking to a job with a "
                "higher priority",
            )
        elif reservations != "CURRENTHIGHEST" and at is not None:
            found.leave(
                at,
                f"RESERVATIONPOLICY {reservations}: expected CURRENTHIGHEST, HIGHEST or NEVER; the first "
                "jobs are booked",
            )
        found.plugins["easy"] = options
    if allocation == "MINRESOURCE":
        found.plugins["best-fit"] = {}
    else:
        found.plugins["first-fit"] = {}
        if place is not None and allocation not in ("FIRSTAVAILABLE", "LASTAVAILABLE"):
            found.leave(
                place, f"NODEALLOCATIONPOLICY {allocation}: nodes are taken in their order (first-fit)"
            )
