"""The fence on a real Slurm: what a daemon writes after another has taken over has no effect."""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from failing_open import filter_with
from live_daemon import Daemon, Diary
from waiting import HANG

from headway.errors import Superseded
from headway_adapters.polling.heartbeat import read_word

pytestmark = [pytest.mark.slurm, pytest.mark.waits]

#: Seconds; a second daemon waits for a heartbeat of the first for three of them.
PATIENCE = 5
#: Seconds; of a daemon that no other follows. What is submitted while none is heard is Slurm's: it enters
#: without a mark, and Slurm may start it before a daemon has written one.
LONG_PATIENCE = 300
REFUSED = "Unknown error 27182"
#: Its backfill scheduler, which starts heterogeneous jobs, looks around each second.
FAST = ("--set", "SchedulerParameters=batch_sched_delay=0,bf_interval=1")


class Fenced:
    """A Slurm behind the shipped filter, and daemons that each have a journal of their own."""

    def __init__(
        self, factory: Callable[..., Any], place: Path, directory: Path, patience: int = PATIENCE
    ) -> None:
        self.patience = patience
        self.heartbeat = place / "heartbeat"
        self.directory = directory
        script = directory / "job_submit.lua"
        #: Beside its state, where slurmctld alone writes.
        self.kept = place / "epoch"
        text = filter_with(self.heartbeat, patience)
        script.write_text(text.replace("/var/lib/slurm/slurmctld/headway.epoch", str(self.kept)))
        self.cluster = factory("--lua", str(script), "--set", "JobSubmitPlugins=lua", *FAST)
        self.diary = Diary(self.cluster)
        self.daemons: list[Daemon] = []
        # By its comment it is seen when slurmctld has saved its state: its user holds it all along.
        self.cluster.submit(1, 1, administrator=False)

    def daemon(self, **options: Any) -> Daemon:
        directory = self.directory / f"daemon{len(self.daemons)}"
        directory.mkdir()
        options = {"heartbeat": str(self.heartbeat), "patience": self.patience, **options}
        made = Daemon(self.cluster, directory, options=options)
        self.daemons.append(made)
        return made

    def start(self, daemon: Daemon) -> None:
        """Start it; it is heard, so what is submitted from then on is held for it."""
        before = _text(self.heartbeat)
        daemon.start()
        daemon.until(lambda: _text(self.heartbeat) not in ("", before), what="its heartbeat")

    def submit(self, seconds: float = 0.5) -> str:
        job: str = self.cluster.submit(1, hold=False, script=self.diary.script(seconds))
        return job

    def mark(self, job: str) -> str:
        return str(self.cluster.jobs()[job]["admin_comment"])

    def update(self, job: str, *words: str, user: str | None = None) -> str:
        """What Slurm said against a change; "" if it was made."""
        done = self.cluster.call("scontrol", "update", f"JobId={job}", *words, user=user)
        return (done.stderr + done.stdout).strip() if done.returncode else ""

    def ask(self, question: str, user: str | None = None) -> str:
        argv = ("sbatch", "--test-only", f"--comment={question}", "--wrap=true")
        return str(self.cluster.call(*argv, user=user).stderr)

    def restart_slurmctld(self, number: str = "TERM") -> None:
        self.cluster.saved()
        self.cluster.kill("slurmctld", number)
        self.cluster.up("slurmctld")


@pytest.fixture
def fenced(
    slurm_factory: Callable[..., Any], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Fenced]:
    """Its parameter: the patience, seconds."""
    place = Path(tempfile.mkdtemp(prefix="hw-run-"))
    place.chmod(0o755)
    made = Fenced(slurm_factory, place, tmp_path, getattr(request, "param", PATIENCE))
    try:
        yield made
    finally:
        for daemon in made.daemons:
            daemon.clean_up()
        shutil.rmtree(place, ignore_errors=True)


def epoch(daemon: Daemon) -> int:
    states = daemon.runs()[-1].info.plugin_states
    return int(states["/epoch"]["epoch"])


