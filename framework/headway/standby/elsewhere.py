"""Whether the other of two daemons leads or waits to, for a command that is run while both are stopped."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.config import Config
from headway.errors import Failure
from headway.inputs.database_url import database_url
from headway.standby.follower import FIRST, Link
from headway.standby.frames import More
from headway.standby.leadership import OFTEN, Word, lasting
from headway.standby.lease_file import LeaseFile


@dataclass(frozen=True)
class Other:
    """A daemon that is there."""

    #: The process, for a person.
    holder: str
    #: It leads; else it stands by, and leads as soon as no daemon does.
    leads: bool


def other_daemon(
    config: Config,
    link_to: Callable[[Sequence[str]], Link] = Link,
    clock: Callable[[], float] = lasting,
    pause: Callable[[float], None] = time.sleep,
) -> Other | None:
    """The daemon that leads on the other machine, or a stand-by there or here; None: there is none.

    A word in a lease is not enough, for a daemon that was killed leaves it: the process is there if it renews
    the lease within ``standby.patience``, in which the command waits. With a shared journal the database
    knows the stand-by; the journal itself tells of its leader. Raises
    :class:`headway.errors.HeadwayError` if the other machine, or the database, does not answer.
    """
    settings = config.standby
    if not config.has_standby:
        return None
    url = database_url(config.journal, "journal")
    if url.get_backend_name() != "sqlite":
        return _waits_at(config.journal)
    if not settings.follow:
        return None
    own = LeaseFile(Path(url.database or ""))
    with contextlib.closing(link_to(settings.follow)) as link:
        # A leader here would have the journal's lock, which tells by itself.
        words = [lambda: _word(link), lambda: _unless(own.read(), leads=True)]
        first = [read() for read in words]
        end = clock() + settings.patience
        while any(first) and clock() < end:
            pause(OFTEN * settings.patience)
            for at, now in enumerate(read() for read in words):
                if now is None:
                    first[at] = None
                elif first[at] is None or now != first[at]:
                    return Other(now.holder, now.leads)
    return None


def _waits_at(journal: str) -> Other | None:
    from headway.standby.lease_row import LeaseRow

    with contextlib.closing(LeaseRow(journal)) as lease:
        waits = lease.waits()
    return Other(waits, leads=False) if waits else None


def _word(link: Link) -> Word | None:
    """What the lease there says, unless its daemon has ended."""
    frame = link.ask(More(rows=False), FIRST)
    if frame.wrong:
        raise Failure(f"standby.follow: {link.name}: {frame.wrong}")
    return _unless(frame.word)


def _unless(word: Word | None, *, leads: bool = False) -> Word | None:
    """A word, unless its daemon has ended, or ``leads``."""
    return None if word is None or word.released or (leads and word.leads) else word
