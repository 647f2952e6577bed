"""Resource requirement strings (``bsub -R``) -> what a request can say. Pure.

``select[...]`` is judged on what does not change of a host (type, model, name, number of processors,
memory, boolean resources): hosts that do not satisfy it are excluded. Load indices (``r1m``, ``ut``,
``mem``, ...) change every few seconds, and headway plans ahead: they are taken as satisfied.
``span[hosts=1]`` is one node, ``span[ptile=n]`` so many processors on each; ``rusage[mem=..]`` is memory on
each host, which is what LSF takes it for unless the site says otherwise. ``order[...]`` is only a
preference. ``rusage`` of a shared resource is a licence, or an amount on each host
(:mod:`headway_adapters.lsf.shared`). What else is asked for (``same``, ``cu``, ``affinity``, further
``rusage``) is noted and not kept. A string that is not of this form at all (alternatives, compound
requirements) is *unfit*: such a job is left alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headway_adapters.lsf import values
from headway_adapters.lsf.shared import NOTHING, Shared, whole

_SECTION = re.compile(r"\s*([a-z_]+)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")
_AMOUNT = re.compile(
    r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*([0-9.]+(?:e[+-]?[0-9]+)?\s*[KMGTPEkmgtpe]?[Bb]?)\s*"
)
_DURATION = re.compile(r"duration\s*=\s*([0-9]{1,9})\s*([smh]?)")
_TOKEN = re.compile(
    r"\s*(?:(?P<op>&&|\|\||==|!=|>=|<=|=|>|<|!|\(|\))"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_.@-]*)"
    r"|(?P<number>[0-9.]+(?:e[+-]?[0-9]+)?[KMGTPEkmgtpe]?[Bb]?)"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")"
)
#: Parentheses and negations inside each other.
_DEEPEST = 50
_COMPARISONS = frozenset({"==", "!=", ">=", "<=", "=", ">", "<"})


@dataclass(frozen=True)
class Host:
    """What does not change of a host (``lshosts``)."""

    name: str
    kind: str = ""
    model: str = ""
    processors: int = 0
    #: Bytes; 0: not known.
    memory: int = 0
    swap: int = 0
    resources: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Asked:
    """What a requirement string asks for."""

    #: 0: not stated.
    nodes: int = 0
    per_node: int = 0
    #: Bytes on each host.
    memory: int = 0
    #: Boolean resources that each host must have.
    features: tuple[str, ...] = ()
    #: Hosts that do not satisfy it.
    excluded: tuple[str, ...] = ()
    #: Why it cannot be expressed; "" if it can.
    unfit: str = ""
    #: What is asked for and not kept.
    notes: tuple[str, ...] = ()
    #: Of what is counted for the whole cluster: name, amount, and seconds after which it is given back while
    #: the job runs (0: at its end).
    licences: tuple[tuple[str, int, float], ...] = ()
    #: Of what hosts have by themselves, on each host.
    gres: tuple[tuple[str, int], ...] = ()


@dataclass
class _Findings:
    nodes: int = 0
    per_node: int = 0
    memory: int = 0
    features: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    licences: dict[str, tuple[int, float]] = field(default_factory=dict)
    gres: dict[str, int] = field(default_factory=dict)


class Requirements:
    """Reads requirement strings against one set of hosts; remembers what it has read."""

    def __init__(self, hosts: Mapping[str, Host], shared: Shared = NOTHING) -> None:
        self._hosts = hosts
        self._shared = shared
        self._booleans = frozenset(name for host in hosts.values() for name in host.resources)
        self._known: dict[tuple[str, str], Asked] = {}

    def read(self, text: str, local: str = "") -> Asked:
        """``local``: the type of the host that the job was submitted from ("" if not known)."""
        key = (text, local)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(text.strip(), local)
        return found

    def _read(self, text: str, local: str) -> Asked:
        if text in ("", "-"):
            return Asked()
        sections: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            match = _SECTION.match(text, at)
            if match is None:
                break
            sections.append((match.group(1), match.group(2)))
            at = match.end()
        rest = text[at:].strip()
        if rest and sections:
            return Asked(unfit=f"its resource requirement {text!r} cannot be expressed in headway")
        if rest:
            # Without any section the whole text is a selection: bsub -R "type==any && mem>100".
            sections = [("select", rest)]
        findings = _Findings()
        try:
            for name, body in sections:
                self._section(name, body.strip(), local, findings)
        except ValueError as error:
            return Asked(unfit=f"its resource requirement {text!r} cannot be expressed in headway: {error}")
        return Asked(
            findings.nodes, findings.per_node, findings.memory, findings.features, findings.excluded, "",
            tuple(findings.notes),
            tuple((name, *wanted) for name, wanted in sorted(findings.licences.items())),
            tuple(sorted(findings.gres.items())),
        )  # fmt: skip

    def _section(self, name: str, body: str, local: str, found: _Findings) -> None:
        if name == "select":
            self._select(body, local, found)
        elif name == "span":
            self._span(body, found)
        elif name == "rusage":
            self._rusage(body, found)
        elif name != "order":
            found.notes.append(f"requirement {name}[{body}] is not kept by headway")

    def _span(self, body: str, found: _Findings) -> None:
        key, equals, value = (part.strip() for part in body.partition("="))
        if key == "hosts" and equals and value in ("1", "-1"):
            found.nodes = 1 if value == "1" else found.nodes
        elif key == "ptile" and value.isdecimal() and int(value) > 0:
            found.per_node = int(value)
        elif body:
            found.notes.append(f"requirement span[{body}] is not kept by headway")

    def _rusage(self, body: str, found: _Findings) -> None:
        if "||" in body:
            raise ValueError("alternatives in rusage")
        for item in body.replace("&&", ",").split(","):
            words = [word.strip() for word in item.split(":")]
            duration = next((_seconds(word) for word in words if word.startswith("duration")), 0.0)
            for word in words:
                if word and not word.startswith(("duration", "decay")):
                    self._reserve(word, duration, found)

    def _reserve(self, word: str, duration: float, found: _Findings) -> None:
        """``name=amount`` of a reservation that lasts so long (0: to the end of the job)."""
        match = _AMOUNT.fullmatch(word)
        name, value = (match.group(1), match.group(2).strip()) if match is not None else ("", "")
        amount = whole(value, math.ceil)
        if name == "mem":
            found.memory = max(found.memory, values.size(value))
        elif name in self._shared.licences and amount is not None:
            if amount:
                found.licences[name] = (amount, duration)
            there = self._shared.licences[name].hosts
            without = tuple(host for host in self._hosts if host not in there)
            found.excluded = tuple(dict.fromkeys((*found.excluded, *without)))
        elif name in self._shared.by_host and amount is not None:
            if amount:
                found.gres[name] = amount
        elif name == "ngpus_physical" and amount != 0:
            raise ValueError(
                "the GPUs of bsub -gpu are counted by LSF's own scheduler alone; ask for a resource of the "
                "hosts, such as rusage[ngpus=1]"
            )
        elif name not in ("swp", "tmp"):
            found.notes.append(f"requirement rusage[{word}] is not kept by headway")

    def _select(self, body: str, local: str, found: _Findings) -> None:
        if not body:
            return
        load = _LOAD | self._shared.licences.keys() | self._shared.by_host.keys()
        judge, plain = _Expression(body, local, self._booleans, load, found.notes).read()
        if plain is not None:
            found.features = tuple(dict.fromkeys((*found.features, *plain)))
            return
        excluded = tuple(name for name, host in self._hosts.items() if not judge(host))
        found.excluded = tuple(dict.fromkeys((*found.excluded, *excluded)))


Judge = Callable[[Host], bool]


class _Expression:
    """One selection; recursive descent over ``||``, ``&&``, ``!``, comparisons and names."""

    def __init__(
        self, text: str, local: str, booleans: frozenset[str], load: frozenset[str], notes: list[str]
    ) -> None:
        self._load = load
        self._tokens = _tokens(text)
        self._at = 0
        self._local = local
        self._booleans = booleans
        self._notes = notes
        #: Boolean resources, while the selection is nothing but these joined by "&&".
        self._plain: list[str] | None = []
        self._depth = 0

    def read(self) -> tuple[Judge, tuple[str, ...] | None]:
        judge = self._either()
        if self._at < len(self._tokens):
            raise ValueError(f"unexpected {self._tokens[self._at][1]!r}")
        return judge, None if self._plain is None else tuple(self._plain)

    def _next(self, *operators: str) -> str:
        if self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if kind == "op" and text in operators:
                self._at += 1
                return text
        return ""

    def _either(self) -> Judge:
        parts = [self._all()]
        while self._next("||"):
            self._plain = None
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda host: any(part(host) for part in parts)

    def _all(self) -> Judge:
        parts = [self._one()]
        while self._next("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda host: all(part(host) for part in parts)

    def _one(self) -> Judge:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        try:
            return self._part()
        finally:
            self._depth -= 1

    def _part(self) -> Judge:
        if self._next("!"):
            self._plain = None
            inner = self._one()
            return lambda host: not inner(host)
        if self._next("("):
            self._plain = None
            inner = self._either()
            if not self._next(")"):
                raise ValueError("a closing parenthesis is missing")
            return inner
        if self._at >= len(self._tokens):
            raise ValueError("it ends too soon")
        kind, name = self._tokens[self._at]
        if kind == "op":
            raise ValueError(f"unexpected {name!r}")
        self._at += 1
        operator = self._next(*_COMPARISONS)
        if not operator:
            return self._named(name)
        self._plain = None
        if self._at >= len(self._tokens) or self._tokens[self._at][0] == "op":
            raise ValueError(f"nothing to compare {name!r} with")
        value = self._tokens[self._at][1]
        self._at += 1
        return self._compared(name, "==" if operator == "=" else operator, value)

    def _named(self, name: str) -> Judge:
        if name in self._booleans:
            if self._plain is not None:
                self._plain.append(name)
            return lambda host: name in host.resources
        self._plain = None
        self._notes.append(f"requirement {name!r} cannot be judged and is taken as satisfied")
        return lambda host: True

    def _compared(self, name: str, operator: str, value: str) -> Judge:
        if name in ("type", "model", "hname") and operator in ("==", "!="):
            wanted = self._local if value == "local" else value
            if value == "any" or not wanted:
                return lambda host: True
            equal = operator == "=="
            if name == "hname":
                return lambda host: (host.name == wanted) is equal
            if name == "type":
                return lambda host: (not host.kind or host.kind == wanted) is equal
            if value == "local":
                return lambda host: True
            return lambda host: (not host.model or host.model == wanted) is equal
        if name in ("ncpus", "maxmem", "maxswp"):
            limit = values.size(value) if name != "ncpus" else values.integer(value)
            return lambda host: _holds(
                {"ncpus": host.processors, "maxmem": host.memory, "maxswp": host.swap}[name], operator, limit
            )
        if name in self._booleans and value in ("0", "1") and operator in ("==", "!="):
            wish = (value == "1") is (operator == "==")
            return lambda host: (name in host.resources) is wish
        if name not in self._load:
            self._notes.append(f"requirement {name!r} cannot be judged and is taken as satisfied")
        return lambda host: True


#: Load indices: they change every few seconds.
_LOAD = frozenset(
    {"r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem", "slots", "maxslots", "status",
     "maxtmp", "cpuf", "rexpri", "server", "ndisks"}
)  # fmt: skip


def _holds(have: int, operator: str, limit: int) -> bool:
    """Whether ``have`` satisfies the comparison; what is not known (0) does."""
    if not have:
        return True
    return {
        "==": have == limit, "!=": have != limit, ">=": have >= limit, "<=": have <= limit,
        ">": have > limit, "<": have < limit,
    }[operator]  # fmt: skip


def _seconds(word: str) -> float:
    """``duration=5`` (minutes), ``duration=2h``, ``duration=30s``; 0.0 for anything else."""
    match = _DURATION.fullmatch(word)
    return float(match.group(1)) * {"s": 1, "m": 60, "h": 3600}[match.group(2) or "m"] if match else 0.0


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:]!r} is not understood")
        kind = match.lastgroup or ""
        found.append(("op" if kind == "op" else "word", match.group(kind)))
        at = match.end()
    return found
