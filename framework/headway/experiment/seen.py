"""What a campaign's workloads look like before anything runs, and what of their traces does not run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from headway.experiment.campaign import Campaign, drawn, seeds_of, workload_facts
from headway.experiment.facts import WorkloadFacts
from headway.plugins import Catalogue
from headway.results import Refused
from headway.workload import Trace
from headway.workload.formats import problems


def looked_at(plan: Campaign, catalogue: Catalogue, warn: Callable[[str], None]) -> Iterator[WorkloadFacts]:
    """The facts of each scenario with its first seed; ``warn`` is told once a trace what was left out of
    it."""
    told: set[str] = set()
    for scenario in plan.scenarios:
        seed = seeds_of(scenario, plan.seeds)[0]
        found = drawn(scenario, seed, catalogue)
        if found.trace is not None and scenario.trace not in told:
            told.add(scenario.trace)
            for line in left_out(found.trace, found.refused):
                warn(line)
        yield workload_facts(scenario, seed, found)


def left_out(trace: Trace, refused: Sequence[Refused]) -> list[str]:
    """What of a trace does not run: its lines, and jobs that cannot run here."""
    alike: dict[str, list[Refused]] = {}
    for one in refused:
        # The numbers differ from job to job.
        alike.setdefault(re.sub(r" \(.*?\)", "", one.reason), []).append(one)
    said = problems(trace)
    for jobs in alike.values():
        count = f"{len(jobs):,} jobs left out, first" if len(jobs) > 1 else "1 job left out,"
        said.append(f"{trace.path}: {count} job {jobs[0].job_id}: {jobs[0].reason}")
    return said
