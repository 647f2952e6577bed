"""What the operators' guide and etc/lsf say of LSF: its options, its file, its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from guide import PAGES
from pydantic_core import PydanticUndefined

from headway.cli import cli
from headway.config import load_config
from headway_adapters.lsf import LsfOptions, give_back
from headway_adapters.lsf import checks as lsf_checks
from headway_adapters.lsf import client as lsf_client
from headway_adapters.lsf import writer as lsf_writer
from headway_adapters.polling.heartbeat import HeartbeatOptions

ROOT = Path(__file__).parents[2]
ETC = ROOT / "etc" / "lsf"
README = (ETC / "README.md").read_text(encoding="utf-8")
SECTION = PAGES["lsf.md"]
SHARED = {*HeartbeatOptions.model_fields, "actuators", "agents"}


def test_every_option_is_explained_with_its_default() -> None:
    said = dict(re.findall(r"^\| `([a-z_]+)` \| (\S.*?) \| \S", SECTION, re.MULTILINE))
    fields = {name: field for name, field in LsfOptions.model_fields.items() if name not in SHARED}
    assert set(said) == set(fields)
    for name, field in fields.items():
        default = field.get_default(call_default_factory=True)
        expected = "required" if default is PydanticUndefined else default
        assert yaml.safe_load(said[name].strip("`")) == expected, name
    assert all(f"`{name}`" in SECTION for name in SHARED)


def test_the_shipped_file_is_shown_as_it_is_and_loads() -> None:
    assert (ETC / "headway.yaml").read_text(encoding="utf-8") in SECTION
    config = load_config(ETC / "headway.yaml")
    options = LsfOptions.model_validate(config.cluster.options)
    assert options.queues == ("normal",)
    assert lsf_client.environment(options) == {"LSF_ENVDIR": "/opt/lsf/conf", "TZ": "UTC"}


def test_a_machine_without_lsf_is_told_what_is_missing() -> None:
    done = CliRunner(env={"COLUMNS": "250"}).invoke(cli, ["check", "-c", str(ETC / "headway.yaml")])
    if "the program 'lsid' is not installed" not in done.output:
        pytest.skip("LSF's commands are installed in /opt/lsf/bin")
    assert done.exit_code == 1
    assert "looked in /opt/lsf/bin" in done.output
    assert "install LSF's commands where they run, or set cluster.options.bin_dir" in done.output
    assert "ok    configuration" in done.output
    assert "Traceback" not in done.output


def test_the_way_back_is_a_command_that_is_there() -> None:
    (line,) = re.findall(r"^.*headway give-back.*$", README, re.MULTILINE)
    words = line.split("bin/headway ")[1].split()
    assert words == ["give-back", "--all", "-c", "/etc/headway/headway.yaml"]
    done = CliRunner().invoke(cli, [*words[:3], str(ETC / "headway.yaml")])
    assert done.exit_code == 1 and "'bqueues' is not installed" in done.output


def test_the_commands_that_are_named_are_those_that_are_run() -> None:
    sources = "".join(
        Path(str(module.__file__)).read_text(encoding="utf-8")
        for module in (lsf_checks, lsf_client, lsf_writer, give_back)
    )
    for command in ("brun", "bstop", "bresume", "bkill", "brequeue", "bmod", "bresize", "brsvadd", "brsvdel"):
        assert f"`{command}" in README and f'"{command}"' in sources, command
    for words in ("badmin qinact", "badmin qact", "badmin hpower", "badmin hclose"):
        assert words in README, words
    assert "badmin qinact {name}" in sources


def test_every_symptom_is_a_message_that_we_say() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "adapters" / "headway_adapters" / "lsf").glob("*.py")
    )
    for words in ("this LSF's brun fills hosts", "LSF's listings contradict each other", "is listed twice"):
        assert words in sources, words
