"""What commands share that work while both of two daemons are stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.cli.common import messages, say
from headway.errors import HeadwayError, Held

if TYPE_CHECKING:
    from headway.config import Config


def nobody_leads_elsewhere(config: Config, would: str, otherwise: str = "") -> None:
    """Raises :class:`Held` if the other of two daemons leads; ``would``: what that daemon would do to the
    command's work; ``otherwise``: what else is possible. Where that machine does not answer this is said, and
    the command goes on."""
    if not config.has_standby:
        return
    from headway.standby.elsewhere import other_leader

    try:
        leader = other_leader(config)
    except HeadwayError as error:
        say(f"it is not known whether the other daemon leads, which {would}: {error}", messages())
        return
    if leader:
        raise Held(
            f"{config.source}: the other daemon, {leader}, leads, and {would}. Expected both daemons to be "
            f"stopped: stop that daemon, too{otherwise}"
        )
