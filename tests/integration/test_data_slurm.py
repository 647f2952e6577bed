"""Jobs with data at two real Slurms: each waits for its datasets, which a command of the site copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from directory_stores import DATA, Stores, gone
from live_daemon import Diary
from test_federation_slurm import Federated
from waiting import until

from headway import events as ev

pytestmark = [pytest.mark.slurm, pytest.mark.installed_slurm]

SIZE = len(DATA)


class WithData(Federated):
    """A daemon for the clusters a and b, whose stores are folders."""

    def __init__(self, clusters: dict[str, Any], stores: Stores, directory: Path, *plugins: Any) -> None:
        super().__init__(clusters, directory, plugins=[*plugins, "easy", "first-fit"])
        self.stores = stores
        words = {name: list(stores.words(name)) for name in ("copy", "check", "size", "remove")}
        for name, described in self.config["clusters"].items():
            described["site"] = {"store": {"path": str(stores.root / name)}}
        self.configure(
            links=[{"between": ["a", "b"], "bandwidth": "1MB/s"}],
            datasets={"era5": {"size": SIZE, "at": ["a"]}, "grid7": {"size": SIZE, "at": ["a"]}},
            transfers={**words, "timeout": "60s"},
        )
        stores.path("a", "grid7").write_bytes(DATA)

    def explained(self, job: str, *words: str) -> str:
        done = self.command("explain", job, *words)
        assert done.returncode == 0, done.stderr
        return " ".join((done.stdout + done.stderr).split())

    def until_explained(self, job: str, what: str) -> None:
        self.aside = lambda: self.explained(job)
        self.until(lambda: what in self.explained(job), what=f"explain says {what!r}")

    def capacity(self, site: str, bytes_: int) -> None:
        self.config["clusters"][site]["site"]["store"]["capacity"] = bytes_
        self.configure()


@pytest.fixture
def clusters(slurm_factory: Callable[..., Any]) -> dict[str, Any]:
    return {"a": slurm_factory(nodes=1, cpus=2), "b": slurm_factory(nodes=1, cpus=2)}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    (tmp_path / "stores").mkdir()
    made = Stores(tmp_path / "stores")
    yield made
    made.close()


Made = Callable[..., WithData]


@pytest.fixture
def daemon_of(clusters: dict[str, Any], stores: Stores, tmp_path: Path) -> Iterator[Made]:
    made: list[WithData] = []

    def make(*plugins: Any) -> WithData:
        made.append(WithData(clusters, stores, tmp_path, *plugins))
        return made[-1]

    yield make
    for one in made:
        one.clean_up()


def reads(stores: Stores, diary: Diary, cluster: Any, data: str) -> str:
    """Submit a job at b that fails where its data are not whole in b's store."""
    whole = [f"cmp {stores.path('a', one)} {stores.path('b', one)} || exit 1" for one in data.split(",")]
    return cluster.submit(1, script="; ".join([*whole, diary.script(1)]), comment=f"headway:data={data}")


def test_a_job_waits_for_its_data_over_broken_transfers_kills_and_a_loss(
    clusters: dict[str, Any], daemon_of: Made, stores: Stores
) -> None:
    b = clusters["b"]
    daemon, diary = daemon_of({"staging": {"retry": 1.0, "longest_retry": 4.0}}), Diary(b)
    job = reads(stores, diary, b, "era5")
    daemon.start("--monitor")

    def wished(kind: str) -> list[Any]:
        return [entry for entry in daemon.said("would do") if entry["decision"] == kind]

    daemon.until(lambda: wished("Copy"), what="a copy is wished for")
    other = b.submit(1, script=diary.script(1))
    daemon.until(lambda: wished("Start"), what="a start is wished for later")
    assert [(entry["dataset"], entry["site"]) for entry in wished("Copy")] == [("era5", "b")]
    assert daemon.stop() == 0 and stores.called() == []

    stores.breaks("copy", "half")
    daemon.start()
    stores.reached("copy-half")
    # A job without data runs meanwhile.
    daemon.until(lambda: other in diary.ended(), what="the other job ends")
    daemon.until_explained(f"b:{job}", "it waits for dataset era5 (")
    assert "has arrived from a" in daemon.explained(f"b:{job}", "--fresh")
    ahead = daemon.command("dry-run", "--from-cluster")
    assert f"b:{job}" in ahead.stdout and ahead.returncode == 0, ahead.stdout + ahead.stderr
    pid = int((stores.control / "at-copy-half").read_text())
    daemon.kill()
    until(gone(pid), what="the copy's command is gone with the daemon")
    assert stores.path("b").read_bytes() != DATA

    stores.breaks("copy", "dies7")
    daemon.start()
    daemon.until_explained(f"b:{job}", "connection reset (exit code 12); it is tried again in")
    assert job not in diary.begun()
    stores.breaks("copy", "")
    daemon.until(lambda: job in diary.ended(), what="the job runs")
    assert daemon.stop() == 0
    reasons = [event.reason for event in daemon.events(ev.CopyFailed)]
    assert reasons[0] == "headway ended while the copy was on its way"
    assert len(reasons) > 1 and all("connection reset" in reason for reason in reasons[1:])

    # Without a daemon the journal tells what is there. What was lost meanwhile is found by the next run.
    again = reads(stores, diary, b, "era5")
    said = daemon.explained(f"b:{again}", "--fresh")
    assert "no daemon answers, so copies are where the last recorded run had them" in said
    assert "waits for dataset" not in said
    stores.path("b").unlink()
    daemon.start()
    daemon.until(lambda: again in diary.ended(), what="the job runs when its data have come again")
    assert daemon.said("a copy of an earlier run is gone")
    assert daemon.stop() == 0
    assert diary.begun() == {job: 1, other: 1, again: 1}
    daemon.assert_replays()


