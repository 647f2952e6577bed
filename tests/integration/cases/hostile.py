"""Users who mean no good, and a site's accidents: texts, sizes, the socket, a disk that is full."""

from __future__ import annotations

import os
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from real_systems import TRAP, RealSystem
from waiting import HANG, until

from headway import events as ev
from headway.journal import Journal

#: What is no request.
NONSENSE = (
    b"\n", b"hello\n", b"\xff\xfe\n", b"[]\n", b'{"request":"shutdown"}\n', b"x" * 20_000 + b"\n",
    b"x" * 200_000,
    b'{"request":"elastic","job":"1","command":"ET","amount":1e300}\n',
    b'{"request":"elastic","job":"1","command":"ET","amount":5,"user":"root"}\n', b"[" * 15_000 + b"\n",
    b'{"request":"unreserve","reservation":"\\u0000\\ud800"}\n', b'{"request":', b"",
)  # fmt: skip


class Hostile:
    def test_texts_and_kills_of_the_daemon_change_nothing_for_others(self, system: RealSystem) -> None:
        """Texts that forge a job's record or are commands, kill -9 of the daemon in between: every job
        runs once, and the one that is held runs never."""
        victim = system.submit(2, held=True)
        hers = system.hostile(victim)
        honest = [
            system.submit(system.processors, 1), system.submit(system.whole, 1, nodes=system.nodes),
            system.submit(1, 1), system.submit(2, 1, nodes=1),
        ]  # fmt: skip
        wanted = Counter([*hers, *honest])
        daemon = system.daemon()
        for _ in range(2):
            # It may decide while it is still being waited for.
            known = len(daemon.starts())
            daemon.start()
            daemon.until(lambda known=known: len(daemon.starts()) > known, what="it decides")  # type: ignore[misc]
            daemon.kill()
        daemon.start()
        daemon.until(lambda: system.ended() >= wanted, what="all jobs run")
        told = daemon.command("explain", "--journal-only", hers[-1])
        assert told.returncode == 0 and "\x1b" not in told.stdout + told.stderr, told
        assert daemon.stop() == 0
        assert system.begun() == system.ended() == wanted
        # Nobody was told of a start of the victim, and nobody decided one.
        assert victim not in {e.job_id for e in daemon.events(ev.JobStarted)}
        assert victim not in {start.job_id for _, start in daemon.starts()}
        assert system.waits(victim)
        assert not daemon.said(f"{system.name} does not answer; waiting for it")
        assert not daemon.said("a look failed")
        assert "\x1b" not in daemon.log_path.read_text()
        daemon.assert_replays()
        assert not TRAP.exists()

    def test_jobs_that_can_never_run_hold_up_nobody_and_run_when_nodes_are_back(
        self, system: RealSystem
    ) -> None:
        system.node_down()
        daemon = system.daemon(plugins=["fcfs", "first-fit"])
        daemon.start()
        never = system.impossible()
        later = system.submit(system.whole, 1, nodes=system.nodes)
        ordinary = [system.submit(1 + at % 2, 1, nodes=1) for at in range(6)]
        daemon.until(lambda: system.ended() == Counter(ordinary), what="the jobs behind them run")
        assert {start.job_id for _, start in daemon.starts()} == set(ordinary)
        said = " ".join(notice["message"] for notice in daemon.said("notice"))
        assert "is left out of the queue: it can never run as it is" in said, said
        told = daemon.command("explain", never[0])
        assert told.returncode == 0 and f"Job {never[0]} " in told.stdout, told
        assert f"job {later} is left out of the queue: it cannot run now" in said

        system.node_up()
        daemon.until(lambda: system.ended()[later] == 1, what="the job of the node that is back runs")
        assert daemon.stop() == 0
        assert not {start.job_id for _, start in daemon.starts()} & set(never)
        assert not daemon.said("a start did not happen")
        daemon.assert_replays()

    def test_nobody_stops_it_through_its_socket(self, system: RealSystem) -> None:
        """Nonsense, clients that never speak or never listen, more of them than it serves: jobs run on."""
        path = system.directory / "headway.sock"
        daemon = system.daemon(service={"socket": str(path)})
        daemon.start()
        first = system.submit(1, 1)
        daemon.until(lambda: system.ended()[first] == 1, what="a job runs")
        for line in NONSENSE:
            assert b'"accepted"' not in _said(path, line), line
        with ExitStack() as held:
            for at in range(40):
                one = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                one.connect(str(path))
                # Some say half of something; the last ones were sent away.
                if at % 2:
                    with suppress(OSError):
                        one.sendall(b'{"request":')
            second = system.submit(1, 1)
            daemon.until(lambda: system.ended()[second] == 1, what="a job runs among them")
        # Whoever asks then is answered.
        until(lambda: b'"accepted"' in _said(path, b'{"request":"status"}\n'), "somebody is served again")
        # What nobody's plugin serves is refused, however often.
        wish = b'{"request":"unreserve","reservation":"r"}\n'
        with ThreadPoolExecutor(8) as crowd:
            told = Counter(crowd.map(lambda _: _said(path, wish), range(300)))
        assert not any(b'"accepted"' in reply for reply in told), told
        assert daemon.events(ev.ReservationReturned), told
        third = system.submit(1, 1)
        daemon.until(lambda: system.ended()[third] == 1, what="a job runs after it")
        said = daemon.command("status")
        assert said.returncode == 0 and "drive" in said.stdout, said.stdout
        assert daemon.stop() == 0
        daemon.assert_replays()

    def test_a_full_disk_ends_it_before_an_unwritten_start_and_nothing_is_lost(
        self, system: RealSystem
    ) -> None:
        with ExitStack() as stack:
            try:
                disk = stack.enter_context(system.small_disk())
            except OSError as error:
                if os.environ.get("CI", "").lower() == "true":
                    pytest.fail(str(error))
                pytest.skip(str(error))
            journal = disk.path / "journal.sqlite"
            daemon = system.daemon(journal=str(journal))
            jobs = [system.submit(system.whole, 1, nodes=system.nodes) for _ in range(3)]
            daemon.start()
            daemon.until(lambda: system.ended()[jobs[0]] == 1, what="the first job runs")
            disk.fill()
            # Each event takes room, so that this comes soon.
            jobs += [system.submit(1, 1) for _ in range(24)]
            assert daemon.ended(60) == 1
            last = daemon.log_path.read_text().splitlines()[-1]
            assert last.startswith("headway: ") and "journal.sqlite" in last and "disk is full" in last
            assert "Traceback" not in daemon.log_path.read_text()

            system.until(lambda: not any(system.runs(job) for job in jobs), "nothing runs")
            decided = _decided(system.readable(journal))
            assert set(system.begun()) <= decided
            assert len(decided) < 27
            disk.free()
            daemon.start()
            daemon.until(lambda: system.ended() == Counter(jobs), what="all jobs end")
            assert daemon.stop() == 0
            assert system.begun() == Counter(jobs)
            daemon.configure(journal=str(system.readable(journal)))
            daemon.assert_replays()


def _decided(journal: Path) -> set[str]:
    with Journal.open(str(journal), create=False, read_only=True) as found:
        return {start.job_id for run in found.runs() for _, _, start in found.starts(run.id)}


def _said(path: Path, line: bytes) -> bytes:
    """What the daemon answers to these bytes; nothing if it hangs up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.settimeout(HANG)
        try:
            one.connect(str(path))
            one.sendall(line)
            if not line.endswith(b"\n"):
                one.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: one.recv(65536), b""))
        except (BrokenPipeError, ConnectionResetError):
            return b""
