"""Two tiers and a move on a real Slurm: the daemon, an agent, two partitions over the same nodes.

All nodes of the test cluster are on this machine, so one agent serves them all, and jobs bind themselves
to one processor so that they have to share it.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from live_daemon import HEADWAY, Daemon
from waiting import HANG, until

from headway import events as ev

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="an agent for all users is root"),
]

PARTITIONS = (
    "--line", "PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:2",
    "--line", "PartitionName=background Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=FORCE:2",
)  # fmt: skip

#: Counts to argv[1], one at a time; saves itself on USR1 and goes on from its file. It does not end before
#: the file argv[3] is there, if one is named.
COUNTER = """
import os, pathlib, signal, sys, time
goal, images = int(sys.argv[1]), pathlib.Path(sys.argv[2])
place = images / os.environ["SLURM_JOB_ID"]
place.mkdir(exist_ok=True)
state, done = place / "state", images / ("done." + os.environ["SLURM_JOB_ID"])
number = int(state.read_text()) if state.exists() else 0
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
(place / "ready").write_text(os.environ.get("SLURM_RESTART_COUNT", "0"))
with open(images / ("begun." + os.environ["SLURM_JOB_ID"]), "a") as file:
    file.write("%d %s\\n" % (number, os.environ["SLURMD_NODENAME"]))
while number < goal or not all(map(os.path.exists, sys.argv[3:])):
    time.sleep(0.1)
    number = min(number + 1, goal)
    if asked:
        asked.clear()
        (place / "new").write_text(str(number))
        (place / "new").rename(state)
        (place / "complete").unlink(missing_ok=True)
        (place / "complete").write_text("")
done.write_text(str(number))
"""


class NodeAgent:
    """``headway node-agent serve`` as a process."""

    def __init__(self, directory: Path) -> None:
        self.key = directory / "agent.key"
        self.key.write_text(secrets.token_hex(32))
        self.key.chmod(0o600)
        self.address = f"unix:{directory}/agent.sock"
        self._log = directory / "agent.log"
        self._argv = [
            str(HEADWAY), "node-agent", "serve", "--key", str(self.key), "--listen", self.address,
            "--interval", "1", "--least-user", "0", "--state", str(directory / "tiers.json"),
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(HANG)
            self.process = None


@pytest.fixture
def node_agent(tmp_path: Path) -> Iterator[NodeAgent]:
    one = NodeAgent(tmp_path)
    one.start()
    yield one
    one.stop(signal.SIGKILL)


@pytest.fixture
def site(tmp_path: Path, node_agent: NodeAgent) -> Iterator[Callable[..., Daemon]]:
    made: list[Daemon] = []

    def make(cluster: Any, plugins: list[Any], **config: Any) -> Daemon:
        options = {
            "background": {"batch": "background"},
            "agents": {"key": str(node_agent.key), "address": node_agent.address, "interval": 1.0},
        }
        made.append(Daemon(cluster, tmp_path, plugins=plugins, options=options, **config))
        return made[-1]

    yield make
    for daemon in made:
        daemon.clean_up()


def spinner(python: str, images: Path) -> str:
    """A job's script that uses all of one processor; it writes down which process it is."""
    cpu = min(os.sched_getaffinity(0))
    code = f"import os; open('{images}/pid.' + os.environ['SLURM_JOB_ID'], 'w').write(str(os.getpid()))"
    return f'exec taskset -c {cpu} {python} -c "{code}\nwhile True: pass"'


def process_of(images: Path, job: str) -> psutil.Process:
    path = images / f"pid.{job}"
    until(lambda: path.exists() and path.read_text().isdigit(), "it says which process it is")
    return psutil.Process(int(path.read_text()))


def shares(*these: psutil.Process) -> list[float]:
    """Of the processor time that they have together, over one second of it."""

    def used() -> list[float]:
        return [sum(one.cpu_times()[:2]) for one in these]

    before = used()
    until(lambda: sum(used()) - sum(before) > 1.0, "they have a second of processor time together")
    spent = [now - then for now, then in zip(used(), before, strict=True)]
    return [one / sum(spent) for one in spent]


def weight(process: psutil.Process) -> float:
    """What the kernel's scheduler weighs a process with."""
    idle = os.sched_getscheduler(process.pid) == os.SCHED_IDLE
    return 3.0 if idle else 1024 / 1.25 ** process.nice()


