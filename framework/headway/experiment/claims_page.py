"""The page of a paper's claims, ``claims.md``: the command that makes it, what it says, and its table."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.errors import UserError
from headway.experiment.published import Published, published_rules

#: What the page is called in a directory of results.
CLAIMS = "claims.md"
#: The column of verdicts, by which a table of claims is known.
HOLDS = "holds?"
_TABLE = re.compile(rf"^\|[^\n]*\b{re.escape(HOLDS)}[^\n]*\n(?:\|[^\n]*\n?)*", re.MULTILINE)


@dataclass(frozen=True)
class Claim:
    """One claim of a paper beside our measurement."""

    where: str
    paper: str
    measured: str
    #: Whether it holds: "yes", "in part" or "no"; "fitted" where a parameter was chosen so that it does; "not
    #: run" with the reason in ``measured``.
    holds: str
    #: How what we measured compares with the paper's figure (``size_verdict``); "" if it has none.
    size: str = ""


@dataclass(frozen=True)
class Broken:
    """A rule of evaluation that an experiment breaks as it was run here, and how."""

    rule: str
    title: str
    said: str


@dataclass(frozen=True)
class Call:
    """``headway reproduce NAME`` with the options that the claims depend on."""

    name: str
    seeds: int
    #: Each KEY=VALUE.
    settings: tuple[str, ...] = ()
    #: Whether a directory of real traces was given; which one does not count.
    traces: bool = False

    def __str__(self) -> str:
        given = "".join(f" --set {shlex.quote(setting)}" for setting in self.settings)
        return f"headway reproduce {self.name} --seeds {self.seeds}{given}{' --traces DIR' * self.traces}"

    @classmethod
    def of(cls, page: str) -> Call:
        """The command that a page says it was made by; :class:`UserError` if it says none."""
        found = re.search(r"`headway reproduce ([^`]+)`", page)
        try:
            name, *words = shlex.split(found[1]) if found else [""]
            options = list(zip(words[::2], words[1::2], strict=True))
            (seeds,) = [int(value) for option, value in options if option == "--seeds"]
        except ValueError as error:
            raise UserError(
                "the page does not name the command that made it; expected `headway reproduce NAME --seeds "
                "N ...`"
            ) from error
        settings = tuple(value for option, value in options if option == "--set")
        return cls(name, seeds, settings, any(option == "--traces" for option, _ in options))


def claims_page(
    title: str,
    call: str,
    claims: Sequence[Claim],
    said: Published | str | None,
    broken: Mapping[str, Sequence[Broken]],
) -> str:
    """The page, as Markdown; ``said``: of a paper's experiments by itself; ``broken``: by experiment."""
    head = f"# {title}\n\n`{call}`; ± is half of the 95 % confidence interval over the seeds."
    return f"{head}\n\n{claims_table(claims)}\n{published_rules(said)}{broken_rules(broken)}"


def claims_table(claims: Sequence[Claim]) -> str:
    """The claims as a Markdown table."""
    lines = [f"| where | the paper says | we measured | {HOLDS} | as large? |", "|---|---|---|---|---|"]
    lines += [f"| {c.where} | {c.paper} | {c.measured} | {c.holds} | {c.size or '-'} |" for c in claims]
    return "\n".join(lines) + "\n"


def broken_rules(broken: Mapping[str, Sequence[Broken]]) -> str:
    """Which rules of evaluation the experiments break as they were run here, as Markdown; "" if the rule book
    was shown none of them (they are no campaigns)."""
    if not broken:
        return ""
    where: dict[str, list[str]] = {}
    what: dict[str, Broken] = {}
    for name, rules in broken.items():
        for one in rules:
            where.setdefault(one.rule, []).append(name)
            what.setdefault(one.rule, one)
    head = (
        "\n## Rules of evaluation that these experiments break\n\n"
        "As they are run here, like the paper's (docs/experiments.md).\n\n"
    )
    lines = [f"- {rule} {one.title}: {', '.join(where[rule])}. {one.said}" for rule, one in what.items()]
    return head + ("\n".join(lines) or "None.") + "\n"


def tables_of(page: str) -> list[re.Match[str]]:
    """The tables of claims in a page of Markdown, in their order."""
    return list(_TABLE.finditer(page))
