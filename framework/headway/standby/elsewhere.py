"""Whether the other of two daemons leads, for a command that is run while the own daemon is stopped."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence

from headway.config import Config
from headway.errors import Failure
from headway.standby.follower import FIRST, Link
from headway.standby.frames import More
from headway.standby.leadership import OFTEN, Word, lasting


def other_leader(
    config: Config,
    link_to: Callable[[Sequence[str]], Link] = Link,
    clock: Callable[[], float] = lasting,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """The process that leads on the other machine, for a person; "": none does.

    A word in its lease is not enough, for a daemon that was killed leaves it: the process leads if it renews
    the lease within ``standby.patience``, in which the command waits. A daemon with a shared journal has
    that journal, which tells. Raises :class:`headway.errors.HeadwayError` if the other machine does not
    answer.
    """
    settings = config.standby
    if not config.has_standby or not settings.follow:
        return ""
    with contextlib.closing(link_to(settings.follow)) as link:
        first = _word(link)
        end = clock() + settings.patience
        while first is not None and clock() < end:
            pause(OFTEN * settings.patience)
            now = _word(link)
            if now is None or now != first:
                return now.holder if now is not None else ""
    return ""


def _word(link: Link) -> Word | None:
    """What the lease there says, if somebody leads by it."""
    frame = link.ask(More(rows=False), FIRST)
    if frame.wrong:
        raise Failure(f"standby.follow: {link.name}: {frame.wrong}")
    word = frame.word
    return word if word is not None and word.leads and not word.released else None
