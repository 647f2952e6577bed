"""`headway bundle` of an ordinary user beside headway's own daemon, which drives a real Slurm."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bundle_user import Bundles, headway_for
from live_daemon import Daemon
from real_systems.slurm import FILTER

pytestmark = [
    pytest.mark.slurm,
    # The bundle's jobs run headway, and the system that 24.11 is in has no Python with its libraries.
    pytest.mark.installed_slurm,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be an ordinary user beside headway's own"),
]
USER = "nobody"


@pytest.fixture
def daemon(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """The filter keeps all jobs until headway starts them; its socket is everybody's to ask."""
    cluster = slurm_factory(*FILTER, nodes=2, cpus=2)
    made = Daemon(cluster, tmp_path, service={"socket": str(cluster.root / "headway.sock")})
    made.start()
    yield made
    made.clean_up()


@pytest.fixture
def bundles(daemon: Daemon) -> Iterator[Bundles]:
    cluster = daemon.cluster
    run = partial(cluster.run, user=USER)
    words = (
        "--system", "slurm", "--listen", "127.0.0.1", "--socket", str(cluster.root / "headway.sock"),
        "--confirm", "10m",
    )  # fmt: skip
    program = headway_for(USER, cluster.root, run)
    made = Bundles(cluster.root / "user", program, run, pwd.getpwnam(USER).pw_uid, words)
    yield made
    for process in made.processes("manage"):
        process.kill()


def test_slots_come_from_headways_plan_and_headway_starts_what_was_put_into_them(
    daemon: Daemon, bundles: Bundles
) -> None:
    cluster = daemon.cluster
    others = [cluster.submit(count, 600, hold=False, minutes=30) for count in (2, 1)]
    daemon.until(lambda: all(cluster.state(job) == "RUNNING" for job in others), what="the others run")
    bundles.hold()
    bundle = bundles.submit()
    first = bundles.until_begun(0, "it begins")
    # Four processes share the processor that headway's plan left.
    assert len({row[3] for row in first}) == 1
    cluster.run("scancel", others[1])
    second = bundles.until_begun(1, "it spreads")
    bundles.go()
    assert len({row[3] for row in second}) == 2 and sum(row[2] for row in second) > 0
    result = bundles.done(bundle)
    assert result["exit_code"] == 0 and bundles.right, bundles.said()
    # The job that the user knows is made small, and headway starts it.
    first_job = result["placeholder"]
    daemon.until(lambda: cluster.state(first_job) == "COMPLETED", what="the original request ends")
    started = {start.job_id for _, start in daemon.starts()}
    state = bundles.known(bundle)["state"]
    assert {one["job"] for one in state["subjobs"]} <= started
    assert daemon.stop() == 0
