"""What an agent costs on a node with 200 jobs: less than 1 % of one processor."""

from __future__ import annotations

import getpass
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway_adapters.node_agent.service import Agent

pytestmark = pytest.mark.benchmark

JOBS = 200
#: Seconds between two looks, as `headway node-agent serve` has it by default.
INTERVAL = 5.0


def job(number: int) -> subprocess.Popen[bytes]:
    """A job of three processes, once they are there."""
    environment = {**os.environ, "SLURM_JOB_ID": str(90_000 + number)}
    made = subprocess.Popen(
        ["sh", "-c", "sleep 1000 & sleep 1000 & echo; sleep 1000"], env=environment, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert made.stdout is not None
    made.stdout.readline()
    return made


@pytest.fixture
def jobs() -> Iterator[None]:
    made = [job(number) for number in range(JOBS)]
    yield
    for one in made:
        os.killpg(one.pid, 9)
        one.wait()


def test_an_agent_of_200_jobs(jobs: None, tmp_path: Path) -> None:
    agent = Agent(state=tmp_path / "tiers.json", least_user=0, way="idle", note=lambda text: None)
    user = getpass.getuser()
    wishes = {str(90_000 + n): {"tier": "background", "user": user} for n in range(0, JOBS, 2)}
    begun = time.process_time()
    agent.answer({"wishes": wishes})
    first = time.process_time() - begun
    looks = 20
    begun = time.process_time()
    for _ in range(looks):
        agent.look()
        agent.answer({"wishes": wishes})
    each = (time.process_time() - begun) / looks
    print(
        f"\n{JOBS} jobs: the first look {first * 1e3:.0f} ms, each of the others {each * 1e3:.1f} ms of "
        f"processor time: {each / INTERVAL:.2%} of a processor at one every {INTERVAL:g} s"
    )
    assert each / INTERVAL < 0.01
