"""What the operators' guide and etc/pbs say of PBS: its options, its file, its commands."""

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
from headway_adapters.pbs import PbsOptions
from headway_adapters.polling.heartbeat import HeartbeatOptions

ROOT = Path(__file__).parents[2]
ETC = ROOT / "etc" / "pbs"
README = (ETC / "README.md").read_text(encoding="utf-8")
SECTION = PAGES["pbs.md"]
SHARED = {*HeartbeatOptions.model_fields, "actuators", "agents"}


def test_every_option_is_explained_with_its_default() -> None:
    said = dict(re.findall(r"^\| `([a-z_]+)` \| (\S.*?) \| \S", SECTION, re.MULTILINE))
    fields = {name: field for name, field in PbsOptions.model_fields.items() if name not in SHARED}
    assert set(said) == set(fields)
    for name, field in fields.items():
        default = field.default if field.default is not None else "none"
        expected = "required" if default is PydanticUndefined else default
        assert yaml.safe_load(said[name].strip("`")) == expected, name
    assert all(f"`{name}`" in SECTION for name in SHARED)


def test_the_shipped_file_is_shown_as_it_is_and_loads() -> None:
    assert (ETC / "headway.yaml").read_text(encoding="utf-8") in SECTION
    config = load_config(ETC / "headway.yaml")
    assert PbsOptions.model_validate(config.cluster.options).queues == ("workq",)


def test_a_machine_without_pbs_is_told_what_is_missing() -> None:
    done = CliRunner(env={"COLUMNS": "250"}).invoke(cli, ["check", "-c", str(ETC / "headway.yaml")])
    if "the program 'qstat' is not installed" not in done.output:
        pytest.skip("PBS's commands are installed in /opt/pbs/bin")
    assert done.exit_code == 1
    assert "looked in /opt/pbs/bin" in done.output
    assert "install PBS's client commands here, or set cluster.options.bin_dir" in done.output
    assert "ok    configuration" in done.output
    assert "Traceback" not in done.output


def test_the_way_back_is_a_command_that_is_there(tmp_path: Path) -> None:
    (line,) = re.findall(r"^.*headway give-back.*$", README, re.MULTILINE)
    words = line.split("bin/headway ")[1].split()
    assert words == ["give-back", "--all", "-c", "/etc/headway/headway.yaml"]
    site = tmp_path / "headway.yaml"
    site.write_text((ETC / "headway.yaml").read_text().replace("/opt/pbs/bin", "/nowhere"))
    done = CliRunner().invoke(cli, [*words[:3], str(site)])
    assert done.exit_code == 1 and "is not installed" in done.output


def test_what_the_administrator_switches_is_what_the_adapter_names() -> None:
    from headway_adapters.pbs import checks

    source = Path(checks.__file__).read_text(encoding="utf-8")
    for command in ("set server scheduling = False", "set server job_history_enable = True"):
        assert f'qmgr -c "{command}"' in README
        assert command in source
