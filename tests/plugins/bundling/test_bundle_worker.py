"""A worker with real processes and a real link; a manager that answers what it is told to."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from plugins.bundling.bundle_world import specification
from waiting import HANG, until

from headway.adapter.user_side import Allocation
from headway.errors import UserError
from headway.link import Client, Server, read_key
from headway_plugins.bundling.live.messages import Launch, Orders, Report, Told
from headway_plugins.bundling.live.place import Place, Result, find
from headway_plugins.bundling.live.worker import Worker, environment_of

#: Notes USR1 and the environment, and sleeps.
PROGRAM = """
import os, pathlib, signal, sys, time
place = pathlib.Path(sys.argv[1]) / os.environ["HEADWAY_PROCESS"]
signal.signal(signal.SIGUSR1, lambda *_: place.with_suffix(".signalled").touch())
said = [str(os.getpid()), os.environ["HEADWAY_PROCESSOR"], os.environ.get("SLURM_X", "-")]
place.write_text(" ".join(said))
while not place.with_suffix(".stop").exists():
    time.sleep(0.02)
sys.exit(int(place.with_suffix(".stop").read_text()))
"""


class Site:
    """A worker on a thread of its own, and the manager's orders."""

    def __init__(self, directory: Path) -> None:
        self.place = Place.make(directory / "bundles")
        self.seen = directory / "seen"
        self.seen.mkdir()
        self.spec = specification(
            command=(sys.executable, "-c", PROGRAM, str(self.seen)), beat=0.05, directory=str(self.seen),
            environment={"SLURM_X": "1", "PATH": os.environ["PATH"]},
        )  # fmt: skip
        self.orders: Any = Orders(Launch(0))
        self.reports: list[Report] = []
        self.code: int | None = None
        self.worker = Worker(
            self.place, self.spec, Allocation("17", (("node1", 2),), "node1"), note=lambda text: None
        )
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.server: Server | None = None

    def _work(self) -> None:
        self.code = self.worker.run()

    def listen(self) -> None:
        self.server = Server("127.0.0.1:0", read_key(self.place.key), self.answer, note=lambda text: None)
        self.server.start()
        self.place.announce(self.server.address)

    def answer(self, message: Any) -> Any:
        self.reports.append(msgspec.convert(message, type=Told, str_keys=True).report)
        return msgspec.to_builtins(self.orders, str_keys=True)

    def launch(self, number: int, *processes: int) -> None:
        self.orders = Orders(Launch(number, tuple((process, process % 2) for process in processes)))

    def process(self, number: int) -> psutil.Process:
        path = self.seen / str(number)
        until(lambda: path.exists() and path.read_text(), f"process {number} begins")
        return psutil.Process(int(path.read_text().split()[0]))

    def stop(self, number: int, code: int) -> None:
        fresh = self.seen / f".{number}"
        fresh.write_text(str(code))
        fresh.replace(self.seen / f"{number}.stop")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    one = Site(tmp_path)
    one.listen()
    one.thread.start()
    yield one
    one.orders = Orders(Launch(0), leave=0)
    one.worker.terminate()
    one.thread.join(HANG)
    assert one.server is not None
    one.server.close()


def test_it_starts_processes_tells_of_them_and_ends_them_with_the_next_launch(site: Site) -> None:
    site.launch(1, 0, 1, 2)
    first = site.process(0)
    site.process(2)
    words = (site.seen / "2").read_text().split()
    assert words[1:] == ["17/node1/0", "-"]
    until(lambda: site.reports[-1].live == 3, "it tells of three")
    site.stop(1, 5)
    until(lambda: site.reports[-1].ended == {1: 5}, "it tells of one's end")
    site.launch(2)
    until(lambda: (site.reports[-1].launch, site.reports[-1].live) == (2, 0), "all were ended")
    assert not first.is_running() and site.reports[-1].ended == {}


def test_a_signal_is_sent_once(site: Site) -> None:
    site.launch(1, 0)
    site.process(0)
    signalled = site.seen / "0.signalled"
    site.orders = msgspec.structs.replace(site.orders, signals=1, signal="USR1")
    until(signalled.exists, "it is signalled")
    signalled.unlink()
    count = len(site.reports)
    until(lambda: len(site.reports) > count + 3 and site.reports[-1].signals == 1, "it asks again")
    assert not signalled.exists()


def test_without_a_manager_processes_run_on_and_their_ends_are_written_down(site: Site) -> None:
    site.launch(3, 0, 1)
    site.process(0)
    site.process(1)
    assert site.server is not None
    site.server.close()
    site.stop(0, 0)
    until(lambda: site.place.ends_of(3) == {0: 0}, "the end is written down")
    assert site.process(1).is_running()
    # Another manager listens elsewhere.
    site.reports.clear()
    site.listen()
    until(lambda: site.reports and site.reports[-1].ended == {0: 0}, "it is found")


@pytest.mark.parametrize("answer", [{"error": "of another version"}, {}, [], {"launch": 3}])
def test_an_answer_that_is_no_order_stops_nothing(site: Site, answer: object) -> None:
    site.launch(1, 0)
    process = site.process(0)
    site.orders = answer
    count = len(site.reports)
    until(lambda: len(site.reports) > count + 2, "it asks again")
    assert process.is_running() and site.reports[-1].live == 1


def test_what_cannot_be_launched_on_a_full_disk_is_tried_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(launch: Launch) -> dict[str, str]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "hosts")

    said: list[str] = []
    site.worker._note = said.append
    with monkeypatch.context() as patch:
        patch.setattr(site.worker, "_hostfiles", full)
        site.launch(1, 0)
        count = len(site.reports)
        until(lambda: len(site.reports) > count + 2, "it asks again")
        assert site.reports[-1].launch == 0 and not (site.seen / "0").exists()
    site.process(0)
    assert said == ["nothing can be launched: hosts: No space left on device"]


