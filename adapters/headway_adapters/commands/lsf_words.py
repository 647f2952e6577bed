"""Words of LSF's command lines, and LSF's words for jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from headway_adapters.commands.machine import Job, Share
from headway_adapters.commands.server import Call
from headway_adapters.commands.system import Refused

FAILED = 255
BAD_FIELD = 99
#: Options of bsub and bmod that take a value, and options that take none.
_VALUES = (
    "-J", "-n", "-W", "-q", "-w", "-b", "-P", "-R", "-m", "-o", "-e", "-i", "-oo", "-eo", "-M", "-G", "-g",
    "-app", "-sp", "-U", "-Jd", "-u", "-k", "-cwd", "-env", "-c", "-F", "-v", "-S", "-t", "-We", "-E", "-L",
)  # fmt: skip
_FLAGS = (
    "-H",
    "-r",
    "-rn",
    "-x",
    "-xn",
    "-N",
    "-B",
    "-ar",
    "-V",
    "-Wn",
    "-bn",
    "-wn",
    "-Pn",
    "-spn",
    "-mn",
    "-Un",
)


def stat_of(job: Job) -> str:
    """A job's state in LSF's word."""
    if job.state == "queued":
        return "PSUSP" if job.holds else "PEND"
    if job.state == "starting":
        return "PEND"
    if job.state == "suspended":
        return "SSUSP" if job.resuming else "USUSP"
    if job.state == "leaving":
        return "EXIT"
    if job.state == "ended":
        return "DONE" if job.outcome == "completed" and job.exit_code == 0 else "EXIT"
    return "RUN"


def base_name(job: Job) -> str:
    """Its name without an element's index."""
    return job.name.rpartition("[")[0] if job.index is not None else job.name


def angled(shares: Sequence[Share]) -> str:
    slots = [f"<{share.node}>" for share in shares for _ in range(share.processors)]
    return slots[0] if len(slots) == 1 else f"{len(slots)} Hosts/Processors {' '.join(slots)}"


def expanded(given: str) -> set[int]:
    """``1,3-9:2`` as numbers; none for what is no such list."""
    found: set[int] = set()
    for part in given.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if match is None:
            return set()
        first, last, step = (int(number) if number else 0 for number in match.groups())
        found |= set(range(first, (last or first) + 1, step or 1))
    return found


def parsed(call: Call, words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The options of bsub or bmod, and the words after them; raises :class:`Refused`."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word in _FLAGS:
            found.append((word, ""))
            at += 1
        elif word in _VALUES and at + 1 < len(words):
            found.append((word, words[at + 1]))
            at += 2
        else:
            raise Refused(FAILED, f"{call.name}: Illegal option -- {word}")
    return found, list(words[at:])


def letters_of(call: Call, known: Mapping[str, bool]) -> tuple[dict[str, str], list[str]]:
    """Options of another command (True: with a value), anywhere among its words."""
    found: dict[str, str] = {}
    rest: list[str] = []
    at = 0
    while at < len(call.words):
        word = call.words[at]
        at += 1
        if not word.startswith("-") or word == "-":
            rest.append(word)
        elif word not in known:
            raise Refused(FAILED, f"{call.name}: invalid option -- '{word[1:2]}'\nUsage: {call.name}")
        elif known[word]:
            if at == len(call.words):
                raise Refused(FAILED, f"{call.name}: option requires an argument -- '{word[1:2]}'")
            found[word] = call.words[at]
            at += 1
        else:
            found[word] = ""
    return found, rest


def without_comment(words: Sequence[str]) -> tuple[list[str], str]:
    """badmin's names, and what its ``-C`` says."""
    if "-C" in words:
        at = list(words).index("-C")
        return [*words[:at], *words[at + 2 :]], "".join(words[at + 1 : at + 2])
    return list(words), ""


def directives(script: str) -> list[str]:
    """The options on the ``#BSUB`` lines of a script."""
    found: list[str] = []
    for line in script.splitlines():
        if line.startswith("#BSUB"):
            option, _, value = line[5:].strip().partition(" ")
            found.append(option)
            if value.strip():
                found.append(value.strip().strip('"'))
    return found


def columns(names: Sequence[str], records: Sequence[Mapping[str, str]], *, head: bool = True) -> str:
    """Aligned columns, as ``-o`` without ``-json`` prints them."""
    rows = ([list(names)] if head else []) + [[record[name] for name in names] for record in records]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(len(names))]
    return "".join(
        " ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        for row in rows
    )
