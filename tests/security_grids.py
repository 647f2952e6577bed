"""Seven jobs on two sites, for several tests."""

from __future__ import annotations

from headway_plugins.security.grid import Grid, GridJob
from headway_plugins.security.levels import at_levels, need_of, profile_2005

GRID = Grid((4, 4), ((5e6, 5e6), (5e6, 5e6)))

#: name, arrival, processors, execution, KB, deadline, home, MB, ranges (e, g, a), drawn (e, g, a).
ROWS = (
    ("A", 0, 3, 100, 20000, 160, 1, 50, (0.1, 0.9), (0.1, 1.0), (0.3, 0.9), (0.5, 0.5, 0.6)),
    ("B", 0, 2, 60, 10000, 130, 1, 40, (0.3, 0.9), (0.1, 0.7), (0.3, 0.9), (0.6, 0.3, 0.3)),
    ("C", 10, 4, 50, 50000, 120, 2, 30, (0.1, 0.8), (0.5, 1.0), (0.6, 0.9), (0.4, 0.7, 0.9)),
    ("D", 20, 2, 80, 5000, 200, 1, 100, (0.1, 0.9), (0.1, 1.0), (0.3, 0.9), (0.9, 0.9, 0.9)),
    ("E", 20, 5, 10, 1000, 900, 2, 10, (0.1, 0.9), (0.1, 1.0), (0.3, 0.9), (0.5, 0.5, 0.6)),
    ("F", 30, 4, 40, 40000, 175, 2, 20, (0.5, 0.9), (0.1, 0.9), (0.3, 0.6), (0.7, 0.2, 0.3)),
    ("G", 40, 1, 30, 2000, 95, 1, 10, (0.1, 0.9), (0.1, 1.0), (0.3, 0.9), (0.2, 0.4, 0.3)),
)


def asked(row: tuple) -> dict:
    """The job's attribute ``security``."""
    return {
        "bytes": row[4] * 1e3,
        "encryption": list(row[8]),
        "integrity": list(row[9]),
        "authentication": list(row[10]),
    }


def example() -> list[GridJob]:
    jobs = []
    for row in ROWS:
        name, arrival, processors, execution, _, deadline, home, volume, *_, drawn = row
        need = need_of(asked(row), profile_2005(), name)
        jobs.append(
            GridJob(
                name, arrival, processors, execution, deadline, home - 1, volume * 1e6, need,
                at_levels(need, drawn),
            )
        )  # fmt: skip
    return jobs