def test_what_forks_away_ends_with_the_rest_and_leaves_no_zombie() -> None:
    code = (
        "import os, subprocess, sys, time, psutil\n"
        "from headway.adapter.descendants import adopt_orphans, end_descendants\n"
        "from headway_plugins.bundling.live.worker import bury_orphans\n"
        "adopt_orphans()\n"
        "fork = 'if os.fork(): os._exit(0)\\n'\n"
        "away = 'import os, time\\n' + fork + 'os.setsid()\\n' + fork\n"
        "ends = subprocess.Popen([sys.executable, '-c', away + 'pass'], start_new_session=True)\n"
        "stays = subprocess.Popen([sys.executable, '-c', away + 'time.sleep(300)'], start_new_session=True)\n"
        "while psutil.Process().children() and len(psutil.Process().children(recursive=True)) != 1:\n"
        "    bury_orphans([])\n"
        "    time.sleep(0.02)\n"
        "(orphan,) = psutil.Process().children()\n"
        "assert orphan.pid not in (ends.pid, stays.pid)\n"
        "end_descendants()\n"
        "bury_orphans([])\n"
        "assert not psutil.Process().children()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG)


def test_what_cannot_be_started_has_ended(site: Site) -> None:
    site.worker._spec = msgspec.structs.replace(site.spec, command=("/no/such/program",))
    site.launch(1, 0)
    until(lambda: site.reports and site.reports[-1].ended == {0: 127}, "that is told")


def test_it_leaves_with_the_exit_code(site: Site) -> None:
    site.launch(1, 0)
    process = site.process(0)
    site.orders = Orders(Launch(1), leave=7)
    until(lambda: site.code == 7, "it leaves")
    assert not process.is_running()


def test_a_placeholder_that_starts_after_the_end_tells_the_exit_code(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.place.finish(Result(9, "failed", "17"))
    site.thread.start()
    until(lambda: site.code == 9, "it ends with the application's exit code")
    other = Site(tmp_path / "other") if (tmp_path / "other").mkdir() is None else site
    other.place.finish(Result(9, "failed", "18"))
    other.thread.start()
    until(lambda: other.code == 0, "a subjob of a bundle that is over ends well")


def test_a_job_of_several_nodes_ends_as_the_worker_on_its_first() -> None:
    code = (
        "from headway_plugins.bundling.live.worker import everywhere\n"
        "here = ('sh', '-c', 'while ! read x; do sleep 0.05; done < $0; exit 5')\n"
        "import pathlib, sys, tempfile, threading\n"
        "said = pathlib.Path(tempfile.mkdtemp()) / 'said'\n"
        "said.touch()\n"
        "note = lambda text: (print(text, flush=True), said.write_text('on\\n'))\n"
        "sys.exit(everywhere((*here, str(said)), (('sh', '-c', 'exit 3'), ('sleep', '300')), note))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 5, done.stderr
    assert done.stdout == "sh: exit code 3; the worker on this node goes on\n"


def test_processes_end_with_their_worker_however_it_ends(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "from headway_plugins.bundling.live.worker import _with_worker\n"
        "one = subprocess.Popen(['sleep', '300'], start_new_session=True, preexec_fn=_with_worker(None))\n"
        "print(one.pid, flush=True)\n"
        "time.sleep(300)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "it ends, too")


def test_who_has_another_key_is_refused(site: Site) -> None:
    assert site.server is not None
    client = Client(site.server.address, b"x" * 32, peer="manager")
    with pytest.raises(Exception, match="manager at"):
        client.ask({"ask": "cancel"})


def test_the_bundles_directory_and_key_are_for_its_user_alone(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    assert place.path.stat().st_mode & 0o777 == 0o700 and place.key.stat().st_mode & 0o777 == 0o600
    place.check()
    place.key.chmod(0o640)
    with pytest.raises(UserError, match="only its owner can read"):
        read_key(place.key)
    place.path.chmod(0o750)
    with pytest.raises(UserError, match=r"expected a directory of this user's, mode 0700, .* mode 0750"):
        place.check()
    with pytest.raises(UserError, match=r"expected the id of a bundle .* found '../etc'"):
        find(tmp_path, "../etc")


def test_the_batch_systems_words_are_taken_out_of_the_environment(tmp_path: Path) -> None:
    spec = specification(environment={"SLURM_JOB_ID": "1", "PBS_JOBID": "2", "LSB_X": "3", "HOME": "/h"})
    made = environment_of(spec, Launch(1, (), {"HEADWAY_NODE": "n"}), {"slots": "/s", "counts": "/c"})
    assert made["HOME"] == "/h" and made["HEADWAY_NODE"] == "n" and made["HYDRA_HOST_FILE"] == "/c"
    assert not [key for key in made if key.startswith(("SLURM", "PBS", "LSB"))]


def test_a_users_settings_of_open_mpi_are_kept_and_those_of_a_job_of_its_are_not() -> None:
    mine = {"OMPI_MCA_plm_rsh_agent": "oarsh", "OMPI_UNIVERSE_SIZE": "4"}
    hosts = {"slots": "/s", "counts": "/c"}
    made = environment_of(specification(environment=mine), Launch(1), hosts)
    assert made["OMPI_MCA_plm_rsh_agent"] == "oarsh" and "OMPI_UNIVERSE_SIZE" not in made
    inside = specification(environment={**mine, "OMPI_COMM_WORLD_RANK": "0"})
    assert "OMPI_MCA_plm_rsh_agent" not in environment_of(inside, Launch(1), hosts)
