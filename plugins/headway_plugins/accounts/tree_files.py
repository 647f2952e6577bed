"""Where a site has its accounts written down: YAML, what ``sacctmgr dump CLUSTER`` writes, or PBS's
``resource_group``.

YAML, as text of its own or as an option::

    physics:
      shares: 40
      users: {ann: 1, bob: {shares: 2, default: true}}
      accounts:
        theory: {shares: 10, users: [carl]}

An account may have ``shares`` (default 1; ``parent``: none of its own), ``priority``, ``target``, ``bound``,
``users`` and ``accounts``; a user ``shares``, ``priority``, ``target``, ``bound`` and ``default``, or only a
number, the shares.

``resource_group`` has lines ``name id parent shares``. A name that is no line's parent is a user, in the
account above (PBS's ``fairshare_entity: euser``), which is the user's default account.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pydantic

from headway.errors import UserError, nearest
from headway.inputs import text_of
from headway.inputs.strict_yaml import parse_yaml
from headway_plugins.accounts.tree import ROOT, Entry, Tree

#: So many accounts may be above each other where they are nested.
DEEPEST = 100
_BOUNDS = ("target", "ceiling", "floor", "cap")
_ACCOUNT = ("shares", "priority", "target", "bound", "users", "accounts")
_USER = ("shares", "priority", "target", "bound", "default")
#: How Slurm writes Fairshare=parent.
_PARENTS = ("parent", "2147483647")
_LINE = re.compile(r"(Cluster|Parent|Account|User)\s*-\s*'?((?:[^':]|(?<=\\)')*)'?(.*)")
#: A line of resource_group.
_GROUP = re.compile(r"([^\s:]+)\s+(\d+)\s+(\S+)\s+(\d+(?:\.\d+)?)(?:\s.*)?")
#: ``Key=value`` or ``Key='value'``, led by a colon.
_FIELD = re.compile(r":(\w+)=(?:'([^']*)'|([^:]*))")


def configured(
    accounts: Mapping[str, Any] | str | None, file: Path | None, info: pydantic.ValidationInfo
) -> list[Entry]:
    """The accounts of a plugin's options ``accounts`` or ``file``, for their validator; none where a word
    says whose they are to be.

    Raises ValueError if both are given, if the file cannot be read, or if they are no tree.
    """
    if accounts is not None and file is not None:
        raise ValueError("accounts or a file with them, found both")
    try:
        entries = list(entries_of(accounts, "accounts")) if isinstance(accounts, Mapping) else []
        if file is not None:
            entries = read_tree(text_of(file, info.context), str(file))
        Tree(entries)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"a file that can be read, found {file}: {error}") from error
    except UserError as error:
        raise ValueError(str(error)) from error
    return entries


def read_tree(text: str, source: str) -> list[Entry]:
    """The entries of a file; :class:`UserError` names the place, what was expected and what was found."""
    lines = [line.strip() for line in text.splitlines()]
    first = next((line for line in lines if line and not line.startswith("#")), "")
    if first.startswith("Cluster - "):
        return list(_dumped(lines, source))
    if _GROUP.fullmatch(first):
        return list(_groups(lines, source))
    found = parse_yaml(text, source)
    if not isinstance(found, Mapping):
        raise UserError(f"{source}: expected accounts by name, found {found!r:.60}")
    return list(entries_of(found, source))


def entries_of(accounts: Mapping[Any, Any], where: str) -> Iterator[Entry]:
    """The entries of a mapping of accounts as YAML has it."""
    yield from _accounts(accounts, ROOT, where, ())


def _accounts(accounts: Any, parent: str, where: str, above: tuple[int, ...]) -> Iterator[Entry]:
    if not isinstance(accounts, Mapping):
        raise UserError(f"{where}: expected accounts by name, found {accounts!r:.60}")
    if id(accounts) in above:
        # An anchor of YAML can make a part a part of itself.
        raise UserError(f"{where}: the accounts contain themselves")
    if len(above) == DEEPEST:
        raise UserError(f"{where}: expected a tree of at most {DEEPEST} levels, found more")
    above = (*above, id(accounts))
    for key, about in accounts.items():
        name, place = _name(key, where), f"{where}: {key}"
        about = {} if about is None else {"shares": about} if _is_number(about) else about
        said = _fields(about, _ACCOUNT, place)
        users, below = about.get("users"), about.get("accounts")
        # Root is there anyway; what is said of it here are its users and accounts.
        inner = name == ROOT and parent == ROOT
        if not inner:
            yield Entry(name, parent=parent, where=place, **said)
        if users is not None:
            yield from _users(users, name, f"{place}: users")
        if below is not None:
            yield from _accounts(below, name, f"{place}: accounts", above)


def _users(users: Any, account: str, where: str) -> Iterator[Entry]:
    if isinstance(users, list | tuple):
        users = {user: None for user in users}
    if not isinstance(users, Mapping):
        raise UserError(f"{where}: expected users by name, found {users!r:.60}")
    for key, about in users.items():
        name, place = _name(key, where), f"{where}: {key}"
        about = {} if about is None else {"shares": about} if _is_number(about) else about
        yield Entry(account, name, account, where=place, **_fields(about, _USER, place))


def _fields(about: Any, known: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(about, Mapping):
        raise UserError(f"{where}: expected keys and values, found {about!r:.60}")
    found: dict[str, Any] = {}
    for key, value in about.items():
        if key not in known:
            raise UserError(f"{where}: {key}: unknown key.{nearest(str(key), known)}")
        if key == "shares" and value == "parent":
            found[key] = None
        elif key in ("shares", "priority", "target"):
            if not _is_number(value):
                raise UserError(f"{where}: {key}: expected a number, found {value!r:.60}")
            found[key] = float(value)
        elif key == "bound":
            if value not in _BOUNDS:
                raise UserError(f"{where}: bound: expected one of {', '.join(_BOUNDS)}, found {value!r:.60}")
            found[key] = value
        elif key == "default":
            if not isinstance(value, bool):
                raise UserError(f"{where}: default: expected true or false, found {value!r:.60}")
            found[key] = value
    return found


def _name(key: Any, where: str) -> str:
    # Users and groups of a trace are numbers.
    if isinstance(key, bool) or not isinstance(key, str | int) or key == "":
        raise UserError(f"{where}: expected a name, found {key!r:.60}")
    return str(key)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _dumped(lines: list[str], source: str) -> Iterator[Entry]:
    """The format of ``sacctmgr dump``: what follows a parent belongs to it."""
    parent = ROOT
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        where = f"{source}, line {number}"
        found = _LINE.fullmatch(line)
        if found is None:
            raise UserError(
                f'{where}: expected "Cluster - \'NAME\'", "Parent - ...", "Account - ..." or '
                f'"User - ...", found {line!r:.60}'
            )
        kind, name, rest = found.groups()
        if kind == "Cluster":
            continue
        if kind == "Parent":
            parent = name
            continue
        fields = {key.lower(): quoted or plain for key, quoted, plain in _FIELD.findall(rest)}
        said = fields.get("fairshare", "1")
        shares = None if said in _PARENTS else _number(said, "Fairshare", where)
        priority = _number(fields.get("priority", "0"), "Priority", where)
        if kind == "Account":
            yield Entry(name, "", parent, shares, priority, where=where)
        else:
            default = fields.get("defaultaccount") == parent
            yield Entry(parent, name, parent, shares, priority, default=default, where=where)


def _number(text: str, key: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{where}: {key}: expected a number, found {text!r:.60}") from None


def _groups(lines: list[str], source: str) -> Iterator[Entry]:
    """The format of PBS's ``resource_group``."""
    found: dict[str, tuple[str, float, str]] = {}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        where = f"{source}, line {number}"
        match = _GROUP.fullmatch(line)
        if match is None:
            raise UserError(f"{where}: expected NAME ID PARENT SHARES, found {line!r:.60}")
        name, _, parent, shares = match.groups()
        if name in found:
            raise UserError(f"{where}: {name!r} is there already, in {found[name][2]}")
        if name == ROOT:
            raise UserError(f"{where}: expected a name below {ROOT}, found {name!r}")
        found[name] = (parent, float(shares), where)
    parents = {parent for parent, _, _ in found.values()}
    for name, (parent, shares, where) in found.items():
        if parent != ROOT and parent not in found:
            raise UserError(
                f"{where}: {name}: no group is called {parent!r}.{nearest(parent, parents & set(found))}"
            )
        if name in parents:
            yield Entry(name, parent=parent, shares=shares, where=where)
        else:
            yield Entry(parent, name, parent, shares, default=True, where=where)
