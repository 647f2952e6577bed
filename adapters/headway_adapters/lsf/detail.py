"""What is known of a pending job of LSF beyond the common form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Detail:
    """What the writer and the adapter need to know about a pending job beyond the common form."""

    #: PSUSP: held by its user, an administrator, or us.
    held: bool
    #: Why LSF itself would not start it, though ``brun`` would; "" if nothing but its begin time may stand
    #: against it.
    waits: str = ""
    #: Slots that it asks for, the least and the most.
    least: int = 1
    most: int = 1
    #: It has its hosts to itself, whatever slots it asks for there.
    exclusive: bool = False
    #: In a queue that we manage.
    managed: bool = True
    #: Its description (``bsub -Jd``), notes and all.
    description: str = ""
