"""What must hold on each real batch system, on a real LSF (volclava) of three hosts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_servers import BatchServer
from cases.clock import ClockSteps
from cases.hostile import Hostile
from cases.operating import Operating
from real_systems import Lsf

pytestmark = pytest.mark.lsf


@pytest.fixture
def system(lsf_server: BatchServer) -> Iterator[Lsf]:
    with tempfile.TemporaryDirectory(prefix="hw-lsf-") as directory:
        one = Lsf(lsf_server, Path(directory))
        yield one
        one.close()


class TestOperating(Operating): ...


class TestHostile(Hostile): ...


class TestClockSteps(ClockSteps): ...
