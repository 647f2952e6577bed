"""The clock of the daemon's machine is set while it runs."""

from __future__ import annotations

import os
import sys

from real_systems import RealSystem

#: The command with a wall clock that is wrong by as many seconds as a file says.
PROGRAM = """
import sys, time
right, path = time.time, sys.argv.pop(1)
def wrong():
    with open(path) as file:
        return right() + float(file.read())
time.time = wrong
from headway.cli import main
main()
"""


class ClockSteps:
    def test_jobs_start_whichever_way_the_clock_is_set(self, system: RealSystem) -> None:
        offset = system.directory / "offset"
        offset.write_text("0")
        daemon = system.daemon()
        daemon.program = [*daemon.program[:-1], sys.executable, "-c", PROGRAM, str(offset)]
        daemon.start()
        jobs: list[str] = []

        def run() -> None:
            jobs.append(system.submit(system.processors, 1, minutes=5))
            daemon.until(lambda: system.begun()[jobs[-1]], what=f"job {jobs[-1]} starts")

        def noticed(step: float) -> bool:
            said = daemon.said("the system's clock was set " + ("forward" if step > 0 else "back"))
            return any(abs(entry["seconds"] - abs(step)) < 1 for entry in said)

        wrong = 0.0
        run()
        # Forward, back a little, back far beyond what a run can follow, and forward to the true time.
        for step in (1000.0, -45.0, -4000.0, 3045.0):
            wrong += step
            # A reader finds the old or the new one.
            (system.directory / "next").write_text(str(wrong))
            os.replace(system.directory / "next", offset)
            daemon.until(lambda step=step: noticed(step), what="the step is noticed")  # type: ignore[misc]
            run()
        daemon.until(lambda: sum(system.ended().values()) == len(jobs), what="the jobs end")
        daemon.until(lambda: len(daemon.said("started")) == 2, what="the far step began a new run")
        assert daemon.stop() == 0
        assert [run.end_reason for run in daemon.runs()] == ["clock set back", "stopped"]
        assert system.begun() == dict.fromkeys(jobs, 1)
        for run_ in daemon.runs():
            with daemon.journal() as journal:
                times = [cycle.now for cycle in journal.cycles(run_.id)]
            assert times == sorted(times)
        daemon.assert_replays()
