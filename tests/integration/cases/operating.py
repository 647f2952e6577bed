"""An operator's and an administrator's ways with the daemon: modes, signals, files, questions."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from typing import Any

from live_daemon import Daemon
from real_systems import TRAP, RealSystem
from waiting import HANG

from headway import events as ev

#: What people type for a job's id, or a page makes of it.
ODD_IDS = (f"$(touch {TRAP})", "-1", "\x1b[2Jü☃", "[1]\n2", "9" * 400)


def decided(daemon: Daemon) -> set[str]:
    """The jobs whose starts were decided."""
    return {start.job_id for _, start in daemon.starts()}


def told(daemon: Daemon) -> set[str]:
    """The jobs that the present run was told of."""
    run = daemon.runs()[-1]
    with daemon.journal() as journal:
        cycles = journal.cycles(run.id)
        return {e.job.id for cycle in cycles for e in cycle.events if isinstance(e, ev.JobSubmitted)}


def settled(system: RealSystem, daemon: Daemon) -> None:
    """Wait until the present run has decided about all that was submitted before."""
    # The second comes in a cycle behind that of the first, in which the others were there already.
    for _ in range(2):
        mark = system.submit(held=True)
        daemon.until(lambda mark=mark: mark in told(daemon), what="it sees a job")  # type: ignore[misc]


class Operating:
    def test_monitor_mode_decides_once_and_changes_nothing(self, system: RealSystem) -> None:
        some = (system.processors, (system.nodes - 2) * system.processors, system.whole, 2)
        jobs = [system.submit(count) for count in some]
        mine = system.submit(held=True)
        daemon = system.daemon(mode="monitor")
        before = system.everything()
        daemon.start()
        daemon.until(lambda: len(daemon.starts()) == 3, what="it decides")
        looked = len(daemon.cycles())
        late = system.submit(held=True)
        daemon.until(lambda: len(daemon.cycles()) > looked, what="it has looked again")
        system.cancel(late)
        system.until(lambda: not system.waits(late), "the marker has left")
        assert [line for line in system.everything() if line in before] == before
        wanted = {jobs[0], jobs[1], jobs[3]}
        assert decided(daemon) == wanted
        # News brings further cycles, but no wish is written down again.
        late = system.submit()
        daemon.until(lambda: len(daemon.starts()) == 4, what="it decides about a late job")
        system.cancel(mine)
        daemon.until(lambda: mine in {e.job_id for e in daemon.events(ev.JobEnded)}, what="it sees an end")
        assert daemon.stop() == 0
        assert Counter(start.job_id for _, start in daemon.starts()) == Counter([*wanted, late])
        assert all(system.waits(job) for job in (*jobs, late))
        assert {entry["event"] for entry in daemon.log() if "job" in entry} == {"would do"}
        daemon.assert_replays()

    def test_it_ends_when_told_to(self, system: RealSystem) -> None:
        system.submit()
        daemon = system.daemon(options={"poll_interval": 30.0})
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon.start()
            daemon.until(lambda: daemon.starts(), what="it decides")
            assert daemon.stop(number) == 0
        assert [(run.ended_at is None, run.end_reason) for run in daemon.runs()] == [(False, "stopped")] * 2

    def test_a_changed_configuration_is_taken_up_and_a_broken_one_is_not(self, system: RealSystem) -> None:
        def waits(job: str) -> bool:
            settled(system, daemon)
            return system.waits(job) and job not in decided(daemon)

        def runs(job: str) -> bool:
            daemon.until(lambda: system.runs(job), what=f"job {job} runs")
            return True

        def tell(said: str, **changes: Any) -> None:
            known = len(daemon.said(said))
            daemon.configure(**changes)
            daemon.send(signal.SIGHUP)
            daemon.until(lambda: len(daemon.said(said)) > known, what=said)

        long = system.submit(system.processors, nodes=1)
        daemon = system.daemon(options={"command_timeout": 10.0})
        daemon.start()
        assert runs(long)
        head = system.submit(system.whole)
        assert waits(head)
        first = system.submit(minutes=1)
        assert runs(first)

        tell("started", plugins=["fcfs", "first-fit"])
        second = system.submit(minutes=1)
        assert waits(second)
        refusal = "the new configuration is wrong; the old configuration stays in force"
        tell(refusal, plugins=["easyy", "first-fit"])
        assert "easyy" in daemon.said(refusal)[0]["error"] and "easy" in daemon.said(refusal)[0]["error"]
        assert daemon.said(refusal)[0]["level"] == "error"
        right = daemon.config["cluster"]

        def of(**options: Any) -> dict[str, Any]:
            return {**right, "options": {**right["options"], **options}}

        wrong: list[dict[str, Any]] = [
            {"plugins": ["first-fit"]},
            {"plugins": ["easy"], "mode": "drivee"},
            {"mode": "drive", "cluster": of(**{system.queues: ["nosuch"]})},
            {"cluster": of(poll_interval=-1)},
        ]
        for number, changes in enumerate(wrong, 2):
            tell(refusal, **changes)
            assert len(daemon.said(refusal)) == number
        daemon.config_path.write_text("mode: drive\nplugins: [easy\n\x00")
        known = len(daemon.said(refusal))
        daemon.send(signal.SIGHUP)
        daemon.until(lambda: len(daemon.said(refusal)) > known, what="a file that is none is refused")
        assert len(daemon.said("started")) == 2
        daemon.configure(cluster=right)
        assert waits(second)
        # The batch system is away just then: the daemon waits for it.
        with system.outage():
            tell("the cluster does not answer; waiting for it", mode="drive", plugins=["easy", "first-fit"])
        assert runs(second)
        # A second signal while the first is acted upon must not end it.
        for _ in range(5):
            daemon.send(signal.SIGHUP)
            time.sleep(0.05)
        assert runs(system.submit(minutes=1))
        assert system.waits(head)
        assert daemon.stop() == 0
        assert all(run.ended_at is not None for run in daemon.runs())
        assert daemon.runs()[-1].end_reason == "stopped"
        daemon.assert_replays()

    def test_questions_about_the_live_cluster_change_nothing(self, system: RealSystem) -> None:
        running = system.submit((system.nodes - 1) * system.processors, nodes=system.nodes - 1)
        daemon = system.daemon()
        daemon.start()
        daemon.until(lambda: system.runs(running), what="a job runs")
        head = system.submit(system.whole, minutes=7)
        small = system.submit(system.processors, minutes=30, nodes=1)
        settled(system, daemon)
        jobs = (running, head, small)
        daemon.until(lambda: all(map(system.taken_over, jobs)), what="they are headway's")
        before, runs = system.everything(), len(daemon.runs())

        def ask(*words: str) -> str:
            done = daemon.command(*words)
            assert done.returncode == 0, done.stdout + done.stderr
            return " ".join(done.stdout.split())

        daemon.command("check")
        told = ask("explain", head)
        assert f"Job {head} of " in told and f"{system.whole} processors" in told
        assert f"waits for the end of job {running}" in told
        told = ask("explain", small)
        assert f"job {head}" in told and "So says the daemon, as of its cycle at " in told
        told = ask("explain", small, "--fresh")
        assert f"job {head}" in told and "expected to start" in told
        told = ask("explain", running)
        assert "runs on " in told and "decided Start: first in the queue (done)" in told
        forecast = daemon.command("dry-run", "--from-cluster")
        assert forecast.returncode == 0, forecast.stderr
        lines = [re.findall(r"[\w.,-]+", line) for line in forecast.stdout.splitlines()]
        rows = {words[0]: words for words in lines if words[1:2] in ([system.user], ["root"])}
        # Job, user, processors, expected start, nodes.
        assert (rows[head][2], rows[head][-1].count(",")) == (str(system.whole), system.nodes - 1)
        assert (rows[small][2], rows[small][-1].count(",")) == (str(system.processors), 0)
        for odd in (system.no_job, *ODD_IDS):
            done = daemon.command("explain", "--", odd)
            said = done.stdout + done.stderr
            assert done.returncode == 2 and "Traceback" not in said, (odd, said)
            assert "\x1b" not in said
        assert not TRAP.exists()

        assert system.everything() == before
        assert len(daemon.runs()) == runs
        assert daemon.stop(seconds=HANG) == 0