#: Words of jobs' comments, and why such a job is refused.
HOSTILE = {
    "data=../../etc/passwd": "dataset '../../etc/passwd' is not configured",
    "data=-rf": "dataset '-rf' is not configured",
    "data=era5 movable": "'era5 movable' is not configured (key datasets); commas stand between names",
    "data=\u00e9ra5": "dataset '\u00e9ra5' is not configured",
    "data=era5'; touch pwned; '": "dataset \"era5'; touch pwned; '\" is not configured",
    "data=" + ",".join(f"d{at}" for at in range(150)): "dataset 'd0' is not configured",
    "data=era5,grid7": "its datasets, with those that stay at b, have",
}


def test_a_full_store_makes_room_and_odd_names_reach_no_command(
    clusters: dict[str, Any], daemon_of: Made, stores: Stores
) -> None:
    b = clusters["b"]
    daemon, diary = daemon_of("staging"), Diary(b)
    daemon.capacity("b", SIZE + SIZE // 2)
    refused = {b.submit(1, comment=f"headway:{words}"): why for words, why in HOSTILE.items()}
    daemon.start()
    for job, why in refused.items():
        daemon.until_explained(f"b:{job}", why)
    for name in ("era5", "grid7", "era5"):
        job = reads(stores, diary, b, name)
        daemon.until(lambda job=job: job in diary.ended(), what=f"a job with {name} runs")
    assert daemon.stop() == 0
    assert [event.dataset for event in daemon.events(ev.DatasetLost)] == ["era5", "grid7"]
    assert not stores.path("b", "grid7").exists() and stores.path("b").read_bytes() == DATA
    called = (stores.control / "log").read_text().split()
    assert not any("passwd" in word or "pwned" in word or word == "-rf" for word in called)
    assert set(diary.begun().values()) == {1} and len(diary.begun()) == 3
    daemon.assert_replays()


@pytest.mark.parametrize("plugin", ["data-greedy", "data-ga"])
def test_a_movable_job_goes_to_its_data_and_data_come_to_a_job_that_stays(
    clusters: dict[str, Any], daemon_of: Made, stores: Stores, plugin: str
) -> None:
    b = clusters["b"]
    daemon, diary = daemon_of(plugin), Diary(b)
    moves = [b.submit(1, script=diary.script(1), comment="headway:data=grid7,movable") for _ in range(2)]
    stays = reads(stores, diary, b, "era5")
    daemon.start()
    daemon.until(lambda: diary.ended().total() == 3, what="all jobs run")
    daemon.until(lambda: len(daemon.events(ev.JobEnded)) == 3, what="all ends are told")
    assert daemon.stop() == 0
    routed = {event.job_id: event.pool for event in daemon.events(ev.JobRouted)}
    assert routed == {f"b:{job}": "a:batch" for job in moves}
    assert {event.job_id: event.outcome for event in daemon.events(ev.JobEnded)} == {
        f"b:{job}": "completed" for job in (*moves, stays)
    }
    copied = [(event.dataset, event.site) for event in daemon.events(ev.DatasetCopied)]
    assert copied == [("era5", "b")]
    daemon.assert_replays()


def test_two_plugins_that_have_data_copied_are_refused(daemon_of: Made) -> None:
    daemon = daemon_of("staging", "follow")
    for command in ("run", "check"):
        done = daemon.command(command)
        said = " ".join((done.stdout + done.stderr).split())
        assert done.returncode != 0 and "found staging and follow; leave one of them out" in said, said
