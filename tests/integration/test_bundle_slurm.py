"""`headway bundle` on a real Slurm, as an ordinary user: a wide job starts early, spreads, and survives."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import HANG, until

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be an ordinary user beside Slurm's own"),
]
USER = "nobody"
APPLICATION = Path(__file__).parents[1] / "selfsaving.py"
SECOND = ("--set", "SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=1,bf_resolution=1")
PROCESSES, UNITS = 4, 40


#: headway as somebody else, who may not be able to reach the interpreter that runs the tests.
AS_USER = """#!{python}
import sys
sys.path[:0] = {paths!r}
from headway.cli import main
main()
"""


def headway_for(user: str, directory: Path) -> Path:
    """The program `headway`, which that user can run; skips where there is none."""
    root = Path(__file__).parents[2]
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    paths = [*(str(root / tree) for tree in ("framework", "plugins", "adapters")), *sorted(libraries)]
    program = directory / "headway"
    for python in (sys.executable, "/usr/bin/python3"):
        program.write_text(AS_USER.format(python=python, paths=paths))
        program.chmod(0o755)
        with contextlib.suppress(OSError):
            argv = [str(program), "bundle", "submit", "--help"]
            if subprocess.run(argv, user=user, cwd="/", capture_output=True, timeout=HANG).returncode == 0:
                return program
    pytest.skip(f"user {user} can run no Python that has headway's libraries")


class Bundles:
    """A cluster that others keep busy, and an ordinary user's bundles on it."""

    def __init__(self, cluster: Any, base: Path, program: Path) -> None:
        self.cluster = cluster
        self._program = program
        self.base = base
        self.meeting = base / "meeting"
        self.again()
        self.ids: list[str] = []

    def again(self) -> None:
        """A new place for the application to meet."""
        shutil.rmtree(self.meeting, ignore_errors=True)
        self.meeting.mkdir(parents=True)
        user = pwd.getpwnam(USER)
        for path in (self.base, self.meeting):
            os.chown(path, user.pw_uid, user.pw_gid)

    def hold(self) -> None:
        """The application does not end before :meth:`go`, however slow everything else is."""
        (self.meeting / "hold").touch()

    def go(self) -> None:
        (self.meeting / "hold").unlink()

    @property
    def command(self) -> list[str]:
        return [
            shutil.which("python3", path="/usr/bin:/bin") or sys.executable,
            str(APPLICATION),
            str(self.meeting),
            str(UNITS),
            "0.1",
        ]

    def run(self, *words: str, check: bool = True) -> str:
        """A command of `headway bundle`, as the user."""
        variables = f"HEADWAY_BUNDLES={self.base}/bundles"
        where = ("env", f"--chdir={self.base}", f"HOME={self.base}", variables, str(self._program), "bundle")
        said: str = self.cluster.run(*where, *words, user=USER, check=check)
        return said

    def submit(self, *words: str) -> str:
        """Submit the application as a bundle; its id."""
        said = self.run(
            "submit", "--processors", str(PROCESSES), "--time", "60", "--move", "4", "--poll", "1",
            "--silence", "30", "--listen", "127.0.0.1", "--set", "spare=0", *words, "--", *self.command,
        )  # fmt: skip
        self.ids.append(said.split()[1].rstrip(":"))
        return self.ids[-1]

    def known(self, bundle: str) -> dict[str, Any]:
        """All that the manager wrote down."""
        found: dict[str, Any] = json.loads(self.run("status", "--json", bundle))[bundle]
        return found

    def busy(self, processors: int, seconds: float) -> str:
        """Somebody else's job, with a limit of half an hour."""
        job: str = self.cluster.submit(processors, seconds, hold=False, minutes=30)
        self.cluster.until(lambda: self.cluster.state(job) == "RUNNING", what="the others run")
        return job

    def begun(self) -> list[tuple[int, int, int, str]]:
        """(restart, process, its first number, its processor) of each start."""
        path = self.meeting / "begun"
        lines = path.read_text().splitlines() if path.exists() else []
        rows = [line.split() for line in lines]
        return [(int(row[0]), int(row[1]), int(row[2]), row[3]) for row in rows]

    def until_begun(self, restart: int, what: str) -> list[tuple[int, int, int, str]]:
        """Wait for all processes of an execution."""

        def these() -> list[tuple[int, int, int, str]]:
            return [row for row in self.begun() if row[0] == restart]

        until(lambda: len(these()) == PROCESSES, what, said=self.said)
        return these()

    def said(self) -> str:
        """The managers' logs."""
        return "\n".join(path.read_text() for path in self.base.glob("bundles/*/*.log"))

    def processes(self, *words: str) -> list[psutil.Process]:
        """Of this test's bundles: those whose command line has these words."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or []
            if str(self.base) in " ".join(line) and all(word in line for word in words):
                found.append(process)
        return found

    def done(self, bundle: str) -> dict[str, Any]:
        path = self.base / "bundles" / bundle / "result.json"
        until(path.exists, "the bundle is done", said=self.said)
        return dict(json.loads(path.read_text()))

    @property
    def right(self) -> bool:
        """Whether the application computed what it should."""
        expected = sum(number * number for number in range(PROCESSES * UNITS))
        return (self.meeting / "result").read_text() == str(expected)


@pytest.fixture
def bundles(slurm_factory: Callable[..., Any]) -> Iterator[Bundles]:
    cluster = slurm_factory(*SECOND, nodes=2, cpus=2)
    # Others may enter the cluster's directory, not that of the tests.
    made = Bundles(cluster, cluster.root / "user", headway_for(USER, cluster.root))
    yield made
    for process in made.processes("manage"):
        process.kill()


@pytest.mark.slow
def test_a_wide_job_starts_on_a_fragment_spreads_and_is_done_before_it_could_have_started(
    bundles: Bundles,
) -> None:
    cluster = bundles.cluster
    long, short = 50.0, 3.0
    began = time.time()
    bundles.busy(2, long)
    some = bundles.busy(1, 300)
    bundles.hold()
    bundle = bundles.submit()
    first = bundles.until_begun(0, "it begins")
    # Four processes share the one processor that was free.
    assert len({row[3] for row in first}) == 1
    time.sleep(short)
    cluster.run("scancel", some)
    second = bundles.until_begun(1, "it spreads")
    bundles.go()
    assert len({row[3] for row in second}) == 2 and sum(row[2] for row in second) > 0
    result = bundles.done(bundle)
    elastic = time.time() - began
    assert result["exit_code"] == 0 and bundles.right
    assert bundles.run("wait", bundle).endswith("the application is complete")
    assert bundles.known(bundle)["state"]["migrations"] == 1
    # The job that the user knows tells the exit code, on one processor.
    first_job = result["placeholder"]
    cluster.until(lambda: cluster.state(first_job) == "COMPLETED", what="the original request ends")
    # The same, submitted plainly.
    for job in list(cluster.jobs()):
        cluster.run("scancel", job)
    cluster.until(
        lambda: {one["job_state"] for one in cluster.jobs().values()} <= {"CANCELLED", "COMPLETED"},
        what="all are gone",
    )
    bundles.again()
    began = time.time()
    bundles.busy(2, long)
    some = bundles.busy(1, 300)
    plain = cluster.submit(
        PROCESSES, hold=False, minutes=1, user=USER,
        script=f"for i in 0 1 2 3; do HEADWAY_PROCESSES=4 HEADWAY_PROCESS=$i HEADWAY_PROCESSOR=$i "
        f"{' '.join(bundles.command)} & done; wait",
    )  # fmt: skip
    time.sleep(short)
    cluster.run("scancel", some)
    cluster.until(lambda: cluster.state(plain) == "COMPLETED", what="the plain one is done")
    plainly = time.time() - began
    print(f"turnaround: bundle {elastic:.1f} s, plain {plainly:.1f} s")
    assert bundles.right and elastic < plainly


@pytest.mark.slow
def test_the_manager_is_killed_and_the_next_command_picks_the_bundle_up(bundles: Bundles) -> None:
    bundles.busy(3, 300)
    bundles.hold()
    bundle = bundles.submit()
    bundles.until_begun(0, "it begins")
    for process in bundles.processes("manage"):
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    assert not bundles.processes("manage")
    assert "picked up: " + bundle in bundles.run("resume")
    bundles.go()
    assert bundles.done(bundle)["exit_code"] == 0 and bundles.right, bundles.said()
    # Nothing was started again for that.
    assert {row[0] for row in bundles.begun()} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["worker", "subjob"])
def test_a_worker_or_its_subjob_is_killed_and_it_goes_on_from_the_last_checkpoint(
    bundles: Bundles, killed: str
) -> None:
    bundles.busy(3, 300)
    bundles.hold()
    bundle = bundles.submit("--every", "2")
    bundles.until_begun(0, "it begins")
    until(lambda: bundles.known(bundle)["state"]["saved"] > 0, "it is saved", said=bundles.said)
    subjob = bundles.known(bundle)["state"]["subjobs"][1]["job"]
    if killed == "worker":
        (worker,) = bundles.processes("worker")
        worker.send_signal(signal.SIGKILL)
    else:
        bundles.cluster.run("scancel", subjob)
    rows = bundles.until_begun(1, "it goes on")
    bundles.go()
    assert sum(row[2] for row in rows) > 0
    assert bundles.done(bundle)["exit_code"] == 0 and bundles.right, bundles.said()


@pytest.mark.slow
def test_a_cancelled_bundle_leaves_no_job_and_no_process(bundles: Bundles) -> None:
    bundles.busy(3, 300)
    bundles.hold()
    bundle = bundles.submit()
    bundles.until_begun(0, "it begins")
    bundles.run("cancel", bundle)
    until(lambda: not bundles.processes(), "nothing of it runs", said=bundles.said)
    mine = [one for one in bundles.cluster.jobs().values() if one["user_name"] == USER]
    assert {one["job_state"] for one in mine} == {"CANCELLED"}
    assert bundles.done(bundle)["exit_code"] == 130
