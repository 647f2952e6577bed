"""The systemd unit of a site: the shipped unit with the site's program, user and order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.errors import Failure
from headway.inputs.shipped import shipped
from headway_adapters.site_init.page import Service

_SHIPPED = "slurm/headway.service"
_PLAIN = re.compile(r"[A-Za-z0-9_/.+@:=-]+")


def unit(service: Service, *, after: Sequence[str], about_user: Sequence[str]) -> str:
    """``after``: units that are started before; ``about_user``: lines that say why it is this user."""
    path = shipped(_SHIPPED)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path}: the shipped unit cannot be read: {error.strerror or error}") from error
    lines: list[str] = []
    said = {
        "After": f"After={' '.join(['network-online.target', *after])}",
        "User": f"User={service.user}",
        "Group": f"Group={service.group}",
        "ExecStart": f"ExecStart={word(service.place.program)} run -c {word(service.place.config)}",
    }
    missing = dict(said)
    for line in text.splitlines():
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
        raise Failure(f"{path}: expected a unit with {', '.join(missing)}, found none")
    return "\n".join(lines) + "\n"


def word(text: str) -> str:
    """A word of a command line in a unit."""
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
