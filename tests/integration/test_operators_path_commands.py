"""The guides for PBS and LSF, followed word by word on their emulated commands.

Try it on a laptop: the blocks of docs/operators. Check, monitor, take over, drive, give back: the blocks
of etc/pbs/README.md and etc/lsf/README.md, with this test's paths put for the guide's.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forked
import pytest
import yaml
from guide import PAGES
from live_daemon import HEADWAY, Daemon
from waiting import HANG, until

pytestmark = pytest.mark.waits

ROOT = Path(__file__).parents[2]
#: Name in the guide -> system, flavour, and what the emulator is told.
SYSTEMS = {"pbs": ("pbs", ""), "lsf-volclava": ("lsf", "volclava"), "lsf-ibm": ("lsf", "ibm")}


def block(text: str, after: str) -> list[str]:
    """The lines of the first block of commands behind these words."""
    return re.search(r"```sh\n(.*?)```", text[text.index(after) :], re.DOTALL)[1].splitlines()  # type: ignore[index]


def carried_out(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A command line, with what it printed."""
    if words[0] == str(HEADWAY):
        return forked.headway(words[1:], environment=environment)
    return subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=HANG, stdin=subprocess.DEVNULL
    )


class Laptop:
    """An emulator that was started as the guide says, and a shell beside it."""

    def __init__(self, directory: Path, system: str, flavour: str, *words: str) -> None:
        self.system, self.flavour = system, flavour
        self.directory = directory
        self.bin = directory / "bin"
        flags = ["--flavour", flavour] if flavour else []
        self.process = subprocess.Popen(
            [str(HEADWAY), "emulate-commands", system, str(directory), "--cpus", "4", *flags, *words],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.process.stdout.readline()
        self.env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "COLUMNS": "200"}

    def run(self, *argv: str, user: str = "") -> str:
        """One command of a person at the keyboard; it must succeed."""
        environment = {**self.env, **({"HEADWAY_EMULATED_USER": user} if user else {})}
        done = carried_out(argv, environment)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout

    def submit(self, processors: int, minutes: int = 10, *, held: bool = False) -> str:
        """A user's job; its id."""
        if self.system == "pbs":
            words = ["qsub", "-l", f"select=1:ncpus={processors}", "-l", f"walltime=00:{minutes:02}:00"]
            said = self.run(*words, *(["-h"] if held else []), "--", "/bin/sleep", "3600", user="alice")
            return said.strip()
        words = ["bsub", "-n", str(processors), "-W", str(minutes), *(["-H"] if held else [])]
        return re.match(r"Job <(\d+)>", self.run(*words, "sleep", "3600", user="alice"))[1]  # type: ignore[index]

    def state(self, job: str) -> str:
        """In the batch system's word."""
        if self.system == "pbs":
            return re.search(r"job_state = (\w)", self.run("qstat", "-x", "-f", job))[1]  # type: ignore[index]
        return self.run("bjobs", "-w", job).splitlines()[1].split()[2]

    def until(self, condition: Callable[[], object], what: str = "") -> None:
        until(condition, what)

    @property
    def runs(self) -> str:
        return "R" if self.system == "pbs" else "RUN"

    @property
    def waits(self) -> str:
        return "Q" if self.system == "pbs" else "PEND"


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Callable[..., Laptop]]:
    started: list[Laptop] = []

    def start(name: str, *words: str) -> Laptop:
        started.append(Laptop(tmp_path / "emulated", *SYSTEMS[name], *words))
        return started[-1]

    yield start
    for one in started:
        one.process.terminate()
        one.process.wait(HANG)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """headway with the shipped configuration file, and only the paths changed."""
    made: list[Daemon] = []

    def make(laptop: Laptop, **changes: Any) -> Daemon:
        config = yaml.safe_load((ROOT / "etc" / laptop.system / "headway.yaml").read_text())
        config["cluster"]["options"] |= {"bin_dir": str(laptop.bin), "poll_interval": 0.4}
        config |= {"journal": str(tmp_path / "journal.sqlite"), **changes}
        made.append(Daemon(SimpleNamespace(conf="", options={}), tmp_path))
        made[-1].configure(**config)
        return made[-1]

    yield make
    for one in made:
        one.clean_up()


class Console:
    """Carries out the lines of a guide's block."""

    def __init__(self, laptop: Laptop, daemon: Daemon) -> None:
        self.laptop, self.daemon = laptop, daemon
        #: What the last line printed.
        self.out = ""

    def follow(self, lines: list[str]) -> None:
        for line in lines:
            self.one(line)

    def one(self, line: str) -> None:
        if line in ("systemctl stop headway", "systemctl restart headway"):
            if self.daemon.process is not None:
                assert self.daemon.stop() == 0
            if "restart" in line:
                self.daemon.start()
            return
        places = {
            "/opt/headway/bin/headway": str(HEADWAY), "/opt/headway/bin/python": sys.executable,
            "/etc/headway/headway.yaml": str(self.daemon.config_path),
            f"/opt/{self.laptop.system}/bin": str(self.laptop.bin),
        }  # fmt: skip
        words = [places.get(word, word) for word in shlex.split(line.removeprefix("runuser -u headway -- "))]
        done = carried_out(words, self.laptop.env)
        self.out = done.stdout
        if "check" in words:
            return
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"

    def failed(self) -> list[str]:
        return [line for line in self.out.splitlines() if line.startswith(("FAIL", "later"))]


