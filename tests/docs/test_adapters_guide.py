"""The page for authors of adapters: its example is checked, drives psub, replays, and passes the suite."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pretended_psub
import pytest
import yaml
from waiting import HANG, until

from headway import cli
from headway.config import Adapters
from headway.conformance import Site
from headway.conformance.site import CAN, Wanted
from headway_adapters.polling import PollingAdapter

PAGE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
#: The command as it is installed beside the interpreter.
HEADWAY = str(Path(sys.executable).with_name("headway"))
ADAPTER = ("--adapter", "psub.py")
#: Lines of an adapter that a person takes in at once, without those that are empty.
SHORT = 120


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


class Psub:
    """The batch system of the page, its adapter and the site's configuration, in one directory."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory, self._capsys = directory, capsys
        for name in ("psub.py", "test_psub.py"):
            (directory / name).write_text(FILES[name], encoding="utf-8")
        programs = pretended_psub.install(directory / "bin")
        self.environment = {
            **os.environ, "COLUMNS": "200", "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PSUB_HOME": str(directory / "cluster"),
        }  # fmt: skip
        self.run("pcreate", "4", "4")
        config = yaml.safe_load(FILES["site.yaml"])
        config["cluster"]["options"].update(
            home=str(directory / "cluster"), poll_interval=0.2, confirm_interval=0.1
        )
        (directory / "site.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    def popen(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(words, cwd=self.directory, env=self.environment, text=True, **more)

    def tried(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=4 * HANG
        )

    def run(self, *words: str) -> str:
        done = self.tried(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def headway(self, *words: str) -> Ran:
        """One of headway's commands, in this process."""
        self._capsys.readouterr()
        code: Any = 0
        try:
            cli.main(words)
        except SystemExit as ended:
            code = ended.code or 0
        return Ran(code, *self._capsys.readouterr())

    def jobs(self) -> dict[str, dict[str, Any]]:
        return {job["id"]: job for job in json.loads(self.run("pstat"))["jobs"]}


@pytest.fixture
def psub(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Psub:
    made = Psub(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "PATH"):
        monkeypatch.setenv(name, made.environment[name])
    return made


@pytest.fixture
def driven(psub: Psub) -> Iterator[Psub]:
    """A daemon has driven two jobs to their ends; a third waits."""
    first, second = (psub.run("psub", "-n", "16", "-N", "4", "1").strip() for _ in range(2))
    words = [HEADWAY, "run", "-c", "site.yaml", "--adapter", "psub.py"]
    with open(psub.directory / "log", "w") as log, psub.popen(*words, stderr=log) as daemon:
        try:
            until(
                lambda: all(job["state"] == "done" for job in psub.jobs().values()), "both have run",
                said=(psub.directory / "log").read_text,
            )  # fmt: skip
            daemon.send_signal(signal.SIGHUP)
            until(lambda: "configuration read again" in (psub.directory / "log").read_text())
            psub.run("psub", "-n", "2", "-h", "1")
            until(lambda: "3" in psub.headway("explain", "3", "--journal", "headway.db", *ADAPTER).out)
        finally:
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(HANG) == 0
    assert [psub.jobs()[key]["where"] for key in (first, second)] == [{f"n{at}": 4 for at in range(1, 5)}] * 2
    yield psub


def test_the_listing_of_the_page_has_the_keys_of_psubs(psub: Psub) -> None:
    (shown,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    psub.run("psub", "1")
    psub.run("prun", "1", "n1:1")
    said, real = json.loads(shown), json.loads(psub.run("pstat"))
    assert said.keys() == real.keys()
    assert said["nodes"][0].keys() == real["nodes"][0].keys()
    assert sorted(said["jobs"][0]) == sorted(real["jobs"][0])


def test_the_example_is_short_and_needs_what_the_contract_asks_for() -> None:
    assert sum(map(bool, FILES["psub.py"].splitlines())) <= SHORT
    table = re.findall(r"^\| `(\w+)` \| [A-Z]", PAGE, re.MULTILINE)
    assert set(PollingAdapter.__abstractmethods__) <= set(table)
    named = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("Five methods must be there") :]))
    assert Site.__abstractmethods__ <= named


def test_the_page_has_every_word_of_a_site_and_every_field_of_a_job() -> None:
    def first_column(heading: str) -> set[str]:
        rows = PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0].splitlines()[2:]
        return {word for row in rows for word in re.findall(r"`([\w-]+)`", row.split("|")[1])}

    assert first_column("word of `can`") == set(CAN)
    assert first_column("field of `bring`'s job") == {field.name for field in dataclasses.fields(Wanted)}


def test_headway_check_says_what_is_there_and_what_is_not(psub: Psub) -> None:
    said = psub.headway("check", "-c", "site.yaml", *ADAPTER)
    assert said.code == 0, said
    assert re.search(r"ok +psub +cluster demo, 4 nodes", said.out)
    assert re.search(r"capabilities +psub: Cancel, Kill, Start", said.out)
    psub.run("pfault", "down")
    said = psub.headway("check", "-c", "site.yaml", *ADAPTER)
    assert said.code == 1
    assert "cannot reach the server" in said.out and "does pstat answer here?" in said.out


