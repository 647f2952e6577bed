"""Maui's standing reservations (``SRCFG``): windows of the plugin ``calendar``.

After the Maui administrator's guide, "Standing Reservations", and its appendix F. Carried over is what keeps
named hosts free by day or by week. A reservation for users is not: jobs enter it by themselves in Maui,
while here they name a reservation of the batch system, and Torque has none. Nor are reservations of so many
tasks on hosts that Maui chooses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headway_adapters.site_import.found import Imported, Line, shown
from headway_adapters.site_import.pbs_times import name_of

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FOR = (
    "USERLIST", "GROUPLIST", "ACCOUNTLIST", "CLASSLIST", "QOSLIST", "JOBATTRLIST", "MAXTIME", "TIMELIMIT",
    "OWNER", "PRIORITY", "CHARGEACCOUNT",
)  # fmt: skip
_READ = frozenset({"PERIOD", "DAYS", "STARTTIME", "ENDTIME", "HOSTLIST", "TASKCOUNT", "RESOURCES", "TPN"})
_TIME = re.compile(r"(?:(?:(\d{1,3}):)?(\d{1,2}):)?(\d{1,2}):(\d{2})|(\d{1,7})")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OFTEN = "is not carried over"
_DAY = 86400

_About = Mapping[str, tuple[str, Line]]


def carry_reservations(of: Mapping[str, _About], zone: str | None, found: Imported) -> None:
    """Write down what can be; the rest is remarked."""
    windows: dict[str, Any] = {}
    for name, about in of.items():
        first = min((line for _, line in about.values()), key=lambda line: line.number, default=None)
        if first is None:
            continue
        why = _obstacle(about)
        if why:
            found.leave(first, f"SRCFG[{name}] {_OFTEN}: {why}")
            continue
        made = _windows(name, about, found)
        if not made:
            continue
        for window in made:
            windows[name_of(name, windows)] = window
        for key, (text, line) in about.items():
            if key == "DEPTH":
                found.leave(
                    line, f"SRCFG[{name}] DEPTH={text}: windows are kept free 30 days before (horizon)"
                )
            elif key not in _READ:
                found.leave(line, f"SRCFG[{name}] {key}={text} {_OFTEN}")
        if zone is None:
            found.leave(
                first,
                f"SRCFG[{name}]: the files name no time zone: UTC is written, set yours as `zone` (--zone)",
            )
    if windows:
        found.plugins["calendar"] = {"zone": zone or "UTC", "windows": windows}


def _obstacle(about: _About) -> str:
    """Why a reservation can not be a window; empty if it can."""
    given = [key for key in _FOR if key in about]
    if given:
        return (
            f"it is for certain users ({', '.join(given)}), and Torque has no reservations that jobs could "
            "name"
        )
    if "HOSTLIST" not in about:
        return "it names no hosts (HOSTLIST)"
    if _hosts(about["HOSTLIST"][0]) is None:
        return (
            f"HOSTLIST={about['HOSTLIST'][0]}: expected names of hosts or ALL; patterns are not carried over"
        )
    if about.get("RESOURCES", ("PROCS:-1",))[0].upper().replace("=", ":") != "PROCS:-1":
        return f"RESOURCES={about['RESOURCES'][0]}: headway keeps whole nodes"
    for key in ("TASKCOUNT", "TPN"):
        text = about.get(key, ("0",))[0]
        if key == "TASKCOUNT" and text == str(len(_hosts(about["HOSTLIST"][0]) or ())):
            continue
        if text != "0":
            return f"{key}={text}: all of the hosts are kept here"
    if about.get("PERIOD", ("DAY",))[0].upper() == "INFINITY":
        return "it never ends; take the nodes out of the queues"
    return ""


def _hosts(text: str) -> list[str] | None:
    """Names of hosts, none for all; None where there are patterns."""
    if text.upper() == "ALL":
        return []
    names = [name for name in re.split(r"[,:\s]+", text) if name]
    return names if names and all(_HOST.fullmatch(name) for name in names) else None


def _windows(name: str, about: _About, found: Imported) -> list[dict[str, Any]]:
    """What it is here; none: it cannot be carried over.

    One over several days of a week is a window for each of the times of day that they have: what lasts so
    many seconds would end at another time of day in the week in which the clock changes."""
    period, line = about.get("PERIOD", ("DAY", None))
    if period.upper() not in ("DAY", "WEEK"):
        found.broken(
            line or Line("", 0, ""),
            f"SRCFG[{name}] PERIOD: expected DAY, WEEK or INFINITY, found {shown(period)}",
        )
        return []
    length = _DAY if period.upper() == "DAY" else 7 * _DAY
    ends: list[int] = []
    for key, default in (("STARTTIME", 0), ("ENDTIME", length)):
        told = default
        if key in about:
            text, where = about[key]
            seconds = _seconds(text)
            if seconds is None or seconds > length:
                expected = f"[[DD:]HH:]MM:SS within a {period.lower()}"
                found.broken(where, f"SRCFG[{name}] {key}: expected {expected}, found {shown(text)}")
                return []
            told = seconds
        ends.append(told)
    begin, end = ends
    last = about.get("ENDTIME", about.get("STARTTIME", ("", Line("", 0, ""))))[1]
    if end <= begin:
        found.broken(
            last, f"SRCFG[{name}]: expected an ENDTIME after the STARTTIME, found {shown(last.text)}"
        )
        return []
    if begin % 60 or end % 60:
        found.leave(last, f"SRCFG[{name}]: whole minutes are kept, from the first one to the last")
    begin, end = begin - begin % 60, end + -end % 60
    days = _days(name, about, found)
    if days is None:
        return []
    hosts = _hosts(about["HOSTLIST"][0])
    nodes = {"nodes": hosts} if hosts else {}
    if period.upper() == "DAY":
        return [{**({"days": days} if days else {}), **_times(begin, end), **nodes}]
    first, last_day = begin // _DAY, (end - 1) // _DAY
    if days and "DAYS" in about:
        found.leave(
            about["DAYS"][1],
            f"SRCFG[{name}] DAYS={about['DAYS'][0]} {_OFTEN}: in headway, the window of a week begins on "
            f"{_DAYS[first]}",
        )
    of_days: dict[tuple[int, int], list[str]] = {}
    for day in range(first, last_day + 1):
        times = max(begin - day * _DAY, 0), min(end - day * _DAY, _DAY)
        of_days.setdefault(times, []).append(_DAYS[day])
    return [{"days": days, **_times(*times), **nodes} for times, days in of_days.items()]


def _times(begin: int, end: int) -> dict[str, str]:
    """As windows have them: seconds of a day."""
    return {key: f"{at // 3600 % 24:02d}:{at // 60 % 60:02d}" for key, at in (("from", begin), ("to", end))}


def _seconds(text: str) -> int | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    if match[5]:
        return int(match[5])
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    return days * _DAY + hours * 3600 + minutes * 60 + seconds


def _days(name: str, about: _About, found: Imported) -> list[str] | None:
    """As windows have them; none for all."""
    if "DAYS" not in about:
        return []
    text, line = about["DAYS"]
    words = [word[:3].lower() for word in re.split(r"[,:\s]+", text.strip("[]")) if word]
    if words == ["all"]:
        return []
    if not words or any(word not in _DAYS for word in words):
        found.broken(line, f"SRCFG[{name}] DAYS: expected days such as Mon,Tue or ALL, found {shown(text)}")
        return None
    return list(dict.fromkeys(words))
