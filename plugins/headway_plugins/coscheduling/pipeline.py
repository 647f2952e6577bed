"""Stages on several machines, one after another.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5: GUR has no pipelines, but "it would be easy to extend the multiple
usage pattern to pipeline by providing a time offset to each resource".

Ours: stage k is asked for at the start of the metajob and its offset. A later answer slides the start of the
metajob by as much, and the round begins anew. There is no trial. Each ``set`` has the latest end of the
metajob, whatever comes after the stage.
"""

from __future__ import annotations

from headway_plugins.coscheduling.multiple import Refused
from headway_plugins.coscheduling.rounds import Part, Rounds, Steps


def search(rounds: Rounds, slide: dict[str, float]) -> Steps[float]:
    """The start that was found; raises :class:`.multiple.Refused`."""
    metajob = rounds.metajob
    parts = [
        Part(stage.machine, stage.nodes, stage.duration, offset, number)
        for number, (stage, offset) in enumerate(zip(metajob.stages, metajob.offsets(), strict=True), 1)
    ]
    start: float | None = metajob.earliest
    while start is not None and start + metajob.span <= metajob.latest:
        reached = yield from rounds.play(parts, start, slide)
        if reached == start:
            return start
        start = reached
    raise Refused("no start")
