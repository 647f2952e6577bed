"""What must hold on each real batch system, on a real LSF (volclava) of three hosts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_servers import BatchServer
from cases.bundling import Bundling
from cases.clock import ClockSteps
from cases.hostile import Hostile
from cases.operating import Operating
from cases.pools import ChangingPools
from cases.shared_nodes import SharedNodes
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


class TestChangingPools(ChangingPools): ...


class TestSharedNodes(SharedNodes): ...


@pytest.mark.long
class TestBundling(Bundling):
    """In the queue whose jobs LSF dispatches itself."""

    environment = ("PATH=/opt/volclava/bin:/usr/bin:/bin", "LSF_ENVDIR=/opt/volclava/etc")
    queue = "normal"

    def exit_code(self, system: Lsf, job: str) -> int | None:
        return 0 if " DONE " in system.server.call("bjobs", "-aw", job).stdout else None

    def occupy(self, system: Lsf) -> str:
        jobs = []
        for host, slots in (("lsfa", 3), ("lsfb", 3), ("lsfc", 2), ("lsfc", 2)):
            words = ("-q", "normal", "-n", str(slots), "-m", host, "-W", "30")
            jobs.append(system.bsub(*words, str(system.script(600)), user="bob"))
        system.until(lambda: all(map(system.runs, jobs)), "the others run")
        return jobs[-1]

    def give_back(self, system: Lsf, job: str) -> None:
        system.cancel(job)
