"""What was read of a site's files: lines, what is carried over, and what is not and why.

``docs/operators/configuration.md`` describes the parts of a configuration; the accounts are written as the
option ``accounts`` of fair share has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from headway.cli.printable import printable
from headway.errors import UserError
from headway.plugins import Catalogue
from headway_adapters.site_import.refused import accepted

#: Bytes of a file that are read; no site has more to say.
LARGEST = 64_000_000
_SHOWN = 160
#: So many accounts may be above each other in the option ``accounts``.
_DEEPEST = 100
#: What a queue may be called, as the adapters have it.
_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_WHOLE = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True)
class Line:
    """A line of a file, without what surrounds it."""

    file: str
    number: int
    text: str

    @property
    def where(self) -> str:
        """As compilers say it."""
        return f"{self.file}:{self.number}"


@dataclass(frozen=True)
class Remark:
    """A line of which something is not carried over, or that could not be read (``broken``)."""

    line: Line
    why: str
    broken: bool = False

    def __str__(self) -> str:
        return printable(f"{self.line.where}: {self.why}")[:2000].replace("\n", " ")


@dataclass
class Imported:
    """What a configuration is made of."""

    #: Adapter and its options.
    adapter: str
    options: dict[str, Any] = field(default_factory=dict)
    #: Plugin -> its options, in the order in which they are asked.
    plugins: dict[str, dict[str, Any]] = field(default_factory=dict)
    emulation: dict[str, Any] = field(default_factory=dict)
    #: Pool -> what is to hold of it, such as its tier.
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    #: The files in the order in which they were given.
    files: list[str] = field(default_factory=list)

    def leave(self, line: Line, why: str) -> None:
        """Something of this line is not carried over."""
        self.remarks.append(Remark(line, why))

    def broken(self, line: Line, why: str) -> None:
        """This line says nothing that can be read."""
        self.remarks.append(Remark(line, why, broken=True))

    def check(self, catalogue: Catalogue, first: Line) -> None:
        """Leave out what plugins refuse of their options, with remarks; ``first``: where it is said."""
        for name in list(self.plugins):
            options, said = accepted(name, self.plugins[name], catalogue)
            for why in said:
                self.broken(first, why)
            if options is None:
                del self.plugins[name]
            elif said:
                self.plugins[name] = options
        weights = self.plugins.get("multifactor", {}).get("weights", {})
        if not any(name in self.plugins for name in ("fair-tree", "classic", "windows")):
            for name in ("fairshare", "association"):
                weights.pop(name, None)
        if not weights:
            self.plugins.pop("multifactor", None)

    def text(self, what: str) -> str:
        """The configuration as YAML; ``what`` was imported, for its first line."""
        found: dict[str, Any] = {
            "mode": "monitor",
            "cluster": {"adapter": self.adapter, "options": self.options},
            "plugins": [{name: options} if options else name for name, options in self.plugins.items()],
        }
        if self.pools:
            found["pools"] = self.pools
        if self.emulation:
            found["emulation"] = self.emulation
        head = [f"# Written by `headway import`, from {printable(what)}."]
        if self.remarks:
            head.append("# Not carried over:")
            head += [f"#   {remark}" for remark in self.ordered()]
        return "\n".join(head) + "\n" + yaml.safe_dump(found, sort_keys=False, width=110)

    def ordered(self) -> list[Remark]:
        """The remarks, file by file and line by line; each once."""
        at = {name: number for number, name in enumerate(self.files)}
        once = dict.fromkeys(self.remarks)
        return sorted(once, key=lambda remark: (at.get(remark.line.file, -1), remark.line.number))


def read_lines(path: Path) -> list[Line]:
    """The lines of a file, including empty lines; what is no UTF-8 has the character U+FFFD.

    Raises :class:`UserError` if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UserError(f"{path}: expected a file that can be read: {error.strerror or error}") from error
    if len(data) > LARGEST:
        raise UserError(f"{path}: expected at most {LARGEST // 1_000_000} MB, found more")
    text = data.decode("utf-8", errors="replace").removeprefix("\ufeff")
    return [Line(str(path), at, line.rstrip("\r")) for at, line in enumerate(text.split("\n"), 1)]


