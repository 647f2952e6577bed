"""`headway lab`: everything is there while it lives, and nothing afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import psutil
import pytest
from waiting import HANG, until

from headway.errors import Failure, UserError
from headway.inputs.shipped import shipped
from headway_adapters.lab import slurm
from headway_adapters.lab.slurm import SlurmLab, fresh_filter, own_filter
from headway_adapters.lab.system import Processes, Shape, Stopped

HEADWAY = Path(sys.executable).with_name("headway")


class Laboratory:
    """A running `headway lab`, what it said so far, and what is left of it."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self._said = folder / "said"
        with self._said.open("wb") as out:
            self.process = subprocess.Popen(
                [HEADWAY, "lab", *words], stdout=out, stderr=out, env={**os.environ, "TMPDIR": str(folder)},
                stdin=subprocess.DEVNULL,
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self._said.read_text(encoding="utf-8")

    def until_said(self, text: str) -> None:
        def holds() -> bool:
            return text in self.said or self.process.poll() is not None

        until(holds, text, said=lambda: self.said)
        assert text in self.said, self.said

    def own_folder(self) -> Path:
        """The folder that it made."""
        (found,) = self.folder.glob("headway-lab-*")
        return found

    def ended(self) -> int:
        return self.process.wait(HANG)

    def left(self) -> list[str]:
        """Its processes, and its folder."""
        mark = str(self.folder)
        lines = []
        for process in psutil.process_iter(["cmdline"]):
            line = " ".join(process.info["cmdline"] or ())
            if mark in line:
                lines.append(line)
        return [*lines, *(str(found) for found in self.folder.glob("headway-lab-*"))]


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path is short enough for sockets, and that other users can enter."""
    return tmp_path_factory.mktemp("l")


def test_the_page_shows_the_jobs(short: Path) -> None:
    lab = Laboratory(short, "pbs", "--for", "60s")
    lab.until_said("Folder: ")
    (link,) = re.findall(r"Page: (\S+) \(the link works once\)", lab.said)
    with httpx.Client(follow_redirects=True, trust_env=False, timeout=HANG) as browser:
        assert "<title>headway</title>" in browser.get(link).text
        jobs = httpx.URL(link).join("/v1/jobs")
        until(lambda: browser.get(jobs).json()["data"]["jobs"], "a job", said=lambda: lab.said)
    lab.process.send_signal(signal.SIGTERM)
    assert lab.ended() == 0, lab.said
    assert lab.left() == []


def test_without_the_extra_the_page_is_left_out(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if uvicorn was not installed."""
    (short / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'uvicorn' else find(name, *more)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(short))
    lab = Laboratory(short, "pbs", "--for", "1s")
    assert lab.ended() == 0, lab.said
    assert "the page needs uvicorn, not installed here" in lab.said
    assert "all processes are gone" in lab.said


def test_a_fresh_system_decides_by_itself_and_a_configuration_waits_for_a_person(short: Path) -> None:
    kept = short / "kept"
    lab = Laboratory(short, "pbs", "--fresh", "--for", "6s", "--every", "1s", "--keep", str(kept))
    assert lab.ended() == 0, lab.said
    assert "headway does not run" in lab.said and "headway run --monitor" in lab.said
    assert "mode: monitor\n" in (kept / "headway.yaml").read_text(encoding="utf-8")
    assert not (kept / "journal.sqlite").exists()
    assert lab.left() == []


def test_the_filter_of_a_fresh_slurm_takes_no_jobs_yet_and_listens_to_its_own_heartbeat() -> None:
    text = fresh_filter(own_filter(1234, Path("/tmp/l/state")), Path("/tmp/l/heartbeat"))
    assert "local MANAGED = {}\n" in text
    assert 'local HEARTBEAT = "/tmp/l/heartbeat"\n' in text


@pytest.mark.parametrize("system", ["pbs", "lsf"])
def test_jobs_run_under_headway_until_the_time_is_over(system: str, short: Path) -> None:
    lab = Laboratory(short, system, "--for", "6s", "--every", "1s")
    assert lab.ended() == 0, lab.said
    assert " of 128 processors busy" in lab.said
    assert "problem" not in lab.said
    assert "all processes are gone" in lab.said
    assert lab.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_nothing_is_left(number: signal.Signals, short: Path) -> None:
    lab = Laboratory(short, "pbs", "--for", "1h")
    lab.until_said("In a second shell")
    assert lab.left()
    lab.process.send_signal(number)
    assert lab.ended() == 0, lab.said
    assert lab.left() == []


def test_its_environment_leads_a_second_shell_there(short: Path) -> None:
    lab = Laboratory(short, "pbs", "--for", "1h")
    try:
        lab.until_said("Folder: ")
        shell = lab.own_folder() / "env"
        commands = f". {shell}; qstat >&2; headway status --json"
        done = subprocess.run(["/bin/sh", "-c", commands], capture_output=True, text=True, timeout=HANG)
        assert done.returncode == 0, done.stderr
        assert '"mode":"drive"' in done.stdout
    finally:
        lab.process.terminate()
        assert lab.ended() == 0


def test_a_daemon_that_ends_ends_the_lab_with_its_last_words(short: Path) -> None:
    plugin = short / "broken.py"
    plugin.write_text("raise RuntimeError('no policy today')\n", encoding="utf-8")
    lab = Laboratory(short, "lsf", "--for", "1h")
    lab.until_said("Folder: ")
    children = psutil.Process(lab.process.pid).children()
    # A child that ended has no command line.
    alive = [one for one in children if one.status() != psutil.STATUS_ZOMBIE]
    (daemon,) = [one for one in alive if "run" in one.cmdline()]
    daemon.kill()
    assert lab.ended() != 0
    assert "headway has ended by itself, with exit code -9" in lab.said
    assert lab.left() == []


def test_the_folder_to_keep_has_journal_and_logs(short: Path) -> None:
    lab = Laboratory(short, "lsf", "--for", "4s", "--keep", str(short / "kept"))
    assert lab.ended() == 0, lab.said
    assert {"journal.sqlite", "headway.yaml", "log"} <= {one.name for one in (short / "kept").iterdir()}
    done = subprocess.run(
        [HEADWAY, "replay", short / "kept" / "journal.sqlite"], capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_with_something_in_it_is_refused(short: Path) -> None:
    lab = Laboratory(short, "pbs", "--keep", str(short))
    assert lab.ended() == 2
    assert "expected an empty folder, found said" in lab.said


def test_an_unknown_policy_is_named_before_anything_starts(short: Path) -> None:
    lab = Laboratory(short, "pbs", "--policy", "nosuch")
    assert lab.ended() == 2
    assert "--policy: no plugin is called 'nosuch'" in lab.said


def test_missing_packages_of_slurm_are_named(
    short: Path, monkeypatch: pytest.MonkeyPatch, never: Processes
) -> None:
    monkeypatch.setenv("PATH", str(short))
    monkeypatch.setattr(slurm, "SYSTEM", ())
    with pytest.raises(UserError, match="--no-install-recommends munge slurm-client slurmctld"):
        SlurmLab(short, Shape(), never)


def test_a_folder_that_slurm_cannot_name_is_refused(short: Path, never: Processes) -> None:
    if slurm.missing_packages():
        pytest.skip("needs Slurm's programs")
    with pytest.raises(UserError, match="without blanks"):
        SlurmLab(short / "two words", Shape(), never)


def test_the_submit_filter_takes_the_user_for_headway_too() -> None:
    shipped_one = shipped("slurm/job_submit.lua").read_text(encoding="utf-8")
    own = own_filter(1234, Path("/lab/state"))
    assert own.count("[1234] = true") == 2 and 'FENCE = "/lab/state/headway.epoch"' in own
    assert len(own.splitlines()) == len(shipped_one.splitlines())


@pytest.fixture
def never(short: Path) -> Processes:
    """No process has started."""
    return Processes(short, threading.Event())


def test_a_process_that_ends_is_told_with_the_end_of_its_log(never: Processes) -> None:
    never.start("brief", ["/bin/sh", "-c", "echo last words; exit 3"], {})
    with pytest.raises(Failure, match=r"brief has ended by itself, with exit code 3:\n  last words"):
        until(lambda: never.check())


def test_a_program_that_is_not_there_is_named(never: Processes) -> None:
    with pytest.raises(Failure, match="/nowhere/munged cannot be started: No such file"):
        never.start("munged", ["/nowhere/munged"], {})


def test_a_stop_is_told_at_the_next_check(short: Path) -> None:
    stop = threading.Event()
    processes = Processes(short, stop)
    processes.check()
    stop.set()
    with pytest.raises(Stopped):
        processes.check()
