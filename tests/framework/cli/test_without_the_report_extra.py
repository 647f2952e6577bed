"""A daemon's installation: Jinja2, matplotlib, Pillow, SciPy and Paramiko are not there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import HANG

#: Runs the command line as if these could not be imported.
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

MISSING = ("jinja2", "markupsafe", "matplotlib", "PIL", "scipy", "paramiko")

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import importlib.util
found = importlib.util.find_spec
sys.meta_path.insert(0, Missing())
importlib.util.find_spec = lambda name, package=None: (
    None if name.split(".")[0] in MISSING else found(name, package)
)
from headway.cli import main
sys.exit(main())
"""
TRACE = "; MaxProcs: 8\n" + "".join(f"{n} {n} -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 6))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.swf"
    path.write_text(TRACE, encoding="ascii")
    return path


def headway(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", WITHOUT, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=HANG, check=False)


@pytest.mark.parametrize("command", ["run", "check", "explain", "status", "replay", "plugins"])
def test_the_daemons_commands_are_there(command: str) -> None:
    ran = headway(command, "--help")
    assert ran.returncode == 0, ran.stderr


def test_a_dry_run_needs_no_plots_unless_it_writes_them(trace: Path, tmp_path: Path) -> None:
    ran = headway("dry-run", "--trace", trace)
    assert ran.returncode == 0, ran.stderr
    assert "5 jobs" in ran.stdout
    refused = headway("dry-run", "--trace", trace, "--out", tmp_path / "out")
    assert refused.returncode == 2
    assert "needs Jinja2, matplotlib, Pillow, SciPy" in refused.stderr and ".[report]" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_a_daemon_runs_a_trace_of_its_configuration(trace: Path, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(f"mode: dry-run\nemulation:\n  processors: 8\n  trace: {trace}\n", encoding="utf-8")
    checked = headway("check", "-c", site)
    assert "Traceback" not in checked.stderr
    ran = headway("run", "-c", site)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["demo"],
        ["compare", "x"],
        ["tune", "easy"],
        ["reproduce"],
        ["shares", "--journal", "x", "--html", "x.html"],
    ],
)
def test_what_needs_it_says_how_to_install_it(words: list[str], tmp_path: Path) -> None:
    if words[0] == "compare":
        words = ["compare", str(tmp_path / "campaign.yaml")]
        (tmp_path / "campaign.yaml").write_text("{}", encoding="utf-8")
    ran = headway(*words)
    assert ran.returncode == 2
    assert "extra `report`" in " ".join(ran.stderr.split()), ran.stderr


SSH = """
cluster:
  adapter: slurm
  options: {partitions: [batch], ssh: {host: login.example.org}}
"""
SEVERAL = """
clusters:
  near: {adapter: slurm, options: {partitions: [batch]}}
  far: {adapter: pbs, options: {queues: [workq], ssh: {host: login.example.org}}}
"""


@pytest.mark.parametrize("clusters", [SSH, SEVERAL], ids=["one", "several"])
@pytest.mark.parametrize("command", ["check", "run"])
def test_another_machine_needs_the_extra_ssh(command: str, clusters: str, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(f"mode: monitor\njournal: {tmp_path / 'journal.db'}\n{clusters}", encoding="utf-8")
    ran = headway(command, "-c", site)
    assert ran.returncode == 2
    told = " ".join(ran.stderr.split())
    assert "key `ssh` (commands on login.example.org) needs Paramiko" in told and "extra `ssh`" in told, told


def test_every_plugin_and_adapter_loads_that_needs_no_extra(tmp_path: Path) -> None:
    """`partitions` draws a picture for reports, and runs without them."""
    ran = headway("plugins", "partitions")
    assert ran.returncode == 0, ran.stderr
    site = tmp_path / "site.yaml"
    site.write_text(
        "mode: dry-run\ncluster: {adapter: slurm, options: {partitions: [a]}}\n", encoding="utf-8"
    )
    assert "Paramiko" not in headway("check", "-c", site).stderr


def test_the_readme_names_the_commands_that_need_it() -> None:
    root = Path(__file__).parents[3]
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    sentence = re.search(r"The commands ([^.]*?) need the extra `report`", readme)
    assert sentence is not None
    named = {word.removeprefix("headway ") for word in re.findall(r"`([^`]+)`", sentence[1])}
    sources = (root / "framework" / "headway" / "cli").glob("*.py")
    asked = {
        what.removeprefix("headway ")
        for path in sources
        for what in re.findall(r'need_report\("([^"]+)"\)', path.read_text(encoding="utf-8"))
    }
    assert asked - named == set()
    assert named - asked == {"dry-run", "analyze", "shares", "--html"}
