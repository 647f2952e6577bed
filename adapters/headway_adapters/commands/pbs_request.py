"""What users of PBS ask for: chunks, vnodes, array indices, dependencies, and what is wrong with it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway_adapters.commands import pbs_text as text
from headway_adapters.commands.machine import Share
from headway_adapters.commands.server import Call, Caller
from headway_adapters.commands.system import Refused, options

#: Error numbers of the server, modulo 256.
UNKNOWN_JOB = 153
NOT_ALLOWED = 159
UNKNOWN_QUEUE = 172
BAD_VALUE = 166
MODIFIES_RUNNING = 167
BAD_STATE = 170
FINISHED = 35
CANNOT_CONNECT = 162
NOT_RERUNABLE = 168
#: Options of qsub, in the words of getopt.
QSUB = "a:A:c:C:e:fhj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:xXz"


@dataclass(frozen=True)
class Chunk:
    """So many times these resources of one vnode."""

    count: int
    resources: Mapping[str, str]

    @property
    def processors(self) -> int:
        return int(self.resources.get("ncpus", "1"))

    @property
    def memory(self) -> int:
        return text.size(self.resources.get("mem", "0"))


def chunks_of(select: str) -> list[Chunk]:
    """``2:ncpus=4:mem=1gb+ncpus=2`` as chunks. Raises ValueError."""
    found = []
    for part in select.split("+"):
        first, *rest = part.split(":")
        if first.isdigit():
            count = int(first)
        else:
            count, rest = 1, [first, *rest]
        resources = dict(entry.partition("=")[::2] for entry in rest)
        if not all(resources) or not all(resources.values()):
            raise ValueError(select)
        chunk = Chunk(count, resources)
        if chunk.processors < 0 or chunk.memory < 0:
            raise ValueError(select)
        found.append(chunk)
    return found


#: A part of a comma list, in which what stands in quotes may hold commas.
_PART = re.compile(r'(?:[^,"]|"[^"]*"?)+')


def resources_of(call: Call | None, asked: Sequence[str]) -> dict[str, str]:
    """The values of ``-l``, each a comma list of ``name=value``; what stands in quotes may hold commas."""
    found: dict[str, str] = {}
    for entry in asked:
        for part in _PART.findall(entry):
            name, equals, value = part.partition("=")
            if not equals or not name or not value:
                raise Refused(BAD_VALUE, f"{call.name if call else 'qsub'}: illegal -l value")
            found[name] = value.strip('"')
    return found


def request_of(call: Call | None, asked: Sequence[str]) -> tuple[str, str, dict[str, Any]]:
    """``(select with its defaults, place, Resource_List)``; raises :class:`Refused`."""
    name = call.name if call else "qsub"
    given = resources_of(call, asked)
    place = given.pop("place", "free" if "select" in given else "pack")
    if "nodes" in given:
        # The old form: nodes=2:ppn=4
        select = "+".join(
            re.sub(r":?ppn=(\d+)", r":ncpus=\1", part) for part in given.pop("nodes").split("+")
        )
        place = "scatter"
    elif "select" in given:
        select = given.pop("select")
    else:
        select = f"1:ncpus={given.pop('ncpus', '1')}"
        if "mem" in given:
            select += f":mem={given.pop('mem')}"
    try:
        chunks = chunks_of(select)
        walltime = given.get("walltime")
        if walltime is not None:
            given["walltime"] = text.duration(text.seconds(walltime))
    except ValueError:
        raise Refused(
            BAD_VALUE, f"{name}: Illegal attribute or resource value Resource_List.select"
        ) from None
    full = "+".join(
        f"{chunk.count}:"
        + ":".join(f"{k}={v}" for k, v in {**chunk.resources, "ncpus": chunk.processors}.items())
        for chunk in chunks
    )
    total: dict[str, Any] = {
        **given,
        "ncpus": sum(chunk.count * chunk.processors for chunk in chunks),
        "nodect": sum(chunk.count for chunk in chunks),
        "place": place,
        "select": select,
    }
    memory = sum(chunk.count * chunk.memory for chunk in chunks)
    if memory:
        total["mem"] = text.size_text(memory)
    return full, place, dict(sorted(total.items()))


def entries_of(where: str) -> list[str]:
    """``(a:ncpus=1+b:ncpus=2)+(c)`` as its parenthesised parts."""
    found, depth, part = [], 0, ""
    for letter in where:
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and depth == 0:
            found.append(part)
            part = ""
        else:
            part += letter
    return [*found, part]


def vnode_of(share: Share) -> str:
    memory = f":mem={share.memory // 1024}kb" if share.memory else ""
    return f"({share.node}{memory}:ncpus={share.processors})"


def indices_of(given: str) -> range:
    """``1-10`` or ``1-10:2`` (optionally ``%n``). Raises ValueError."""
    found = re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?(?:%\d+)?", given)
    if found is None:
        raise ValueError(given)
    first, last, step = (int(part or 1) for part in found.groups())
    if last <= first or step < 1:
        raise ValueError(given)
    return range(first, last + 1, step)


def ranges(numbers: Sequence[int]) -> str:
    """``1,3-5``; ``-`` for none."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts) or "-"


def directives(script: str) -> list[tuple[str, str]]:
    """The options on the ``#PBS`` lines of a script, up to its first command."""
    found: list[tuple[str, str]] = []
    for line in script.splitlines():
        if line.startswith("#PBS"):
            try:
                words = shlex.split(line[4:])
            except ValueError:
                words = line[4:].split()
            call = Call("qsub", tuple(words), Caller("", "", False))
            found += options(call, QSUB)[0]
        elif line.strip() and not line.startswith("#"):
            break
    return found


def arguments(words: Sequence[str], rest: Sequence[str]) -> str:
    """The options as the user gave them, without the script or command."""
    return " ".join(words[: len(words) - len(rest)]).removesuffix(" --").removesuffix("--")


def parts_of(value: str) -> list[str]:
    """The ``name=value`` parts of ``-W``, whose values may hold commas."""
    found: list[str] = []
    for part in value.split(","):
        if "=" in part or not found:
            found.append(part)
        else:
            found[-1] += "," + part
    return found


def variables_of(value: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of ``-v``; one without a value has that of the environment."""
    found = {}
    for part in parts_of(value):
        name, equals, given = part.partition("=")
        found[name] = given if equals else environment.get(name, "")
    return found
