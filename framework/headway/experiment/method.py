"""What a campaign says of its own method: the key ``method`` of its definition.

The questions come from E. Frachtenberg and D. G. Feitelson, "Pitfalls in parallel job scheduling
evaluation", JSSPP 2005, that no program can answer from the numbers; :mod:`headway.experiment.rulebook`
asks them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.errors import UserError
from headway.experiment.planned_starts import RealCluster
from headway.inputs.durations import seconds_of

#: How jobs come: one by one, whatever the schedule; all at once; or when earlier ones have ended.
SYSTEMS = ("open", "static", "closed")


@dataclass(frozen=True)
class Trim:
    """What is left out at one end of a run; nothing unless one of these is set."""

    automatic: bool = False
    jobs: int | None = None
    #: Seconds of submissions.
    seconds: float | None = None

    def __str__(self) -> str:
        if self.automatic:
            return "auto"
        if self.jobs is not None:
            return f"{self.jobs} jobs"
        return "none" if self.seconds is None else f"{self.seconds:g} s"


@dataclass(frozen=True)
class Method:
    """The answers; "" is none."""

    system: str = "open"
    warmup: Trim = Trim()
    cooldown: Trim = Trim()
    #: Wanted half width of an interval, as a share of its mean.
    precision: float = 0.1
    estimates: str = ""
    interactive: str = ""
    usage: str = ""
    applications: str = ""
    #: How much time the scheduler and the batch system take, where the emulation takes none.
    overhead: str = ""
    #: What was measured on a real cluster, and the file that says it; None and "": nothing.
    real: RealCluster | None = None
    measured: str = ""
    #: Rule -> why it is not kept here.
    accept: Mapping[str, str] = field(default_factory=dict)


_JOBS = re.compile(r"(\d+) jobs?")


def trim_of(text: str, where: str) -> Trim:
    """``auto``, ``none``, ``500 jobs`` or a time such as ``2d``; :class:`UserError`, led by ``where``, for
    others."""
    text = text.strip()
    if text == "auto":
        return Trim(automatic=True)
    if text == "none":
        return Trim()
    if found := _JOBS.fullmatch(text):
        return Trim(jobs=int(found.group(1)))
    seconds = seconds_of(text)
    if seconds is None:
        raise UserError(
            f"{where}: expected auto, none, such as 500 jobs, or a time such as 2d, found {text!r}"
        )
    return Trim(seconds=float(seconds))
