"""Two tiers on a real PBS and a real LSF, whose ``qrun`` and ``brun`` put jobs where others are.

Each job asks for the whole cluster; its script runs on the first host, on one processor, which it has to
share with that of the other tier. The agent runs there, too, where the users have names.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from batch_servers import BatchServer
from live_daemon import HEADWAY
from real_systems import Lsf, Pbs, RealSystem
from test_tiers_slurm import gets_its_share
from waiting import until

from headway import events as ev

#: Where a job's environment has its id.
_ID = {"pbs": "PBS_JOBID", "lsf": "LSB_JOBID"}


@pytest.fixture(
    params=[pytest.param("pbs", marks=pytest.mark.pbs), pytest.param("lsf", marks=pytest.mark.lsf)]
)
def system(request: pytest.FixtureRequest) -> Iterator[Pbs | Lsf]:
    server: BatchServer = request.getfixturevalue(f"{request.param}_server")
    with tempfile.TemporaryDirectory(prefix="hw-tiers-") as directory:
        one = Pbs(server, Path(directory)) if request.param == "pbs" else Lsf(server, Path(directory))
        yield one
        one.close()


@pytest.fixture
def agents(system: Pbs | Lsf) -> Iterator[dict[str, object]]:
    """How the daemon reaches the agent, which runs on the first host and answers for all."""
    place = system.directory / "agent"
    place.mkdir(mode=0o700)
    key = place / "key"
    key.write_text(secrets.token_hex(32))
    key.chmod(0o600)
    address = f"unix:{place}/socket"
    argv = [
        str(HEADWAY), "node-agent", "serve", "--key", str(key), "--listen", address, "--interval", "1",
        "--least-user", "0", "--state", f"{place}/tiers.json",
    ]  # fmt: skip
    with (place / "log").open("ab") as log:
        process = subprocess.Popen(
            system.server.inside(*argv, user="root"), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    yield {"key": str(key), "address": address, "interval": 1.0}
    process.terminate()
    process.wait()


def spinner(system: RealSystem) -> Path:
    """A job's script that uses all of one processor."""
    cpu = min(os.sched_getaffinity(0))
    path = system.directory / "spin.sh"
    path.write_text(f"#!/bin/sh\nexec taskset -c {cpu} sh -c 'while :; do :; done'\n")
    path.chmod(0o755)
    return path


def submit(system: Pbs | Lsf) -> str:
    """A user's job that asks for all processors."""
    script = str(spinner(system))
    if isinstance(system, Lsf):
        return system.bsub("-n", str(system.whole), "-W", "30", script)
    nothing = ("-o", "/dev/null", "-e", "/dev/null")
    chunks = f"select={system.nodes}:ncpus={system.processors}"
    return system.server.run(
        "qsub",
        "-l",
        chunks,
        "-l",
        "place=scatter",
        "-l",
        "walltime=0:30:00",
        *nothing,
        "--",
        script,
        user="alice",
    )


def process_of(system: RealSystem, job: str) -> psutil.Process:
    """The process of a job that uses its processor."""
    found: list[psutil.Process] = []

    def there() -> bool:
        for process in psutil.process_iter(["name", "cmdline", "environ"]):
            info = process.info
            if (info["environ"] or {}).get(_ID[system.name]) == job and "while :; do :; done" in (
                info["cmdline"] or ()
            ):
                found[:] = [process]
        return bool(found)

    until(there, f"the process of job {job} runs")
    return found[0]


def test_two_jobs_share_a_processor_and_the_second_comes_forward(
    system: Pbs | Lsf, agents: dict[str, object]
) -> None:
    # Nobody knows what they use, so the one in front does not keep the other out.
    plugins = [{"reasy": {"cpu_known": False}}, "first-fit"]
    daemon = system.daemon(options={"agents": agents}, plugins=plugins)
    daemon.start()
    front = submit(system)
    daemon.until(lambda: system.runs(front), what="the first runs")
    a = process_of(system, front)
    behind = submit(system)
    daemon.until(lambda: system.runs(behind), what="the second runs behind it")
    b = process_of(system, behind)
    daemon.until(lambda: os.sched_getscheduler(b.pid) == os.SCHED_IDLE, what="it is in the background")
    assert os.sched_getscheduler(a.pid) == os.SCHED_OTHER
    gets_its_share(daemon, a, b, "the first has nearly all of the processor")
    # No third one finds room in either tier.
    third = submit(system)
    daemon.until(lambda: any(e.job.id == third for e in daemon.events(ev.JobSubmitted)), what="it is seen")
    assert system.waits(third)
    # The other way round the priorities are swapped, while it runs.
    system.cancel(front)
    daemon.until(lambda: os.sched_getscheduler(b.pid) == os.SCHED_OTHER, what="it came forward")
    daemon.until(lambda: daemon.events(ev.JobTierChanged), what="that is told")
    (changed,) = daemon.events(ev.JobTierChanged)
    assert (changed.job_id, changed.tier) == (behind, "foreground")
    assert system.runs(behind)
    daemon.until(lambda: system.runs(third), what="the third runs behind it")
    c = process_of(system, third)
    daemon.until(lambda: os.sched_getscheduler(c.pid) == os.SCHED_IDLE, what="it is in the background")
    gets_its_share(daemon, b, c, "the one that came forward has nearly all of it")
    started = {event.job_id: event.tier for event in daemon.events(ev.JobStarted)}
    assert {front: "foreground", behind: "background", third: "background"}.items() <= started.items()
    daemon.stop()
    daemon.assert_replays()
