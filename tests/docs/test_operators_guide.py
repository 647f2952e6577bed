"""docs/operators: its keys are the models', its commands exist, its files load, its messages are said."""

from __future__ import annotations

import ast
import enum
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner
from guide import DIRECTORY, GUIDE, PAGES
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from headway.cli import cli
from headway.config import INSTALLED, Config, EmulationConfig, NodesConfig, parse_config
from headway.config.adapters import MemberConfig
from headway.config.sites import DatasetConfig, LinkConfig, SiteConfig, StoreConfig
from headway.workload import read_swf
from headway_adapters.emulated.faults import Faults
from headway_adapters.polling.actuators import ActuatorOptions
from headway_adapters.polling.agents import AgentOptions
from headway_adapters.slurm import SlurmOptions
from headway_adapters.transport import SshOptions

ROOT = Path(__file__).parents[2]
ETC = ROOT / "etc" / "slurm"
#: Models that stand under a key as plain mappings or lists.
UNDER: dict[str, type[BaseModel]] = {
    "cluster.options": SlurmOptions, "cluster.options.ssh": SshOptions,
    "cluster.options.actuators": ActuatorOptions,
    "cluster.options.agents": AgentOptions,
    "emulation.nodes[]": NodesConfig, "emulation.faults": Faults,
    "clusters": MemberConfig, "clusters.site": SiteConfig, "clusters.site.store": StoreConfig,
    "links[]": LinkConfig, "datasets": DatasetConfig,
}  # fmt: skip


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", GUIDE, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, body in found]


def modelled(model: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """Each key with its default; a section's keys stand for the section."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= modelled(kind, key + ".")
            continue
        found[key] = field.get_default(call_default_factory=True)
        under = next((one for one in (key, key + "[]") if one in UNDER), None)
        if under is not None:
            found |= modelled(UNDER[under], under + ".")
    return found


def shown(default: Any) -> Any:
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return "none"
    if isinstance(default, tuple):
        return list(default)
    return default.value if isinstance(default, enum.Enum) else default


#: The pages whose tables tell the configuration's keys.
PAGES_OF_KEYS = ("configuration.md", "sites.md", "interfaces.md", "standby.md", "metrics.md")


def test_every_key_is_explained_with_its_default():
    pages = "".join(PAGES[name] for name in PAGES_OF_KEYS)
    rows = re.findall(r"^\| `([a-z_.\[\]]+)` \| (\S.*?) \| \S", pages, re.MULTILINE)
    documented = {key: cell for key, cell in rows if not key.startswith("headway_")}
    expected = modelled(Config)
    assert set(documented) == set(expected)
    said = {key: yaml.safe_load(cell.strip("`")) for key, cell in documented.items()}
    assert said == {key: shown(default) for key, default in expected.items()}


def test_the_emulations_keys_are_all_sections_known_here():
    assert {"nodes", "faults"} <= set(EmulationConfig.model_fields)


def test_configurations_load_and_the_shipped_one_is_shown_as_it_is():
    texts = blocks("yaml")
    assert texts
    for text in texts:
        config = parse_config(text)
        for _, cluster in config.clusters_by_place():
            if (options := getattr(INSTALLED.get(cluster.adapter), "Options", None)) is not None:
                options.model_validate(cluster.options)
        assert config.plugin_configs()
    shipped = [ETC / "headway.yaml", *sorted(ETC.parent.glob("*/headway-two-tiers.yaml"))]
    assert len(shipped) == 4
    for path in shipped:
        assert path.read_text(encoding="utf-8") in texts, path


def commands() -> list[list[str]]:
    """The words behind `headway` of each command line, in blocks and in the text."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    names = "check|run|explain|replay|dry-run|plugins|demo|status|drive|give-back"
    lines += re.findall(rf"`([^`\n]*headway (?:{names})[^`\n]*)`", GUIDE)
    for unit in sorted(ETC.glob("*.service")):
        lines += re.findall(r"^ExecStart=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    found = []
    for line in lines:
        words = shlex.split(line, comments=True)
        at = next(
            (n for n, word in enumerate(words) if word in ("headway", "/opt/headway/bin/headway")
             and (n == 0 or words[n - 1] == "--")), None,
        )  # fmt: skip
        if at is not None:
            found.append(words[at + 1 :])
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_exists_with_these_options(words: list[str], tmp_path: Path) -> None:
    if words[0].startswith("-"):
        assert words == ["--version"]
        return
    context = click.Context(cli, **cli.context_settings)
    command = cli.get_command(context, words[0])
    assert command is not None
    arguments = words[1:]
    # Named in passing, without the configuration, which the site has in its usual place.
    if "-c" not in arguments and any(callable(p.default) and "-c" in p.opts for p in command.params):
        arguments = [*arguments, "-c", "headway.yaml"]
    existing = tmp_path / "headway.yaml"
    existing.write_text("")
    arguments = [str(existing) if word.endswith((".yaml", ".swf", ".sqlite")) else word for word in arguments]
    needed = [p for p in command.params if isinstance(p, click.Argument) and p.required]
    plain = [word for word in words[1:] if not word.startswith("-")]
    if needed and not plain:
        arguments = ["x", *arguments]
    command.make_context(words[0], arguments, parent=context)


def test_commands_are_found_in_the_guide():
    assert {words[0] for words in commands()} >= {"check", "run", "explain", "replay", "dry-run", "--version"}


def test_files_that_are_named_exist():
    for name in set(re.findall(r"\b(?:etc/slurm|docs)/[A-Za-z_./-]+\w", GUIDE)):
        assert (ROOT / name).exists(), name


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_sections(page: str) -> None:
    for name, anchor in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", PAGES[page]):
        target = DIRECTORY / (name or page)
        assert target.is_file(), f"{page}: {name}"
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), f"{page}: {name}#{anchor}"


def test_every_page_is_reached_from_the_first() -> None:
    assert set(PAGES) <= {*re.findall(r"\]\(([a-z_]+\.md)\)", PAGES["README.md"]), "README.md"}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("copies.md", ("federation/live_copies",)),
        ("two_daemons.md", ("polling/client", "slurm/client", "slurm/fence", "pbs/fence", "polling/fence")),
    ],
)
def test_every_message_about_this_is_explained(name: str, files: tuple[str, ...]) -> None:
    page = PAGES[name]
    said = said_in(*(f"adapters/headway_adapters/{file}.py" for file in files))
    table = page[page.index("| message in the log |") :]
    rows = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    assert {message for row in rows for message in re.findall(r"`([^`]+)`", row)} == said


