"""The groups in which ``headway --help`` lists commands, and the lines that other packages tell of theirs."""

from __future__ import annotations

from collections.abc import Iterable

#: Group -> its heading, in the order of ``--help``.
GROUPS = {
    "operate": "Operate a cluster",
    "users": "For users of a cluster",
    "experiments": "Experiments, on a trace or a model of a workload",
    "papers": "Papers' experiments and claims",
}

#: Heading of commands whose package names no group of these.
OTHERS = "Others"

#: What a package says of its command: a line, or a group and a line.
Told = str | tuple[str, str]

#: The most characters of a line of ours, so that it is one line on 80 columns beside the longest name.
LONGEST_LINE = 58


def grouped(told: Iterable[tuple[str, Told]]) -> dict[str, list[tuple[str, str]]]:
    """Heading -> commands and their lines, in the order told; no heading without commands."""
    found: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*GROUPS.values(), OTHERS)}
    for name, said in told:
        group, line = ("", said) if isinstance(said, str) else said
        found[GROUPS.get(group, OTHERS)].append((name, line))
    return {heading: rows for heading, rows in found.items() if rows}
