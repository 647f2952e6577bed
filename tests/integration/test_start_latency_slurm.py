"""How long a start takes on a real Slurm while thousands of jobs wait, and what of it is headway's."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_daemon import Daemon, Diary

pytestmark = [pytest.mark.slurm, pytest.mark.benchmark]

NODES, CPUS = 16, 8
#: Elements of one array; Slurm's own records, once something of them was changed.
ARRAY = 1000
#: For real hangs only.
PATIENCE = 900.0


@pytest.fixture
def daemon(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    cluster = slurm_factory("--set", "MaxArraySize=2000", nodes=NODES, cpus=CPUS)
    made = Daemon(cluster, tmp_path, options={"poll_interval": 1.0})
    yield made
    made.clean_up()


@pytest.mark.parametrize("pending", [600, 5000])
def test_starts_under_many_pending_jobs(daemon: Daemon, pending: int) -> None:
    """Prints what was measured, which depends on the machine. Each processor is given several times."""
    cluster, diary = daemon.cluster, Diary(daemon.cluster)
    for first in range(0, pending, ARRAY):
        last = min(ARRAY, pending - first) - 1
        script = diary.script("$((10+SLURM_ARRAY_TASK_ID%20))")
        job = cluster.submit(1, minutes=5, script=script, array=f"0-{last}")
        # A record of its own for each element, as single jobs have.
        cluster.scontrol("update", f"JobId={job}_[1-{last}]", "Comment=apart")
    daemon.start()
    wanted = 4 * NODES * CPUS
    daemon.until(lambda: len(diary.begun()) >= wanted, PATIENCE, "they start")
    asked = {}
    behind = f"{job}_{last}"
    for words in (("status",), ("explain", behind), ("explain", behind, "--fresh")):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = daemon.command(*words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stdout + done.stderr
        asked[" ".join((words[0], *words[2:]))] = (
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        )
    assert daemon.stop(seconds=PATIENCE) == 0
    decided = {start.job_id: now for now, start in daemon.starts()}
    begun = {job: float(at) for what, job, at in diary.lines() if what == "begin"}
    assert set(begun) <= set(decided) and set(diary.begun().values()) == {1}
    took = [begun[job] - now for job, now in decided.items() if job in begun]
    half, most = np.quantile(took, [0.5, 0.95])
    print(
        f"{pending} pending, {len(took)} starts, from the decision to the script: median {half:.2f} s, "
        f"95 % {most:.2f} s, longest {max(took):.2f} s; load {os.getloadavg()[0]:.0f} on {os.cpu_count()}; "
        + ", ".join(f"{what} {seconds:.1f} s of processor time" for what, seconds in asked.items())
    )
