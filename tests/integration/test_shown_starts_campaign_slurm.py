"""Five hundred jobs on a real Slurm whose own commands show the planned starts, sampled all the time.

A plan that moves is shown at `show_rate` commands a second, so a planned start may be shown late by the
seconds that the queue of such commands takes. The test prints how often and how long the two differed.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import HEADWAY, Daemon, Diary
from test_shown_starts_slurm import shown

from headway.service import protocol as p
from headway.service.client import ask

pytestmark = [pytest.mark.slurm, pytest.mark.both_slurms, pytest.mark.campaign]

JOBS = 500
#: Planned starts that are nearer than this may be shown as they were before, seconds.
NEAR = 90.0
#: What may be between the two, seconds.
APART = 300.0
#: So long a difference may last: 500 commands at 10 a second, a look, and a slow machine.
LASTS = 75.0


@pytest.fixture
def daemon(slurm_factory: Any, tmp_path: Path) -> Iterator[Daemon]:
    cluster = slurm_factory(nodes=8, cpus=8)
    made = Daemon(cluster, tmp_path, options={"show_starts": True}, plugins=["conservative", "first-fit"])
    yield made
    made.clean_up()


def planned(daemon: Daemon) -> dict[str, float]:
    """Waiting jobs and their planned starts, as `headway jobs` has them."""
    found: dict[str, float] = {}
    first: int | None = 0
    while first is not None:
        page = ask(Path(f"{daemon.config['journal']}.sock"), p.Jobs(status="pending", first=first)).found
        assert isinstance(page, p.JobPage)
        found |= {job.id: job.planned_start for job in page.jobs if job.planned_start is not None}
        first = page.next
    return found


def submit(cluster: Any, diary: Diary, draw: random.Random) -> dict[str, float]:
    """The jobs; those with a begin time, and that (absolute seconds)."""
    begins: dict[str, float] = {}
    for at in range(JOBS):
        options: dict[str, Any] = {}
        if at % 10 == 0:
            # Slurm counts whole seconds.
            begin = int(time.time()) + draw.randint(300, 1200)
            options["begin"] = subprocess.run(
                ["date", "-d", f"@{begin}", "+%Y-%m-%dT%H:%M:%S"], capture_output=True, text=True, check=True
            ).stdout.strip()
        minutes = draw.choice((1, 1, 2, 3))
        # One in ten ends long before its limit, the others between half of it and all of it.
        seconds = draw.randint(1, 20) if at % 10 == 5 else draw.randint(30 * minutes, 60 * minutes - 5)
        job = cluster.submit(
            draw.choice((1, 1, 2, 4, 8)), minutes=minutes, script=diary.script(seconds), **options
        )  # fmt: skip
        if options:
            begins[job] = begin
    return begins


def test_squeue_start_agrees_all_the_time(daemon: Daemon, capsys: Any) -> None:
    cluster, draw = daemon.cluster, random.Random(20261128)
    diary = Diary(cluster)
    begins = submit(cluster, diary, draw)
    daemon.start()
    since: dict[str, float] = {}
    lasted: list[float] = []
    samples = compared = differing = 0
    while len(diary.ended()) < JOBS:
        before = planned(daemon)
        told, now = shown(cluster), time.time()
        after = planned(daemon)
        samples += 1
        # What moved while it was compared says nothing.
        still = {job for job, at in before.items() if job in after and abs(after[job] - at) < 1.0}
        for job in still:
            if before[job] < now + NEAR:
                continue
            compared += 1
            if job in told and abs(told[job] - before[job]) <= APART:
                if job in since:
                    lasted.append(now - since.pop(job))
            else:
                differing += 1
                since.setdefault(job, now)
        for job in since.keys() - before.keys():
            lasted.append(now - since.pop(job))
        assert all(now - at <= LASTS for at in since.values()), {
            job: (before.get(job), told.get(job), now, at) for job, at in since.items()
        }
        for job, begin in begins.items():
            assert job not in told or told[job] >= begin - 1, (job, told[job], begin)
        assert daemon.process is not None and daemon.process.poll() is None
        time.sleep(0.5)
    assert set(diary.begun().values()) == {1}
    executions = diary.executions()
    assert all(executions[job].begin >= begin for job, begin in begins.items())
    lasted.sort()
    with capsys.disabled():
        print(
            f"\n{samples} samples, {compared} planned starts compared, {differing} differed by more than "
            f"{APART:.0f} s ({100 * differing / compared:.2f} %); {len(lasted)} differences, the longest "
            f"{lasted[-1] if lasted else 0.0:.0f} s; {HEADWAY.name} started every job once"
        )
