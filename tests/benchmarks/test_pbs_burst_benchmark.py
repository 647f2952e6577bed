"""What a burst of starts costs everybody on a real PBS, whose commands share a few hundred privileged ports.

``make bench ARGS='-s -k burst'`` prints the figures that the operators' guide gives;
``HEADWAY_BURST=60`` makes it so many starts. The same burst without a limit is run for comparison.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batch_servers import BatchServer

from headway import decisions as d
from headway import events as ev
from headway_adapters.pbs import PbsAdapter

STARTS = int(os.environ.get("HEADWAY_BURST", "500"))
#: How long a privileged port stays taken, seconds.
TAKEN = 60.0


class Beside:
    """Somebody else's ``qstat -B`` every two seconds, and how long each took."""

    def __init__(self, path: Path) -> None:
        self.seconds: list[float] = []
        self._path = path
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        while not self._over.wait(2.0):
            began = time.monotonic()
            subprocess.run([str(self._path / "qstat"), "-B"], capture_output=True, timeout=300)
            self.seconds.append(time.monotonic() - began)

    def __enter__(self) -> Beside:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def burst(server: BatchServer, **options: Any) -> tuple[float, float, float]:
    """Seconds until all run, of the longest look, and of somebody else's longest command."""
    script = (
        "for n in $(seq %d); do echo 'sleep 600' | qsub -l walltime=1:0:0 -o /dev/null -e /dev/null; done"
    )
    ids = server.run("bash", "-c", script % STARTS, user="alice").split()
    assert len(ids) == STARTS
    time.sleep(TAKEN)
    settings = {"queues": ["workq"], "bin_dir": str(server.root / "bin"), "command_timeout": 120.0, **options}
    with PbsAdapter({**settings, "start_timeout": 300.0}) as one, Beside(server.root / "bin") as beside:
        nodes = [node.name for node in one.describe().nodes]
        one.wait(time.time() + 60)
        began = time.monotonic()
        starts = [d.Start(job, ((nodes[at % len(nodes)], 1),)) for at, job in enumerate(ids)]
        assert all(outcome.accepted for outcome in one.apply(time.time(), starts))
        running: set[str] = set()
        longest = 0.0
        while len(running) < STARTS:
            before = time.monotonic()
            moment = one.wait(time.time() + 600)
            longest = max(longest, time.monotonic() - before)
            assert moment is not None
            assert not [event for event in moment[1] if isinstance(event, ev.DecisionFailed)]
            running |= {event.job_id for event in moment[1] if isinstance(event, ev.JobStarted)}
        seconds = time.monotonic() - began
    server.run("bash", "-c", "qselect | xargs -n 100 qdel", user="root")
    server.until(lambda: not server.run("qselect"), "all have left")
    time.sleep(TAKEN)
    return seconds, longest, max(beside.seconds)


@pytest.mark.pbs
@pytest.mark.benchmark
def test_a_burst_of_starts(batch_server_factory: Callable[..., BatchServer]) -> None:
    server = batch_server_factory("pbs", "--hosts", "3", "--cpus", str(-(-STARTS // 3)))
    found = {"300 commands a minute": burst(server), "any number": burst(server, commands_per_minute=None)}
    for what, (seconds, longest, other) in found.items():
        print(
            f"\n{STARTS} starts, {what}: all run after {seconds:.0f} s, "
            f"the longest wait for news {longest:.1f} s, somebody else's longest qstat {other:.1f} s"
        )
