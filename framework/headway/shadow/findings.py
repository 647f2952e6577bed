"""What a shadow report finds: each quantity of the batch system's schedule beside headway's.

All of it is plain values, which `--json` prints and the page shows.
"""

from __future__ import annotations

import msgspec

from headway.shadow.intervals import Compared


class Row(msgspec.Struct, frozen=True):
    """The jobs of a pool, an account, ..."""

    name: str
    #: Jobs that are compared.
    jobs: int
    #: Mean wait, seconds; mean bounded slowdown (10 s); share of the processors in use, of all jobs that ran.
    wait: Compared
    slowdown: Compared
    use: Compared


class Grouping(msgspec.Struct, frozen=True):
    """A table: the jobs by something."""

    by: str
    rows: list[Row]
    note: str = ""


class Span(msgspec.Struct, frozen=True):
    """A time in which nothing was missed; times are seconds since the epoch."""

    begin: float
    end: float
    jobs: int
    compared: int


class Missing(msgspec.Struct, frozen=True):
    """A time of which nothing is known."""

    begin: float
    end: float
    why: str
    #: It hid nothing, and was bridged.
    bridged: bool


class Counted(msgspec.Struct, frozen=True):
    """Jobs of a kind."""

    what: str
    jobs: int


class Delay(msgspec.Struct, frozen=True):
    """How long starts and ends take in the emulation: median, seconds."""

    start: float
    end: float
    #: Of how many starts and ends that is known; 0 starts: the start's delay is assumed.
    starts: int
    ends: int
    whence: str


class Findings(msgspec.Struct, frozen=True):
    """The report. Times are seconds since the epoch, waits and delays seconds, shares of 1."""

    cluster: str
    #: What decided in the emulation.
    policy: str
    plugins: list[str]
    begin: float
    end: float
    #: The time zone of the hours of the day.
    zone: str
    #: Jobs that are compared.
    jobs: int
    wait: Compared
    slowdown: Compared
    use: Compared
    #: Median and 95th percentile of the waits: of the batch system, of headway.
    median_wait: tuple[float | None, float | None]
    p95_wait: tuple[float | None, float | None]
    tables: list[Grouping]
    stretches: list[Span]
    gaps: list[Missing]
    #: Jobs that are not compared, and jobs that are but need a word.
    left_out: list[Counted]
    noted: list[Counted]
    remarks: list[str]
    delay: Delay
    draws: int
    seed: int
    headway_version: str
