"""``--dependency`` -> conditions that headway waits for itself, or lets Slurm decide."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headway.model import Dependency

_DEPENDENCY = re.compile(r"([a-z]+)(?::([0-9]+(?:_(?:[0-9]+|\*))?(?:\+[0-9]+)?))?(?:\(([a-z]+)\))?")
_DEPENDENCY_KINDS = {
    "after": "started",
    "afterany": "ended",
    "afterok": "completed",
    "afternotok": "failed",
    "aftercorr": "completed",
}


def read_dependencies(
    text: str, index: int | None, elements: Mapping[int, list[str]], notes: set[str]
) -> tuple[tuple[Dependency, ...], bool, str]:
    """A dependency text as conditions; whether one is enough; why we cannot wait for it ourselves.

    Slurm takes what is satisfied out of the text, so what we cannot express is simply waited
    for: the job stays unstartable until the words are gone.
    """
    if not text:
        return (), False, ""
    either = "?" in text
    found: list[Dependency] = []
    for item in text.replace("?", ",").split(","):
        match = _DEPENDENCY.fullmatch(item.strip())
        if match is None:
            return (), either, f"its dependency {item!r} is left to Slurm to decide"
        kind, target, state = match.group(1), match.group(2) or "", match.group(3) or ""
        if state == "fulfilled":
            if either:
                return (), False, ""
            continue
        if state == "failed":
            if either:
                continue
            return (), either, f"its dependency {item} can never be satisfied"
        if kind == "singleton":
            found.append(Dependency("singleton", ""))
            continue
        ours = _DEPENDENCY_KINDS.get(kind)
        if ours is None or not target or "+" in target:
            notes.add(f"dependency kind {kind!r} is left to Slurm to decide")
            return (), either, f"its dependency {item} is left to Slurm to decide"
        if kind == "aftercorr":
            other = target.partition("_")[0]
            found.append(Dependency(ours, f"{other}_#" if index is None else f"{other}_{index}"))
            continue
        array, _, task = target.partition("_")
        if task not in ("", "*"):
            found.append(Dependency(ours, target))
        elif int(array) in elements:
            found.extend(Dependency(ours, element) for element in elements[int(array)])
            if either:
                return (), either, f"its dependency {item} is left to Slurm to decide"
        else:
            found.append(Dependency(ours, array))
    return tuple(found), either, ""
