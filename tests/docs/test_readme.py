"""Every command of the README and of docs/commands.md runs, and every make target that they name is there.

Commands that need a live cluster, a daemon or minutes are only parsed here; they run in tests of their
own. What a command reads (a trace, a configuration, a
journal) is made under the name that the README gives it.
"""

from __future__ import annotations

import gzip
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import structlog
from watched_journals import came, told

from headway.cli import cli, main
from headway.config import INSTALLED, live_adapter, parse_config
from headway.plugins import Catalogue, Plugins
from headway.workload.samples import PREFIX

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Both pages.
TEXT = README + (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")

#: Eleven jobs on 8 processors.
TRACE = "; MaxProcs: 8\n" + "".join(
    f"{n} {10 * n} -1 {20 + n} {1 + n % 8} -1 -1 {1 + n % 8} 60 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 12)
)
CONFIG = "mode: dry-run\nplugins: [easy, first-fit]\njournal: {journal}\nemulation: {{trace: {trace}}}\n"


def shell_lines(text: str) -> Iterator[str]:
    """The command lines of the fenced blocks: of a session those after the prompt, without comments."""
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if kind not in ("console", "sh", "bash", "shell"):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if kind == "console":
                if not line.startswith(("$ ", "# ")):
                    continue  # what a command prints
                line = line[2:]
            words = shlex.split(line, comments=True)
            if words:
                yield shlex.join(words)


def headway_commands(text: str) -> list[list[str]]:
    """The arguments of each ``headway`` that can run here."""
    return [a for a in all_commands(text) if not needs_a_cluster(a) and not takes_minutes(a)]


def all_commands(text: str) -> list[list[str]]:
    """The arguments of each ``headway``."""
    lines = (shlex.split(line) for line in shell_lines(text))
    return [words[1:] for words in lines if words and Path(words[0]).name == "headway"]


def named_blocks(text: str, kind: str) -> dict[str, str]:
    """The fenced blocks whose first line names a file, by that name."""
    found = {}
    for block in re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        name = re.match(r"\W*([\w-]+\.\w+)", block)
        if name:
            found[name.group(1)] = block
    return found


def needs_a_cluster(arguments: list[str]) -> bool:
    options = set(arguments)
    if {"--from-cluster", "--monitor"} & options:
        return True
    asking = (
        "init", "drive", "give-back", "elastic", "jobs", "top", "when", "what-if", "priority", "reserve",
        "serve", "unreserve", "status", "health", "metrics",
    )  # fmt: skip
    if arguments[:1] and arguments[0] in asking:
        return True
    return arguments[:1] == ["explain"] and "--journal-only" not in options


def takes_minutes(arguments: list[str]) -> bool:
    return arguments[:1] in (["reproduce"], ["tune"], ["compare"], ["lint-experiment"])


def value_after(arguments: list[str], *options: str) -> str | None:
    return next((arguments[at + 1] for at, word in enumerate(arguments[:-1]) if word in options), None)


def prepare(arguments: list[str], directory: Path) -> None:
    """Make what a command reads; names outside the test's directory are not allowed."""

    def make(name: str | None, content: str) -> None:
        # A sample comes with headway.
        if name is not None and not name.startswith(PREFIX):
            path = directory / name
            assert path.resolve().is_relative_to(directory), f"{name}: expected a relative name in the README"
            path.parent.mkdir(parents=True, exist_ok=True)
            data = content.encode()
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    make(value_after(arguments, "--trace"), TRACE)
    if arguments[0] == "analyze":
        make(arguments[1], TRACE)
    plugin = value_after(arguments, "--plugin")
    if plugin is not None:
        make(plugin, named_blocks(TEXT, "python")[plugin])
    make("small.swf", TRACE)
    config = value_after(arguments, "-c", "--config")
    if config is not None:
        journal = directory / "recorded.db"
        make(config, CONFIG.format(journal=journal, trace=directory / "small.swf"))
        if arguments[0] == "explain":
            record(journal, directory)
        if arguments[0] == "shadow":
            watched(journal, time.time() - 86400.0)
    if arguments[0] == "diff":
        small = str(directory / "small.swf")
        for folder in arguments[1:]:
            assert run(["dry-run", "--trace", small, "--out", str(directory / folder)]) == 0
    if arguments[0] == "journal":
        record(journal, directory)
    if arguments[0] == "replay":
        record(directory / next(word for word in arguments[1:] if not word.startswith("-")), directory)


def record(journal: Path, directory: Path) -> None:
    """A journal of one run of the small trace."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    run(["dry-run", "--trace", str(directory / "small.swf"), "--journal", str(journal)])


def watched(journal: Path, since: float) -> None:
    """A journal of a daemon that only watched."""
    told(journal, (since, []), (since + 9.0, [came("1", since + 9.0)]), ended=since + 60.0)


def run(arguments: list[str]) -> int:
    """The exit code of ``headway`` with these arguments."""
    try:
        main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def in_readme(found: list[list[str]]) -> list[list[str]]:
    """The README's commands, each once."""
    return [list(words) for words in dict.fromkeys(map(tuple, found))]


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("arguments", in_readme(headway_commands(TEXT)), ids=" ".join)
def test_a_command_of_the_readme_runs(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments:
        prepare(arguments, tmp_path)
    if arguments[:1] == ["explain"]:
        arguments = ["explain", "1", *arguments[2:]]  # a job of the small trace
    assert run(arguments) == 0, capsys.readouterr().err


@pytest.mark.parametrize("arguments", in_readme(all_commands(TEXT)), ids=" ".join)
def test_a_command_of_the_readme_parses(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    name, *rest = arguments
    context = click.Context(cli, **cli.context_settings)
    command = cli.get_command(context, name)
    assert command is not None
    command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("name", named_blocks(README, "yaml"))
def test_a_configuration_of_the_readme_is_valid(name: str) -> None:
    config = parse_config(named_blocks(README, "yaml")[name], name)
    catalogue = Catalogue()
    kind = INSTALLED.get(config.cluster.adapter)
    Plugins.load(catalogue.enabled(config.plugin_configs()), catalogue, kind.capabilities)
    if config.cluster.adapter != "emulated":
        live_adapter(config, read_only=True).close()


def test_each_make_target_of_the_readme_is_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [shlex.split(line) for line in shell_lines(TEXT)]
    named = {
        word
        for words in commands
        if words[0] == "make"
        for word in words[1:]
        if re.fullmatch(r"[\w-]+", word)
    }
    named |= set(re.findall(r"`make ([\w-]+)", TEXT))
    assert named <= targets


EXAMPLE = """
```console
$ headway dry-run --trace logs/a.swf.gz \\
    --out out     # with a report
easy: 11 jobs
$ make demo
```
```sh
headway run -c site.yaml
headway run -c site.yaml --monitor
.venv/bin/headway replay runs.db
headway explain 4711 -c site.yaml --journal-only
headway explain 4711 -c site.yaml
```
```yaml
headway: no command
```
"""


def test_the_readme_begins_with_its_two_commands() -> None:
    assert list(shell_lines(README)) == ["make demo", "make test"]


def test_the_commands_of_a_page_are_found() -> None:
    assert headway_commands(EXAMPLE) == [
        ["dry-run", "--trace", "logs/a.swf.gz", "--out", "out"],
        ["run", "-c", "site.yaml"],
        ["replay", "runs.db"],
        ["explain", "4711", "-c", "site.yaml", "--journal-only"],
    ]
    assert "make demo" in list(shell_lines(EXAMPLE))


@pytest.mark.parametrize("arguments", headway_commands(EXAMPLE), ids=" ".join)
def test_the_commands_of_the_example_run(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    test_a_command_of_the_readme_runs(arguments, tmp_path, monkeypatch, capsys)
