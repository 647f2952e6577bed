"""Which of the favourite estimates is how popular: the pool algorithm.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Modeling User Runtime Estimates. JSSPP 2005 (LNCS 3834), section 6 and
Table 6. A *top-20 time rank* (ttr) is an estimate's place among the 20 most popular ones in order of time,
where the maximum has 0 and the others 1 to 19; a *popularity rank* is 1 for the most popular.

Decisions: the maximum's ranks are in the pool too, as in the authors' published code (read literally, the
paper begins to insert at ttr 1, and then the rank that one log gives to its maximum could never come up four
times). Where given ranks empty the pool, the smallest rank that is left is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

#: Popularity ranks of a ttr (row) in the logs SDSC-106, CTC, KTH4H, BLUE: the paper's Table 6.
RANKS = (
    (3, 1, 1, 1), (1, 3, 4, 6), (4, 4, 10, 5), (17, 2, 14, 3), (13, 12, 20, 7),
    (7, 9, 2, 2), (8, 8, 3, 18), (18, 18, 7, 19), (2, 6, 12, 4), (6, 7, 6, 11),
    (16, 11, 19, 20), (10, 20, 5, 9), (5, 16, 18, 10), (15, 5, 16, 14), (14, 14, 9, 13),
    (19, 13, 17, 16), (11, 10, 15, 15), (12, 15, 13, 17), (9, 17, 8, 8), (20, 19, 11, 12),
)  # fmt: skip

#: Favourite estimates that have a place in the table.
HEAD = len(RANKS)
_LOGS = len(RANKS[0])


class Draws(Protocol):
    """What is used of :class:`numpy.random.Generator`, so that tests can say what is drawn."""

    def integers(self, high: int, /) -> Any:
        """A whole number from 0 to ``high`` - 1."""
        ...


def popularity(draws: Draws, given: Mapping[int, int] | None = None, size: int = HEAD) -> list[int]:
    """Popularity rank of each ttr from 0 to ``size`` - 1: a permutation of 1 to ``size``.

    ``given``: ttr -> rank of estimates whose popularity is known. Of fewer than 20, the
    others' ranks are counted among themselves.
    """
    given = dict(given or {})
    reserved = set(given.values())
    chosen: set[int] = set()
    pool: list[int] = []
    found: list[int] = []
    for ttr, row in enumerate(RANKS):
        pool = sorted([*pool, *(rank for rank in row if rank not in chosen and rank not in reserved)])
        copies = Counter(pool)
        full = [rank for rank, count in copies.items() if count == _LOGS]
        if ttr in given:
            rank = given[ttr]
        elif ttr == 0 and 1 not in reserved:
            rank = 1
        elif full:
            rank = min(full)
        elif pool:
            rank = min(pool[int(draws.integers(len(pool)))] for _ in range(2))
        else:
            rank = min(set(range(1, HEAD + 1)) - chosen - reserved)
        found.append(rank)
        chosen.add(rank)
        pool = [one for one in pool if one != rank]
    open_ttrs = sorted((ttr for ttr in range(size) if ttr not in given), key=lambda ttr: found[ttr])
    left = (rank for rank in range(1, size + 1) if rank not in reserved)
    return [rank for _, rank in sorted([*given.items(), *zip(open_ttrs, left, strict=True)])]
