"""What jobs carry, and what moving them costs.

D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005, sections 2.3 and 5.3(c): 1 KB is 1,000 bytes. The link up from the
old host is the slowest part of the way of a job's data, at 256 kb/s; the published slowdowns leave moves out.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Bits a second that a host sends up.
UPLOAD = 256_000


@dataclass(frozen=True)
class Profile:
    """An application that runs on hosts of other people; None: the paper does not say it."""

    #: Bytes of the program, bytes that it moves in an hour of processor time, and hours of a job.
    program: int
    traffic: int | None = None
    runtime: float | None = None


PROFILES = {
    "SETI@home": Profile(program=791_000, traffic=21_250, runtime=6.0),
    "Folding": Profile(program=371_000),
}


def transfer_seconds(size: float, rate: float = UPLOAD) -> float:
    """How long a move of so many bytes takes, at so many bits a second."""
    return size * 8 / rate


def added_slowdown(moves: float, size: float, runtime: float, rate: float = UPLOAD) -> float:
    """By how much so many moves raise the slowdown of a job of so many hours."""
    return moves * transfer_seconds(size, rate) / (3600 * runtime)
