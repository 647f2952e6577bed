"""The settings of an emulated peer network, beside its policy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headway.errors import UserError
from headway_plugins.wave.draws import Hours
from headway_plugins.wave.zones import Target, Wavezones


class Clock(StrEnum):
    """Which clock the hosts live by."""

    #: Each host lives by the clock of its time zone.
    ZONES = "zones"
    #: All hosts live by one clock; the published figures of policies without wavezones come out so alone.
    SHARED = "shared"


class Search(StrEnum):
    """How hosts are found (:mod:`headway_plugins.wave.discovery`)."""

    RING = "ring"
    RANDOM = "random"
    LOWEST = "lowest"
    GLOBAL = "global"


class Start(StrEnum):
    """Where *ring* begins."""

    POINT = "point"
    OWN = "own"


class LingerCheck(StrEnum):
    """When a job that lingers goes on if its owner leaves again."""

    #: At once; the rest of the wait is dropped.
    AT_ONCE = "at-once"
    #: At the end of the wait only.
    END = "end"


class Order(StrEnum):
    """In which order jobs that lose their hosts or wake up at one instant search."""

    SHUFFLED = "shuffled"
    NUMBER = "number"


class Retry(StrEnum):
    """What happens after a failure, 1 to 3 h later."""

    NO = "no"
    #: The job is submitted again and has to do all of its work.
    SCRATCH = "scratch"
    #: The job is submitted again and goes on from where it failed.
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class Options:
    """As in the paper, where it says; times in hours."""

    clock: Clock = Clock.ZONES
    wavezones: int = 6
    target: Target = Target.JUST_ENTERED
    #: Whether a host that a wave policy chooses must be in night; otherwise any available host of the target
    #: wavezone will do.
    strict: bool = True
    discovery: Search = Search.RING
    tries: int = 5
    hops: int = 2
    start: Start = Start.POINT
    #: How long a job waits; None: 1 to 3 h, drawn.
    linger: Hours | None = None
    linger_check: LingerCheck = LingerCheck.AT_ONCE
    order: Order = Order.SHUFFLED
    retry: Retry = Retry.NO
    #: So long before its host is lost, a job that would search at the loss searches, to have time for its
    #: checkpoint; without a host it stays until the loss.
    lead: Hours = 0
    #: When the run ends.
    until: Hours = 10_000

    def __post_init__(self) -> None:
        """Raises :class:`UserError` for a setting that cannot be."""
        Wavezones(self.wavezones)
        for name, value, least in (("tries", self.tries, 1), ("hops", self.hops, 0), ("lead", self.lead, 0)):
            if value < least:
                raise UserError(f"{name}: expected at least {least}, found {value}")
        if self.linger is not None and not self.linger > 0:
            raise UserError(f"linger: expected more than 0 hours, found {self.linger}")
