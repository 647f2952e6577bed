"""What commands share that work while both of two daemons are stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.cli.common import messages, say
from headway.errors import HeadwayError, Held

if TYPE_CHECKING:
    from headway.config import Config


def nobody_leads_elsewhere(config: Config, would: str, otherwise: str = "") -> None:
    """Raises :class:`Held` if the other of two daemons leads, or a stand-by waits to; ``would``: what that
    daemon would do to the command's work; ``otherwise``: what else is possible. Where that machine does not
    answer this is said, and the command goes on."""
    if not config.has_standby:
        return
    from headway.standby.elsewhere import other_daemon

    try:
        other = other_daemon(config)
    except HeadwayError as error:
        text = f"it is not known whether the other daemon leads or waits to, which {would}: {error}"
        say(text, messages())
        return
    if other is not None:
        found = "the other daemon, {}, leads" if other.leads else "a stand-by, {}, waits to lead"
        raise Held(
            f"{config.source}: {found.format(other.holder)}, and {would}. Expected both daemons to be "
            f"stopped: stop that daemon, too{otherwise}"
        )
