"""Dependency conditions (``bsub -w``) -> dependencies, judged on one listing. Pure.

LSF keeps a condition as it was written until the job starts, and ``brun`` does not look at it, so
it is judged here, on what the last listing shows: which conditions are met, and which must be
waited for. What is met falls away. What is left becomes dependencies when it is a plain list (all,
or any, of ``done``, ``ended``, ``started``, ``exit`` of jobs); otherwise the job is shown as held, and
judged again at the next look.

A name means the user's own jobs of that name, all of them (LSF's default; with ``JOB_DEP_LAST_SUB=1``
LSF would take the last one: we wait longer). ``name*`` means all that begin so. A condition on a job
that is no longer listed, ``post_done``, ``external`` and what we cannot read are never called met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import msgspec

from headway.model import Dependency

Key = TypeVar("Key")

#: LSF's state of a job, as far as a condition asks.
PENDING, STARTED, DONE, EXITED = "pending", "started", "done", "exited"


class Known(msgspec.Struct, frozen=True, gc=False):
    """A job that a condition may name."""

    job_id: str
    user: str
    name: str
    #: One of the four above.
    state: str
    exit_code: int | None = None
    held: bool = False
    array: str = ""
    index: int | None = None


class Jobs:
    """All jobs of a listing, as conditions name them."""

    def __init__(self, listed: Iterable[Known] = ()) -> None:
        self._listed = tuple(listed)

    @cached_property
    def by_id(self) -> Mapping[str, Known]:
        return {job.job_id: job for job in self._listed}

    @cached_property
    def _by_array(self) -> Mapping[str, Sequence[Known]]:
        return _sorted((job for job in self._listed if job.array), lambda job: job.array)

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Sequence[Known]]:
        return _sorted(
            self._listed, lambda job: (job.user, job.name.partition("[")[0] if job.array else job.name)
        )

    @cached_property
    def _by_user(self) -> Mapping[str, Sequence[Known]]:
        return _sorted(self._listed, lambda job: job.user)

    def named(self, target: str, user: str, index: int | None) -> Sequence[Known]:
        """The jobs that ``target`` means in a condition of ``user``'s job with this array index."""
        target = target.strip()
        quoted = len(target) > 1 and target[0] == target[-1] == '"'
        if quoted:
            target = target[1:-1]
        base, element = target, ""
        match = _ELEMENT.fullmatch(target)
        if match is not None:
            base, element = match.group(1), match.group(2)
        if base.isdecimal() and not quoted:
            found: Iterable[Known] = self._by_array.get(base, ())
            if not found and base in self.by_id:
                found = (self.by_id[base],)
        elif base.endswith("*"):
            found = [job for job in self._by_user.get(user, ()) if job.name.startswith(base[:-1])]
        else:
            found = self._by_name.get((user, base), ())
        jobs = list(found)
        if element == "*":
            own = [job for job in jobs if job.index is not None and job.index == index]
            return own or jobs
        if element:
            return [job for job in jobs if job.index == int(element)]
        return jobs


def _sorted(jobs: Iterable[Known], by: Callable[[Known], Key]) -> dict[Key, list[Known]]:
    found: dict[Key, list[Known]] = {}
    for job in jobs:
        found.setdefault(by(job), []).append(job)
    return found


@dataclass(frozen=True)
class Condition:
    """What is left of a dependency condition."""

    dependencies: tuple[Dependency, ...] = ()
    #: True: any one is enough.
    either: bool = False
    #: Why the job may not start now, in words; "" if nothing stands against it.
    waits: str = ""
    #: It waits for something that dependencies cannot say.
    held: bool = False


FREE = Condition()

_ELEMENT = re.compile(r"(.*)\[([0-9]+|\*)\]", re.DOTALL)
_TOKEN = re.compile(
    r"\s*(?:(?P<op>&&|\|\||!(?!=)|\(|\)|,|>=|<=|==|!=|>|<)"
    r"|\"(?P<quoted>[^\"]*)\"(?P<index>\[[0-9*]+\])?"
    r"|(?P<word>[^\s()&|!,<>=\"]+))"
)
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
#: Parentheses and negations inside each other.
_DEEPEST = 50
_KINDS = {"done": "completed", "ended": "ended", "started": "started", "exit": "failed"}
_COUNTS: Mapping[str, Callable[[Known], bool]] = {
    "numdone": lambda job: job.state == DONE,
    "numended": lambda job: job.state in (DONE, EXITED),
    "numexit": lambda job: job.state == EXITED,
    "numhold": lambda job: job.held,
    "numpend": lambda job: job.state == PENDING and not job.held,
    "numrun": lambda job: job.state == STARTED,
    "numstart": lambda job: job.state in (STARTED, DONE, EXITED),
}


@dataclass(frozen=True)
class _Node:
    """Part of a condition, judged: met, not met, or waiting for jobs."""

    met: bool
    #: "leaf", "all", "any", or "other" (what dependencies cannot say).
    shape: str = "other"
    leaves: tuple[Dependency, ...] = ()
    #: Why it cannot be judged; "" if it can.
    unknown: str = ""


def judge(text: str, jobs: Jobs, *, user: str, index: int | None) -> Condition:
    """What is left of the condition ``text`` of a job of ``user`` with this array index."""
    text = text.strip()
    if text in ("", "-"):
        return FREE
    try:
        node = _Parser(text, jobs, user, index).read()
    except ValueError as error:
        return Condition(waits=f"its dependency {text!r} cannot be judged: {error}", held=True)
    if node.met:
        return FREE
    if node.unknown:
        return Condition(waits=f"its dependency {text!r} cannot be judged: {node.unknown}", held=True)
    waits = f"its dependency {text!r} is not met"
    if node.shape == "other":
        return Condition(waits=waits, held=True)
    return Condition(node.leaves, node.shape == "any", waits)