def readable(lines: Iterable[Line], found: Imported) -> Iterator[Line]:
    """The lines that are text; other lines are remarked."""
    for line in lines:
        if "\ufffd" in line.text or "\0" in line.text:
            found.broken(line, "expected text in UTF-8, found other bytes")
        elif len(line.text.strip().splitlines()) > 1:
            found.broken(line, "expected one line, found a character in it that ends lines elsewhere")
        else:
            yield line


def shown(text: str) -> str:
    """A piece of a file in a message."""
    text = text.strip()
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def whole(text: str) -> int | None:
    """A number without a sign and a fraction; None for anything else, and for more than any site has."""
    return int(text) if _WHOLE.fullmatch(text) is not None else None


def queues_of(named: Mapping[str, Line], found: Imported) -> list[str]:
    """The names that the adapter takes; the others are remarked."""
    names = []
    for name, line in named.items():
        if _QUEUE.fullmatch(name) is not None:
            names.append(name)
        else:
            found.broken(
                line, f"expected a name of a queue (letters, digits, '_', '-', '.'), found {shown(name)}"
            )
    return names


@dataclass
class Account:
    """An account, or a group of users, of the tree of shares."""

    name: str
    parent: str
    line: Line
    about: dict[str, Any] = field(default_factory=dict)
    users: dict[str, dict[str, Any]] = field(default_factory=dict)


def tree_of(accounts: Sequence[Account], found: Imported, root: str = "root") -> dict[str, Any]:
    """The accounts below each other; an account without a place is remarked and hangs below the root."""
    by_name: dict[str, Account] = {}
    for account in accounts:
        if account.name in by_name:
            found.broken(
                account.line,
                f"the account {account.name!r} is there already, in {by_name[account.name].line.where}",
            )
        else:
            by_name[account.name] = account
    below: dict[str, list[Account]] = {}
    for account in by_name.values():
        if account.name != root:
            below.setdefault(_parent_of(account, by_name, root, found), []).append(account)
    tree: dict[str, Any] = {}
    if root in by_name and by_name[root].users:
        tree[root] = {"users": by_name[root].users}
    return {**tree, **_nested(below, by_name, root)}


def _parent_of(account: Account, by_name: Mapping[str, Account], root: str, found: Imported) -> str:
    """Below which account this account hangs; the root, with a remark, where its own place is none."""
    parent = account.parent
    if parent != root and parent not in by_name:
        said = f"account {account.name!r}: no account is called {parent!r}; it is put at the top"
        found.broken(account.line, said)
        return root
    if _is_too_deep(account, by_name, root):
        above = f"more than {_DEEPEST - 1} accounts above it"
        found.broken(account.line, f"account {account.name!r} has {above}; it is put at the top")
        account.parent = root
    elif _in_circle(account, by_name, root):
        found.broken(account.line, f"account {account.name!r} is above itself; it is put at the top")
        account.parent = root
    return account.parent


def _nested(
    below: Mapping[str, Sequence[Account]], by_name: Mapping[str, Account], root: str
) -> dict[str, Any]:
    """What hangs below the root, as options have it. From the bottom up, since trees may be deeper than
    functions can be nested."""
    made: dict[str, dict[str, Any]] = {name: {} for name in below}
    for name, children in below.items():
        for child in children:
            about = dict(child.about)
            if child.users:
                about["users"] = child.users
            made[name][child.name] = about
    for name in made:
        if name == root:
            continue
        account = by_name[name]
        over = account.parent if account.parent in made else root
        made[over][name]["accounts"] = made[name]
    return made.get(root, {})


def _is_too_deep(account: Account, by_name: Mapping[str, Account], root: str) -> bool:
    """Whether fair share takes no accounts that are so deep; an account in a circle is not."""
    seen = {account.name}
    name = account.parent
    while name != root and name in by_name and name not in seen:
        seen.add(name)
        name = by_name[name].parent
    return len(seen) > _DEEPEST and (name == root or name not in by_name)


def _in_circle(account: Account, by_name: Mapping[str, Account], root: str) -> bool:
    seen = {account.name}
    name = account.parent
    while name != root and name in by_name:
        if name in seen:
            return name == account.name
        seen.add(name)
        name = by_name[name].parent
    return False
