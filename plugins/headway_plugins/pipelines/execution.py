"""How long a pipeline runs with so many copies, in emulation.

Ours, not the paper's, which ran real programs; for orders only. Copies are started one after the other, then
the pipeline is as fast as its slowest filter:

    sum of start-ups x copies + max over filters of E x b / copies at work

where no more copies of a reading filter work than nodes have its data, and b is how much more a filter
receives because of a broadcast: its copies, for the share of its time that it spends receiving. With a copy
of every filter on every processor (AS) all filters share the processors, and lose something by it. With one
copy of each filter it is the controlled run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway_plugins.pipelines.pipeline import Pipeline
from headway_plugins.pipelines.profiles import Profile


@dataclass(frozen=True)
class ExecutionModel:
    """What running in parallel costs."""

    #: Seconds to start a copy, and one of a filter that reads.
    start_up: float = 1.0
    reading_start_up: float = 4.0
    #: Share of its time that a filter spends receiving what is broadcast.
    receiving: float = 0.1
    #: How much more work it is where all filters share all processors.
    crowding: float = 0.3

    def seconds(self, pipeline: Pipeline, profile: Profile, copies: Sequence[int], processors: int) -> float:
        """From the start to the end."""
        if max(copies) == 1:
            return profile.wall
        starts = [
            self.start_up if one.data_nodes is None else self.reading_start_up for one in pipeline.filters
        ]
        started = sum(each * count for each, count in zip(starts, copies, strict=True))
        if min(copies) >= processors and len(copies) > 1:
            return started + (1.0 + self.crowding) * sum(profile.seconds) / processors
        # A program that has fewer processors than copies shares them.
        share = max(sum(copies) / processors, 1.0)
        slowest = 0.0
        for j, (one, busy, count) in enumerate(zip(pipeline.filters, profile.seconds, copies, strict=True)):
            working = count if one.data_nodes is None else min(count, one.data_nodes)
            more = 1.0
            if pipeline.filters[j - 1].broadcast:
                more += self.receiving * (count - 1)
            slowest = max(slowest, busy * more / working)
        return started + share * slowest
