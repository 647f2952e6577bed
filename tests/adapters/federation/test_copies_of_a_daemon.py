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

import pytest
import yaml
from directory_stores import DATA, TOOL, Stores, gone
from waiting import HANG, until

from headway import events as ev
from headway.errors import HeadwayError
from headway.journal import Journal

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
        return subprocess.run(
            self._argv(*words), capture_output=True, text=True, timeout=HANG, cwd=self.stores.root
        )

    def _argv(self, *words: str) -> Sequence[str]:
        headway = str(Path(sys.executable).with_name("headway"))
        files = ("--adapter", str(TESTS / "still_cluster.py"))
        plugin = ("--plugin", str(TESTS / "wishes_of_a_file.py")) if words[0] in ("run", "check") else ()
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


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=() if "half" in step else pytest.mark.slow) for step in STEPS]
)
def test_a_copy_under_way_when_the_daemon_is_killed_is_ended_removed_and_told_as_failed(
    daemon: Daemon, step: str
) -> None:
    action, mode, point = STEPS[step]
    stores = daemon.stores
    if action == "remove":
        stores.breaks("copy", "dies7")
    stores.breaks(action, mode)
    daemon.start()
    daemon.wish("copy era5 b a")
    pid = stores.reached(point)
    daemon.kill()
    until(gone(pid), what="the command is gone with its daemon")
    for broken in ("copy", action):
        stores.breaks(broken, "")
    daemon.start()
    failed = daemon.until_told(ev.CopyFailed)
    assert failed.reason == "headway ended while the copy was on its way"
    assert (failed.dataset, failed.site, failed.source) == ("era5", "b", "a")
    assert not stores.path("b").exists()
    assert stores.path("a").read_bytes() == DATA
    daemon.wish("copy era5 b a")
    daemon.until_told(ev.DatasetCopied)
    assert stores.path("b").read_bytes() == DATA


def test_what_is_there_is_told_again_and_a_removal_goes_on(daemon: Daemon) -> None:
    stores = daemon.stores
    daemon.start()
    daemon.wish("copy era5 b a")
    daemon.until_told(ev.DatasetCopied)
    daemon.kill()
    daemon.start()
    assert daemon.until_told(ev.DatasetCopied).source == ""
    shown = daemon.command("datasets", "--json")
    assert shown.returncode == 0, shown.stderr
    (dataset,) = json.loads(shown.stdout)["datasets"]
    assert [one["site"] for one in dataset["at"]] == ["a", "b"]
    assert "since" not in dataset["at"][0] and dataset["at"][1]["since"] > 0

    stores.breaks("remove", "gate")
    daemon.wish("drop era5 b")
    pid = stores.reached("remove")
    daemon.kill()
    until(gone(pid), what="the command is gone with its daemon")
    assert stores.path("b").exists()
    stores.breaks("remove", "")
    daemon.start()
    assert daemon.until_told(ev.DatasetLost).reason == "its removal is completed"
    assert not stores.path("b").exists()

    checked = daemon.command("check")
    assert "transfers.copy" in checked.stdout, checked.stdout + checked.stderr


def test_a_copy_is_shown_while_it_goes_on_and_ended_with_the_daemon(daemon: Daemon) -> None:
    stores = daemon.stores
    stores.breaks("copy", "half")
    daemon.start()
    daemon.wish("copy era5 b a")
    pid = stores.reached("copy-half")
    daemon.until_told(ev.DatasetCopying)
    shown = daemon.command("datasets")
    assert "a to b: 0%" in shown.stdout, shown.stdout + shown.stderr
    assert "a*" in shown.stdout
    daemon.stop()
    assert gone(pid)()
    assert os.path.exists(stores.path("b")) and TOOL.exists()
