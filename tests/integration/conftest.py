"""A real throw-away Slurm for each test, fixture ``slurm_cluster``, or for many, ``filtered_slurm``.

Needs Debian's munge, slurmctld, slurmd and slurm-client. Where they are missing the tests are
skipped with their names; with CI=true in the environment that is a failure instead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster, missing_packages

pytest.register_assert_rewrite("cases", "real_systems")


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skips, or fails in CI, where Slurm is not installed."""
    if packages := missing_packages():
        text = f"Slurm is not installed; missing Debian packages: {' '.join(packages)}"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(text)
        pytest.skip(text)


@contextlib.contextmanager
def started_clusters() -> Iterator[Callable[..., SlurmCluster]]:
    """What starts clusters; they are gone afterwards."""
    started: list[SlurmCluster] = []
    # Slurm's sockets need a short path, and job users must be able to enter it.
    base = Path(tempfile.mkdtemp(prefix="hw-"))
    base.chmod(0o755)

    def start(*words: str, nodes: int = 4, cpus: int = 4) -> SlurmCluster:
        cluster = SlurmCluster(base / f"c{len(started)}")
        parameters = ("--set", "SchedulerParameters=batch_sched_delay=0")
        cluster.launcher("start", "--nodes", str(nodes), "--cpus", str(cpus), *parameters, *words)
        started.append(cluster)
        return cluster

    try:
        yield start
    finally:
        for cluster in started:
            cluster.stop()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def slurm_factory(slurm: None) -> Iterator[Callable[..., SlurmCluster]]:
    """Start clusters: ``slurm_factory(nodes=4, cpus=4, *more_words_of_testcluster_start)``."""
    with started_clusters() as start:
        yield start


@pytest.fixture
def slurm_cluster(slurm_factory: Callable[..., SlurmCluster]) -> SlurmCluster:
    """A Slurm of 4 nodes with 4 CPUs each, partition ``batch``."""
    return slurm_factory()


@pytest.fixture(scope="session")
def filtered_slurm(slurm: None) -> Iterator[SlurmCluster]:
    """The same with the submit filter, so that users' jobs enter held; for all tests: leave it as it was."""
    # Here, so that assertions in it are rewritten.
    from real_systems.slurm import FILTER

    with started_clusters() as start:
        yield start(*FILTER)
