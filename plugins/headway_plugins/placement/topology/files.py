"""Switches as a site writes them down: in YAML, or Slurm's ``topology.conf`` and ``scontrol show topology``.

YAML, as text of its own or as an option::

    leaf1: n[1-16]                      # its nodes, as Slurm writes lists of nodes
    leaf2: {nodes: [n17, n18, n19]}
    top: {switches: [leaf1, leaf2]}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.errors import UserError, nearest
from headway.inputs.node_lists import expand
from headway.inputs.strict_yaml import parse_yaml
from headway.model import SwitchDescription

_KEYS = ("nodes", "switches")


def read_switches(text: str, source: str) -> tuple[SwitchDescription, ...]:
    """The switches of a file; :class:`UserError` names the place, what was expected and what was found."""
    lines = [line.partition("#")[0].rstrip() for line in text.splitlines()]
    if any(line.lstrip().lower().startswith("switchname=") for line in lines):
        return tuple(_line(line, f"{source}, line {number}") for number, line in _joined(lines) if line)
    found = parse_yaml(text, source)
    if not isinstance(found, Mapping):
        raise UserError(f"{source}: expected switches by name, found {found!r:.60}")
    return described(found, source)


def _joined(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; a line that ends with a backslash goes on in the next line."""
    so_far, first = "", 0
    for number, line in enumerate(lines, start=1):
        first = first or number
        if line.endswith("\\"):
            so_far += line[:-1]
            continue
        yield first, (so_far + line).strip()
        so_far, first = "", 0
    if so_far:
        yield first, so_far.strip()


def described(switches: Mapping[Any, Any], where: str) -> tuple[SwitchDescription, ...]:
    """The switches of a mapping as YAML has it; raises as :func:`read_switches`."""
    return tuple(_switch(name, about, f"{where}: {name}") for name, about in switches.items())


def _switch(name: Any, about: Any, where: str) -> SwitchDescription:
    if not isinstance(name, str) or not name:
        raise UserError(f"{where}: expected the name of a switch, found {name!r}")
    if not isinstance(about, Mapping):
        about = {"nodes": about}
    for key in about:
        if key not in _KEYS:
            raise UserError(f"{where}: {key}: unknown key.{nearest(str(key), _KEYS)}")
    nodes, switches = (_names(about.get(key), f"{where}: {key}") for key in _KEYS)
    return SwitchDescription(name, nodes, switches)


def _names(value: Any, where: str) -> tuple[str, ...]:
    """A list of names, or a text in which there are several; each name once."""
    if value is None:
        return ()
    parts = value if isinstance(value, list | tuple) else [value]
    found: dict[str, None] = {}
    for part in parts:
        if not isinstance(part, str) or not part:
            raise UserError(f"{where}: expected names, such as n[1-16], found {part!r:.60}")
        try:
            found.update(dict.fromkeys(expand(part)))
        except ValueError as error:
            raise UserError(f"{where}: {error}") from error
    return tuple(found)


def _line(line: str, where: str) -> SwitchDescription:
    """``SwitchName=s0 Nodes=n[0-3]``; other keys (LinkSpeed, Level) are not looked at. A switch above others
    is shown with the nodes of all of them: they are not its own."""
    said: dict[str, str] = {}
    for word in line.split():
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise UserError(f"{where}: expected KEY=VALUE, found {word!r:.60}")
        said[key.lower()] = value
    if "switchname" not in said:
        raise UserError(f"{where}: expected SwitchName=NAME, found {line!r:.60}")
    nodes, switches = (_names(said.get(key), f"{where}: {key}") for key in _KEYS)
    return SwitchDescription(said["switchname"], () if switches else nodes, switches)
