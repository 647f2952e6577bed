"""The daemon answers an ordinary user of a real Slurm, who cannot read its journal."""

from __future__ import annotations

import json
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


#: The same where no configuration can be read, and the daemon is at the socket that its unit makes.
ALONE = (
    f"import os, site; site.addsitedir({sysconfig.get_path('purelib')!r}); from pathlib import Path; "
    "from headway.cli import asking, common, main; "
    "asking.SOCKET, common.CONFIGS = Path(os.environ['DAEMON']), (); main()"
)


def by_the_socket(daemon: Daemon, user: str, *words: str) -> Any:
    """A command of headway's, as this user, to whom the daemon's socket is all that there is of headway."""
    socket = f"DAEMON={daemon.config['journal']}.sock"
    return daemon.cluster.call(
        "/usr/bin/env", "PATH=/nonexistent", socket, PYTHON, "-c", ALONE, *words, user=user
    )


def users_can_run_it(daemon: Daemon) -> None:
    version = daemon.cluster.call(PYTHON, "--version", user=USER).stdout
    if f"{sys.version_info.major}.{sys.version_info.minor}." not in version:
        pytest.skip(f"{PYTHON} is {version.strip() or 'not there'}: users cannot load what is installed here")


def test_the_socket_alone_tells_a_user_of_the_own_jobs_what_root_is_told(daemon: Daemon) -> None:
    users_can_run_it(daemon)
    cluster = daemon.cluster
    daemon.start()
    running = cluster.submit(4, 600, nodes=1, user=USER)
    daemon.until(lambda: cluster.state(running) == "RUNNING", what="a job runs")
    head, foreign = cluster.submit(16, 60, nodes=4, user=USER), cluster.submit(16, 60, nodes=4, user=OTHER)
    last = cluster.submit(16, 60, nodes=4, user=USER, job_name="$(id) [red]x")
    daemon.until(
        lambda: last in by_the_socket(daemon, USER, "jobs").stdout, what="all jobs are known to the daemon"
    )

    def listed(user: str, *words: str) -> dict[str, Any]:
        told = by_the_socket(daemon, user, "jobs", "--json", *words)
        assert (told.returncode, told.stderr) == (0, "")
        return {job["id"]: job for job in json.loads(told.stdout)["jobs"]}

    mine = listed(USER)
    assert list(mine) == [head, last, running] and list(listed(USER, "--all")) == list(mine)
    assert list(listed(OTHER)) == [foreign] and listed(USER, "--user", OTHER) == {}
    assert [job["position"] for job in mine.values() if "position" in job] == [1, 3]
    root = json.loads(daemon.command("jobs", "--all", "--json").stdout)["jobs"]
    assert [job["id"] for job in root] == [head, foreign, last, running]
    assert {job["id"]: job for job in root if job["user"] == USER} == mine

    began = time.monotonic()
    told = by_the_socket(daemon, USER, "explain", head)
    assert (told.returncode, told.stderr) == (0, "")
    print(f"explain by the socket alone took {time.monotonic() - began:.2f} s")
    lines = told.stdout.splitlines()
    assert lines[0].startswith(f"Job {head} of {USER} asks for 16 processors on 4 nodes")
    # Booked or not, as the first of the queue it has a planned start.
    planned = ("Processors are kept for it from ", "As the first of the queue it can start at ")
    assert mine[head]["planned_start"] and any(line.startswith(planned) for line in lines)
    of_root = daemon.command("explain", head).stdout.splitlines()
    said = [line for line in of_root if not line.startswith("So says")]
    # Behind these, root is told what the journal has.
    assert said[: len(lines) - 1] == lines[:-1]

    before = by_the_socket(daemon, USER, "explain", last).stdout
    assert (
        f"2 jobs are before it in the queue, for 32 processors together: among them your job {head}."
        in before
    )
    assert f"job {foreign}" not in before
    refused = by_the_socket(daemon, USER, "explain", foreign)
    none = by_the_socket(daemon, USER, "explain", "999999")
    assert (refused.returncode, refused.stdout) == (none.returncode, none.stdout) == (2, "")
    assert refused.stderr.replace(foreign, "999999") == none.stderr
    assert f"no job of yours with the id '{foreign}'" in refused.stderr
    fresh = by_the_socket(daemon, USER, "explain", head, "--fresh")
    assert fresh.returncode == 2 and "--fresh needs a configuration" in fresh.stderr
    daemon.assert_replays()


def test_a_begin_time_and_a_comment_of_a_user_forge_no_planned_start(daemon: Daemon) -> None:
    users_can_run_it(daemon)
    cluster = daemon.cluster
    daemon.start()
    running = cluster.submit(16, 600, nodes=4, user=USER)
    daemon.until(lambda: cluster.state(running) == "RUNNING", what="a job runs")
    first = cluster.submit(16, 60, nodes=4, user=OTHER)
    forged = cluster.submit(16, 60, nodes=4, user=USER, comment="headway:start=1 headway:shown=1")
    later = cluster.submit(16, 60, nodes=4, user=USER)
    as_its_user = cluster.call("scontrol", "update", f"JobId={later}", "StartTime=now+1hour", user=USER)
    daemon.until(
        lambda: "begin time" in by_the_socket(daemon, USER, "jobs").stdout or as_its_user.returncode != 0,
        what="its begin time is seen",
    )
    shown = {job["id"]: job for job in json.loads(daemon.command("jobs", "--all", "--json").stdout)["jobs"]}
    assert [shown[job]["position"] for job in (first, forged)] == [1, 2]
    assert (
        "planned_start" not in shown[forged] or shown[forged]["planned_start"] > shown[first]["planned_start"]
    )
    if as_its_user.returncode == 0:
        assert shown[later]["status"] == "waiting" and "planned_start" not in shown[later]


def test_a_user_is_told_of_an_own_job_by_the_daemon_and_of_no_other(daemon: Daemon) -> None:
    cluster = daemon.cluster
    users_can_run_it(daemon)
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
    assert lines[-1].startswith("So says the daemon, as of its cycle at ")
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