class _Parser:
    def __init__(self, text: str, jobs: Jobs, user: str, index: int | None) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._jobs = jobs
        self._user = user
        self._index = index
        self._depth = 0

    def read(self) -> _Node:
        node = self._either()
        if self._at < len(self._tokens):
            raise ValueError(f"unexpected {self._tokens[self._at][1]!r}")
        return node

    def _operator(self, *wanted: str) -> str:
        if self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if kind == "op" and text in wanted:
                self._at += 1
                return text
        return ""

    def _word(self) -> str:
        if self._at < len(self._tokens) and self._tokens[self._at][0] == "word":
            self._at += 1
            return self._tokens[self._at - 1][1]
        raise ValueError("a name or a number is missing")

    def _either(self) -> _Node:
        parts = [self._all()]
        while self._operator("||"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else _any(parts)

    def _all(self) -> _Node:
        parts = [self._one()]
        while self._operator("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else _every(parts)

    def _one(self) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        try:
            return self._part()
        finally:
            self._depth -= 1

    def _part(self) -> _Node:
        if self._operator("!"):
            inner = self._one()
            if inner.unknown:
                return inner
            return _Node(met=not inner.met)
        if self._operator("("):
            inner = self._either()
            if not self._operator(")"):
                raise ValueError("a closing parenthesis is missing")
            return inner
        word = self._word()
        if not self._operator("("):
            return self._condition("done", word)
        target = self._word()
        if word in _COUNTS:
            return self._count(word, target)
        code: Callable[[int], bool] | None = None
        if word == "exit" and self._operator(","):
            code = self._code()
        if not self._operator(")"):
            raise ValueError(f"{word}(...) is not understood")
        return self._condition(word, target, code)

    def _code(self) -> Callable[[int], bool]:
        operator = self._operator(*_COMPARE) or "=="
        number = self._word()
        if not number.isdecimal():
            raise ValueError(f"{number!r} is no exit code")
        return lambda code: _COMPARE[operator](code, int(number))

    def _count(self, word: str, target: str) -> _Node:
        if not self._operator(","):
            raise ValueError(f"{word}() needs a number")
        operator = self._operator(*_COMPARE) or "=="
        number = self._word()
        if not self._operator(")"):
            raise ValueError(f"{word}(...) is not understood")
        jobs = self._jobs.named(target, self._user, None)
        if not jobs:
            return _Node(met=False, unknown=f"{target} is not listed")
        count = sum(_COUNTS[word](job) for job in jobs)
        if number == "*":
            return _Node(met=count == len(jobs))
        if not number.isdecimal():
            raise ValueError(f"{number!r} is no number")
        return _Node(met=_COMPARE[operator](count, int(number)))

    def _condition(self, word: str, target: str, code: Callable[[int], bool] | None = None) -> _Node:
        kind = _KINDS.get(word)
        if kind is None:
            return _Node(met=False, unknown=f"{word}() is left to LSF")
        jobs = self._jobs.named(target, self._user, self._index)
        if not jobs:
            return _Node(met=False, unknown=f"{target} is not listed")
        nodes = [_leaf(kind, job, code) for job in jobs]
        return nodes[0] if len(nodes) == 1 else _every(nodes)


def _leaf(kind: str, job: Known, code: Callable[[int], bool] | None) -> _Node:
    if kind == "completed":
        met = job.state == DONE
    elif kind == "ended":
        met = job.state in (DONE, EXITED)
    elif kind == "started":
        met = job.state != PENDING
    else:
        met = job.state == EXITED
        if met and code is not None:
            if job.exit_code is None:
                return _Node(met=False, unknown=f"job {job.job_id}'s exit code is not known")
            met = code(job.exit_code)
    if met:
        return _Node(met=True)
    if code is not None:
        return _Node(met=False)
    return _Node(met=False, shape="leaf", leaves=(Dependency(kind, job.job_id),))


def _every(parts: Sequence[_Node]) -> _Node:
    left = [part for part in parts if not part.met]
    if not left:
        return _Node(met=True)
    unknown = next((part.unknown for part in left if part.unknown), "")
    if unknown:
        return _Node(met=False, unknown=unknown)
    if len(left) == 1:
        return left[0]
    if all(part.shape in ("leaf", "all") for part in left):
        leaves = tuple(dict.fromkeys(leaf for part in left for leaf in part.leaves))
        return _Node(met=False, shape="all", leaves=leaves)
    return _Node(met=False)


def _any(parts: Sequence[_Node]) -> _Node:
    if any(part.met for part in parts):
        return _Node(met=True)
    unknown = next((part.unknown for part in parts if part.unknown), "")
    if unknown:
        return _Node(met=False, unknown=unknown)
    if all(part.shape in ("leaf", "any") for part in parts):
        leaves = tuple(dict.fromkeys(leaf for part in parts for leaf in part.leaves))
        return _Node(met=False, shape="any", leaves=leaves)
    return _Node(met=False)


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:]!r} is not understood")
        if match["op"]:
            found.append(("op", match["op"]))
        elif match["quoted"] is not None:
            name = match["quoted"] + (match["index"] or "")
            # A quoted number is a name, not a job id.
            found.append(("word", f'"{name}"' if name.isdecimal() else name))
        else:
            found.append(("word", match["word"]))
        at = match.end()
    return found