@pytest.mark.long
@pytest.mark.parametrize("name", ["pbs", "lsf-volclava", pytest.param("lsf-ibm", marks=pytest.mark.slow)])
def test_check_monitor_drive_give_back(
    name: str, laptop: Callable[..., Laptop], daemon: Callable[..., Daemon]
) -> None:
    site = laptop(name)
    headway = daemon(site, service={"socket": str(site.directory / "headway.sock")})
    without = headway.config["plugins"]
    headway.configure(plugins=["elastic", *without])
    elastic = name != "lsf-volclava"
    if not elastic:
        # It cannot change a limit, and a configuration that asks for that is refused with both names.
        refused = headway.command("run")
        assert refused.returncode != 0
        assert "'elastic' needs SetTimeLimit" in refused.stderr
        headway.configure(plugins=without)
    readme = (ROOT / "etc" / site.system / "README.md").read_text(encoding="utf-8")
    console = Console(site, headway)

    # Monitor: the batch system goes on by itself, and headway says what it would do.
    assert headway.config["mode"] == "monitor"
    headway.start()
    own = site.submit(4)
    site.until(lambda: site.state(own) == site.runs, "the site's own scheduler starts a job")
    wide = [site.submit(4) for _ in range(4)]
    site.until(lambda: site.state(wide[2]) == site.runs)
    assert site.state(wide[3]) == site.waits
    site.run(str(HEADWAY), "status", "-c", str(headway.config_path))
    assert headway.stop() == 0
    assert not [entry for entry in headway.log() if entry["level"] in ("warning", "error")]

    # Take over, with the lines of the guide.
    first, second = (block(readme[readme.index("## Drive") :], words) for words in ("## Drive", "Then set"))
    console.follow(first)
    (wrong,) = console.failed()
    assert ("scheduling" if site.system == "pbs" else "queue normal") in wrong
    headway.configure(mode="drive")
    console.follow(second[:-1])
    assert console.failed() == []
    console.follow(second[-1:])

    # Drive: what waited is started when there is room, on a node that is free.
    assert site.state(wide[3]) == site.waits
    site.run("qdel" if site.system == "pbs" else "bkill", own)
    site.until(lambda: site.state(wide[3]) == site.runs, "headway starts what waited")
    headway.until(lambda: [job["job"] for job in headway.said("decided")] == [wide[3]], what="it says so")
    behind = site.submit(4)
    mine = site.submit(1, held=True)
    headway.until(
        lambda: f"Job {behind} " in headway.command("explain", behind).stdout, what="it knows the job"
    )
    assert "expected to start" in headway.command("explain", behind, "--fresh").stdout
    assert "drive" in headway.command("status").stdout

    # A user's wish, given by root for the user.
    if elastic:
        longer = headway.command("elastic", wide[3], "--extend", "10m")
        assert longer.returncode == 0, longer.stdout + longer.stderr
        shown = site.run(*(["qstat", "-f", wide[3]] if site.system == "pbs" else ["bjobs", "-UF", wide[3]]))
        assert ("00:20:00" if site.system == "pbs" else "20.0 min") in shown

    # A crash loses nothing: what runs runs on, what waits is decided again.
    headway.kill()
    headway.start()
    site.run("qdel" if site.system == "pbs" else "bkill", wide[0])
    site.until(lambda: site.state(behind) == site.runs, "after a crash it goes on")
    assert site.state(mine) in ("H", "PSUSP")

    # Give back, with the lines of the guide.
    loose = [site.submit(4), site.submit(4)]
    console.follow(block(readme, "## Back"))
    assert mine in console.out or site.system == "pbs"
    site.run("qdel" if site.system == "pbs" else "bkill", wide[1])
    site.until(lambda: site.state(loose[0]) == site.runs, "the site's own scheduler goes on")
    assert site.state(wide[3]) == site.runs
    assert site.state(mine) in ("H", "PSUSP")


@pytest.mark.long
@pytest.mark.parametrize("system", ["pbs", "lsf"])
def test_the_laptop_of_the_guide(system: str, tmp_path: Path) -> None:
    section = PAGES[f"{system}.md"]
    text = section[section.index("on a laptop:") :]
    (first,), second = block(text, "on a laptop:"), block(text, "in another terminal")
    config = yaml.safe_load((ROOT / "etc" / system / "headway.yaml").read_text())
    config |= {"mode": "drive", "journal": str(tmp_path / "journal.sqlite"), "log": {"format": "json"}}
    config["cluster"]["options"]["bin_dir"] = f"{tmp_path}/emulated/bin"
    (tmp_path / f"{system}.yaml").write_text(yaml.safe_dump(config))
    places = {
        f"/tmp/{system}": str(tmp_path / "emulated"),
        f"{system}.yaml": str(tmp_path / f"{system}.yaml"),
    }

    def words(line: str) -> list[str]:
        for place, mine in places.items():
            line = line.replace(place, mine)
        found = shlex.split(line)
        return [str(HEADWAY), *found[1:]] if found[0] == "headway" else found

    emulator = subprocess.Popen(words(first), stdout=subprocess.PIPE, text=True)
    daemon: subprocess.Popen[bytes] | None = None
    try:
        assert emulator.stdout is not None
        emulator.stdout.readline()
        check, submit, run = second
        done = subprocess.run(words(check), capture_output=True, text=True, timeout=HANG)
        assert (done.returncode, "FAIL" in done.stdout) == (0, False), done.stdout + done.stderr
        subprocess.run(words(submit), check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=HANG)
        with (tmp_path / "log").open("wb") as log:
            daemon = subprocess.Popen(words(run), stdout=log, stderr=log)
        control = [f"{tmp_path}/emulated/bin/emulator-ctl", "status"]

        def says() -> str:
            return subprocess.run(control, capture_output=True, text=True, timeout=HANG).stdout

        until(lambda: "1 jobs run" in says(), "the job runs", said=(tmp_path / "log").read_text)
    finally:
        for process in (daemon, emulator):
            if process is not None:
                process.terminate()
                process.wait(HANG)