def test_headway_check_names_the_class_and_the_line_of_a_look_that_fails(psub: Psub) -> None:
    file = psub.directory / "psub.py"
    file.write_text(FILES["psub.py"].replace('shown["jobs"]', 'shown["job"]'), encoding="utf-8")
    (line,) = [at for at, text in enumerate(file.read_text().splitlines(), 1) if 'shown["job"]' in text]
    said = psub.headway("check", "-c", "site.yaml", *ADAPTER)
    assert said.code == 1 and "Traceback" not in said.err
    told = " ".join(said.out.split())
    assert f"FAIL cluster Psub.look ({file}, line {line}) failed with KeyError: 'job'" in told


def test_headway_plugins_lists_it_and_a_dry_run_of_its_configuration_knows_it(psub: Psub) -> None:
    assert "psub" in psub.headway("plugins", *ADAPTER).out.split("Adapters")[1]
    config = yaml.safe_load((psub.directory / "site.yaml").read_text())
    (psub.directory / "two.swf").write_text("; MaxProcs: 4\n" + "".join(
        f"{job} 0 -1 60 4 -1 -1 4 60 -1 1 1 -1 -1 -1 -1 -1 -1\n" for job in (1, 2)
    ))  # fmt: skip
    config.update(mode="dry-run", emulation={"trace": "two.swf"})
    (psub.directory / "dry.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    ran = psub.headway("run", "-c", "dry.yaml", "--out", "out", *ADAPTER)
    assert ran.code == 0, ran
    assert len((psub.directory / "out" / "jobs.csv").read_text().splitlines()) == 3
    assert "no adapter is called 'psub'" in psub.headway("run", "-c", "dry.yaml").err


@pytest.mark.parametrize(
    "command", ["check", "run", "explain 1", "starts", "fairness", "priority", "shares",
                "dry-run --from-cluster", "fit x"],
)  # fmt: skip
def test_without_the_file_a_command_says_what_to_give(psub: Psub, command: str) -> None:
    said = psub.headway(*command.split(), "-c", "site.yaml")
    assert said.code == 2
    assert "cluster.adapter: no adapter is called 'psub'." in said.err
    assert "give that file: --adapter FILE.py" in said.err


@pytest.mark.parametrize("command", ["status", "unreserve r", "elastic 1 --extend 5m"])
def test_a_command_that_only_asks_the_daemon_needs_no_file(psub: Psub, command: str) -> None:
    said = psub.headway(*command.split(), "-c", "site.yaml")
    assert said.code == 1
    assert "no daemon answers at" in said.err


@pytest.mark.long
def test_it_drives_psub_and_the_recorded_run_replays_and_explains(driven: Psub) -> None:
    same = driven.headway("replay", "headway.db", *ADAPTER)
    assert same.code == 0 and "all decisions are the same" in same.out, same
    for words in (["replay", "headway.db"], ["explain", "3", "--journal", "headway.db"]):
        said = driven.headway(*words)
        assert said.code == 2
        assert "journal, run 2: cluster.adapter: no adapter is called 'psub'." in said.err
        assert "--adapter FILE.py" in said.err
    held = driven.headway("explain", "3", "-c", "site.yaml", *ADAPTER)
    assert "held" in held.out, held
    starts = driven.headway("starts", "-c", "site.yaml", *ADAPTER)
    assert starts.code == 0 and "cluster demo" in starts.out
    future = driven.headway("dry-run", "-c", "site.yaml", "--from-cluster", *ADAPTER)
    assert future.code == 0, future
    status = driven.headway("status", "-c", "site.yaml", *ADAPTER)
    assert status.code == 1 and "no adapter" not in status.err


@pytest.mark.long
def test_it_passes_the_conformance_suite_and_says_what_it_skips(psub: Psub) -> None:
    (command,) = re.findall(r"^pytest (-p headway\.conformance test_psub\.py)$", PAGE, re.MULTILINE)
    words = [sys.executable, "-m", "pytest", *command.split(), "-q", "-rs", "-p", "no:cacheprovider"]
    said = psub.tried(*words)
    assert said.returncode == 0, said.stdout
    passed, skipped = (int(count) for count in re.findall(r"(\d+) (?:passed|skipped)", said.stdout))
    assert passed > 35
    assert "psub: Suspend is not among the adapter's capabilities" in said.stdout
    assert "psub: not in the site's `can`: parts" in said.stdout
    assert "PytestAssertRewriteWarning" not in said.stdout
    assert skipped < 15


def test_a_class_of_the_page_that_lacks_something_is_told_so(psub: Psub) -> None:
    text = FILES["psub.py"].replace("    def carry_out", "    def carry_it_out")
    text = text.replace('    title = "psub"\n', "")
    path = psub.directory / "psub.py"
    path.write_text(text, encoding="utf-8")
    said = psub.headway("check", "-c", "site.yaml", *ADAPTER)
    assert said.code == 2
    title = 'title = "...", the system\'s name for people'
    assert f"class 'Psub' lacks the method carry_out; {title}" in said.err
    path.write_text(FILES["psub.py"], encoding="utf-8")
    assert Adapters.with_files([path]).get("psub").lacking() == []
