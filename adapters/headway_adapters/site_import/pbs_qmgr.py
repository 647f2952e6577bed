"""What ``qmgr`` says of PBS's server, queues and scheduler: its commands, and its lists.

``print server`` writes commands; ``list server``, ``list queue``, ``qstat -Bf`` and ``qstat -Qf`` write each
object with its attributes below it. Several objects may be named in a command, and several attributes be set,
with commas between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from headway_adapters.site_import.found import Imported, Line, queues_of, shown

_COMMAND = re.compile(
    r"(active|create|set|unset|delete|import|list|print)\s+(server|queue|sched|hook|resource|node|pbshook)\b\s*(.*)",
    re.IGNORECASE,
)
_LISTED = re.compile(r"(Server|Queue|Sched|Node|Hook|Resource)(?::\s*|\s+)(\S+)")
_ATTRIBUTE = re.compile(r"([A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)?)\s*([+-]?=)\s*")
#: A comma behind which no further attribute begins belongs to the value.
_VALUE = re.compile(r'("(?:[^"\\]|\\.)*"|\'[^\']*\'|.*?)\s*(?:$|,\s*(?=[A-Za-z][\w.-]*\s*[+-]?=))')
_NODES = "node {}: write the nodes of a dry run into emulation.nodes"
#: Whose attributes are kept.
_KEPT = ("server", "queue", "sched")
#: What stands for the scheduler among the names of queues.
SCHEDULER = "@sched"

#: Values of one attribute, each with its line.
Values = list[tuple[str, Line]]


@dataclass
class Objects:
    """Queues, and what is said of them, of the server and of the scheduler."""

    #: Queue ("" for the server, :data:`SCHEDULER` for the scheduler) -> attribute -> values with their lines.
    said: dict[str, dict[str, Values]] = field(default_factory=dict)
    queues: dict[str, Line] = field(default_factory=dict)

    def attribute(self, of: str, key: str) -> tuple[str, Line] | None:
        """Of the server, a queue or the scheduler, what was said last."""
        found = self.said.get(of, {}).get(key)
        return found[-1] if found else None

    def is_execution(self, name: str) -> bool:
        """Whether jobs run from this queue."""
        kind = self.attribute(name, "queue_type")
        return kind is None or kind[0].lower().startswith("e")

    def forget_refused(self, found: Imported) -> None:
        """Drop queues of which the adapter does not take the name, with a remark."""
        names = queues_of(self.queues, found)
        for name in self.queues.keys() - set(names):
            self.said.pop(name, None)
        self.queues = {name: self.queues[name] for name in names}

    def change(self, of: str, key: str, sign: str, value: str, line: Line) -> None:
        """Carry out ``=``, ``+=`` or ``-=``."""
        values = self.said.setdefault(of, {}).setdefault(key, [])
        if sign == "-=":
            values[:] = [(text.replace(value, ""), at) for text, at in values if text != value]
            return
        if sign == "=":
            values.clear()
        values.append((value, line))

    def unset(self, names: Sequence[str], keys: Sequence[str]) -> None:
        """Carry out ``unset``: of these objects nothing is said under these attributes any more."""
        for name in names:
            for key in keys:
                self.said.get(name, {}).pop(key, None)

    def delete(self, queues: Sequence[str]) -> None:
        """Carry out ``delete queue``."""
        for name in queues:
            self.queues.pop(name, None)
            self.said.pop(name, None)


def is_command(text: str) -> bool:
    """Whether the line is a command of qmgr."""
    return _COMMAND.fullmatch(text) is not None


def is_listed(text: str) -> bool:
    """Whether the line is the head of an object in a list."""
    return _LISTED.fullmatch(text) is not None


def read_commands(lines: Sequence[Line], objects: Objects, found: Imported) -> None:
    """Carry out the commands of ``print server``; hooks and resources are PBS's own."""
    for line in lines:
        match = _COMMAND.fullmatch(line.text.strip())
        if match is None:
            found.broken(line, f"expected set server, create queue and the like, found {shown(line.text)}")
            continue
        verb, kind, rest = match[1].lower(), match[2].lower(), match[3].strip()
        if kind == "node" and verb == "create":
            found.leave(line, _NODES.format(rest.split()[0] if rest else ""))
        if kind not in _KEPT or verb in ("list", "print", "active", "import"):
            continue
        names, rest = _named(kind, verb, rest)
        if kind == "queue" and verb == "delete":
            objects.delete(names)
            continue
        if kind == "queue":
            for name in filter(None, names):
                objects.queues.setdefault(name, line)
        if verb == "unset":
            objects.unset(names, re.split(r"\s*,\s*", rest))
        elif verb == "set" or rest:
            for key, sign, value in _attributes(rest, line, found):
                for name in names:
                    objects.change(name, key, sign, value, line)


def _named(kind: str, verb: str, rest: str) -> tuple[list[str], str]:
    """The objects that a command is about, and what is behind their names."""
    if kind == "queue":
        if verb == "create" and "=" not in rest:
            return [rest], ""
        names, _, rest = re.sub(r"\s*,\s*(?=\S+(\s|$))", ",", rest, count=0).partition(" ")
        return [name.partition("@")[0] for name in names.split(",")], rest.strip()
    # A name of the server or the scheduler may stand before the attributes.
    named = re.match(r"([^\s=]+)\s+(?=[A-Za-z][\w.-]*\s*(?:[+-]?=|,|$))", rest)
    if named is not None and not _ATTRIBUTE.match(rest):
        rest = rest[named.end() :]
    return [SCHEDULER if kind == "sched" else ""], rest


def _attributes(text: str, line: Line, found: Imported) -> Iterator[tuple[str, str, str]]:
    """Of ``a = 1, b += "x"``: attribute, sign and value."""
    at = 0
    while at < len(text):
        match = _ATTRIBUTE.match(text, at)
        if match is None:
            found.broken(line, f"expected ATTRIBUTE = VALUE, found {shown(text[at:])}")
            return
        value = _VALUE.match(text, match.end())
        assert value is not None
        yield match[1], match[2], value[1].strip().strip("\"'")
        at = value.end()
    if not text:
        found.broken(line, "expected ATTRIBUTE = VALUE, found ''")


def read_lists(lines: Sequence[Line], objects: Objects, found: Imported) -> None:
    """What ``list server``, ``list queue`` and ``qstat -Qf`` print."""
    of: str | None = None
    last: Values = []
    for line in lines:
        text = line.text.strip()
        head = _LISTED.fullmatch(text)
        if head is not None and not line.text[:1].isspace():
            kind = head[1].lower()
            of = {"server": "", "sched": SCHEDULER, "queue": head[2]}.get(kind)
            last = []
            if kind == "queue":
                objects.queues.setdefault(head[2], line)
            elif kind == "node":
                found.leave(line, _NODES.format(head[2]))
            continue
        key, equals, value = text.partition(" = ")
        if equals and re.fullmatch(r"[A-Za-z][\w.-]*", key):
            last = [(value.strip().strip('"'), line)]
            if of is not None:
                objects.said.setdefault(of, {})[key] = last
        elif last:
            # A long value goes on in the next line.
            last[-1] = (last[-1][0] + text, last[-1][1])
        elif of is not None or not is_command(text):
            found.broken(line, f"expected ATTRIBUTE = VALUE, found {shown(text)}")