def test_every_message_about_the_stand_by_is_explained() -> None:
    page = PAGES["standby.md"]
    said = said_in(
        *(
            f"framework/headway/standby/{name}.py"
            for name in ("answering", "followed", "follower", "keeper", "shared", "waiting")
        )
    )
    table = page[page.index("| message in the log |") :]
    rows = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    assert {message for row in rows for message in re.findall(r"`([^`]+)`", row)} == said


def messages() -> set[str]:
    """What the daemon and the adapter can write into the log."""
    framework = (
        "engine", "daemon/clock", "daemon/made", "daemon/memory", "daemon/succession", "daemon/users",
        "workload/accounting/kinds", "service/server", "letters/post",
    )  # fmt: skip
    adapters = (
        "polling/loop", "polling/looker", "polling/orders", "polling/flights", "polling/wishes",
        "polling/commands", "polling/notes", "polling/actuators", "slurm/adapter", "slurm/custody",
        "slurm/handback", "slurm/looking", "slurm/power", "slurm/starting", "lsf/adapter", "lsf/looking",
        "lsf/starting", "federation/adapter", "federation/member", "federation/live_routes", "polling/routes",
    )  # fmt: skip
    return said_in(
        *(f"framework/headway/{name}.py" for name in framework),
        *(f"adapters/headway_adapters/{name}.py" for name in adapters),
    )


def said_in(*names: str) -> set[str]:
    """What these files can write into the log."""
    found = set()
    for name in names:
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        named = {
            target.id: node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets if isinstance(target, ast.Name)
        }  # fmt: skip
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
                and node.func.attr in ("info", "warning", "error")
            ):  # fmt: skip
                if isinstance(node.args[0], ast.JoinedStr):
                    # The only thing that a message names is the batch system.
                    words = [getattr(part, "value", None) for part in node.args[0].values]
                    found.add("".join(word if isinstance(word, str) else "SYSTEM" for word in words))
                    continue
                for part in ast.walk(node.args[0]):
                    said = named.get(part.id) if isinstance(part, ast.Name) else getattr(part, "value", None)
                    if isinstance(said, str):
                        found.add(said)
    return found


def test_every_message_of_the_log_is_explained_and_no_other():
    section = GUIDE[GUIDE.index("| log message |") : GUIDE.index("A last line that begins")]
    assert set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)) == messages()


def test_the_journals_retention_as_written(tmp_path: Path) -> None:
    from headway.journal import Journal, RunInfo
    from headway.model import ClusterDescription

    path = tmp_path / "journal.sqlite"
    with Journal.open(path) as journal:
        for started in (1000.0, 2000.0):
            journal.begin_run(RunInfo("drive", started, "0", "", 0, ClusterDescription.flat(1), {}))
            journal.end_run("stopped", ended_at=started + 1)
    lines = re.findall(r"-- /opt/headway/bin/headway (journal prune .*) -c \S+$", GUIDE, re.MULTILINE)
    for line, removed in zip(lines, ("would remove 1 run: 1", "removed 1 run: 1"), strict=True):
        ran = CliRunner().invoke(cli, [*shlex.split(line), "--journal", str(path)])
        assert ran.output.startswith(removed)
    with Journal.open(path, create=False, read_only=True) as journal:
        assert [run.id for run in journal.runs()] == [2]


def test_the_sites_accounting_becomes_a_trace(tmp_path: Path) -> None:
    (tmp_path / "sacct").write_text(
        "#!/bin/sh\n"
        'test "$SLURM_TIME_FORMAT" = %s || exit 1\n'
        "cat <<EOF\n"
        "12|1700000100|1700000160|600|8|8|30|1001|COMPLETED\n"
        "11|1700000000|1700000000|3600|16|16|60|1002|TIMEOUT\n"
        "13|1700000200|Unknown|0|0|4|UNLIMITED|1001|CANCELLED by 0\n"
        "14|1700000300|1700000400|5|4|2|Partition_Limit|1003|CANCELLED by 1003\n"
        "15|1700000400|1700000500|50|4|4|10|1003|RUNNING\n"
        "EOF\n"
    )
    (tmp_path / "sacct").chmod(0o755)
    done = subprocess.run(
        [ETC / "sacct-to-swf", "batch", "64", "2023-11-14", "2023-11-15"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (tmp_path / "site.swf").write_text(done.stdout)
    trace = read_swf(tmp_path / "site.swf", strict=True)
    assert trace.max_processors == 64
    assert [line.split()[:12] for line in done.stdout.splitlines() if not line.startswith(";")] == [
        ["11", "0", "0", "3600", "16", "-1", "-1", "16", "3600", "-1", "0", "1002"],
        ["12", "100", "60", "600", "8", "-1", "-1", "8", "1800", "-1", "1", "1001"],
        ["14", "300", "100", "5", "4", "-1", "-1", "2", "-1", "-1", "5", "1003"],
    ]