@pytest.mark.both_slurms
def test_the_filter_refuses_what_has_a_lower_epoch_also_after_slurmctlds_restart(fenced: Fenced) -> None:
    job = fenced.submit()
    assert fenced.update(job, "Priority=0", "AdminComment=headway:pin=node1;epoch=1") == ""
    assert "epoch=2 by=b" in fenced.ask("headway:lead=2:b")
    late = (
        ("AdminComment=headway:held;epoch=1",),
        ("Priority=1", "AdminComment=headway:release;epoch=1"),
        ("TimeLimit=3", "AdminComment=headway:same;epoch=1"),
        ("ReqNodeList=node2", "AdminComment=headway:pin=node2;epoch=1"),
        ("StartTime=now+60", "AdminComment=headway:held;shown=5;epoch=1"),
    )
    for restart in (None, "TERM", "KILL"):
        if restart:
            fenced.restart_slurmctld(restart)
        before = fenced.cluster.jobs()[job]
        assert all(REFUSED in fenced.update(job, *words) for words in late)
        assert fenced.cluster.jobs()[job] == before
    # Of its own epoch, and of people by hand, nothing is refused.
    assert fenced.update(job, "TimeLimit=4", "AdminComment=headway:same;epoch=2") == ""
    assert fenced.mark(job) == "headway:pin=node1;epoch=1"
    assert fenced.update(job, "TimeLimit=3") == ""
    fenced.kept.unlink()
    assert fenced.update(job, "AdminComment=headway:held;epoch=2") == ""
    fenced.restart_slurmctld("KILL")
    assert "epoch=2" in fenced.ask("headway:epoch?"), "the marks of jobs tell it, too"


@pytest.mark.both_slurms
def test_a_job_that_was_pinned_under_an_older_epoch_is_not_released(fenced: Fenced) -> None:
    job = fenced.submit()
    fenced.heartbeat.write_text(f"headway drives boot=x up=1 at={int(time.time())} since=1 epoch=2\n")
    assert fenced.update(job, "Priority=0", "AdminComment=headway:pin=node1;epoch=1") == ""
    assert "epoch=2 by=b" in fenced.ask("headway:lead=2:b")
    done = fenced.cluster.call("scontrol", "release", job)
    assert REFUSED in done.stderr
    assert REFUSED in fenced.update(job, "Priority=1", "AdminComment=headway:release;epoch=2")
    assert fenced.cluster.jobs()[job]["priority"] == 0
    # What nobody drives people may release, by whomever it was pinned.
    fenced.heartbeat.write_text("headway rests at=1\n")
    fenced.cluster.scontrol("release", job)
    fenced.cluster.until(lambda: fenced.diary.begun()[job], what="it runs")


@pytest.mark.both_slurms
def test_a_user_can_forge_no_epoch(fenced: Fenced) -> None:
    assert "epoch=2 by=b" in fenced.ask("headway:lead=2:b")
    job = fenced.cluster.submit(1, 60, user="nobody")
    other = fenced.submit()
    for target in (job, other):
        assert fenced.update(target, "AdminComment=headway:held;epoch=99", user="nobody")
        assert fenced.update(target, "Priority=1", "AdminComment=headway:release;epoch=99", user="nobody")
    assert fenced.update(job, "Comment=headway:held;epoch=99", user="nobody") == ""
    assert "is not among LEADERS" in fenced.ask("headway:lead=99:x", user="nobody")
    assert "epoch=2 by=b" in fenced.ask("headway:epoch?", user="nobody")
    assert fenced.cluster.jobs()[job]["priority"] == 0
    # Nobody is left to wait because of such a question.
    argv = ("sbatch", "--parsable", "--comment=headway:lead=99:x", "--wrap=true")
    assert fenced.cluster.call(*argv, user="nobody").returncode != 0


def test_a_daemon_that_was_paused_writes_nothing_more_and_ends(fenced: Fenced) -> None:
    first = fenced.daemon()
    fenced.start(first)
    jobs = [fenced.submit(random.Random(5).uniform(0.2, 0.6)) for _ in range(6)]
    first.until(lambda: len(fenced.diary.begun()) >= 3, what="it starts jobs")
    first.send(signal.SIGSTOP)
    jobs += [fenced.submit() for _ in range(6)]
    second = fenced.daemon()
    second.start()
    assert epoch(second) == epoch(first) + 1
    second.until(lambda: all(fenced.diary.ended()[job] for job in jobs), what="the second starts the rest")
    first.send(signal.SIGCONT)
    more = [fenced.submit() for _ in range(3)]
    assert first.ended(HANG) == Superseded.exit_code
    said = first.log_path.read_text()
    assert "another daemon has taken over" in said and f"epoch {epoch(second)}" in said
    second.until(lambda: all(fenced.diary.ended()[job] for job in more), what="the second goes on")
    assert set(fenced.diary.begun().values()) == {1}
    assert second.stop() == 0


