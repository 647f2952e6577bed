"""What must hold on each real batch system, on a real Slurm of four nodes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases.clock import ClockSteps
from cases.hostile import Hostile
from cases.operating import Operating
from cases.pools import ChangingPools
from cases.shared_nodes import SharedNodes
from real_systems import Slurm
from slurm_cluster import SlurmCluster

pytestmark = pytest.mark.slurm


@pytest.fixture
def system(filtered_slurm: SlurmCluster) -> Iterator[Slurm]:
    with tempfile.TemporaryDirectory(prefix="hw-slurm-") as directory:
        one = Slurm(filtered_slurm, Path(directory))
        yield one
        one.close()


class TestOperating(Operating): ...


class TestHostile(Hostile): ...


class TestClockSteps(ClockSteps): ...


class TestChangingPools(ChangingPools): ...


@pytest.mark.both_slurms
class TestSharedNodes(SharedNodes): ...
