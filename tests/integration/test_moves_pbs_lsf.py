"""A job that saves itself is moved on a real PBS and a real LSF: signalled, requeued, started elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from real_systems import Lsf, Pbs
from test_tiers_pbs_lsf import system
from waiting import until

from headway import events as ev

__all__ = ["system"]

pytestmark = pytest.mark.waits

#: How far it counts beyond what it had saved.
REST = 20

#: Counts, and saves itself on USR1; begun anew it goes on from its file, by argv[1] further, and ends when
#: it may.
COUNTER = """
import pathlib, signal, sys, time
rest, images, job, node = int(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
place = images / job
place.mkdir(exist_ok=True)
state = place / "state"
number, goal = 0, float("inf")
if state.exists():
    number = int(state.read_text())
    goal = number + rest
with open(images.parent / ("begun." + job), "a") as file:
    file.write("%d %s\\n" % (number, node))
(place / "ready").write_text("")
while number < goal:
    time.sleep(0.1)
    number += 1
    if asked:
        asked.clear()
        (place / "new").write_text(str(number))
        (place / "new").rename(state)
        (place / "complete").unlink(missing_ok=True)
        (place / "complete").write_text("")
while not (images.parent / "may-end").exists():
    time.sleep(0.1)
(images.parent / ("done." + job)).write_text(str(number))
"""

MOVER = """
from headway.decisions import Migrate
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits


class Mover(Plugin):
    "Moves every job that runs on the first node, once, to the second."

    traits = Traits(needs=(Migrate,))

    @hookimpl
    def control(self, state):
        first, second = sorted(state.nodes.index)[:2]
        for job in list(state.jobs.values()):
            name = job.placement[0][0] if job.placement else ""
            if job.status.value == "running" and name == first and job.id not in state.before_move:
                yield Migrate(job.id, ((second, job.processors),), f"away from {first}")
"""


def submit(system: Pbs | Lsf, images: Path) -> str:
    """A user's job on one processor that counts; its id."""
    program, script = system.directory / "counter.py", system.directory / "count.sh"
    program.write_text(COUNTER)
    node = '"$(head -n 1 "$PBS_NODEFILE")"' if system.name == "pbs" else '"${LSB_HOSTS%% *}"'
    command = f"/usr/bin/python3 {program} {REST} {images} {system.own_id} {node}"
    script.write_text(f"#!/bin/sh\nexec {command}\n")
    script.chmod(0o755)
    if isinstance(system, Lsf):
        return system.bsub("-W", "30", str(script))
    nothing = ("-o", "/dev/null", "-e", "/dev/null")
    asked = ("-l", "select=1:ncpus=1", "-l", "walltime=0:30:00")
    return system.server.run("qsub", *asked, *nothing, "--", str(script), user="alice")


def test_a_job_that_saves_itself_is_moved_and_goes_on(system: Pbs | Lsf) -> None:
    images = system.directory / "images"
    images.mkdir()
    images.chmod(0o1777)
    plugin = system.directory / "mover.py"
    plugin.write_text(MOVER)
    saves = {"checkpoint-signal": {"directory": str(images), "spare": 0, "timeout": 60}}
    daemon = system.daemon(plugins=["easy", "first-fit", saves])
    job = submit(system, images)
    daemon.start("--plugin", str(plugin))
    daemon.until(lambda: daemon.events(ev.JobMigrated), 300.0, what="it is moved")
    (system.directory / "may-end").touch()
    done = system.directory / f"done.{job}"
    daemon.until(done.exists, 300.0, what="it counts to the end")
    begun = [line.split() for line in (system.directory / f"begun.{job}").read_text().splitlines()]
    first, second = sorted({node for _, node in begun})
    assert [node for _, node in begun] == [first, second]
    assert int(begun[0][0]) == 0 < int(begun[1][0])
    assert done.read_text() == str(int(begun[1][0]) + REST)

    def told(kind: type[ev.Event]) -> list[Any]:
        # A system that other tests had still tells of the ends of their jobs.
        return [event for event in daemon.events(kind) if getattr(event, "job_id", "") == job]

    daemon.until(lambda: told(ev.JobEnded), what="its end is told")
    (moved,) = told(ev.JobMigrated)
    assert moved.placement[0][0].startswith(second.split(".")[0])
    assert not moved.restarted and moved.seconds > 0
    assert not told(ev.JobRequeued)
    assert [end.outcome for end in told(ev.JobEnded)] == ["completed"]
    daemon.stop()
    until(lambda: not system.runs(job), "it has left")
    daemon.assert_replays(plugin)