def share_is_due(a: psutil.Process, b: psutil.Process) -> bool:
    """Whether the first has of the processor, before the second, what its priority promises."""
    return shares(a, b)[0] > weight(a) / (weight(a) + weight(b)) - 0.1


def gets_its_share(daemon: Daemon, a: psutil.Process, b: psutil.Process, what: str) -> None:
    """The first is served before the second: at once, or where the kernel groups processes by session once
    the session follows, when all that is in it is known to be its own."""
    assert weight(a) > 4 * weight(b)
    grouped = Path("/proc/sys/kernel/sched_autogroup_enabled")
    if grouped.exists() and grouped.read_text().strip() == "1":
        daemon.until(lambda: share_is_due(a, b), what=what)
    else:
        assert share_is_due(a, b), what


@pytest.fixture
def images(tmp_path: Path) -> Path:
    place = tmp_path / "images"
    place.mkdir()
    return place


def test_two_jobs_share_a_processor_and_the_second_comes_forward(
    slurm_factory: Callable[..., Any], site: Callable[..., Daemon], images: Path
) -> None:
    cluster = slurm_factory(*PARTITIONS, nodes=1, cpus=1)
    # Nobody knows what they use, so the one in front does not keep the other out.
    daemon = site(cluster, [{"reasy": {"cpu_known": False}}, "first-fit"])
    daemon.start()
    front = cluster.submit(1, script=spinner(cluster.release.python, images))
    daemon.until(lambda: cluster.state(front) == "RUNNING", what="the first runs")
    behind = cluster.submit(1, script=spinner(cluster.release.python, images))
    daemon.until(lambda: cluster.state(behind) == "RUNNING", what="the second runs behind it")
    assert cluster.jobs()[behind]["partition"] == "background"
    a, b = process_of(images, front), process_of(images, behind)
    daemon.until(lambda: os.sched_getscheduler(b.pid) == os.SCHED_IDLE, what="it is in the background")
    assert os.sched_getscheduler(a.pid) == os.SCHED_OTHER
    gets_its_share(daemon, a, b, "the first has nearly all of the processor")
    # The other way round the priorities are swapped, while it runs.
    cluster.run("scancel", front)
    daemon.until(lambda: os.sched_getscheduler(b.pid) == os.SCHED_OTHER, what="it came forward")
    daemon.until(lambda: daemon.events(ev.JobTierChanged), what="that is told")
    (changed,) = daemon.events(ev.JobTierChanged)
    assert (changed.job_id, changed.tier) == (behind, "foreground")
    assert cluster.state(behind) == "RUNNING"
    third = cluster.submit(1, script=spinner(cluster.release.python, images))
    daemon.until(lambda: cluster.state(third) == "RUNNING", what="another runs behind it")
    c = process_of(images, third)
    daemon.until(lambda: os.sched_getscheduler(c.pid) == os.SCHED_IDLE, what="it is in the background")
    gets_its_share(daemon, b, c, "the one that came forward has nearly all of it")
    daemon.stop()
    daemon.assert_replays()


MOVER = """
from headway.decisions import Migrate
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits


class Mover(Plugin):
    "Moves every job that runs on the first node, where there is a file that says so."

    traits = Traits(needs=(Migrate,))

    @hookimpl
    def control(self, state):
        for job in list(state.jobs.values()):
            name = job.placement[0][0] if job.placement else ""
            if job.status.value == "running" and name == "node1" and job.id not in state.before_move:
                yield Migrate(job.id, (("node2", job.processors),), "away from node1")
"""


