"""Jobs that have their nodes to themselves, as on machines that give out nothing smaller than a node."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headway.workload.jobs import TraceJob


def jobs_on_whole_nodes(jobs: Sequence[TraceJob]) -> list[TraceJob]:
    """The jobs, each exclusively on its nodes."""
    return [
        msgspec.structs.replace(
            trace,
            job=msgspec.structs.replace(
                trace.job, request=msgspec.structs.replace(trace.job.request, exclusive=True)
            ),
        )
        for trace in jobs
    ]
