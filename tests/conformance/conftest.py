"""The clusters of the conformance suite, each started once: the fixture ``site``.

A real PBS and a real LSF are started where launchers of them are there.
``HEADWAY_CONFORMANCE=pbs`` (or ``lsf``) runs the suite on the real one whose commands are in PATH instead:
see the operators' guide.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sites import (
    EmulatedLsf,
    EmulatedPbs,
    EmulatedSite,
    LsfSite,
    PbsSite,
    RealLsf,
    RealPbs,
    SlurmOverSsh,
    SlurmSite,
)
from slurm_cluster import SlurmCluster
from slurm_releases import INSTALLED, SLURM24, Release
from sshd import Sshd

from headway.conformance import Site

REAL = os.environ.get("HEADWAY_CONFORMANCE", "")
ALL = (
    "emulated", "pbs-emulator", "lsf-emulator-ibm", "lsf-emulator-volclava", "slurm", "slurm24",
    "slurm-over-ssh", "pbs", "lsf",
)  # fmt: skip
#: Second ways to a system that has the whole suite, and its second release: in `make test` they have the part
#: of it that depends on the way, in `make test-all` the whole suite, too.
SECOND_WAYS = ("slurm-over-ssh", "slurm24", "lsf-emulator-volclava")
#: That part: the suite's modules about what is read, how names are quoted, and what happens in an outage.
TRANSPORT = ("seeing", "names", "failing")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each cluster, all tests of one cluster together."""
    if "site" in metafunc.fixturenames:
        names = (REAL,) if REAL else ALL
        marks = {"slurm": [pytest.mark.slurm], "slurm24": [pytest.mark.slurm],
                 "slurm-over-ssh": [pytest.mark.slurm, pytest.mark.sshd],
                 "pbs": [pytest.mark.pbs], "lsf": [pytest.mark.lsf],
                 "pbs-emulator": [pytest.mark.waits], "lsf-emulator-ibm": [pytest.mark.waits],
                 "lsf-emulator-volclava": [pytest.mark.waits]}  # fmt: skip
        if metafunc.cls is not None and metafunc.cls.__module__.rpartition(".")[2] not in TRANSPORT:
            for name in SECOND_WAYS:
                marks[name].append(pytest.mark.slow)
        # Each cluster is started where its tests are, and no worker has to take them all.
        groups = {name: pytest.mark.xdist_group(f"conformance-{name}") for name in names}
        parameters = [pytest.param(name, marks=[*marks.get(name, []), groups[name]]) for name in names]
        metafunc.parametrize("site", parameters, indirect=True, scope="session")


@contextlib.contextmanager
def _throw_away(release: Release) -> Iterator[SlurmCluster]:
    release.require()
    base = Path(tempfile.mkdtemp(prefix="hw-"))
    base.chmod(0o755)
    cluster = SlurmCluster(base / "c", release)
    parameters = "SchedulerParameters=batch_sched_delay=0,bf_interval=1"
    cluster.launcher("start", "--nodes", "4", "--cpus", "4", "--set", parameters)
    yield cluster
    cluster.stop()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def throw_away_slurm() -> Iterator[SlurmCluster]:
    """A Slurm for both ways to it."""
    with _throw_away(INSTALLED) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def throw_away_slurm24() -> Iterator[SlurmCluster]:
    with _throw_away(SLURM24) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The cluster."""
    name: str = request.param
    made: Site
    if name == "emulated":
        made = EmulatedSite()
    elif name == "pbs-emulator":
        made = EmulatedPbs(tmp_path_factory.mktemp("pbs"))
    elif name.startswith("lsf-emulator"):
        made = EmulatedLsf(tmp_path_factory.mktemp("lsf"), name.rpartition("-")[2])
    elif name == "slurm":
        made = SlurmSite(request.getfixturevalue("throw_away_slurm"))
    elif name == "slurm24":
        made = SlurmSite(request.getfixturevalue("throw_away_slurm24"))
    elif name == "slurm-over-ssh":
        server: Sshd = request.getfixturevalue("sshd_factory")()
        made = SlurmOverSsh(request.getfixturevalue("throw_away_slurm"), server)
    elif name == "pbs" and not REAL:
        made = RealPbs(request.getfixturevalue("pbs_server"))
    elif name == "lsf" and not REAL:
        made = RealLsf(request.getfixturevalue("lsf_server"))
    else:
        made = _real(name)
    made.clean()
    yield made
    if not isinstance(made, SlurmSite):
        made.close()


def _real(name: str) -> Site:
    kinds: dict[str, Any] = {"pbs": PbsSite, "lsf": LsfSite}
    if name not in kinds:
        pytest.fail(f"HEADWAY_CONFORMANCE: expected pbs or lsf, found {name!r}")
    settings = {
        key: value
        for key in ("queue", "user")
        if (value := os.environ.get(f"HEADWAY_CONFORMANCE_{key.upper()}"))
    }
    return kinds[name](os.environ, **settings)