def test_a_job_that_saves_itself_is_moved_and_goes_on(
    slurm_factory: Callable[..., Any], site: Callable[..., Daemon], images: Path, tmp_path: Path
) -> None:
    cluster = slurm_factory(*PARTITIONS, nodes=2, cpus=1)
    program = tmp_path / "counter.py"
    program.write_text(COUNTER)
    plugin = tmp_path / "mover.py"
    plugin.write_text(MOVER)
    saves = {"checkpoint-signal": {"directory": str(images), "spare": 0}}
    daemon = site(cluster, ["easy", "first-fit", saves])
    # It counts on until it was moved: a move before it can be signalled is refused, and tried again later.
    may_end = tmp_path / "may-end"
    script = f"exec {cluster.release.python} {program} 150 {images} {may_end}"
    job = cluster.submit(1, script=script, requeue=True)
    daemon.start("--plugin", str(plugin))
    daemon.until(lambda: daemon.events(ev.JobMigrated), what="it is moved")
    may_end.touch()
    done = images / f"done.{job}"
    daemon.until(done.exists, what="it finishes")
    assert done.read_text() == "150"
    begun = [line.split() for line in (images / f"begun.{job}").read_text().splitlines()]
    assert [node for _, node in begun] == ["node1", "node2"] and int(begun[1][0]) > 0
    daemon.until(lambda: daemon.events(ev.JobEnded), what="its end is told")
    (moved,) = daemon.events(ev.JobMigrated)
    assert moved.placement == (("node2", 1),) and not moved.restarted and moved.seconds > 0
    assert not daemon.events(ev.JobRequeued)
    daemon.stop()


GUIDE = Path(__file__).parents[2] / "docs" / "operators" / "migration.md"
#: Counts and, when it is told to, writes how far it is, then the word that it is written. While it counts
#: in a place that it was moved to, and may end there, it goes on to the end.
SOLVER = """#!{python}
import os, pathlib, signal, sys, time
state = pathlib.Path(sys.argv[2])
images = state.parent.parent
number = int(state.read_text()) if state.exists() else 0
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
with open(images / ("begun." + os.environ["SLURM_JOB_ID"]), "a") as file:
    file.write("%d %s\\n" % (number, os.environ["SLURMD_NODENAME"]))
while not (images / "may-end").exists():
    time.sleep(0.1)
    number += 1
    if asked:
        asked.clear()
        time.sleep(1.0)
        state.write_text(str(number))
        (state.parent / "written").write_text("")
(images / ("done." + os.environ["SLURM_JOB_ID"])).write_text(str(number))
"""


@pytest.mark.parametrize("says", [True, False])
def test_the_guides_script_is_moved_with_what_it_has_done_if_the_job_says_the_configured_word(
    slurm_factory: Callable[..., Any], site: Callable[..., Daemon], images: Path, tmp_path: Path, says: bool
) -> None:
    cluster = slurm_factory(*PARTITIONS, nodes=2, cpus=1)
    solver, plugin, batch = tmp_path / "solver", tmp_path / "mover.py", tmp_path / "job.sh"
    solver.write_text(SOLVER.format(python=cluster.release.python))
    solver.chmod(0o755)
    plugin.write_text(MOVER)
    _, _, section = GUIDE.read_text().partition("## A job that saves itself")
    script = section.partition("```bash\n")[2].partition("```")[0]
    batch.write_text(script.replace("./solver", str(solver)).replace("/scratch/headway", str(images)))
    saves = {"checkpoint-signal": {"directory": str(images), "spare": 0, "attribute": "saves-itself"}}
    daemon = site(cluster, ["easy", "first-fit", saves, "requeue"])
    word = {"comment": "headway:saves-itself"} if says else {}
    job = cluster.submit(1, script=f"exec bash {batch}", requeue=True, **word)
    if says:
        # What a signal that came twice leaves behind.
        (images / job).mkdir()
        (images / job / "written").touch()
    done = daemon.command("check").stdout
    assert ("checkpoint-signal applies to no job now" in done) is not says
    daemon.start("--plugin", str(plugin))
    daemon.until(lambda: daemon.events(ev.JobMigrated), what="it is moved")
    (moved,) = daemon.events(ev.JobMigrated)
    assert moved.restarted is not says
    over = daemon.said("a move is over")[-1]["what"]
    assert ("with its work so far" if says else "from its beginning") in over
    passed_over = daemon.said("a move begins")[-1].get("passed_over", "")
    assert ("the job does not say 'saves-itself'" in passed_over) is not says
    (images / "may-end").touch()
    daemon.until((images / f"done.{job}").exists, what="it finishes")
    begun = [line.split() for line in (images / f"begun.{job}").read_text().splitlines()]
    assert [node for _, node in begun] == ["node1", "node2"]
    assert (int(begun[1][0]) > 0) is says
    daemon.stop()
