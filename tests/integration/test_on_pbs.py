"""What must hold on each real batch system, on a real OpenPBS of three hosts."""

from __future__ import annotations

import re
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


class TestChangingPools(ChangingPools): ...


class TestSharedNodes(SharedNodes): ...


@pytest.mark.long
class TestBundling(Bundling):
    environment = ("PATH=/opt/pbs/bin:/usr/bin:/bin",)
    queue = "hwtest"

    def start(self, system: Pbs, job: str, nodes: int) -> None:
        where = "+".join(f"({host}:ncpus=1)" for host in ("pbsa", "pbsb")[:nodes])
        system.server.run("qrun", "-H", where, job)

    def exit_code(self, system: Pbs, job: str) -> int | None:
        found = re.search(r"Exit_status = (\d+)", system.server.call("qstat", "-xf", job).stdout)
        return int(found[1]) if found else None

    def occupy(self, system: Pbs) -> str:
        job = system.qsub("2:ncpus=7+1:ncpus=8", seconds=600, minutes=30, user="bob")
        system.server.run("qrun", "-H", "(pbsa:ncpus=7)+(pbsb:ncpus=7)+(pbsc:ncpus=8)", job)
        return job

    def give_back(self, system: Pbs, job: str) -> None:
        system.server.run("qdel", job)
