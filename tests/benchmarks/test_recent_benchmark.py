"""What predictions cost: EASY with `recent` against EASY alone, CPU seconds of the whole loop.

`make bench ARGS="-k recent"`. Three runs in turns: EASY; EASY with a `recent` that is told all and asked,
but whose answers do not count, so that the schedule is EASY's; and EASY with `recent`, whose schedule is
another one, with more instants, because jobs outlive their predictions.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import pytest

from headway.emulation import emulate
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult
from headway.state import Job, State
from headway.workload import TraceJob, read_swf, trace_jobs
from headway_plugins.prediction.recent import Recent

pytestmark = [pytest.mark.benchmark, pytest.mark.traces]

#: Runs of each, of which the fastest counts.
ROUNDS = 3


class Silent(Recent):
    """Learns and predicts as `recent`, and keeps it to itself."""

    @hookimpl
    def predict_runtime(self, job: Job, state: State) -> float | None:
        super().predict_runtime(job, state)
        return None


class Shelf(Catalogue):
    """What is installed, and the plugin above."""

    def get(self, name: str, where: str = "plugins") -> type:
        return Silent if name == "silent" else super().get(name, where)


def ran(jobs: Sequence[TraceJob], processors: int, *plugins: str) -> tuple[float, RunResult]:
    """CPU seconds of a run, and what it produced."""
    enabled = [PluginConfig(name) for name in plugins]
    began = process_time()
    result = emulate(ClusterDescription.flat(processors), jobs, enabled, Shelf(), label="run")
    return process_time() - began, result


@pytest.mark.parametrize("pattern", ["SDSC-BLUE*", "KTH-SP2*"])
def test_easy_with_predictions_against_easy_alone(trace_dir: Path, pattern: str) -> None:
    trace = read_swf(next(trace_dir.glob(pattern)))
    assert trace.max_processors is not None
    jobs, _ = trace_jobs(trace, trace.max_processors)
    kinds = {"EASY": ("easy",), "silent": ("easy", "silent"), "recent": ("easy", "recent")}
    spent: dict[str, list[float]] = {kind: [] for kind in kinds}
    results = {}
    for _ in range(ROUNDS):
        for kind, plugins in kinds.items():
            seconds, results[kind] = ran(jobs, trace.max_processors, *plugins)
            spent[kind].append(seconds)
            assert len(results[kind].jobs) == len(jobs)
    starts = {kind: [job.start_time for job in result.jobs] for kind, result in results.items()}
    assert starts["silent"] == starts["EASY"]
    least = min(spent["EASY"])
    print(
        f"\n{pattern}: {len(jobs)} jobs; "
        + "; ".join(
            f"{kind} {min(spent[kind]):.2f} s, {min(spent[kind]) / least:.2f} times, "
            f"{results[kind].cycles} cycles"
            for kind in kinds
        ),
        file=sys.__stderr__,
    )
