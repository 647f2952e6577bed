"""What `explain` and a dry run foretell of a real Slurm whose queue has a history.

Slurm lists what has ended for MinJobAge seconds, which is five minutes here.
"""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon

pytestmark = pytest.mark.slurm

#: Seconds by which times may differ that one side writes down in whole seconds.
ROUNDING = 2.0


@pytest.fixture
def headway(slurm_cluster: Any, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(slurm_cluster, tmp_path)
    yield made
    made.clean_up()


def foretold(headway: Daemon, directory: Path) -> dict[str, float | None]:
    """When a dry run of the cluster as it is now starts each job (epoch seconds)."""
    done = headway.command("dry-run", "--from-cluster", "--out", str(directory))
    assert done.returncode == 0, done.stderr
    with (directory / "jobs.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {row["job_id"]: float(row["start_time"]) if row["start_time"] else None for row in rows}


def explained(headway: Daemon, job: str) -> float:
    """When `headway explain` expects a job to start (epoch seconds)."""
    done = headway.command("explain", job, "--fresh")
    found = re.search(r"expected to start at (\d+-\d+-\d+ \d+:\d+:\d+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    return time.mktime(time.strptime(found[1], "%Y-%m-%d %H:%M:%S"))


def test_what_has_ended_is_not_planned_around(headway: Daemon, tmp_path: Path) -> None:
    """Jobs and elements of four hours ended, were cancelled, were requeued, or still leave their nodes."""
    cluster = headway.cluster
    hours = 240
    gone = [cluster.submit(4, 1, hold=False, minutes=hours) for _ in range(3)]
    array = cluster.submit(4, 1, hold=False, minutes=hours, array="1-4")
    gone += [f"{array}_{element}" for element in range(1, 5)]
    cancelled = [cluster.submit(4, 600, hold=False, minutes=hours), cluster.submit(4, 600, minutes=hours)]
    cluster.until(lambda: cluster.state(cancelled[0]) == "RUNNING", what="it runs")
    again = cluster.submit(4, 600, hold=False, minutes=hours, requeue=True)
    cluster.until(lambda: cluster.state(again) == "RUNNING", what="it runs")
    cluster.scontrol("requeuehold", again)
    for job in cancelled:
        cluster.run("scancel", job)
    cluster.until(lambda: all(cluster.state(one) == "COMPLETED" for one in gone), what="all that is over")
    cluster.until(
        lambda: all(cluster.state(one) == "CANCELLED" for one in cancelled)
        and cluster.state(again) == "PENDING", what="the others have gone",
    )  # fmt: skip

    runs = cluster.submit(4, 600, hold=False, minutes=7)
    cluster.until(lambda: cluster.state(runs) == "RUNNING", what="it runs")
    waits = cluster.submit(16, 1, nodes=4, minutes=3)
    due = cluster.jobs()[runs]["start_time"] + 7 * 60
    starts = foretold(headway, tmp_path / "out")
    assert set(starts) == {again, runs, waits}
    # An administrator's hold has no end that anybody knows.
    assert starts[again] is None
    assert starts[waits] == pytest.approx(due, abs=ROUNDING)
    assert explained(headway, waits) == pytest.approx(due, abs=ROUNDING)
    assert (
        "\n1 job waits for something that cannot be foreseen"
        in headway.command("dry-run", "--from-cluster").stdout
    )