def test_two_daemons_by_mistake(fenced: Fenced) -> None:
    first = fenced.daemon()
    fenced.start(first)
    second = fenced.daemon()
    second.start(await_log=False)
    assert second.ended(HANG) == Superseded.exit_code
    said = second.log_path.read_text()
    assert "another daemon drives this cluster" in said and str(fenced.heartbeat) in said
    job = fenced.submit()
    first.until(lambda: fenced.diary.ended()[job], what="the first goes on")
    # It is dead: the next takes over.
    first.kill()
    second.start()
    job = fenced.submit()
    second.until(lambda: fenced.diary.ended()[job], what="the second drives")
    assert epoch(second) == 2
    # The first may come back: with its journal it is older.
    first.start(await_log=False)
    assert first.ended(HANG) == Superseded.exit_code
    # A daemon that begins again is its own successor, at once.
    second.kill()
    second.start()
    assert epoch(second) == 3


def _text(path: Path) -> str:
    word = read_word(path.read_text()) if path.exists() else None
    return word.text() if word is not None else ""


@pytest.mark.both_slurms
def test_elements_of_an_array_keep_their_own_marks(fenced: Fenced) -> None:
    array = fenced.cluster.submit(1, 60, hold=False, array="1-3")
    pinned = {f"{array}_{n}": f"headway:pin=node{n};epoch=1" for n in (1, 2, 3)}
    for job, mark in pinned.items():
        assert fenced.update(job, "Priority=0", f"AdminComment={mark}") == ""
    together = ",".join(pinned)
    assert fenced.update(together, "TimeLimit=3", "AdminComment=headway:same;epoch=1") == ""
    assert {job: fenced.mark(job) for job in pinned} == pinned
    assert fenced.update(together, "Priority=1", "AdminComment=headway:release;epoch=1") == ""
    assert {job: fenced.mark(job) for job in pinned} == pinned


@pytest.mark.both_slurms
@pytest.mark.parametrize("fenced", [LONG_PATIENCE], indirect=True)
def test_behind_the_fence_jobs_of_all_kinds_start(fenced: Fenced) -> None:
    leader = fenced.daemon(start_timeout=60.0)
    fenced.start(leader)
    run, script = fenced.cluster.run, fenced.diary.script(0.5)
    words = ("sbatch", "--parsable", "-o", "/dev/null", "-D", "/", "-t5", "-n1")
    array = run(*words, "--array=1-3", "--wrap", script)
    singletons = run(*words, "--array=1-2", "--dependency=singleton", "-J", "one", "--wrap", script)
    parts = run(*words, ":", "-n2", "--wrap", script)
    noted = run(*words, "--begin=now+3600", "--wrap", script)
    fenced.cluster.scontrol("update", f"JobId={noted}", "AdminComment=a ticket", "StartTime=now")
    wanted = {*(f"{array}_{n}" for n in (1, 2, 3)), *(f"{singletons}_{n}" for n in (1, 2)), parts, noted}
    leader.until(lambda: set(fenced.diary.ended()) >= wanted, what="all run")
    assert set(fenced.diary.begun().values()) == {1} and set(fenced.diary.begun()) == wanted
    records = fenced.cluster.jobs()
    assert records[noted]["admin_comment"] == "a ticket"
    marks = [records[job]["admin_comment"] for job in sorted(wanted - {noted})]
    assert all(mark.startswith("headway:pin=") and mark.endswith(";epoch=1") for mark in marks), marks
    # What came back to the queue is held by its daemon, and starts again.
    job = fenced.submit(30)
    leader.until(lambda: fenced.cluster.state(job) == "RUNNING", what="it runs")
    fenced.cluster.scontrol("requeue", job)
    leader.until(lambda: fenced.diary.begun()[job] == 2, what="it runs again")
    assert not leader.said("another daemon has taken over") and leader.stop() == 0


@pytest.mark.campaign
def test_pauses_at_random_points(fenced: Fenced) -> None:
    """A daemon is stopped anywhere, another takes over, slurmctld may be restarted meanwhile, and the first
    goes on while the second drives."""
    rng = random.Random(34)
    leader = fenced.daemon()
    leader.start()
    jobs: list[str] = []
    for number in range(10):
        jobs += [fenced.submit(round(rng.uniform(0.1, 0.5), 1)) for _ in range(12)]
        time.sleep(rng.uniform(0.0, 2.5))
        leader.send(signal.SIGSTOP)
        paused, leader = leader, fenced.daemon()
        jobs += [fenced.submit(0.2) for _ in range(6)]
        leader.start()
        if restarts := rng.random() < 0.5:
            fenced.restart_slurmctld(rng.choice(["TERM", "KILL"]))
        paused.send(signal.SIGCONT)
        assert paused.ended(HANG) == Superseded.exit_code
        leader.until(
            lambda: sum(fenced.diary.ended().values()) >= 18 * len(fenced.daemons[1:]), what="all end"
        )
        print(number, "restarted" if restarts else "", epoch(leader))
    assert set(fenced.diary.begun().values()) == {1} and len(fenced.diary.begun()) == len(jobs)
    assert leader.stop() == 0
