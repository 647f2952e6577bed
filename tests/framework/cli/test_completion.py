"""Completion in a shell: of commands and options, without loading what they need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from test_what_commands_load import LOADED, NOT_OF_HELP
from waiting import HANG

from headway.cli import cli

#: What other packages tell of their commands.
LINES = {
    name
    for package in ("headway_plugins", "headway_adapters")
    for name in (package, f"{package}.command_lines")
}
#: The command as it is installed beside the interpreter.
HEADWAY = Path(sys.executable).with_name("headway")


def asked(*words: str, program: tuple[str, ...] = (str(HEADWAY),)) -> subprocess.CompletedProcess[str]:
    """The answer to bash about the last word."""
    environment = {
        **os.environ, "_HEADWAY_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(("headway", *words)),
        "COMP_CWORD": str(len(words)),
    }  # fmt: skip
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=HANG)


def completed(*words: str) -> list[str]:
    done = asked(*words)
    assert done.returncode == 0, done.stderr
    return [line.removeprefix("plain,") for line in done.stdout.splitlines()]


def test_commands_of_all_packages_are_completed() -> None:
    assert completed("jo") == ["journal", "jobs"]
    assert completed("la") == ["lab"]
    assert completed("journal", "") == ["backup", "check", "follow", "info", "move", "prune", "restore"]


def test_a_shell_that_shows_help_gets_the_lines_of_the_help() -> None:
    items = cli.shell_complete(click.Context(cli, info_name="headway"), "whe")
    assert [(item.value, item.help) for item in items] == [
        ("when", "Tell when a job would start, before it is submitted.")
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("dry-run", "--tr"), ["--trace"]),
        # A command that cannot run without a configuration.
        (("run", "--mon"), ["--monitor"]),
        (("--vers",), ["--version"]),
    ],
    ids=lambda found: " ".join(found),
)
def test_options_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


@pytest.mark.parametrize("words", [("",), ("jobs", "--")], ids=" ".join)
def test_completing_loads_no_more_than_a_help_text(words: tuple[str, ...]) -> None:
    """Each press of a key is a process of its own."""
    done = asked(*words, program=(sys.executable, "-c", LOADED))
    assert done.returncode == 0, done.stderr
    loaded = done.stderr.splitlines()[-1].split()
    assert loaded[0] == "loaded"
    found = {name for name in loaded if name.split(".")[0] in NOT_OF_HELP or name in NOT_OF_HELP}
    assert found - LINES == set()


#: What a shell says when it has read the program and knows the function.
READ = {
    "bash": ("-c", 'source "$1" && complete -p headway', "bash"),
    "zsh": (
        "-f",
        "-c",
        'autoload -Uz compinit && compinit -D && source "$1" && print $_comps[headway]',
        "zsh",
    ),
    "fish": ("--no-config", "-c", "source $argv[1]; complete --command headway"),
}


@pytest.mark.parametrize("shell", READ)
def test_a_shell_reads_its_program(shell: str, tmp_path: Path) -> None:
    program = tmp_path / "program"
    said = subprocess.run(
        [HEADWAY, "completion", shell], capture_output=True, text=True, timeout=HANG, check=True
    )
    assert "_HEADWAY_COMPLETE" in said.stdout
    program.write_text(said.stdout, encoding="utf-8")
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    done = subprocess.run(
        [shell, *READ[shell], program], capture_output=True, text=True, timeout=HANG, check=True
    )
    assert "headway" in done.stdout


def test_bash_completes_a_command_by_it() -> None:
    script = (
        f'PATH="{HEADWAY.parent}:$PATH"; eval "$(headway completion bash)"; '
        'COMP_WORDS=(headway expl); COMP_CWORD=1; _headway_completion headway; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=HANG, check=True)
    assert done.stdout.split() == ["explain"]
