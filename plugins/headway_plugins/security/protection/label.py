"""What a job is told of its security levels:
``encryption=AES-256-GCM,integrity=SHA-512,authentication=Ed25519``.

Names of options only: no keys, and nothing that a shell would see. A service that is not named asks for
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from headway.errors import UserError, nearest
from headway_plugins.security.levels import SERVICES
from headway_plugins.security.measured import LEVELS
from headway_plugins.security.protection.report import Service

#: Keys of the notes in which a job is told, and tells what it took.
NOTE, TOOK = "protect", "took"
#: Of the environment, where nothing else says it.
VARIABLE = "HEADWAY_PROTECT"
_TOOK = re.compile(r"([A-Za-z0-9-]{1,40}):([0-9]{1,18}):([0-9]{1,9}\.[0-9]{1,9})")


def label_text(options: Mapping[str, str]) -> str:
    """The label of these options, by service."""
    return ",".join(f"{service}={options[service]}" for service in SERVICES if service in options)


def parse_label(text: str, where: str) -> dict[str, str]:
    """Service -> option. Raises :class:`UserError`, led by ``where``, for what nothing here can carry out."""
    found: dict[str, str] = {}
    for word in text.split(","):
        service, equals, option = word.strip().partition("=")
        if not equals or service not in SERVICES:
            raise UserError(
                f"{where}: expected words such as encryption=AES-256-GCM with commas between, of the "
                f"services {', '.join(SERVICES)}; found {word!r}"
            )
        if service in found:
            raise UserError(f"{where}: {service} is there twice")
        if option not in LEVELS[service]:
            raise UserError(
                f"{where}: {service}: nothing here is called {option!r}.{nearest(option, LEVELS[service])}"
            )
        found[service] = option
    return found


def took_text(services: Iterable[Service]) -> str:
    """What protection took, for the scheduler: ``AES-256-GCM:1000000:0.25,..``: option, bytes, seconds."""
    return ",".join(f"{one.option}:{one.bytes}:{one.seconds:.6f}" for one in services if one.files)


def parse_took(text: str) -> dict[str, tuple[int, float]]:
    """Option -> bytes and seconds; what is damaged, or of options that are not known here, is left out."""
    found: dict[str, tuple[int, float]] = {}
    known = {option for options in LEVELS.values() for option in options}
    for word in text.split(","):
        match = _TOOK.fullmatch(word)
        if match is not None and match[1] in known:
            count, seconds = int(match[2]), float(match[3])
            more = found.get(match[1], (0, 0.0))
            found[match[1]] = (more[0] + count, more[1] + seconds)
    return found
