"""The systemd unit of a site: the shipped unit with the site's program, user and order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.adapter.survey import SiteFile
from headway.errors import Failure
from headway.inputs.shipped import shipped
from headway_adapters.site_init.page import Service

UNIT = "headway.service"
#: What gives waiting jobs back where headway is silent, and when it looks.
GIVE_BACK = ("headway-give-back.service", "headway-give-back.timer")
_PLAIN = re.compile(r"[A-Za-z0-9_/.+@:=-]+")


def unit(service: Service, *, after: Sequence[str], about_user: Sequence[str]) -> str:
    """``after``: units that are started before; ``about_user``: lines that say why it is this user."""
    return _adapted(UNIT, service, "run", after, about_user)


def give_back_units(service: Service, *, after: Sequence[str]) -> list[SiteFile]:
    """The units that give waiting jobs back, for the same user."""
    name, timer = GIVE_BACK
    command = "give-back --all --if-silent"
    text = _adapted(name, service, command, after, ["The account of headway.service."])
    lines = [line for line in _text(timer).splitlines() if not line.startswith("Documentation=")]
    return [SiteFile(name, text), SiteFile(timer, "\n".join(lines) + "\n")]


def _text(name: str) -> str:
    path = shipped(f"slurm/{name}")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path}: the shipped unit cannot be read: {error.strerror or error}") from error


def _adapted(
    name: str, service: Service, command: str, after: Sequence[str], about_user: Sequence[str]
) -> str:
    """A shipped unit with the site's user, and with ``command`` of the site's program."""
    lines: list[str] = []
    said = {
        "After": f"After={' '.join(['network-online.target', *after])}",
        "User": f"User={service.user}",
        "Group": f"Group={service.group}",
        "ExecStart": f"ExecStart={word(service.place.program)} {command} -c {word(service.place.config)}",
    }
    missing = dict(said)
    for line in _text(name).splitlines():
        key = line.partition("=")[0]
        if key == "Documentation":
            continue
        if key == "User":
            while lines and lines[-1].startswith("#"):
                lines.pop()
            lines += [f"# {one}" for one in about_user]
        lines.append(said.get(key, line))
        missing.pop(key, None)
    if missing:
        raise Failure(f"{shipped(f'slurm/{name}')}: expected a unit with {', '.join(missing)}, found none")
    return "\n".join(lines) + "\n"


def word(text: str) -> str:
    """A word of a command line in a unit."""
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
