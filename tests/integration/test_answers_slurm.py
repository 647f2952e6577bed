"""The daemon answers an ordinary user of a real Slurm, who cannot read its journal."""

from __future__ import annotations

import shutil
import signal
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_daemon import Daemon

from headway.service import protocol as p
from headway.service.client import ask

pytestmark = pytest.mark.slurm

#: The interpreter of the tests may be where users cannot go.
PYTHON = "/usr/bin/python3"
START = (
    f"import site; site.addsitedir({sysconfig.get_path('purelib')!r}); from headway.cli import main; main()"
)
#: The user of the jobs, and another.
USER, OTHER = "nobody", "daemon"


@pytest.fixture
def daemon(slurm_cluster: Any) -> Iterator[Daemon]:
    """Its directory is one that users may enter."""
    place = Path(tempfile.mkdtemp(prefix="hw-answers-"))
    place.chmod(0o755)
    made = Daemon(slurm_cluster, place)
    yield made
    made.clean_up()
    shutil.rmtree(place)


def as_user(daemon: Daemon, user: str, *words: str) -> Any:
    """A command of headway's, as this user, of whose configuration no command of Slurm's can be run."""
    path = daemon.config_path.with_name("user.yaml")
    options = {"partitions": ["batch"], "bin_dir": "/nonexistent"}
    cluster = {"adapter": "slurm", "options": options}
    path.write_text(yaml.safe_dump({**daemon.config, "cluster": cluster}))
    argv = (PYTHON, "-c", START, words[0], "-c", str(path), *words[1:])
    return daemon.cluster.call(*argv, user=user)


def test_a_user_is_told_of_an_own_job_by_the_daemon_and_of_no_other(daemon: Daemon) -> None:
    cluster = daemon.cluster
    version = cluster.call(PYTHON, "--version", user=USER).stdout
    if f"{sys.version_info.major}.{sys.version_info.minor}." not in version:
        pytest.skip(f"{PYTHON} is {version.strip() or 'not there'}: users cannot load what is installed here")
    daemon.start()
    (running, *_) = [cluster.submit(4, 600, nodes=1, user=USER) for _ in range(3)]
    daemon.until(lambda: cluster.state(running) == "RUNNING", what="a job runs")
    head = cluster.submit(16, 60, nodes=4, user=USER)
    foreign = cluster.submit(16, 60, nodes=4, user=OTHER)
    daemon.until(lambda: "number 2 of 2" in daemon.command("explain", foreign).stdout, what="both are known")
    # The policy books the first job once another could be backfilled.
    cluster.submit(1, 60, user=USER)
    daemon.until(
        lambda: "It waits for the end" in as_user(daemon, USER, "explain", head).stdout, what="it is booked"
    )

    told = as_user(daemon, USER, "explain", head)
    assert (told.returncode, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert lines[0].startswith(
        f"Job {head} of {USER} asks for 16 processors on 4 nodes for 300 s in pool 'batch';"
    )
    assert lines[1].startswith("It is number 1 of ")
    assert "It waits for the end of job " in lines[2] and f"{running} (by " in lines[2]
    assert lines[3].startswith("So says the daemon, as of its cycle at ") and len(lines) == 4
    # Root is told the same, and what the journal has.
    assert daemon.command("explain", head).stdout.splitlines()[:3] == lines[:3]

    # Of another user's job the daemon tells a user nothing; Slurm, which has its own rules, cannot be asked.
    refused = as_user(daemon, USER, "explain", foreign)
    assert f"no job of yours with the id '{foreign}'" in refused.stderr
    assert (refused.returncode, refused.stdout) == (1, "")
    told = as_user(daemon, OTHER, "explain", foreign)
    assert f"Job {foreign} of {OTHER} asks for " in told.stdout

    daemon.configure(service={"private": False})
    runs = len(daemon.runs())
    daemon.send(signal.SIGHUP)
    daemon.until(lambda: len(daemon.runs()) > runs, what="it has read that")
    daemon.until(lambda: as_user(daemon, USER, "explain", foreign).stderr == "", what="it tells")


def test_questions_give_slurm_no_command_and_the_journal_no_row(daemon: Daemon) -> None:
    cluster = daemon.cluster
    daemon.start()
    running = cluster.submit(16, 600, nodes=4)
    daemon.until(lambda: cluster.state(running) == "RUNNING", what="it runs")
    waits = cluster.submit(4, 60)
    path = Path(f"{daemon.config['journal']}.sock")
    daemon.until(lambda: ask(path, p.Explain(waits)).outcome == "accepted", what="it is known")
    cycles, asked, began = len(daemon.cycles()), 0, time.monotonic()
    while time.monotonic() < began + 3:
        for question in (p.Explain(waits), p.Jobs(), p.Pools(), p.Nodes(), p.Bookings(), p.Cycle()):
            assert ask(path, question).outcome == "accepted"
            asked += 1
        time.sleep(0.4)
    assert asked > 20 and len(daemon.cycles()) <= cycles + 2
    nodes = ask(path, p.Nodes()).found
    assert isinstance(nodes, p.NodePage) and {node.jobs for node in nodes.nodes} == {(running,)}
    daemon.assert_replays()
