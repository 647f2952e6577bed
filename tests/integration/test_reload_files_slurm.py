"""A reload on a real Slurm: whatever is wrong with a file that the configuration names, the run that is in
force goes on scheduling with what it has read."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

pytestmark = pytest.mark.slurm

REFUSED = "the new configuration is wrong; the old configuration stays in force"
PROFILES = Path(__file__).parents[2] / "etc" / "energy"
PLUGIN = """
from headway.hookspecs import hookimpl

class Mine:
    name = "mine"

    @hookimpl
    def queue_key(self, job, state):
        return (job.submit_time,)
"""
#: File -> what it holds at first.
FILES: dict[str, str] = {
    "accounts.yaml": "physics: {shares: 1, users: {root: 1}}\n",
    "power.yaml": (PROFILES / "present-day.yaml").read_text(),
    "topology.conf": "SwitchName=s1 Nodes=node[1-2]\n",
    "agents.key": "k" * 64,
    "mine.py": PLUGIN,
}


@pytest.fixture
def site(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """2 nodes of 4 CPUs, and a configuration that names a file of each kind."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    agents = {"key": str(tmp_path / "agents.key"), "address": "127.0.0.1:1"}
    plugins = [
        {"limits": {"of": {"user": {"*": {"jobs": 100}}}, "file": "accounts.yaml"}},
        {"tree": {"file": "topology.conf"}},
        "easy",
        "first-fit",
    ]
    daemon = Daemon(
        slurm_factory(nodes=2, cpus=4), tmp_path, plugins=plugins, energy={"profile": "power.yaml"},
        options={"agents": agents},
    )  # fmt: skip
    yield daemon
    daemon.clean_up()


def gone(path: Path) -> None:
    path.unlink()


def rubbish(path: Path) -> None:
    path.write_bytes(b"\x00\xff: [}\n")


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_others(path: Path) -> None:
    path.chmod(0o644)


def reload(site: Daemon, says: str) -> dict[str, Any]:
    already = len(site.said(says))
    site.send(signal.SIGHUP)
    site.until(lambda: len(site.said(says)) > already, what=f"{says!r} is said")
    return site.said(says)[-1]


def test_a_named_file_that_is_broken_costs_nothing(site: Daemon, tmp_path: Path) -> None:
    diary = Diary(site.cluster)
    site.start("--plugin", str(tmp_path / "mine.py"))

    def still_schedules(name: str) -> None:
        job = site.cluster.submit(script=diary.script(0.1), processors=1, job_name=name)
        site.until(lambda: diary.begun()[job] == 1, what=f"a job runs after {name}")

    still_schedules("the start")
    broken = [
        (name, how)
        for name in FILES
        for how in (gone, rubbish, a_directory)
        if (name, how) != ("agents.key", rubbish)
    ]
    for name, how in [*broken, ("agents.key", to_others)]:
        path = tmp_path / name
        how(path)
        assert path.stem in reload(site, REFUSED)["error"], (name, how)
        still_schedules(f"{name} {how.__name__}")
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.write_text(FILES[name])
        path.chmod(0o600)
    # One run all the time: nothing was given up, and nothing that was learned is in doubt.
    assert len(site.said("started")) == 1
    assert not site.said("what plugins learned or counted since the last checkpoint is lost")
    # Two at once; a journal that another has not; then mended.
    site.send(signal.SIGHUP)
    reload(site, "started")
    still_schedules("the end")
    journal = site.config["journal"]
    site.configure(journal=str(tmp_path / "nowhere" / "journal.sqlite"))
    assert "nowhere" in reload(site, REFUSED)["error"]
    site.configure(journal=journal, service={"socket": str(tmp_path / "nowhere" / "socket")})
    assert "nowhere" in reload(site, REFUSED)["error"]
    site.configure(service={})
    reload(site, "started")
    still_schedules("a mended file")
    assert site.stop() == 0


def test_while_slurm_is_away_the_run_goes_on_and_the_next_one_waits(site: Daemon, tmp_path: Path) -> None:
    diary = Diary(site.cluster)
    site.start()
    site.cluster.kill("slurmctld", "TERM")
    try:
        (tmp_path / "topology.conf").unlink()
        reload(site, REFUSED)
        (tmp_path / "topology.conf").write_text(FILES["topology.conf"])
        reload(site, "the cluster does not answer; waiting for it")
        assert len(site.said("started")) == 1
    finally:
        site.cluster.up("slurmctld")
    site.until(lambda: len(site.said("started")) == 2, what="the next run begins once Slurm answers")
    assert len(site.said("the cluster does not answer; waiting for it")) == 1
    job = site.cluster.submit(script=diary.script(0.1), processors=1, job_name="after")
    site.until(lambda: diary.begun()[job] == 1, what="it schedules")
    assert site.stop() == 0
