"""Pages by task: one click from the start page, at most a screen, and their commands are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from headway.cli import cli, main
from headway.config import parse_config

DOCS = Path(__file__).parents[2] / "docs"
START = (DOCS / "index.md").read_text(encoding="utf-8")
PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted((DOCS / "tasks").glob("*.md"))}
#: The table of features is looked up, not followed.
STEPS = {name: text for name, text in PAGES.items() if name != "slurm_features.md"}
#: Words of a screen of 1,400 pixels.
SCREEN = 250


def lines_of(text: str) -> list[str]:
    """The command lines of its blocks, and those in its text."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    found = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return found + re.findall(r"`((?:headway|systemctl|scontrol) [^`]+)`", text)


COMMANDS = [(name, line) for name, text in STEPS.items() for line in lines_of(text)]


@pytest.mark.parametrize("name", STEPS)
def test_a_task_is_one_click_from_the_start_and_at_most_a_screen(name: str) -> None:
    first = START[: START.index("## Twenty minutes")]
    assert first.count(f"](tasks/{name})") == 1
    assert len(first.split()) <= SCREEN
    assert len(STEPS[name].split()) <= SCREEN


def test_the_start_page_names_all_tasks_and_says_what_this_is() -> None:
    assert len(STEPS) == 7
    assert all(f"tasks/{name}" in START for name in PAGES)


@pytest.mark.parametrize(("name", "line"), COMMANDS, ids=[f"{name}: {line}" for name, line in COMMANDS])
def test_a_command_of_headway_has_these_options(
    name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(line.removeprefix("runuser -u headway -- "))
    if words[0].rpartition("/")[2] != "headway":
        return
    config = tmp_path / "headway.yaml"
    config.write_text("", encoding="utf-8")
    # Without -c the file in /etc counts.
    monkeypatch.setenv("HEADWAY_CONFIG", str(config))
    asked = [str(config) if word == "/etc/headway/headway.yaml" else word for word in words[1:]]
    context = click.Context(cli, **cli.context_settings)
    command = cli.get_command(context, asked[0])
    assert command is not None
    needed = any(isinstance(one, click.Argument) and one.required for one in command.params)
    rest = ["x"] if needed and len(asked) == 1 else asked[1:]
    command.make_context(asked[0], rest, parent=context)


def test_configurations_are_read() -> None:
    whole = "cluster: {adapter: slurm, options: {partitions: [batch]}}\n"
    texts = [
        text for page in STEPS.values() for text in re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    ]
    assert len(texts) == 2
    for text in texts:
        assert isinstance(yaml.safe_load(text), dict)
        more = "" if "plugins:" in text else "plugins: [easy]\n"
        assert parse_config(whole + more + text).plugin_configs()


def ran(*words: str) -> int:
    try:
        main(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_a_journal_goes_to_another_host_as_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Steps 2 and 3 of it; the new host has no journal yet."""
    steps = [line for line in lines_of(STEPS["move.md"]) if " journal " in line]
    places = {"/var/lib/headway": str(tmp_path)}
    for host, line in zip(("old", "new"), steps, strict=True):
        config = tmp_path / f"{host}.yaml"
        config.write_text(
            "mode: monitor\ncluster: {adapter: slurm, options: {partitions: [batch]}}\nplugins: [easy]\n"
            f"journal: {tmp_path / host}.sqlite\n"
        )  # fmt: skip
        if host == "old":
            assert (
                ran(
                    "dry-run",
                    "--trace",
                    "sample:fortnight",
                    "--policy",
                    "fcfs",
                    "--journal",
                    f"{tmp_path}/old.sqlite",
                )
                == 0
            )
        for there, here in {**places, "/etc/headway/headway.yaml": str(config)}.items():
            line = line.replace(there, here)
        words = shlex.split(line)
        assert ran(*words[words.index("headway", words.index("--")) + 1 :]) == 0, capsys.readouterr().err
    assert ran("journal", "check", "--journal", f"{tmp_path}/new.sqlite") == 0
    assert "in order: 1 run" in capsys.readouterr().out
