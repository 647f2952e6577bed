"""``--dependency`` -> conditions that headway waits for itself, or lets Slurm decide.

Slurm takes what is satisfied out of the text of a held job only once a minute, so each condition is judged
here, by Slurm's rules, on the listing that shows it (:mod:`headway_adapters.slurm.reader.fates`). What is met
falls away: at the start Slurm looks itself, and starts no job that depends on anything in its eyes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from headway.model import Dependency
from headway_adapters.slurm.reader.brief import Brief
from headway_adapters.slurm.reader.fates import Fate, Fates

_CONDITION = re.compile(
    r"(?P<kind>[a-z]+)(?::(?P<job>[0-9]{1,10})(?:_(?P<task>[0-9]{1,10}|\*))?(?:\+(?P<minutes>[0-9]{1,9}))?)?"
    r"(?:\((?P<state>[a-z]+)\))?"
)
_KINDS = {
    "after": "started",
    "afterany": "ended",
    "afterok": "completed",
    "afternotok": "failed",
    "aftercorr": "completed",
}
#: Slurm counts whole seconds: the second of a start that it shows may be almost over.
_ROUNDING = 1.0


@dataclass(frozen=True)
class Conditions:
    """What a job waits for."""

    dependencies: tuple[Dependency, ...] = ()
    #: True: any one is enough.
    either: bool = False
    #: Why headway cannot wait for it itself; "" if it can.
    waits: str = ""
    #: Not before this time (absolute seconds).
    begin: float | None = None
    #: All is met, but Slurm must say so before elements of the array are started.
    unsaid: bool = False


@dataclass(frozen=True)
class _Judged:
    """One condition: met, if nothing is stated here."""

    dependency: Dependency | None = None
    waits: str = ""
    begin: float | None = None
    never: bool = False
    unsaid: bool = False


_MET = _Judged()
_NEVER = _Judged(never=True)


def read_dependencies(
    record: Brief, index: int | None, fates: Fates, now: float, notes: set[str], *, several: bool = False
) -> Conditions:
    """What a waiting job depends on.

    ``index``: its place in its array. ``now``: absolute seconds. ``several``: the record is that of several
    elements of an array.
    """
    text = record.dependency
    if not text:
        return Conditions()
    either = "?" in text
    judged: list[tuple[str, _Judged]] = []
    for item in re.split(r"[,?]", text):
        match = _CONDITION.fullmatch(item.strip())
        if match is None:
            return Conditions((), either, f"its dependency {item!r} is left to Slurm to decide")
        judged.append((item.strip(), _judge(match, record, index, fates, now, notes, several)))
    return _any(judged) if either else _all(judged)


def _all(judged: Iterable[tuple[str, _Judged]]) -> Conditions:
    judged = [(item, one) for item, one in judged if one != _MET]
    for item, one in judged:
        if one.never:
            return Conditions(waits=f"its dependency {item} can never be satisfied")
    for _, one in judged:
        if one.waits and not one.unsaid:
            return Conditions(waits=one.waits)
    begins = [one.begin for _, one in judged if one.begin is not None]
    open_ones = tuple(dict.fromkeys(one.dependency for _, one in judged if one.dependency is not None))
    if open_ones or begins:
        return Conditions(open_ones, begin=max(begins, default=None))
    return Conditions(waits=judged[0][1].waits, unsaid=True) if judged else Conditions()


def _any(judged: Iterable[tuple[str, _Judged]]) -> Conditions:
    judged = list(judged)
    if any(one == _MET for _, one in judged):
        return Conditions(either=True)
    left = [(item, one) for item, one in judged if not one.never]
    if not left:
        return Conditions((), True, f"its dependency {judged[-1][0]} can never be satisfied")
    for item, one in left:
        if one.dependency is None:
            waits = one.waits or f"its dependency {item} is not met yet"
            return Conditions((), True, waits, unsaid=one.unsaid)
    return Conditions(tuple(dict.fromkeys(one.dependency for _, one in left if one.dependency)), True)


def _judge(
    match: re.Match[str], record: Brief, index: int | None, fates: Fates, now: float, notes: set[str],
    several: bool,
) -> _Judged:  # fmt: skip
    item, kind, state = match.group(), match["kind"], match["state"] or ""
    if state == "fulfilled":
        return _MET
    if state == "failed":
        return _NEVER
    if kind == "singleton":
        return _singleton(record, fates, several)
    ours = _KINDS.get(kind)
    if ours is None or match["job"] is None:
        notes.add(f"dependency kind {kind!r} is left to Slurm to decide")
        return _Judged(waits=f"its dependency {item} is left to Slurm to decide")
    number = int(match["job"])
    task = None if match["task"] in (None, "*") else int(match["task"])
    if kind == "aftercorr" and index is not None and fates.of(number, index) is not None:
        task = index
    fate = fates.of(number, task)
    if fate is None:
        # Slurm lifts a condition on a job that it has forgotten.
        return _MET
    if not fate.told and not fate.over:
        return _Judged(waits=f"its dependency {item} is on a job of a partition that headway does not see")
    delay = 60.0 * int(match["minutes"] or 0)
    name = str(number) if task is None else f"{number}_{task}"
    if ours == "started":
        return _after(name, fate, delay, now)
    if not fate.over:
        return _Judged(Dependency(ours, name))
    met = ours == "ended" or fate.well == (ours == "completed")
    return _MET if met else _NEVER


def _after(name: str, fate: Fate, delay: float, now: float) -> _Judged:
    if fate.waits:
        return _Judged(Dependency("started", name, delay))
    if not delay:
        return _MET
    begin = (now if fate.start is None else fate.start) + delay + _ROUNDING
    return _MET if begin <= now else _Judged(begin=begin)


def _singleton(record: Brief, fates: Fates, several: bool) -> _Judged:
    other = fates.before(record)
    if other is not None:
        number = other.array or other.number
        if not fates.tells_of(other) or number == record.array:
            # The scheduler knows nothing of it, or lets no element wait for others of its array.
            return _Judged(waits=f"its dependency singleton waits for job {number}")
        return _Judged(Dependency("singleton", ""))
    if not several:
        return _MET
    # An element that is taken out of such a record counts the rest among its namesakes.
    return _Judged(waits="Slurm has not said yet that its dependency singleton is met", unsaid=True)
