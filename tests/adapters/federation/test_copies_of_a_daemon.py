"""A daemon that copies datasets is killed at each step of a copy, and the next run finds what is there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import forked
import pytest
import yaml
from directory_stores import DATA, Stores, gone
from waiting import HANG, until

from headway import events as ev
from headway.cli.known_replicas import known_replicas
from headway.config import Adapters, load_config
from headway.errors import HeadwayError
from headway.journal import Journal
from headway.model.sites import Replica

TESTS = Path(__file__).parents[2]


class Daemon:
    """``headway run`` over two clusters without jobs, whose plugin decides what a file says."""

    def __init__(self, stores: Stores) -> None:
        self.stores = stores
        root = stores.root
        self.journal, self.wishes = root / "journal.db", root / "wishes"
        self.wishes.touch()
        self.config = root / "site.yaml"
        words = {name: list(stores.words(name)) for name in ("copy", "check", "size", "remove")}
        clusters = {
            name: {"adapter": "still", "site": {"store": {"path": str(root / name)}}} for name in ("a", "b")
        }
        self.settings: dict[str, Any] = {
            "mode": "drive",
            "clusters": clusters,
            "links": [{"between": ["a", "b"], "bandwidth": "1MB/s"}],
            "datasets": {"era5": {"size": len(DATA), "at": ["a"]}},
            "transfers": {**words, "timeout": "60s"},
            "plugins": ["easy", {"wishes_of_a_file": {"path": str(self.wishes)}}],
            "journal": str(self.journal),
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.begun = 0

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return forked.headway(self._argv(*words)[1:], environment=os.environ, directory=self.stores.root)

    def _argv(self, *words: str) -> Sequence[str]:
        headway = str(Path(sys.executable).with_name("headway"))
        files = ("--adapter", str(TESTS / "still_cluster.py"))
        plugin = ("--plugin", str(TESTS / "wishes_of_a_file.py")) if words[0] == "run" else ()
        return [headway, *words, "-c", str(self.config), *files, *plugin]

    def start(self) -> None:
        self.config.write_text(yaml.safe_dump(self.settings))
        self.wishes.write_text("")
        with open(self.stores.root / "daemon.log", "ab") as log:
            self.process = subprocess.Popen(
                self._argv("run"), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.stores.root
            )
        self.begun += 1

    def wish(self, line: str) -> None:
        with self.wishes.open("a") as wishes:
            wishes.write(line + "\n")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(HANG)

    def events(self) -> list[ev.Event]:
        """What the newest run was told of datasets."""
        try:
            journal = Journal.open(self.journal, create=False, read_only=True)
        except HeadwayError:
            # It is being made.
            return []
        with journal:
            runs = journal.runs()
            if len(runs) < self.begun:
                return []
            return [
                event for cycle in journal.cycles(runs[-1].id) for event in cycle.events
                if isinstance(event, ev.DatasetCopying | ev.DatasetCopied | ev.DatasetLost | ev.CopyFailed)
            ]  # fmt: skip

    def until_told(self, kind: type[ev.Event]) -> Any:
        until(
            lambda: any(isinstance(event, kind) for event in self.events()),
            what=f"{kind.__name__} is told; {(self.stores.root / 'daemon.log').read_text()[-2000:]}",
        )
        return next(event for event in self.events() if isinstance(event, kind))


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    one = Daemon(Stores(tmp_path))
    yield one
    one.stop()


#: Where the command waits when the daemon is killed.
STEPS = {
    "the command begins": ("copy", "gate", "copy"),
    "half has arrived": ("copy", "half", "copy-half"),
    "it is being checked": ("check", "gate", "check"),
    "it has failed and is being removed": ("remove", "gate", "remove"),
}


def assert_the_copy_was_ended(daemon: Daemon) -> None:
    """What the run after a copy that was under way finds and tells."""
    failed = daemon.until_told(ev.CopyFailed)
    assert failed.reason == "headway ended while the copy was on its way"
    assert (failed.dataset, failed.site, failed.source) == ("era5", "b", "a")
    assert not daemon.stores.path("b").exists()
    assert daemon.stores.path("a").read_bytes() == DATA


def known(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> tuple[list[Replica], str]:
    """What commands that look at the clusters themselves know of copies, and what they say of that."""
    config = load_config(daemon.config, Adapters.with_files([TESTS / "still_cluster.py"]))
    capsys.readouterr()
    return known_replicas(config), " ".join(capsys.readouterr().err.split())


def test_a_look_at_the_clusters_knows_the_copies_that_the_daemon_or_the_journal_knows(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    stores = daemon.stores
    daemon.config.write_text(yaml.safe_dump(daemon.settings))
    nobody = "no daemon and no journal tell of them, so each is only where it was from the beginning"
    assert known(daemon, capsys) == ([], f"Datasets: {nobody}.")
    stores.breaks("copy", "half")
    daemon.start()
    daemon.wish("copy era5 b a")
    stores.reached("copy-half")
    daemon.until_told(ev.DatasetCopying)
    (coming,), said = known(daemon, capsys)
    assert (coming.dataset, coming.site, coming.source, said) == ("era5", "b", "a", "")
    stores.go_on()
    daemon.until_told(ev.DatasetCopied)
    (there,), said = known(daemon, capsys)
    assert (there.source, said) == ("", "") and there.since > 0
    daemon.stop()
    journal = "Datasets: no daemon answers, so copies are where the last recorded run had them."
    assert known(daemon, capsys) == ([Replica("era5", "b")], journal)
    daemon.journal.write_bytes(b"rubbish" * 999)
    assert known(daemon, capsys) == ([], f"Datasets: {nobody}.")


def killed_at(daemon: Daemon, point: str) -> None:
    """Kill the daemon when a command is at a point; the command goes with it."""
    pid = daemon.stores.reached(point)
    daemon.kill()
    until(gone(pid), what="the command is gone with its daemon")


def test_a_copy_from_its_beginning_to_its_removal_over_kills(daemon: Daemon) -> None:
    stores = daemon.stores
    stores.breaks("copy", "half")
    daemon.start()
    daemon.wish("copy era5 b a")
    stores.reached("copy-half")
    daemon.until_told(ev.DatasetCopying)
    shown = daemon.command("datasets")
    assert "a to b: 0%" in shown.stdout and "a*" in shown.stdout, shown.stdout + shown.stderr
    killed_at(daemon, "copy-half")

    stores.breaks("copy", "")
    daemon.start()
    assert_the_copy_was_ended(daemon)
    daemon.wish("copy era5 b a")
    daemon.until_told(ev.DatasetCopied)
    daemon.kill()

    daemon.start()
    assert daemon.until_told(ev.DatasetCopied).source == ""
    (dataset,) = json.loads(daemon.command("datasets", "--json").stdout)["datasets"]
    assert [one["site"] for one in dataset["at"]] == ["a", "b"]
    assert "since" not in dataset["at"][0] and dataset["at"][1]["since"] > 0
    stores.breaks("remove", "gate")
    daemon.wish("drop era5 b")
    stores.reached("remove")
    assert stores.path("b").exists()
    killed_at(daemon, "remove")

    stores.breaks("remove", "")
    daemon.start()
    assert daemon.until_told(ev.DatasetLost).reason == "its removal is completed"
    assert not stores.path("b").exists()


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_daemon_is_killed_at_each_step_of_a_copy(daemon: Daemon, step: str) -> None:
    action, mode, point = STEPS[step]
    stores = daemon.stores
    if action == "remove":
        stores.breaks("copy", "dies7")
    stores.breaks(action, mode)
    daemon.start()
    daemon.wish("copy era5 b a")
    killed_at(daemon, point)
    for broken in ("copy", action):
        stores.breaks(broken, "")
    daemon.start()
    assert_the_copy_was_ended(daemon)


@pytest.mark.slow
@pytest.mark.parametrize("order", [signal.SIGTERM, signal.SIGHUP])
def test_a_daemon_that_ends_or_reloads_ends_its_copies(daemon: Daemon, order: signal.Signals) -> None:
    stores = daemon.stores
    stores.breaks("copy", "half")
    daemon.start()
    daemon.wish("copy era5 b a")
    pid = stores.reached("copy-half")
    daemon.until_told(ev.DatasetCopying)
    assert daemon.process is not None
    stores.breaks("copy", "")
    daemon.wishes.write_text("")
    daemon.process.send_signal(order)
    until(gone(pid), what="the command is gone")
    if order is signal.SIGTERM:
        daemon.process.wait(HANG)
        assert stores.path("b").exists()
        daemon.start()
    else:
        daemon.begun += 1
    assert_the_copy_was_ended(daemon)
