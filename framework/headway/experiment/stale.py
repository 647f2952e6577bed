"""Which tables of claims are stale: their rows say something else under the rules of today, or it is not
recorded what made them.

Nothing is run. The page of a directory of results is made again from the rows beside it, and compared; rows
of other parameters than today's, and rows that are missing, make it stale too. In pages of documentation a
table stands between ``<!-- claims: DIRECTORY -->`` and ``<!-- /claims -->``, and is that of the directory's
page; a table of claims anywhere else belongs to no results.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from headway.errors import UserError
from headway.experiment.claims_page import CLAIMS, Call, claims_page, tables_of
from headway.experiment.kept import PARAMETERS
from headway.experiment.published import UNDECLARED
from headway.experiment.reproduction import Context, Reproduction

#: A table that is included in a page of documentation.
_INCLUDED = re.compile(r"(<!-- claims: (\S+) -->\n)(.*?)(<!-- /claims -->)", re.DOTALL)


class State(StrEnum):
    """How a table is."""

    FRESH = "up to date"
    STALE = "stale"
    #: What is needed for that is not at hand.
    UNKNOWN = "not checked"


@dataclass(frozen=True)
class Checked:
    """A table that was looked at."""

    #: The page, and the line of a table in it; None: the page as a whole.
    page: Path
    line: int | None
    state: State
    #: What is wrong and what to do; of a table that is up to date how many claims it has.
    why: str
    #: What the whole page says today; None: not known.
    today: str | None = None


def check_tables(root: Path, traces: Path | None, make: Callable[[Call], Reproduction]) -> Iterator[Checked]:
    """Every table of claims in a directory: of each directory of results in it, then of its own pages.

    ``traces``: the directory of real traces, for results that need one; ``make``: the experiments of a
    command.
    """
    for page in sorted(root.rglob(CLAIMS)):
        yield check_results(page.parent, traces, make)
    for page in sorted(root.glob("*.md")):
        if page.name != CLAIMS:
            yield from check_page(page)


def check_results(folder: Path, traces: Path | None, make: Callable[[Call], Reproduction]) -> Checked:
    """The page of a directory of results beside its rows."""
    page = folder / CLAIMS
    text = _text(page)
    try:
        call = Call.of(text)
        if call.traces and traces is None:
            return Checked(page, None, State.UNKNOWN, "it needs real traces (--traces DIR)")
        today = judged_again(folder, call, traces, make(call))
    except UserError as error:
        return Checked(page, None, State.STALE, str(error))
    if text == today:
        return Checked(page, None, State.FRESH, f"{_claims(text)} claims")
    return Checked(
        page, None, State.STALE, f"its rows give another table today: {_differing(text, today)}", today
    )


def judged_again(folder: Path, call: Call, traces: Path | None, paper: Reproduction) -> str:
    """What the page of a directory of results says today; the directory stays as it is.

    Raises :class:`UserError` if its rows do not come from this command, or are not complete.
    """
    with TemporaryDirectory() as name:
        copy = Path(name)
        for file in (*folder.glob("*.csv"), folder / PARAMETERS):
            if file.is_file():
                shutil.copy(file, copy)
        context = Context(
            out=copy, seeds=tuple(range(1, call.seeds + 1)), workers=1,
            traces=traces if call.traces else None, on_plan=lambda title, total: None,
            on_done=lambda count: None, rows=[], call=str(call), keep=True, may_run=False,
        )  # fmt: skip
        try:
            claims = paper.run(context)
        except UserError as error:
            raise UserError(str(error).replace(name, str(folder))) from error
        except (ValueError, ArithmeticError, LookupError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise UserError(
                f"its rows cannot be judged today, because their columns have changed ({reason})"
            ) from error
    said = getattr(paper, "published", UNDECLARED)
    return claims_page(paper.title, str(call), claims, said, context.broken)


def check_page(page: Path) -> list[Checked]:
    """The tables of claims in a page of documentation."""
    text = _text(page)
    found: list[Checked] = []
    included: list[range] = []
    today = refreshed(page)
    for block in _INCLUDED.finditer(text):
        line, results = _line(text, block.start()), page.parent / block[2] / CLAIMS
        included.append(range(*block.span()))
        if (table := _table(results)) is None:
            state, why = State.STALE, f"there is no table of claims in {results}"
        elif table == block[3]:
            state, why = State.FRESH, f"as in {results}"
        else:
            state, why = State.STALE, f"{results} differs: {_differing(block[3], table)}"
        found.append(Checked(page, line, state, why, today))
    for other in tables_of(text):
        if not any(other.start() in span for span in included):
            why = "a table of claims that no directory of results is named for (`<!-- claims: DIRECTORY -->`)"
            found.append(Checked(page, _line(text, other.start()), State.STALE, why))
    return found


def refreshed(page: Path) -> str:
    """A page of documentation with the tables of today between its marks."""

    def table(block: re.Match[str]) -> str:
        today = _table(page.parent / block[2] / CLAIMS)
        return block[0] if today is None else f"{block[1]}{today}{block[4]}"

    return _INCLUDED.sub(table, _text(page))


def _text(page: Path) -> str:
    try:
        return page.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{page}: expected text in UTF-8, found something else ({error})") from error


def _table(page: Path) -> str | None:
    """The table of a directory's page; None: there is none."""
    tables = tables_of(_text(page)) if page.is_file() else []
    return tables[0][0] if tables else None


def _claims(text: str) -> int:
    return sum(len(table[0].splitlines()) - 2 for table in tables_of(text))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _differing(text: str, today: str) -> str:
    """Which lines of a text differ from today's, in words."""
    old, new = text.splitlines(), today.splitlines()
    pairs = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]]
    count = len(pairs) + abs(len(old) - len(new))
    if not pairs:
        return f"{count} lines more or less"
    cut = 200
    return f"{count} lines; found {pairs[0][0][:cut]!r}, expected {pairs[0][1][:cut]!r}"
