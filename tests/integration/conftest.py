"""A real throw-away Slurm for each test, fixture ``slurm_cluster``, or for many, ``filtered_slurm``.

Each test runs on this machine's Slurm and on 24.11 (``slurm_releases.py``), on 24.11 as a ``slow`` one unless
it is marked ``both_slurms``. Where a Slurm is missing its tests are skipped with the reason; with CI=true in
the environment that is a failure instead.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster
from slurm_releases import INSTALLED, SLURM24, Release

pytest.register_assert_rewrite("cases", "real_systems")

#: Whether a test, or what was set up for it, has failed.
FAILED = pytest.StashKey[bool]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of a real Slurm is one for each release, those of each release in a group of their own."""
    if "slurm" not in metafunc.fixturenames:
        return
    test = metafunc.definition
    releases = [pytest.param(INSTALLED, id=INSTALLED.name)]
    if not test.get_closest_marker("installed_slurm"):
        group = test.get_closest_marker("xdist_group")
        name = group.args[0] if group else test.nodeid.partition("::")[0]
        marks = [pytest.mark.xdist_group(f"{name}@{SLURM24.name}")]
        marks += [] if test.get_closest_marker("both_slurms") else [pytest.mark.slow]
        releases.append(pytest.param(SLURM24, id=SLURM24.name, marks=marks))
    metafunc.parametrize("slurm", releases, indirect=True, scope="session")


@pytest.fixture(scope="session")
def slurm(request: pytest.FixtureRequest) -> Release:
    """The Slurm that clusters are of; skips, or fails in CI, where it is missing."""
    release: Release = request.param
    release.require()
    return release


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


def _copied(lua: Path, directory: Path) -> str:
    """A copy of a submit filter. The shipped filter would let jobs go after some minutes: no test has a
    heartbeat in the shipped place, nor may its epoch be any other cluster's."""
    copy = directory / lua.name
    text = lua.read_text().replace('HEARTBEAT = "/run/headway/heartbeat"', 'HEARTBEAT = ""')
    copy.write_text(text.replace('FENCE = "/var/lib/slurm/slurmctld/headway.epoch"', 'FENCE = ""'))
    return str(copy)


@contextlib.contextmanager
def started_clusters(
    release: Release, keep_logs: Callable[[], Path | None] = lambda: None
) -> Iterator[Callable[..., SlurmCluster]]:
    """What starts clusters; they are gone afterwards, but for their logs if there is a place for them."""
    started: list[SlurmCluster] = []
    # Slurm's sockets need a short path, and job users must be able to enter it.
    base = Path(tempfile.mkdtemp(prefix="hw-"))
    base.chmod(0o755)

    def start(*words: str, nodes: int = 4, cpus: int = 4) -> SlurmCluster:
        cluster = SlurmCluster(base / f"c{len(started)}", release)
        # A Slurm that is in another system sees this directory; it may not see the checkout.
        if "--lua" in words:
            place = words.index("--lua") + 1
            words = (*words[:place], _copied(Path(words[place]), base), *words[place + 1 :])
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
    slurm: Release, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., SlurmCluster]]:
    """Start clusters: ``slurm_factory(nodes=4, cpus=4, *more_words_of_testcluster_start)``.

    The daemons' logs of a test that failed stay in its ``tmp_path``.
    """

    def kept() -> Path | None:
        return tmp_path / "slurm-logs" if request.node.stash.get(FAILED, False) else None

    with started_clusters(slurm, kept) as start:
        yield start


@pytest.fixture
def slurm_cluster(slurm_factory: Callable[..., SlurmCluster]) -> SlurmCluster:
    """A Slurm of 4 nodes with 4 CPUs each, partition ``batch``."""
    return slurm_factory()


@pytest.fixture(scope="session")
def filtered_slurm(slurm: Release) -> Iterator[SlurmCluster]:
    """The same with the submit filter, so that users' jobs enter held; for all tests: leave it as it was."""
    # Here, so that assertions in it are rewritten.
    from real_systems.slurm import FILTER

    with started_clusters(slurm) as start:
        yield start(*FILTER)
