"""What accounts, users and QOS have used up until now: ``scontrol -o show assoc_mgr flags=assoc,qos``.

Each limit stands there with its use in parentheses, ``GrpWall=1000(1.83)`` and
``GrpTRESMins=cpu=2000(3),...``, minutes that decay as usage does. ``sshare`` has no minutes of ``GrpWall``
and nothing of a QOS.
"""

from __future__ import annotations

import re

_ASSOCIATION = re.compile(r"ClusterName=(\S*) Account=(\S*) UserName=([^\s(]*)(?:\(\d+\))? Partition=(\S*)\s")
_QOS = re.compile(r"QOS=(.+?)\(\d+\)\s")
_MINUTES = re.compile(r"\sGrpTRESMins=(?:\S*,)?cpu=[^\s,(]*\(([0-9.]+)\)")
_WALL = re.compile(r"\sGrpWall=[^\s(]*\(([0-9.]+)\)")

#: What limits are of -> whose -> budget or wall_minutes -> minutes.
Spent = dict[str, dict[str, dict[str, float]]]


def read_spent(text: str) -> Spent:
    """Of accounts, associations, QOS and all together, in the words of ``limits``; what is 0 is left out."""
    found: Spent = {}
    for line in text.splitlines():
        if association := _ASSOCIATION.match(line):
            _, account, user, partition = association.groups()
            if partition:
                continue
            kind, name = ("association", f"{account}:{user}") if user else ("account", account)
            if (kind, name) == ("account", "root"):
                kind, name = "all", "*"
        elif qos := _QOS.match(line):
            kind, name = "qos", qos[1]
        else:
            continue
        used = {
            measure: float(match[1])
            for measure, pattern in (("budget", _MINUTES), ("wall_minutes", _WALL))
            if (match := pattern.search(line)) is not None and float(match[1])
        }
        if used:
            found.setdefault(kind, {})[name] = used
    return found
