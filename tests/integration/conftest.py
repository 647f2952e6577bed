"""A real throw-away Slurm for each test, fixture ``slurm_cluster``, or for many, ``filtered_slurm``.

Needs Debian's munge, slurmctld, slurmd and slurm-client. Where they are missing the tests are
skipped with their names; with CI=true in the environment that is a failure instead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster, missing_packages

pytest.register_assert_rewrite("cases", "real_systems")

#: Whether a test, or what was set up for it, has failed.
FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skips, or fails in CI, where Slurm is not installed."""
    if packages := missing_packages():
        text = f"Slurm is not installed; missing Debian packages: {' '.join(packages)}"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(text)
        pytest.skip(text)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@contextlib.contextmanager
def started_clusters(
    keep_logs: Callable[[], Path | None] = lambda: None,
) -> Iterator[Callable[..., SlurmCluster]]:
    """What starts clusters; they are gone afterwards, but for their logs if there is a place for them."""
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
        kept = keep_logs()
        for cluster in started:
            if kept is not None:
                with contextlib.suppress(OSError):
                    shutil.copytree(cluster.root / "log", kept / cluster.root.name)
            cluster.stop()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def slurm_factory(
    slurm: None, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., SlurmCluster]]:
    """Start clusters: ``slurm_factory(nodes=4, cpus=4, *more_words_of_testcluster_start)``.

    The daemons' logs of a test that failed stay in its ``tmp_path``.
    """

    def kept() -> Path | None:
        return tmp_path / "slurm-logs" if request.node.stash.get(FAILED, False) else None

    with started_clusters(kept) as start:
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
