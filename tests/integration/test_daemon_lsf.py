"""``headway run`` inside a real LSF (volclava): its jobs, its ends, those of mbatchd."""

from __future__ import annotations

import re
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_servers import BatchServer
from real_systems import InsideDaemon, Lsf

from headway import events as ev

pytestmark = [pytest.mark.lsf, pytest.mark.long]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the users inside may enter and write in."""
    with tempfile.TemporaryDirectory(prefix="hw-lsf-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def daemon(lsf_server: BatchServer, place: Path) -> Iterator[InsideDaemon]:
    system = Lsf(lsf_server, place)
    one = system.daemon()
    assert isinstance(one, InsideDaemon)
    yield one
    system.close()


class Diary:
    """What the jobs wrote down of themselves."""

    def __init__(self, place: Path) -> None:
        self.path = place / "diary"
        self.path.touch()
        self.path.chmod(0o666)

    def script(self, seconds: float) -> str:
        """A job that runs for so long and says where."""
        stamp = '"$LSB_JOBID.${LSB_JOBINDEX:-0} $(date +%s.%N) $LSB_HOSTS"'
        return f"echo begin {stamp} >> {self.path}; sleep {seconds}; echo end {stamp} >> {self.path}"

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.path.read_text().splitlines()]

    def count(self, what: str) -> Counter[str]:
        return Counter(words[1] for words in self.lines() if words[0] == what)

    def never_more_than(self, slots: int) -> None:
        """No host had more slots in use at any time."""
        used: Counter[str] = Counter()
        moments = sorted((float(at), what == "begin", hosts) for what, _, at, *hosts in self.lines())
        for _, begins, hosts in moments:
            for host in hosts:
                used[host] += 1 if begins else -1
                assert used[host] <= slots, (host, used)


def test_every_job_runs_once_whoever_is_killed_meanwhile(daemon: InsideDaemon, place: Path) -> None:
    diary, server = Diary(place), daemon.server

    def submit(*words: str, seconds: float = 3, user: str = "alice") -> str:
        said = server.run(
            "bsub", "-q", "hwtest", "-o", "/dev/null", "-W", "5", *words, diary.script(seconds), user=user
        )
        return re.findall(r"Job <(\d+)>", said)[0]

    first = submit("-n", "4", seconds=6)
    waits = submit("-w", f"done({first})")
    held = submit("-H", user="bob")
    submit("-J", "many[1-5]", seconds=2)
    wide = submit("-n", "8", user="bob")
    for slots in ("1", "2", "3", "1", "2"):
        submit("-n", slots, user="bob")
    everything = 14
    daemon.start()
    daemon.until(lambda: sum(diary.count("begin").values()) >= 3, what="jobs run")
    daemon.kill()
    daemon.start()
    daemon.until(lambda: sum(diary.count("begin").values()) >= 6, what="more jobs run")
    server.kill("mbatchd", "-9")
    server.mbatchd_comes_back()
    server.run("bresume", held, user="bob")
    daemon.until(lambda: sum(diary.count("end").values()) == everything, what="every job has run")
    assert set(diary.count("begin").values()) == {1} and len(diary.count("begin")) == everything
    diary.never_more_than(4)
    at = {(words[0], words[1]): float(words[2]) for words in diary.lines()}
    assert at["begin", f"{waits}.0"] >= at["end", f"{first}.0"]
    assert len(next(w for w in diary.lines() if w[1] == f"{wide}.0")) == 3 + 8
    # Others' ends are told too: LSF remembers jobs of earlier tests.
    ran = {name.partition(".")[0] for name in diary.count("end")}

    def ends() -> list[ev.JobEnded]:
        return [event for event in daemon.events(ev.JobEnded) if re.split(r"\W", event.job_id)[0] in ran]

    daemon.until(lambda: len(ends()) >= everything, what="every end is told")
    # LSF may not know how a job ended that ended around the outage; then that is what is told.
    for event in ends():
        if event.outcome != "completed":
            history = server.run("bhist", "-l", event.job_id)
            assert (event.outcome, event.exit_code) == ("failed", None) and ": Exited" in history, (
                event,
                history,
            )
    assert daemon.stop(signal.SIGTERM, 60.0) == 0
    daemon.assert_replays()
