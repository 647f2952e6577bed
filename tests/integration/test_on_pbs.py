"""What must hold on each real batch system, on a real OpenPBS of three hosts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_servers import BatchServer
from cases.clock import ClockSteps
from cases.hostile import Hostile
from cases.operating import Operating
from real_systems import Pbs

pytestmark = pytest.mark.pbs


@pytest.fixture
def system(pbs_server: BatchServer) -> Iterator[Pbs]:
    with tempfile.TemporaryDirectory(prefix="hw-pbs-") as directory:
        one = Pbs(pbs_server, Path(directory))
        yield one
        one.close()


class TestOperating(Operating): ...


class TestHostile(Hostile): ...


class TestClockSteps(ClockSteps): ...
