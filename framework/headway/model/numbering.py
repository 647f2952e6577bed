"""The order in which a batch system numbers its jobs, read off their ids.

``25_2`` comes before ``25_10``, and both come before ``26``; likewise ``25[2].server`` and ``siteA:25_2``. An
id is taken as its digits and what stands between them, so all ids compare, whatever they look like.
"""

from __future__ import annotations

import re

#: Text, a number, text, a number, ..., text; and the id itself, where two read alike.
Number = tuple[tuple[str | int, ...], str]

#: No number has more digits than Python converts.
_DIGITS = re.compile(r"([0-9]{1,18})")


def number(job_id: str) -> Number:
    """What ids are sorted by; equal of equal ids alone."""
    parts: list[str | int] = [*_DIGITS.split(job_id)]
    for at in range(1, len(parts), 2):
        parts[at] = int(parts[at])
    return tuple(parts), job_id
