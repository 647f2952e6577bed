"""``etc/pbs/README.md`` followed literally on a real OpenPBS: check, monitor, drive, back."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_servers import BatchServer
from real_guide import DRIVE, Guide, failed

pytestmark = pytest.mark.pbs


@pytest.fixture
def server(pbs_server: BatchServer) -> Iterator[BatchServer]:
    """As PBS is before: nobody is a manager but root, the server schedules, and no history is kept."""
    for line in (
        "set server managers = root@*",
        "set server scheduling = True",
        "set server job_history_enable = False",
    ):
        pbs_server.run("qmgr", "-c", line, user="root")
    pbs_server.restart("sched")
    yield pbs_server
    pbs_server.kill("sched")
    for line in (
        "set server scheduling = False", "set server job_history_enable = True",
        "set queue workq started = True", "set server managers = 'root@*,headway@*'",
    ):  # fmt: skip
        pbs_server.run("qmgr", "-c", line, user="root")
    pbs_server.call("bash", "-c", "qselect | xargs -r qdel -W force", user="root")
    pbs_server.until(lambda: not pbs_server.run("qselect"), "all jobs have left")


@pytest.fixture
def guide(server: BatchServer) -> Iterator[Guide]:
    with tempfile.TemporaryDirectory(prefix="hw-guide-") as directory:
        one = Guide(server, Path(directory), {})
        yield one
        one.daemon.clean_up()


def setting(server: BatchServer, name: str) -> str:
    return server.run("qmgr", "-c", f"list server {name}").partition(" = ")[2].strip()


def submit(server: BatchServer) -> str:
    words = ("-l", "select=1:ncpus=2", "-l", "walltime=00:10:00", "-o", "/dev/null", "-e", "/dev/null")
    return server.run("qsub", *words, "--", "/bin/sleep", "600", user="alice")


def state(server: BatchServer, job: str) -> str:
    return re.search(r"job_state = (\w)", server.run("qstat", "-f", job))[1]  # type: ignore[index]


def test_check_monitor_drive_give_back(guide: Guide) -> None:
    server, daemon = guide.server, guide.daemon

    # Monitor: the shipped file as it is; PBS goes on by itself.
    assert daemon.config["mode"] == "monitor"
    daemon.start()
    own = submit(server)
    guide.until(lambda: state(server, own) == "R", "PBS starts a job by itself")
    daemon.until(lambda: own in daemon.command("explain", own).stdout, what="it knows the job")
    said = guide.follow([line.replace("4711", own) for line in guide.block("Leave it running", DRIVE)])
    assert f"Job {own} " in said and "all decisions are the same" in said
    assert daemon.stop() == 0
    assert not [entry for entry in daemon.log() if entry["level"] == "error"]

    # Drive: before the last command only the server's scheduling may fail, after it nothing may.
    said = guide.follow(guide.block("## Drive"))
    assert failed(said) == failed(said, "later") == ["server scheduling"]
    daemon.configure(mode="drive")
    take, look, restart = guide.block("Then set `mode: drive`")
    assert failed(guide.follow([take, look])) == []
    assert setting(server, "scheduling") == "False"
    assert setting(server, "job_history_enable") == "True"
    waiting = submit(server)
    guide.follow([restart])
    guide.until(lambda: state(server, waiting) == "R", "headway starts a job")
    assert waiting in [entry["job"] for entry in daemon.said("decided")]

    # Back. A job that an administrator holds waits for him.
    stop, back = guide.block("## Back")
    guide.follow([stop])
    held = submit(server)
    server.run("qhold", "-h", "s", held)
    said = guide.follow([back])
    assert "server scheduling: on" in said and f"job {held}" in said
    assert setting(server, "scheduling") == "True"
    last = submit(server)
    guide.until(lambda: state(server, last) == "R", "PBS starts jobs by itself again")
    assert (state(server, waiting), state(server, held)) == ("R", "H")


def test_root_elsewhere_is_no_manager_and_is_told_so(guide: Guide) -> None:
    guide.server.run("qmgr", "-c", "set server managers = headway@*", user="root")
    program = guide.places["/opt/headway/bin/headway"]
    argv = (program, "check", "-c", str(guide.daemon.config_path))
    told = {host: guide.server.call(*argv, user="root", host=host).stdout for host in ("pbsa", "pbsb")}
    assert "privilege" not in failed(told["pbsa"]), told
    assert "privilege" in failed(told["pbsb"]) and "on pbsa only" in told["pbsb"], told


def test_reservations_beside_pbss_own_scheduler_are_switched_on(guide: Guide) -> None:
    guide.follow(guide.block("## Reservations in PBS itself"))
    assert setting(guide.server, "scheduling") == "True"
    assert "started = False" in guide.server.run("qmgr", "-c", "list queue workq started")
