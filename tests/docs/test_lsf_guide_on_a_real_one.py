"""``etc/lsf/README.md`` followed literally on a real LSF (volclava): check, monitor, drive, back."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_servers import BatchServer
from real_guide import DRIVE, Guide, failed

pytestmark = [pytest.mark.lsf, pytest.mark.long]

#: What the guide calls LSF's places and what they are here.
PLACES = {"/opt/lsf/conf": "/opt/volclava/etc", "/opt/lsf/bin": "/opt/volclava/bin"}
ADMINISTRATORS = "ADMINISTRATORS = headway"


@pytest.fixture
def queues(lsf_server: BatchServer) -> Iterator[Path]:
    """LSF's file of queues, before anybody has made headway's user an administrator of ``normal``."""
    path = lsf_server.root / "etc" / "lsb.queues"
    before = path.read_text()
    assert ADMINISTRATORS in section(before), before
    path.write_text(before.replace(section(before), section(before).replace(ADMINISTRATORS, "")))
    reconfigured(lsf_server)
    yield path
    path.write_text(before)
    reconfigured(lsf_server)
    lsf_server.run("badmin", "qact", "normal", user="root")
    lsf_server.call("bkill", "-u", "all", "0", user="root")
    lsf_server.until(
        lambda: "No unfinished" in lsf_server.call("bjobs", "-u", "all").stderr, "no job is left"
    )


def section(text: str) -> str:
    return re.search(r"Begin Queue\nQUEUE_NAME   = normal\n.*?End Queue", text, re.DOTALL)[0]  # type: ignore[index]


def reconfigured(server: BatchServer) -> None:
    """As the guide says, and wait until mbatchd answers again."""
    server.run("badmin", "reconfig", user="root", stdin="y\n")
    server.until(lambda: server.call("bqueues", timeout=60).returncode == 0, "mbatchd answers")


@pytest.fixture
def guide(lsf_server: BatchServer) -> Iterator[Guide]:
    with tempfile.TemporaryDirectory(prefix="hw-guide-") as directory:
        one = Guide(lsf_server, Path(directory), PLACES)
        yield one
        one.daemon.clean_up()


def submit(server: BatchServer) -> str:
    said = server.run("bsub", "-n", "2", "-W", "10", "-o", "/dev/null", "sleep", "600", user="alice")
    return re.findall(r"Job <(\d+)>", said)[0]


def state(server: BatchServer, job: str) -> str:
    return server.run("bjobs", "-w", job, user="alice").splitlines()[1].split()[2]


def test_check_monitor_drive_give_back(guide: Guide, queues: Path) -> None:
    server, daemon = guide.server, guide.daemon
    check = guide.block("## Drive")

    # Before: LSF starts its jobs, and nobody has made us an administrator.
    said = guide.follow(check)
    assert failed(said) == failed(said, "later") == ["queue normal"]
    # This LSF does not say who administers the cluster.
    assert ("privilege" in failed(said, "?")) == guide.as_headway, said

    # Monitor: the shipped file as it is; LSF goes on by itself.
    assert daemon.config["mode"] == "monitor"
    daemon.start()
    own = submit(server)
    guide.until(lambda: state(server, own) == "RUN", "LSF starts a job by itself")
    asking = [line.replace("4711", own) for line in guide.block("Leave it running", DRIVE)]
    daemon.until(lambda: own in daemon.command("explain", own).stdout, what="it knows the job")
    said = guide.follow(asking)
    assert f"Job {own} " in said and "all decisions are the same" in said
    assert daemon.stop() == 0
    assert not [entry for entry in daemon.log() if entry["level"] in ("warning", "error")]

    # What the administrator changes, as the table says.
    assert f"`{ADMINISTRATORS}` in the queue's section of `lsb.queues`" in guide.text
    text = queues.read_text()
    changed = section(text).replace("End Queue", f"{ADMINISTRATORS}\nEnd Queue")
    queues.write_text(text.replace(section(text), changed))
    reconfigured(server)
    said = guide.follow(check)
    assert failed(said) == ["queue normal"] and "privilege" not in failed(said, "?"), said

    # Drive.
    daemon.configure(mode="drive")
    take, look, restart = guide.block("Then set `mode: drive`")
    assert failed(guide.follow([take, look])) == []
    waiting = submit(server)
    guide.follow([restart])
    guide.until(lambda: state(server, waiting) == "RUN", "headway starts a job")
    assert waiting in [entry["job"] for entry in daemon.said("decided")]
    held = server.run("bsub", "-H", "-o", "/dev/null", "sleep", "600", user="alice")
    (mine,) = re.findall(r"Job <(\d+)>", held)

    # Back.
    said = guide.follow(guide.block("## Back"))
    assert "queue normal: " in said and f"job {mine}" in said
    last = submit(server)
    guide.until(lambda: state(server, last) == "RUN", "LSF starts jobs by itself again")
    assert (state(server, waiting), state(server, mine)) == ("RUN", "PSUSP")
