"""CRIU and DMTCP: their command lines and what becomes of each failure, against stand-in programs.

Where CRIU is installed and works (`criu check`), a real process is dumped and restored.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from building import described
from waiting import until

from headway.adapter.migration import Move
from headway.errors import Failure
from headway_plugins.migration.checkpoint_signal import CheckpointSignal, SignalOptions
from headway_plugins.migration.criu import Criu, CriuOptions
from headway_plugins.migration.dmtcp import Dmtcp, DmtcpOptions
from headway_plugins.migration.programs import Programs

MOVE = Move(described("7", 2), (("n1", 2),), (("n2", 2),), restarts=0)

#: Writes down its words; does what its file ``mode`` says.
STAND_IN = """#!{python}
import os, pathlib, sys, time
here = pathlib.Path(__file__).parent
with (here / "words").open("a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
mode = (here / "mode").read_text() if (here / "mode").exists() else "works"
if "check" in sys.argv or "--version" in sys.argv:
    print("Looks good." if mode == "works" else "no such kernel"); sys.exit(mode != "works")
if mode == "fails":
    print("cannot dump this"); sys.exit(1)
if mode == "hangs":
    time.sleep(1000)
if "--images-dir" in sys.argv:
    place = pathlib.Path(sys.argv[sys.argv.index("--images-dir") + 1])
    (place / "pages-1.img").write_bytes(b"p" * 5000)
    said = "Dumping finished successfully" if mode == "works" else "Error: half-way"
    (place / "dump.log").write_text(said + "\\n")
else:
    place = pathlib.Path(os.environ["PLACE"])
    (place / "ckpt_a.dmtcp").write_bytes(b"p" * 5000)
    if mode == "works":
        (place / "dmtcp_restart_script.sh").write_text("#!/bin/sh\\n")
"""


class StandIn:
    """A program that stands for another."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self.path = directory / "program"
        self.path.write_text(STAND_IN.format(python=sys.executable))
        self.path.chmod(0o755)

    def mode(self, mode: str) -> None:
        (self.directory / "mode").write_text(mode)

    def words(self) -> list[str]:
        return (self.directory / "words").read_text().splitlines()


@pytest.fixture
def program(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "program")


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "images"
    place.mkdir()
    monkeypatch.setenv("PLACE", str(place / "7"))
    return place


def criu(program: StandIn, images: Path, **more: Any) -> Criu:
    finder = ("echo", "4321", "-n") if not more.get("finder") else more.pop("finder")
    return Criu(
        CriuOptions(directory=images, spare=0, program=str(program.path), finder=finder, **more)
    )  # fmt: skip


def first_process(directory: Path, answer: str) -> tuple[str, ...]:
    path = directory / "finder"
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return (str(path),)


def test_criu_dumps_the_jobs_first_process(program: StandIn, images: Path, tmp_path: Path) -> None:
    one = criu(program, images, finder=first_process(tmp_path, "4321"))
    assert [one.perform(MOVE, task).ok for task in ("prepare", "dump")] == [True, True]
    (words,) = program.words()
    assert words == (
        f"dump --tree 4321 --images-dir {images}/7 --leave-stopped --shell-job --log-file dump.log "
        "--file-locks"
    )
    until(lambda: one.perform(MOVE, "confirm").ok, "it is confirmed")
    assert one.perform(MOVE, "verify").ok
    (images / "7" / "pages-1.img").write_bytes(b"p" * 4999)
    damaged = one.perform(MOVE, "verify")
    assert not damaged.ok and "expected 5000 bytes, found 4999 bytes" in damaged.message
    assert not (images / "7").exists()


@pytest.mark.parametrize(
    ("mode", "said"),
    [("fails", "cannot dump this"), ("half", "expected 'Dumping finished successfully'"),
     ("hangs", "the program took longer than 0.5 s")],
)  # fmt: skip
def test_a_dump_that_fails_says_why(
    program: StandIn, images: Path, tmp_path: Path, mode: str, said: str
) -> None:
    program.mode(mode)
    limit = 0.5 if mode == "hangs" else 60
    one = criu(program, images, finder=first_process(tmp_path, "4321"), timeout=limit)
    assert one.perform(MOVE, "prepare").ok
    report = one.perform(MOVE, "dump")
    assert not report.ok and said in report.message
    assert one.perform(MOVE, "discard").ok and not (images / "7").exists()


@pytest.mark.parametrize("answer", ["", "none", "1; rm", "0", "-1"])
def test_what_is_no_process_is_not_dumped(
    program: StandIn, images: Path, tmp_path: Path, answer: str
) -> None:
    one = criu(program, images, finder=first_process(tmp_path, answer))
    one.perform(MOVE, "prepare")
    report = one.perform(MOVE, "dump")
    assert not report.ok and "expected the number of a process" in report.message


def test_criu_leaves_jobs_of_several_nodes_alone(program: StandIn, images: Path) -> None:
    one = criu(program, images)
    wide = Move(described("7", 2), (("n1", 1), ("n2", 1)), (("n3", 2),), 0)
    assert one.suits(wide) == "it runs on several nodes" and one.suits(MOVE) == ""


@pytest.mark.parametrize(
    ("handler", "options"), [(Criu, CriuOptions), (Dmtcp, DmtcpOptions), (CheckpointSignal, SignalOptions)]
)
def test_each_that_saves_can_be_confined_to_jobs_of_an_attribute(
    images: Path, handler: Any, options: Any
) -> None:
    one = handler(options(directory=images, attribute="saves"))
    (images / "7").mkdir()
    (images / "7" / "port").write_text("7779")
    saves = Move(described("7", 2, attributes={"saves": "yes"}), (("n1", 2),), (("n2", 2),), restarts=0)
    assert one.suits(MOVE) == "the job does not say 'saves'"
    assert one.suits(saves) == ""


def test_dmtcp_asks_the_coordinator_whose_port_the_job_wrote_down(program: StandIn, images: Path) -> None:
    one = Dmtcp(DmtcpOptions(directory=images, spare=0, program=str(program.path)))
    assert "no coordinator" in one.suits(MOVE)
    one.perform(MOVE, "prepare")
    (images / "7" / "port").write_text("7779\n")
    assert one.suits(MOVE) == ""
    assert one.perform(MOVE, "dump").ok
    assert program.words() == ["--coord-host n1 --coord-port 7779 --bcheckpoint"]
    assert one.perform(MOVE, "confirm").ok and one.perform(MOVE, "verify").ok


def test_dmtcp_without_its_script_is_not_complete(program: StandIn, images: Path) -> None:
    program.mode("half")
    one = Dmtcp(DmtcpOptions(directory=images, spare=0, program=str(program.path)))
    one.perform(MOVE, "prepare")
    (images / "7" / "port").write_text("7779\n")
    assert one.perform(MOVE, "dump").ok
    report = one.perform(MOVE, "confirm")
    assert report.again and "dmtcp_restart_script.sh is not there" in report.message


@pytest.mark.parametrize("text", ["", "80", "70000", "7779 --kill", "x"])
def test_a_users_port_is_read_with_care(program: StandIn, images: Path, text: str) -> None:
    one = Dmtcp(DmtcpOptions(directory=images, spare=0, program=str(program.path)))
    one.perform(MOVE, "prepare")
    (images / "7" / "port").write_text(text)
    report = one.perform(MOVE, "dump")
    assert not report.ok and "expected a port of 1024 to 65535" in report.message


def test_check_says_what_is_missing(program: StandIn, images: Path) -> None:
    for make in (criu, lambda p, i: Dmtcp(DmtcpOptions(directory=i, spare=0, program=str(p.path)))):
        program.mode("works")
        assert all(check.ok for check in make(program, images).check())
        program.mode("broken")
        first = make(program, images).check()[0]
        assert not first.ok and first.detail == "no such kernel" and first.remedy
    missing = Dmtcp(DmtcpOptions(directory=images, program="no-such-program")).check()[0]
    assert not missing.ok and missing.detail == "no-such-program is not installed"


def test_commands_come_to_nodes_through_the_sites_own() -> None:
    programs = Programs(("ssh", "-l", "{user}", "{node}"), 1.0)
    assert programs.vector("n1", "ada", ("criu", "dump")) == ("ssh", "-l", "ada", "n1", "criu", "dump")
    for node, user, words in (("n 1", "ada", ("a",)), ("n1", "a;b", ("a",)), ("n1", "ada", ("$(a)",))):
        with pytest.raises(Failure, match="expected a plain"):
            programs.vector(node, user, words)
    known = Programs(("ssh", "{node}"), 1.0).check("x", "criu", ("criu", "check"), "")
    assert known.ok and not known.known


def test_a_daemon_that_ends_does_not_wait_for_a_dump(program: StandIn) -> None:
    program.mode("hangs")
    programs = Programs((), 1000.0)
    programs.stop()
    with pytest.raises(Failure, match="the daemon ends"):
        programs.run("n1", "", (str(program.path), "dump"))


def works() -> str:
    if shutil.which("criu") is None:
        return "criu is not installed"
    done = subprocess.run(["criu", "check"], capture_output=True, text=True)
    last = (done.stdout + done.stderr).strip().splitlines()
    return "" if done.returncode == 0 else f"criu does not work here: {last[-1] if last else 'no word'}"


@pytest.mark.skipif(works() != "", reason=works() or "criu works")
def test_a_real_process_is_dumped_and_restored(images: Path, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    loop = (
        "import sys, time\nn = 0\nwhile True:\n    n += 1\n"
        "    open(sys.argv[1], 'w').write(str(n))\n    time.sleep(0.05)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", loop, str(counter)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    until(lambda: counter.exists() and counter.read_text() > "5", "it counts")
    one = Criu(
        CriuOptions(directory=images, spare=0, finder=first_process(tmp_path, str(process.pid)), words=())
    )
    assert one.perform(MOVE, "prepare").ok
    report = one.perform(MOVE, "dump")
    assert report.ok, report.message
    reached = int(counter.read_text() or 0)
    process.kill()
    process.wait()
    assert one.perform(MOVE, "confirm").ok and one.perform(MOVE, "verify").ok
    place = images / "7"
    subprocess.run(
        ["criu", "restore", "--images-dir", str(place), "--shell-job", "--restore-detached",
         "--pidfile", str(tmp_path / "pid")], check=True,
    )  # fmt: skip
    until(lambda: int(counter.read_text() or 0) > reached, "it goes on counting")
    os.kill(int((tmp_path / "pid").read_text()), 9)
    time.sleep(0)
